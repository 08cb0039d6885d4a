#!/usr/bin/python3
"""Whether PyTorch computes the logits that heed does, from a model directory that heed wrote.

    heed predict -m DIR --json --full --all-positions --tokens 5,17,3 > logits.json
    /usr/bin/python3 tests/golden/read_heed_model.py DIR logits.json [TOLERANCE]

The JSON document holds "tokens", a list of ids, and "logits": V numbers for each token, or V for
the last one. Prints the relative error, the norm of the difference by the norm of PyTorch's f64
result, and exits with 1 when it is above the tolerance (1e-5) or the directory cannot be read so;
with 77 when PyTorch or numpy is not installed.
"""

import json
import pathlib
import sys

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import safetensors_by_hand
from gpt_module import TRANSPOSED, Transformer, GptConfig


def load(directory):
    config = GptConfig.from_json(json.loads((directory / "config.json").read_text()))
    tensors = safetensors_by_hand.read(directory / "model.safetensors")
    model = Transformer(config).double()
    for name, parameter in model.named_parameters():
        if name not in tensors:
            sys.exit(f"{directory}: there is no tensor '{name}'")
        values = torch.from_numpy(tensors.pop(name)).double()
        if name.endswith(TRANSPOSED):
            values = values.T
        if values.shape != parameter.shape:
            sys.exit(f"{directory}: '{name}' has shape {tuple(values.shape)}, "
                     f"expected {tuple(parameter.shape)}")
        with torch.no_grad():
            parameter.copy_(values)
    for name, values in tensors.items():
        # Biases that a model lacks are there as zeros, for readers that know of no such models.
        if config.has_bias or not name.endswith(".bias") or numpy.any(values):
            sys.exit(f"{directory}: the tensor '{name}' is one too many")
    return model


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    tolerance = float(sys.argv[3]) if len(sys.argv) == 4 else 1e-5
    document = json.loads(pathlib.Path(sys.argv[2]).read_text())
    model = load(pathlib.Path(sys.argv[1]))
    with torch.no_grad():
        expected = model(torch.tensor([document["tokens"]]))[0].numpy()
    actual = numpy.array(document["logits"], dtype=numpy.float64)
    if actual.ndim == 1:
        actual, expected = actual[None], expected[-1:]
    if actual.shape != expected.shape:
        sys.exit(f"{actual.shape} logits, expected {expected.shape}")
    error = numpy.linalg.norm(actual - expected) / numpy.linalg.norm(expected)
    print(f"relative error {error:.3e}, tolerance {tolerance:.0e}")
    if not error <= tolerance:  # NaN is not
        sys.exit(1)


if __name__ == "__main__":
    main()
