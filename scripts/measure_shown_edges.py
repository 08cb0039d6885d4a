#!/usr/bin/env python3
"""Measures the edge of attention that is shown for the last word of a sentence.

    scripts/measure_shown_edges.py TEXT [--model english] [--sentences 100] [--seed 1] [--heed PROGRAM]

Sentences of 6 to 16 words are drawn from TEXT, each without its last word, whose place the model
predicts. Printed are the share of shown heads in block 0, and medians of what cutting the edge
changes (total variation distance of the next token's distribution) and of what cutting other edges
of the same head at the same word changes on average.
"""
import argparse
import collections
import random
import re
import statistics

from explorer import ask, explorer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text")
    parser.add_argument("--model", default="english")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--heed", default="build/release/bin/heed")
    arguments = parser.parse_args()

    with open(arguments.text, encoding="utf-8") as file:
        sentences = sentences_of(file.read())
    texts = random.Random(arguments.seed).sample(sentences, arguments.sentences)
    with explorer(arguments.heed, "-m", arguments.model) as address:
        edges = [edge for text in texts if (edge := shown_edge(address, text)) is not None]

    with_others = [edge for edge in edges if edge["others"]["cut"] is not None]
    cut = statistics.median(edge["cut"] for edge in with_others)
    others = statistics.median(edge["others"]["cut"] for edge in with_others)
    blocks = collections.Counter(edge["layer"] for edge in edges)
    print(f"{arguments.model}, {len(edges)} sentences, seed {arguments.seed}: heads in block 0: "
          f"{blocks[0] / len(edges):.0%}; cutting the edge changes {cut:.4f}, another of its head "
          f"{others:.4f}: {cut / others:.1f} times; one edge decides in "
          f"{sum(edge['decides'] for edge in edges)}")


def sentences_of(text):
    """Without the last word and the mark that ends them."""
    found = re.findall(r"(?<=[.!?] )[A-Z][A-Za-z ,;']+(?=[.!?] )", re.sub(r"\s+", " ", text))
    words = [sentence.split() for sentence in found]
    return [" ".join(each[:-1]) for each in words if 6 <= len(each) <= 16]


def shown_edge(address, text):
    trace = ask(address, "/api/traces", {"text": text})
    return ask(address, f"/api/traces/{trace['id']}/head?position=-1&unit=words")["edge"]


if __name__ == "__main__":
    main()
