#!/usr/bin/python3
"""Measures heed beside llama.cpp on the same GGUF files of random weights: decoding and prompts, in turns.

    npm install --prefix DIR node-llama-cpp && cp benchmarks/llama_cpp.mjs DIR
    gguf_beside_llama_cpp.py make HEED FOLDER gpt2        # or llama-1b: FOLDER/gpt2-{q8_0,q4_0,q4_k_m}.gguf
    gguf_beside_llama_cpp.py measure HEED FOLDER/gpt2 'node DIR/llama_cpp.mjs' [--threads 1] [--rounds 3]

Both read the blocks of the file and round rows of activations to 8 bits. Each keeps keys and values as it does by default:
heed in f32, llama.cpp in f16. Every ratio is the median over rounds, in each of which both run once. llama.cpp is called
through Node once a token, which its rate of decoding includes. The last line has the least and the median ratio.
"""
import argparse
import json
import os
import random
import statistics
import struct
import subprocess
import sys

import numpy

TYPES = ("q8_0", "q4_0", "q4_k_m")
WORK = (("decode", ["-n", "64"], "64"), ("prompt", ["-c", "512"], "512"))


def byte_letters():
    """The letters of byte-level BPE, by byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]


def tokenizer(size):
    """A tokenizer of random merges: as large to read as a real one."""
    chance = random.Random(1)
    names = byte_letters()
    vocabulary, merges = {name: i for i, name in enumerate(names)}, []
    while len(vocabulary) < size - 1:
        left, right = chance.choice(names[:5000]), chance.choice(names[:5000])
        if left + right in vocabulary or len(left + right) > 12:
            continue
        vocabulary[left + right] = len(vocabulary)
        names.append(left + right)
        merges.append(f"{left} {right}")
    end = {"id": size - 1, "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
           "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": merges}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [end], "normalizer": None, "pre_tokenizer": level,
            "post_processor": None, "decoder": level, "model": model}


def gpt2_124m():
    channels, layers, words, positions = 768, 12, 50257, 1024
    shapes = {"wte.weight": (words, channels), "wpe.weight": (positions, channels)}
    for layer in range(layers):
        for name, width in (("attn.c_attn", 3), ("mlp.c_fc", 4)):
            shapes[f"h.{layer}.{name}.weight"] = (channels, width * channels)
            shapes[f"h.{layer}.{name}.bias"] = (width * channels,)
        for name, width in (("attn.c_proj", 1), ("mlp.c_proj", 4)):
            shapes[f"h.{layer}.{name}.weight"] = (width * channels, channels)
            shapes[f"h.{layer}.{name}.bias"] = (channels,)
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{norm}.{part}": (channels,) for part in ("weight", "bias")}
    shapes |= {f"ln_f.{part}": (channels,) for part in ("weight", "bias")}
    return {"model_type": "gpt2", "n_embd": channels, "n_layer": layers, "n_head": 12, "n_positions": positions, "vocab_size": words,
            "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "bos_token_id": words - 1, "eos_token_id": words - 1}, shapes


def llama_1b():
    channels, layers, words, width, keys = 2048, 22, 32000, 5632, 256
    shapes = {"model.embed_tokens.weight": (words, channels), "lm_head.weight": (words, channels), "model.norm.weight": (channels,)}
    for layer in range(layers):
        block = f"model.layers.{layer}."
        shapes |= {block + "input_layernorm.weight": (channels,), block + "post_attention_layernorm.weight": (channels,)}
        for name, outputs, inputs in (("self_attn.q_proj", channels, channels), ("self_attn.k_proj", keys, channels),
                                      ("self_attn.v_proj", keys, channels), ("self_attn.o_proj", channels, channels),
                                      ("mlp.gate_proj", width, channels), ("mlp.up_proj", width, channels),
                                      ("mlp.down_proj", channels, width)):
            shapes[f"{block}{name}.weight"] = (outputs, inputs)
    return {"model_type": "llama", "hidden_size": channels, "num_hidden_layers": layers, "num_attention_heads": 32,
            "num_key_value_heads": 4, "intermediate_size": width, "max_position_embeddings": 2048, "vocab_size": words,
            "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": words - 1,
            "eos_token_id": words - 1, "rope_theta": 10000.0}, shapes


def write_directory(path, config, shapes):
    """A model directory with weights of normal(0, 0.02) in bf16."""
    os.makedirs(path, exist_ok=True)
    chance = numpy.random.default_rng(1)
    with open(f"{path}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    with open(f"{path}/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump(tokenizer(config["vocab_size"]), file)
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * int(numpy.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{path}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            if len(shape) == 1:
                numbers = numpy.full(shape, 1.0 if name.endswith("weight") else 0.0, numpy.float32)
            else:
                numbers = numpy.float32(0.02) * chance.standard_normal(shape, dtype=numpy.float32)
            file.write((numbers.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes())


def make(options):
    directory = f"{options.folder}/{options.shape}"
    write_directory(directory, *{"gpt2": gpt2_124m, "llama-1b": llama_1b}[options.shape]())
    for kind in TYPES:
        subprocess.run([options.heed, "convert", directory, "--dtype", kind, "--out", f"{directory}-{kind}.gguf", "--force"], check=True)


def measure(options):
    ratios = []
    print("| work | file | heed, tok/s | llama.cpp, tok/s | times |\n| --- | --- | --- | --- | --- |")
    for suite, arguments, count in WORK:
        for kind in options.types.split(","):
            file = f"{options.model}-{kind}.gguf"
            rival = f"{options.llama} {file} {suite} {count} {options.threads}"
            done = subprocess.run([options.heed, "bench", suite, "-m", file, *arguments, "-r", str(options.rounds), "-t",
                                   str(options.threads), "--against", rival, "--json"], stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(done.stdout)["rows"][0]
            against = row["against"]
            ratios.append(against["times"])
            print(f"| {suite} {count} | {os.path.basename(file)} | {row['tokens_per_s']:.1f} | {against['tokens_per_s']:.1f} | "
                  f"{against['times']:.2f} ({against['times_min']:.2f} to {against['times_max']:.2f}) |", flush=True)
    print(f"least {min(ratios):.2f}, median {statistics.median(ratios):.2f}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("make")
    made.add_argument("heed")
    made.add_argument("folder")
    made.add_argument("shape", choices=("gpt2", "llama-1b"))
    measured = commands.add_parser("measure")
    measured.add_argument("heed")
    measured.add_argument("model")
    measured.add_argument("llama")
    measured.add_argument("--threads", type=int, default=1)
    measured.add_argument("--rounds", type=int, default=3)
    measured.add_argument("--types", default=",".join(TYPES))
    options = parser.parse_args()
    make(options) if options.command == "make" else measure(options)


if __name__ == "__main__":
    main()
