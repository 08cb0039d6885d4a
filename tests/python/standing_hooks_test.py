"""Hooks that stay, and edits, are obeyed by everything that runs a model."""

import numpy as np

import heed
from heed import interventions as edit
from support import TestCase, starter

CLEAN = "Late one evening, a fluffy blue hare"
ANSWER, WRONG = " roamed", " jumped"


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


def zero_head(values, hook):
    values[:, :, 3] = 0


def halve(values, hook):
    return values * 0.5


def look_at_the_first(values, hook):
    values[...] = 0
    values[..., 0] = 1


class StandingHooks(TestCase):
    def setUp(self):
        self.model = starter()
        self.hooks = [("z2", zero_head), ("mlp_out1", halve)]
        self.ids = self.model.to_tokens(CLEAN)
        self.logits = self.model.run_with_hooks(CLEAN, self.hooks)
        self.plain = self.model(CLEAN)
        vocabulary = self.model.cfg.d_vocab
        likely = np.argsort(-self.logits[0, -1])[:2]
        self.answer, self.wrong = int(likely[0]), int(likely[1])
        self.assertLess(self.answer, vocabulary)

    def test_next_words(self):
        with self.model.hooks(self.hooks):
            found = heed.next_words(self.model, CLEAN, 5)
        wanted = np.exp(log_softmax(self.logits[0, -1]))
        for token, _, logit, probability in found:
            self.assertAlmostEqual(probability, wanted[token], places=5)
            self.assertAlmostEqual(logit, float(self.logits[0, -1, token]), places=3)
        self.assertFalse(np.array_equal(self.plain, self.logits))

    def test_lens(self):
        with self.model.hooks(self.hooks):
            found = heed.lens(self.model, CLEAN, 3)
        wanted = log_softmax(self.logits[0, -1])
        best = np.argsort(-wanted)[:3]
        self.assertEqual(found.tokens[-1, -1].tolist(), best.tolist())
        self.assert_close(found.probabilities[-1, -1], np.exp(wanted[best]), 1e-4)

    def test_attributions_sum_to_the_logit(self):
        wanted = float(self.logits[0, -1, self.answer] - self.logits[0, -1, self.wrong])
        for unit in ("component", "head", "neuron", "source"):
            with self.model.hooks(self.hooks):
                found = heed.attribute_logit(self.model, CLEAN, self.answer, self.wrong, unit=unit)
            self.assertAlmostEqual(float(found.values.sum()), wanted, places=3, msg=unit)
        with self.model.hooks([("pattern1", look_at_the_first)]):
            logits = self.model(CLEAN)
            found = heed.attribute_logit(self.model, CLEAN, self.answer, self.wrong, unit="source")
        self.assertAlmostEqual(float(found.values.sum()),
                               float(logits[0, -1, self.answer] - logits[0, -1, self.wrong]),
                               places=3)

    def test_heads(self):
        for name in ("pattern1", "attn_scores1"):
            def first_alone(values, hook):
                if name.startswith("pattern"):
                    return look_at_the_first(values, hook)
                values[..., 1:] = -np.inf
                return None

            with self.model.hooks([(name, first_alone)]):
                found = heed.heads(self.model, CLEAN)
            self.assert_close(found["first"][1], np.ones(self.model.cfg.n_heads), 1e-6)
            self.assertTrue((found["first"][0] < 1).all())

    def test_evaluation(self):
        with self.model.hooks(self.hooks):
            found = heed.evaluate(self.model, self.ids[0])
            wanted = self.model.loss(CLEAN)
        self.assertAlmostEqual(found.loss, wanted, places=5)
        self.assertGreater(abs(found.loss - heed.evaluate(self.model, self.ids[0]).loss), 1e-4)

    def test_token_attribution_reads_and_refuses(self):
        seen = []
        with self.model.hooks([("resid_post0", lambda values, hook: seen.append(values.shape))]):
            found = heed.attribute_tokens(self.model, CLEAN, self.answer)
        self.assertTrue(seen)
        plain = heed.attribute_tokens(self.model, CLEAN, self.answer)
        self.assert_close(found.values, plain.values, 1e-6)
        with self.model.hooks(self.hooks), self.assertRaisesRegex(heed.errors.Unsupported, "pass"):
            heed.attribute_tokens(self.model, CLEAN, self.answer)

    def test_sweeps(self):
        model = self.model
        corrupted = self.ids[0].copy()
        corrupted[list(model.to_str_tokens(CLEAN)).index(" blue")] = model.to_single_token(" black")
        metric = lambda logits: float(logits[0, -1, self.answer] - logits[0, -1, self.wrong])  # noqa: E731
        with model.hooks(self.hooks):
            _, cache = model.run_with_cache(self.ids, ["resid_pre", "z", "pattern"])
            for grid, name in (("resid_pre", "resid_pre"), ("attn_head_out", "z"),
                               ("attn_head_pattern", "pattern")):
                found = heed.patching.sweep(model, self.ids, corrupted, grid, self.answer, self.wrong)
                self.assertAlmostEqual(found.clean, metric(self.logits), places=3)
                for layer, column in ((0, 1), (2, 2), (3, 0)):
                    def setter(values, at, clean):
                        clean = np.asarray(clean)
                        if name == "pattern":
                            values[:, at[1]] = clean[:, at[1]]
                        elif name == "z":
                            values[:, :, at[1]] = clean[:, :, at[1]]
                        else:
                            values[:, at[1]] = clean[:, at[1]]

                    wanted = heed.patching.generic_activation_patch(
                        model, corrupted, cache, metric, setter, name, [(layer, column)])
                    self.assertAlmostEqual(found.values[layer, column], float(wanted[0]), places=3,
                                           msg=f"{grid} {layer} {column}")
            with self.assertRaisesRegex(heed.errors.Unsupported, "hooks or edits"):
                heed.patching.sweep(model, self.ids, corrupted, "resid_pre", self.answer, self.wrong,
                                    results="unused.json")

    def test_interventions_on_top_of_hooks(self):
        with self.model.hooks(self.hooks):
            edited = edit.apply(self.model, edit.zero("L1H0"))
        found = edited(CLEAN)
        wanted = self.model.run_with_hooks(CLEAN, self.hooks + [
            ("z1", lambda values, hook: values.__setitem__((slice(None), slice(None), 0), 0))])
        self.assert_close(found, wanted, 1e-5)
        # What a text is compared with obeys the hooks, too.
        with self.model.hooks(self.hooks):
            same = edit.apply(self.model, edit.take_from("resid_post2", CLEAN))
            self.assert_close(same(CLEAN), self.logits, 1e-5)


class EditedModels(TestCase):
    def setUp(self):
        self.model = starter()
        self.edited = edit.apply(self.model, edit.zero("L2H3"), edit.scale("mlp_out1", 0.5))
        self.hooks = [("z2", zero_head), ("mlp_out1", halve)]
        self.logits = self.model.run_with_hooks(CLEAN, self.hooks)

    def test_is_a_model_everywhere(self):
        edited, model = self.edited, self.model
        self.assertIsInstance(edited, heed.Model)
        self.assert_close(edited(CLEAN), self.logits, 1e-5)
        token = int(np.argmax(self.logits[0, -1]))
        self.assertEqual(heed.next_words(edited, CLEAN, 1)[0][0], token)
        self.assertEqual(heed.lens(edited, CLEAN, 1).tokens[-1, -1, 0], token)
        found = heed.attribute_logit(edited, CLEAN, token, unit="source")
        self.assertAlmostEqual(float(found.values.sum()), float(self.logits[0, -1, token]), places=3)
        self.assertAlmostEqual(heed.evaluate(edited, model.to_tokens(CLEAN)[0]).loss,
                               edited.loss(CLEAN), places=5)
        logits, cache = edited.run_with_cache(CLEAN)
        self.assert_close(logits, self.logits, 1e-5)
        self.assertEqual(float(np.abs(cache["z", 2][:, :, 3]).max()), 0.0)
        self.assert_close(cache["resid_pre", 2], cache["resid_mid", 1] + cache["mlp_out", 1], 1e-5)
        greedy = edited.generate(CLEAN, 6, temperature=0).finish().tokens
        self.assertEqual(greedy, model.generate(CLEAN, 6, temperature=0, fwd_hooks=self.hooks)
                         .finish().tokens)

    def test_batches(self):
        texts = [CLEAN, CLEAN.replace("blue", "black")]
        each = [self.edited(text)[0] for text in texts]
        for row, wanted in zip(self.edited(texts), each):
            self.assert_close(np.squeeze(row), wanted, 1e-5)

    def test_patterns(self):
        edited = edit.apply(self.model, edit.zero("L1H0.pattern"))
        _, cache = edited.run_with_cache(CLEAN)
        pattern = np.asarray(cache["pattern", 1])
        self.assertEqual(float(np.abs(pattern[:, 0]).max()), 0.0)
        self.assert_close(pattern[:, 1].sum(-1), np.ones_like(pattern[:, 1, :, 0]), 1e-5)
        self.assertEqual(float(heed.heads(edited, CLEAN)["first"][1, 0]), 0.0)

    def test_hooks_of_its_own(self):
        with self.edited.hooks([("resid_post0", halve)]):
            found = heed.next_words(self.edited, CLEAN, 1)
        wanted = self.model.run_with_hooks(CLEAN, self.hooks + [("resid_post0", halve)])
        self.assertAlmostEqual(found[0][2], float(wanted[0, -1].max()), places=3)

    def test_take_from_a_shorter_text_is_refused(self):
        shorter = self.model.to_tokens(CLEAN)[0][:4]
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "a text of 4 tokens"):
            edit.apply(self.model, edit.take_from("resid_post1", shorter))(CLEAN)
        found = edit.apply(self.model, edit.take_from("resid_post1@0-3", shorter))(CLEAN)
        self.assert_close(found, self.model(CLEAN), 1e-5)
