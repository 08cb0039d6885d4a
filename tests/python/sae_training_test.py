"""Training of sparse dictionaries, and what their features are."""

import os
import tempfile
import unittest

import numpy as np

import heed
from support import TestCase, starter

POINT = "blocks.2.hook_resid_pre"


def stories(count=400):
    return "\n\n".join(heed.microworld.story(1, index)["text"] for index in range(count))


class Training(TestCase):
    def setUp(self):
        self.model = starter()
        self.text = stories()

    def test_a_dictionary_is_trained_saved_and_surveyed(self):
        with tempfile.TemporaryDirectory() as directory:
            out, seen = os.path.join(directory, "sae"), []
            found = heed.sae.train(self.model, POINT, 256, text=self.text, out=out, k=8, steps=120,
                                   batch=256, buffer=2048, context_size=64, lr=2e-3,
                                   evaluated_tokens=1024, progress=seen.append)
            self.assertEqual([found.steps, len(seen), seen[-1]["step"]], [120, 120, 120])
            self.assertLess(seen[-1]["loss"], 0.7 * seen[0]["loss"])
            self.assertGreater(found.quality.loss_recovered, 0.5)
            self.assertGreater(found.quality.loss_with_zeros, found.quality.loss + 0.5)
            self.assertLessEqual(found.quality.l0, 8)

            sae = heed.sae.load(out)
            self.assertEqual([sae.cfg.architecture, sae.cfg.k, sae.cfg.hook_name],
                             ["topk", 8, POINT])
            lengths = np.linalg.norm(sae.W_dec, axis=1)
            self.assert_close(lengths, np.full(256, lengths.mean()), 1e-5)
            again = heed.sae.evaluate(self.model, sae, self.text, 1024, 64)
            self.assertGreater(again.loss_recovered, 0.5)

            survey = heed.sae.features(self.model, sae, self.text, count=3, tokens=2048,
                                       context_size=64)
            _, cache = self.model.run_with_cache_with_saes(
                self.model.to_tokens(self.text)[:, :64], saes=[sae], names_filter="hook_sae_acts_post")
            self.assertEqual(len(survey), 3)
            self.assertEqual(survey.densities.shape, (256,))
            feature = survey[0]
            self.assertAlmostEqual(feature.density, float(survey.densities.max()), places=6)
            activations = [context.activation for context in feature.contexts]
            self.assertEqual(activations, sorted(activations, reverse=True))
            for context in feature.contexts:
                self.assertEqual(context.activations[context.peak], np.float32(context.activation))
                if context.position < 64:  # of the first window
                    own = cache[POINT + ".hook_sae_acts_post"][0, context.position, feature.index]
                    self.assertAlmostEqual(context.activation, float(own), delta=1e-4 * abs(own))
            self.assertIn("<table>", survey._repr_html_())
            # The logits that it raises are those of its row through the final norm and unembedding.
            row = sae.W_dec[feature.index]
            direction = row - row.mean() if self.model.cfg.normalization_type == "LN" else row
            scores = (direction * self.model.weight("ln_final.w")) @ self.model.W_U
            self.assertEqual(feature.raises[0][0], int(scores.argmax()))
            self.assertEqual(feature.lowers[0][0], int(scores.argmin()))

            with self.assertRaisesRegex(heed.errors.Error, "holds a dictionary already"):
                heed.sae.train(self.model, POINT, 256, text=self.text, out=out)

    def test_a_transcoder_is_trained_from_one_point_to_another(self):
        read, write = "blocks.1.hook_resid_mid", "blocks.1.hook_mlp_out"
        with tempfile.TemporaryDirectory() as directory:
            found = heed.sae.train(self.model, read, 256, text=self.text, hook_name_out=write, k=16,
                                   steps=150, batch=256, buffer=1024, context_size=64, lr=2e-3,
                                   evaluated_tokens=512, out=directory)
            self.assertGreater(found.quality.explained_variance, 0.3)
            sae = heed.sae.load(directory)
            self.assertTrue(sae.cfg.is_transcoder)
            self.assertEqual([sae.cfg.hook_name, sae.cfg.hook_names_out], [read, [write]])

    def test_an_exception_stops_it_and_the_steps_are_saved(self):
        def stop(now):
            if now["step"] == 3:
                raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaises(KeyboardInterrupt):
                heed.sae.train(self.model, POINT, 64, text=self.text, out=directory, k=4, batch=64,
                               buffer=256, context_size=64, progress=stop)
            self.assertEqual(heed.sae.load(directory).cfg.d_sae, 64)

    def test_rows_of_ones_own(self):
        rows = np.random.default_rng(1).standard_normal((512, 16)).astype(np.float32)
        for settings in ({"k": 6}, {"architecture": "standard", "l1_coefficient": 0.05},
                         {"architecture": "jumprelu", "l0_coefficient": 0.01}):
            trainer = heed.sae.Trainer(64, rows, lr=5e-3, steps=60, **settings)
            losses = [trainer.step(rows)["loss"] for _ in range(60)]
            self.assertLess(losses[-1], 0.6 * losses[0], settings)
            sae = trainer.sae
            self.assertEqual(sae.W_enc.shape, (16, 64))
            # What it says of its last step is what the dictionary of the step before does.
            again = float(((sae(rows) - rows) ** 2).sum(1).mean() / (rows**2).mean())
            self.assertLess(again, 1.1 * losses[-1])
            self.assertEqual(hasattr(sae, "threshold"), "jumprelu" in settings.values())

    def test_what_cannot_be_is_refused_before_the_work(self):
        for changes, message in (
                ({"k": 99}, "k is 99"), ({"architecture": "gated"}, "gated"),
                ({"batch": 512, "buffer": 256}, "buffer that holds at least a step"),
                ({"hook_name_out": "blocks.0.hook_mlp_out"}, "cannot be made of it"),
                ({"context_size": 100000}, "100000"), ({"speed": 3}, "no setting 'speed'")):
            with self.assertRaisesRegex(heed.errors.Error, message):
                heed.sae.train(self.model, POINT, 64, text=self.text, **changes)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "hook_residue"):
            heed.sae.train(self.model, "hook_residue", 64, text=self.text)
        with self.assertRaisesRegex(heed.errors.Error, "MiB"):
            heed.sae.train(self.model, POINT, 1 << 25, text=self.text)

    def test_resampling_revives_features_that_otherwise_stay_dead(self):
        """Two of 32 directions and an offset make a row: many of the features that it begins with point
        away from all rows, have no gradient, and stay as they are."""
        directions = np.random.default_rng(5).standard_normal((32, 16))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)

        def train(architecture, resample_every, steps=1000):
            generator = np.random.default_rng(9)

            def draw():
                return np.float32(directions[generator.integers(0, 32, (256, 2))].sum(1) + 0.75)

            x = draw()
            trainer = heed.sae.Trainer(64, x, x, "read", "written", architecture=architecture,
                                       l1_coefficient=0.01, l0_coefficient=0.005, lr=1e-3, steps=steps,
                                       dead_after=40 * 256, auxiliary_coefficient=0,
                                       resample_every=resample_every)
            resampled = 0
            for _ in range(steps):
                last = trainer.step(x, x)
                resampled += last["resampled_features"]
                x = draw()
            return last, resampled, trainer.sae

        for architecture in ("standard", "jumprelu"):
            with self.subTest(architecture):
                without, none, _ = train(architecture, 0)
                revived, some, _ = train(architecture, 100)
                self.assertEqual(none, 0)
                self.assertGreaterEqual(without["dead_features"], 6)
                self.assertGreaterEqual(some, without["dead_features"])
                self.assertLessEqual(revived["dead_features"], without["dead_features"] // 3)
                self.assertLess(revived["loss"], 0.9 * without["loss"])
        (_, once, first), (_, again, second) = (train("standard", 100, 200) for _ in range(2))
        self.assertGreater(once, 0)
        self.assertEqual(once, again)
        self.assertTrue(np.array_equal(first.W_enc, second.W_enc))


if __name__ == "__main__":
    unittest.main()
