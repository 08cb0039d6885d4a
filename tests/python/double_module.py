"""GPT-2 and Llama in double with nothing but NumPy, written for comparison with heed: a pass to which
numbers can be added at any point. Letters as in docs/notation.md; N is a number of passes at once."""

import json

import numpy as np

from support import golden


def softmax(scores):
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


class DoubleModel:
    def __init__(self, directory):
        self.config = json.loads((directory / "config.json").read_text())
        self.weights = {name: values.astype(np.float64)
                        for name, values in golden(directory / "model.safetensors").items()}
        gpt2 = self.config["model_type"] == "gpt2"
        self.layers = self.config["n_layer" if gpt2 else "num_hidden_layers"]
        self.heads = self.config["n_head" if gpt2 else "num_attention_heads"]
        self._stages = _Gpt2(self) if gpt2 else _Llama(self)

    def logits(self, tokens, added=None, points=None):
        """(N, T, V) of tokens (T). ``added``: what is added at points, (N, T, ...) by name;
        ``points``: a dict that is given the values of all points."""
        added = added or {}

        def see(name, values):
            if name in added:
                values = values + added[name]
            if points is not None:
                points[name] = values
            return values

        stages = self._stages
        stream = stages.embed(tokens, see)
        for layer in range(self.layers):
            block = f"blocks.{layer}."
            stream = see(block + "hook_resid_pre", stream)
            attended = self._attention(self._projected(stream, layer, see), layer, see)
            stream = stream + see(block + "hook_attn_out", attended)
            stream = see(block + "hook_resid_mid", stream)
            read = see(block + "hook_mlp_in", stream)
            written = stages.feed_forward(stages.norm(read, stages.MLP_NORM, layer), layer, see)
            stream = stream + see(block + "hook_mlp_out", written)
            stream = see(block + "hook_resid_post", stream)
        return stages.norm(stream, stages.LAST_NORM) @ stages.unembedding()

    def _projected(self, stream, layer, see):
        """Queries, keys and values (N, T, heads, D), each head from a copy of the stream of its own.
        A head of keys reads the copy of the first query head of its group."""
        stages, name = self._stages, f"blocks.{layer}.hook_"
        every = see(name + "attn_in", np.repeat(stream[..., None, :], self.heads, -2))
        for index, part in enumerate("qkv"):
            heads = self.count_of(part)
            read = see(f"{name}{part}_input", every[..., ::self.heads // heads, :])
            values = stages.project(stages.norm(read, stages.ATTENTION_NORM, layer), layer)[index]
            values = values.reshape(*values.shape[:-1], heads, -1)  # of all heads, for each
            yield np.stack([values[..., head, head, :] for head in range(heads)], -2)

    def _attention(self, projected, layer, see):
        name = f"blocks.{layer}.attn."
        query, key, value = (see(name + "hook_" + part, values)
                             for part, values in zip("qkv", projected))
        query, key = self._stages.place(query), self._stages.place(key)
        share = self.heads // key.shape[-2]
        key, value = np.repeat(key, share, -2), np.repeat(value, share, -2)
        scores = np.einsum("nthd,nshd->nhts", query, key) / np.sqrt(query.shape[-1])
        scores[..., np.triu(np.ones(scores.shape[-2:], bool), 1)] = -np.inf
        mixed = see(name + "hook_z", np.einsum("nhts,nshd->nthd", softmax(scores), value))
        return self._stages.mix_out(mixed.reshape(*mixed.shape[:-2], -1), layer)

    def count_of(self, part):
        return self.heads if part == "q" else self.config.get("num_key_value_heads", self.heads)


class _Gpt2:
    ATTENTION_NORM, MLP_NORM, LAST_NORM = "ln_1", "ln_2", "ln_f"

    def __init__(self, model):
        self.model = model

    def linear(self, x, layer, name):
        weights = self.model.weights
        name = f"transformer.h.{layer}.{name}"
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    def embed(self, tokens, see):
        weights = self.model.weights
        embedded = see("hook_embed", weights["transformer.wte.weight"][tokens][None])
        placed = weights["transformer.wpe.weight"][:len(tokens)][None]
        return embedded + see("hook_pos_embed", placed)

    def norm(self, x, name, layer=None):
        weights = self.model.weights
        name = f"transformer.{name}" if layer is None else f"transformer.h.{layer}.{name}"
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred ** 2).mean(-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.model.config["layer_norm_epsilon"])
        return scaled * weights[name + ".weight"] + weights[name + ".bias"]

    def project(self, read, layer):
        return np.split(self.linear(read, layer, "attn.c_attn"), 3, axis=-1)

    def place(self, values):
        return values

    def mix_out(self, mixed, layer):
        return self.linear(mixed, layer, "attn.c_proj")

    def feed_forward(self, read, layer, see):
        pre = see(f"blocks.{layer}.mlp.hook_pre", self.linear(read, layer, "mlp.c_fc"))
        post = 0.5 * pre * (1 + np.tanh(np.sqrt(2 / np.pi) * (pre + 0.044715 * pre ** 3)))
        return self.linear(see(f"blocks.{layer}.mlp.hook_post", post), layer, "mlp.c_proj")

    def unembedding(self):
        return self.model.weights["transformer.wte.weight"].T


class _Llama:
    ATTENTION_NORM, MLP_NORM, LAST_NORM = "input_layernorm", "post_attention_layernorm", "norm"

    def __init__(self, model):
        self.model = model

    def linear(self, x, layer, name):
        return x @ self.model.weights[f"model.layers.{layer}.{name}.weight"].T

    def embed(self, tokens, see):
        return see("hook_embed", self.model.weights["model.embed_tokens.weight"][tokens][None])

    def norm(self, x, name, layer=None):
        name = f"model.{name}" if layer is None else f"model.layers.{layer}.{name}"
        square = (x ** 2).mean(-1, keepdims=True)
        scaled = x / np.sqrt(square + self.model.config["rms_norm_eps"])
        return scaled * self.model.weights[name + ".weight"]

    def project(self, read, layer):
        return [self.linear(read, layer, f"self_attn.{part}_proj") for part in "qkv"]

    def place(self, values):
        """Pairs (i, i + D / 2) turned by their positions."""
        half = values.shape[-1] // 2
        frequencies = self.model.config["rope_theta"] ** (-np.arange(half) / half)
        angles = (np.arange(values.shape[1])[:, None] * frequencies)[:, None]
        first, second = values[..., :half], values[..., half:]
        return np.concatenate([first * np.cos(angles) - second * np.sin(angles),
                               second * np.cos(angles) + first * np.sin(angles)], -1)

    def mix_out(self, mixed, layer):
        return self.linear(mixed, layer, "self_attn.o_proj")

    def feed_forward(self, read, layer, see):
        gate = see(f"blocks.{layer}.mlp.hook_pre", self.linear(read, layer, "mlp.gate_proj"))
        up = see(f"blocks.{layer}.mlp.hook_pre_linear", self.linear(read, layer, "mlp.up_proj"))
        post = see(f"blocks.{layer}.mlp.hook_post", gate / (1 + np.exp(-gate)) * up)
        return self.linear(post, layer, "mlp.down_proj")

    def unembedding(self):
        return self.model.weights["lm_head.weight"].T
