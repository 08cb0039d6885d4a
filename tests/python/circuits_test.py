"""Edges between parts: attribution, exact patching, circuits that keep some of them."""

import unittest

import numpy as np

import heed
from heed import circuits
from support import GOLDEN, TestCase, starter

CLEAN = "The fox waited in the forest, and the hare saw the fox"
CORRUPTED = "The owl waited in the forest, and the hare saw the owl"


def ranks(values):
    return np.argsort(np.argsort(values))


class Edges(TestCase):
    def setUp(self):
        self.model = starter()
        logits = self.model(CLEAN)[0, -1] - self.model(CORRUPTED)[0, -1]
        self.answer, self.wrong = int(logits.argmax()), int(logits.argmin())

    def metric(self, logits):
        gradient = np.zeros_like(logits)
        gradient[:, -1, self.answer], gradient[:, -1, self.wrong] = 1, -1
        return float((logits * gradient).sum()), gradient

    def test_all_edges_are_the_model_and_none_the_corrupted_prompt(self):
        for model, clean, corrupted in (
                (self.model, CLEAN, CORRUPTED),
                (heed.load(str(GOLDEN / "families" / "llama")), np.arange(1, 9), np.arange(9, 1, -1))):
            parts = circuits._Parts(model)
            joined = [(parts.senders[s], parts.receivers[r]) for r, s in np.argwhere(parts.joined)]
            self.assert_close(circuits.keep_edges(model, clean, corrupted, joined), model(clean), 1e-5)
            self.assert_close(circuits.keep_edges(model, clean, corrupted, []), model(corrupted), 1e-5)

    def test_one_edge_is_what_hooks_make_of_it(self):
        """From a head to one reader, which adds the difference of what the head wrote."""
        head, wrote = (1, 3), {}
        for name, text in (("clean", CLEAN), ("corrupted", CORRUPTED)):
            _, cache = self.model.run_with_cache(text, "result1")
            wrote[name] = cache["result", 1][:, :, head[1]]
        change = wrote["corrupted"] - wrote["clean"]

        def at_head(values, hook):
            values[:, :, 2] += change

        def at_layer(values, hook):
            values += change

        cases = (("L4H2.q", "q_input4", at_head), ("L4H2.v", "v_input4", at_head),
                 ("mlp2", "mlp_in2", at_layer), ("logits", "resid_post5", at_layer))
        before = self.metric(self.model(CLEAN))[0]
        wanted = [self.metric(self.model.run_with_hooks(CLEAN, [(point, hook)]))[0] - before
                  for _, point, hook in cases]
        found = circuits.edge_patching(self.model, CLEAN, CORRUPTED, self.metric,
                                       [("L1H3", receiver) for receiver, _, _ in cases])
        self.assertGreater(np.abs(wanted).max(), 1e-3)
        np.testing.assert_allclose(found, wanted, atol=1e-5 * abs(before) + 1e-4)

    def test_attribution_estimates_patching(self):
        scores = circuits.edge_attribution(self.model, CLEAN, CORRUPTED, self.metric)
        integrated = circuits.edge_attribution(self.model, CLEAN, CORRUPTED, self.metric, steps=8)
        self.assertEqual(scores.clean, self.metric(self.model(CLEAN))[0])
        self.assertAlmostEqual(scores.corrupted, self.metric(self.model(CORRUPTED))[0], places=4)
        # What reaches the logits directly: the whole difference of the streams, and its gradient.
        _, cache = self.model.run_with_cache(CLEAN, "resid_post5", incl_bwd=True,
                                             logit_target=self.metric)
        _, other = self.model.run_with_cache(CORRUPTED, "resid_post5")
        direct = ((np.float64(other["resid_post5"]) - cache["resid_post5"])
                  * cache["resid_post5_grad"]).sum()
        self.assertAlmostEqual(np.nansum(scores.values[-1]), direct, delta=1e-4 * abs(direct) + 1e-4)
        # Exact patching of every seventh edge, and as many numbers in another order.
        edges = [(edge.sender, edge.receiver) for edge in scores.top(len(scores))][::7]
        exact = circuits.edge_patching(self.model, CLEAN, CORRUPTED, self.metric, edges)
        generator = np.random.default_rng(0)
        for found in (scores, integrated):
            estimated = np.array([found[edge] for edge in edges])
            correlation = np.corrcoef(ranks(estimated), ranks(exact))[0, 1]
            shuffled = max(np.corrcoef(ranks(generator.permutation(estimated)), ranks(exact))[0, 1]
                           for _ in range(39))
            self.assertGreater(correlation, 0.7)
            self.assertGreater(correlation, 2 * shuffled)

    def test_circuits_are_faithful_in_the_order_of_their_scores(self):
        scores = circuits.edge_attribution(self.model, CLEAN, CORRUPTED, self.metric, steps=5)
        counts = [0, 50, 200, len(scores)]
        found = circuits.faithfulness(self.model, CLEAN, CORRUPTED, self.metric, scores, counts)
        self.assertAlmostEqual(found[0], 0, places=4)
        self.assertAlmostEqual(found[len(scores)], 1, places=4)
        # Beside as many edges that are drawn.
        parts = circuits._Parts(self.model)
        every = [(parts.senders[s], parts.receivers[r]) for r, s in np.argwhere(parts.joined)]
        generator = np.random.default_rng(1)
        lower, upper = self.metric(self.model(CORRUPTED))[0], self.metric(self.model(CLEAN))[0]
        drawn = []
        for _ in range(5):
            chosen = [every[i] for i in generator.choice(len(every), 200, replace=False)]
            logits = circuits.keep_edges(self.model, CLEAN, CORRUPTED, chosen)
            drawn.append((self.metric(logits)[0] - lower) / (upper - lower))
        self.assertGreater(found[200], max(drawn) + 0.2)

    def test_batches(self):
        other = ("The cat waited in the forest, and the hare saw the cat",
                 "The dog waited in the forest, and the hare saw the dog")
        alone = [circuits.edge_attribution(self.model, *pair, self.metric)
                 for pair in ((CLEAN, CORRUPTED), other)]
        both = circuits.edge_attribution(self.model, [CLEAN, other[0]], [CORRUPTED, other[1]],
                                         self.metric)
        wanted = alone[0].values + alone[1].values
        np.testing.assert_allclose(both.values, wanted, atol=2e-5 * np.nanmax(np.abs(wanted)))

    def test_what_is_refused(self):
        for call, message in (
                (lambda: circuits.edge_attribution(self.model, CLEAN, "The fox", self.metric),
                 "one length"),
                (lambda: circuits.edge_attribution(self.model, CLEAN, CORRUPTED, self.metric, 0),
                 "steps is 0"),
                (lambda: circuits.keep_edges(self.model, CLEAN, CORRUPTED, [("L9H0", "logits")]),
                 "no edge from 'L9H0'"),
                (lambda: circuits.keep_edges(self.model, CLEAN, CORRUPTED, [("L3H0", "L1H0.q")]),
                 "comes after"),
                (lambda: circuits.faithfulness(self.model, CLEAN, CLEAN, self.metric, None, []),
                 "is the same")):
            with self.subTest(message), self.assertRaisesRegex(heed.errors.InvalidArgument, message):
                call()
        with self.assertRaisesRegex(heed.errors.Unsupported, "in parallel"):
            circuits.keep_edges(heed.load(str(GOLDEN / "families" / "neox")), np.arange(1, 5),
                                np.arange(2, 6), [])


if __name__ == "__main__":
    unittest.main()
