#!/usr/bin/env python3
"""Checks that src/model never touches an element of a tensor: what a loop there would do is a kernel.

Looked for are the ways to reach the numbers of a View, a Tensor or a span of floats: calling a view
with indices, indexing a tensor or a span, pointers to numbers and arithmetic on data(), loops over
floats, and algorithms and functions that copy, fill, compare or add up ranges. Numbers of tokens, rows
and positions are integers and no elements; nor are the frequencies that a description gives, in
double. Prints file:line for each place and exits with 1 if there is one.
"""

import re
import sys
from pathlib import Path

SUFFIXES = {".h", ".cc"}
COMMENT = re.compile(r'//.*|"(?:\\.|[^"\\])*"')

ALGORITHMS = ("copy|copy_n|copy_if|copy_backward|fill|fill_n|generate|generate_n|transform|iota|accumulate|reduce|"
              "inner_product|max_element|min_element|minmax_element|swap_ranges|replace|partial_sum")
ALWAYS = [
    (re.compile(rf"std::(?:ranges::)?(?:{ALGORITHMS})\("), "runs over elements"),
    (re.compile(r"\bmem(?:cpy|cmp|set|move)\("), "reads or writes bytes of elements"),
    (re.compile(r"\.fill\("), "fills a tensor"),
    (re.compile(r"\b(?:float|double|std::byte|T)\s*(?:const\s*)?\*"), "points at an element"),
    (re.compile(r"^(?!.*\bchar\*).*\.data\(\)\s*[+\[]"), "computes with data()"),
    (re.compile(r"\.(?:view|span|all)\(\)\s*(?:\(|\[(?=[^\]]*\]\s*(?:[-+*/]?=[^=]|\+\+|--))|\[\w+\]\s*[*/])"),
     "reaches an element"),
    (re.compile(r"\.span\(\)\["), "reaches an element"),
    (re.compile(r"for \((?:const )?float&? "), "loops over elements"),
]

NUMBER = r"(?:const )?(?:float|double|std::byte|T)"
# A variable, parameter or member: "View<float> a, b", but no function "View<float> a(int b)".
DECLARATION = re.compile(rf"\b(View|Tensor|span)<{NUMBER}>&? (?:const )?(\w+(?:\{{\}})?(?:, \w+)*)"
                         r"(?=[;,){=]| =|\([^()]*\.data\(\)|\(Shape|\(\w+\.shape)")
GUESS = re.compile(r"\bauto&? (\w+) = [^\[]*(?:\.view\(\)|\.slice\(|\.span\(\)|\.reshape\()[^;]*;")
FUNCTION = re.compile(r"[\w>&*] (\w+)\((?!\w+\.data)[^;{]*\)[^;{]*[;{]")
OF_VIEWS = {"view", "data", "span", "slice", "reshape", "all", "tensor"}  # their functions


def code_of(path):
    """The lines of a file without comments and strings."""
    return [COMMENT.sub("", line) for line in path.read_text(encoding="utf-8").splitlines()]


def declared(lines):
    """Names of views and of tensors or spans that these lines declare."""
    views, indexed = set(), set()
    for line in lines:
        for match in DECLARATION.finditer(line):
            names = {name.removesuffix("{}") for name in match.group(2).split(", ")}
            (views if match.group(1) == "View" else indexed).update(names)
        for match in GUESS.finditer(line):
            views.add(match.group(1))
    return views, indexed


def closing(text, begin):
    """The index behind the bracket that closes the one at `begin`, or the end."""
    depth = 0
    for index in range(begin, len(text)):
        depth += (text[index] in "([") - (text[index] in ")]")
        if depth == 0:
            return index + 1
    return len(text)


def is_initialiser(line, begin, end):
    """Whether name(...) at these places initialises a member or a variable, or is of a namespace."""
    before, after = line[:begin], line[end:].lstrip()
    word = re.search(r"(\w+|>&?) $", before)
    if before.endswith("::") or word and word.group(1) not in ("return", "else", "case"):
        return True
    before = before.rstrip()
    declares = re.match(r"\s*(?:const )?(?:View|Tensor)<", line) and before.endswith(",")
    starts = declares or not before or before.endswith((":", "},", "),"))
    return bool(starts) and (not after or after[0] in ",{;")


def places(lines, views, indexed, members):
    """(number of the line, why) for each line that touches an element."""
    for number, line in enumerate(lines, 1):
        why = next((reason for pattern, reason in ALWAYS if pattern.search(line)), None)
        for match in re.finditer(r"(\.|->)?\b(\w+)([(\[])", line):
            if why:
                break
            access, name, bracket = match.groups()
            end = closing(line, match.end() - 1)
            if bracket == "(":
                known = name in members[0] if access else name in views
                is_empty = line[match.end():].startswith(")")
                if known and not is_empty and not is_initialiser(line, match.start(), end):
                    why = f"calls the view {name}"
            elif name in (members[1] if access else indexed - views):
                why = f"indexes {name}"
        if why:
            yield number, why


def found(root):
    """All places below `root`, as (path, line, why)."""
    folder = root / "src" / "model"
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    operands = root / "src" / "kernels" / "operands.h"
    headers = [path for path in files if path.suffix == ".h"] + ([operands] if operands.exists() else [])
    members, indexed_members, functions = set(), set(), set(OF_VIEWS)
    for path in headers:
        text = "\n".join(code_of(path))
        names = declared(re.sub(r"\([^()]*\)", "()", text).splitlines())  # without parameters
        members |= names[0]
        indexed_members |= names[1]
        functions |= set(FUNCTION.findall(text))
    result = []
    for path in files:
        lines = code_of(path)
        views, indexed = declared(lines)
        own_header = path.with_suffix(".h")
        if own_header.exists() and own_header != path:
            more_views, more_indexed = declared(code_of(own_header))
            views |= {name for name in more_views if name.endswith("_")}
            indexed |= {name for name in more_indexed if name.endswith("_")}
        for number, why in places(lines, views - OF_VIEWS, indexed, (members - functions, indexed_members)):
            result.append((path.relative_to(root), number, why))
    return result


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    result = found(root)
    for file, number, why in result:
        print(f"{file}:{number}: {why}")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
