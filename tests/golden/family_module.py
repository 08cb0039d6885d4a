"""Published decoder families in PyTorch, written for comparison with heed.

LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, Starcoder2ForCausalLM,
Olmo2ForCausalLM, Phi3ForCausalLM, Gemma2ForCausalLM, Gemma3ForCausalLM (of text), FalconForCausalLM,
GPTNeoXForCausalLM, GPTNeoForCausalLM, OPTForCausalLM and GPT2LMHeadModel, each built from a
config.json as Hugging Face has it. The names, shapes and layouts of parameters are those of its
model.safetensors; names of points are TransformerLens'. Letters: B batch, T positions, S positions attended to, C channels, H heads, G
key-value heads, D head size, F neurons, V vocabulary.
"""

import torch
from torch import nn

from family_parts import (ACTIVATIONS, Conv1D, GemmaNorm, LayerNorm, Memory, Points, RmsNorm, attend,
                          rotate)


class LlamaAttention(nn.Module):
    """Of Llama and its kin."""

    def __init__(self, config, layer):
        super().__init__()
        kind, channels = config["model_type"], config["hidden_size"]
        self.config, self.layer = config, layer
        self.heads = config["num_attention_heads"]
        self.groups = config["num_key_value_heads"]
        self.head_size = config.get("head_dim") or channels // self.heads
        bias = config.get("use_bias" if kind == "starcoder2" else "attention_bias", False)
        biases = {"qkv": True, "o": False} if kind == "qwen2" else {"qkv": bias, "o": bias}
        width, group_width = self.heads * self.head_size, self.groups * self.head_size
        self.widths = [width, group_width, group_width]
        self.fused = kind == "phi3"
        if self.fused:
            self.qkv_proj = nn.Linear(channels, sum(self.widths), bias=False)
        else:
            self.q_proj = nn.Linear(channels, width, bias=biases["qkv"])
            self.k_proj = nn.Linear(channels, group_width, bias=biases["qkv"])
            self.v_proj = nn.Linear(channels, group_width, bias=biases["qkv"])
        self.o_proj = nn.Linear(width, channels, bias=biases["o"])
        self.rotary_size = int(self.head_size * config.get("partial_rotary_factor", 1.0))
        scalar = config.get("query_pre_attn_scalar")
        self.scale = None if scalar is None else scalar**-0.5
        self.cap = config.get("attn_logit_softcapping")
        self.normalizes = kind in ("qwen3", "olmo2", "gemma3_text")
        if self.normalizes:
            norm = norm_class(config)
            whole = kind == "olmo2"  # all heads together
            self.q_norm = norm(width if whole else self.head_size, config["rms_norm_eps"])
            self.k_norm = norm(group_width if whole else self.head_size, config["rms_norm_eps"])
            self.normalizes_before_split = whole
        self.window = config.get("sliding_window")
        if kind.startswith("gemma"):
            local = (layer + 1) % (2 if kind == "gemma2" else config["sliding_window_pattern"]) != 0
            self.window = self.window if local else None
            if local and kind == "gemma3_text":
                self.config = config | {"rope_theta": config["rope_local_base_freq"], "rope_scaling": None}
        if kind.startswith("qwen"):
            # The first max_window_layers layers see everything.
            windowed = config["use_sliding_window"] and layer >= config["max_window_layers"]
            self.window = self.window if windowed else None

    def forward(self, x, memory, points, name):
        batch, positions, _ = x.shape
        split = lambda values: values.reshape(batch, positions, -1, self.head_size)
        if self.fused:
            projected = self.qkv_proj(x).split(self.widths, dim=-1)
        else:
            projected = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        query = points.see(name + ".hook_q", split(projected[0]))
        key = points.see(name + ".hook_k", split(projected[1]))
        value = points.see(name + ".hook_v", split(projected[2]))
        if self.normalizes:
            joined = lambda heads: heads.flatten(2) if self.normalizes_before_split else heads
            query = split(self.q_norm(joined(query), points, name + ".q_norm"))
            key = split(self.k_norm(joined(key), points, name + ".k_norm"))
        turn = lambda values: rotate(values, self.config, self.rotary_size, memory.length)
        query = points.see(name + ".hook_rot_q", turn(query))
        key = points.see(name + ".hook_rot_k", turn(key))
        key, value = memory.extend(self.layer, key, value)
        mixed = attend(query, key, value, self.window, points, name, self.scale, self.cap)
        return self.o_proj(mixed.flatten(2))


class GatedFeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels, neurons = config["hidden_size"], config["intermediate_size"]
        bias = config.get("mlp_bias", False)
        self.fused = config["model_type"] == "phi3"
        if self.fused:
            self.gate_up_proj = nn.Linear(channels, 2 * neurons, bias=False)
        else:
            self.gate_proj = nn.Linear(channels, neurons, bias=bias)
            self.up_proj = nn.Linear(channels, neurons, bias=bias)
        self.down_proj = nn.Linear(neurons, channels, bias=bias)
        self.activation = ACTIVATIONS[config.get("hidden_activation") or config["hidden_act"]]

    def forward(self, x, points, name):
        if self.fused:
            gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        else:
            gate, up = self.gate_proj(x), self.up_proj(x)
        gate = points.see(name + ".hook_pre", gate)
        up = points.see(name + ".hook_pre_linear", up)
        return self.down_proj(points.see(name + ".hook_post", self.activation(gate) * up))


class PlainFeedForward(nn.Module):
    """Of Starcoder2."""

    def __init__(self, config):
        super().__init__()
        channels, neurons = config["hidden_size"], config["intermediate_size"]
        self.c_fc = nn.Linear(channels, neurons, bias=config["use_bias"])
        self.c_proj = nn.Linear(neurons, channels, bias=config["use_bias"])
        self.activation = ACTIVATIONS[config["hidden_act"]]

    def forward(self, x, points, name):
        pre = points.see(name + ".hook_pre", self.c_fc(x))
        return self.c_proj(points.see(name + ".hook_post", self.activation(pre)))


def norm_class(config):
    return GemmaNorm if config["model_type"].startswith("gemma") else RmsNorm


def norm_of(config):
    if config["model_type"] == "starcoder2":
        return LayerNorm(config["hidden_size"], config["norm_epsilon"])
    return norm_class(config)(config["hidden_size"], config["rms_norm_eps"])


class LlamaBlock(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.input_layernorm = norm_of(config)
        self.self_attn = LlamaAttention(config, layer)
        self.post_attention_layernorm = norm_of(config)
        plain = config["model_type"] == "starcoder2"
        self.mlp = PlainFeedForward(config) if plain else GatedFeedForward(config)

    def forward(self, x, memory, points, name):
        x = points.see(name + ".hook_resid_pre", x)
        read = self.input_layernorm(x, points, name + ".ln1")
        attended = self.self_attn(read, memory, points, name + ".attn")
        x = x + points.see(name + ".hook_attn_out", attended)
        x = points.see(name + ".hook_resid_mid", x)
        read = self.post_attention_layernorm(x, points, name + ".ln2")
        x = x + points.see(name + ".hook_mlp_out", self.mlp(read, points, name + ".mlp"))
        return points.see(name + ".hook_resid_post", x)


class OutputNormBlock(nn.Module):
    """Of Gemma, with norms before and after its branches, and of Olmo2, with those after alone."""

    def __init__(self, config, layer):
        super().__init__()
        self.before = config["model_type"] != "olmo2"
        if self.before:
            self.input_layernorm = norm_of(config)
            self.pre_feedforward_layernorm = norm_of(config)
        self.self_attn = LlamaAttention(config, layer)
        self.post_attention_layernorm = norm_of(config)
        self.mlp = GatedFeedForward(config)
        self.post_feedforward_layernorm = norm_of(config)

    def forward(self, x, memory, points, name):
        x = points.see(name + ".hook_resid_pre", x)
        read = self.input_layernorm(x, points, name + ".ln1") if self.before else x
        attended = self.self_attn(read, memory, points, name + ".attn")
        attended = self.post_attention_layernorm(attended, points, name + ".ln1_post")
        x = x + points.see(name + ".hook_attn_out", attended)
        x = points.see(name + ".hook_resid_mid", x)
        read = self.pre_feedforward_layernorm(x, points, name + ".ln2") if self.before else x
        written = self.mlp(read, points, name + ".mlp")
        written = self.post_feedforward_layernorm(written, points, name + ".ln2_post")
        x = x + points.see(name + ".hook_mlp_out", written)
        return points.see(name + ".hook_resid_post", x)


class NeoXAttention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        channels = config["hidden_size"]
        self.config, self.layer = config, layer
        self.heads = config["num_attention_heads"]
        self.head_size = channels // self.heads
        self.rotary_size = int(self.head_size * config["rotary_pct"])
        bias = config.get("attention_bias", True)
        self.query_key_value = nn.Linear(channels, 3 * channels, bias=bias)
        self.dense = nn.Linear(channels, channels, bias=bias)

    def forward(self, x, memory, points, name):
        # A head's query, key and value follow each other: (B, T, H, 3·D).
        fused = self.query_key_value(x).reshape(*x.shape[:2], self.heads, 3 * self.head_size)
        query, key, value = fused.chunk(3, dim=-1)
        query = points.see(name + ".hook_q", query)
        key = points.see(name + ".hook_k", key)
        value = points.see(name + ".hook_v", value)
        turn = lambda values: rotate(values, self.config, self.rotary_size, memory.length)
        query = points.see(name + ".hook_rot_q", turn(query))
        key = points.see(name + ".hook_rot_k", turn(key))
        key, value = memory.extend(self.layer, key, value)
        return self.dense(attend(query, key, value, None, points, name).flatten(2))


class NeoXFeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels, neurons = config["hidden_size"], config["intermediate_size"]
        self.dense_h_to_4h = nn.Linear(channels, neurons)
        self.dense_4h_to_h = nn.Linear(neurons, channels)
        self.activation = ACTIVATIONS[config["hidden_act"]]

    def forward(self, x, points, name):
        pre = points.see(name + ".hook_pre", self.dense_h_to_4h(x))
        return self.dense_4h_to_h(points.see(name + ".hook_post", self.activation(pre)))


class NeoXBlock(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.parallel = config["use_parallel_residual"]
        self.input_layernorm = LayerNorm(config["hidden_size"], config["layer_norm_eps"])
        self.post_attention_layernorm = LayerNorm(config["hidden_size"], config["layer_norm_eps"])
        self.attention = NeoXAttention(config, layer)
        self.mlp = NeoXFeedForward(config)

    def forward(self, x, memory, points, name):
        start = x = points.see(name + ".hook_resid_pre", x)
        read = self.input_layernorm(x, points, name + ".ln1")
        attended = self.attention(read, memory, points, name + ".attn")
        x = x + points.see(name + ".hook_attn_out", attended)
        if not self.parallel:
            start = points.see(name + ".hook_resid_mid", x)
        # In parallel, feed-forward reads what attention read; there is no point between them.
        read = self.post_attention_layernorm(start, points, name + ".ln2")
        x = x + points.see(name + ".hook_mlp_out", self.mlp(read, points, name + ".mlp"))
        return points.see(name + ".hook_resid_post", x)


class FalconAttention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        channels = config["hidden_size"]
        self.config, self.layer = config, layer
        self.heads = config["num_attention_heads"]
        if config["new_decoder_architecture"]:
            self.groups = config["num_kv_heads"]
        else:
            self.groups = 1 if config["multi_query"] else self.heads
        self.head_size = channels // self.heads
        width = (self.heads + 2 * self.groups) * self.head_size
        self.query_key_value = nn.Linear(channels, width, bias=config["bias"])
        self.dense = nn.Linear(channels, channels, bias=config["bias"])

    def forward(self, x, memory, points, name):
        # The queries of a key follow each other, then the key and its value: (B, T, G, H/G + 2, D).
        each = self.heads // self.groups
        fused = self.query_key_value(x).reshape(*x.shape[:2], self.groups, each + 2, self.head_size)
        query, key, value = fused.split([each, 1, 1], dim=3)
        query = points.see(name + ".hook_q", query.flatten(2, 3))
        key = points.see(name + ".hook_k", key.flatten(2, 3))
        value = points.see(name + ".hook_v", value.flatten(2, 3))
        turn = lambda values: rotate(values, self.config, self.head_size, memory.length)
        query = points.see(name + ".hook_rot_q", turn(query))
        key = points.see(name + ".hook_rot_k", turn(key))
        key, value = memory.extend(self.layer, key, value)
        return self.dense(attend(query, key, value, None, points, name).flatten(2))


class FalconFeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels, neurons = config["hidden_size"], config["ffn_hidden_size"]
        self.dense_h_to_4h = nn.Linear(channels, neurons, bias=config["bias"])
        self.dense_4h_to_h = nn.Linear(neurons, channels, bias=config["bias"])
        self.activation = ACTIVATIONS[config["activation"]]

    forward = NeoXFeedForward.forward


class FalconBlock(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.parallel = config["parallel_attn"]
        self.norms = config.get("num_ln_in_parallel_attn") or (
            2 if config["new_decoder_architecture"] else 1)
        names = ["input_layernorm"]
        if not self.parallel:
            names = ["input_layernorm", "post_attention_layernorm"]
        elif self.norms == 2:
            names = ["ln_attn", "ln_mlp"]
        for name in names:
            setattr(self, name, LayerNorm(config["hidden_size"], config["layer_norm_epsilon"]))
        self.names = names
        self.self_attention = FalconAttention(config, layer)
        self.mlp = FalconFeedForward(config)

    def forward(self, x, memory, points, name):
        start = x = points.see(name + ".hook_resid_pre", x)
        read = getattr(self, self.names[0])(x, points, name + ".ln1")
        attended = self.self_attention(read, memory, points, name + ".attn")
        x = x + points.see(name + ".hook_attn_out", attended)
        if not self.parallel:
            start = points.see(name + ".hook_resid_mid", x)
        if len(self.names) == 2:
            read = getattr(self, self.names[1])(start, points, name + ".ln2")
        x = x + points.see(name + ".hook_mlp_out", self.mlp(read, points, name + ".mlp"))
        return points.see(name + ".hook_resid_post", x)


class Gpt2Attention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layer, self.heads = layer, config["n_head"]
        self.c_attn = Conv1D(config["n_embd"], 3 * config["n_embd"])
        self.c_proj = Conv1D(config["n_embd"], config["n_embd"])

    def forward(self, x, memory, points, name):
        split = lambda values: values.reshape(*x.shape[:2], self.heads, -1)
        query, key, value = (split(part) for part in self.c_attn(x).chunk(3, dim=-1))
        query = points.see(name + ".hook_q", query)
        key = points.see(name + ".hook_k", key)
        value = points.see(name + ".hook_v", value)
        key, value = memory.extend(self.layer, key, value)
        return self.c_proj(attend(query, key, value, None, points, name).flatten(2))


class Gpt2FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        neurons = config.get("n_inner") or 4 * config["n_embd"]
        self.c_fc = Conv1D(config["n_embd"], neurons)
        self.c_proj = Conv1D(neurons, config["n_embd"])
        self.activation = ACTIVATIONS[config["activation_function"]]

    def forward(self, x, points, name):
        pre = points.see(name + ".hook_pre", self.c_fc(x))
        return self.c_proj(points.see(name + ".hook_post", self.activation(pre)))


class Gpt2Block(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.ln_1 = LayerNorm(config["n_embd"], config["layer_norm_epsilon"])
        self.attn = Gpt2Attention(config, layer)
        self.ln_2 = LayerNorm(config["n_embd"], config["layer_norm_epsilon"])
        self.mlp = Gpt2FeedForward(config)

    def forward(self, x, memory, points, name):
        x = points.see(name + ".hook_resid_pre", x)
        attended = self.attn(self.ln_1(x, points, name + ".ln1"), memory, points, name + ".attn")
        x = x + points.see(name + ".hook_attn_out", attended)
        x = points.see(name + ".hook_resid_mid", x)
        read = self.ln_2(x, points, name + ".ln2")
        x = x + points.see(name + ".hook_mlp_out", self.mlp(read, points, name + ".mlp"))
        return points.see(name + ".hook_resid_post", x)


class SeparateAttention(nn.Module):
    """Of GPT-Neo and OPT: learned positions, as many key heads as query heads."""

    def __init__(self, channels, heads, layer, input_bias, output_bias, window=None, scale=None):
        super().__init__()
        self.layer, self.heads, self.window, self.scale = layer, heads, window, scale
        self.q_proj = nn.Linear(channels, channels, bias=input_bias)
        self.k_proj = nn.Linear(channels, channels, bias=input_bias)
        self.v_proj = nn.Linear(channels, channels, bias=input_bias)
        self.out_proj = nn.Linear(channels, channels, bias=output_bias)

    def forward(self, x, memory, points, name):
        split = lambda values: values.reshape(*x.shape[:2], self.heads, -1)
        query = points.see(name + ".hook_q", split(self.q_proj(x)))
        key = points.see(name + ".hook_k", split(self.k_proj(x)))
        value = points.see(name + ".hook_v", split(self.v_proj(x)))
        key, value = memory.extend(self.layer, key, value)
        mixed = attend(query, key, value, self.window, points, name, self.scale)
        return self.out_proj(mixed.flatten(2))


class GptNeoFeedForward(Gpt2FeedForward):
    def __init__(self, config):
        nn.Module.__init__(self)
        channels = config["hidden_size"]
        neurons = config.get("intermediate_size") or 4 * channels
        self.c_fc, self.c_proj = nn.Linear(channels, neurons), nn.Linear(neurons, channels)
        self.activation = ACTIVATIONS[config["activation_function"]]


class GptNeoAttention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        kinds = [kind for part, times in config["attention_types"] for kind in part * times]
        window = config["window_size"] if kinds[layer] == "local" else None
        self.attention = SeparateAttention(config["hidden_size"], config["num_heads"], layer, False,
                                           True, window, scale=1.0)

    def forward(self, x, memory, points, name):
        return self.attention(x, memory, points, name)


class GptNeoBlock(Gpt2Block):
    def __init__(self, config, layer):
        nn.Module.__init__(self)
        self.ln_1 = LayerNorm(config["hidden_size"], config["layer_norm_epsilon"])
        self.attn = GptNeoAttention(config, layer)
        self.ln_2 = LayerNorm(config["hidden_size"], config["layer_norm_epsilon"])
        self.mlp = GptNeoFeedForward(config)


class OptBlock(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        channels, bias = config["hidden_size"], config["enable_bias"]
        self.self_attn = SeparateAttention(channels, config["num_attention_heads"], layer, bias, bias)
        self.self_attn_layer_norm = LayerNorm(channels, 1e-5)
        self.fc1 = nn.Linear(channels, config["ffn_dim"], bias=bias)
        self.fc2 = nn.Linear(config["ffn_dim"], channels, bias=bias)
        self.final_layer_norm = LayerNorm(channels, 1e-5)
        self.activation = ACTIVATIONS[config["activation_function"]]

    def forward(self, x, memory, points, name):
        x = points.see(name + ".hook_resid_pre", x)
        read = self.self_attn_layer_norm(x, points, name + ".ln1")
        attended = self.self_attn(read, memory, points, name + ".attn")
        x = x + points.see(name + ".hook_attn_out", attended)
        x = points.see(name + ".hook_resid_mid", x)
        read = self.final_layer_norm(x, points, name + ".ln2")
        pre = points.see(name + ".mlp.hook_pre", self.fc1(read))
        written = self.fc2(points.see(name + ".mlp.hook_post", self.activation(pre)))
        x = x + points.see(name + ".hook_mlp_out", written)
        return points.see(name + ".hook_resid_post", x)


def block_class(config):
    norms_outputs = config["model_type"] in ("olmo2", "gemma2", "gemma3_text")
    return OutputNormBlock if norms_outputs else LlamaBlock


class Llama(nn.Module):
    """Llama and its kin."""

    def __init__(self, config):
        super().__init__()
        channels, vocabulary = config["hidden_size"], config["vocab_size"]
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(vocabulary, channels)
        self.model.layers = nn.ModuleList(
            block_class(config)(config, layer) for layer in range(config["num_hidden_layers"]))
        self.model.norm = norm_of(config)
        self.embedding_scale = 1.0
        if config["model_type"].startswith("gemma"):
            # In the precision that the config says the model has.
            precision = getattr(torch, config["torch_dtype"])
            self.embedding_scale = torch.tensor(channels**0.5, dtype=precision).item()
        if not config["tie_word_embeddings"]:
            self.lm_head = nn.Linear(channels, vocabulary, bias=False)
        self.tied = config["tie_word_embeddings"]

    def embed(self, tokens, points, start):
        return points.see("hook_embed", self.embedding_scale * self.model.embed_tokens(tokens))

    def parts(self):
        unembedding = self.model.embed_tokens if self.tied else self.lm_head
        return self.model.layers, self.model.norm, unembedding.weight


class NeoX(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels, vocabulary = config["hidden_size"], config["vocab_size"]
        self.gpt_neox = nn.Module()
        self.gpt_neox.embed_in = nn.Embedding(vocabulary, channels)
        self.gpt_neox.layers = nn.ModuleList(
            NeoXBlock(config, layer) for layer in range(config["num_hidden_layers"]))
        self.gpt_neox.final_layer_norm = LayerNorm(channels, config["layer_norm_eps"])
        self.embed_out = nn.Linear(channels, vocabulary, bias=False)

    def embed(self, tokens, points, start):
        return points.see("hook_embed", self.gpt_neox.embed_in(tokens))

    def parts(self):
        return self.gpt_neox.layers, self.gpt_neox.final_layer_norm, self.embed_out.weight


class Falcon(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels, vocabulary = config["hidden_size"], config["vocab_size"]
        self.transformer = nn.Module()
        self.transformer.word_embeddings = nn.Embedding(vocabulary, channels)
        self.transformer.h = nn.ModuleList(
            FalconBlock(config, layer) for layer in range(config["num_hidden_layers"]))
        self.transformer.ln_f = LayerNorm(channels, config["layer_norm_epsilon"])
        self.tied = config["tie_word_embeddings"]
        if not self.tied:
            self.lm_head = nn.Linear(channels, vocabulary, bias=False)

    def embed(self, tokens, points, start):
        return points.see("hook_embed", self.transformer.word_embeddings(tokens))

    def parts(self):
        unembedding = self.transformer.word_embeddings if self.tied else self.lm_head
        return self.transformer.h, self.transformer.ln_f, unembedding.weight


class Gpt2(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = nn.Module()
        self.transformer.wte = nn.Embedding(config["vocab_size"], config["n_embd"])
        self.transformer.wpe = nn.Embedding(config["n_positions"], config["n_embd"])
        self.transformer.h = nn.ModuleList(
            Gpt2Block(config, layer) for layer in range(config["n_layer"]))
        self.transformer.ln_f = LayerNorm(config["n_embd"], config["layer_norm_epsilon"])

    def embed(self, tokens, points, start):
        positions = torch.arange(start, start + tokens.shape[1])
        embedded = points.see("hook_embed", self.transformer.wte(tokens))
        placed = self.transformer.wpe(positions).expand_as(embedded)
        return embedded + points.see("hook_pos_embed", placed)

    def parts(self):
        return self.transformer.h, self.transformer.ln_f, self.transformer.wte.weight


class GptNeo(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels = config["hidden_size"]
        self.transformer = nn.Module()
        self.transformer.wte = nn.Embedding(config["vocab_size"], channels)
        self.transformer.wpe = nn.Embedding(config["max_position_embeddings"], channels)
        self.transformer.h = nn.ModuleList(
            GptNeoBlock(config, layer) for layer in range(config["num_layers"]))
        self.transformer.ln_f = LayerNorm(channels, config["layer_norm_epsilon"])

    embed = Gpt2.embed
    parts = Gpt2.parts


class Opt(nn.Module):
    """The first two rows of its position table stand for no position."""

    def __init__(self, config):
        super().__init__()
        channels = config["hidden_size"]
        self.model = nn.Module()
        decoder = self.model.decoder = nn.Module()
        decoder.embed_tokens = nn.Embedding(config["vocab_size"], channels)
        decoder.embed_positions = nn.Embedding(config["max_position_embeddings"] + 2, channels)
        decoder.layers = nn.ModuleList(
            OptBlock(config, layer) for layer in range(config["num_hidden_layers"]))
        decoder.final_layer_norm = LayerNorm(channels, 1e-5)

    def embed(self, tokens, points, start):
        positions = torch.arange(start + 2, start + 2 + tokens.shape[1])
        embedded = points.see("hook_embed", self.model.decoder.embed_tokens(tokens))
        placed = self.model.decoder.embed_positions(positions).expand_as(embedded)
        return embedded + points.see("hook_pos_embed", placed)

    def parts(self):
        decoder = self.model.decoder
        return decoder.layers, decoder.final_layer_norm, decoder.embed_tokens.weight


FAMILIES = {
    "llama": Llama, "mistral": Llama, "qwen2": Llama, "qwen3": Llama, "starcoder2": Llama,
    "olmo2": Llama, "phi3": Llama, "gemma2": Llama, "gemma3_text": Llama, "falcon": Falcon,
    "gpt_neox": NeoX, "gpt_neo": GptNeo, "opt": Opt, "gpt2": Gpt2,
}


class Decoder(nn.Module):
    """A model of any family, whose parameters have the names of its file."""

    def __init__(self, config):
        super().__init__()
        self.family = FAMILIES[config["model_type"]](config)
        self.cap = config.get("final_logit_softcapping")  # of logits

    def in_file(self):
        """Its parameters by their names in model.safetensors."""
        return dict(self.family.named_parameters())

    def forward(self, tokens, points=None, memory=None):
        """Logits (B, T, V) of tokens (B, T) that follow those in memory."""
        points = Points() if points is None else points
        memory = Memory() if memory is None else memory
        blocks, norm, unembedding = self.family.parts()
        x = self.family.embed(tokens, points, memory.length)
        for layer, block in enumerate(blocks):
            x = block(x, memory, points, f"blocks.{layer}")
        memory.length += tokens.shape[1]
        logits = norm(x, points, "ln_final") @ unembedding.T
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)
