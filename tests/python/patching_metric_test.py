"""Sweeps of own metrics and of several prompts, and TransformerLens's arguments for them."""

import unittest

import numpy as np

import heed
from heed import patching
from support import TestCase, starter

CLEAN = "A fluffy blue hare crossed the foggy forest. Behind a tree it met a fox. The hare"
CORRUPTED = "A fluffy blue hare crossed the foggy forest. Behind a tree it met a owl. The hare"
PAIRS = [(CLEAN, CORRUPTED),
         ("The fox waited in the forest, and the hare saw the fox",
          "The fox waited in the forest, and the hare saw the owl")]
GRIDS = ("resid_pre", "resid_mid", "attn_out", "mlp_out", "attn_head_out", "attn_head_q",
         "attn_head_k", "attn_head_v", "attn_head_pattern", "attn_head_out_by_pos",
         "attn_head_q_by_pos", "attn_head_pattern_by_pos")


class OwnMetrics(TestCase):
    def setUp(self):
        self.model = starter()
        shapes = [self.model.to_tokens(text).shape for pair in PAIRS for text in pair]
        self.assertEqual([shapes[0], shapes[2]], [shapes[1], shapes[3]])
        last = self.model(CLEAN)[0, -1]
        self.answer, self.wrong = (int(token) for token in np.argsort(-last)[:2])

    def difference(self, logits):
        return (logits[:, -1, self.answer] - logits[:, -1, self.wrong]).mean()

    def with_gradient(self, logits):
        gradient = np.zeros_like(logits)
        gradient[:, -1, self.answer] = 1 / len(logits)
        gradient[:, -1, self.wrong] = -1 / len(logits)
        return self.difference(logits), gradient

    def assert_same_sweep(self, found, wanted, tolerance=1e-5):
        scale = np.nanmax(np.abs(wanted.values))
        np.testing.assert_allclose(found.values, wanted.values, atol=tolerance * scale, rtol=0)
        np.testing.assert_allclose([found.clean, found.corrupted],
                                   [wanted.clean, wanted.corrupted], atol=tolerance * scale)
        self.assertEqual((found.row_labels, found.column_labels),
                         (wanted.row_labels, wanted.column_labels))

    def test_a_function_of_logits_is_the_metric(self):
        for grid in GRIDS:
            with self.subTest(grid):
                known = patching.sweep(self.model, CLEAN, CORRUPTED, grid, self.answer, self.wrong)
                self.assertGreater(np.ptp(known.values), 1e-3)
                own = patching.sweep(self.model, CLEAN, CORRUPTED, grid, metric=self.difference)
                self.assert_same_sweep(own, known)
                known = patching.sweep(self.model, CLEAN, CORRUPTED, grid, self.answer, self.wrong,
                                       method="attribution")
                own = patching.sweep(self.model, CLEAN, CORRUPTED, grid, metric=self.with_gradient,
                                     method="attribution")
                self.assert_same_sweep(own, known, 3e-5)

    def test_of_edges_and_of_a_translator(self):
        options = dict(grid="edge", layer=1, head=2)
        known = patching.sweep(self.model, CLEAN, CORRUPTED, answer=self.answer, wrong=self.wrong,
                               **options)
        own = patching.sweep(self.model, CLEAN, CORRUPTED, metric=self.difference, **options)
        np.testing.assert_array_equal(np.isnan(own.values), np.isnan(known.values))
        self.assert_same_sweep(own, known)
        translator = heed.load("translator")
        last = translator(source="A dog runs.", target="Ein")[0, -1]
        answer, wrong = (int(token) for token in np.argsort(-last)[:2])
        options = dict(grid="attn_head_out", target="Ein", site="cross")
        known = patching.sweep(translator, "A dog runs.", "A cat runs.", answer=answer, wrong=wrong,
                               **options)
        own = patching.sweep(translator, "A dog runs.", "A cat runs.", **options,
                             metric=lambda logits: logits[0, -1, answer] - logits[0, -1, wrong])
        self.assert_same_sweep(own, known)

    def test_several_prompts(self):
        cleans, corrupted = ([pair[i] for pair in PAIRS] for i in (0, 1))
        answers, wrongs = [self.answer, self.wrong], [self.wrong, self.answer]
        alone = [patching.sweep(self.model, *pair, "attn_head_out", a, w)
                 for pair, a, w in zip(PAIRS, answers, wrongs)]
        mean = patching.sweep(self.model, cleans, corrupted, "attn_head_out", answers, wrongs)
        values = np.stack([each.values for each in alone])
        np.testing.assert_allclose(mean.values, values.mean(0), rtol=1e-12)
        np.testing.assert_allclose(mean.standard_errors, np.abs(values[0] - values[1]) / 2,
                                   rtol=1e-9, atol=1e-12)
        self.assertAlmostEqual(mean.clean, np.mean([each.clean for each in alone]))

        def metric(logits):
            self.assertEqual(logits.shape, (2, 1, self.model.cfg.d_vocab))
            return np.mean([logits[b, -1, answers[b]] - logits[b, -1, wrongs[b]] for b in range(2)])

        own = patching.sweep(self.model, cleans, corrupted, "attn_head_out", metric=metric)
        np.testing.assert_allclose(own.values, mean.values, atol=1e-5)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "different lengths"):
            patching.sweep(self.model, cleans, corrupted, "resid_pre", answers, wrongs)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "2 tokens for|3 tokens for"):
            patching.sweep(self.model, cleans, corrupted, "attn_head_out", [1, 2, 3], wrongs)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "1 clean prompts and 2"):
            patching.sweep(self.model, CLEAN, corrupted, "attn_head_out", answers, wrongs)

    def test_arguments_of_transformer_lens(self):
        tokens = self.model.to_tokens([CORRUPTED, CORRUPTED])
        _, cache = self.model.run_with_cache([CLEAN, CLEAN])
        layers, heads = self.model.cfg.n_layers, self.model.cfg.n_heads
        positions = tokens.shape[1]
        wanted = patching.sweep(self.model, CLEAN, CORRUPTED, "attn_head_out_by_pos", self.answer,
                                self.wrong).values.reshape(layers, heads, positions)
        found = patching.get_act_patch_attn_head_out_by_pos(self.model, tokens, cache,
                                                            self.difference)
        self.assertEqual(found.shape, (layers, positions, heads))
        np.testing.assert_allclose(found, wanted.transpose(0, 2, 1), atol=1e-5)
        every = patching.get_act_patch_block_every(self.model, tokens, cache, self.difference)
        self.assertEqual(every.shape, (3, layers, positions))
        every = patching.get_act_patch_attn_head_all_pos_every(self.model, tokens, cache,
                                                               self.difference)
        self.assertEqual(every.shape, (5, layers, heads))
        every = patching.get_act_patch_attn_head_by_pos_every(self.model, tokens, cache,
                                                              self.difference)
        self.assertEqual(every.shape, (5, layers, positions, heads))
        # Beside a pass for each cell.
        one = patching.generic_activation_patch(
            self.model, tokens, cache, self.difference,
            lambda values, at, clean: np.array(clean), "resid_pre", [(layer,) for layer in range(2)])
        np.testing.assert_allclose(one, self.difference(self.model(CLEAN)[:, -1:]), atol=1e-5)

    def test_what_is_refused(self):
        for options, message in (
                (dict(metric=self.difference, answer=3), "neither answer"),
                (dict(metric=self.difference, results="cells.txt"), "neither answer"),
                (dict(metric="entropy", answer=1, wrong=2), "expected logit_difference"),
                (dict(metric=3), "function of logits"),
                (dict(metric=self.difference, method="attribution"), "expected a pair"),
                (dict(metric=self.with_gradient, method="attribution", grid="edge"), "edge")):
            with self.subTest(message), self.assertRaisesRegex(heed.errors.InvalidArgument, message):
                patching.sweep(self.model, CLEAN, CORRUPTED, **options)

        class Own(Exception):
            pass

        def failing(logits):
            raise Own("mine")

        with self.assertRaisesRegex(Own, "mine"):
            patching.sweep(self.model, CLEAN, CORRUPTED, metric=failing)


if __name__ == "__main__":
    unittest.main()
