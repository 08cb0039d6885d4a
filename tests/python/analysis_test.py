import json
import math
import pathlib
import tempfile

import numpy as np

import heed
from heed import interventions as edit
from support import TestCase, address, program, starter

CLEAN = "Late one evening, a fluffy blue hare"
Wrong = heed.errors.InvalidArgument


def corrupted(model):
    """The clean prompt with another token for " blue"."""
    tokens = model.to_tokens(CLEAN)[0].copy()
    tokens[list(model.to_str_tokens(CLEAN)).index(" blue")] = model.to_single_token(" black")
    return tokens


class Patching(TestCase):
    def setUp(self):
        self.model = starter()
        self.clean = self.model.to_tokens(CLEAN)[0]
        self.corrupted = corrupted(self.model)
        self.answer = self.model.to_single_token(" deep")
        self.wrong = int(self.model(self.corrupted)[0, -1].argmax())

    def metric(self, logits):
        return float(logits[0, -1, self.answer] - logits[0, -1, self.wrong])

    def sweep(self, grid="attn_head_out", **options):
        return heed.patching.sweep(self.model, self.clean, self.corrupted, grid, self.answer,
                                   self.wrong, **options)

    def test_cells_equal_hooks(self):
        sweep = self.sweep()
        cfg = self.model.cfg
        self.assertEqual(sweep.values.shape, (cfg.n_layers, cfg.n_heads))
        self.assertAlmostEqual(sweep.clean, self.metric(self.model(self.clean)), places=4)
        self.assertAlmostEqual(sweep.corrupted, self.metric(self.model(self.corrupted)), places=4)
        _, cache = self.model.run_with_cache(self.clean, "z")

        def patch(values, at, clean):
            values[:, :, at[1]] = clean[:, :, at[1]]

        index = [(layer, head) for layer in range(cfg.n_layers) for head in range(cfg.n_heads)]
        by_hooks = heed.patching.generic_activation_patch(self.model, self.corrupted, cache,
                                                          self.metric, patch, "z", index)
        self.assertLess(np.abs(by_hooks.reshape(sweep.values.shape) - sweep.values).max(), 1e-3)
        self.assertGreater(np.ptp(sweep.recovered), 0.1)

    def test_equals_the_command_line(self):
        for grid in heed.patching.grid_names():
            if grid.startswith("edge") or grid.endswith("by_pos"):
                continue
            sweep = self.sweep(grid)
            written = json.loads(program(
                "patch", "--json", "--grid", grid, "--answer", f"#{self.answer}",
                "--wrong", f"#{self.wrong}", "--clean-tokens", ",".join(map(str, self.clean)),
                "--corrupted-tokens", ",".join(map(str, self.corrupted))))
            self.assert_close(sweep.values, written["values"], 1e-5, grid)
            self.assert_close(sweep.recovered, written["recovered"], 1e-5, grid)
            self.assertIn("<table>", sweep._repr_html_())
        named = heed.patching.resid_pre(self.model, self.clean, self.corrupted, self.answer,
                                        self.wrong)
        self.assertEqual(named.values.shape, (self.model.cfg.n_layers, len(self.clean)))

    def test_path_patching(self):
        sweep = self.sweep()
        layer, head = divmod(int(sweep.recovered.argmax()), self.model.cfg.n_heads)
        # Sending a head's own output changes nothing; sending the clean one does.
        same = heed.patching.path_patch(self.model, self.corrupted, self.corrupted,
                                        [(layer, head)], "logits", self.metric)
        self.assertAlmostEqual(same, sweep.corrupted, places=3)
        sent = heed.patching.path_patch(self.model, self.clean, self.corrupted, [(layer, head)],
                                        "logits", self.metric)
        self.assertGreater(abs(sent - sweep.corrupted), 0.05)
        through = heed.patching.path_patch(self.model, self.clean, self.corrupted, [(0, 0)],
                                           [(layer, each, "k") for each in range(2)], self.metric)
        self.assertTrue(math.isfinite(through))
        with self.assertRaisesRegex(Wrong, "expected 'q', 'k' or 'v'"):
            heed.patching.path_patch(self.model, self.clean, self.corrupted, [(0, 0)],
                                     [(1, 0, "z")], self.metric)

    def test_neurons(self):
        found = heed.patching.neurons(self.model, self.clean, self.corrupted, self.metric, 1, [0, 5])
        self.assertEqual(found.shape, (2,))
        _, cache = self.model.run_with_cache(self.clean, "post1")
        for value, neuron in zip(found, [0, 5]):
            def take_clean(values, hook, neuron=neuron):
                values[..., neuron] = cache["post", 1][..., neuron]

            hooked = self.model.run_with_hooks(self.corrupted, [("post1", take_clean)])
            self.assertAlmostEqual(float(value), self.metric(hooked), places=4)
            self.assertNotEqual(float(value), self.metric(self.model(self.corrupted)))

    def test_progress_and_bad_input(self):
        seen = []
        self.sweep(progress=lambda done, cells: seen.append((done, cells)))
        self.assertEqual(seen[-1][0], seen[-1][1])
        with self.assertRaises(heed.errors.Interrupted):
            self.sweep(progress=lambda done, cells: False)
        with self.assertRaises(ZeroDivisionError):
            self.sweep(progress=lambda done, cells: 1 / 0)
        with self.assertRaisesRegex(Wrong, "no patching grid 'heads'; did you mean"):
            self.sweep("heads")
        with self.assertRaisesRegex(Wrong, "method is 'guess'"):
            self.sweep(method="guess")
        with self.assertRaisesRegex(Wrong, "metric is 'loss'"):
            self.sweep(metric="loss")
        with self.assertRaisesRegex(Wrong, "length|tokens"):
            heed.patching.resid_pre(self.model, self.clean, self.corrupted[:-1], 1, 2)


class Explanations(TestCase):
    def setUp(self):
        self.model = starter()

    def test_lens_equals_the_cache(self):
        lens = heed.lens(self.model, CLEAN, 3)
        _, cache = self.model.run_with_cache(CLEAN)
        layers = self.model.cfg.n_layers
        self.assertEqual(lens.tokens.shape, (layers + 1, cache["resid_pre", 0].shape[1], 3))
        logits = self.model(CLEAN)[0]
        self.assertEqual(lens.tokens[-1, :, 0].tolist(), logits.argmax(-1).tolist())
        scaled = cache.apply_ln_to_stack(cache.accumulated_resid())[2, 0]
        scaled = cache.accumulated_resid()[2, 0]
        scaled = (scaled - scaled.mean(-1, keepdims=True)) / np.sqrt(
            scaled.var(-1, keepdims=True) + self.model.cfg.eps)
        by_hand = (scaled * self.model.weight("ln_final.w") + self.model.weight("ln_final.b")) \
            @ self.model.W_U
        self.assertEqual(lens.tokens[2, :, 0].tolist(), by_hand.argmax(-1).tolist())
        self.assertLess(float(lens.divergences[-1].max()), 1e-6)

    def test_nearest_words_beat_chance_or_are_not_named(self):
        depths = heed.nearest_words(self.model, CLEAN, 1, 3)
        own = int(self.model.to_tokens(CLEAN)[0, 1])
        table = self.model.W_E - self.model.W_E.mean(0)
        embedded = table[own]
        cosines = table @ embedded / (np.linalg.norm(table, axis=1) * np.linalg.norm(embedded))
        cosines[own] = -1
        self.assertEqual(len(depths), self.model.cfg.n_layers + 2)
        self.assertEqual(depths[0].best[0], int(cosines.argmax()))
        self.assertAlmostEqual(depths[0].best[2], float(cosines.max()), 5)
        for depth in depths:
            self.assertEqual(not depth.words, depth.best[2] <= depth.chance)
            self.assertTrue(all(cosine > depth.chance for _, _, cosine in depth.words))
        with self.assertRaises(heed.Error):
            heed.nearest_words(self.model, CLEAN, 10_000)

    def test_next_words(self):
        words = heed.next_words(self.model, CLEAN, 4)
        logits = self.model(CLEAN)[0, -1]
        self.assertEqual(words[0][0], int(logits.argmax()))
        self.assertAlmostEqual(words[0][2], float(logits.max()), places=4)
        shown = json.loads(program("predict", "-m", "starter", "--json", CLEAN))
        text = json.dumps(shown)
        self.assertIn(words[0][1].strip(), text)

    def test_attributions_sum(self):
        token = self.model.to_single_token(" deep")
        logit = float(self.model(CLEAN)[0, -1, token])
        for unit in ("component", "head", "neuron", "source"):
            parts = heed.attribute_logit(self.model, CLEAN, " deep", unit=unit)
            self.assertAlmostEqual(float(parts.values.sum()), logit, places=2)
            self.assertEqual(len(parts.names), len(parts.values))
        words = heed.attribute_tokens(self.model, CLEAN, token, steps=16)
        self.assertAlmostEqual(float(words.values.sum()),
                               words.logit - words.baseline + words.completeness_error, places=6)
        with self.assertRaisesRegex(Wrong, "unit is 'layer'"):
            heed.attribute_logit(self.model, CLEAN, " deep", unit="layer")

    def test_heads(self):
        tokens = np.tile(np.arange(10, 40), 2)
        found = heed.heads(self.model, tokens)
        cfg = self.model.cfg
        _, cache = self.model.run_with_cache(tokens)
        for layer in (0, cfg.n_layers - 1):
            pattern = np.array(cache["pattern", layer][0])
            previous = np.stack([np.diagonal(head, -1).mean() for head in pattern])
            self.assert_close(found["previous"][layer], previous, 1e-4)
        induction = heed.detect_head(self.model, tokens, "induction_head")
        self.assertEqual(induction.shape, (cfg.n_layers, cfg.n_heads))
        wanted = np.zeros((60, 60), np.float32)
        for t in range(30, 60):
            wanted[t, t - 29] = 1
        self.assert_close(heed.detect_head(self.model, tokens, wanted), induction, 1e-6)
        share = (np.array(cache["pattern", 0][0]).astype(np.float64) * wanted).sum((1, 2)) / 60
        self.assert_close(induction[0], share, 1e-4)
        absolute = heed.detect_head(self.model, tokens, wanted, error_measure="abs")
        by_hand = 1 - np.abs(np.array(cache["pattern", 0][0]) - wanted).sum((1, 2)) / 60
        self.assert_close(absolute[0], by_hand, 1e-4)
        with self.assertRaisesRegex(Wrong, "later position"):
            heed.detect_head(self.model, tokens, np.ones((60, 60)))
        with self.assertRaisesRegex(Wrong, r"shape \(3, 3\), expected \(60, 60\)"):
            heed.detect_head(self.model, tokens, np.zeros((3, 3)))
        with self.assertRaisesRegex(Wrong, "no detection pattern"):
            heed.detect_head(self.model, tokens, "other_head")

    def test_interventions_equal_hooks(self):
        edited = edit.apply(self.model, edit.zero("L2H3"))
        hooked = self.model.run_with_hooks(
            CLEAN, [("z2", lambda z, hook: z.__setitem__((..., 3, slice(None)), 0))])
        self.assert_close(edited(CLEAN), hooked, 1e-5)
        for one in (edit.scale("L1.mlp", 0.5), edit.mean("resid_post1", [CLEAN]),
                    edit.take_from("L1H0", corrupted(self.model)),
                    edit.freeze_pattern("L1H0", corrupted(self.model)),
                    edit.cut_edges("L1H0", [(5, 2)], renormalise=True),
                    edit.steer("resid_post2", 2.0, " blue", " black"),
                    edit.add("resid_post2", np.ones(self.model.cfg.d_model)),
                    edit.set_row("resid_post2", np.ones(self.model.cfg.d_model))):
            self.assertFalse(np.array_equal(edit.apply(self.model, one)(CLEAN),
                                            self.model(CLEAN)), one)
        self.assertEqual(len(edited.generate(CLEAN, 3, temperature=0).finish().tokens), 3)
        traced = edited.trace(CLEAN, "z2")
        self.assertEqual(float(np.abs(traced["blocks.2.attn.hook_z"][:, :, 3]).max()), 0.0)
        with self.assertRaisesRegex(Wrong, "did you mean|does not exist|no "):
            edit.apply(self.model, edit.zero("L99H0"))


class Others(TestCase):
    def test_evaluation(self):
        model = starter()
        found = heed.evaluate(model, CLEAN)
        self.assertAlmostEqual(found.perplexity, math.exp(found.loss), places=6)
        ids = model.to_tokens(CLEAN)[0]
        self.assertAlmostEqual(heed.evaluate(model, ids).loss, model.loss(CLEAN), places=5)
        with self.assertRaisesRegex(Wrong, "give two or more"):
            heed.evaluate(model, [1])
        with self.assertRaises(heed.errors.NotFound):
            heed.evaluate(model, file="no-such-file.txt")

    def test_tasks(self):
        model = starter()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "task.jsonl"
            file.write_text('{"ctx": "Once upon a", "label": "1", "endings": ["wand", "time"]}\n' * 2,
                            encoding="utf-8")
            found = heed.evaluate_task(model, file)
            self.assertEqual((found.layout, found.questions, found.chance), ("HellaSwag", 2, 0.5))
            self.assertEqual(found.accuracy, (1.0, 0.0))
            self.assertEqual(found.answers[0].right, 1)
            self.assertEqual(found.answers[0].chosen, 1)
            self.assertIsNone(found.perplexity)
            self.assertEqual(heed.evaluate_task(model, file, limit=1).questions, 1)
            file.write_text("{}", encoding="utf-8")
            with self.assertRaisesRegex(heed.errors.CorruptData, "line 1"):
                heed.evaluate_task(model, file)

    def test_tokenizers(self):
        model = starter()
        own = heed.Tokenizer.load("starter")
        self.assertEqual(own.encode(CLEAN).tolist(), model.to_tokens(CLEAN)[0].tolist())
        self.assertEqual(own.decode(own.encode(CLEAN)), CLEAN)
        learned = heed.Tokenizer.learn([CLEAN * 4], 300)
        self.assertEqual(learned.kind, "byte_pair")
        self.assertEqual("".join(learned.pieces(learned.encode(CLEAN))), CLEAN)
        with tempfile.TemporaryDirectory() as folder:
            learned.save(folder)
            self.assertEqual(heed.Tokenizer.load(folder).encode(CLEAN).tolist(),
                             learned.encode(CLEAN).tolist())
        with self.assertRaisesRegex(Wrong, "vocabulary"):
            own.decode([10**6])

    def test_microworld(self):
        story = heed.microworld.story(5, 0, ["mystery"])
        text = story["text"].encode()
        answer = story["culprit"]["answer"]
        self.assertEqual(text[answer["begin"]:answer["end"]].decode(), story["culprit"]["name"])
        self.assertLess(heed.microworld.log_probability(story["text"]), 0)
        self.assertEqual(heed.microworld.log_probability("no such story"), -math.inf)
        with self.assertRaisesRegex(Wrong, "no kind of story 'saga': expected one of creature"):
            heed.microworld.story(5, 0, ["saga"])

    def test_translation(self):
        translator = heed.load("translator")
        found = translator.translate("A dog runs.", n_best=2, alignment=True)
        self.assertEqual(len(found.hypotheses), 2)
        self.assertGreaterEqual(found.hypotheses[0].score, found.hypotheses[1].score)
        self.assertEqual(found.cross_attention.shape[2:],
                         (len(found.hypotheses[0].tokens), len(found.source)))
        shown = program("translate", "-m", "translator", "A dog runs.")
        self.assertIn(found.text, shown)
        self.assert_close(translator.cross_attention(found.source, found.hypotheses[0].tokens),
                          found.cross_attention, 1e-5)
        with self.assertRaisesRegex(Wrong, "text 2"):
            translator.translate(["A dog runs.", ""])


class Pictures(TestCase):
    def setUp(self):
        self.model = starter()

    def test_self_contained_and_small(self):
        model = self.model
        long = "A fluffy blue creature roamed the verdant forest. " * 12
        pictures = {"tokens": heed.show_tokens(model, CLEAN, range(len(model.to_tokens(CLEAN)[0]))),
                    "next": heed.next_words(model, CLEAN), "lens": heed.lens(model, CLEAN),
                    "attention": heed.show_attention(model, CLEAN, 4),
                    "long": heed.show_attention(model, long, 4),
                    "attribution": heed.attribute_logit(model, CLEAN, " deep")}
        for name, picture in pictures.items():
            text = picture._repr_html_()
            self.assertLessEqual(len(text.encode()), 150_000, name)
            self.assertNotIn("http", text, name)
            self.assertIn("<table", text) if name not in ("tokens",) else None
        self.assertIn("<noscript><table", pictures["attention"]._repr_html_())
        self.assertIn("64 of 109 positions", pictures["long"]._repr_html_())

    def test_text_is_escaped(self):
        shown = heed.show_tokens(self.model, "<b>&\"</script>")._repr_html_()
        self.assertNotIn("<b>", shown)
        picture = heed.explain.AttentionPicture(np.eye(2)[None], ["</script>", "<b>"])
        self.assertNotIn("</script><", picture._repr_html_().split("application/json")[1]
                         .split("</script>")[0])
        with self.assertRaisesRegex(Wrong, "numbers for"):
            heed.show_tokens(self.model, CLEAN, [1, 2])


if __name__ == "__main__":
    import unittest
    unittest.main()
