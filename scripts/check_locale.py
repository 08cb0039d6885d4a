#!/usr/bin/env python3
"""Checks that numbers, letters and dates are read and written without a locale.

A process may set one whose decimal sign is a comma: Python's setlocale does, and so may a C++ program
that embeds the library. What obeys it reads 0.1 as 0 and writes 0,1. src/, include/ and python/ use
std::from_chars, std::to_chars, fmt without L, and base/numbers.h instead. Prints file:line for every
breach and exits with 1 if there is one.
"""

import re

from sources import report

COMMENT_OR_TEXT = re.compile(r'//.*|"(?:[^"\\]|\\.)*"')

# What is found outside comments and texts, and what to use instead.
FORBIDDEN = [
    (re.compile(r"\bsto(?:f|d|ld)\s*\("), "std::from_chars"),
    (re.compile(r"\b(?:strto(?:f|d|ld)|atof)\s*\("), "std::from_chars"),
    (re.compile(r"\bv?f?s?n?(?:printf|scanf)\s*\("), "fmt::format, std::from_chars"),
    (re.compile(r"\b(?:o|i)?stringstream\b"), "base/text.h, fmt::format"),
    (re.compile(r"\bput_money\b|\bput_time\b|\bget_time\b"), "fmt::format"),
    (re.compile(r"\b(?:is(?:alpha|alnum|digit|space|upper|lower|punct|print)|to(?:upper|lower))"
                r"\s*\(\s*static_cast<\s*(?:unsigned char|int)\s*>|\bstd::to(?:upper|lower)\b"),
     "base/text.h"),
    (re.compile(r"(?<!_)\bstrftime\s*\("), "strftime_l"),
    (re.compile(r"\bsetlocale\s*\(|\blocale::global\b|\.imbue\s*\("), "no locale at all"),
]
# In texts: a format that fmt reads with the locale.
LOCALISED = re.compile(r"\{[^{}]*:[^{}]*L[a-zA-Z]?\}")
# Numbers of a type with a fraction that are written by std::to_string().
FRACTION = re.compile(r"\bto_string\s*\(\s*(?:static_cast<\s*(?:float|double)\s*>|-?\d+\.\d)")


def breaches(_, line):
    """What of a line obeys a locale."""
    code = COMMENT_OR_TEXT.sub(lambda match: '""' if match.group().startswith('"') else "", line)
    found = [(match.group().rstrip("( "), instead) for pattern, instead in FORBIDDEN
             if (match := pattern.search(code))]
    if FRACTION.search(code):
        found.append(("std::to_string of a fraction", "fmt::format"))
    if "format" in line and LOCALISED.search(line):
        found.append(("a format with L", "one without it"))
    return [f"{what} obeys the locale of the process; use {instead}" for what, instead in found]


if __name__ == "__main__":
    report(breaches)
