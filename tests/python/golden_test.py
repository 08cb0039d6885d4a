"""Every point of every family beside PyTorch, to 1e-5 of its largest number, and beside the command
line, to the bit."""

import pathlib
import tempfile

import numpy as np

import heed
from support import GOLDEN, TestCase, golden, program

# of a point's largest number
TOLERANCE = 1e-5
PAIRS = ("bart", "marian", "t5", "t5_current", "t5_gated")
ALL_PAIRS = PAIRS + ("torch_post", "torch_pre")


def traced(directory, tokens, *more):
    """All points of the command line's trace, by name."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "trace.npz"
        program("trace", "-m", str(directory), "--tokens", ",".join(map(str, tokens)), *more,
                "--points", "*", "--out", str(out), "--json")
        with np.load(out) as arrays:
            return {name: arrays[name] for name in arrays.files if not name.endswith("tokens") and name != "notes"}


class Goldens(TestCase):
    def check_points(self, wanted, run, name):
        """Wanted points beside a whole cache, copies of each alone, and what hooks see."""
        logits, cache = run()
        points = [key[len("probe."):] for key in wanted if key.startswith("probe.")]
        self.assertGreater(len(points), 2)
        seen = {}
        hooked, _ = run(names_filter=points[:1], fwd_hooks=[
            (point, lambda values, hook: seen.update({hook.name: values})) for point in points])
        self.assert_same_bits(hooked, logits, name)
        for point in points:
            what = f"{name} {point}"
            self.assert_close(np.asarray(cache[point]), wanted["probe." + point], TOLERANCE, what)
            _, filtered = run(names_filter=point)
            self.assert_same_bits(filtered[point], cache[point], what)
            self.assert_same_bits(seen[point], cache[point], what + " in a hook")
        return logits, cache

    def check_trace(self, arrays, cache, name):
        """Every point that the command line writes, to the bit."""
        self.assertLessEqual(set(cache), set(arrays), name)
        for point, values in arrays.items():
            self.assert_same_bits(values, cache[point], f"{name} {point} of the command line")

    def families(self):
        families = sorted(path for path in (GOLDEN / "families").iterdir() if path.is_dir())
        self.assertGreaterEqual(len(families), 13)
        return families

    def test_every_family(self):
        for directory in self.families():
            with self.subTest(directory.name):
                wanted = golden(directory / "golden.safetensors")
                model = heed.load(str(directory))
                logits, _ = self.check_points(
                    wanted, lambda model=model, tokens=wanted["tokens"], **options:
                    model.run_with_cache(tokens, **options), directory.name)
                self.assert_close(logits, wanted["logits"], TOLERANCE, f"{directory.name} logits")

    def test_every_family_equals_the_command_line(self):
        for directory in self.families() + [GOLDEN / "pairs" / "bert"]:
            with self.subTest(directory.name):
                model = heed.load(str(directory))
                tokens = [3, 1, 4, 1, 5, 9, 2, 6]
                _, cache = model.run_with_cache(tokens)
                arrays = traced(directory, tokens)
                self.assertEqual(sorted(arrays), sorted(model.hook_names))
                self.check_trace(arrays, cache, directory.name)

    def test_losses(self):
        for name in ("gpt2", "llama", "neox"):
            wanted = golden(GOLDEN / "families" / name / "golden.safetensors")
            model = heed.load(str(GOLDEN / "families" / name))
            # targets are the next tokens, but for the last and those that are ignored
            losses = model.loss(wanted["tokens"], per_token=True)
            logits = wanted["logits"].astype(np.float64)
            top = logits.max(-1, keepdims=True)
            log_softmax = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
            following = np.take_along_axis(log_softmax[:, :-1], wanted["tokens"][:, 1:, None], -1)
            self.assert_close(losses, -following[..., 0], TOLERANCE, name)
            both = model(wanted["tokens"], return_type="both")
            self.assertAlmostEqual(both[1], float(losses.mean()), places=5)

    def test_masked_encoder(self):
        directory = GOLDEN / "pairs" / "bert"
        wanted = golden(directory / "golden.safetensors")
        model = heed.load(str(directory))
        self.assertEqual(model.cfg.norm_placement, "post")
        starts = wanted["source_starts"]
        for first, last in zip(starts, starts[1:]):
            logits = model(wanted["source"][first:last], token_types=wanted["token_types"][first:last])
            self.assert_close(logits[0], wanted["logits"][first:last], TOLERANCE, "bert logits")
        tokens, types = wanted["source"][:starts[1]], wanted["token_types"][:starts[1]]
        self.assertEqual(sorted(set(types)), [0, 1])
        self.check_points(wanted, lambda **options: model.run_with_cache(
            tokens, token_types=types, **options), "bert")
        typed = model(tokens, token_types=types)
        self.assertFalse(np.array_equal(model(tokens), typed))
        # A hook of the words' embedding leaves those of the types.
        self.assert_same_bits(model.run_with_hooks(tokens, [("embed", lambda v, hook: v)],
                                                   token_types=types), typed)
        moved = [("embed", lambda v, hook: v + 0.1)]
        self.assertFalse(np.array_equal(model.run_with_hooks(tokens, moved, token_types=types),
                                        model.run_with_hooks(tokens, moved)))
        with self.assertRaisesRegex(heed.errors.InvalidArgument, r"token_types have the shape \(1, 2\)"):
            model(tokens, token_types=types[:2])
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "token type 7 is outside"):
            model(tokens, token_types=types + 7)

    def test_every_translator(self):
        for name in ALL_PAIRS:
            with self.subTest(name):
                directory = GOLDEN / "pairs" / name
                wanted = golden(directory / "golden.safetensors")
                model = heed.load(str(directory))
                sources, targets = (np.split(wanted[side], wanted[side + "_starts"][1:-1])
                                    for side in ("source", "target"))
                rows = np.split(wanted["logits"], wanted["target_starts"][1:-1])
                for source, target, logits in zip(sources, targets, rows):
                    self.assert_close(model(source=source, target=target)[0], logits, TOLERANCE, f"{name} logits")
                losses = np.concatenate([model.loss(source=source, target=target, per_token=True)[0]
                                         for source, target in zip(sources, targets)])
                counted = wanted["targets"] >= 0
                self.assertAlmostEqual(float(losses[counted].mean()), float(wanted["loss"][0]),
                                       places=4)
                if name in PAIRS:
                    self.check_points(wanted, lambda **options: model.run_with_cache(
                        source=sources[0], target=targets[0], **options), name)
                _, cache = model.run_with_cache(source=sources[1], target=targets[1],
                                                names_filter="*")
                self.check_trace(traced(directory, sources[1], "--target-tokens",
                                        ",".join(map(str, targets[1]))), cache, name)


if __name__ == "__main__":
    import unittest
    unittest.main()
