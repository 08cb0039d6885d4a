#!/usr/bin/env python3
"""Checks that the folders of src/ include only what stands below them.

A file includes its own folder, lower floors and heed/ (the installed headers). Folders on one floor
never include each other. Highway stays inside src/kernels/cpu, Boost inside src/server, libcurl and
OpenSSL inside src/download; cpp-httplib is for tests. Installed headers include installed headers only, and so does
the Python module, but for its own. Prints file:line for every breach and
exits with 1 if there is one.
"""

import re

from sources import report

FLOORS = [
    {"base"},
    {"tensor"},
    {"kernels", "tokenizer", "chat", "checkpoint", "microworld", "scoring", "download", "comm"},
    {"model"},
    {"formats"},
    {"train", "generate", "microscope"},
    {"engine", "microworld/checks"},
    {"cli", "server"},
    {"wasm"},
]
FLOOR_OF = {folder: floor for floor, folders in enumerate(FLOORS) for folder in folders}

# Libraries that one folder alone may include.
CONFINED = {
    "hwy": "src/kernels/cpu",
    "boost": "src/server",
    "curl": "src/download",
    "openssl": "src/base",
    "httplib.h": "tests",
    "mpi.h": "src/comm/mpi",
    "cuda.h": "src/kernels/cuda",
    "cuda_runtime.h": "src/kernels/cuda",
    "cublasLt.h": "src/kernels/cuda",
    "pybind11": "python/src",
}

# The one header by which a face starts another: `heed serve` is the command line's, serving is not.
DOORS = {"server/serve.h": "cli"}

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    """The folder of a file, by its parts from src/: a folder in another may stand on a floor of its own."""
    inner = "/".join(path[:2])
    return inner if inner in FLOOR_OF else path[0]


def breach(file, quote, included):
    """Why `file` (a path from the root) may not include this, or None."""
    first = included.split("/")[0]
    home = CONFINED.get(first)
    if home is not None:
        inside = file.as_posix().startswith(home + "/")
        return None if inside else f"{first}/ is included only in {home}"
    if first == "heed" and "/" in included:
        return None
    if file.parts[0] == "include":
        if quote == '"' or first in FLOOR_OF and "/" in included:
            return "an installed header includes only installed headers (heed/...)"
        return None
    if file.parts[0] == "python":
        if first in FLOOR_OF and "/" in included:
            return "the Python module includes only installed headers (heed/...)"
        return None
    folder = folder_of(file.parts[1:])
    if folder not in FLOOR_OF:
        return f"src/{folder} is on no floor (see scripts/check_layers.py)"
    if quote == "<" and not (first in FLOOR_OF and "/" in included):
        return None
    if quote == '"' and "/" not in included:
        return "includes are written from src/, with their folder"
    if first not in FLOOR_OF:
        return f"'{first}' is on no floor (see scripts/check_layers.py)"
    if DOORS.get(included) == folder:
        return None
    first = folder_of(included.split("/"))
    if first == folder or FLOOR_OF[first] < FLOOR_OF[folder]:
        return None
    relation = "beside" if FLOOR_OF[first] == FLOOR_OF[folder] else "above"
    return f"src/{first} (floor {FLOOR_OF[first]}) stands {relation} src/{folder} " \
           f"(floor {FLOOR_OF[folder]})"


def breaches(file, line):
    """Why a line of `file` may not stand there."""
    match = INCLUDE.match(line)
    if match is None or file.parts[0] == "src" and len(file.parts) == 2:
        return []
    why = breach(file, match.group(1), match.group(2))
    return [f"includes {match.group(2)}: {why}"] if why else []


if __name__ == "__main__":
    report(breaches)
