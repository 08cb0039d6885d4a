"""Gradients of own metrics, frozen backward passes, and passes over a part of the layers."""

import importlib.util
import json
import unittest

import numpy as np

import heed
from support import GOLDEN, TestCase, golden, starter

TEXT = "A fluffy blue creature roamed the verdant forest."
HAS_TORCH = importlib.util.find_spec("torch") is not None
# Central differences of f32 passes over steps of 3e-3 of a point's values: the rounding of a pass,
# some 1e-6 of the logits, is up to 1 % of what such a step changes.
STEP = 3e-3
DIFFERENCE_TOLERANCE = 1e-2


class Metrics(TestCase):
    def setUp(self):
        self.model = starter()
        self.tokens = self.model.to_tokens(TEXT)
        self.logits = self.model(self.tokens)
        generator = np.random.default_rng(3)
        self.weights = generator.standard_normal(self.logits.shape).astype(np.float32)
        self.random = generator.standard_normal

    def gradients(self, target, tokens=None, **options):
        _, cache = self.model.run_with_cache(self.tokens if tokens is None else tokens,
                                             ["resid_pre0", "z2", "resid_post3", "embed"],
                                             incl_bwd=True, logit_target=target, **options)
        return cache

    def direction(self, values):
        """As long as the values."""
        return (self.random(values.shape) * np.sqrt((values ** 2).mean())).astype(np.float32)

    def assert_same_gradients(self, found, wanted, tolerance=1e-5):
        for name in ("resid_pre0_grad", "z2_grad", "resid_post3_grad", "hook_embed_grad"):
            self.assertGreater(np.abs(wanted[name]).max(), 0)
            self.assert_close(found[name], wanted[name], tolerance, name)

    def test_weights_of_all_logits_are_those_of_each(self):
        weights = np.zeros_like(self.logits)
        triples = [(2, 17, 1.5), (5, 40, -0.5), (5, 41, 2.0)]
        for position, token, weight in triples:
            weights[0, position, token] = weight
        wanted = self.gradients(triples)
        self.assert_same_gradients(self.gradients(weights), wanted)
        self.assert_same_gradients(self.gradients(weights[0]), wanted)
        self.assert_same_gradients(self.gradients({"logits": weights}), wanted)
        seen = []

        def metric(logits):
            self.assert_same_bits(logits, self.logits)
            seen.append(logits)
            return float((weights * logits).sum()), weights

        found = self.gradients(metric)
        self.assertEqual(len(seen), 1)
        self.assert_same_gradients(found, wanted)
        self.assertAlmostEqual(found.metric, float((weights * self.logits).sum()), places=4)
        self.assertIsNone(wanted.metric)

    def test_a_metric_equals_finite_differences(self):
        def value(logits):
            return float((np.float64(logits) ** 2).mean())

        def metric(logits):
            return value(logits), 2 * logits / logits.size

        cache = self.gradients(metric)
        for name in ("resid_pre0", "z2", "resid_post3"):
            direction = self.direction(cache[name])

            def at(sign):
                def move(values, hook):
                    values += sign * STEP * direction
                return value(self.model.run_with_hooks(self.tokens, [(name, move)]))

            difference = (at(1) - at(-1)) / (2 * STEP)
            found = float((np.float64(cache[name + "_grad"]) * direction).sum())
            self.assertLessEqual(abs(found - difference), DIFFERENCE_TOLERANCE * abs(difference), name)

    def test_weights_of_points(self):
        wanted = self.gradients(self.weights)
        unembedding = self.model.W_U
        at_end = self.weights @ unembedding.T  # what the logits' weights are of unembed.hook_in
        self.assert_same_gradients(self.gradients({"unembed.hook_in": at_end}), wanted, 3e-5)
        # The weights of a point and of what follows from it add up.
        stream = self.random(wanted["resid_post3"].shape).astype(np.float32)
        both = self.gradients({"resid_post3": stream, "logits": self.weights})
        alone = self.gradients({"resid_post3": stream})
        self.assert_same_bits(alone["resid_post3_grad"], stream)
        for name in ("resid_pre0_grad", "z2_grad", "hook_embed_grad"):
            self.assert_close(both[name], alone[name] + wanted[name], 1e-5, name)

    def test_texts_of_different_lengths(self):
        texts = [TEXT, "The murderer was", "A small fox slept near the old tower and"]
        shapes = [self.model(text).shape for text in texts]
        weights = [self.random(shape).astype(np.float32) for shape in shapes]
        stream = [self.random((1, shape[1], self.model.cfg.d_model)).astype(np.float32)
                  for shape in shapes]
        padded = np.zeros((3, max(shape[1] for shape in shapes), self.model.cfg.d_model), np.float32)
        for b, row in enumerate(stream):
            padded[b, :row.shape[1]] = row[0]

        def metric(logits):
            self.assertEqual([part.shape for part in logits], shapes)
            return sum(float((w * part).sum()) for w, part in zip(weights, logits)), weights

        batches = [self.gradients(target, texts)
                   for target in (weights, metric, {"logits": weights}, {"resid_post3": padded})]
        for b, (text, shape) in enumerate(zip(texts, shapes)):
            alone = [self.gradients(target, text)
                     for target in [weights[b]] * 3 + [{"resid_post3": stream[b]}]]
            for batch, one in zip(batches, alone):
                for name in ("resid_pre0_grad", "z2_grad", "resid_post3_grad"):
                    self.assert_close(batch[name][b:b + 1, :shape[1]], one[name], 1e-5, name)

    def test_what_is_no_target_is_refused(self):
        v = self.logits.shape[2]
        for target, message in (
                (np.zeros((1, 2, 3), np.float32), "weights of logits have the shape"),
                (np.full_like(self.logits, np.nan), "not all finite"),
                ({}, "weights nothing"),
                ({"pattern1": np.zeros((1, 8, 10, 10), np.float32)}, "cannot be weighted"),
                ({"resid_post1": np.zeros((1, 2, 3), np.float32)}, "expected that of its values"),
                ({"resid_post": np.zeros((1, 2, 3), np.float32)}, "names 6"),
                (lambda logits: 3.0, "expected a pair"),
                (lambda logits: (3.0, np.zeros((1, 2, v), np.float32)), "expected that of the logits")):
            with self.subTest(message), self.assertRaisesRegex(heed.Error, message):
                self.gradients(target)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "freeze has 'norm'"):
            self.gradients(None, freeze=["norm"])

        class Own(Exception):
            pass

        def failing(logits):
            raise Own("mine")

        with self.assertRaisesRegex(Own, "mine"):
            self.gradients(failing)
        self.assert_same_bits(self.model(self.tokens), self.logits)

    def test_frozen_parts_are_constants(self):
        """Beside passes whose patterns and scales hooks hold where they were."""
        _, cache = self.model.run_with_cache(self.tokens)
        held = {name: np.array(cache[name]) for name in cache
                if name.endswith(("hook_pattern", "hook_scale"))}
        self.assertGreater(len(held), 2 * self.model.cfg.n_layers)
        last = np.argsort(-self.logits[0, -1])
        weights = np.zeros_like(self.logits)
        weights[0, -1, last[0]], weights[0, -1, last[100]] = 1, -1
        free = self.gradients(weights)
        for freeze in (["pattern"], ["scale"], ["pattern", "scale"]):
            found = self.gradients(weights, freeze=freeze)
            hold = [(name, lambda values, hook: held[hook.name]) for name in held
                    if name.endswith(tuple("hook_" + part for part in freeze))]
            for name in ("resid_pre0", "resid_post3"):
                direction = self.direction(cache[name])

                def at(sign):
                    def move(values, hook):
                        values += sign * STEP * direction
                    logits = self.model.run_with_hooks(self.tokens, [(name, move), *hold])
                    return float((np.float64(logits) * weights).sum())

                difference = (at(1) - at(-1)) / (2 * STEP)
                frozen = float((np.float64(found[name + "_grad"]) * direction).sum())
                whole = float((np.float64(free[name + "_grad"]) * direction).sum())
                self.assertLessEqual(abs(frozen - difference),
                                     DIFFERENCE_TOLERANCE * (abs(difference) + 0.1), (freeze, name))
                self.assertGreater(abs(whole - difference), 5 * abs(frozen - difference))

    @unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
    def test_functions_of_torch(self):
        import torch

        def entropy(logits):
            p = torch.log_softmax(logits, -1)
            return -(p.exp() * p).sum(-1).mean()

        found = self.gradients(heed.torch.metric(entropy))
        leaf = torch.from_numpy(np.array(self.logits)).requires_grad_()
        value = entropy(leaf)
        value.backward()
        self.assertAlmostEqual(found.metric, float(value), places=6)
        self.assert_same_gradients(found, self.gradients(leaf.grad.numpy()))
        texts = [TEXT, "The murderer was"]
        ragged = self.gradients(heed.torch.metric(lambda parts: sum(entropy(p) for p in parts)), texts)
        self.assert_close(ragged["resid_pre0_grad"][:1], found["resid_pre0_grad"], 1e-5)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "one number"):
            self.gradients(heed.torch.metric(lambda logits: logits))

    @unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
    def test_torch_differentiates_what_is_around_a_pass(self):
        import torch

        _, cache = self.model.run_with_cache(self.tokens)
        stream = torch.from_numpy(np.array(cache["resid_post", 3])).requires_grad_()
        added = torch.zeros(cache["z", 2].shape, requires_grad=True)
        logits = heed.torch.logits(self.model, self.tokens, replace={"resid_post3": stream * 1.0})
        self.assert_same_bits(logits.detach().numpy(), self.logits)
        (logits * torch.from_numpy(self.weights)).sum().backward()
        wanted = self.gradients(self.weights)
        self.assert_close(stream.grad.numpy(), wanted["resid_post3_grad"], 1e-5)
        logits = heed.torch.logits(self.model, TEXT, add={"z2": 2 * added})
        (logits * torch.from_numpy(self.weights)).sum().backward()
        self.assert_close(added.grad.numpy(), 2 * wanted["z2_grad"], 1e-5)

    @unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
    def test_every_family_equals_torch_with_constants(self):
        """A metric of one's own through PyTorch's whole model, all of it or with patterns and scales
        detached: gradients of the stream and of z in every layer, to 1e-5 of the largest."""
        import torch
        from family_module import Decoder
        from family_parts import Points

        class Frozen(Points):
            def __init__(self, names):
                super().__init__()
                self.frozen = tuple("hook_" + name for name in names)

            def see(self, name, values):
                if self.frozen and name.endswith(self.frozen):
                    return values.detach()
                if name.endswith(("hook_resid_pre", "hook_z")):
                    values = values * 1.0
                    values.register_hook(lambda gradient: self.__setitem__(name, gradient))
                return values

        def metric(logits):
            return (torch.log_softmax(logits, -1).exp() ** 2).sum()

        seen = 0
        for directory in sorted(path for path in (GOLDEN / "families").iterdir() if path.is_dir()):
            model = Decoder(json.loads((directory / "config.json").read_text())).double()
            weights = golden(directory / "model.safetensors")
            with torch.no_grad():
                for name, parameter in model.in_file().items():
                    parameter.copy_(torch.from_numpy(weights[name].astype(np.float64)))
            own = heed.load(str(directory))
            tokens = np.arange(1, 2 * 9 + 1).reshape(2, 9) % own.cfg.d_vocab
            for freeze in ([], ["pattern"], ["scale"], ["pattern", "scale"]):
                points = Frozen(freeze)
                metric(model(torch.from_numpy(tokens), points)).backward()
                _, cache = own.run_with_cache(tokens, ["resid_pre", "z"], incl_bwd=True,
                                              logit_target=heed.torch.metric(metric), freeze=freeze)
                for name in cache:
                    if name.endswith("_grad"):
                        wanted = points[name[:-len("_grad")]].numpy()
                        self.assert_close(cache[name], wanted, 1e-5, f"{directory.name} {name} {freeze}")
                        seen += 1
        self.assertGreater(seen, 12 * 4 * 2)

    def test_passes_over_a_part_of_the_layers(self):
        layers = self.model.cfg.n_layers
        _, cache = self.model.run_with_cache(self.tokens)
        for stop in range(layers):
            self.assert_same_bits(self.model(self.tokens, stop_at_layer=stop), cache["resid_pre", stop])
        self.assert_same_bits(self.model(self.tokens, stop_at_layer=-1), cache["resid_pre", layers - 1])
        self.assert_same_bits(self.model(self.tokens, stop_at_layer=layers), self.logits)
        for start in range(layers):
            stream = cache["resid_pre", start]
            self.assert_same_bits(self.model(stream, start_at_layer=start), self.logits)
            self.assert_same_bits(self.model(stream[0], start_at_layer=start), self.logits)
        middle = self.model(cache["resid_pre", 1], start_at_layer=1, stop_at_layer=3)
        self.assert_same_bits(middle, cache["resid_pre", 3])
        stream, part = self.model.run_with_cache(self.tokens, stop_at_layer=2)
        self.assert_same_bits(stream, cache["resid_pre", 2])
        self.assertEqual({name for name in part if name.startswith("blocks.")},
                         {name for name in cache if name.startswith(("blocks.0.", "blocks.1."))})
        for name in part:
            self.assert_same_bits(part[name], cache[name], name)
        # of texts of different lengths
        texts = [TEXT, "The murderer was"]
        streams = self.model(texts, stop_at_layer=2)
        alone = [self.model(text, stop_at_layer=2) for text in texts]
        for found, wanted in zip(streams, alone):
            self.assert_alike(found, wanted)
        for found, text in zip(self.model(streams, start_at_layer=2), texts):
            self.assert_alike(found, self.model(text))

    def test_gradients_of_a_part_of_the_layers(self):
        wanted = self.gradients(self.weights)
        _, cache = self.model.run_with_cache(
            wanted["resid_post3"], "resid_pre4", incl_bwd=True, logit_target=self.weights,
            start_at_layer=4)
        self.assert_close(cache["resid_pre4_grad"], wanted["resid_post3_grad"], 1e-5)
        stream = self.random(wanted["resid_post3"].shape).astype(np.float32)
        _, cache = self.model.run_with_cache(self.tokens, ["resid_pre0", "z2"], incl_bwd=True,
                                             logit_target={"resid_post3": stream}, stop_at_layer=4)
        wanted = self.gradients({"resid_post3": stream})
        for name in ("resid_pre0_grad", "z2_grad"):
            self.assert_close(cache[name], wanted[name], 1e-5, name)

    def test_only_what_is_asked_for_is_computed(self):
        calls = []
        wanted = [("resid_pre3", 3), ("hook_embed", 0), ("z1", 2), ("unembed.hook_in", None)]
        _, whole = self.model.run_with_cache(self.tokens)
        for name, _ in wanted:
            _, cache = self.model.run_with_cache(self.tokens, name, return_type=None)
            self.assert_same_bits(cache[name], whole[name], name)
        # A hook that the caller put later in the pass is called all the same.
        self.model.run_with_cache(self.tokens, "z1", return_type=None, fwd_hooks=[
            ("resid_post5", lambda values, hook: calls.append(hook.name))])
        self.assertEqual(calls, ["blocks.5.hook_resid_post"])

    def test_what_is_no_part_of_the_layers_is_refused(self):
        stream = self.model(self.tokens, stop_at_layer=2)
        weights = {"resid_post4": np.zeros_like(stream)}
        for call, message in (
                (lambda: self.model(self.tokens, stop_at_layer=7), "stop_at_layer is 7"),
                (lambda: self.model(stream, start_at_layer=3, stop_at_layer=2), "before it starts"),
                (lambda: self.model(stream[:, :, :5], start_at_layer=3), "5 channels"),
                (lambda: self.model(stream[0, 0], start_at_layer=3), "shape"),
                (lambda: self.model(stream, "loss", start_at_layer=3), "read no tokens"),
                (lambda: self.model(self.tokens, "loss", stop_at_layer=3), "before the logits"),
                (lambda: self.model.run_with_cache(self.tokens, "z4", stop_at_layer=2),
                 "none of the points"),
                (lambda: self.model.run_with_cache(self.tokens, "z1", incl_bwd=True,
                                                   logit_target=weights, stop_at_layer=2),
                 "does not compute"),
                (lambda: self.model.run_with_cache(self.tokens, "z1", incl_bwd=True,
                                                   stop_at_layer=2), "no logits"),
                (lambda: self.model.run_with_cache(stream, "z3", incl_bwd=True, start_at_layer=2),
                 "has read no tokens"),
                (lambda: self.model(stream, start_at_layer=6), "cannot begin at layer 6")):
            with self.subTest(message), self.assertRaisesRegex(heed.errors.InvalidArgument, message):
                call()


if __name__ == "__main__":
    unittest.main()
