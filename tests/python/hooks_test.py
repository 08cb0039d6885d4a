import gc
import signal
import threading
import time

import numpy as np

import heed
from support import PROMPT, TestCase, address, starter

CHANGES = (lambda values, hook: None, lambda values, hook: values,
           lambda values, hook: values.copy())
TEXT = "A fluffy blue creature roamed the verdant forest."


class Hooks(TestCase):
    def setUp(self):
        self.model = starter()
        self.tokens = self.model.to_tokens(TEXT)
        self.logits = self.model(self.tokens)
        self.points = [name for name in self.model.hook_names if name != "unembed.hook_out"]

    def test_a_hook_that_changes_nothing_changes_no_bit(self):
        for change in CHANGES:
            for name in self.points:
                if change is not CHANGES[0] and not name.startswith(("blocks.1.", "hook", "ln", "un")):
                    continue
                self.assert_same_bits(self.model.run_with_hooks(self.tokens, [(name, change)]),
                                      self.logits, name)
            everywhere = [(name, change) for name in self.points]
            self.assert_same_bits(self.model.run_with_hooks(self.tokens, everywhere), self.logits)
            rows = np.repeat(self.tokens, 2, 0)
            self.assert_same_bits(self.model.run_with_hooks(rows, everywhere)[1], self.logits[0])

    def test_every_hook_is_called_once_with_the_values_of_its_point(self):
        _, cache = self.model.run_with_cache(self.tokens)
        seen = {}

        def keep(values, hook):
            self.assertNotIn(hook.name, seen)
            seen[hook.name] = values

        self.model.run_with_hooks(self.tokens, [(lambda name: True, keep)])
        self.assertEqual(sorted(seen), sorted(self.points))
        for name in self.points:
            # kept arrays stay as they were left
            self.assertFalse(seen[name].flags.owndata)
            self.assert_same_bits(seen[name], cache[name], name)
        addresses = [address(value) for value in seen.values()]
        self.assertEqual(len(set(addresses)), len(addresses))

    def test_in_place_and_returned_are_the_same(self):
        def in_place(values, hook):
            values[:, :, 1] = 0

        def returned(values, hook):
            changed = values.copy()
            changed[:, :, 1] = 0
            return changed.astype(np.float64)

        a = self.model.run_with_hooks(self.tokens, [("blocks.0.attn.hook_z", in_place)])
        b = self.model.run_with_hooks(self.tokens, [("z0", returned)])
        self.assert_same_bits(a, b)
        self.assertFalse(np.array_equal(a, self.logits))

    def test_zeroed_head_equals_its_zeroed_result_and_pattern(self):
        def zero(values, hook):
            values[...] = 0

        def zero_head(values, hook):
            values[:, 1] = 0  # (B, H, T, S)

        def zero_result(values, hook):
            values[:, :, 1] = 0

        by_z = self.model.run_with_hooks(
            self.tokens, [("z2", lambda values, hook: values.__setitem__((slice(None), slice(None), 1), 0))])
        by_pattern = self.model.run_with_hooks(self.tokens, [("pattern2", zero_head)])
        by_result = self.model.run_with_hooks(self.tokens, [("result2", zero_result)])
        self.assert_close(by_pattern, by_z, 1e-5)
        self.assert_close(by_result, by_z, 1e-5)
        all_zero = self.model.run_with_hooks(self.tokens, [("pattern2", zero)])
        self.assert_close(self.model.run_with_hooks(self.tokens, [("z2", zero)]), all_zero, 1e-5)

    def test_edited_scores_change_the_pattern(self):
        def to_first(values, hook):
            values[:, :, :, 1:] = -np.inf

        _, cache = self.model.run_with_cache(self.tokens, ["pattern0", "attn_scores0"],
                                             fwd_hooks=[("attn_scores0", to_first)])
        pattern = cache["pattern", 0]
        self.assert_same_bits(pattern[..., 0], np.ones_like(pattern[..., 0]))
        self.assertEqual(float(np.abs(pattern[..., 1:]).max()), 0.0)
        self.assertTrue(np.isneginf(cache["attn_scores", 0][..., 1:]).all())

    def test_cache_holds_what_hooks_left(self):
        def double(values, hook):
            values *= 2

        _, plain = self.model.run_with_cache(self.tokens)
        logits, cache = self.model.run_with_cache(self.tokens, fwd_hooks=[("mlp_out0", double)])
        self.assert_same_bits(cache["mlp_out", 0], plain["mlp_out", 0] * 2)
        self.assert_same_bits(cache["resid_mid", 0], plain["resid_mid", 0])
        self.assert_close(cache["resid_post", 0], plain["resid_mid", 0] + cache["mlp_out", 0])
        self.assert_same_bits(cache["resid_post", 0], cache["resid_pre", 1])
        self.assert_same_bits(logits, self.model.run_with_hooks(self.tokens, [("mlp_out0", double)]))

    def test_persistent_hooks(self):
        zero = lambda values, hook: np.zeros_like(values)
        with self.model.hooks([("mlp_out0", zero)]):
            inside = self.model(self.tokens)
        self.assert_same_bits(self.model(self.tokens), self.logits)
        self.model.add_hook("mlp_out0", zero)
        self.assert_same_bits(self.model(self.tokens), inside)
        self.model.reset_hooks()
        self.assert_same_bits(self.model(self.tokens), self.logits)
        self.assertFalse(np.array_equal(inside, self.logits))

    def test_hooks_in_generation(self):
        plain = self.model.generate(PROMPT, 12, temperature=0).finish()
        seen = []

        def look(values, hook):
            seen.append((hook.first_position, values.shape[1]))

        hooked = self.model.generate(PROMPT, 12, temperature=0,
                                     fwd_hooks=[("resid_post0", look), ("pattern1", lambda v, hook: v)])
        self.assertEqual(hooked.finish().tokens, plain.tokens)
        length = self.model.to_tokens(PROMPT).shape[1]
        self.assertEqual(seen[0], (0, length))
        self.assertEqual(seen[1:], [(length + i, 1) for i in range(len(seen) - 1)])
        zeroed = self.model.generate(PROMPT, 12, temperature=0, fwd_hooks=[
            (lambda name: name.endswith("hook_mlp_out"), lambda v, hook: np.zeros_like(v))])
        self.assertNotEqual(zeroed.finish().tokens, plain.tokens)
        # The cache keeps the edits: the same as whole passes with the same hooks.
        zero = [("mlp_out0", lambda v, hook: np.zeros_like(v))]
        steps = list(self.model.generate(PROMPT, 4, temperature=0, fwd_hooks=zero))
        ids = self.model.to_tokens(PROMPT)[0].tolist()
        for step in steps[:4]:
            whole = self.model.run_with_hooks(ids, zero)[0, -1]
            self.assert_close(step.logits, whole, 1e-4)
            ids.append(step.token)

    def test_backward_hooks(self):
        _, cache = self.model.run_with_cache(self.tokens, ["resid_post0", "pattern1"],
                                             incl_bwd=True)
        seen = {}
        loss = self.model.run_with_hooks(
            self.tokens, bwd_hooks=[("resid_post0", lambda g, hook: seen.update({hook.name: g})),
                                    ("pattern1", lambda g, hook: seen.update({hook.name: g}))],
            return_type="loss")
        self.assertAlmostEqual(loss, self.model.loss(self.tokens), places=6)
        self.assert_same_bits(seen["blocks.0.hook_resid_post"], cache["resid_post_grad", 0])
        self.assert_same_bits(seen["blocks.1.attn.hook_pattern"], cache["pattern_grad", 1])
        # Returning what it was given changes nothing, and a tuple of one is what torch wants.
        for same in (lambda g, hook: g, lambda g, hook: (g,), lambda g, hook: g.copy()):
            _, again = self.model.run_with_cache(
                self.tokens, "resid_pre0", incl_bwd=True,
                bwd_hooks=[("resid_post0", same), ("pattern1", same), ("blocks.1.ln1.hook_normalized", same)])
            _, plain = self.model.run_with_cache(self.tokens, "resid_pre0", incl_bwd=True)
            self.assert_same_bits(again["resid_pre_grad", 0], plain["resid_pre_grad", 0])
        for name in ("pattern1", "attn_scores1", "blocks.1.ln1.hook_normalized", "result1", "embed",
                     "unembed.hook_out"):
            with self.assertRaisesRegex(heed.errors.Unsupported, "for reading alone"):
                self.model.run_with_hooks(self.tokens, bwd_hooks=[(name, lambda g, hook: g * 2)])

    def test_backward_hooks_change_what_comes_before(self):
        def zero(gradient, hook):
            gradient[...] = 0

        def gradients(*bwd_hooks):
            _, cache = self.model.run_with_cache(self.tokens, ["resid_pre1", "z1", "resid_post1"],
                                                 incl_bwd=True, bwd_hooks=bwd_hooks)
            return cache

        plain = gradients()
        # Without both branches, the gradient of a layer's input is that of its output.
        cut = gradients(("attn_out1", zero), ("mlp_out1", zero))
        self.assert_close(cut["resid_pre_grad", 1], plain["resid_post_grad", 1], 1e-6)
        self.assertEqual(float(np.abs(cut["z_grad", 1]).max()), 0.0)
        doubled = gradients(("resid_post1", lambda g, hook: g * 2))
        self.assert_close(doubled["resid_pre_grad", 1], plain["resid_pre_grad", 1] * 2, 1e-5)
        self.assert_same_bits(doubled["resid_post_grad", 1], plain["resid_post_grad", 1] * 2)
        with self.assertRaisesRegex(Exception, r"shape \(1, 2\), expected"):
            gradients(("z1", lambda g, hook: np.zeros((1, 2))))

    def test_backward_hooks_at_inputs_of_branches(self):
        names = ["attn_in1", "q_input1", "k_input1", "v_input1", "mlp_in1", "resid_pre1", "resid_mid1"]

        def gradients(*bwd_hooks, tokens=self.tokens):
            _, cache = self.model.run_with_cache(tokens, names, incl_bwd=True, bwd_hooks=bwd_hooks)
            return {name: cache[name + "_grad"] for name in names}

        def zero(gradient, hook):
            gradient[...] = 0

        plain = gradients()
        inputs = [plain[name] for name in names[1:4]]
        self.assert_close(plain["attn_in1"], sum(inputs), 1e-6)  # as many heads of keys
        self.assert_close(plain["resid_pre1"],
                          plain["resid_mid1"] + sum(part.sum(2) for part in inputs), 1e-5)
        # A hook that leaves them as they are: the same sums in another order.
        same = gradients(("q_input1", lambda g, hook: g), ("mlp_in1", lambda g, hook: (g,)))
        for name in names:
            self.assert_close(same[name], plain[name], 1e-6)
        # Without what a branch reads, as without what it gives.
        for reads, gives in (("attn_in1", "attn_out1"), ("mlp_in1", "mlp_out1")):
            self.assert_close(gradients((reads, zero))["resid_pre1"],
                              gradients((gives, zero))["resid_pre1"], 1e-6)
        # One head's queries alone: what is left is what the others gave.
        def one(gradient, hook):
            gradient[:, :, 1] = 0
        without = gradients(("q_input1", one))
        self.assertEqual(float(np.abs(without["q_input1"][:, :, 1]).max()), 0.0)
        self.assert_close(without["resid_pre1"], plain["resid_pre1"] - plain["q_input1"][:, :, 1], 1e-5)
        self.assertGreater(np.abs(plain["q_input1"][:, :, 1]).max(), 1e-4 * np.abs(plain["resid_pre1"]).max())
        # Texts of different lengths: each as alone.
        texts = [self.tokens[0].tolist(), self.tokens[0, :5].tolist()]
        seen = []
        _, both = self.model.run_with_cache(
            texts, "resid_pre1", incl_bwd=True,
            bwd_hooks=[("k_input1", lambda g, hook: (seen.append((hook.text, g.shape[1])), g * 2)[1])])
        self.assertEqual(seen, [(text, len(ids)) for text, ids in enumerate(texts)])
        for text, ids in enumerate(texts):
            alone = gradients(("k_input1", lambda g, hook: g * 2), tokens=ids)["resid_pre1"]
            self.assert_close(both["resid_pre_grad", 1][text:text + 1, :len(ids)], alone, 1e-5)

    def test_values_of_inputs_can_be_differentiated(self):
        """Weights of values at a point: beside differences of the weighted sum."""
        random = np.random.default_rng(3)
        _, cache = self.model.run_with_cache(self.tokens, ["q_input1", "mlp_in1", "resid_pre0"])
        for name in ("q_input1", "mlp_in1"):
            weights = random.standard_normal(cache[name].shape).astype(np.float32)
            direction = random.standard_normal(cache["resid_pre0"].shape)

            def value(step):
                _, moved = self.model.run_with_cache(
                    self.tokens, name, fwd_hooks=[("resid_pre0", lambda v, hook: v + step * direction)])
                return float((moved[name].astype(np.float64) * weights).sum())

            _, found = self.model.run_with_cache(self.tokens, "resid_pre0", incl_bwd=True,
                                                 logit_target={name: weights})
            slope = (value(0.01) - value(-0.01)) / 0.02
            self.assertAlmostEqual(
                float((found["resid_pre0_grad"] * direction).sum()) / slope, 1, delta=0.02, msg=name)

    def test_gradients_through_a_change_are_as_its_hooks_say(self):
        """A scaled point, and its gradient scaled alike, beside differences of the loss."""
        scale = lambda values, hook: values * 0.5
        points = ["q1", "k1", "v1", "z1", "attn_out1", "resid_mid1", "pre1", "post1", "mlp_out1",
                  "resid_post1", "unembed.hook_in", "attn_in1", "q_input1", "k_input1", "v_input1",
                  "mlp_in1"]
        _, cache = self.model.run_with_cache(self.tokens, "resid_pre1", incl_bwd=True)
        direction = cache["resid_pre_grad", 1].astype(np.float64)
        direction *= 0.02 * np.linalg.norm(cache["resid_pre", 1]) / np.linalg.norm(direction)
        for name in points:
            def loss_at(step, hooks):
                losses = self.model.run_with_hooks(
                    self.tokens, [("resid_pre1", lambda v, hook: v + step * direction), *hooks],
                    return_type="loss", loss_per_token=True)
                return float(losses.astype(np.float64).mean())

            hooks = [(name, scale)]
            _, cache = self.model.run_with_cache(
                self.tokens, "resid_pre1", incl_bwd=True, fwd_hooks=hooks, bwd_hooks=hooks)
            slope = (8 * (loss_at(1, hooks) - loss_at(-1, hooks)) -
                     (loss_at(2, hooks) - loss_at(-2, hooks))) / 12
            found = float((cache["resid_pre_grad", 1].astype(np.float64) * direction).sum())
            self.assertAlmostEqual(slope / found, 1, delta=0.02, msg=name)
            with self.assertRaisesRegex(heed.errors.Unsupported, "would have to pass through"):
                self.model.run_with_cache(self.tokens, "resid_pre1", incl_bwd=True, fwd_hooks=hooks)
        # A hook that changes nothing is in no gradient's way.
        _, plain = self.model.run_with_cache(self.tokens, "resid_pre0", incl_bwd=True)
        _, looked = self.model.run_with_cache(self.tokens, "resid_pre0", incl_bwd=True, fwd_hooks=[
            ("z1", lambda v, hook: v), ("pattern1", lambda v, hook: None)])
        self.assert_close(looked["resid_pre_grad", 0], plain["resid_pre_grad", 0], 1e-6)

    def test_a_raising_hook_leaves_the_model_usable(self):
        class Mine(Exception):
            pass

        def fail(values, hook):
            raise Mine(hook.name)

        for name in self.points:
            with self.assertRaisesRegex(Mine, name):
                self.model.run_with_hooks(self.tokens, [(name, fail)])
        with self.assertRaises(Mine):
            self.model.run_with_cache(self.tokens, fwd_hooks=[("z1", fail)])
        generation = self.model.generate(PROMPT, 5, fwd_hooks=[("z1", fail)])
        with self.assertRaises(Mine):
            next(generation)
        self.assertEqual(list(generation), [])
        self.assert_same_bits(self.model(self.tokens), self.logits)

    def test_bad_hooks(self):
        run = self.model.run_with_hooks
        wrong = heed.errors.InvalidArgument
        with self.assertRaisesRegex(wrong, "did you mean 'blocks.0.attn.hook_z'"):
            run(self.tokens, [("blocks.0.attn.hook_zz", lambda v, hook: v)])
        with self.assertRaisesRegex(wrong, r"shape \(1, 2\), expected \(1, \d+, "):
            run(self.tokens, [("z0", lambda v, hook: np.zeros((1, 2)))])
        with self.assertRaisesRegex(wrong, "returned str, expected|values of type <U"):
            run(self.tokens, [("z0", lambda v, hook: "no")])
        with self.assertRaisesRegex(wrong, "values of type complex"):
            run(self.tokens, [("z0", lambda v, hook: v * 1j)])
        with self.assertRaisesRegex(wrong, "expected a function"):
            run(self.tokens, [("z0", 3)])
        with self.assertRaisesRegex(wrong, "a hook is a pair"):
            run(self.tokens, ["z0"])
        with self.assertRaisesRegex(wrong, "expected a string"):
            run(self.tokens, [(3, lambda v, hook: v)])
        with self.assertRaisesRegex(heed.errors.Unsupported, "cannot be edited"):
            run(self.tokens, [("unembed.hook_out", lambda v, hook: v)])
        with self.assertRaisesRegex(TypeError, "argument"):
            run(self.tokens, [("z0", lambda: None)])
        self.assert_same_bits(self.model(self.tokens), self.logits)

    def test_reentrance(self):
        inner = []

        def look(values, hook):
            inner.append(self.model(self.tokens))

        self.model.run_with_hooks(self.tokens, [("z1", look)])
        self.assert_same_bits(inner[0], self.logits)

        def advance(values, hook):
            next(generation)

        generation = self.model.generate(PROMPT, 5, fwd_hooks=[("z1", advance)])
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "being advanced"):
            next(generation)

    def test_several_threads(self):
        found, errors = [], []

        def work(seed):
            try:
                zero = [("mlp_out0", lambda v, hook: v * seed)]
                found.append((seed, self.model.run_with_hooks(self.tokens, zero)))
                self.model.run_with_cache(self.tokens)[1]["pattern", 0][0, 0]
            except Exception as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i % 3,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        for seed, logits in found:
            self.assert_same_bits(logits, next(value for other, value in found if other == seed))

    def test_the_lock_is_released(self):
        long = np.tile(self.tokens, 40)[:, :self.model.cfg.n_ctx]
        rows = np.repeat(long, 32, 0)
        done, count = threading.Event(), 0

        def compute():
            self.model(rows, return_type="loss")
            done.set()

        thread = threading.Thread(target=compute)
        thread.start()
        while not done.is_set():
            count += 1
            time.sleep(0.001)
        thread.join()
        self.assertGreater(count, 5)

    def test_threads_of_other_libraries_are_left_alone(self):
        import ctypes
        openmp = ctypes.CDLL("libgomp.so.1")
        before, count = openmp.omp_get_max_threads(), heed.threads()
        openmp.omp_set_num_threads(before + 3)
        try:
            self.assert_same_bits(self.model(self.tokens), self.logits)
            self.assertEqual(openmp.omp_get_max_threads(), before + 3)
            heed.set_threads(count)
            self.assertEqual(openmp.omp_get_max_threads(), before + 3)
            self.assertEqual(heed.threads(), count)
        finally:
            openmp.omp_set_num_threads(before)

    def test_signals_stop_a_pass(self):
        rows = np.repeat(np.tile(self.tokens, 40)[:, :self.model.cfg.n_ctx], 256, 0)
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        begin = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with self.assertRaises(KeyboardInterrupt):
            while time.monotonic() - begin < 60:
                self.model(rows, return_type="loss")
        self.assert_same_bits(self.model(self.tokens), self.logits)

    def test_no_leak(self):
        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        def work():
            self.model.run_with_hooks(self.tokens, [("z1", lambda v, hook: v * 2)])
            _, cache = self.model.run_with_cache(self.tokens)
            cache["pattern", 0][0]

        for _ in range(20):
            work()
        before = resident()
        for _ in range(100):
            work()
        self.assertLess(resident() - before, 8 << 20)


if __name__ == "__main__":
    import unittest
    unittest.main()
