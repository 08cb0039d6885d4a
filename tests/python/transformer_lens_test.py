"""Names and arguments of TransformerLens: factored matrices, compositions, decompositions of the
stream, generation, stored caches."""

import contextlib
import importlib.util
import io
import pathlib
import pickle
import tempfile
import unittest

import numpy as np

import heed
from heed import FactoredMatrix, utils
from support import GOLDEN, TestCase, starter

TEXT = "A fluffy blue creature roamed the verdant forest."


class Factored(TestCase):
    def setUp(self):
        generator = np.random.default_rng(1)
        self.a = generator.standard_normal((2, 3, 7, 4))
        self.b = generator.standard_normal((2, 3, 4, 6))
        self.factored = FactoredMatrix(self.a, self.b)
        self.whole = self.a @ self.b

    def test_products(self):
        self.assertEqual(self.factored.shape, (2, 3, 7, 6))
        np.testing.assert_allclose(self.factored.AB, self.whole)
        np.testing.assert_allclose(self.factored.T.AB, np.swapaxes(self.whole, -1, -2))
        generator = np.random.default_rng(2)
        for width in (1, 3, 9):
            right, left = generator.standard_normal((6, width)), generator.standard_normal((width, 7))
            np.testing.assert_allclose((self.factored @ right).AB, self.whole @ right)
            np.testing.assert_allclose((left @ self.factored).AB, left @ self.whole)
            self.assertIsInstance(left @ self.factored, FactoredMatrix)
        vector = generator.standard_normal(6)
        np.testing.assert_allclose(self.factored @ vector, self.whole @ vector)
        vector = generator.standard_normal(7)
        np.testing.assert_allclose(vector @ self.factored, vector @ self.whole)
        other = FactoredMatrix(generator.standard_normal((6, 2)), generator.standard_normal((2, 5)))
        np.testing.assert_allclose((self.factored @ other).AB, self.whole @ other.AB)
        np.testing.assert_allclose((2 * self.factored).AB, 2 * self.whole)
        np.testing.assert_allclose(self.factored[1, 2].AB, self.whole[1, 2])
        np.testing.assert_allclose(self.factored[1].AB, self.whole[1])
        np.testing.assert_allclose(self.factored[1, 2, 3].AB, self.whole[1, 2, 3:4])
        np.testing.assert_allclose(self.factored[1, 2, :, -1].AB, self.whole[1, 2, :, -1:])
        np.testing.assert_allclose(self.factored.get_corner(2), self.whole[..., :2, :2])

    def test_singular_values(self):
        u, s, v = self.factored.svd()
        np.testing.assert_allclose(u * s[..., None, :] @ np.swapaxes(v, -1, -2), self.whole,
                                   atol=1e-12)
        np.testing.assert_allclose(s, np.linalg.svd(self.whole)[1][..., :4], atol=1e-12)
        np.testing.assert_allclose(self.factored.norm(), np.linalg.norm(self.whole, axis=(-1, -2)))
        np.testing.assert_allclose(self.factored.make_even().AB, self.whole, atol=1e-12)
        square = FactoredMatrix(self.a, np.swapaxes(self.a, -1, -2))
        np.testing.assert_allclose(np.sort(square.eigenvalues.real),
                                   np.sort(np.linalg.eigvalsh(square.AB))[..., -4:], atol=1e-10)
        with self.assertRaises(heed.errors.InvalidArgument):
            self.factored.eigenvalues
        with self.assertRaises(heed.errors.InvalidArgument):
            FactoredMatrix(self.a, self.a)


class Weights(TestCase):
    def models(self):
        """With heads that have keys of their own, and with some that share them."""
        return starter(), heed.load(str(GOLDEN / "families" / "qwen3"))

    def test_circuits_and_compositions(self):
        for model in self.models():
            cfg = model.cfg
            group = cfg.n_heads // cfg.n_key_value_heads
            layer, head = cfg.n_layers - 1, cfg.n_heads - 1
            q, o = model.W_Q[layer, head], model.W_O[layer, head]
            k, v = model.W_K[layer, head // group], model.W_V[layer, head // group]
            gains = [model.weight(f"blocks.{layer}.attn.{part}_norm.w") if
                     f"blocks.{layer}.attn.{part}_norm.w" in model.weight_names else 1
                     for part in "qk"]  # which scores are products with
            self.assert_close(model.QK[layer, head].AB, q @ k.T, 1e-5)
            self.assert_close(model.OV[layer, head].AB, v @ o, 1e-5)
            earlier = model.OV[0, 1].AB
            asks = q * gains[0] @ (k * gains[1]).T
            for mode, reads in (("Q", asks), ("K", asks.T), ("V", v @ o)):
                scores = model.all_composition_scores(mode)
                self.assertEqual(scores.shape, (cfg.n_layers, cfg.n_heads) * 2)
                wanted = (np.linalg.norm(earlier @ reads) / np.linalg.norm(earlier)
                          / np.linalg.norm(reads))
                self.assertAlmostEqual(float(scores[0, 1, layer, head]), float(wanted), places=5)
                self.assertEqual(float(np.abs(scores[layer]).max()), 0)
            with self.assertRaisesRegex(heed.errors.InvalidArgument, "mode is 'q'"):
                model.all_composition_scores("q")

    def test_directions_and_biases(self):
        model = starter()
        self.assertEqual(model.b_Q.shape, (6, 6, 32))
        self.assertEqual([model.b_O.shape, model.b_in.shape, model.b_out.shape],
                         [(6, 192), (6, 768), (6, 192)])
        self.assertFalse(hasattr(self.models()[1], "b_out"))
        logits, cache = model.run_with_cache(TEXT)
        tokens = np.argsort(-logits[0, -1])[:3]
        directions = model.tokens_to_residual_directions(tokens)
        self.assertEqual(directions.shape, (3, 192))
        self.assertEqual(model.tokens_to_residual_directions(int(tokens[0])).shape, (192,))
        self.assertEqual(model.tokens_to_residual_directions(tokens.reshape(1, 3)).shape, (1, 3, 192))
        end = cache["unembed.hook_in"][0, -1]
        self.assert_close(directions @ end, logits[0, -1, tokens], 1e-5)
        for wrong in (model.cfg.d_vocab, -1, 1.5, []):
            with self.assertRaises(heed.errors.InvalidArgument):
                model.tokens_to_residual_directions(wrong)
        self.assertEqual(list(model.hook_dict), model.hook_names)


    def test_parts_are_attributes(self):
        for model in self.models():
            layers = model.cfg.n_layers
            self.assertEqual(len(model.blocks), layers)
            self.assert_same_bits(model.blocks[layers - 1].attn.W_Q, model.W_Q[layers - 1])
            self.assert_same_bits(model.blocks[1].mlp.W_out, model.W_out[1])
            self.assert_same_bits(model.blocks[0].ln1.w, model.weight("blocks.0.ln1.w"))
            self.assert_same_bits(model.embed.W_E, model.W_E)
            self.assert_same_bits(model.unembed.W_U, model.W_U)
            self.assertEqual(model.blocks[1].attn.hook_z.name, "blocks.1.attn.hook_z")
            self.assertEqual(model.blocks[1].attn.hook_z.layer(), 1)
            self.assertIn("W_K", dir(model.blocks[0].attn))
            self.assertEqual(list(model.state_dict()), model.weight_names)
            with self.assertRaisesRegex(AttributeError, "'blocks.0.attn' has no 'W_X', only"):
                model.blocks[0].attn.W_X
        starter_model, rotary = self.models()
        self.assertTrue(hasattr(starter_model, "pos_embed"))
        self.assertFalse(hasattr(rotary, "pos_embed"))

    def test_processed_weights_predict_the_same(self):
        plain = starter()
        wanted = plain(TEXT)
        wanted = wanted - wanted.mean(-1, keepdims=True)
        for options in ({"fold_ln": True}, {"center_unembed": True, "device": "cpu",
                                            "refactor_factored_attn_matrices": True}):
            model = heed.HookedTransformer.from_pretrained("starter", **options)
            self.assertEqual(model.cfg.model_name, "starter")
            self.assert_close(model(TEXT), wanted, 1e-5)
            self.assertEqual(set(np.unique(model.blocks[2].ln1.w)), {1.0})
        # Orthogonal queries and keys of even size, and values of length 1.
        gram = np.einsum("hcd,hce->hde", model.W_V[3], model.W_V[3])
        self.assert_close(gram, np.broadcast_to(np.eye(32), gram.shape), 1e-5)
        self.assert_close(model.QK[2, 1].AB, heed.HookedTransformer.from_pretrained(
            "starter", fold_ln=True).QK[2, 1].AB, 1e-5)
        # Of the file's own weights too, whose values have biases; others stay as they are.
        own = heed.HookedTransformer.from_pretrained("starter", refactor_factored_attn_matrices=True)
        self.assert_close(own(TEXT), plain(TEXT), 1e-5)
        self.assert_same_bits(heed.HookedTransformer.from_pretrained("starter").W_Q, plain.W_Q)
        for options, error in (({"fold_ln": True, "center_unembed": False}, "all or none"),
                               ({"device": "tpu"}, "the device is 'tpu': expected cpu, cuda")):
            with self.assertRaisesRegex(heed.errors.InvalidArgument, error):
                heed.HookedTransformer.from_pretrained("starter", **options)
        with self.assertRaisesRegex(heed.errors.Unsupported, "turns or norms"):
            heed.HookedTransformer.from_pretrained(str(GOLDEN / "families" / "qwen3"),
                                                   refactor_factored_attn_matrices=True)


class Caches(TestCase):
    def setUp(self):
        self.model = starter()
        _, self.cache = self.model.run_with_cache(TEXT)

    def test_the_stream_is_the_sum_of_all_parts(self):
        for directory in (None, "qwen3", "gpt2", "llama_biased"):
            if directory is None:
                model, cache = self.model, self.cache
            else:
                model = heed.load(str(GOLDEN / "families" / directory))
                _, cache = model.run_with_cache(np.arange(1, 9)[None])
            layers = model.cfg.n_layers
            for layer, mlp_input in ((None, False), (layers, False), (1, False), (1, True), (0, True)):
                stream = (cache["resid_post", -1] if layer in (None, layers) else
                          cache["resid_mid" if mlp_input else "resid_pre", layer])
                for expand in (True, False):
                    parts, labels = cache.get_full_resid_decomposition(
                        layer, mlp_input=mlp_input, expand_neurons=expand, return_labels=True)
                    self.assertEqual(len(parts), len(labels))
                    self.assertEqual(len(set(labels)), len(labels))
                    self.assert_close(parts.sum(0), stream, 1e-5, f"{directory} {layer} {expand}")

    def test_neurons(self):
        stack, labels = self.cache.stack_neuron_results(2, pos_slice=-1, return_labels=True)
        self.assertEqual(stack.shape, (2 * 768, 1, 192))
        self.assertEqual([labels[0], labels[-1]], ["L0N0", "L1N767"])
        wanted = self.cache["post", 1][0, -1, 5] * self.model.W_out[1, 5]
        self.assert_close(stack[768 + 5, 0], wanted, 1e-6)
        few, labels = self.cache.stack_neuron_results(2, neuron_slice=slice(4, 7), return_labels=True,
                                                      incl_remainder=True)
        self.assertEqual(labels, ["L0N4", "L0N5", "L0N6", "L1N4", "L1N5", "L1N6", "remainder"])
        self.assert_close(few.sum(0), self.cache["resid_post", 1], 1e-5)
        one = self.cache.get_neuron_results(1, slice(4, 7), pos_slice=-1)
        self.assertEqual(one.shape, (1, 3, 192))
        self.assert_same_bits(np.moveaxis(one, -2, 0), self.cache.stack_neuron_results(
            2, neuron_slice=slice(4, 7), pos_slice=-1)[3:])
        self.assert_same_bits(self.cache.get_neuron_results(1, 5), np.asarray(
            self.cache["post", 1])[..., 5, None] * self.model.W_out[1, 5])
        for wrong in (slice(7, 4), [768]):
            with self.assertRaises((heed.errors.InvalidArgument, IndexError)):
                self.cache.get_neuron_results(1, wrong)
        scaled = self.cache.stack_neuron_results(-1, pos_slice=-1, apply_ln=True)
        self.assert_close(scaled, self.cache.apply_ln_to_stack(
            self.cache.stack_neuron_results(-1, pos_slice=-1), pos_slice=-1), 1e-6)
        self.assertEqual(self.cache.stack_activation("z").shape, (6,) + self.cache["z", 0].shape)
        self.assert_same_bits(self.cache.stack_activation("pattern")[4], self.cache["pattern", 4])
        self.assertEqual(len(self.cache.stack_activation("normalized", 3, "ln2")), 3)

    def test_stacks_are_those_of_numpy(self):
        """Of passes, of stored caches, and of arrays by name."""
        for directory in (None, "qwen3", "gpt2", "neox"):
            model = self.model if directory is None else heed.load(str(GOLDEN / "families" / directory))
            read = TEXT if directory is None else np.arange(1, 9)[None]
            layers = model.cfg.n_layers
            _, cache = model.run_with_cache(read)
            results = {f"blocks.{one}.attn.hook_result": cache["result", one] for one in range(layers)}
            given = heed.ActivationCache({**cache.cache_dict, **results}, model)
            for source in (cache, self.stored(cache, model), given):
                for layer, mlp_input, pos in ((None, False, None), (-1, False, -1), (1, True, 2),
                                              (1, False, (1, 4)), (layers, False, [0, -1])):
                    self.check_stacks(model, cache, source, layer, mlp_input, pos)
                parts = source.decompose_resid()
                direction = np.float64(model.W_U[:, 3]) - model.W_U[:, 5]
                normed = self.normalised(model, cache, np.float64(parts), "ln_final", False)
                self.assert_close(source.logit_attrs(parts, 3, 5),
                                  normed * model.weight("ln_final.w") @ direction, 1e-5)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "no head writes"):
            given.stack_head_results(0)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "has the shape|have the shape"):
            heed.ActivationCache({"z1": np.zeros(3)}, model)
        with self.assertRaisesRegex(heed.errors.NotFound, "hook_result"):
            heed.ActivationCache({"z0": cache["z", 0]}, model).stack_head_results(1)
        cut = heed.ActivationCache({"resid_pre0": cache["resid_pre", 0][..., :3]}, model)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "resid_pre' has the shape"):
            cut.accumulated_resid(0)
        # Such as gradients, whose embeddings were not kept; in doubles, and not dense.
        some = {f"blocks.0.hook_{name}": np.float64(cache[name, 0])[:, ::2]
                for name in ("attn_out", "mlp_out")}
        parts, labels = heed.ActivationCache(some, model).decompose_resid(1, return_labels=True)
        self.assertEqual(labels, ["0_attn_out", "0_mlp_out"])
        self.assert_same_bits(parts[1], cache["mlp_out", 0][:, ::2])
        with tempfile.TemporaryDirectory() as folder:
            cache.save(pathlib.Path(folder) / "cache.npz")
            with self.assertRaisesRegex(heed.errors.InvalidArgument, "without its model"):
                heed.load_cache(pathlib.Path(folder) / "cache.npz").accumulated_resid()

    def check_stacks(self, model, cache, source, layer, mlp_input, pos):
        options = {"return_labels": True, "pos_slice": pos}
        layers = model.cfg.n_layers
        end = layers if layer in (None, -1) else layer
        is_final = end == layers
        norm = "ln_final" if is_final else f"blocks.{end}.ln{2 if mlp_input else 1}"
        before = "ln_final" if is_final else f"blocks.{end}.ln1"
        for kind, (values, labels), of_norm, recomputed in (
                ("stream", source.accumulated_resid(layer, True, True, mlp_input=mlp_input, **options),
                 norm, is_final),
                ("parts", source.decompose_resid(layer, mlp_input, apply_ln=True, **options), norm, False),
                ("attn", source.decompose_resid(layer, mlp_input, "attn", **options), None, False),
                ("heads", source.stack_head_results(layer or -1, incl_remainder=True, apply_ln=True,
                                                    **options), before, False),
                ("neurons", source.stack_neuron_results(layer, incl_remainder=True, **options), None,
                 False)):
            wanted = self.wanted_stack(model, cache, kind, end, mlp_input)
            self.assertEqual(labels, list(wanted))
            stack = np.stack(list(wanted.values()))
            if of_norm is not None:
                stack = self.normalised(model, cache, stack, of_norm, recomputed)
            at = {None: slice(None), (1, 4): slice(1, 4), (0, -1): [0, -1]}.get(
                tuple(pos) if isinstance(pos, (list, tuple)) else pos, pos)
            self.assert_close(values, stack[:, :, at], 1e-5, f"{kind} {layer} {pos}")

    @staticmethod
    def wanted_stack(model, cache, kind, end, mlp_input):
        """{label: (B, T, C)} of the stream before layer ``end``, from points and weights."""
        layers, parallel = model.cfg.n_layers, model.cfg.parallel_attn_mlp
        middle = mlp_input and not parallel and end < layers
        found = {}

        def point(label, name):
            found[label] = np.float64(cache[name])

        for one in range(end) if kind == "stream" else ():
            point(f"{one}_pre", f"blocks.{one}.hook_resid_pre")
            if not parallel:
                point(f"{one}_mid", f"blocks.{one}.hook_resid_mid")
        if kind == "stream" and end == layers:
            point("final_post", f"blocks.{end - 1}.hook_resid_post")
        elif kind == "stream":
            point(f"{end}_pre", f"blocks.{end}.hook_resid_pre")
            if middle:
                point(f"{end}_mid", f"blocks.{end}.hook_resid_mid")
        if kind in ("parts", "attn"):
            point("embed", "hook_embed")
            if "hook_pos_embed" in cache:
                point("pos_embed", "hook_pos_embed")
            for one in range(end + middle):
                point(f"{one}_attn_out", f"blocks.{one}.hook_attn_out")
                if kind == "parts" and one < end:
                    point(f"{one}_mlp_out", f"blocks.{one}.hook_mlp_out")
        for one in range(end) if kind == "heads" else ():
            written = np.einsum("bthd,hdc->hbtc", np.float64(cache["z", one]), model.W_O[one])
            found.update({f"L{one}H{head}": values for head, values in enumerate(written)})
        for one in range(end) if kind == "neurons" else ():
            written = np.einsum("btn,nc->nbtc", np.float64(cache["post", one]), model.W_out[one])
            found.update({f"L{one}N{neuron}": values for neuron, values in enumerate(written)})
        if kind in ("heads", "neurons"):
            stream = np.float64(cache["resid_post", end - 1])
            found["remainder"] = stream - sum(found.values())
        return found

    @staticmethod
    def normalised(model, cache, stack, norm, recomputed):
        if model.cfg.normalization_type == "LN":
            stack = stack - stack.mean(-1, keepdims=True)
        if recomputed:
            return stack / np.sqrt((stack ** 2).mean(-1, keepdims=True) + model.cfg.eps)
        return stack / np.float64(cache[norm + ".hook_scale"])

    def stored(self, cache, model):
        with tempfile.TemporaryDirectory() as folder:
            cache.save(pathlib.Path(folder) / "cache.npz")
            return heed.load_cache(pathlib.Path(folder) / "cache.npz", model)

    def test_stacks_of_stored_texts_of_different_lengths(self):
        _, cache = self.model.run_with_cache([TEXT, "The fox"])
        other = self.stored(cache, self.model)
        for pos in (None, -1, [0, 1]):
            self.assert_close(other.accumulated_resid(apply_ln=True, pos_slice=pos),
                              cache.accumulated_resid(apply_ln=True, pos_slice=pos), 1e-5)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "positions 0 to"):
            other.accumulated_resid(pos_slice=-4)

    def test_patches_from_arrays_that_hooks_collected(self):
        clean, corrupted = (self.model.to_tokens(f"Late one evening, a fluffy {colour} hare")
                            for colour in ("blue", "brown"))
        arrays = {}
        self.model.add_hook(lambda name: not name.endswith(("_input", "_in")),
                            lambda values, hook: arrays.__setitem__(hook.name, values.copy()))
        self.model(clean)
        self.model.reset_hooks()
        _, cache = self.model.run_with_cache(clean)
        given = heed.ActivationCache(arrays, self.model)
        word = self.model.to_single_token(" deep")
        for name in ("block_every", "attn_head_all_pos_every", "attn_head_by_pos_every"):
            patch = getattr(heed.patching, "get_act_patch_" + name)
            found, wanted = (patch(self.model, corrupted, each, lambda logits: logits[0, -1, word])
                             for each in (given, cache))
            self.assertGreater(np.ptp(wanted), 0.1)
            self.assert_close(found, wanted, 1e-5, name)

    def test_caches_are_stored(self):
        translator = heed.load("translator")
        _, pair = translator.run_with_cache(source="A dog runs.", target="Ein Hund läuft.")
        _, ragged = self.model.run_with_cache([TEXT, "The fox"])
        _, gradients = self.model.run_with_cache(TEXT, ["z", "pattern"], incl_bwd=True)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cache.npz"
            for model, cache in ((self.model, self.cache), (translator, pair), (self.model, ragged),
                                 (self.model, gradients), (self.model, self.cache.remove_batch_dim())):
                cache.save(path)
                stored = [heed.load_cache(path), heed.load_cache(path, model),
                          pickle.loads(pickle.dumps(cache))]
                for other in stored:
                    self.assertIs(type(other), type(cache))
                    self.assertEqual(list(other), list(cache))
                    for name in cache:
                        self.assert_same_bits(other[name], cache[name], name)
                    np.testing.assert_array_equal(other.lengths, cache.lengths)
                    np.testing.assert_array_equal(other.attention_mask, cache.attention_mask)
                    self.assertEqual(other.has_batch_dim, cache.has_batch_dim)
                self.assertEqual(list(pathlib.Path(folder).iterdir()), [path])
            self.cache.save(path)
            stored = heed.load_cache(path, self.model)
            self.assert_same_bits(stored["resid_post", -1], self.cache["resid_post", -1])
            self.assert_same_bits(stored["pattern3"], self.cache["pattern3"])
            with self.assertRaisesRegex(heed.errors.InvalidArgument, "without its model"):
                heed.load_cache(path)["resid_post", -1]
            np.savez(path, other=np.zeros(3))
            with self.assertRaisesRegex(heed.errors.InvalidArgument, "cache of heed"):
                heed.load_cache(path)


class Arguments(TestCase):
    def setUp(self):
        self.model = starter()

    def test_generate(self):
        greedy = self.model.generate("The fox", max_new_tokens=8, temperature=0).finish()
        text = self.model.generate("The fox", max_new_tokens=8, do_sample=False, return_type="input",
                                   verbose=False, prepend_bos=None)
        self.assertEqual(text, "The fox" + greedy.text)
        tokens = self.model.to_tokens("The fox")
        written = self.model.generate(tokens, max_new_tokens=8, do_sample=False, return_type="input")
        self.assertEqual(written.tolist(), [tokens[0].tolist() + greedy.tokens])
        both = self.model.generate(["The fox", "A hare"], max_new_tokens=4, do_sample=False,
                                   return_type="str")
        self.assertEqual(both[0], self.model.generate("The fox", 4, do_sample=False,
                                                      return_type="str"))
        options = dict(max_new_tokens=30, seed=5, return_type="tokens")
        np.testing.assert_array_equal(self.model.generate("The fox", freq_penalty=1.5, **options),
                                      self.model.generate("The fox", frequency_penalty=1.5, **options))
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "one option"):
            self.model.generate("The fox", freq_penalty=1.5, frequency_penalty=1.5)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "return_type is 'words'"):
            self.model.generate("The fox", return_type="words")

    def test_the_end_of_a_text_may_be_left_out(self):
        end = self.model._handle.end_token()
        ended = [seed for seed in range(8) if self.model.generate(
            "The fox", 250, seed=seed, temperature=1.5).finish().finish_reason == "stop_token"]
        self.assertTrue(ended)
        for seed in ended[:2]:
            going = self.model.generate("The fox", 250, seed=seed, temperature=1.5, stop_at_eos=False)
            self.assertNotIn(end, going.finish().tokens)
            self.assertNotEqual(going.finish_reason, "stop_token")

    def test_hooks_of_backward_stay_too(self):
        seen = []

        def double(gradient, hook):
            seen.append(hook.name)
            return 2 * gradient

        options = dict(names_filter="resid_pre0", incl_bwd=True)
        _, plain = self.model.run_with_cache(TEXT, **options)
        with self.model.hooks(bwd_hooks=[("resid_post3", double)]):
            _, doubled = self.model.run_with_cache(TEXT, **options)
        self.model.add_hook("resid_post3", double, dir="bwd")
        _, again = self.model.run_with_cache(TEXT, **options)
        self.model.reset_hooks()
        _, after = self.model.run_with_cache(TEXT, **options)
        self.assertEqual(seen, ["blocks.3.hook_resid_post"] * 2)
        for found in (doubled, again):
            self.assert_close(found["resid_pre0_grad"], 2 * plain["resid_pre0_grad"], 1e-5)
        self.assert_same_bits(after["resid_pre0_grad"], plain["resid_pre0_grad"])
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "dir is 'up'"):
            self.model.add_hook("z1", double, dir="up")

    def test_backward_through_torch_calls_hooks_that_stay(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("PyTorch is not installed")
        seen = {}
        self.model.add_hook("resid_pre2", lambda gradient, hook: seen.update({hook.name: gradient.copy()}),
                            "bwd")
        logits = heed.torch.logits(self.model, TEXT)
        logits[0, -1, 3].backward()
        self.model.reset_hooks()
        _, cache = self.model.run_with_cache(TEXT, "resid_pre2", incl_bwd=True,
                                             logit_target=[(-1, 3, 1.0)])
        self.assert_close(seen["blocks.2.hook_resid_pre"], cache["resid_pre2_grad"], 1e-6)

    def test_the_loss_of_repeated_tokens(self):
        """Chance is what shuffled tokens have: the starter has no induction head."""
        found = heed.evals.induction_loss(self.model, subseq_len=50)
        half = np.random.default_rng(0).integers(0, self.model.cfg.d_vocab, (4, 50))
        begin = np.full((4, 1), self.model._handle.beginning_token())
        losses = self.model.loss(np.concatenate([begin, half, half], 1), per_token=True)
        self.assertAlmostEqual(found, losses[:, 50:].mean(), places=4)
        self.assertGreater(heed.evals.induction_loss(self.model, batch_size=1), np.log(2531))
        with self.assertRaises(heed.errors.InvalidArgument):
            heed.evals.induction_loss(self.model, subseq_len=1)

    def test_losses_and_prompts(self):
        tokens = self.model.to_tokens(TEXT)
        logits = self.model(tokens)
        self.assertAlmostEqual(utils.lm_cross_entropy_loss(logits, tokens), self.model.loss(tokens),
                               places=5)
        self.assert_close(utils.lm_cross_entropy_loss(logits, tokens, per_token=True),
                          self.model.loss(tokens, per_token=True), 1e-5)
        self.assertEqual(utils.lm_accuracy(logits, tokens, per_token=True).shape,
                         (1, tokens.shape[1] - 1))
        likeliest = self.model.to_single_str_token(int(logits[0, -1].argmax()))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            utils.test_prompt(TEXT, likeliest, self.model, prepend_space_to_answer=False)
        self.assertRegex(printed.getvalue(), rf"Rank: 0 .*Token: \|{likeliest}\|".replace(".", "[.]", 0))
        self.assertEqual(printed.getvalue().count("Top "), 10)


if __name__ == "__main__":
    unittest.main()
