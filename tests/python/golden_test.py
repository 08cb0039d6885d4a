"""Every point of every family beside PyTorch, to 1e-5 of its largest number."""

import numpy as np

import heed
from support import GOLDEN, TestCase, golden

# of a point's largest number
TOLERANCE = 1e-5


class Goldens(TestCase):
    def check(self, directory):
        wanted = golden(directory / "golden.safetensors")
        model = heed.load(str(directory))
        tokens = wanted["tokens"]
        logits, cache = model.run_with_cache(tokens)
        self.assert_close(logits, wanted["logits"], TOLERANCE, f"{directory.name} logits")
        points = [name for name in wanted if name.startswith("probe.")]
        self.assertGreater(len(points), 2)
        for name in points:
            point = name[len("probe."):]
            self.assert_close(np.asarray(cache[point]), wanted[name], TOLERANCE,
                              f"{directory.name} {point}")
            # the same as a copy, with a hook, and inside a hook
            _, filtered = model.run_with_cache(tokens, point)
            self.assert_same_bits(filtered[point], cache[point], f"{directory.name} {point}")
        seen = {}
        names = [name[len("probe."):] for name in points
                 if name != "probe.unembed.hook_out"]
        hooked = model.run_with_hooks(
            tokens, [(name, lambda values, hook: seen.update({hook.name: values}))
                     for name in names])
        self.assert_same_bits(hooked, logits, directory.name)
        for name in names:
            self.assert_same_bits(seen[name], cache[name], f"{directory.name} {name} in a hook")

    def test_every_family(self):
        families = sorted(path for path in (GOLDEN / "families").iterdir() if path.is_dir())
        self.assertGreaterEqual(len(families), 13)
        for directory in families:
            with self.subTest(directory.name):
                self.check(directory)

    def test_losses(self):
        for name in ("gpt2", "llama", "neox"):
            wanted = golden(GOLDEN / "families" / name / "golden.safetensors")
            model = heed.load(str(GOLDEN / "families" / name))
            counted = wanted["targets"] >= 0
            # targets are the next tokens, but for the last and those that are ignored
            losses = model.loss(wanted["tokens"], per_token=True)
            logits = wanted["logits"].astype(np.float64)
            top = logits.max(-1, keepdims=True)
            log_softmax = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
            following = np.take_along_axis(log_softmax[:, :-1], wanted["tokens"][:, 1:, None], -1)
            self.assert_close(losses, -following[..., 0], TOLERANCE, name)
            self.assertTrue(counted.any())
            both = model(wanted["tokens"], return_type="both")
            self.assertAlmostEqual(both[1], float(losses.mean()), places=5)

    def test_encoder(self):
        directory = GOLDEN / "pairs" / "bert"
        wanted = golden(directory / "golden.safetensors")
        model = heed.load(str(directory))
        self.assertEqual(model.cfg.norm_placement, "post")
        names = [name for name in wanted if name.startswith("probe.")]
        self.assertTrue(names or "logits" in wanted)


if __name__ == "__main__":
    import unittest
    unittest.main()
