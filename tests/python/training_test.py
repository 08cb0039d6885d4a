import gc
import pathlib
import tempfile

import numpy as np

import heed
from support import TestCase

Wrong = heed.errors.InvalidArgument
TEXT = "\n".join(heed.microworld.story(1, index)["text"] for index in range(60))
SETTINGS = {"steps": 6, "layers": 2, "heads": 2, "channels": 16, "context": 32, "batch_size": 2,
            "weight_decay": 0, "warmup_steps": 0, "precision": "f32"}


class Training(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.runs = 0

    def train(self, settings=(), **options):
        self.runs += 1
        return heed.train(text=TEXT, out=str(self.folder / f"run{self.runs}"),
                          settings={**SETTINGS, **dict(settings)}, **options)

    def losses(self, run):
        return [loss for _, loss in run.finish().result["losses"]]

    def test_training(self):
        text = "\n".join(heed.microworld.story(1, index)["text"] for index in range(60))
        settings = {"steps": 6, "layers": 1, "heads": 2, "channels": 16, "context": 32,
                    "batch_size": 2, "precision": "f32"}
        with tempfile.TemporaryDirectory() as folder:
            out = str(pathlib.Path(folder) / "run")
            run = heed.train(text=text, out=out, settings=settings)
            steps = []
            for step in run:
                if not steps or step.step != steps[-1].step:
                    steps.append(step)
                if step.step == 3:
                    run.stop()
            self.assertEqual([step.step for step in steps][:3], [1, 2, 3])
            self.assertTrue(run.result["interrupted"])
            rest = heed.train(out=out, resume=True).finish()
            self.assertEqual(rest.result["steps"], 6)
            self.assertEqual(rest.model().cfg.n_layers, 1)
            # the same as a run that was never stopped
            whole = heed.train(text=text, out=str(pathlib.Path(folder) / "whole"),
                               settings=settings).finish()
            self.assertEqual(whole.result["losses"][-1], rest.result["losses"][-1])
            with self.assertRaises(heed.errors.Conflict):
                heed.train(text=text, out=out, settings=settings).finish()
            dropped = heed.train(text=text, out=str(pathlib.Path(folder) / "dropped"),
                                 settings=settings)
            next(dropped)
            del dropped  # stops
            with self.assertRaisesRegex(Wrong, "did you mean|no setting"):
                heed.train(text=text, out=str(pathlib.Path(folder) / "other"),
                           settings={"stepps": 3}).finish()
        with self.assertRaisesRegex(Wrong, "needs a directory"):
            heed.train(text=text)

    def test_hooks_that_change_nothing_change_no_bit(self):
        plain = self.losses(self.train())
        seen = []

        def look(values, hook):
            seen.append((hook.name, values.shape))

        names = ["*hook_z", "pattern", "result", "blocks.0.hook_resid_pre", "embed", "normalized",
                 "unembed.hook_in"]
        hooked = self.losses(self.train(fwd_hooks=[(name, look) for name in names], bwd_hooks=[
            (name, lambda g, hook: g) for name in names[:1] + names[3:]]))
        self.assertEqual(hooked, plain)
        self.assertEqual(len([name for name, _ in seen if name == "blocks.1.attn.hook_z"]), 6)
        self.assertIn(("blocks.1.attn.hook_z", (2, 32, 2, 8)), seen)
        self.assertIn(("blocks.0.attn.hook_pattern", (2, 2, 32, 32)), seen)
        # recomputed activations too, and parts of a step
        self.assertEqual(self.losses(self.train({"recompute": True},
                                                fwd_hooks=[("z", look)])), plain)
        del seen[:]
        self.train({"accumulation": 3, "steps": 2}, fwd_hooks=[("z0", look)]).finish()
        self.assertEqual(len(seen), 6)

    def test_what_hooks_leave_is_what_is_trained(self):
        still = self.train()
        still.learning_rate_factor = 0
        start = still.finish().model()

        def zero(values, hook):
            values[...] = 0

        def moved(run):
            model = run.finish().model()
            return {name: float(np.abs(model.weight(name) - start.weight(name)).max())
                    for name in ("blocks.0.attn.W_Q", "blocks.0.attn.W_O", "blocks.0.mlp.W_in",
                                 "blocks.1.attn.W_Q", "embed.W_E")}

        plain = moved(self.train())
        self.assertTrue(all(value > 0 for value in plain.values()), plain)
        # Neither z nor its gradient: what computes it gets none.
        without = moved(self.train(fwd_hooks=[("z0", zero)], bwd_hooks=[("z0", zero)]))
        self.assertEqual(without["blocks.0.attn.W_Q"], 0)
        self.assertEqual(without["blocks.0.attn.W_O"], 0)  # z is what its gradient is made of
        self.assertGreater(without["blocks.0.mlp.W_in"], 0)
        # A changed gradient alone: training stops below the first block's end.
        cut = moved(self.train(bwd_hooks=[("resid_post0", zero)]))
        self.assertEqual((cut["blocks.0.attn.W_Q"], cut["blocks.0.mlp.W_in"]), (0, 0))
        self.assertGreater(cut["blocks.1.attn.W_Q"], 0)
        # Backward goes on from a changed value: W_O's gradient is made of the z that a hook left.
        ones = moved(self.train(fwd_hooks=[("z0", lambda v, hook: np.ones_like(v))]))
        self.assertGreater(ones["blocks.0.attn.W_O"], 0)
        self.assertGreater(ones["blocks.0.attn.W_Q"], 0)

    def test_hooks_in_an_encoder_and_a_translator(self):
        shapes = set()
        masked = self.train({"vocabulary_size": 300}, preset="shakespeare-masked",
                            fwd_hooks=[("z1", lambda v, hook: shapes.add(v.shape))])
        losses = self.losses(masked)
        self.assertEqual((len(losses), shapes), (6, {(2, 32, 2, 8)}))
        pairs = self.folder / "pairs.tsv"
        pairs.write_text("\n".join(f"the dog number {i} runs\tder Hund Nummer {i} rennt"
                                   for i in range(60)))
        seen = set()

        def translator(out, **options):
            return heed.train(pairs=[str(pairs)], out=str(self.folder / out), settings={
                "steps": 3, "layers": 1, "heads": 2, "channels": 16, "context": 64,
                "batch_tokens": 60, "precision": "f32", "vocabulary_size": 300}, **options)

        plain = self.losses(translator("plain"))
        hooked = translator("hooked", fwd_hooks=[("cross.z", lambda v, hook: seen.add(hook.name))],
                            bwd_hooks=[("encoder.z", lambda g, hook: seen.add(hook.name))])
        self.assertEqual(self.losses(hooked), plain)
        self.assertEqual(seen, {"decoder.0.cross_attn.hook_z", "encoder.0.attn.hook_z"})
        with self.assertRaisesRegex(heed.errors.Unsupported, "while a translator is trained"):
            translator("other", fwd_hooks=[("cross.pattern", lambda v, hook: v)]).finish()

    def test_bad_hooks(self):
        with self.assertRaisesRegex(heed.errors.Unsupported, "computes again"):
            self.train(fwd_hooks=[("pattern0", lambda v, hook: v * 0)]).finish()
        with self.assertRaisesRegex(heed.errors.Unsupported, "for reading alone"):
            self.train(bwd_hooks=[("pattern0", lambda g, hook: g * 2)]).finish()
        with self.assertRaisesRegex(heed.errors.Unsupported, "dropout"):
            self.train({"attention_dropout": 0.1},
                       fwd_hooks=[("pattern0", lambda v, hook: None)]).finish()
        with self.assertRaisesRegex(Wrong, "did you mean"):
            self.train(fwd_hooks=[("zz0", lambda v, hook: None)]).finish()
        with self.assertRaisesRegex(Wrong, "expected a string or a glob"):
            self.train(fwd_hooks=[(lambda name: True, lambda v, hook: None)])
        with self.assertRaisesRegex(Wrong, r"shape \(1,\), expected \(2, 32, 2, 8\)"):
            self.train(fwd_hooks=[("z0", lambda v, hook: np.zeros(1))]).finish()

    def test_a_raising_hook_ends_the_run_which_can_go_on(self):
        calls = []

        def fail(values, hook):
            calls.append(hook.name)
            if len(calls) == 4:
                raise KeyError("the fourth")

        run = self.train({"checkpoint_every": 1}, fwd_hooks=[("z0", fail)])
        steps = []
        with self.assertRaisesRegex(KeyError, "the fourth"):
            for step in run:
                steps.append(step.step)
        self.assertEqual(steps[-1], 3)
        self.assertIsNone(run.result)
        rest = heed.train(out=run.out, resume=True).finish()
        self.assertEqual(rest.result["steps"], 6)
        self.assertEqual(rest.result["losses"][-1][1], self.losses(self.train())[-1])

    def test_steering(self):
        run = self.train()
        rates = []
        for step in run:
            if step.validation_loss is not None:
                continue
            rates.append(step.learning_rate)
            run.learning_rate_factor = 0.5 if step.step < 3 else 0
        plain = [step.learning_rate for step in self.train() if step.validation_loss is None]
        self.assertAlmostEqual(rates[0], plain[0])
        self.assertAlmostEqual(rates[1], plain[1] / 2)
        self.assertEqual(rates[4], 0)
        with self.assertRaisesRegex(Wrong, "learning_rate_factor is -1"):
            run.learning_rate_factor = -1
        # Stopped out of a hook, within a step; a run that is dropped meanwhile ends as well.
        run = self.train({"steps": 1000}, fwd_hooks=[("z0", lambda v, hook: run.stop())])
        self.assertEqual(list(run), [])
        self.assertTrue(run.result["interrupted"])
        dropped = self.train({"steps": 1000}, fwd_hooks=[("z0", lambda v, hook: None)])
        next(dropped)
        del dropped
        gc.collect()


if __name__ == "__main__":
    import unittest
    unittest.main()
