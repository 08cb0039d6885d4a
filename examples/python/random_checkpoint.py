"""Random checkpoints in Hugging Face's layout, with nothing but NumPy, for examples and tests."""

import json
import struct

import numpy as np


def write(folder, config, tensors):
    (folder / "config.json").write_text(json.dumps(config))
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape),
                        "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, np.float32).tobytes())


def write_llama(folder, layers, channels, heads, vocabulary, context, seed=0):
    random = np.random.default_rng(seed)

    def normal(*shape):
        return random.normal(0, 0.2, shape).astype(np.float32)

    tensors = {"model.embed_tokens.weight": normal(vocabulary, channels)}
    for layer in range(layers):
        block = f"model.layers.{layer}."
        for name in ("q", "k", "v", "o"):
            tensors[f"{block}self_attn.{name}_proj.weight"] = normal(channels, channels)
        for name, shape in (("gate", (2 * channels, channels)), ("up", (2 * channels, channels)),
                            ("down", (channels, 2 * channels))):
            tensors[f"{block}mlp.{name}_proj.weight"] = normal(*shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{block}{name}.weight"] = np.ones(channels, np.float32)
    tensors["model.norm.weight"] = np.ones(channels, np.float32)
    tensors["lm_head.weight"] = normal(vocabulary, channels)
    write(folder, {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary,
        "hidden_size": channels, "intermediate_size": 2 * channels, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": heads, "hidden_act": "silu",
        "max_position_embeddings": context, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": False}, tensors)


def write_gpt2(folder, layers=12, channels=768, heads=12, vocabulary=50257, context=1024, seed=0):
    random = np.random.default_rng(seed)

    def normal(*shape):
        return random.normal(0, 0.02, shape).astype(np.float32)

    tensors = {"wte.weight": normal(vocabulary, channels),
               "wpe.weight": normal(context, channels)}
    for layer in range(layers):
        block = f"h.{layer}."
        for name, shape in (("attn.c_attn", (channels, 3 * channels)),
                            ("attn.c_proj", (channels, channels)),
                            ("mlp.c_fc", (channels, 4 * channels)),
                            ("mlp.c_proj", (4 * channels, channels))):
            tensors[f"{block}{name}.weight"] = normal(*shape)
            tensors[f"{block}{name}.bias"] = normal(shape[1])
        for name in ("ln_1", "ln_2"):
            tensors[f"{block}{name}.weight"] = 1 + normal(channels)
            tensors[f"{block}{name}.bias"] = normal(channels)
    tensors["ln_f.weight"] = 1 + normal(channels)
    tensors["ln_f.bias"] = normal(channels)
    write(folder, {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": vocabulary,
        "n_positions": context, "n_ctx": context, "n_embd": channels, "n_layer": layers,
        "n_head": heads, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}, tensors)
