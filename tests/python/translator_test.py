import gc

import numpy as np

import heed
from support import GOLDEN, TestCase, address, program

SOURCE, TARGET = "A dog runs.", "Ein Hund läuft."
Wrong = heed.errors.InvalidArgument


class Translators(TestCase):
    def setUp(self):
        if not hasattr(Translators, "model"):
            Translators.model = heed.Translator.load("translator")
        self.model = Translators.model
        self.logits = self.model(SOURCE, TARGET)

    def test_tokens(self):
        source, target = self.model.to_tokens(SOURCE), self.model.to_target_tokens(TARGET)
        self.assertEqual(self.model.to_string(target), TARGET)
        self.assert_same_bits(self.model.to_target_tokens(target), target)
        self.assert_same_bits(self.model.to_target_tokens(target[1:]), target)
        self.assertEqual(self.logits.shape[:2], (1, len(target)))
        self.assert_same_bits(self.model(source, target), self.logits)
        self.assert_same_bits(self.model(source.tolist(), target[1:].tolist()), self.logits)

    def test_without_a_target_it_is_the_translation(self):
        logits, cache = self.model.run_with_cache(SOURCE)
        found = self.model.translate(SOURCE, beams=1)
        self.assertEqual(cache.target_tokens[0, 1:].tolist(), found.hypotheses[0].tokens[:-1])
        self.assertEqual(logits[0].argmax(-1).tolist(), found.hypotheses[0].tokens)
        self.assert_same_bits(self.model(SOURCE), logits)

    def test_cache(self):
        logits, cache = self.model.run_with_cache(SOURCE, TARGET)
        self.assert_same_bits(logits, self.logits)
        layers = self.model.layers()
        sources, targets = cache.source_tokens.size, cache.target_tokens.size
        self.assertEqual(cache["cross.pattern", -1].shape[2:], (targets, sources))
        self.assertEqual(cache["encoder.pattern", 0].shape[2:], (sources, sources))
        self.assertEqual(cache["decoder.pattern", 0].shape[2:], (targets, targets))
        self.assertIs(type(cache["cross.pattern", 0]), heed.LazyAttention)
        for same in ("cross.pattern1", ("cross.pattern", 1),
                     "decoder.1.cross_attn.hook_pattern", ("cross.pattern", 1 - layers)):
            self.assert_same_bits(cache[same], cache["cross.pattern", 1])
        self.assert_same_bits(cache["decoder.normalized", 0, "ln3"],
                              cache["decoder.0.ln3.hook_normalized"])
        self.assert_close(np.asarray(cache["cross.pattern", 0]).sum(-1),
                          np.ones(cache["cross.pattern", 0].shape[:3]))
        row = cache["cross.pattern", 0][0, 0, 1]
        self.assert_same_bits(row, np.asarray(cache["cross.pattern", 0])[0, 0, 1])
        alignment = self.model.cross_attention(cache.source_tokens[0], cache.target_tokens[0, 1:])
        ours = np.stack([np.asarray(cache["cross.pattern", layer])[0] for layer in range(layers)])
        self.assert_close(ours[:, :, :targets - 1], alignment, 1e-5)
        self.assert_same_bits(cache["logits"], logits)
        self.assertEqual(cache.remove_batch_dim()["cross.z", 0].shape, cache["cross.z", 0].shape[1:])
        self.assertGreater(cache.nbytes, sum(cache[name].nbytes for name in cache
                                             if "hook_z" in name))
        with self.assertRaises(heed.errors.NotFound):
            cache["cross.pattern", layers]
        with self.assertRaisesRegex(Wrong, "no point 'cross.patern'; did you mean"):
            cache["cross.patern"]

    def test_names_filter_and_views(self):
        logits, cache = self.model.run_with_cache(SOURCE, TARGET, ["cross.z", "encoder.resid_post0"])
        self.assertEqual(len(cache), self.model.layers() + 1)
        self.assertEqual(address(cache["cross.z", 0]), address(cache["decoder.0.cross_attn.hook_z"]))
        values = cache["cross.z", 0]
        kept = values.copy()
        del cache, logits
        gc.collect()
        self.assert_same_bits(values, kept)

    def test_hooks(self):
        names = [name for name in self.model.hook_names if name != "unembed.hook_out"]
        seen = {}
        hooked = self.model.run_with_hooks(
            SOURCE, TARGET, [(lambda name: True, lambda v, hook: seen.update({hook.name: v}))])
        self.assert_same_bits(hooked, self.logits)
        self.assertEqual(sorted(seen), sorted(names))
        _, cache = self.model.run_with_cache(SOURCE, TARGET, "*")
        for name in names:
            self.assert_same_bits(seen[name], cache[name], name)

        def zero(values, hook):
            values[:, :, 0] = 0

        def zero_plane(values, hook):
            values[:, 0] = 0

        by_z, cache = self.model.run_with_cache(SOURCE, TARGET, ["cross.z", "cross.pattern"],
                                                fwd_hooks=[("cross.z0", zero)])
        self.assertEqual(float(np.abs(cache["cross.z", 0][:, :, 0]).max()), 0.0)
        by_pattern = self.model.run_with_hooks(SOURCE, TARGET, [("cross.pattern0", zero_plane)])
        self.assert_close(by_z, by_pattern, 1e-5)
        self.assertGreater(float(np.abs(by_z - self.logits).max()), 1e-3)
        with self.model.hooks([("cross.z0", zero)]):
            self.assert_same_bits(self.model(SOURCE, TARGET), by_z)
        self.assert_same_bits(self.model(SOURCE, TARGET), self.logits)

    def test_hooks_in_translation(self):
        def zero(values, hook):
            values[..., :32] = 0

        found = self.model.translate("The woman sees a red bird.", beams=1,
                                     fwd_hooks=[("cross.z1", zero)])
        plain = self.model.translate("The woman sees a red bird.", beams=1)
        self.assertEqual(len(found.hypotheses), 1)
        self.assertNotEqual(found.hypotheses[0].log_probability,
                            plain.hypotheses[0].log_probability)
        seen = []
        self.model.translate(SOURCE, beams=1, fwd_hooks=[
            ("decoder.resid_pre0", lambda v, hook: seen.append((hook.first_position, v.shape[1]))),
            ("encoder.resid_pre0", lambda v, hook: seen.append(("source", v.shape[1])))])
        self.assertEqual(seen[0], ("source", len(self.model.to_tokens(SOURCE))))
        self.assertEqual(seen[1:], [(step, 1) for step in range(len(seen) - 1)])
        unchanged = self.model.translate(SOURCE, beams=1, fwd_hooks=[
            (lambda name: True, lambda v, hook: v)])
        self.assertEqual(unchanged.hypotheses[0].tokens,
                         self.model.translate(SOURCE, beams=1).hypotheses[0].tokens)
        with self.assertRaisesRegex(Wrong, "beams is 5, expected 1"):
            self.model.translate(SOURCE, fwd_hooks=[("cross.z1", zero)])

    def test_losses(self):
        losses = self.model.loss(SOURCE, TARGET, per_token=True)
        self.assertEqual(losses.shape, self.logits.shape[:2])
        logits, loss = self.model(SOURCE, TARGET, return_type="both")
        self.assertAlmostEqual(loss, float(losses.mean()), places=5)
        self.assertAlmostEqual(self.model.loss(SOURCE, TARGET), loss, places=5)
        found = self.model.translate(SOURCE, beams=1).hypotheses[0]
        own = self.model.loss(SOURCE, found.tokens[:-1], per_token=True)
        self.assertAlmostEqual(-float(own.sum()), found.log_probability, places=3)
        self.assertLess(self.model.loss(SOURCE, TARGET),
                        self.model.loss("The weather is bad.", TARGET))

    def test_gradients(self):
        for name in ("encoder.resid_post0", "cross.v1", "decoder.resid_mid0"):
            _, cache = self.model.run_with_cache(SOURCE, TARGET, name, incl_bwd=True)
            point = next(iter(cache))
            gradient = cache[point + "_grad"].astype(np.float64)
            direction = gradient * 0.004 * np.linalg.norm(cache[point]) / np.linalg.norm(gradient)

            def loss_at(step):
                losses = self.model.run_with_hooks(
                    SOURCE, TARGET, [(name, lambda v, hook: v + step * direction)],
                    return_type="loss", loss_per_token=True)
                return float(losses.astype(np.float64).mean())

            slope = (8 * (loss_at(1) - loss_at(-1)) - (loss_at(2) - loss_at(-2))) / 12
            wanted = float((gradient * direction).sum())
            self.assertAlmostEqual(slope / wanted, 1, delta=0.02, msg=name)
        logit = [(-1, 5, 1.0), (-1, 6, -1.0)]
        seen = []
        self.model.run_with_hooks(SOURCE, TARGET, bwd_hooks=[
            ("unembed.hook_in", lambda g, hook: seen.append(g))], logit_target=logit)
        self.assertEqual(float(np.abs(seen[0][0, :-1]).max()), 0.0)
        self.assertGreater(float(np.abs(seen[0][0, -1]).max()), 0.0)

    def test_heads_and_lens(self):
        lens = self.model.lens(SOURCE, TARGET, top=3)
        likely = np.exp(self.logits[0] - self.logits[0].max(-1, keepdims=True))
        likely /= likely.sum(-1, keepdims=True)
        self.assertEqual(lens.tokens.shape, (self.model.layers() + 1, *likely.shape[:1], 3))
        self.assertEqual(lens.tokens[-1, :, 0].tolist(), likely.argmax(-1).tolist())
        np.testing.assert_allclose(lens.probabilities[-1, :, 0], likely.max(-1), rtol=1e-4)
        _, cache = self.model.run_with_cache(SOURCE, TARGET)
        for kind in ("encoder", "cross"):
            found = self.model.heads(SOURCE, TARGET, kind)
            for layer in range(found["first"].shape[0]):
                pattern = np.array(cache[f"{kind}.pattern", layer])[0]
                np.testing.assert_allclose(found["first"][layer], pattern[..., 0].mean(-1),
                                           atol=1e-5)
                np.testing.assert_allclose(found["largest"][layer], pattern.max(-1).mean(-1),
                                           atol=1e-5)
        with self.assertRaisesRegex(Wrong, "expected encoder, decoder or cross"):
            self.model.heads(SOURCE, TARGET, "self")

    def test_bad_input(self):
        for source, target, message in (
                ("", TARGET, "empty"), ([], TARGET, "token"), (SOURCE, np.zeros(5000, np.int32), "5"),
                ([10**6], TARGET, "1000000"), (SOURCE, [10**6], "1000000"),
                (SOURCE, [1.5], "expected integers")):
            with self.assertRaisesRegex(Wrong, message):
                self.model(source, target)
        with self.assertRaisesRegex(Wrong, "return_type is 'all'"):
            self.model(SOURCE, TARGET, return_type="all")
        with self.assertRaisesRegex(Wrong, "no point 'cross.y'"):
            self.model.run_with_hooks(SOURCE, TARGET, [("cross.y", lambda v, hook: v)])
        with self.assertRaisesRegex(heed.errors.Unsupported, "cannot be edited"):
            self.model.run_with_hooks(SOURCE, TARGET, [("unembed.hook_out", lambda v, hook: v)])
        with self.assertRaises(ZeroDivisionError):
            self.model.run_with_hooks(SOURCE, TARGET, [("cross.z", lambda v, hook: 1 / 0)])
        _, cache = self.model.run_with_cache(SOURCE, TARGET)
        with self.assertRaisesRegex(heed.errors.Unsupported, "two"):
            from heed import _heed
            _heed.head_results(cache._recorded, -1, [], False)
        self.assert_same_bits(self.model(SOURCE, TARGET), self.logits)

    def test_without_a_tokenizer(self):
        model = heed.Translator.load(str(GOLDEN / "pairs" / "marian"))
        self.assertEqual(model([5, 6, 2], [7, 8]).shape[0], 1)
        self.assertEqual(model.run_with_cache([5, 6, 2])[1].source_tokens.tolist(), [[5, 6, 2]])
        for needs_text in (lambda: model("Hello"), lambda: model.translate("Hello"),
                           lambda: model([5], "Hallo"), lambda: model.to_string([5])):
            with self.assertRaisesRegex(heed.errors.NotFound, "has no tokenizer"):
                needs_text()
        self.assertEqual(model.source_pieces([5]), ["#5"])


if __name__ == "__main__":
    import unittest
    unittest.main()
