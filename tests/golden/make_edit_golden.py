#!/usr/bin/python3
"""Writes edits.safetensors: what PyTorch computes for the model of gpt_tied.safetensors when one
point of its pass is changed on the way.

    /usr/bin/python3 tests/golden/make_edit_golden.py

needs PyTorch and numpy. The model, its tokens and the arithmetic in float64 are those of
make_gpt_golden.py. For every point, of layer 1 where it is in a block, the file holds

    NAME.scale      logits (B, T, V) with all its values multiplied by 0.7
    NAME.zero       logits with all its values set to zero (not for scales and scores)

scores stay -inf where they are masked. The logits themselves are not changed.
"""

import pathlib

import numpy
import torch

import safetensors_by_hand
from gpt_module import Transformer, Points
from make_gpt_golden import MODELS, randomize

SCALE = 0.7


def main():
    config = MODELS["gpt_tied"]
    torch.manual_seed(0)
    model = Transformer(config).double()
    randomize(model)
    generator = torch.Generator().manual_seed(21)
    tokens = torch.randint(config.vocabulary_size, (2, config.context - 3), generator=generator)

    plain, split = Points(), Points(split_heads=True)
    with torch.no_grad():
        model(tokens, plain)
        model(tokens, split)
        tensors = {}
        for name in {**plain, **split}:
            other_layer = name.startswith("blocks.") and not name.startswith("blocks.1.")
            if other_layer or name == "unembed.hook_out":
                continue
            edits = {"scale": lambda values: values * SCALE}
            if not name.endswith(("scale", "scores")):
                edits["zero"] = torch.zeros_like
            for kind, edit in edits.items():
                logits = model(tokens, Points({name: edit}, split_heads=name not in plain))
                tensors[f"{name}.{kind}"] = logits.numpy().astype(numpy.float32)
    path = pathlib.Path(__file__).parent / "edits.safetensors"
    safetensors_by_hand.write(path, tensors, {"torch": torch.__version__})
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
