#!/usr/bin/env python3
"""Whether attribution graphs of the starter hold the evidence that the microworld's grammar names.

    PYTHONPATH=build/release/python python3 scripts/measure_evidence.py [--count 30] [--seed 99]
        [--transcoders starter]

For each subject, beginnings of stories that were held out from training, up to the word whose
continuation the evidence decides. The graph is that of the token that follows, pruned to tokens that
carry at least 2 % of the influence of all tokens. Counted are texts all of whose words of evidence are
in it; the control takes as many other tokens of the text, drawn at random, for the evidence. With
transcoders, features are the nodes between; how much of the logits' edges ends in what these leave out
is printed as well.
"""

import argparse

import numpy as np

import heed

SUBJECTS = ("mole", "pronoun", "culprit")
MIN_TOKEN_SHARE, MIN_TOKENS, DRAWS = 0.02, 30, 100


def holds(model, case, max_neurons, random, transcoders=()):
    """Whether the pruned graph holds the evidence, the share of draws for which it holds as many other
    tokens, all of them and any of them, how many tokens it has, and the share of errors."""
    graph = heed.graphs.attribution_graph(model, case.text, case.answer, max_neurons=max_neurons,
                                          transcoders=transcoders)
    small = graph.pruned(min_token_share=MIN_TOKEN_SHARE)
    kept = {small.nodes[i].position for i in small.of_kind("token")}
    others = [at for at in range(graph.tokens.shape[1] - 1) if at not in case.positions]
    drawn = [[at in kept for at in random.choice(others, len(case.positions), replace=False)]
             for _ in range(DRAWS)]
    return (all(at in kept for at in case.positions), np.mean([all(one) for one in drawn]),
            np.mean([any(one) for one in drawn]), len(kept), graph.of_errors)


def measure(model, subject, count, seed, max_neurons=32, transcoders=()):
    """(count, 5) of :func:`holds`."""
    random = np.random.default_rng(seed)
    cases = heed.microworld.evidence(model, subject, count, seed, min_tokens=MIN_TOKENS)
    return np.array([holds(model, case, max_neurons, random, transcoders) for case in cases],
                    np.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30, help="texts of a subject [30]")
    parser.add_argument("--seed", type=int, default=99, help="of the stories [99]")
    parser.add_argument("--neurons", type=int, default=32, help="or features, of a graph [32]")
    parser.add_argument("--transcoders", help="a directory of one for each layer, or \"starter\" [none]")
    options = parser.parse_args()
    model = heed.load("starter")
    transcoders = heed.sae.load_all(options.transcoders) if options.transcoders else []
    for subject in SUBJECTS:
        found, every, any_of, kept, errors = measure(model, subject, options.count, options.seed,
                                                     options.neurons, transcoders).mean(0)
        ends = f"; {errors:.0%} of the influence ends in errors" if transcoders else ""
        print(f"{subject}: the evidence is in {found:.0%} of {options.count} graphs, as many other "
              f"tokens in {every:.0%} (at least one of them in {any_of:.0%}); {kept:.1f} tokens a "
              f"graph{ends}", flush=True)


if __name__ == "__main__":
    main()
