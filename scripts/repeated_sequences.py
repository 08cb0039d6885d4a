#!/usr/bin/env python3
"""Writes random sequences in which stretches come again, one a line, to learn induction from.

A line alternates between letters drawn evenly and stretches copied from somewhere earlier in it. What
follows a copied letter can be told only from what followed it before: not from how often letters
come, and, since stretches come from anywhere, not from where they stand. With --halves a line is one
random sequence twice.
"""

import argparse
import random


def letters(count):
    """`count` letters beyond ASCII: each one character, and so one token."""
    return [chr(0x100 + i) for i in range(count)]


def copying_line(rng, alphabet, length):
    line = []
    while len(line) < length:
        line += rng.choices(alphabet, k=rng.randint(1, 10))
        start = rng.randrange(len(line))
        for i in range(rng.randint(4, 16)):
            line.append(line[start + i])  # may run into what it has just written
    return line[:length]


def repeated_line(rng, alphabet, length):
    half = rng.choices(alphabet, k=(length + 1) // 2)
    return (half + half)[:length]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=80_000)
    parser.add_argument("--length", type=int, default=127, help="letters of a line")
    parser.add_argument("--letters", type=int, default=400, help="different ones")
    parser.add_argument("--halves", action="store_true", help="one sequence twice a line")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    alphabet = letters(options.letters)
    write = repeated_line if options.halves else copying_line
    for _ in range(options.lines):
        print("".join(write(rng, alphabet, options.length)))


if __name__ == "__main__":
    main()
