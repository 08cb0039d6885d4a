"""N-gram models: their estimates are probabilities, and longer ones know more where text repeats."""

import pathlib
import sys
import unittest

try:
    import numpy as np
except ImportError:
    np = None

scripts = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(scripts))


@unittest.skipIf(np is None, "there is no numpy")
class NgramBaseline(unittest.TestCase):
    def test_estimates_after_any_context_sum_to_one(self):
        import ngram_baseline
        vocabulary = 7
        random = np.random.default_rng(1)
        train = random.integers(0, vocabulary, 400)
        train[::3] = 1  # some n-grams are frequent
        known, tables = ngram_baseline.counts_of(train, 4, vocabulary)
        for _ in range(20):
            context = random.integers(0, vocabulary, 6)
            for order in range(2, 5):
                total = 0.0
                for word in range(vocabulary):
                    text = np.append(context, word)
                    estimate = tables[0].probability(np.zeros(len(text), dtype=np.int64), text,
                                                     1 / vocabulary)
                    for length in range(2, order + 1):
                        before = ngram_baseline.shifted(
                            ngram_baseline.numbered(text, length - 1, known))
                        estimate = tables[length - 1].probability(before, text, estimate)
                    total += float(estimate[-1])
                self.assertAlmostEqual(total, 1, places=9)

    def test_a_longer_context_tells_more_where_it_decides(self):
        import ngram_baseline
        text = np.array([0, 1, 2, 3, 1, 4] * 50)  # what follows 1 is told by what stands before it
        loss = ngram_baseline.losses(text, text, 3, 5)
        self.assertLess(loss[1], loss[0])
        self.assertLess(loss[2], 0.2 * loss[1])


if __name__ == "__main__":
    unittest.main()
