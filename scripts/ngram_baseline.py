#!/usr/bin/env python3
"""The loss of n-gram models on a text, in nats a token, to compare a model's loss with.

  ngram_baseline.py --tokenizer DIR --train TEXT --text TEXT [--order 5]

Interpolated Kneser-Ney smoothing with one discount an order (Chen and Goodman 1999, section 2.7): where
an n-gram was seldom or never seen, the estimate backs off to shorter ones. Order 1 is the unigram model.
Needs numpy; a corpus of 11 million tokens takes about 2 GB.
"""

import argparse
import json
import os
import subprocess

import numpy as np


def tokens_of(heed, tokenizer, path):
    """The ids of a text's tokens."""
    pieces = []
    # A part at a time, ended by a paragraph: the reply names every token.
    with open(path, encoding="utf-8") as file:
        paragraphs = file.read().split("\n\n")
    for begin in range(0, len(paragraphs), 20_000):
        part = "\n\n".join(paragraphs[begin:begin + 20_000]) + "\n\n"
        reply = subprocess.run([heed, "tokenize", "-m", tokenizer, "--json"], input=part,
                               check=True, capture_output=True, text=True)
        pieces.append(np.array(json.loads(reply.stdout)["ids"], dtype=np.int64))
    return np.concatenate(pieces)


class Counts:
    """What was counted of one order: of each n-gram, by its context and word, and of each context."""

    def __init__(self, contexts, words, counts, vocabulary):
        self.vocabulary = vocabulary
        self.keys = contexts * vocabulary + words  # ascending
        self.counts = counts
        self.contexts, first, self.followers = np.unique(contexts, return_index=True, return_counts=True)
        self.totals = np.add.reduceat(counts, first)
        ones, twos = np.sum(counts == 1), np.sum(counts == 2)
        self.discount = ones / (ones + 2 * twos) if ones > 0 else 0.5

    def probability(self, contexts, words, shorter):
        """Of each word after its context; `shorter` is the estimate from one token less."""
        counts, _ = find(self.keys, self.counts, contexts * self.vocabulary + words)
        totals, seen = find(self.contexts, self.totals, contexts)
        followers, _ = find(self.contexts, self.followers, contexts)
        safe = np.maximum(totals, 1)
        found = np.maximum(counts - self.discount, 0) / safe
        return np.where(seen, found + self.discount * followers / safe * shorter, shorter)


def find(keys, values, wanted):
    """The values of the wanted keys, 0 where there is none, and whether there is one."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    seen = keys[at] == wanted
    return np.where(seen, values[at], 0), seen


def numbered(ids, order, known):
    """The number of the `order` tokens that end at each position; -1 where they were never counted or begin before
    the text. `known` are the n-grams that are counted, by order, and grows where it lacks one."""
    number = np.zeros(len(ids), dtype=np.int64)
    for length in range(1, order + 1):
        before = np.concatenate(([-1], number[:-1])) if length > 1 else np.zeros(len(ids), dtype=np.int64)
        # The length - 1 tokens that end one position earlier, then this token.
        keys = np.where(before >= 0, before * known["vocabulary"] + ids, -1)
        if length not in known:
            known[length] = np.unique(keys[keys >= 0])
        at = np.minimum(np.searchsorted(known[length], keys), len(known[length]) - 1)
        number = np.where(known[length][at] == keys, at, -1)
    return number


def counts_of(ids, order, vocabulary):
    """For each order from 1 on, what Kneser-Ney counts: occurrences in the highest, different tokens before in others."""
    known = {"vocabulary": vocabulary}
    tables = []
    for length in range(1, order + 1):
        context = shifted(numbered(ids, length - 1, known)) if length > 1 else np.zeros(len(ids), dtype=np.int64)
        fits = context >= 0
        if length == order:
            keys, counts = np.unique(context[fits] * vocabulary + ids[fits], return_counts=True)
        else:
            # One longer, each kind once: the token before it, then context and word.
            longer = np.unique(np.stack((np.concatenate((np.full(length, -1), ids[:-length]))[fits], context[fits] * vocabulary + ids[fits])), axis=1)
            keys, counts = np.unique(longer[1][longer[0] >= 0], return_counts=True)
        tables.append(Counts(keys // vocabulary, keys % vocabulary, counts, vocabulary))
    return known, tables


def shifted(number):
    return np.concatenate(([-1], number[:-1]))


def losses(train, text, order, vocabulary):
    """Nats a token of the text, for each order up to `order`."""
    known, tables = counts_of(train, order, vocabulary)
    unigram = np.bincount(train, minlength=vocabulary)
    plain = (unigram[text] + 1) / (len(train) + vocabulary)
    # Below order 1 every token is as likely as any other.
    estimate = tables[0].probability(np.zeros(len(text), dtype=np.int64), text, 1 / vocabulary)
    result = [float(-np.log(plain).mean())]
    for length in range(2, order + 1):
        context = shifted(numbered(text, length - 1, known))
        estimate = tables[length - 1].probability(context, text, estimate)
        result.append(float(-np.log(estimate).mean()))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", required=True, help="directory of a model or tokenizer")
    parser.add_argument("--train", required=True, help="text to count in")
    parser.add_argument("--text", required=True, help="text to measure on")
    parser.add_argument("--order", type=int, default=5)
    options = parser.parse_args()
    heed = os.environ.get("HEED", "build/release/bin/heed")
    train, text = (tokens_of(heed, options.tokenizer, path) for path in (options.train, options.text))
    vocabulary = int(max(train.max(), text.max())) + 1
    for order, loss in enumerate(losses(train, text, options.order, vocabulary), start=1):
        print(f"{order}-gram  {loss:.4f} nats a token  ({len(text):,} tokens)")


if __name__ == "__main__":
    main()
