#!/usr/bin/env python3
"""Checks that no function in a header of include/ or src/ has a boolean parameter.

A call says nothing of what `true` stands for: an enum, two functions or a struct of options does. Where
the boolean is the value itself, VALUES lists the function and the reason; bool& is a result. Prints
file:line for each other one, and what VALUES lists in vain, and exits with 1 if there is one.
"""

import re
import sys
from pathlib import Path

FOLDERS = ("include", "src")

CONDITION = "a condition that is written where it is required"
VALUE = "a value of the type that the function is for"
FALLBACK = "the value where a file has none"
VALUES = {
    ("src/base/error.h", "require", CONDITION),
    ("src/base/error.h", "check", CONDITION),
    ("src/server/fields.h", "require_field", CONDITION),
    ("src/chat/syntax.h", "skip_if", CONDITION),
    ("src/chat/value.h", "Value", VALUE),
    ("src/checkpoint/gguf_writer.h", "add", VALUE),
    ("src/comm/group.h", "any", VALUE),
    ("src/chat/built_in.h", "flag", FALLBACK),
    ("src/formats/config_fields.h", "boolean_or", FALLBACK),
    ("src/tokenizer/json_parts.h", "json_boolean_member", FALLBACK),
}

COMMENT = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')
PARAMETER = re.compile(r"[(,]\s*(?:const\s+bool\s*&|bool\s+const\s*&|(?:const\s+)?bool\b)\s*(?:\w+\s*)?(?=[,)=])")
NAME = re.compile(r"(operator\W+|[~\w]+|\])\s*$")
NO_TYPES = {"if", "while", "for", "switch", "return", "sizeof", "decltype", "catch"}


def blank(match):
    """As many characters, none of them code."""
    return re.sub(r"[^\n]", " ", match.group())


def function_of(text, index):
    """The name before the parenthesis that is open at `index`; none in braces, brackets or <>."""
    depth = {"()": 0, "[]": 0, "{}": 0, "<>": 0}
    for at in range(index, -1, -1):
        for pair in depth:
            if text[at] == pair[1] and text[at - 1:at + 1] != "->":
                depth[pair] += 1
            elif text[at] == pair[0]:
                if depth[pair] > 0:
                    depth[pair] -= 1
                elif pair == "()":
                    name = NAME.search(text[:at])
                    return name.group(1).strip() if name else None
                elif pair != "<>" or re.search(r"\b(?:tuple|variant|pair|array|vector|map|function|template)\s*$",
                                               text[:at]):
                    return None
        if text[at] == ";" and depth["{}"] == 0:
            return None
    return None


def parameters(text):
    """(line, function) for each boolean parameter; of a lambda, the function is ]."""
    text = COMMENT.sub(blank, text)
    at = 0
    while match := PARAMETER.search(text, at):
        at = match.end()
        name = function_of(text, match.start() if match.group()[0] == "(" else match.start() - 1)
        if name and name not in NO_TYPES:
            yield text.count("\n", 0, match.end()) + 1, name


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    used = set()
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.h")):
            file = path.relative_to(root).as_posix()
            for line, name in parameters(path.read_text(encoding="utf-8")):
                exception = next((row for row in VALUES if row[:2] == (file, name)), None)
                used.add(exception)
                if exception is None:
                    found.append(f"{file}:{line}: '{name}' has a boolean parameter: "
                                 "write an enum, two functions or options")
    if len(sys.argv) == 1:
        found += [f"{file}: 'VALUES' names '{name}', which has no boolean parameter there"
                  for file, name, _ in sorted(VALUES - used)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
