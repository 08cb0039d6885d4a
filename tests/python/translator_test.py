import gc

import numpy as np

import heed
from support import GOLDEN, TestCase, address, program, starter

SOURCE, TARGET = "A dog runs.", "Ein Hund läuft."
Wrong = heed.errors.InvalidArgument


class Translators(TestCase):
    def setUp(self):
        if not hasattr(Translators, "model"):
            Translators.model = heed.load("translator")
        self.model = Translators.model
        self.logits = self.model(source=SOURCE, target=TARGET)

    def test_tokens(self):
        source = self.model.to_tokens(source=SOURCE)
        target = self.model.to_tokens(target=TARGET)
        self.assert_same_bits(self.model.to_tokens(SOURCE), source)
        self.assertEqual(self.model.to_string(target), [TARGET])
        self.assertEqual(self.model.to_string(target[0]), TARGET)
        self.assert_same_bits(self.model.to_tokens(target=target), target)
        self.assert_same_bits(self.model.to_tokens(target=target[0, 1:]), target)
        self.assertEqual(self.logits.shape[:2], target.shape)
        self.assert_same_bits(self.model(source=source, target=target), self.logits)
        self.assert_same_bits(self.model(source=source[0].tolist(), target=target[0, 1:].tolist()),
                              self.logits)
        pieces = self.model.to_str_tokens(source=SOURCE)
        self.assertEqual(len(pieces), source.size)
        self.assertIn("dog", "".join(pieces))
        self.assertEqual(self.model.to_str_tokens(target=target[0, 1:]),
                         self.model.to_str_tokens(target=TARGET)[1:])
        word = self.model.to_str_tokens(target=target[0, 1:2])[0]
        self.assertEqual(self.model.to_single_token(word), int(target[0, 1]))

    def test_architecture(self):
        model = self.model
        self.assertTrue(model.is_translator)
        self.assertEqual(model.cfg.n_layers, sum("decoder" in name and "resid_pre" in name
                                                 for name in model.hook_names))
        self.assertEqual(model.encoder_cfg.n_layers, sum("encoder" in name and "resid_pre" in name
                                                         for name in model.hook_names))
        self.assertEqual(model.cfg.n_params, model.encoder_cfg.n_params)
        self.assertIn("of the decoder", repr(model))
        self.assertIs(heed.Translator, heed.Model)
        self.assertFalse(hasattr(model, "W_E"))
        plain = starter()
        self.assertFalse(plain.is_translator)
        self.assertIsNone(plain.encoder_cfg)

    def test_several_pairs(self):
        sources = [SOURCE, "The woman sees a red bird."]
        targets = [TARGET, "Die Frau sieht einen roten Vogel."]
        logits = self.model(source=sources, target=targets)
        for each, source, target in zip(logits, sources, targets):
            self.assert_alike(each, self.model(source=source, target=target))
        losses = self.model.loss(source=sources, target=targets)
        for names in ("cross.z", None):
            found, cache = self.model.run_with_cache(source=sources, names_filter=names)
            for b, source in enumerate(sources):
                alone, of_it = self.model.run_with_cache(source=source, names_filter=names)
                self.assert_alike(found[b], alone)
                own = of_it["cross.z", 1]
                self.assertEqual(int(cache.lengths[b]), own.shape[1])
                self.assert_alike(cache["cross.z", 1][b:b + 1, :own.shape[1]], own)
                self.assertAlmostEqual(
                    losses[b], self.model.loss(source=source, target=targets[b]), delta=1e-5)
        self.assertEqual(cache.source_mask.sum(1).tolist(), cache.source_lengths.tolist())
        for b, source in enumerate(sources):
            read = cache.source_tokens[b][cache.source_mask[b] == 1]
            _, of_it = self.model.run_with_cache(source=source)
            self.assertEqual(read.tolist(), of_it.source_tokens[0].tolist())
            queries, keys = len(of_it.target_tokens[0]), len(read)
            pattern = np.asarray(cache["cross.pattern", 1])
            self.assert_alike(pattern[b, :, :queries, :keys],
                              np.asarray(of_it["cross.pattern", 1])[0])
            self.assertFalse(pattern[b, :, :, keys:].any())
            self.assert_alike(cache["encoder.1.hook_resid_post"][b, :keys],
                              of_it["encoder.1.hook_resid_post"][0])
        with self.assertRaisesRegex(Wrong, "2 sources, expected as many targets"):
            self.model(source=sources, target=[TARGET])

    def test_one_class_says_which_texts_it_reads(self):
        plain = starter()
        for call in (lambda: plain(source="a", target="b"), lambda: plain("a", target="b"),
                     lambda: plain.run_with_cache("a", target=[(-1, 5, 1.0)], incl_bwd=True),
                     lambda: plain.to_tokens(source="a"), lambda: heed.lens(plain, "a", target="b")):
            with self.assertRaisesRegex(Wrong, "has one stack.*logit_target"):
                call()
        with self.assertRaisesRegex(heed.errors.Unsupported, r"generate\(\) continues its prompts"):
            plain.translate("a")
        with self.assertRaisesRegex(Wrong, "has one stack, expected none"):
            heed.heads(plain, "a", kind="cross")
        for call in (lambda: self.model.generate(SOURCE),
                     lambda: heed.attribute_logit(self.model, SOURCE, 5),
                     lambda: heed.next_words(self.model, SOURCE),
                     lambda: heed.explain.save_processed(self.model, "nowhere"),
                     lambda: self.model.weight("embed.W_E"),
                     lambda: heed.patching.path_patch(self.model, SOURCE, SOURCE, [(0, 0)], "logits",
                                                      np.sum)):
            with self.assertRaisesRegex(heed.errors.Unsupported, "is a translator, expected"):
                call()
        for call, message in (
                (lambda: self.model(), "give the source"),
                (lambda: self.model(SOURCE, source=SOURCE), "give the source"),
                (lambda: self.model(SOURCE, TARGET), "return_type is 'Ein Hund"),
                (lambda: self.model.to_tokens(), "one of source= and target="),
                (lambda: self.model(source=SOURCE, prepend_bos=True), "models of one stack"),
                (lambda: self.model.translate(SOURCE, best=2), "has no argument 'best'.*n_best"),
                (lambda: self.model.translate(SOURCE, longest=2), "'longest'.*max_length")):
            with self.assertRaisesRegex(Wrong, message):
                call()

    def test_closes(self):
        model = heed.load("translator")
        with model:
            self.assertFalse(model.closed)
        self.assertTrue(model.closed)
        with self.assertRaisesRegex(Wrong, "closed"):
            model(source=SOURCE)

    def test_without_a_target_it_is_the_translation(self):
        logits, cache = self.model.run_with_cache(SOURCE)
        found = self.model.translate(SOURCE, beams=1)
        self.assertEqual(cache.target_tokens[0, 1:].tolist(), found.hypotheses[0].tokens[:-1])
        self.assertEqual(logits[0].argmax(-1).tolist(), found.hypotheses[0].tokens)
        self.assert_same_bits(self.model(SOURCE), logits)
        self.assert_same_bits(self.model(source=SOURCE), logits)

    def test_cache(self):
        logits, cache = self.model.run_with_cache(source=SOURCE, target=TARGET)
        self.assert_same_bits(logits, self.logits)
        layers = self.model.cfg.n_layers
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
        logits, cache = self.model.run_with_cache(source=SOURCE, target=TARGET,
                                                 names_filter=["cross.z", "encoder.resid_post0"])
        self.assertEqual(len(cache), self.model.cfg.n_layers + 1)
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
            source=SOURCE, target=TARGET,
            fwd_hooks=[(lambda name: True, lambda v, hook: seen.update({hook.name: v}))])
        self.assert_same_bits(hooked, self.logits)
        self.assertEqual(sorted(seen), sorted(names))
        _, cache = self.model.run_with_cache(source=SOURCE, target=TARGET, names_filter="*")
        for name in names:
            self.assert_same_bits(seen[name], cache[name], name)

        def zero(values, hook):
            values[:, :, 0] = 0

        def zero_plane(values, hook):
            values[:, 0] = 0

        by_z, cache = self.model.run_with_cache(source=SOURCE, target=TARGET,
                                                names_filter=["cross.z", "cross.pattern"],
                                                fwd_hooks=[("cross.z0", zero)])
        self.assertEqual(float(np.abs(cache["cross.z", 0][:, :, 0]).max()), 0.0)
        by_pattern = self.model.run_with_hooks(source=SOURCE, target=TARGET,
                                               fwd_hooks=[("cross.pattern0", zero_plane)])
        self.assert_close(by_z, by_pattern, 1e-5)
        self.assertGreater(float(np.abs(by_z - self.logits).max()), 1e-3)
        with self.model.hooks([("cross.z0", zero)]):
            self.assert_same_bits(self.model(source=SOURCE, target=TARGET), by_z)
        self.assert_same_bits(self.model(source=SOURCE, target=TARGET), self.logits)

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
        self.assertEqual(seen[0], ("source", self.model.to_tokens(source=SOURCE).size))
        self.assertEqual(seen[1:], [(step, 1) for step in range(len(seen) - 1)])
        unchanged = self.model.translate(SOURCE, beams=1, fwd_hooks=[
            (lambda name: True, lambda v, hook: v)])
        self.assertEqual(unchanged.hypotheses[0].tokens,
                         self.model.translate(SOURCE, beams=1).hypotheses[0].tokens)
        with self.assertRaisesRegex(Wrong, "beams is 5, expected 1"):
            self.model.translate(SOURCE, fwd_hooks=[("cross.z1", zero)])

    def test_losses(self):
        losses = self.model.loss(source=SOURCE, target=TARGET, per_token=True)
        self.assertEqual(losses.shape, self.logits.shape[:2])
        logits, loss = self.model(source=SOURCE, target=TARGET, return_type="both")
        self.assertAlmostEqual(loss, float(losses.mean()), places=5)
        self.assertAlmostEqual(self.model.loss(source=SOURCE, target=TARGET), loss, places=5)
        found = self.model.translate(SOURCE, beams=1).hypotheses[0]
        own = self.model.loss(source=SOURCE, target=found.tokens[:-1], per_token=True)
        self.assertAlmostEqual(-float(own.sum()), found.log_probability, places=3)
        self.assertLess(self.model.loss(source=SOURCE, target=TARGET),
                        self.model.loss(source="The weather is bad.", target=TARGET))

    def test_gradients(self):
        for name in ("encoder.resid_post0", "cross.v1", "decoder.resid_mid0"):
            _, cache = self.model.run_with_cache(source=SOURCE, target=TARGET, names_filter=name,
                                                 incl_bwd=True)
            point = next(iter(cache))
            gradient = cache[point + "_grad"].astype(np.float64)
            direction = gradient * 0.004 * np.linalg.norm(cache[point]) / np.linalg.norm(gradient)

            def loss_at(step):
                losses = self.model.run_with_hooks(
                    source=SOURCE, target=TARGET,
                    fwd_hooks=[(name, lambda v, hook: v + step * direction)],
                    return_type="loss", loss_per_token=True)
                return float(losses.astype(np.float64).mean())

            slope = (8 * (loss_at(1) - loss_at(-1)) - (loss_at(2) - loss_at(-2))) / 12
            wanted = float((gradient * direction).sum())
            self.assertAlmostEqual(slope / wanted, 1, delta=0.02, msg=name)
        logit = [(-1, 5, 1.0), (-1, 6, -1.0)]
        seen = []
        self.model.run_with_hooks(source=SOURCE, target=TARGET, bwd_hooks=[
            ("unembed.hook_in", lambda g, hook: seen.append(g))], logit_target=logit)
        self.assertEqual(float(np.abs(seen[0][0, :-1]).max()), 0.0)
        self.assertGreater(float(np.abs(seen[0][0, -1]).max()), 0.0)

    def test_heads_and_lens(self):
        lens = heed.lens(self.model, source=SOURCE, target=TARGET, top=3)
        likely = np.exp(self.logits[0] - self.logits[0].max(-1, keepdims=True))
        likely /= likely.sum(-1, keepdims=True)
        self.assertEqual(lens.tokens.shape, (self.model.cfg.n_layers + 1, *likely.shape[:1], 3))
        self.assertEqual(lens.tokens[-1, :, 0].tolist(), likely.argmax(-1).tolist())
        np.testing.assert_allclose(lens.probabilities[-1, :, 0], likely.max(-1), rtol=1e-4)
        _, cache = self.model.run_with_cache(source=SOURCE, target=TARGET)
        for kind in ("encoder", "cross"):
            found = heed.heads(self.model, source=SOURCE, target=TARGET, kind=kind)
            for layer in range(found["first"].shape[0]):
                pattern = np.array(cache[f"{kind}.pattern", layer])[0]
                np.testing.assert_allclose(found["first"][layer], pattern[..., 0].mean(-1),
                                           atol=1e-5)
                np.testing.assert_allclose(found["largest"][layer], pattern.max(-1).mean(-1),
                                           atol=1e-5)
        with self.assertRaisesRegex(Wrong, "expected encoder, decoder or cross"):
            heed.heads(self.model, source=SOURCE, target=TARGET, kind="self")

    def test_lens_and_heads_obey_hooks_that_stay(self):
        def zero(values, hook):
            values[:] = 0

        edited = heed.interventions.apply(self.model, heed.interventions.ablate("decoder.resid_pre1"))
        plain = heed.lens(self.model, source=SOURCE, target=TARGET)
        with self.model.hooks([("decoder.resid_pre1", zero)]):
            hooked = heed.lens(self.model, source=SOURCE, target=TARGET)
            heads = heed.heads(self.model, source=SOURCE, target=TARGET)
        by_edit = heed.lens(edited, source=SOURCE, target=TARGET)
        self.assertEqual(hooked.tokens.tolist(), by_edit.tokens.tolist())
        self.assertNotEqual(hooked.tokens.tolist(), plain.tokens.tolist())
        self.assertEqual(heads["first"].tolist(),
                         heed.heads(edited, source=SOURCE, target=TARGET)["first"].tolist())

    def test_patching(self):
        other = "A cat runs."
        pairs = [(SOURCE, TARGET), (other, TARGET)]
        answer, wrong = 5, 6
        for site, name, grid in (("encoder", "encoder.resid_pre", "resid_pre"),
                                 ("cross", "cross.v", "attn_head_v"),
                                 ("decoder", "decoder.z", "attn_head_out")):
            found = heed.patching.sweep(self.model, SOURCE, other, grid, answer, wrong,
                                        target=TARGET, site=site)
            by_pairs = heed.patching.sweep(self.model, *pairs, grid, answer, wrong, site=site)
            self.assert_same_bits(found.values, by_pairs.values)
            self.assertEqual(found.values.shape, (len(found.row_labels), len(found.column_labels)))
            _, clean = self.model.run_with_cache(source=SOURCE, target=TARGET, names_filter=name)

            column = 1 if grid == "resid_pre" else 0  # a position, or the only head

            def patch(values, hook, column=column):
                if grid == "resid_pre":
                    values[:, column] = clean[hook.name][:, column]
                else:
                    values[:, :, column] = clean[hook.name][:, :, column]

            for layer in range(found.values.shape[0]):
                logits = self.model.run_with_hooks(source=other, target=TARGET,
                                                   fwd_hooks=[(f"{name}{layer}", patch)])
                # Logits of about ten, from the same pass.
                self.assertAlmostEqual(found.values[layer, column],
                                       float(logits[0, -1, answer]) - float(logits[0, -1, wrong]),
                                       places=4)
        estimated = heed.patching.sweep(self.model, *pairs, "attn_head_out", answer, wrong,
                                        method="attribution", site="cross")
        self.assertEqual(estimated.values.shape[0], self.model.cfg.n_layers)
        for call, message in (
                (lambda: heed.patching.sweep(self.model, SOURCE, other, "resid_pre", 5, 6),
                 r"a pair \(source, target\)"),
                (lambda: heed.patching.sweep(self.model, *pairs, "resid_pre", 5, 6, site="cross"),
                 "the site encoder or decoder"),
                (lambda: heed.patching.sweep(self.model, *pairs, "resid_pre", 5, 6, site="self"),
                 "expected encoder, decoder or cross"),
                (lambda: heed.patching.sweep(starter(), "a b", "a c", target="d"), "one stack")):
            with self.assertRaisesRegex(Wrong, message):
                call()

    def test_bad_input(self):
        for source, target, message in (
                ("", TARGET, "empty"), ([], TARGET, "token"), (SOURCE, np.zeros(5000, np.int32), "5"),
                ([10**6], TARGET, "1000000"), (SOURCE, [10**6], "1000000"),
                (SOURCE, [1.5], "expected integers")):
            with self.assertRaisesRegex(Wrong, message):
                self.model(source=source, target=target)
        with self.assertRaisesRegex(Wrong, "return_type is 'all'"):
            self.model(source=SOURCE, target=TARGET, return_type="all")
        with self.assertRaisesRegex(Wrong, "no point 'cross.y'"):
            self.model.run_with_hooks(source=SOURCE, target=TARGET,
                                      fwd_hooks=[("cross.y", lambda v, hook: v)])
        with self.assertRaisesRegex(heed.errors.Unsupported, "cannot be edited"):
            self.model.run_with_hooks(source=SOURCE, target=TARGET,
                                      fwd_hooks=[("unembed.hook_out", lambda v, hook: v)])
        with self.assertRaises(ZeroDivisionError):
            self.model.run_with_hooks(source=SOURCE, target=TARGET,
                                      fwd_hooks=[("cross.z", lambda v, hook: 1 / 0)])
        _, cache = self.model.run_with_cache(source=SOURCE, target=TARGET)
        with self.assertRaisesRegex(heed.errors.Unsupported, "two"):
            from heed import _heed
            _heed.head_results(cache._recorded, -1, [], False)
        self.assert_same_bits(self.model(source=SOURCE, target=TARGET), self.logits)

    def test_without_a_tokenizer(self):
        model = heed.load(str(GOLDEN / "pairs" / "marian"))
        self.assertEqual(model(source=[5, 6, 2], target=[7, 8]).shape[0], 1)
        self.assertEqual(model.run_with_cache([5, 6, 2])[1].source_tokens.tolist(), [[5, 6, 2]])
        for needs_text in (lambda: model("Hello"), lambda: model.translate("Hello"),
                           lambda: model(source=[5], target="Hallo"), lambda: model.to_string([5])):
            with self.assertRaisesRegex(heed.errors.NotFound, "has no tokenizer"):
                needs_text()
        self.assertEqual(model.to_str_tokens(source=[5]), ["#5"])


if __name__ == "__main__":
    import unittest
    unittest.main()
