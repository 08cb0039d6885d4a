"""A GPT in PyTorch, written for comparison with heed: every number of a pass has a name.

Names of parameters are Hugging Face's for GPT-2, with weights [out, in]; names of points inside a
pass are TransformerLens'. Letters: B batch, T positions, C channels, H heads, D head size,
F neurons, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn

# Matrices that a GPT-2 file keeps as Conv1D, [in, out].
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")


@dataclass
class GptConfig:
    vocabulary_size: int
    context: int
    channels: int
    layers: int
    heads: int
    head_size: int
    feed_forward: int
    activation: str = "gelu_new"
    norm_epsilon: float = 1e-5
    has_bias: bool = True
    tied_unembedding: bool = True

    @staticmethod
    def from_json(document):
        """From a config.json as GPT-2 has it, with heed's own fields."""
        own = document.get("heed", {})
        channels, heads = document["n_embd"], document["n_head"]
        return GptConfig(
            vocabulary_size=document["vocab_size"],
            context=document["n_positions"],
            channels=channels,
            layers=document["n_layer"],
            heads=heads,
            head_size=own.get("head_size", channels // heads),
            feed_forward=document.get("n_inner") or 4 * channels,
            activation=document.get("activation_function", "gelu_new"),
            norm_epsilon=document.get("layer_norm_epsilon", 1e-5),
            has_bias=own.get("bias", True),
            tied_unembedding=document.get("tie_word_embeddings", True),
        )


ACTIVATIONS = {
    "gelu_new": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "relu": torch.relu,
}


class Points(dict):
    """Collects the points of a pass by name, and may change them: `edits` holds, by name, functions
    from the values of a point to those that the pass goes on with. With `split_heads`, every head
    normalises and projects its own copy of the stream, (B, T, H, C): those copies are points, and
    the norm's are not."""

    def __init__(self, edits=None, split_heads=False):
        super().__init__()
        self.edits = edits or {}
        self.split_heads = split_heads

    def see(self, name, values):
        values = self.edits.get(name, lambda same: same)(values)
        self[name] = values.detach().clone()
        return values


class PointsWithGradients(Points):
    """Keeps, beside each point, the gradient that a later backward leaves at it."""

    def __init__(self, split_heads=False):
        super().__init__(split_heads=split_heads)
        self.gradients = {}

    def see(self, name, values):
        values = super().see(name, values)
        values.register_hook(lambda gradient: self.gradients.__setitem__(name, gradient.clone()))
        return values


class Norm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.channels))
        self.bias = nn.Parameter(torch.zeros(config.channels)) if config.has_bias else None
        self.epsilon = config.norm_epsilon

    def forward(self, x, points, name):
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + self.epsilon)
        if points is not None:
            scale = points.see(name + ".hook_scale", scale)
        normalized = centred / scale
        if points is not None:
            normalized = points.see(name + ".hook_normalized", normalized)
        out = normalized * self.weight
        return out if self.bias is None else out + self.bias


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.head_size = config.heads, config.head_size
        width = config.heads * config.head_size
        self.c_attn = nn.Linear(config.channels, 3 * width, bias=config.has_bias)
        self.c_proj = nn.Linear(width, config.channels, bias=config.has_bias)

    def projected(self, stream, norm, points, block):
        """Queries, keys and values (B, T, H, D) of the stream (B, T, C)."""
        shape = (*stream.shape[:2], self.heads, self.head_size)
        x = norm(stream, points, block + ".ln1")
        return [part.reshape(shape) for part in self.c_attn(x).chunk(3, dim=-1)]

    def projected_by_head(self, stream, norm, points, block):
        """The same, each head from its own copy of the stream."""
        copies = stream.unsqueeze(2).expand(-1, -1, self.heads, -1)  # (B, T, H, C)
        copies = points.see(block + ".hook_attn_in", copies)
        weights = self.c_attn.weight.reshape(3, self.heads, self.head_size, -1)
        parts = []
        for third, letter in enumerate("qkv"):
            own = points.see(f"{block}.hook_{letter}_input", copies.clone())
            part = torch.einsum("bthc,hdc->bthd", norm(own, None, ""), weights[third])
            if self.c_attn.bias is not None:
                part = part + self.c_attn.bias.reshape(3, self.heads, self.head_size)[third]
            parts.append(part)
        return parts

    def forward(self, stream, norm, points, block):
        positions, name = stream.shape[1], block + ".attn"
        project = self.projected_by_head if points.split_heads else self.projected
        query, key, value = project(stream, norm, points, block)
        query = points.see(name + ".hook_q", query)
        key = points.see(name + ".hook_k", key)
        value = points.see(name + ".hook_v", value)
        scores = torch.einsum("bthd,bshd->bhts", query, key) / math.sqrt(self.head_size)
        future = torch.ones(positions, positions, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
        scores = points.see(name + ".hook_attn_scores", scores)
        pattern = points.see(name + ".hook_pattern", torch.softmax(scores, dim=-1))
        mixed = torch.einsum("bhts,bshd->bthd", pattern, value)
        mixed = points.see(name + ".hook_z", mixed)
        weight = self.c_proj.weight.reshape(-1, self.heads, self.head_size)
        results = torch.einsum("bthd,chd->bthc", mixed, weight)
        out = points.see(name + ".hook_result", results).sum(dim=2)
        return out if self.c_proj.bias is None else out + self.c_proj.bias


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.channels, config.feed_forward, bias=config.has_bias)
        self.c_proj = nn.Linear(config.feed_forward, config.channels, bias=config.has_bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x, points, name):
        pre = points.see(name + ".hook_pre", self.c_fc(x))
        post = points.see(name + ".hook_post", self.activation(pre))
        return self.c_proj(post)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.attn = Norm(config), Attention(config)
        self.ln_2, self.mlp = Norm(config), FeedForward(config)

    def forward(self, x, points, name):
        x = points.see(name + ".hook_resid_pre", x)
        attended = self.attn(x, self.ln_1, points, name)
        attended = points.see(name + ".hook_attn_out", attended)
        x = x + attended
        x = points.see(name + ".hook_resid_mid", x)
        read = points.see(name + ".hook_mlp_in", x.clone())
        remembered = self.mlp(self.ln_2(read, points, name + ".ln2"), points, name + ".mlp")
        remembered = points.see(name + ".hook_mlp_out", remembered)
        x = x + remembered
        x = points.see(name + ".hook_resid_post", x)
        return x


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocabulary_size, config.channels)
        self.wpe = nn.Embedding(config.context, config.channels)
        self.h = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_f = Norm(config)
        if not config.tied_unembedding:
            self.lm_head = nn.Linear(config.channels, config.vocabulary_size, bias=False)

    def forward(self, tokens, points=None):
        """Logits (B, T, V) of tokens (B, T)."""
        points = Points() if points is None else points
        embedded = self.wte(tokens)
        positions = self.wpe(torch.arange(tokens.shape[1])).expand_as(embedded)
        embedded = points.see("hook_embed", embedded)
        positions = points.see("hook_pos_embed", positions)
        x = embedded + positions
        for layer, block in enumerate(self.h):
            x = block(x, points, f"blocks.{layer}")
        x = points.see("unembed.hook_in", self.ln_f(x, points, "ln_final"))
        unembedding = self.wte.weight if self.config.tied_unembedding else self.lm_head.weight
        return points.see("unembed.hook_out", x @ unembedding.T)
