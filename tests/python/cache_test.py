import gc

import numpy as np

import heed
from support import PROMPT, TestCase, address, program, starter


class Cache(TestCase):
    def setUp(self):
        self.model = starter()
        self.tokens = self.model.to_tokens("A fluffy blue creature roamed the verdant forest.")
        self.logits, self.cache = self.model.run_with_cache(self.tokens)

    def test_keys_and_shorthands(self):
        cache = self.cache
        for key in (("pattern", 1), ("attn", 1), "pattern1", "blocks.1.attn.hook_pattern"):
            self.assertEqual(cache[key].name, "blocks.1.attn.hook_pattern")
        self.assert_same_bits(cache["k", -1], cache[f"k{self.model.cfg.n_layers - 1}"])
        self.assert_same_bits(cache["normalized", 0, "ln2"],
                              cache["blocks.0.ln2.hook_normalized"])
        self.assert_same_bits(cache["scale"], cache["ln_final.hook_scale"])
        self.assertIn(("resid_post", 0), cache)
        self.assertNotIn(("resid_post", 99), cache)
        self.assertNotIn("nonsense", cache)
        self.assertIn("hook_embed", list(cache))
        self.assertEqual(len(cache), len(list(cache.keys())))
        self.assertEqual(cache.remove_batch_dim()["resid_pre", 0].shape,
                         cache["resid_pre", 0].shape[1:])

    def test_optional_points_are_computed_when_read(self):
        result = self.cache["result", 0]
        self.assertNotIn("blocks.0.attn.hook_result", list(self.cache))
        total = result.astype(np.float64).sum(2) + self.model.weight("blocks.0.attn.b_O")
        self.assert_close(total, self.cache["attn_out", 0])

    def test_memory_is_heeds(self):
        cache, layers = self.cache, self.model.cfg.n_layers
        for name in cache:
            value = cache[name]
            if isinstance(value, heed.LazyAttention):
                tile = value[0, 0]
                self.assertFalse(tile.flags.owndata)
                continue
            self.assertFalse(value.flags.owndata, name)
            self.assertEqual(type(self.base(value)).__name__, "PyCapsule", name)
            self.assertEqual(address(value), address(cache[name]), f"{name} is computed once")
        # One memory under two names, and rows of one matrix.
        self.assertEqual(address(cache["resid_post", 0]), address(cache["resid_pre", 1]))
        cfg = self.model.cfg
        offset = address(cache["k", 0]) - address(cache["q", 0])
        self.assertEqual(offset, cfg.n_heads * cfg.d_head * 4)
        self.assertEqual(address(self.logits), address(cache["logits"]))
        self.assertEqual(layers, cfg.n_layers)

    @staticmethod
    def base(array):
        while isinstance(array.base, np.ndarray):
            array = array.base
        return array.base

    def test_dlpack_shares_the_memory(self):
        weights = self.model.W_E
        self.assertEqual(address(np.from_dlpack(weights)), address(weights))
        pattern = np.from_dlpack(self.cache["pattern", 0])
        self.assert_same_bits(pattern, self.cache["pattern", 0])

    def test_lazy_attention_slices_as_arrays_do(self):
        for key in (("pattern", 0), ("attn_scores", 1)):
            lazy = self.cache[key]
            whole = np.array(lazy)
            self.assertEqual(lazy.shape, whole.shape)
            for index in np.index_exp[0, 1], np.index_exp[0], np.index_exp[0, :, 2:5, ::2], \
                    np.index_exp[..., -1], np.index_exp[:, 1, -1], np.index_exp[0, ::-1, ::-2], \
                    np.index_exp[0, 1, 3, 2], np.index_exp[:, [0, 1]], np.index_exp[0, 0, 5:5], \
                    np.index_exp[0, 3:3], np.index_exp[0, -1, :, 3:7:3]:
                self.assertEqual(np.asarray(lazy[index]).shape, whole[index].shape, index)
                self.assert_same_bits(lazy[index], whole[index], index)
            with self.assertRaisesRegex(IndexError, "head 99 does not exist"):
                lazy[0, 99]
        self.assert_close((self.cache["pattern", 0] * 2).sum(-1),
                          np.full(lazy.shape[:3], 2.0))
        self.assert_close(self.cache["pattern", 0].sum(-1), np.ones(lazy.shape[:3]))

    def test_filters(self):
        _, cache = self.model.run_with_cache(self.tokens, "pattern1")
        self.assertEqual(list(cache), ["blocks.1.attn.hook_pattern"])
        self.assertIsInstance(cache["pattern", 1], heed.LazyAttention)
        self.assert_same_bits(cache["pattern", 1], self.cache["pattern", 1])
        _, cache = self.model.run_with_cache(self.tokens, lambda name: name.endswith("hook_z"))
        self.assertEqual(len(cache), self.model.cfg.n_layers)
        self.assert_same_bits(cache["z", 0], self.cache["z", 0])
        _, cache = self.model.run_with_cache(self.tokens, ["hook_embed", "blocks.*.hook_mlp_out"])
        self.assertEqual(len(cache), 1 + self.model.cfg.n_layers)
        with self.assertRaisesRegex(heed.errors.NotFound, "not recorded"):
            cache["z", 0]
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "did you mean"):
            self.model.run_with_cache(self.tokens, "blocks.0.hook_resid_prre")
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "selects no activation"):
            self.model.run_with_cache(self.tokens, lambda name: False)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "names 6 points|add a layer"):
            self.cache["pattern"]

    def test_batch_equals_its_sequences(self):
        rows = np.concatenate([self.tokens, self.tokens[:, ::-1]])
        _, cache = self.model.run_with_cache(rows)
        _, second = self.model.run_with_cache(rows[1:])
        for name in cache:
            self.assert_same_bits(np.asarray(cache[name])[1:], second[name], name)

    def test_views_outlive_cache_and_model(self):
        model = heed.load("starter")
        logits, cache = model.run_with_cache(self.tokens)
        view, weights, lazy = cache["q", 0], model.weight("embed.W_E"), cache["pattern", 0]
        kept = [view.copy(), weights.copy()]
        model.close()
        del model, cache, logits
        gc.collect()
        self.assert_same_bits(view, kept[0])
        self.assert_same_bits(weights, kept[1])
        self.assert_same_bits(lazy[0, 0], self.cache["pattern", 0][0, 0])

    def test_gradients(self):
        _, cache = self.model.run_with_cache(self.tokens, "resid_post", incl_bwd=True,
                                             logit_target=[(-1, 5, 1.0)])
        gradient = cache["resid_post_grad", 0]
        self.assertGreater(np.abs(gradient).max(), 0)
        # A small step along the gradient changes the logit by its squared length.
        step = 1e-2 / np.abs(gradient).max()

        def move(values, hook):
            values += step * gradient

        before = self.model(self.tokens)[0, -1, 5]
        after = self.model.run_with_hooks(self.tokens, [("blocks.0.hook_resid_post", move)])
        predicted = step * float((gradient.astype(np.float64) ** 2).sum())
        self.assertAlmostEqual(float(after[0, -1, 5] - before) / predicted, 1.0, delta=0.05)
        # Each sequence of a batch has the gradient of its own target.
        others = (self.tokens + 1) % self.model.cfg.d_vocab
        _, both = self.model.run_with_cache(np.concatenate([others, self.tokens]), "resid_post",
                                            incl_bwd=True, logit_target=[(-1, 5, 1.0)])
        np.testing.assert_allclose(both["resid_post_grad", 0][1:], gradient,
                                   atol=1e-5 * float(np.abs(gradient).max()))
        self.assertGreater(float(np.abs(both["resid_post_grad", 0][0] - gradient).max()),
                           1e-2 * float(np.abs(gradient).max()))

    def test_stacks(self):
        cache, model = self.cache, self.model
        accumulated, labels = cache.accumulated_resid(return_labels=True, incl_mid=True)
        self.assertEqual(labels[:3], ["0_pre", "0_mid", "1_pre"])
        self.assertEqual(labels[-1], "final_post")
        self.assert_same_bits(accumulated[1], cache["resid_mid", 0])
        parts, labels = cache.decompose_resid(return_labels=True)
        self.assertEqual(labels[:4], ["embed", "pos_embed", "0_attn_out", "0_mlp_out"])
        self.assert_close(parts.astype(np.float64).sum(0), accumulated[-1], 1e-5)
        scaled = cache.apply_ln_to_stack(parts)
        self.assert_close(scaled.astype(np.float64).sum(0), cache["normalized"], 1e-5)
        heads, labels = cache.stack_head_results(return_labels=True, incl_remainder=True,
                                                 pos_slice=-1)
        self.assertEqual(labels[:-1], model.all_head_labels)
        self.assertEqual(labels[-1], "remainder")
        self.assert_close(heads.astype(np.float64).sum(0), accumulated[-1][:, -1], 1e-5)
        token, other = 17, 42
        found = cache.logit_attrs(parts, token, other)
        bias = model.weight("ln_final.b") @ (model.W_U[:, token] - model.W_U[:, other])
        self.assert_close(found.astype(np.float64).sum(0) + bias,
                          self.logits[..., token] - self.logits[..., other], 1e-4)
        self.assert_close(cache.logit_attrs(parts[:, :, -1], token, other, pos_slice=-1),
                          found[:, :, -1])
        single = cache.remove_batch_dim()
        self.assert_same_bits(single.logit_attrs(single.decompose_resid(), token, other),
                              found[:, 0])
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "a stack has the shape"):
            cache.logit_attrs(parts[:, :, :3], token)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "layer 99 does not exist"):
            cache.accumulated_resid(99)

    def test_equals_the_command_line(self):
        import json
        import pathlib
        import tempfile
        tokens = self.model.to_tokens(PROMPT)
        shown = json.loads(program("tokenize", "-m", "starter", "--json", PROMPT)) \
            if "--json" in program("tokenize", "--help") else None
        if shown is not None:
            ids = shown["ids"] if "ids" in shown else [t["id"] for t in shown["tokens"]]
            self.assertEqual(tokens[0].tolist(), ids)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.npz"
            program("trace", "-m", "starter", "--points", "*", "-o", str(file), PROMPT)
            traced = np.load(file)
            _, cache = self.model.run_with_cache(tokens)
            self.assertGreater(len(traced.files), 20)
            for name in traced.files:
                if name in cache or ("hook_" in name):
                    self.assert_same_bits(cache[name], traced[name], name)


if __name__ == "__main__":
    import unittest
    unittest.main()
