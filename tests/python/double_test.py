"""Gradients of metrics of one's own beside central differences of passes in double."""

import unittest

import numpy as np

import heed
from double_module import DoubleModel, softmax
from support import GOLDEN, TestCase

# Of a step h, central differences in double are off by h² of third derivatives and by the rounding of
# a metric, 1e-16 of it, divided by h: at most some 1e-9 of the gradients here. The limit is what the
# rounding of heed's f32 passes leaves, 6e-8 a sum, over two layers forward and backward.
STEP = 1e-4
TOLERANCE = 1e-5


def agreement(logits):
    """The probability that two words drawn after each position are one word: (N) of logits (N, T, V),
    and its gradient."""
    p = softmax(np.float64(logits))
    both = (p ** 2).sum(-1, keepdims=True)
    return both.sum((1, 2)), (2 * p * (p - both)).astype(np.float32)


def margin(logits):
    """The squared difference of two logits at the end, less a saturating one."""
    logits = np.float64(logits)
    difference, other = logits[:, -1, 3] - logits[:, -1, 7], np.tanh(logits[:, 2, 5])
    gradient = np.zeros_like(logits)
    gradient[:, -1, 3], gradient[:, -1, 7] = 2 * difference, -2 * difference
    gradient[:, 2, 5] = other ** 2 - 1
    return difference ** 2 - other, gradient.astype(np.float32)


class Differences(TestCase):
    def differences(self, model, tokens, metric, name, shape):
        """d metric / d point, of every element of a point (T, ...)."""
        count = int(np.prod(shape))
        found = np.empty(count)
        for first in range(0, count, 128):
            chosen = np.arange(first, min(first + 128, count))
            moves = np.zeros((len(chosen), count))
            moves[np.arange(len(chosen)), chosen] = STEP
            moves = moves.reshape(len(chosen), *shape)
            higher, lower = (metric(model.logits(tokens, {name: sign * moves}))[0] for sign in (1, -1))
            found[chosen] = (higher - lower) / (2 * STEP)
        return found.reshape(shape)

    def test_own_metrics(self):
        seen = 0
        for family in ("gpt2", "llama"):
            directory = GOLDEN / "families" / family
            own, model = heed.load(str(directory)), DoubleModel(directory)
            tokens = np.array([5, 11, 2, 40, 7, 31, 11])
            points = {}
            self.assert_close(own(tokens), model.logits(tokens, points=points), TOLERANCE, family)
            for metric in (agreement, margin):
                def of_one(logits):
                    value, gradient = metric(logits)
                    return float(value[0]), gradient

                _, cache = own.run_with_cache(tokens, list(points), incl_bwd=True, logit_target=of_one)
                value = float(metric(model.logits(tokens))[0][0])
                self.assertAlmostEqual(cache.metric, value, delta=TOLERANCE * max(1, abs(value)))
                for name, values in points.items():
                    wanted = self.differences(model, tokens, metric, name, values.shape[1:])
                    self.assertGreater(np.abs(wanted).max(), 1e-4, name)
                    found = cache[name + "_grad"][0]
                    self.assert_close(found, wanted, TOLERANCE, f"{family} {metric.__name__} {name}")
                    seen += 1
        self.assertEqual(seen, 2 * (2 + 2 * 16 + 1 + 2 * 17))  # of two layers, and a gate

    def test_the_differences_are_those_of_the_metric(self):
        """Beside gradients of the logits themselves, which the metrics give."""
        model = DoubleModel(GOLDEN / "families" / "gpt2")
        tokens = np.array([5, 11, 2])
        logits = model.logits(tokens)
        for metric in (agreement, margin):
            wanted = metric(logits)[1][0]
            for at in ((2, 3), (2, 5), (1, 40)):
                move = np.zeros_like(logits)
                move[0][at] = STEP
                found = (metric(logits + move)[0] - metric(logits - move)[0])[0] / (2 * STEP)
                self.assertAlmostEqual(found, wanted[at], delta=1e-6 * np.abs(wanted).max())


if __name__ == "__main__":
    unittest.main()
