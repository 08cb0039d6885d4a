#!/usr/bin/python3
"""Writes families/: toy checkpoints of published decoder families in Hugging Face's form, and what
PyTorch computes for them.

    /usr/bin/python3 tests/golden/make_family_goldens.py [--text FILE]

needs PyTorch and numpy, and writes the same bytes again on the same machine. Everything is computed
in float64 from weights that float32 holds exactly. The models, by the config.json of their directory:

    gpt2               as published; names begin with "transformer."
    llama              two key-value heads for four heads, no biases, an own unembedding
    llama_biased       all biases, one key-value head, GELU, tied; linear scaling under its old key
    llama_scaled       llama3 scaling: of eight frequencies one is kept, five are slowed down, two are
                       in between; heads wider than the stream divided by their number, as in llama_yarn
    llama_yarn         yarn scaling with a factor on cosines and sines
    mistral            every position sees seven
    neox               a quarter of a head is rotated; attention and feed-forward in parallel
    neox_sequential    half of a head is rotated, one after the other, no biases of attention; with the
                       buffers that older files hold, which are not parameters
    gpt_neo            three layers, of which the second sees five positions; scores are not scaled
    opt                ReLU; two rows of the position table stand before that of the first position
    qwen2              biases of queries, keys and values; tied; a window that is not in use
    qwen2_windows      three layers, of which the last two see five positions; one key-value head
    qwen3              queries and keys normalised by head; heads wider than in llama; tied
    olmo2              norms of what branches give alone; queries and keys normalised over all heads
    phi3               one matrix for query, key and value, one for gate and up; three quarters of a head
                       are rotated, by the short factors of a longrope scaling; every position sees nine
    gemma2             norms before and after each branch, the embedding scaled, scores and logits capped,
                       heads wider than in llama; of three layers the first and last see six positions
    gemma3             norms of heads, another base and a window in two of three layers, linear scaling in
                       the third; the embedding's scale as bf16 has it
    falcon             one norm for both branches, one key for four heads, no biases
    falcon_new         a norm for each branch in parallel, two keys for four heads, biases, untied
    starcoder2         layer norms, all biases, two key-value heads, GELU without a gate; tied
    starcoder2_windows every position sees six; no biases, one key-value head, an own unembedding

families/NAME has

    config.json          as Hugging Face writes it; the script reads it
    model.safetensors    the weights, in the names and layouts of Hugging Face
    golden.safetensors
        tokens, targets    (B, T); a target of -1 is ignored
        logits             (B, T, V)
        loss               mean cross-entropy over the targets that count, in nats, f64
        gradient.NAME      of the mean loss, for each parameter of model.safetensors, in its layout
        probe.NAME         points of the pass, by TransformerLens' names, of the first and the last layer

hook_q and hook_k are what the projections give, before a norm of heads and before positions;
hook_rot_q and hook_rot_k are what scores are computed from. Keys and values keep (B, T, G, D).
hook_normalized is before gain and bias. hook_pre of a gated feed-forward layer is its gate before
the activation, hook_pre_linear what the gate multiplies, hook_post their product. A parallel block
has no hook_resid_mid. ln1_post and ln2_post are the norms of what branches give, which hook_attn_out
and hook_mlp_out are after. llama_yarn and starcoder2_windows have only rotated queries and keys, and
patterns.

families/curves.safetensors holds a hundred steps of training for each family:

    tokens         (100, 4, 33): the batch of each step; every token but the last foretells the next
    losses.NAME    (100): the mean loss of each step's batch before the step, f64
    norms.NAME     (100): the gradient's norm before it is clipped, f64

and the characters that tokens stand for in the metadata, `alphabet`. A model starts with the weights
of its directory, with all tensors of two dimensions multiplied by 1/8, which is exact. The steps are
those of make_gpt_golden.py. Tokens are kept from the file that is there, unless --text takes the
first characters of a text: capitals become small letters, characters past the alphabet spaces.
"""

import argparse
import collections
import copy
import json
import math
import pathlib
import sys

import numpy
import torch

import safetensors_by_hand
from family_module import Decoder
from family_parts import ACTIVATIONS, Memory, Points
from make_gpt_golden import adamw, loss_of

FOLDER = pathlib.Path(__file__).parent / "families"
BATCH, POSITIONS = 2, 20
STEPS, CURVE_BATCH, CURVE_POSITIONS = 100, 4, 32
START_SCALE = 1 / 8
ALPHABET_SIZE = 40

POINTS = (
    "hook_resid_pre", "hook_resid_mid", "hook_resid_post", "hook_attn_out", "hook_mlp_out",
    "ln1.hook_scale", "ln1.hook_normalized", "ln2.hook_scale",
    "ln1_post.hook_scale", "ln1_post.hook_normalized", "ln2_post.hook_scale",
    "attn.hook_q", "attn.hook_k", "attn.hook_v", "attn.hook_rot_q", "attn.hook_rot_k", "attn.hook_z",
    "attn.hook_attn_scores", "attn.hook_pattern",
    "mlp.hook_pre", "mlp.hook_pre_linear", "mlp.hook_post",
)
# Variants of a family that is there in full, to keep the files small.
FEW_POINTS = ("attn.hook_rot_q", "attn.hook_rot_k", "attn.hook_pattern")
SMALL = ("llama_yarn", "starcoder2_windows")


def randomized(config):
    """A model whose weights are large enough that attention is sharp; biases and gains vary too."""
    model = Decoder(config).double()
    generator = torch.Generator().manual_seed(20)
    with torch.no_grad():
        for name, parameter in model.in_file().items():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            is_gain = parameter.dim() == 1 and name.endswith("weight")
            # Normalised queries and keys are as long as their gains say.
            gain = 1.5 if name.endswith(("q_norm.weight", "k_norm.weight")) else 1.0
            gain -= 1.0 if config["model_type"].startswith("gemma") else 0.0
            parameter.copy_((gain + 0.2 * noise if is_gain else 0.25 * noise).float())
    return model


def single(values):
    return values.detach().numpy().astype(numpy.float32)


def buffers(config):
    """Tensors that older files hold beside the parameters; readers pass them over."""
    if config["model_type"] != "gpt_neox" or config["use_parallel_residual"]:
        return {}
    size = int(config["hidden_size"] // config["num_attention_heads"] * config["rotary_pct"])
    frequencies = config["rotary_emb_base"] ** (-numpy.arange(0, size, 2) / size)
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        name = f"gpt_neox.layers.{layer}.attention."
        tensors[name + "masked_bias"] = numpy.array(-1e9, dtype=numpy.float32)
        tensors[name + "rotary_emb.inv_freq"] = frequencies.astype(numpy.float32)
    return tensors


def write_weights(directory, config, model):
    tensors = {name: single(values) for name, values in model.in_file().items()} | buffers(config)
    path = directory / "model.safetensors"
    safetensors_by_hand.write(path, dict(sorted(tensors.items())), {"format": "pt"})


def wanted(name, layers, kinds):
    if not name.startswith("blocks."):
        return name == "ln_final.hook_normalized"
    _, layer, kind = name.split(".", 2)
    return int(layer) in (0, layers - 1) and kind in kinds


def draw(config):
    generator = torch.Generator().manual_seed(21)
    shape = (BATCH, POSITIONS)
    tokens = torch.randint(config["vocab_size"], shape, generator=generator)
    targets = torch.randint(config["vocab_size"], shape, generator=generator)
    targets[0, 2] = -1
    return tokens, targets


def golden(name, config, model):
    tokens, targets = draw(config)
    points = Points()
    logits, loss = loss_of(model, tokens, targets, points)
    model.zero_grad()
    loss.backward()
    tensors = {
        "tokens": tokens.numpy().astype(numpy.int32),
        "targets": targets.numpy().astype(numpy.int32),
        "logits": single(logits),
        "loss": numpy.array([loss.item()]),
    }
    for parameter, values in model.in_file().items():
        tensors["gradient." + parameter] = single(values.grad)
    layers = len(model.family.parts()[0])
    for point, values in points.items():
        if wanted(point, layers, FEW_POINTS if name in SMALL else POINTS):
            tensors["probe." + point] = single(values)
    return tensors


def expect(what, error, tolerance):
    if not error <= tolerance:  # NaN is not
        sys.exit(f"{what}: off by {error:.1e}, tolerance {tolerance:.0e}")
    return error


def smooth(model):
    """The same weights with GELU for ReLU, across whose kink differences are no derivative."""
    smoothed = copy.deepcopy(model)
    for module in smoothed.modules():
        if getattr(module, "activation", None) is ACTIVATIONS["relu"]:
            module.activation = ACTIVATIONS["gelu"]
    return smoothed


def check_gradients(name, model, tokens, targets):
    """The gradient of every parameter along a random direction, against differences of the loss.
    What four losses leave out is the step's fourth power, 1e-12, times the fifth derivative, of the
    order of 100 for these weights; their rounding by the step is 1e-12."""
    model = smooth(model)
    model.zero_grad()
    loss_of(model, tokens, targets)[1].backward()
    generator = torch.Generator().manual_seed(23)
    step, worst = 1e-3, 0.0
    for parameter_name, parameter in model.in_file().items():
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        direction /= direction.norm()
        slope = (parameter.grad * direction).sum().item()

        original = parameter.detach().clone()

        def loss_at(offset):
            with torch.no_grad():
                parameter.copy_(original + offset * direction)
                loss = loss_of(model, tokens, targets)[1].item()
                parameter.copy_(original)
            return loss

        near = loss_at(step) - loss_at(-step)
        far = loss_at(2 * step) - loss_at(-2 * step)
        error = abs((8 * near - far) / (12 * step) - slope)
        worst = max(worst, expect(f"{name}: gradient of {parameter_name}", error, 1e-9))
    return worst


def check_cache(name, config, model, tokens):
    """Decoding with cached keys and values, against the full pass. The frequencies of dynamic
    scaling change with every position past the context, and cached keys keep theirs."""
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "dynamic":
        tokens = tokens[:, :config["max_position_embeddings"]]
    with torch.no_grad():
        expected = model(tokens)
        memory, parts = Memory(), []
        for part in tokens.split([5, 3] + [1] * (tokens.shape[1] - 8), dim=1):
            parts.append(model(part, memory=memory))
        error = (torch.cat(parts, dim=1) - expected).abs().max().item()
    return expect(f"{name}: cached decoding", error, 1e-12)


def sharpness(model, tokens):
    """Mean of the largest attention weight of each query after the first."""
    points = Points()
    with torch.no_grad():
        model(tokens, points)
    patterns = [values for name, values in points.items() if name.endswith("hook_pattern")]
    return torch.stack(patterns)[..., 1:, :].max(dim=-1).values.mean().item()


def tokens_of_text(path):
    count = STEPS * CURVE_BATCH * (CURVE_POSITIONS + 1)
    text = path.read_text(encoding="utf-8")[:count].lower()
    if len(text) < count:
        sys.exit(f"{path} has {len(text)} characters, expected {count}")
    common = collections.Counter(sorted(text)).most_common(ALPHABET_SIZE)
    alphabet = "".join(sorted(character for character, _ in common))
    ids = [alphabet.find(c) if c in alphabet else alphabet.index(" ") for c in text]
    shape = (STEPS, CURVE_BATCH, CURVE_POSITIONS + 1)
    return numpy.array(ids, dtype=numpy.int32).reshape(shape), alphabet


def tokens_of_file(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return safetensors_by_hand.read(path)["tokens"], header["__metadata__"]["alphabet"]


def curve(config, tokens):
    """Losses before each step, and norms of gradients."""
    model = randomized(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(START_SCALE)
    optimizer = adamw(model)
    losses, norms = [], []
    for batch in torch.from_numpy(tokens).long():
        optimizer.zero_grad()
        _, loss = loss_of(model, batch[:, :-1], batch[:, 1:])
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        losses.append(loss.item())
        optimizer.step()
    return numpy.array(losses), numpy.array(norms)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", type=pathlib.Path, help="take the tokens of curves from FILE")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums do not depend on the number of processors

    paths = sorted(FOLDER.glob("*/config.json"))
    configs = {path.parent.name: json.loads(path.read_text()) for path in paths}
    for name, config in configs.items():
        model, directory = randomized(config), FOLDER / name
        tokens, targets = draw(config)
        write_weights(directory, config, model)
        tensors = golden(name, config, model)
        cached = check_cache(name, config, model, tokens)
        differences = check_gradients(name, model, tokens, targets)
        path = directory / "golden.safetensors"
        safetensors_by_hand.write(path, tensors, {"torch": torch.__version__})
        size = sum(file.stat().st_size for file in directory.iterdir())
        print(f"{name}: {size} bytes, loss {tensors['loss'][0]:.4f}, largest weight of attention "
              f"{sharpness(model, tokens):.2f}, cache {cached:.0e}, gradients {differences:.0e}")

    path = FOLDER / "curves.safetensors"
    tokens, alphabet = tokens_of_text(arguments.text) if arguments.text else tokens_of_file(path)
    curves = {"tokens": tokens}
    for name, config in configs.items():
        losses, norms = curve(config, tokens)
        curves["losses." + name], curves["norms." + name] = losses, norms
        print(f"{name}: losses {losses[0]:.4f} to {losses[-1]:.4f}, norms {norms.min():.2f} to "
              f"{norms.max():.2f}, ln V {math.log(config['vocab_size']):.4f}")
    metadata = {"alphabet": alphabet, "torch": torch.__version__}
    safetensors_by_hand.write(path, curves, metadata)
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
