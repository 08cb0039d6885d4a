#!/usr/bin/env python3
"""Rounds W_enc and W_dec of dictionaries in SAELens's layout to int8, with a scale for each feature
(NAME_scale), in place; vectors stay f32. heed reads such files; `heed.sae.SAE.save_model` writes them
in f32 for SAELens again.

    python3 scripts/round_transcoders.py FOLDER/layer_*/sae_weights.safetensors
"""

import json
import os
import struct
import sys

import numpy as np

FEATURE_AXIS = {"W_enc": 1, "W_dec": 0}


def values_of(entry, data):
    """f32 of a tensor in F32 or BF16."""
    begin, end = entry["data_offsets"]
    part = data[begin:end]
    if entry["dtype"] == "BF16":
        values = (np.frombuffer(part, np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.frombuffer(part, np.float32)
    return values.reshape(entry["shape"])


def rounded(values, axis):
    """int8 and the scales (F,) that multiply them: the largest of a feature is 127."""
    scale = np.abs(values).max(1 - axis).astype(np.float32) / 127
    safe = np.expand_dims(np.where(scale > 0, scale, 1), 1 - axis)
    return np.clip(np.rint(values / safe), -127, 127).astype(np.int8), scale


def round_file(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] == "I8":
            continue
        values = values_of(entry, data)
        if name in FEATURE_AXIS:
            values, tensors[f"{name}_scale"] = rounded(values, FEATURE_AXIS[name])
        tensors[name] = values
    if not FEATURE_AXIS.keys() <= tensors.keys():
        sys.exit(f"{path}: no W_enc and W_dec to round")
    # Larger elements first, so that all are aligned.
    order = sorted(tensors, key=lambda name: -tensors[name].itemsize)
    at, entries = 0, {}
    for name in order:
        values = tensors[name]
        entries[name] = {"dtype": "I8" if values.dtype == np.int8 else "F32",
                         "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".partial", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(np.ascontiguousarray(tensors[name]).tobytes() for name in order)
    os.replace(path + ".partial", path)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        round_file(each)
