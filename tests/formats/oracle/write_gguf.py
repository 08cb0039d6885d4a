"""A model directory in Hugging Face's layout as a GGUF file in f32, independent of heed.

    write_gguf.py DIR FILE.gguf [PARTS]

Keys, names and layouts are those that llama.cpp's convert_hf_to_gguf.py writes: Conv1D matrices
transposed, heads of GPT-NeoX and Falcon apart, rows of LLaMA's query and key with the channels of a
pair side by side, and Gemma's gains with the 1 that their files leave out.
"""

import json
import math
import os
import struct
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../golden"))
import safetensors_by_hand  # noqa: E402

U32, F32, BOOLEAN, STRING = 4, 6, 7, 8


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    packed = {U32: lambda: struct.pack("<I", value), F32: lambda: struct.pack("<f", value),
              BOOLEAN: lambda: struct.pack("<B", value), STRING: lambda: text(value)}[kind]()
    return text(key) + struct.pack("<I", kind) + packed


def write(path, entries, tensors):
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries))
    header += b"".join(entry(*each) for each in entries)
    offset = 0
    for name, values in tensors:
        header += text(name) + struct.pack("<I", values.ndim)
        header += struct.pack(f"<{values.ndim}Q", *reversed(values.shape))
        header += struct.pack("<IQ", 0, offset)
        offset += -(-values.nbytes // 32) * 32
    with open(path, "wb") as file:
        file.write(header + bytes(-len(header) % 32))
        for _, values in tensors:
            data = numpy.ascontiguousarray(values, dtype=numpy.float32).tobytes()
            file.write(data + bytes(-len(data) % 32))


def paired(weights, heads):
    """Rows (heads, 2, D/2) as (heads, D/2, 2)."""
    rows = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
    return rows.swapaxes(1, 2).reshape(weights.shape)


def gpt2(config, given):
    names = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
             "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    top = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm"}
    entries = [("gpt2.context_length", U32, config["n_positions"]),
               ("gpt2.embedding_length", U32, config["n_embd"]),
               ("gpt2.block_count", U32, config["n_layer"]),
               ("gpt2.feed_forward_length", U32, config.get("n_inner") or 4 * config["n_embd"]),
               ("gpt2.attention.head_count", U32, config["n_head"]),
               ("gpt2.attention.layer_norm_epsilon", F32, config["layer_norm_epsilon"])]
    tensors = []
    for name, values in given.items():
        name = name.removeprefix("transformer.")
        if name.endswith((".attn.bias", ".masked_bias")) or name == "lm_head.weight":
            continue
        stem, ending = name.rsplit(".", 1)
        if stem.startswith("h."):
            _, layer, inner = stem.split(".", 2)
            is_matrix = inner in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
            values = values.T if is_matrix and ending == "weight" else values
            tensors.append((f"blk.{layer}.{names[inner]}.{ending}", values))
        else:
            tensors.append((f"{top[stem]}.{ending}", values))
    return "gpt2", entries, tensors


def scaling(config, head_size):
    """Entries, and the tensor of factors of LLaMA 3.1."""
    given = config.get("rope_scaling") or {}
    kind = given.get("rope_type", given.get("type", "default"))
    if kind == "linear":
        return [("rope.scaling.type", STRING, "linear"),
                ("rope.scaling.factor", F32, given["factor"])], []
    if kind == "yarn":
        return [("rope.scaling.type", STRING, "yarn"), ("rope.scaling.factor", F32, given["factor"]),
                ("rope.scaling.original_context_length", U32,
                 given["original_max_position_embeddings"])], []
    if kind == "longrope":
        old = config["original_max_position_embeddings"]
        growth = config["max_position_embeddings"] / old
        return [("rope.scaling.original_context_length", U32, old),
                ("rope.scaling.attn_factor", F32, math.sqrt(1 + math.log(growth) / math.log(old)))], [
                    (f"rope_factors_{length}.weight", numpy.array(given[f"{length}_factor"], numpy.float32))
                    for length in ("long", "short")]
    if kind != "llama3":
        return [], []
    factors = []
    old = given["original_max_position_embeddings"]
    low, high, factor = given["low_freq_factor"], given["high_freq_factor"], given["factor"]
    for i in range(0, head_size, 2):
        wavelength = 2 * math.pi * config["rope_theta"] ** (i / head_size)
        if wavelength < old / high:
            factors.append(1.0)
        elif wavelength > old / low:
            factors.append(factor)
        else:
            smooth = (old / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return [], [("rope_freqs.weight", numpy.array(factors, numpy.float32))]


LLAMA_NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
    "embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
OUTPUT_NORM_NAMES = {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm"}


def llama_like(config, given):
    kind = config["model_type"]
    architecture = {"mistral": "llama", "gemma3_text": "gemma3"}.get(kind, kind)
    is_gemma = kind.startswith("gemma")
    names = LLAMA_NAMES | (OUTPUT_NORM_NAMES if is_gemma or kind == "olmo2" else {})
    heads = config["num_attention_heads"]
    shared = config.get("num_key_value_heads", heads)
    head_size = config.get("head_dim") or config["hidden_size"] // heads
    entries = [("context_length", U32, config["max_position_embeddings"]),
               ("embedding_length", U32, config["hidden_size"]),
               ("block_count", U32, config["num_hidden_layers"]),
               ("feed_forward_length", U32, config["intermediate_size"]),
               ("attention.head_count", U32, heads), ("attention.head_count_kv", U32, shared),
               ("rope.freq_base", F32, config["rope_theta"])]
    if kind == "starcoder2":
        entries.append(("attention.layer_norm_epsilon", F32, config["norm_epsilon"]))
    else:
        entries.append(("attention.layer_norm_rms_epsilon", F32, config["rms_norm_eps"]))
    if config.get("head_dim"):
        entries += [("attention.key_length", U32, head_size),
                    ("attention.value_length", U32, head_size)]
    if kind == "llama":
        entries += [("vocab_size", U32, config["vocab_size"]),
                    ("rope.dimension_count", U32, head_size)]
    if kind == "phi3":
        entries.append(("rope.dimension_count", U32, int(config["partial_rotary_factor"] * head_size)))
    for cap in ("attn_logit_softcapping", "final_logit_softcapping"):
        if config.get(cap):
            entries.append((cap, F32, config[cap]))
    if kind == "gemma3_text":
        entries.append(("rope.freq_base_swa", F32, config["rope_local_base_freq"]))
    if (is_gemma or kind in ("mistral", "starcoder2", "phi3")) and config.get("sliding_window"):
        entries.append(("attention.sliding_window", U32, config["sliding_window"]))
    more, factors = scaling(config, head_size)
    tensors = list(factors)
    for name, values in given.items():
        stem, ending = name.removeprefix("model.").rsplit(".", 1)
        if stem == "lm_head" and config["tie_word_embeddings"]:
            continue
        if stem.startswith("layers."):
            _, layer, inner = stem.split(".", 2)
            if architecture == "llama" and inner in ("self_attn.q_proj", "self_attn.k_proj"):
                values = paired(values, heads if inner.endswith("q_proj") else shared)
            if is_gemma and inner.endswith("norm"):
                values = values + numpy.float32(1)
            tensors.append((f"blk.{layer}.{names[inner]}.{ending}", values))
        else:
            if is_gemma and stem == "norm":
                values = values + numpy.float32(1)
            tensors.append((f"{names[stem]}.{ending}", values))
    return architecture, [(f"{architecture}.{key}", *rest) for key, *rest in entries + more], tensors


def gptneox(config, given):
    heads, channels = config["num_attention_heads"], config["hidden_size"]
    names = {"input_layernorm": "attn_norm", "attention.query_key_value": "attn_qkv",
             "attention.dense": "attn_output", "post_attention_layernorm": "ffn_norm",
             "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down",
             "gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm",
             "embed_out": "output"}
    rotating = int(config["rotary_pct"] * (channels // heads))
    entries = [("gptneox.context_length", U32, config["max_position_embeddings"]),
               ("gptneox.embedding_length", U32, channels),
               ("gptneox.block_count", U32, config["num_hidden_layers"]),
               ("gptneox.feed_forward_length", U32, config["intermediate_size"]),
               ("gptneox.rope.dimension_count", U32, rotating),
               ("gptneox.rope.freq_base", F32, config["rotary_emb_base"]),
               ("gptneox.attention.head_count", U32, heads),
               ("gptneox.use_parallel_residual", BOOLEAN, config["use_parallel_residual"]),
               ("gptneox.attention.layer_norm_epsilon", F32, config["layer_norm_eps"])]
    tensors = []
    for name, values in given.items():
        stem, ending = name.rsplit(".", 1)
        if stem.endswith(("attention", "rotary_emb")) or ending == "masked_bias":
            continue
        if not stem.startswith("gpt_neox.layers."):
            tensors.append((f"{names[stem]}.{ending}", values))
            continue
        _, _, layer, inner = stem.split(".", 3)
        if inner == "attention.query_key_value":
            rows = values.reshape(heads, 3, channels // heads, *values.shape[1:])
            values = rows.swapaxes(0, 1).reshape(values.shape)
        tensors.append((f"blk.{layer}.{names[inner]}.{ending}", values))
    return "gptneox", entries, tensors


def falcon(config, given):
    heads, channels = config["num_attention_heads"], config["hidden_size"]
    shared = config["num_kv_heads"] if config["new_decoder_architecture"] else 1
    names = {"input_layernorm": "attn_norm", "ln_attn": "attn_norm_2", "ln_mlp": "attn_norm",
             "self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output",
             "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down",
             "transformer.word_embeddings": "token_embd", "transformer.ln_f": "output_norm",
             "lm_head": "output"}
    entries = [("falcon.context_length", U32, config["max_position_embeddings"]),
               ("falcon.embedding_length", U32, channels),
               ("falcon.block_count", U32, config["num_hidden_layers"]),
               ("falcon.feed_forward_length", U32, config["ffn_hidden_size"]),
               ("falcon.attention.head_count", U32, heads),
               ("falcon.attention.head_count_kv", U32, shared),
               ("falcon.attention.layer_norm_epsilon", F32, config["layer_norm_epsilon"])]
    tensors = []
    for name, values in given.items():
        stem, ending = name.rsplit(".", 1)
        if not stem.startswith("transformer.h."):
            tensors.append((f"{names[stem]}.{ending}", values))
            continue
        _, _, layer, inner = stem.split(".", 3)
        if inner == "self_attention.query_key_value":
            # Groups of queries, a key and a value become all queries, all keys, all values.
            each = heads // shared
            rows = values.reshape(shared, each + 2, channels // heads, *values.shape[1:])
            parts = rows[:, :each], rows[:, each:each + 1], rows[:, each + 1:]
            values = numpy.concatenate([part.reshape(-1, *values.shape[1:]) for part in parts])
        tensors.append((f"blk.{layer}.{names[inner]}.{ending}", values))
    return "falcon", entries, tensors


def bert(config, given):
    """The encoder: no tensor is that of the masked language model's head, or of a pooler."""
    names = {"embeddings.word_embeddings": "token_embd", "embeddings.token_type_embeddings": "token_types",
             "embeddings.position_embeddings": "position_embd", "embeddings.LayerNorm": "token_embd_norm",
             "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
             "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
             "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
    entries = [("bert.context_length", U32, config["max_position_embeddings"]),
               ("bert.embedding_length", U32, config["hidden_size"]),
               ("bert.feed_forward_length", U32, config["intermediate_size"]),
               ("bert.block_count", U32, config["num_hidden_layers"]),
               ("bert.attention.head_count", U32, config["num_attention_heads"]),
               ("bert.attention.layer_norm_epsilon", F32, config["layer_norm_eps"]),
               ("bert.attention.causal", BOOLEAN, False), ("bert.pooling_type", U32, 1),
               ("tokenizer.ggml.token_type_count", U32, config["type_vocab_size"])]
    tensors = []
    for name, values in given.items():
        stem, ending = name.removeprefix("bert.").rsplit(".", 1)
        if stem.startswith(("cls", "pooler")) or ending == "position_ids":
            continue
        if stem.startswith("encoder.layer."):
            _, _, layer, inner = stem.split(".", 3)
            tensors.append((f"blk.{layer}.{names[inner]}.{ending}", values))
        else:
            tensors.append((f"{names[stem]}.{ending}", values))
    return "bert", entries, tensors


def t5(config, given):
    inner = {"SelfAttention.q": "attn_q", "SelfAttention.k": "attn_k", "SelfAttention.v": "attn_v",
             "SelfAttention.o": "attn_o", "SelfAttention.relative_attention_bias": "attn_rel_b",
             "EncDecAttention.q": "cross_attn_q", "EncDecAttention.k": "cross_attn_k",
             "EncDecAttention.v": "cross_attn_v", "EncDecAttention.o": "cross_attn_o",
             "EncDecAttention.relative_attention_bias": "cross_attn_rel_b",
             "DenseReluDense.wi": "ffn_up", "DenseReluDense.wi_0": "ffn_gate",
             "DenseReluDense.wi_1": "ffn_up", "DenseReluDense.wo": "ffn_down"}
    entries = [("t5.context_length", U32, config.get("n_positions", 512)),
               ("t5.embedding_length", U32, config["d_model"]),
               ("t5.feed_forward_length", U32, config["d_ff"]),
               ("t5.block_count", U32, config["num_layers"]),
               ("t5.decoder_block_count", U32, config["num_decoder_layers"]),
               ("t5.attention.head_count", U32, config["num_heads"]),
               ("t5.attention.key_length", U32, config["d_kv"]),
               ("t5.attention.value_length", U32, config["d_kv"]),
               ("t5.attention.layer_norm_epsilon", F32, config["layer_norm_epsilon"]),
               ("t5.attention.relative_buckets_count", U32, config["relative_attention_num_buckets"]),
               ("t5.attention.layer_norm_rms_epsilon", F32, config["layer_norm_epsilon"]),
               ("t5.decoder_start_token_id", U32, config["decoder_start_token_id"])]
    tensors = []
    for name, values in given.items():
        stem, ending = name.rsplit(".", 1)
        if stem == "shared":
            tensors.append(("token_embd.weight", values))
        elif stem == "lm_head":
            if not config["tie_word_embeddings"]:
                tensors.append(("output.weight", values))
        elif stem.endswith("final_layer_norm"):
            tensors.append((f"{stem[:3]}.output_norm.{ending}", values))
        elif ".block." in stem:
            side, _, block, _, index, rest = stem.split(".", 5)
            norms = ["attn_norm", "ffn_norm"] if side == "encoder" else [
                "attn_norm", "cross_attn_norm", "ffn_norm"]
            own = norms[int(index)] if rest == "layer_norm" else inner[rest]
            tensors.append((f"{side[:3]}.blk.{block}.{own}.{ending}", values))
    return "t5", entries, tensors


def main():
    directory, path = sys.argv[1:3]
    parts = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with open(os.path.join(directory, "config.json")) as file:
        config = json.load(file)
    given = safetensors_by_hand.read(os.path.join(directory, "model.safetensors"))
    write_family = {"gpt2": gpt2, "gpt_neox": gptneox, "t5": t5, "falcon": falcon,
                    "bert": bert}.get(config["model_type"], llama_like)
    architecture, entries, tensors = write_family(config, given)
    entries = [("general.architecture", STRING, architecture)] + entries
    for key in ("bos", "eos"):
        if isinstance(config.get(f"{key}_token_id"), int):
            entries.append((f"tokenizer.ggml.{key}_token_id", U32, config[f"{key}_token_id"]))
    if parts == 1:
        return write(path, entries, tensors)
    stem = path.removesuffix(".gguf")
    for part in range(parts):
        split = [("split.no", U32, part), ("split.count", U32, parts)]
        write(f"{stem}-{part + 1:05}-of-{parts:05}.gguf",
              (entries if part == 0 else []) + split, tensors[part::parts])


if __name__ == "__main__":
    main()
