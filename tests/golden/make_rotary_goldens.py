#!/usr/bin/python3
"""Writes rotary/: scalings of rotary positions as config.json files have them, and what they make of
frequencies and of a model's logits, in float64.

    /usr/bin/python3 tests/golden/make_rotary_goldens.py

needs PyTorch and numpy, and writes the same bytes again on the same machine.

rotary/scalings.json is a list of {"config", "length", "frequencies", "magnitude"}: radians a position
for each pair of channels in a text of `length` tokens, and the factor of cosines and sines.

rotary/dynamic is a toy LLaMA whose dynamic scaling acts beyond the 16 positions of its training:

    config.json, model.safetensors
    golden.safetensors
        tokens     (40)
        logits     (40, V): of one pass
        decoded    (17, V): behind the first 24 tokens, read in one pass, and behind each of the next 16,
                   with keys and values in a cache: keys keep the frequencies with which they were read
"""

import json
import pathlib

import numpy
import torch

import safetensors_by_hand
from family_parts import Memory, rotary_frequencies
from make_family_goldens import randomized, single

FOLDER = pathlib.Path(__file__).parent / "rotary"
CONTEXT, HEAD_SIZE = 16384, 16

YARN = {"rope_type": "yarn", "original_max_position_embeddings": 4096}
SCALINGS = [
    {"rope_type": "linear", "factor": 3.0},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 2048},
    YARN | {"factor": 4.0},
    YARN | {"factor": None},
    YARN | {"factor": 10.0, "truncate": False},
    YARN | {"factor": None, "truncate": False, "beta_fast": 20, "beta_slow": 2},
    YARN | {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.5},
    YARN | {"factor": 40.0, "mscale": 0.707, "mscale_all_dim": 0.707},
    YARN | {"factor": 40.0, "mscale": 0.707},
    YARN | {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.0},
    YARN | {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.5, "attention_factor": 1.25},
]
LONG = {"rope_type": "longrope", "original_max_position_embeddings": 4096,
        "short_factor": [1.0, 1.05, 1.1, 1.25, 1.4, 1.6, 2.0, 2.5],
        "long_factor": [1.2, 1.5, 3.0, 6.0, 12.0, 24.0, 33.5, 64.0]}
LONG_CASES = ((LONG, 1), (LONG, 4096), (LONG, 4097), (LONG | {"attention_factor": 1.5}, 16384))
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}
LENGTHS = (1, 16384, 16385, 20000, 65536)


def config_of(scaling):
    return {
        "model_type": "llama", "vocab_size": 11, "hidden_size": 32, "intermediate_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
        "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-6, "hidden_act": "silu",
        "rope_theta": 10000.0, "tie_word_embeddings": True, "rope_scaling": scaling,
    }


def case(scaling, length):
    config = config_of(scaling)
    frequencies, magnitude = rotary_frequencies(config, HEAD_SIZE, length)
    return {"config": config, "length": length, "frequencies": frequencies.tolist(),
            "magnitude": magnitude}


def write_scalings():
    cases = [case(scaling, CONTEXT) for scaling in SCALINGS]
    cases += [case(DYNAMIC, length) for length in LENGTHS]
    cases += [case(scaling, length) for scaling, length in LONG_CASES]
    (FOLDER / "scalings.json").write_text(json.dumps(cases, indent=1) + "\n")
    print(f"scalings.json: {len(cases)} cases")


def write_dynamic():
    directory = FOLDER / "dynamic"
    config = json.loads((directory / "config.json").read_text())
    model = randomized(config)
    tensors = {name: single(values) for name, values in model.in_file().items()}
    safetensors_by_hand.write(directory / "model.safetensors", dict(sorted(tensors.items())),
                              {"format": "pt"})
    generator = torch.Generator().manual_seed(21)
    tokens = torch.randint(config["vocab_size"], (1, 40), generator=generator)
    with torch.no_grad():
        logits = model(tokens)
        memory, decoded = Memory(), []
        for part in tokens.split([24] + [1] * 16, dim=1):
            decoded.append(model(part, memory=memory)[0, -1:])
    safetensors_by_hand.write(directory / "golden.safetensors", {
        "tokens": tokens[0].numpy().astype(numpy.int32), "logits": single(logits[0]),
        "decoded": single(torch.cat(decoded)),
    }, {"torch": torch.__version__})
    print(f"dynamic: cached decoding differs by {(torch.cat(decoded)[1:] - logits[0, 24:]).abs().max():.2f}")


def main():
    torch.set_num_threads(1)
    write_scalings()
    write_dynamic()


if __name__ == "__main__":
    main()
