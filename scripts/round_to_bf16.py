#!/usr/bin/env python3
"""Rounds the matrices of safetensors files from f32 to bf16, in place; vectors stay f32.

    python3 scripts/round_to_bf16.py FILE.safetensors …
"""

import json
import os
import struct
import sys

import numpy as np


def rounded(values):
    """bf16 (as 16 bits) of f32: the nearest, of two equally near the even one."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def round_file(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    parts, at = [], 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        part = data[begin:end]
        if entry["dtype"] == "F32" and len(entry["shape"]) >= 2:
            part = rounded(np.frombuffer(part, np.float32)).tobytes()
            entry["dtype"] = "BF16"
        entry["data_offsets"] = [at, at + len(part)]
        at += len(part)
        parts.append(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".partial", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
    os.replace(path + ".partial", path)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        round_file(each)
