"""Models on a device against the same on the processor, and their memory as other libraries share it. The device is
emulated unless HEED_CUDA_LIBRARY names a library."""
import ctypes
import gc
import os
import pathlib
import unittest
import unittest.mock

import numpy as np

import heed
from heed import _heed, _inputs
from support import PROGRAM, PROMPT, TestCase, starter

EMULATED = pathlib.Path(PROGRAM).parents[1] / "tests" / "heed_cuda_emulated.so"


class DeviceCase(TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.setdefault("HEED_CUDA_LIBRARY", str(EMULATED))
        if not os.path.exists(os.environ["HEED_CUDA_LIBRARY"]):
            raise unittest.SkipTest("no library for a device was built")
        cls.here, cls.there = starter(), there()


def there():
    """The embedded model on the device, loaded once."""
    if not hasattr(there, "model"):
        there.model = heed.load("starter", device="cuda")
    return there.model


class Devices(DeviceCase):

    def test_says_where_it_is(self):
        self.assertEqual((self.here.device, self.there.device), ("cpu", "cuda:0"))
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "expected cpu, cuda"):
            heed.load("starter", device="gpu")

    def test_activations_and_gradients(self):
        here, there = (model.run_with_cache(PROMPT) for model in (self.here, self.there))
        self.assert_close(there[0], here[0], 1e-4)
        for name in ("blocks.2.attn.hook_pattern", "blocks.3.hook_resid_post", "ln_final.hook_normalized"):
            self.assert_close(there[1][name], here[1][name], 1e-4)

    def test_hooks_change_what_follows(self):
        def half(values, hook):
            return values * 0.5

        hooks = [("blocks.1.hook_resid_pre", half)]
        here, there = (model.run_with_hooks(PROMPT, fwd_hooks=hooks) for model in (self.here, self.there))
        self.assert_close(there, here, 1e-4)
        self.assertGreater(np.abs(there - self.there(PROMPT)).max(), 1e-2)

    def test_multiplies_in_tf32_where_it_is_told_to(self):
        tokens = self.here.to_tokens(PROMPT * 16)
        self.assertGreater(tokens.shape[1], 32)
        f32 = self.there(tokens)
        self.addCleanup(heed.set_f32_products, heed.f32_products())
        heed.set_f32_products("tf32")
        self.assertEqual(heed.f32_products(), "tf32")
        tf32 = self.there(tokens)
        self.assertGreater(np.abs(tf32 - f32).max(), 1e-4 * np.abs(f32).max())
        self.assert_close(tf32, f32, 5e-3)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "expected f32 or tf32"):
            heed.set_f32_products("bf16")

    def test_generates(self):
        text = [model.generate(PROMPT, max_new_tokens=8, temperature=0) for model in (self.here, self.there)]
        self.assertEqual(*("".join(step.text for step in steps) for steps in text))


    def test_weights_are_read_only_where_passes_read_copies_of_them(self):
        self.assertFalse(self.there.W_Q.flags.writeable)
        self.assertTrue(self.here.W_Q.flags.writeable)

    def test_refactored_heads_are_the_devices_too(self):
        whole = self.there(PROMPT)
        model = heed.Model.from_pretrained("starter", refactor_factored_attn_matrices=True, device="cuda")
        self.assertGreater(np.abs(model.W_Q - self.there.W_Q).max(), 1e-2)
        self.assert_same_bits(np.asarray(model.on_device("attn.W_Q")), model.W_Q)
        self.assert_close(model(PROMPT), whole, 1e-4)


# DLPack's structs, as its header lays them out.
class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # calls without the interpreter's lock


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


KINDS = {b"dltensor": Managed, b"dltensor_versioned": Versioned}
USED = {name: b"used_" + name for name in KINDS}  # which have to outlive capsules


def function_of_python(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


name_of = function_of_python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
pointer_of = function_of_python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
rename = function_of_python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
new_capsule = function_of_python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def looked_at(capsule):
    """Its struct, which stays the capsule's, and keeps it."""
    name = name_of(capsule)
    managed = KINDS[name].from_address(pointer_of(capsule, name))
    managed.capsule = capsule
    return managed


def consumed(capsule):
    """The same, once the capsule has been taken, without the capsule."""
    name = name_of(capsule)
    managed = looked_at(capsule)
    assert rename(capsule, USED[name]) == 0
    del managed.capsule
    return managed


def address_of(array):
    return looked_at(array.__dlpack__()).tensor.data


class Forwarding:
    """An array of some other library."""

    def __init__(self, array):
        self.array, self.device = array, "cuda"
        self.streams = []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, max_version=max_version)


class Foreign:
    """A NumPy array as memory of the device that heed did not allocate, which an emulated one's kernels can read; by
    the protocol of before DLPack 1.0, or as a later version."""

    CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}

    def __init__(self, array, code=None, device=(2, 0), lanes=1, offset=0, strides=True, major=None):
        self.array, self.where, self.deleted = array, device, 0
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*(stride // array.itemsize for stride in array.strides))
        kind = self.CODES[array.dtype.kind] if code is None else code
        tensor = Tensor(array.ctypes.data - offset, *device, array.ndim, kind, 8 * array.itemsize, lanes, self.shape,
                        self.strides if strides else None, offset)
        self.deleter = DELETER(self.delete)
        self.name = b"dltensor" if major is None else b"dltensor_versioned"
        self.managed = (Managed(tensor, None, self.deleter) if major is None
                        else Versioned(major, 0, None, self.deleter, 0, tensor))

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, stream=None):  # without max_version
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


class SharedMemory(DeviceCase):
    def setUp(self):
        self.cache = self.there.run_with_cache(PROMPT)[1]

    def assert_all_given_back(self, before):
        gc.collect()
        self.assertEqual(_heed.device_bytes_in_use(), before)

    def test_says_what_it_is(self):
        q = self.cache.on_device(("q", 2))
        self.assertIsInstance(q, heed.DeviceArray)
        self.assertEqual((q.shape, q.ndim, q.size, q.nbytes, len(q)), ((1, 3, 6, 32), 4, 576, 2304, 1))
        self.assertEqual((q.dtype, q.device, q.__dlpack_device__()), (np.dtype(np.float32), "cuda:0", (2, 0)))
        self.assertEqual(q.strides, (3 * 576, 576, 32, 1))  # rows of q, k and v side by side
        self.assertEqual(repr(q), "DeviceArray(shape=(1, 3, 6, 32), dtype=float32, device='cuda:0')")
        self.assertEqual(np.asarray(q, np.float64).dtype, np.float64)
        self.assert_same_bits(np.asarray(q[0][-1]), self.cache["q", 2][0, 2])
        for wrong, kind in ((1, IndexError), (-2, IndexError), (slice(0, 1), heed.errors.InvalidArgument),
                            (True, heed.errors.InvalidArgument)):
            with self.assertRaises(kind):
                q[wrong]

    def test_every_activation(self):
        for name in self.there.hook_names:
            found, wanted = np.asarray(self.cache.on_device(name)), np.asarray(self.cache[name])
            if name.endswith(("hook_attn_scores", "hook_pattern")):  # the processor's sums have another order
                self.assert_close(found, wanted, 1e-5, name)
            else:
                self.assert_same_bits(found, wanted, name)
        with self.assertRaises(heed.errors.Error):
            self.cache.on_device("blocks.6.hook_resid_post")
        alone = self.cache.remove_batch_dim()
        self.assert_same_bits(np.asarray(alone.on_device("resid_post0")), alone["resid_post", 0])

    def test_nothing_is_copied_nor_comes_to_the_processor(self):
        cache = self.there.run_with_cache(PROMPT)[1]
        held, used = cache.nbytes, _heed.device_bytes_in_use()
        kept = [cache.on_device((name, layer)) for layer in range(6)
                for name in ("q", "k", "v", "z", "resid_pre", "resid_mid", "resid_post", "pre")]
        self.assertEqual((cache.nbytes, _heed.device_bytes_in_use()), (held, used))
        self.assertEqual(address_of(cache.on_device(("resid_post", 2))), address_of(cache.on_device(("resid_pre", 3))))
        q, k = (address_of(cache.on_device((name, 4))) for name in "qk")
        self.assertEqual(k - q, 192 * 4)  # beside the queries of a row
        cache["q", 0]
        self.assertGreater(cache.nbytes, held)  # so that the first comparison says something
        self.assertEqual(len(kept), 48)

    def test_of_texts_of_different_lengths_and_of_named_points(self):
        for texts, names in ((["Once", "Once upon a time"], None), (PROMPT, ["resid_post3", "pattern2"]),
                             (["Once", PROMPT], "pattern")):
            cache = self.there.run_with_cache(texts, names_filter=names)[1]
            for name in cache if names else ("resid_post3", "attn_out2", "pattern1", "attn_scores0", "scale"):
                self.assert_close(np.asarray(cache.on_device(name)), np.asarray(cache[name]), 1e-5, name)

    def test_of_a_translator(self):
        model = heed.load("translator", device="cuda")
        cache = model.run_with_cache(source="A dog runs.")[1]
        for name in ("encoder.1.hook_resid_post", "decoder.0.attn.hook_q", "cross.pattern0"):
            self.assert_close(np.asarray(cache.on_device(name)), np.asarray(cache[name]), 1e-5, name)
        with self.assertRaisesRegex(heed.errors.Unsupported, "views of weights"):
            model.on_device("embed.W_E")

    def test_weights(self):
        for name in [*self.there.weight_names, "attn.W_K", "mlp.b_in"]:
            found, wanted = self.there.on_device(name), self.there.weight(name)
            self.assertEqual(found.strides, tuple(stride // 4 for stride in wanted.strides), name)
            self.assert_same_bits(np.asarray(found), wanted, name)
        flags = looked_at(self.there.on_device("embed.W_E").__dlpack__(max_version=(1, 1))).flags
        self.assertEqual(flags, 1)
        with self.assertRaisesRegex(heed.errors.NotFound, "did you mean"):
            self.there.on_device("embed.W")

    def test_of_quantised_models_only_what_is_f32(self):
        model = heed.load("starter", dtype="int8", device="cuda")
        self.assert_same_bits(np.asarray(model.on_device("embed.W_E")), model.W_E)
        for name in ("blocks.0.attn.W_Q", "mlp.W_in"):
            with self.assertRaisesRegex(heed.errors.Unsupported, f"'{name}' is on cuda:0 only quantised"):
                model.on_device(name)

    def test_models_on_the_processor_have_none(self):
        _, cache = self.here.run_with_cache(PROMPT)
        stored = heed.cache._restored(self.cache._contents(), self.there)
        closed = heed.load("starter", device="cuda")
        closed.close()
        for call, message in ((lambda: closed.on_device("embed.W_E"), "the model is closed"),
                              (lambda: cache.on_device("resid_post3"), 'loaded with device="cuda"'),
                              (lambda: self.here.on_device("embed.W_E"), 'loaded with device="cuda"'),
                              (lambda: stored.on_device("resid_post3"), "the cache was stored")):
            with self.assertRaisesRegex(heed.errors.InvalidArgument, message):
                call()

    def test_capsules(self):
        z = self.cache.on_device(("z", 1))
        for options, kind, name in (({}, Managed, b"dltensor"), ({"max_version": (0, 8)}, Managed, b"dltensor"),
                                    ({"max_version": (1, 0)}, Versioned, b"dltensor_versioned"),
                                    ({"max_version": (2, 3), "stream": 2}, Versioned, b"dltensor_versioned")):
            capsule = z.__dlpack__(**options)
            self.assertEqual(name_of(capsule), name)
            managed = looked_at(capsule)
            self.assertIsInstance(managed, kind)
            tensor = managed.tensor
            self.assertEqual((tensor.device_type, tensor.device_id), (2, 0))
            self.assertEqual((tensor.code, tensor.bits, tensor.lanes), (2, 32, 1))
            self.assertEqual(tuple(tensor.shape[:tensor.ndim]), z.shape)
            self.assertEqual(tuple(tensor.strides[:tensor.ndim]), z.strides)
            self.assertEqual((tensor.data, tensor.byte_offset), (address_of(z), 0))
            if kind is Versioned:
                self.assertEqual((managed.major, managed.minor, managed.flags), (1, 0, 1))
            self.assert_same_bits(_heed.copy_from_device(capsule, "values"), self.cache["z", 1])
            self.assertEqual(name_of(capsule), b"used_" + name)
            with self.assertRaisesRegex(heed.errors.InvalidArgument, "taken before"):
                _heed.copy_from_device(capsule, "values")

    def test_copies(self):
        v = self.cache.on_device(("v", 1))
        copy = v.__dlpack__(copy=True, max_version=(1, 0))
        managed = looked_at(copy)
        self.assertNotEqual(managed.tensor.data, address_of(v))
        self.assertEqual(managed.flags, 2)
        self.assertEqual(tuple(managed.tensor.strides[:4]), (3 * 192, 192, 32, 1))
        self.assert_same_bits(_heed.copy_from_device(copy, "values"), self.cache["v", 1])
        here = v.__dlpack__(dl_device=(1, 0))
        tensor = looked_at(here).tensor
        self.assertEqual(tensor.device_type, 1)
        self.assertEqual(ctypes.c_float.from_address(tensor.data + tensor.byte_offset).value,
                         float(self.cache["v", 1][0, 0, 0, 0]))
        self.assertEqual(address_of(v), looked_at(v.__dlpack__(copy=False, dl_device=(2, 0))).tensor.data)

    def test_wrong_arguments(self):
        q = self.cache.on_device(("q", 0))
        for stream in (0, -2, 1.0, "1", True):
            with self.assertRaisesRegex(ValueError, "the stream is .*, expected None, -1"):
                q.__dlpack__(stream=stream)
        for stream, waits in ((None, 1), (-1, 0), (1, 1), (2, 1), (1 << 40, 1), (np.int64(7), 1)):
            with unittest.mock.patch.object(_heed, "wait_for_device", wraps=_heed.wait_for_device) as wait:
                q.__dlpack__(stream=stream)
            self.assertEqual(wait.call_count, waits, stream)
        for options in ({"dl_device": (2, 1)}, {"dl_device": (10, 0)}, {"dl_device": (1, 0), "copy": False}):
            with self.assertRaises(BufferError, msg=options):
                q.__dlpack__(**options)
        for options in ({"copy": "yes"}, {"max_version": 1}, {"max_version": ("a", 0)}):
            with self.assertRaises(ValueError, msg=options):
                q.__dlpack__(**options)
        with self.assertRaises(TypeError):
            q.__dlpack__(None)
        with self.assertRaises(ValueError):
            q.__array__(copy=False)

    def test_memory_outlives_cache_and_model_until_it_is_deleted(self):
        gc.collect()
        before = _heed.device_bytes_in_use()
        for kind in ({}, {"max_version": (1, 0)}):
            model = heed.load("starter", device="cuda")
            cache = model.run_with_cache(PROMPT)[1]
            weights = np.array(model.weight("blocks.3.attn.W_O"))
            values = np.array(cache["k", 5])
            capsules = [model.on_device("blocks.3.attn.W_O").__dlpack__(**kind), cache.on_device(("k", 5)).__dlpack__(**kind)]
            taken = [consumed(capsule) for capsule in capsules]
            name = next(name for name in KINDS if KINDS[name] is type(taken[0]))
            model.close()
            del capsules, cache, model
            gc.collect()
            sizes = [_heed.device_bytes_in_use() - before]
            for managed, wanted in zip(taken, (weights, values)):
                again = new_capsule(ctypes.addressof(managed), name, None)  # whose reader calls the deleter
                self.assert_same_bits(_heed.copy_from_device(again, "values"), wanted)
                sizes.append(_heed.device_bytes_in_use() - before)
            self.assertGreater(sizes[0], 4 * 2_000_000)  # the model's parameters
            self.assertGreater(sizes[0], sizes[1] + 4 * 2_000_000)
            self.assertGreater(sizes[1], values.nbytes)  # the pass
            self.assertEqual(sizes[2], 0)

    def test_capsules_that_nobody_takes_give_memory_back(self):
        gc.collect()
        before = _heed.device_bytes_in_use()
        for options in ({}, {"max_version": (1, 0)}, {"copy": True}):
            cache = self.there.run_with_cache(PROMPT)[1]
            capsule = cache.on_device(("resid_post", 2)).__dlpack__(**options)
            del cache
            gc.collect()
            self.assertGreater(_heed.device_bytes_in_use(), before)
            del capsule
            self.assert_all_given_back(before)

    def test_a_deleter_releases_without_the_lock(self):
        gc.collect()
        before = _heed.device_bytes_in_use()
        capsule = self.there.run_with_cache(PROMPT)[1].on_device(("resid_mid", 2)).__dlpack__()
        managed = consumed(capsule)
        del capsule
        gc.collect()
        self.assertGreater(_heed.device_bytes_in_use(), before)
        managed.deleter(ctypes.addressof(managed))
        self.assert_all_given_back(before)

    def test_arrays_on_the_device_are_taken(self):
        stream = self.cache.on_device(("resid_post", 1))
        for given in (stream, Forwarding(stream)):
            def replace(values, hook):
                return given

            found = self.there.run_with_hooks(PROMPT, fwd_hooks=[("blocks.4.hook_resid_pre", replace)])
            wanted = self.there.run_with_hooks(
                PROMPT, fwd_hooks=[("blocks.4.hook_resid_pre", lambda values, hook: self.cache["resid_post", 1])])
            self.assert_same_bits(found, wanted)
            self.assertGreater(np.abs(found - self.there(PROMPT)).max(), 1e-2)
        self.assertEqual(given.streams, [1])
        weights = self.there.on_device("blocks.2.attn.W_O")  # (H, D, C), whose strides are not in C order
        self.assert_same_bits(_inputs.float_array(Forwarding(weights), "weights"), self.there.weight("blocks.2.attn.W_O"))

    @staticmethod
    def is_emulated():
        return os.environ["HEED_CUDA_LIBRARY"] == str(EMULATED)

    def test_memory_of_others(self):
        if not self.is_emulated():
            self.skipTest("no memory of the processor is a GPU's")
        numbers = np.random.default_rng(1)
        base = numbers.standard_normal((3, 8, 6, 5)).astype(np.float32)
        views = [base, base[1], base.T, base[:, ::2, 1::3], base[::-1, :, ::-1], np.broadcast_to(base[:1, :1], base.shape),
                 base[..., 0, 0], base.reshape(-1)[7:8], base[:0], np.array(base[0, 0, 0, 0])]
        for dtype in (np.float16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64):
            for view in views:
                given = Foreign(view if dtype is np.float32 else np.asarray((view * 40).astype(dtype, order="K")))
                found = _inputs._here(given, "values")
                self.assertEqual(found.dtype, given.array.dtype)
                self.assert_same_bits(found, given.array, (dtype, view.strides))
                self.assertEqual(found.shape, view.shape)
                self.assertEqual(given.deleted, 1)
        self.assert_same_bits(_inputs._here(Foreign(base > 0), "values"), base > 0)
        self.assert_same_bits(_inputs._here(Foreign(base, strides=False, offset=64, major=1), "values"), base)
        halves = (base.view(np.uint32) >> 16).astype(np.uint16)
        self.assert_same_bits(_inputs._here(Foreign(halves, code=4), "values"), base.view(np.uint32) >> 16 << 16)

    def test_tokens_of_others(self):
        if not self.is_emulated():
            self.skipTest("no memory of the processor is a GPU's")
        tokens = self.there.to_tokens(PROMPT)
        for dtype in (np.int32, np.int64):
            self.assert_same_bits(self.there(Foreign(tokens.astype(dtype))), self.there(tokens))
        floats = Foreign(tokens.astype(np.float32))
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "tokens have the type float32, expected integers"):
            self.there(floats)
        self.assertEqual(floats.deleted, 1)
        for given, message in ((Foreign(tokens, code=1, lanes=2), "2 lanes, expected floats, bfloat16, integers or"),
                               (Foreign(tokens.astype(np.complex64)), "type code 5 of 64 bits and 1 lanes"),
                               (Foreign(tokens, lanes=4), "4 lanes"), (Foreign(tokens, code=2 + 8), "type code 10"),
                               (Foreign(tokens.reshape(1, 1, 1, 1, -1)), "at most 4 dimensions"),
                               (Foreign(tokens, device=(2, 3)), r"on device \(2, 3\), expected the CPU or cuda:0"),
                               (Foreign(tokens, device=(10, 0)), r"on device \(10, 0\), expected")):
            with self.assertRaisesRegex(heed.errors.InvalidArgument, message):
                self.there(given)
            self.assertEqual(given.deleted, 0)  # it was not taken
        with self.assertRaisesRegex(heed.errors.Unsupported, "version 2 of DLPack"):
            self.there(Foreign(tokens, major=2))

        class Refusing(Foreign):
            def __dlpack__(self, **options):
                raise RuntimeError("requires grad")

        with self.assertRaisesRegex(heed.errors.InvalidArgument, "cannot be read by DLPack: requires grad"):
            self.there(Refusing(tokens))


if __name__ == "__main__":
    unittest.main()
