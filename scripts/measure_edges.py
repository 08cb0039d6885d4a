#!/usr/bin/env python3
"""Edge attribution beside exact edge patching: rank correlation and time, over all edges of the starter.

    PYTHONPATH=build/release/python python3 scripts/measure_edges.py [--every 1]

For each pair of prompts: the score of every edge from one backward pass (EAP), from the mean of 5 and 20
gradients (EAP-IG), and the exact change of the metric, the difference of two logits, from a pass for each
edge. Control: the scores in another order, the largest absolute correlation of 39. Times
are seconds of the processor, of all threads.
"""

import argparse
import time

import numpy as np

import heed
from heed import circuits

PAIRS = [
    ("Late one evening, a fluffy blue hare", "Late one evening, a fluffy brown hare"),
    ("The fox waited in the forest, and the hare saw the fox",
     "The owl waited in the forest, and the hare saw the owl"),
    ("Take a biopsy of the mole", "Take a picture of the mole"),
    ("The animal didn't cross the street because it was too tired. So the",
     "The animal didn't cross the street because it was too wide. So the"),
]


def correlation(one, other):
    """Spearman's."""
    ranks = [np.argsort(np.argsort(values, kind="stable")) for values in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="exact patches of every N-th edge [1]")
    every = parser.parse_args().every
    model, random = heed.load("starter"), np.random.default_rng(0)
    for clean, corrupted in PAIRS:
        change = model(clean)[0, -1] - model(corrupted)[0, -1]
        right, wrong = int(change.argmax()), int(change.argmin())

        def metric(logits):
            gradient = np.zeros_like(logits)
            gradient[:, -1, right], gradient[:, -1, wrong] = 1, -1
            return float((gradient * logits).sum()), gradient

        found, seconds = {}, {}
        for steps in (1, 5, 20):
            begin = time.process_time()
            found[steps] = circuits.edge_attribution(model, clean, corrupted, metric, steps)
            seconds[steps] = time.process_time() - begin
        scores = found[1]
        edges = [(edge.sender, edge.receiver) for edge in scores.top(len(scores))][::every]
        begin = time.process_time()
        exact = circuits.edge_patching(model, clean, corrupted, metric, edges)
        seconds["exact"] = time.process_time() - begin
        values = {steps: np.array([one[edge] for edge in edges]) for steps, one in found.items()}
        shuffled = max(abs(correlation(random.permutation(values[1]), exact)) for _ in range(39))
        print(f"{clean!r} beside {corrupted!r}: metric {scores.clean:.2f} and {scores.corrupted:.2f}, "
              f"{len(edges)} of {len(scores)} edges, exact in {seconds['exact']:.1f} s")
        largest = np.argsort(-np.abs(exact))[:len(exact) // 10]
        for steps, name in ((1, "EAP"), (5, "EAP-IG, 5 steps"), (20, "EAP-IG, 20 steps")):
            print(f"  {name}: rank correlation {correlation(values[steps], exact):.2f}, of the largest "
                  f"tenth {correlation(values[steps][largest], exact[largest]):.2f}; "
                  f"{1e3 * seconds[steps]:.0f} ms")
        print(f"  shuffled: at most {shuffled:.2f}")


if __name__ == "__main__":
    main()
