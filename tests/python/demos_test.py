"""The examples that follow TransformerLens's demos compute what a module of PyTorch's computes in double,
to 1e-5: of the largest number, and of differences of logits, of the largest logit."""

import contextlib
import importlib.util
import io
import json
import runpy
import unittest

import numpy as np

import heed
from support import SOURCE, TestCase, golden

EXAMPLES = SOURCE / "examples" / "python"
STARTER = SOURCE / "models" / "starter"
TOLERANCE = 1e-5


@unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not installed")
class Demos(TestCase):
    @classmethod
    def setUpClass(cls):
        import torch
        from gpt_module import TRANSPOSED, GptConfig, Transformer

        cls.torch = torch
        cls.model = Transformer(GptConfig.from_json(json.loads((STARTER / "config.json").read_text())))
        cls.model = cls.model.double()
        weights = golden(STARTER / "model.safetensors")
        with torch.no_grad():
            for name, parameter in cls.model.named_parameters():
                found = weights[name if name in weights else "transformer." + name]
                found = torch.from_numpy(found).double()
                parameter.copy_(found.T if name.endswith(TRANSPOSED) else found)
        cls.layers, cls.heads = cls.model.config.layers, cls.model.config.heads

    def example(self, name):
        """The numbers of an example, by their names in it."""
        with contextlib.redirect_stdout(io.StringIO()):
            return runpy.run_path(str(EXAMPLES / name))

    def logits(self, tokens, edits=None, points=None):
        from gpt_module import Points

        tokens = self.torch.from_numpy(np.ascontiguousarray(tokens, np.int64))
        with self.torch.no_grad():
            return self.model(tokens, Points(edits) if points is None else points).numpy()

    def loss(self, tokens, edits=None):
        logits = self.logits(tokens, edits)[0]
        top = logits.max(-1, keepdims=True)
        log_p = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
        return -log_p[np.arange(len(logits) - 1), np.asarray(tokens)[0, 1:]].mean()

    def assert_of_logits(self, found, wanted, scale, what=""):
        """Of differences of logits: the largest logit, in the units of what is found, is the scale."""
        self.assertEqual(np.shape(found), np.shape(wanted), what)
        self.assertLessEqual(np.abs(np.asarray(found) - wanted).max() / scale, TOLERANCE, what)

    def patched(self, tokens, clean, name, at, value):
        """The value of logits where a point's cell is that of the clean pass."""
        def put(values):
            values = values.clone()
            values[at] = clean[name][at]
            return values

        return value(self.logits(tokens, {name: put}))

    def differentiated(self, tokens, function):
        """Points, and their gradients, of a function of torch's logits."""
        from gpt_module import PointsWithGradients

        points = PointsWithGradients()
        tokens = self.torch.from_numpy(np.ascontiguousarray(tokens, np.int64))
        function(self.model(tokens, points)).backward()
        return points, {name: value.numpy() for name, value in points.gradients.items()}

    def test_main_demo(self):
        found = self.example("main_demo.py")
        tokens = found["tokens"]
        self.assertLess(abs(found["loss"] / self.loss(tokens) - 1), TOLERANCE)
        ablated = np.empty((self.layers, self.heads))
        for layer, head in np.ndindex(ablated.shape):
            def off(values, head=head):
                return values * (self.torch.arange(self.heads) != head)[:, None]

            ablated[layer, head] = self.loss(tokens, {f"blocks.{layer}.attn.hook_v": off})
        self.assert_close(found["ablated"], ablated, TOLERANCE)
        self.assertGreater(np.ptp(ablated), 0.1)

        model, answers = found["model"], found["answers"]
        clean, corrupted = (model.to_tokens(found[name]) for name in ("clean", "corrupted"))

        def difference(logits):
            return logits[0, -1, answers[0]] - logits[0, -1, answers[1]]

        from gpt_module import Points

        points = Points()
        baseline = [difference(self.logits(clean, points=points)), difference(self.logits(corrupted))]
        largest = np.abs(self.logits(clean)[0, -1]).max()
        self.assert_of_logits(found["baseline"], baseline, largest)
        patched = np.array([[self.patched(corrupted, points, f"blocks.{layer}.hook_resid_pre",
                                          (slice(None), at), difference)
                             for at in range(clean.shape[1])] for layer in range(self.layers)])
        self.assert_of_logits(found["patched"], patched, largest)

        points = Points()
        self.logits(found["repeated"], points=points)
        scores = [np.diagonal(points[f"blocks.{layer}.attn.hook_pattern"].numpy(), 1 - 50, 2, 3).mean((0, 2))
                  for layer in range(self.layers)]
        self.assert_close(found["scores"], np.stack(scores), TOLERANCE)

        width = self.model.config.head_size
        copying = np.empty((self.layers, self.heads))
        for layer, head in np.ndindex(copying.shape):
            attention = self.model.h[layer].attn
            own = slice(head * width, (head + 1) * width)
            value = attention.c_attn.weight.detach()[2 * self.heads * width:][own]  # (D, C)
            out = attention.c_proj.weight.detach()[:, own]  # (C, D)
            small = value @ self.model.wte.weight.detach().T @ self.model.lm_head.weight.detach() @ out
            eigenvalues = self.torch.linalg.eigvals(small)
            copying[layer, head] = eigenvalues.sum().real / eigenvalues.abs().sum()
        self.assert_close(found["copying"], copying, 5 * TOLERANCE)  # of small sums of large numbers

    def test_exploratory_analysis(self):
        found = self.example("exploratory_analysis.py")
        model, tokens, answers = (found[name] for name in ("model", "tokens", "answers"))
        right, wrong = answers[0]

        def difference(logits):
            return logits[0, -1, right] - logits[0, -1, wrong]

        clean, grads = self.differentiated(tokens[:1], difference)
        corrupted, corrupted_grads = self.differentiated(tokens[1:], difference)
        values = [difference(self.logits(row[None])) for row in tokens]
        largest = np.abs(self.logits(tokens)[:, -1]).max()
        self.assert_of_logits([found["clean"], found["corrupted"]], values, largest)

        # What a part of the stream adds, with the final norm's deviation held.
        unembedding = self.model.lm_head.weight.detach().numpy()
        direction = unembedding[right] - unembedding[wrong]
        norm = self.model.ln_f
        gain, bias = norm.weight.detach().numpy(), norm.bias.detach().numpy()
        scale = clean["ln_final.hook_scale"][0, -1].numpy()

        def along(stream):
            stream = stream[0, -1].numpy()
            return (stream - stream.mean(-1, keepdims=True)) / scale @ (gain * direction)

        names = [f"blocks.{layer}.hook_resid_{part}" for layer in range(self.layers)
                 for part in ("pre", "mid")] + [f"blocks.{self.layers - 1}.hook_resid_post"]
        self.assert_close(found["along"], [along(clean[name]) + bias @ direction for name in names],
                          TOLERANCE)
        heads = [along(clean[f"blocks.{layer}.attn.hook_result"][:, :, head])
                 for layer in range(self.layers) for head in range(self.heads)]
        self.assert_close(found["by_head"], heads, TOLERANCE)

        def metric(logits):
            return (difference(logits) - values[1]) / (values[0] - values[1])

        names = [f"blocks.{layer}.hook_resid_pre" for layer in range(self.layers)]
        exact = [[self.patched(tokens[1:], clean, name, (slice(None), at), metric)
                  for at in range(tokens.shape[1])] for name in names]
        largest /= values[0] - values[1]
        self.assert_of_logits(found["exact"], exact, largest)
        estimate = [((clean[name] - corrupted[name]).numpy() * corrupted_grads[name]).sum((0, 2))
                    / (values[0] - values[1]) for name in names]
        self.assert_close(found["estimate"], estimate, TOLERANCE)

    def test_attribution_patching(self):
        found = self.example("attribution_patching.py")
        tokens = [found["clean_tokens"], found["corrupted_tokens"]]
        answers, rows = found["answers"], found["rows"]

        def difference(logits):
            return (logits[rows, -1, answers[:, 0]] - logits[rows, -1, answers[:, 1]]).mean()

        values = [difference(self.logits(each)) for each in tokens]

        def metric(logits):
            return (difference(logits) - values[1]) / (values[0] - values[1])

        clean, _ = self.differentiated(tokens[0], metric)
        corrupted, gradients = self.differentiated(tokens[1], metric)

        def attributed(names, axes):
            return np.stack([((clean[name] - corrupted[name]).numpy() * gradients[name]).sum(axes)
                             for name in names])

        blocks = [f"blocks.{layer}." for layer in range(self.layers)]
        stream = [block + f"hook_resid_{part}" for block in blocks for part in ("pre", "mid")]
        stream.append(blocks[-1] + "hook_resid_post")
        self.assert_close(found["residual"], attributed(stream, (0, 2)), TOLERANCE)
        layers = [block + f"hook_{part}_out" for block in blocks for part in ("attn", "mlp")]
        self.assert_close(found["layers"][2:], attributed(layers, (0, 2)), TOLERANCE)
        estimated = [attributed([f"{block}attn.hook_{part}" for block in blocks],
                                (0, 2, 3) if part == "pattern" else (0, 1, 3))
                     for part in ("result", "q", "k", "v", "pattern")]
        for one, wanted in zip(found["estimated"], estimated):
            self.assert_close(one, wanted, TOLERANCE)

        every = slice(None)
        largest = np.abs(self.logits(tokens[0])[:, -1]).max() / (values[0] - values[1])
        for one, part in zip(found["blocks"], ("resid_pre", "attn_out", "mlp_out")):
            wanted = [[self.patched(tokens[1], clean, f"{block}hook_{part}", (every, at), metric)
                       for at in range(tokens[0].shape[1])] for block in blocks]
            self.assert_of_logits(one, wanted, largest, part)
        for one, part in zip(found["exact"], ("z", "q", "k", "v", "pattern")):
            wanted = [[self.patched(tokens[1], clean, f"{block}attn.hook_{part}",
                                    (every, head) if part == "pattern" else (every, every, head), metric)
                       for head in range(self.heads)] for block in blocks]
            self.assert_of_logits(one, wanted, largest, part)


if __name__ == "__main__":
    unittest.main()
