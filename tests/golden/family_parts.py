"""What families of decoders share: points, caches, norms, rotary positions, attention. Letters as in
family_module.py."""

import math

import torch
from torch import nn

ACTIVATIONS = {
    "silu": lambda x: x * torch.sigmoid(x),
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}
ACTIVATIONS["gelu_pytorch_tanh"] = ACTIVATIONS["gelu_new"]


class Points(dict):
    """Copies of the points of a pass, by name."""

    def see(self, name, values):
        self[name] = values.detach().clone()
        return values


class Memory:
    """Rotated keys and values of earlier positions, by layer: (B, S, G, D)."""

    def __init__(self):
        self.keys, self.values, self.length = {}, {}, 0

    def extend(self, layer, key, value):
        if layer in self.keys:
            key = torch.cat([self.keys[layer], key], dim=1)
            value = torch.cat([self.values[layer], value], dim=1)
        self.keys[layer], self.values[layer] = key, value
        return key, value


class LayerNorm(nn.Module):
    def __init__(self, channels, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.epsilon = epsilon

    def forward(self, x, points, name):
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + self.epsilon)
        scale = points.see(name + ".hook_scale", scale)
        normalized = points.see(name + ".hook_normalized", centred / scale)
        return normalized * self.weight + self.bias


class RmsNorm(nn.Module):
    def __init__(self, channels, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.epsilon = epsilon

    def forward(self, x, points, name):
        scale = torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)
        scale = points.see(name + ".hook_scale", scale)
        normalized = points.see(name + ".hook_normalized", x / scale)
        return normalized * self.weight


class GemmaNorm(RmsNorm):
    """Its weight is the gain less 1."""

    def __init__(self, channels, epsilon):
        super().__init__(channels, epsilon)
        self.weight = nn.Parameter(torch.zeros(channels))

    def forward(self, x, points, name):
        scale = torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)
        scale = points.see(name + ".hook_scale", scale)
        normalized = points.see(name + ".hook_normalized", x / scale)
        return normalized * (1 + self.weight)


class Conv1D(nn.Module):
    """GPT-2's linear layer, which keeps its weight as [in, out]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


def rotary_frequencies(config, size, length):
    """Radians a position for each of the size / 2 pairs of a text of `length` positions, and the
    factor of its cosines and sines."""
    base = config.get("rope_theta", config.get("rotary_emb_base", 10000.0))
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    context = config["max_position_embeddings"]
    pairs = torch.arange(size // 2, dtype=torch.float64)
    if kind == "dynamic" and length > context:
        # NTK-aware: the base grows with the text, from the length at which training stopped.
        factor = scaling["factor"]
        base *= (factor * length / context - (factor - 1)) ** (size / (size - 2))
    frequencies = base ** (-2 * pairs / size)

    if kind in ("default", "dynamic"):
        return frequencies, 1.0
    original = scaling.get("original_max_position_embeddings",
                           config.get("original_max_position_embeddings", context))
    if kind in ("longrope", "su"):
        factors = scaling["long_factor" if length > original else "short_factor"]
        growth = context / original
        magnitude = scaling.get("attention_factor")
        if magnitude is None:
            magnitude = math.sqrt(1 + math.log(growth) / math.log(original)) if growth > 1 else 1.0
        return frequencies / torch.tensor(factors, dtype=torch.float64), magnitude
    factor = scaling.get("factor")
    if factor is None:  # yarn: the growth of the context
        factor = context / original
    if kind == "linear":
        return frequencies / factor, 1.0
    if kind == "llama3":
        # Turns within the original context: many keep their frequency, few are slowed down.
        turns = original * frequencies / (2 * math.pi)
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        kept = ((turns - low) / (high - low)).clamp(0, 1)
        return frequencies * (kept + (1 - kept) / factor), 1.0
    if kind == "yarn":
        # The pair, not a whole number, that turns so many times within the original context.
        pair_of = lambda turns: size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))
        down, up = (math.floor, math.ceil) if scaling.get("truncate", True) else (float, float)
        low = max(down(pair_of(scaling.get("beta_fast") or 32)), 0)
        high = min(up(pair_of(scaling.get("beta_slow") or 1)), size - 1)
        slowed = ((pairs - low) / (high - low or 0.001)).clamp(0, 1)
        growth = lambda share: 0.1 * share * math.log(factor) + 1 if factor > 1 else 1.0
        attention_factor = scaling.get("attention_factor")
        if attention_factor is None:
            shares = scaling.get("mscale"), scaling.get("mscale_all_dim")
            attention_factor = growth(shares[0]) / growth(shares[1]) if all(shares) else growth(1)
        return frequencies * (1 - slowed + slowed / factor), attention_factor
    raise ValueError(f"there is no rope_type '{kind}'")


def rotate(x, config, size, start):
    """x (B, T, heads, D) of positions from `start`, its first `size` channels rotated in pairs
    (i, i + size / 2)."""
    positions = torch.arange(start, start + x.shape[1], dtype=torch.float64)
    frequencies, factor = rotary_frequencies(config, size, start + x.shape[1])
    angles = (positions[:, None] * frequencies)[:, None, :]  # (T, 1, size / 2)
    cosine, sine = factor * torch.cos(angles), factor * torch.sin(angles)
    first, second, rest = x.split([size // 2, size // 2, x.shape[-1] - size], dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine, rest], dim=-1)


def attend(query, key, value, window, points, name, scale=None, cap=None):
    """Mixed values (B, T, H, D) of query (B, T, H, D), key and value (B, S, G, D). The queries are
    the last T of the S positions, and see `window` positions with their own, or all of them. `scale`
    of scores: 1 / sqrt(D) where none is given. Scores stay within `cap`, where one is given."""
    heads, groups = query.shape[2], key.shape[2]
    key, value = (x.repeat_interleave(heads // groups, dim=2) for x in (key, value))
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    scores = torch.einsum("bthd,bshd->bhts", query, key) * scale
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    last = key.shape[1]
    t = torch.arange(last - query.shape[1], last)[:, None]
    s = torch.arange(last)
    hidden = s > t
    if window is not None:
        hidden = hidden | (s <= t - window)
    scores = points.see(name + ".hook_attn_scores", scores.masked_fill(hidden, -math.inf))
    pattern = points.see(name + ".hook_pattern", torch.softmax(scores, dim=-1))
    return points.see(name + ".hook_z", torch.einsum("bhts,bshd->bthd", pattern, value))
