"""Encoders and encoder-decoders in PyTorch, written for comparison with heed.

MarianMTModel, BartForConditionalGeneration, T5ForConditionalGeneration and BertForMaskedLM, each built
from a config.json as Hugging Face has it, and torch.nn.Transformer itself between an embedding and an
unembedding. The names, shapes and layouts of parameters are those of model.safetensors. A sentence is
run alone, so that nothing is padded: tensors are (T, C). Letters: T positions, S positions attended
to, C channels, H heads, D head size, F neurons, V vocabulary, P rows of a position table.

Names of points are those of TransformerLens' encoder-decoder where it has them. A block with norms
after its branches has hook_resid_mid, hook_resid_mid_cross and hook_resid_post before these norms, and
hook_normalized_resid_post after the last.
"""

import math

import torch
from torch import nn

from family_parts import ACTIVATIONS, Points

ACTIVATIONS = {**ACTIVATIONS, "relu": torch.relu, "swish": ACTIVATIONS["silu"]}


class LayerNorm(nn.LayerNorm):
    def forward(self, x, points=None, name=None):
        return super().forward(x)


class RmsNorm(nn.Module):
    def __init__(self, channels, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.epsilon = epsilon

    def forward(self, x):
        return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def attend(query, key, value, scale, causal, bias, points, name):
    """Mixed values (T, A) of query (T, A), key and value (S, A), each (H, D) of heads."""
    scores = torch.einsum("thd,shd->hts", query, key) * scale
    if bias is not None:
        scores = scores + bias
    if causal:
        hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    points.see(name + ".hook_attn_scores", scores[None])
    pattern = points.see(name + ".hook_pattern", torch.softmax(scores, dim=-1)[None])[0]
    return points.see(name + ".hook_z", torch.einsum("hts,shd->thd", pattern, value)[None])[0].flatten(1)


class Attention(nn.Module):
    """Of any family: `names` are those of its projections to query, key and value, and back."""

    def __init__(self, channels, heads, head_size, names, bias=True, scale=None):
        super().__init__()
        self.heads, self.names = heads, names
        self.scale = head_size**-0.5 if scale is None else scale
        for name in names[:3]:
            self.add_module(name, nn.Linear(channels, heads * head_size, bias=bias))
        if names[3]:
            self.add_module(names[3], nn.Linear(heads * head_size, channels, bias=bias))

    def mixed(self, x, memory, causal, points, name, bias=None):
        split = lambda values: values.unflatten(1, (self.heads, -1))
        kinds = zip(("q", "k", "v"), self.names, (x, memory, memory))
        query, key, value = (
            points.see(f"{name}.hook_{kind}", split(getattr(self, projection)(rows))[None])[0]
            for kind, projection, rows in kinds)
        return attend(query, key, value, self.scale, causal, bias, points, name)

    def forward(self, x, memory, causal, points, name, bias=None):
        return getattr(self, self.names[3])(self.mixed(x, memory, causal, points, name, bias))


# ---- Marian and BART

def sinusoids(positions, channels):
    """(P, C): the sines of all wavelengths, then their cosines."""
    angles = torch.arange(positions, dtype=torch.float64)[:, None] / 10000 ** (
        torch.arange(0, channels, 2, dtype=torch.float64) / channels)
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)


BART_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


class BartLayer(nn.Module):
    def __init__(self, config, side):
        super().__init__()
        channels = config["d_model"]
        heads, neurons = config[side + "_attention_heads"], config[side + "_ffn_dim"]
        attention = lambda: Attention(channels, heads, channels // heads, BART_PROJECTIONS)
        self.causal = side == "decoder"
        self.self_attn = attention()
        self.self_attn_layer_norm = LayerNorm(channels)
        if self.causal:
            self.encoder_attn = attention()
            self.encoder_attn_layer_norm = LayerNorm(channels)
        self.fc1 = nn.Linear(channels, neurons)
        self.fc2 = nn.Linear(neurons, channels)
        self.final_layer_norm = LayerNorm(channels)
        self.activation = ACTIVATIONS[config["activation_function"]]

    def forward(self, x, memory, points, name):
        see = lambda point, values: points.see(f"{name}.{point}", values[None])[0]
        x = see("hook_resid_pre", x)
        x = see("hook_resid_mid", x + see(
            "hook_attn_out", self.self_attn(x, x, self.causal, points, name + ".attn")))
        x = self.self_attn_layer_norm(x)
        if self.causal:
            crossed = self.encoder_attn(x, memory, False, points, name + ".cross_attn")
            x = see("hook_resid_mid_cross", x + see("hook_cross_attn_out", crossed))
            x = self.encoder_attn_layer_norm(x)
        neurons = see("mlp.hook_post", self.activation(see("mlp.hook_pre", self.fc1(x))))
        x = see("hook_resid_post", x + see("hook_mlp_out", self.fc2(neurons)))
        return see("hook_normalized_resid_post", self.final_layer_norm(x))


class BartStack(nn.Module):
    """BART's learned positions begin in row 2 of their table; Marian's are sines and cosines."""

    def __init__(self, config, side):
        super().__init__()
        channels, positions = config["d_model"], config["max_position_embeddings"]
        self.side, self.is_bart = side, config["model_type"] == "bart"
        self.scale = math.sqrt(channels) if config["scale_embedding"] else 1.0
        self.layers = nn.ModuleList(
            BartLayer(config, side) for _ in range(config[side + "_layers"]))
        if self.is_bart:
            self.embed_positions = nn.Embedding(positions + 2, channels)
            self.layernorm_embedding = LayerNorm(channels)
        else:
            self.table = sinusoids(positions, channels)

    def forward(self, embedded, memory, points):
        x, count = embedded * self.scale, len(embedded)
        if self.is_bart:
            x = self.layernorm_embedding(x + self.embed_positions.weight[2:2 + count])
        else:
            x = x + self.table[:count].to(x.dtype)
        for layer, block in enumerate(self.layers):
            x = block(x, memory, points, f"{self.side}.{layer}")
        return x


class Bart(nn.Module):
    """MarianMTModel and BartForConditionalGeneration."""

    def __init__(self, config):
        super().__init__()
        self.model = nn.Module()
        self.model.shared = nn.Embedding(config["vocab_size"], config["d_model"])
        self.model.encoder = BartStack(config, "encoder")
        self.model.decoder = BartStack(config, "decoder")
        # A buffer there; here it can have a gradient.
        self.final_logits_bias = nn.Parameter(torch.zeros(1, config["vocab_size"]))

    def encode(self, source, points):
        return self.model.encoder(self.model.shared(source), None, points)

    def decode(self, memory, target, points):
        x = self.model.decoder(self.model.shared(target), memory, points)
        return x @ self.model.shared.weight.T + self.final_logits_bias[0]


# ---- T5

def relative_buckets(queries, keys, buckets, largest, both_directions):
    """(T, S): the bucket of the distance from a query to a key. Half of the buckets (of a direction)
    are for one distance each, the others for ranges that widen up to the largest distance."""
    distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    first = torch.zeros_like(distance)
    if both_directions:
        buckets //= 2
        first = (distance > 0).long() * buckets
        distance = distance.abs()
    else:
        distance = -distance.clamp(max=0)
    exact = buckets // 2
    # In float32, as published, so that distances on a boundary fall on the same side of it.
    ratio = torch.log(distance.clamp(min=1).float() / exact) / math.log(largest / exact)
    wide = (exact + (ratio * (buckets - exact)).long()).clamp(max=buckets - 1)
    return first + torch.where(distance < exact, distance, wide)


class T5Attention(Attention):
    def __init__(self, config, has_bias):
        super().__init__(config["d_model"], config["num_heads"], config["d_kv"], ("q", "k", "v", "o"),
                         bias=False, scale=1.0)
        if has_bias:
            self.relative_attention_bias = nn.Embedding(
                config["relative_attention_num_buckets"], config["num_heads"])


class T5FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels, neurons = config["d_model"], config["d_ff"]
        kind = config["feed_forward_proj"]
        self.gated = kind.startswith("gated-")
        # "gated-gelu" is the approximation by tanh.
        self.activation = ACTIVATIONS["gelu_new" if kind == "gated-gelu" else kind.split("-")[-1]]
        for name in ("wi_0", "wi_1") if self.gated else ("wi",):
            self.add_module(name, nn.Linear(channels, neurons, bias=False))
        self.wo = nn.Linear(neurons, channels, bias=False)

    def forward(self, x):
        if self.gated:
            return self.wo(self.activation(self.wi_0(x)) * self.wi_1(x))
        return self.wo(self.activation(self.wi(x)))


class T5SubLayer(nn.Module):
    """layer_norm and one branch, of the name that a file has for it."""

    def __init__(self, config, name, branch):
        super().__init__()
        self.add_module(name, branch)
        self.layer_norm = RmsNorm(config["d_model"], config["layer_norm_epsilon"])


class T5Block(nn.Module):
    def __init__(self, config, is_decoder, has_bias):
        super().__init__()
        self.causal = is_decoder
        layers = [T5SubLayer(config, "SelfAttention", T5Attention(config, has_bias))]
        if is_decoder:
            layers.append(T5SubLayer(config, "EncDecAttention", T5Attention(config, False)))
        layers.append(T5SubLayer(config, "DenseReluDense", T5FeedForward(config)))
        self.layer = nn.ModuleList(layers)

    def forward(self, x, memory, bias, points, name):
        see = lambda point, values: points.see(f"{name}.{point}", values[None])[0]
        x = see("hook_resid_pre", x)
        part = self.layer[0]
        read = part.layer_norm(x)
        attended = part.SelfAttention(read, read, self.causal, points, name + ".attn", bias)
        x = see("hook_resid_mid", x + see("hook_attn_out", attended))
        if self.causal:
            part = self.layer[1]
            crossed = part.EncDecAttention(
                part.layer_norm(x), memory, False, points, name + ".cross_attn")
            x = see("hook_resid_mid_cross", x + see("hook_cross_attn_out", crossed))
        part = self.layer[-1]
        out = see("hook_mlp_out", part.DenseReluDense(part.layer_norm(x)))
        return see("hook_resid_post", x + out)


class T5Stack(nn.Module):
    """The first block's table of biases is that of all blocks."""

    def __init__(self, config, is_decoder):
        super().__init__()
        self.is_decoder, self.config = is_decoder, config
        self.block = nn.ModuleList(
            T5Block(config, is_decoder, layer == 0)
            for layer in range(config["num_decoder_layers" if is_decoder else "num_layers"]))
        self.final_layer_norm = RmsNorm(config["d_model"], config["layer_norm_epsilon"])

    def forward(self, x, memory, points):
        table = self.block[0].layer[0].SelfAttention.relative_attention_bias.weight
        buckets = relative_buckets(
            len(x), len(x), self.config["relative_attention_num_buckets"],
            self.config["relative_attention_max_distance"], not self.is_decoder)
        bias = table[buckets].permute(2, 0, 1)  # (H, T, T)
        for layer, block in enumerate(self.block):
            name = f"{'decoder' if self.is_decoder else 'encoder'}.{layer}"
            x = block(x, memory, bias, points, name)
        return self.final_layer_norm(x)


class T5(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.shared = nn.Embedding(config["vocab_size"], config["d_model"])
        self.encoder = T5Stack(config, False)
        self.decoder = T5Stack(config, True)
        tied = config["tie_word_embeddings"]
        # Newer configs call all models tied; those whose outputs are not scaled have a matrix of their own.
        self.scaled = config.get("scale_decoder_outputs", tied)
        self.tied = tied and self.scaled
        if not self.tied:
            self.lm_head = nn.Linear(config["d_model"], config["vocab_size"], bias=False)

    def encode(self, source, points):
        return self.encoder(self.shared(source), None, points)

    def decode(self, memory, target, points):
        x = self.decoder(self.shared(target), memory, points)
        if self.scaled:
            x = x * x.shape[1]**-0.5
        return x @ self.shared.weight.T if self.tied else self.lm_head(x)


# ---- BERT

class BertOutput(nn.Module):
    """Back to the stream, which is normalised after the sum."""

    def __init__(self, config, inputs):
        super().__init__()
        self.dense = nn.Linear(inputs, config["hidden_size"])
        self.LayerNorm = LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])


class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels, heads = config["hidden_size"], config["num_attention_heads"]
        self.attention = nn.Module()
        self.attention.add_module("self", Attention(
            channels, heads, channels // heads, ("query", "key", "value", None)))
        self.attention.output = BertOutput(config, channels)
        self.intermediate = nn.Module()
        self.intermediate.dense = nn.Linear(channels, config["intermediate_size"])
        self.output = BertOutput(config, config["intermediate_size"])
        self.activation = ACTIVATIONS[config["hidden_act"]]

    def forward(self, x, points, name):
        see = lambda point, values: points.see(f"{name}.{point}", values[None])[0]
        x = see("hook_resid_pre", x)
        mixed = getattr(self.attention, "self").mixed(x, x, False, points, name + ".attn")
        attended = see("hook_attn_out", self.attention.output.dense(mixed))
        x = self.attention.output.LayerNorm(see("hook_resid_mid", x + attended))
        neurons = see("mlp.hook_post", self.activation(see("mlp.hook_pre", self.intermediate.dense(x))))
        x = see("hook_resid_post", x + see("hook_mlp_out", self.output.dense(neurons)))
        return see("hook_normalized_resid_post", self.output.LayerNorm(x))


class Bert(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels, vocabulary = config["hidden_size"], config["vocab_size"]
        norm = lambda: LayerNorm(channels, eps=config["layer_norm_eps"])
        self.bert = nn.Module()
        embeddings = self.bert.embeddings = nn.Module()
        embeddings.word_embeddings = nn.Embedding(vocabulary, channels)
        embeddings.position_embeddings = nn.Embedding(config["max_position_embeddings"], channels)
        embeddings.token_type_embeddings = nn.Embedding(config["type_vocab_size"], channels)
        embeddings.LayerNorm = norm()
        self.bert.encoder = nn.Module()
        self.bert.encoder.layer = nn.ModuleList(
            BertLayer(config) for _ in range(config["num_hidden_layers"]))
        self.cls = nn.Module()
        head = self.cls.predictions = nn.Module()
        head.bias = nn.Parameter(torch.zeros(vocabulary))
        head.transform = nn.Module()
        head.transform.dense = nn.Linear(channels, channels)
        head.transform.LayerNorm = norm()
        self.activation = ACTIVATIONS[config["hidden_act"]]

    def forward(self, tokens, types, points):
        embeddings = self.bert.embeddings
        x = (embeddings.word_embeddings(tokens) + embeddings.token_type_embeddings(types)
             + embeddings.position_embeddings.weight[:len(tokens)])
        x = embeddings.LayerNorm(x)
        for layer, block in enumerate(self.bert.encoder.layer):
            x = block(x, points, f"blocks.{layer}")
        head = self.cls.predictions
        x = head.transform.LayerNorm(self.activation(head.transform.dense(x)))
        return x @ embeddings.word_embeddings.weight.T + head.bias


# ---- torch.nn.Transformer

class TorchTransformer(nn.Module):
    """torch.nn.Transformer between an embedding times the root of C, with sines and cosines in turns,
    and the same matrix as unembedding."""

    def __init__(self, config):
        super().__init__()
        channels = config["d_model"]
        self.channels = channels
        self.embedding = nn.Embedding(config["vocab_size"], channels)
        self.transformer = nn.Transformer(
            channels, config["encoder_attention_heads"], config["encoder_layers"],
            config["decoder_layers"], config["encoder_ffn_dim"], dropout=0.0,
            activation=config["activation_function"], batch_first=True,
            norm_first=config["heed"]["norm_placement"] == "pre")
        # (P, C / 2) sines and as many cosines, to (P, C).
        waves = sinusoids(config["max_position_embeddings"], channels).unflatten(1, (2, -1))
        self.table = waves.transpose(1, 2).flatten(1)

    def embedded(self, tokens):
        return (self.embedding(tokens) * math.sqrt(self.channels) + self.table[:len(tokens)])[None]

    def encode(self, source, points):
        return self.transformer.encoder(self.embedded(source))[0]

    def decode(self, memory, target, points):
        mask = torch.full((len(target), len(target)), -math.inf, dtype=memory.dtype).triu(1)
        x = self.transformer.decoder(self.embedded(target), memory[None], tgt_mask=mask)[0]
        return x @ self.embedding.weight.T

    def in_file(self, value):
        """`value` of each parameter by the names of Marian, which keeps projections apart."""
        tensors = {"model.shared.weight": value(self.embedding.weight)}

        def linear(name, layer):
            tensors[name + ".weight"], tensors[name + ".bias"] = value(layer.weight), value(layer.bias)

        def attention(name, layer):
            weights = value(layer.in_proj_weight).chunk(3)
            biases = value(layer.in_proj_bias).chunk(3)
            for projection, weight, bias in zip(BART_PROJECTIONS, weights, biases):
                tensors[f"{name}.{projection}.weight"] = weight
                tensors[f"{name}.{projection}.bias"] = bias
            linear(name + ".out_proj", layer.out_proj)

        for side in ("encoder", "decoder"):
            stack = getattr(self.transformer, side)
            for index, layer in enumerate(stack.layers):
                name = f"model.{side}.layers.{index}."
                attention(name + "self_attn", layer.self_attn)
                linear(name + "self_attn_layer_norm", layer.norm1)
                if side == "decoder":
                    attention(name + "encoder_attn", layer.multihead_attn)
                    linear(name + "encoder_attn_layer_norm", layer.norm2)
                linear(name + "fc1", layer.linear1)
                linear(name + "fc2", layer.linear2)
                linear(name + "final_layer_norm", layer.norm3 if side == "decoder" else layer.norm2)
            linear(f"model.{side}.layer_norm", stack.norm)
        return tensors


FAMILIES = {"marian": Bart, "bart": Bart, "t5": T5, "bert": Bert}


class Model(nn.Module):
    """A model of any family, whose parameters have the names of its file."""

    def __init__(self, config):
        super().__init__()
        kind = TorchTransformer if "heed" in config else FAMILIES[config["model_type"]]
        self.family = kind(config)

    def in_file(self, value=lambda parameter: parameter):
        """`value` of its parameters by their names in model.safetensors."""
        if isinstance(self.family, TorchTransformer):
            return self.family.in_file(value)
        return {name: value(parameter) for name, parameter in self.family.named_parameters()}

    def encode(self, source, points=None):
        return self.family.encode(source, Points() if points is None else points)

    def decode(self, memory, target, points=None):
        """Logits (T, V)."""
        return self.family.decode(memory, target, Points() if points is None else points)

    def masked(self, tokens, types, points=None):
        return self.family(tokens, types, Points() if points is None else points)
