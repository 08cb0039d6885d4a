#!/usr/bin/env python3
"""Mixes lists of words in which stretches come again into books, so that a small model learns induction.

  english_data.py BOOKS TOKENIZER > OUT

Prose repeats itself too seldom within a window for a small model to find out in a short training that
what followed a word before is likely to follow it again. Every few paragraphs comes, as a document of
its own, a list of words drawn evenly from those that are one token each, in which stretches are copied
from somewhere earlier in the list: what comes next can be told there from the list alone.
"""

import argparse
import json
import random
import re
import sys

from repeated_sequences import copying_line

END = "<|endoftext|>"
SPACE = "\u0120"  # how a byte-level vocabulary writes the space before a word


def copying_list(rng, words, length):
    """`length` words: stretches drawn evenly from `words`, between copies of earlier stretches."""
    return " ".join(copying_line(rng, words, length))


def whole_words(tokenizer):
    with open(tokenizer, encoding="utf-8") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    words = sorted(token[1:] for token in vocabulary if re.fullmatch(SPACE + "[A-Za-z]{2,}", token))
    if not words:
        sys.exit(f"{tokenizer} has no token that is a word after a space")
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("books", help="plain text, books parted by " + END)
    parser.add_argument("tokenizer", help="the model's tokenizer.json")
    parser.add_argument("--share", type=float, default=0.16, help="of characters, in lists [%(default)s]")
    parser.add_argument("--words", type=int, default=150, help="of a list [%(default)s]")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not 0 <= options.share < 1:
        parser.error("--share must be at least 0 and below 1")
    rng = random.Random(options.seed)
    words = whole_words(options.tokenizer)
    with open(options.books, encoding="utf-8") as file:
        books = file.read().split(END)

    written = listed = 0
    for book in books:
        for paragraph in book.strip().split("\n\n"):
            print(paragraph, end="\n\n")
            written += len(paragraph) + 2
            while listed < options.share / (1 - options.share) * written:
                line = copying_list(rng, words, options.words)
                print(END + line, end=END)
                listed += len(line)
        print(END, end="")


if __name__ == "__main__":
    main()
