"""The lines of heed's own C++, for the checks beside this file."""

import sys
from pathlib import Path

FOLDERS = ("include", "src", "python")
SUFFIXES = {".h", ".cc"}


def source_lines(root):
    """All lines below `root`, as (path from the root, number from 1, line)."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    yield path.relative_to(root), number, line


def report(breach_of):
    """Prints file:line and every message of breach_of(file, line), for the files below the folder that
    the command line names, by default heed's. Exits with 1 if there is one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = [f"{file}:{number}: {message}" for file, number, line in source_lines(root)
             for message in breach_of(file, line)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
