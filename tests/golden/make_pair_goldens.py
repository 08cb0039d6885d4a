#!/usr/bin/python3
"""Writes pairs/: toy encoders and encoder-decoders in Hugging Face's form, and what PyTorch computes
for them.

    /usr/bin/python3 tests/golden/make_pair_goldens.py [NAME ...]

needs PyTorch and numpy, and writes the same bytes again on the same machine. Everything is computed
in float64 from weights that float32 holds exactly. The models, by the config.json of their directory:

    torch_pre      torch.nn.Transformer itself with norms before its branches, between an embedding times
    torch_post     the root of C, sines and cosines in turns, and the same matrix as unembedding; with
                   norms after its branches. Written with Marian's names, heed's options under `heed`
    marian         MarianMTModel: norms after branches, sines before cosines, swish, bias of logits
    bart           BartForConditionalGeneration: learned positions from row 2 of their table, a norm of
                   embeddings; one encoder layer of four heads, two decoder layers of two
    t5             T5ForConditionalGeneration, 1.0: ReLU, tied and scaled; heads narrower than the stream
                   divided by their number; positions far beyond the largest distance
    t5_gated       1.1: gated GELU, an own unembedding; the published 32 buckets
    t5_current     the same as transformers 5 describes it: `tie_word_embeddings` is true beside an own
                   unembedding, and `scale_decoder_outputs` says that outputs are not scaled
    bert           BertForMaskedLM with token types
    marian_beams, bart_beams, t5_beams    see make_search_goldens.py

pairs/NAME has

    config.json          as Hugging Face writes it; the script reads it
    model.safetensors    the weights, in the names and layouts of Hugging Face. t5, t5_beams, bert and
                         marian_beams hold tied matrices under all of their names, and buffers, as
                         files converted from other formats do; the others hold each matrix once
    golden.safetensors
        source, target, targets    tokens of all sentences, one sentence after the other; `target` is
                                   what the decoder reads, `targets` what it foretells; -1 is ignored
        source_starts, target_starts    (sentences + 1): where each sentence begins
        encoded                    (N, C): what the encoder gives for all rows of source
        logits                     (M, V): for all rows of target
        loss, smoothed_loss        mean cross-entropy over the targets that count, in nats, f64; with
                                   label smoothing 0.1 (torch's: over all V tokens)
        gradient.NAME              of the mean loss, for each parameter of model.safetensors
        smoothed_gradient.NAME     of the smoothed loss (torch_pre only)
        probe.NAME                 points of the first sentence's pass in the last layer of each stack
                                   (not of torch_*), with a batch of one
    An encoder alone has source, token_types, targets, source_starts, logits, loss and gradients.

pairs/buckets.safetensors has T5's buckets of the distances -200 to 200 (key minus query), for 32 buckets
and a largest distance of 128: `both` directions, and `past`.
"""

import argparse
import json
import math
import pathlib
import sys

import numpy
import torch

import safetensors_by_hand
from family_parts import Points
from pair_module import Model, relative_buckets, sinusoids

FOLDER = pathlib.Path(__file__).parent / "pairs"
SMOOTHING = 0.1
LENGTHS = {"t5": ((31, 9), (15, 28)), "t5_gated": ((31, 9), (15, 28))}
SHORT_LENGTHS = ((7, 12), (9, 5))

POINTS = (
    "hook_resid_pre", "hook_resid_mid", "hook_resid_mid_cross", "hook_resid_post",
    "hook_normalized_resid_post", "hook_attn_out", "hook_cross_attn_out", "hook_mlp_out",
    "attn.hook_q", "attn.hook_k", "attn.hook_v", "attn.hook_z", "attn.hook_attn_scores",
    "attn.hook_pattern", "cross_attn.hook_q", "cross_attn.hook_k", "cross_attn.hook_v",
    "cross_attn.hook_z", "cross_attn.hook_attn_scores", "cross_attn.hook_pattern",
    "mlp.hook_pre", "mlp.hook_post",
)


def randomized(config):
    """Weights large enough that attention is sharp; biases and gains vary too."""
    model = Model(config).double()
    generator = torch.Generator().manual_seed(20)
    with torch.no_grad():
        for name, parameter in model.family.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            is_gain = parameter.dim() == 1 and name.endswith("weight")
            size = 0.25
            if name.endswith("relative_attention_bias.weight"):
                size = 1.0
            elif name.endswith((".q.weight", ".k.weight")):
                size = 0.15  # scores are not divided by the root of D
            elif name == "shared.weight":
                size = 1.0
            parameter.copy_((1 + 0.2 * noise if is_gain else size * noise).float())
    return model


def single(values):
    return values.detach().numpy().astype(numpy.float32)


def integers(values):
    return numpy.array(values, dtype=numpy.int32)


def duplicates(name, config, tensors):
    """Other names of tied matrices, and buffers, in files that were converted."""
    kind = config["model_type"]
    if name == "bert":
        head = "cls.predictions."
        return {
            head + "decoder.weight": tensors["bert.embeddings.word_embeddings.weight"],
            head + "decoder.bias": tensors[head + "bias"],
            "bert.embeddings.position_ids":
                numpy.arange(config["max_position_embeddings"], dtype=numpy.int64)[None],
        }
    if name == "marian_beams":
        shared = tensors["model.shared.weight"]
        table = single(sinusoids(config["max_position_embeddings"], config["d_model"]))
        return {
            "lm_head.weight": shared, "model.encoder.embed_tokens.weight": shared,
            "model.decoder.embed_tokens.weight": shared,
            "model.encoder.embed_positions.weight": table,
            "model.decoder.embed_positions.weight": table,
        }
    if name in ("t5", "t5_beams"):
        shared = tensors["shared.weight"]
        # An old checkpoint's table that nothing reads.
        unused = tensors["decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        return {
            "lm_head.weight": shared, "encoder.embed_tokens.weight": shared,
            "decoder.embed_tokens.weight": shared,
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": unused,
        }
    return {}


def write_weights(name, config, model):
    tensors = {parameter: single(values) for parameter, values in model.in_file().items()}
    tensors |= duplicates(name, config, tensors)
    path = FOLDER / name / "model.safetensors"
    safetensors_by_hand.write(path, dict(sorted(tensors.items())), {"format": "pt"})


class Sentences:
    """Random sentences of a model: sources that end, targets that begin as decoding does."""

    def __init__(self, name, config):
        generator = torch.Generator().manual_seed(21)
        draw = lambda count: torch.randint(3, config["vocab_size"] - 1, (count,), generator=generator)
        lengths = LENGTHS.get(name, SHORT_LENGTHS)
        self.is_masked = config["model_type"] == "bert"
        if self.is_masked:
            self.sources = [draw(count) for count in lengths[0]]
            self.types = [(torch.arange(count) > 0.6 * count).long() for count in lengths[0]]
            self.targets = [torch.where(torch.rand(count, generator=generator) < 0.4, draw(count), -1)
                            for count in lengths[0]]
            return
        start, end = torch.tensor([config["decoder_start_token_id"]]), torch.tensor([config["eos_token_id"]])
        words = [draw(count - 1) for count in lengths[1]]
        self.sources = [torch.cat([draw(count - 1), end]) for count in lengths[0]]
        self.read = [torch.cat([start, word]) for word in words]
        self.targets = [torch.cat([word, end]) for word in words]
        self.targets[0][2] = -1


def starts(sentences):
    return integers(numpy.cumsum([0] + [len(sentence) for sentence in sentences]))


def pass_of(model, sentences, points=None):
    """What the encoder gives, and the logits, of all sentences; points of the first."""
    encoded, logits = [], []
    for index, source in enumerate(sentences.sources):
        seen = points if index == 0 else None
        if sentences.is_masked:
            logits.append(model.masked(source, sentences.types[index], seen))
        else:
            encoded.append(model.encode(source, seen))
            logits.append(model.decode(encoded[-1], sentences.read[index], seen))
    return encoded, torch.cat(logits)


def loss_of(model, sentences, smoothing=0.0, points=None):
    encoded, logits = pass_of(model, sentences, points)
    loss = torch.nn.functional.cross_entropy(
        logits, torch.cat(sentences.targets), ignore_index=-1, label_smoothing=smoothing)
    return encoded, logits, loss


def gradients_of(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: single(values)
            for name, values in model.in_file(lambda parameter: parameter.grad).items()}


def last_layers(config):
    if config["model_type"] == "bert":
        return (f"blocks.{config['num_hidden_layers'] - 1}.",)
    layers = (config.get("encoder_layers", config.get("num_layers")),
              config.get("decoder_layers", config.get("num_decoder_layers")))
    return f"encoder.{layers[0] - 1}.", f"decoder.{layers[1] - 1}."


def golden(name, config, model):
    sentences, points = Sentences(name, config), Points()
    encoded, logits, loss = loss_of(model, sentences, points=points)
    smoothed_loss = loss_of(model, sentences, SMOOTHING)[2]
    tensors = {
        "source": integers(torch.cat(sentences.sources)),
        "source_starts": starts(sentences.sources),
        "targets": integers(torch.cat(sentences.targets)),
        "logits": single(logits),
        "loss": numpy.array([loss.item()]),
        "smoothed_loss": numpy.array([smoothed_loss.item()]),
    }
    if sentences.is_masked:
        tensors["token_types"] = integers(torch.cat(sentences.types))
    else:
        tensors["target"] = integers(torch.cat(sentences.read))
        tensors["target_starts"] = starts(sentences.read)
        tensors["encoded"] = single(torch.cat(encoded))
    for parameter, values in gradients_of(model, loss).items():
        tensors["gradient." + parameter] = values
    if name == "torch_pre":
        for parameter, values in gradients_of(model, smoothed_loss).items():
            tensors["smoothed_gradient." + parameter] = values
    for point, values in points.items():
        for layer in last_layers(config):
            if point.startswith(layer) and point[len(layer):] in POINTS:
                tensors["probe." + point] = single(values)
    return tensors


# ---- Checks of the modules themselves

def expect(what, error, tolerance):
    if not error <= tolerance:  # NaN is not
        sys.exit(f"{what}: off by {error:.1e}, tolerance {tolerance:.0e}")
    return error


def check_gradients(name, config, model):
    """The gradient of every parameter along a random direction, against differences of the loss, as in
    make_family_goldens.py. The step is small because a difference is wrong where a ReLU turns within it."""
    sentences = Sentences(name, config)
    generator = torch.Generator().manual_seed(23)
    step, worst = 3e-6, 0.0
    model.zero_grad()
    loss_of(model, sentences, SMOOTHING)[2].backward()
    for parameter_name, parameter in model.family.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        direction /= direction.norm()
        slope = (parameter.grad * direction).sum().item()
        original = parameter.detach().clone()

        def loss_at(offset):
            with torch.no_grad():
                parameter.copy_(original + offset * direction)
                loss = loss_of(model, sentences, SMOOTHING)[2].item()
                parameter.copy_(original)
            return loss

        near = loss_at(step) - loss_at(-step)
        far = loss_at(2 * step) - loss_at(-2 * step)
        error = abs((8 * near - far) / (12 * step) - slope)
        worst = max(worst, expect(f"{name}: gradient of {parameter_name}", error, 2e-9))
    return worst


def torch_layer(channels, heads, neurons, activation, epsilon, attentions, linears, norms):
    """A layer of torch.nn with norms after its branches, from the parts of one of ours."""
    kind = torch.nn.TransformerEncoderLayer if len(attentions) == 1 else torch.nn.TransformerDecoderLayer
    layer = kind(channels, heads, neurons, dropout=0.0, activation=activation, layer_norm_eps=epsilon,
                 batch_first=True).double()
    with torch.no_grad():
        for ours, theirs in zip(attentions, (layer.self_attn, getattr(layer, "multihead_attn", None))):
            projections, back = ours
            theirs.in_proj_weight.copy_(torch.cat([part.weight for part in projections]))
            theirs.in_proj_bias.copy_(torch.cat([part.bias for part in projections]))
            theirs.out_proj.load_state_dict(back.state_dict())
        layer.linear1.load_state_dict(linears[0].state_dict())
        layer.linear2.load_state_dict(linears[1].state_dict())
        for index, norm in enumerate(norms):
            getattr(layer, f"norm{index + 1}").load_state_dict(norm.state_dict())
    return layer


def check_blocks(name, config, model):
    """Blocks with norms after their branches, against those of torch.nn."""
    generator = torch.Generator().manual_seed(24)
    draw = lambda count, channels: torch.randn(
        (count, channels), generator=generator, dtype=torch.float64)
    parts = lambda attention: ([getattr(attention, n) for n in attention.names[:3]],
                               getattr(attention, attention.names[3] or "", None))
    worst = 0.0
    if config["model_type"] == "bert":
        channels = config["hidden_size"]
        x = draw(8, channels)
        for block in model.family.bert.encoder.layer:
            projections, _ = parts(getattr(block.attention, "self"))
            layer = torch_layer(
                channels, config["num_attention_heads"], config["intermediate_size"], block.activation,
                config["layer_norm_eps"], [(projections, block.attention.output.dense)],
                (block.intermediate.dense, block.output.dense),
                (block.attention.output.LayerNorm, block.output.LayerNorm))
            error = (block(x, Points(), "") - layer(x[None])[0]).abs().max().item()
            worst = max(worst, expect(f"{name}: block", error, 1e-12))
    elif config["model_type"] in ("marian", "bart") and "heed" not in config:
        channels = config["d_model"]
        x, memory = draw(6, channels), draw(9, channels)
        mask = torch.full((6, 6), -math.inf, dtype=torch.float64).triu(1)
        for side in ("encoder", "decoder"):
            for block in getattr(model.family.model, side).layers:
                attentions = [parts(block.self_attn)]
                norms = [block.self_attn_layer_norm, block.final_layer_norm]
                if side == "decoder":
                    attentions.append(parts(block.encoder_attn))
                    norms.insert(1, block.encoder_attn_layer_norm)
                layer = torch_layer(
                    channels, config[side + "_attention_heads"], config[side + "_ffn_dim"],
                    block.activation, 1e-5, attentions, (block.fc1, block.fc2), norms)
                theirs = layer(x[None], memory[None], tgt_mask=mask) if side == "decoder" else layer(x[None])
                error = (block(x, memory, Points(), "") - theirs[0]).abs().max().item()
                worst = max(worst, expect(f"{name}: block", error, 1e-12))
    return worst


def write_buckets():
    reach = 200
    both = relative_buckets(2 * reach + 1, 2 * reach + 1, 32, 128, True)[reach]
    past = relative_buckets(2 * reach + 1, 2 * reach + 1, 32, 128, False)[reach]
    tensors = {"both": integers(both), "past": integers(past)}
    safetensors_by_hand.write(FOLDER / "buckets.safetensors", tensors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="of models; all if there are none")
    names = parser.parse_args().names
    torch.set_num_threads(1)  # sums do not depend on the number of processors
    write_buckets()
    for path in sorted(FOLDER.glob("*/config.json")):
        name, config = path.parent.name, json.loads(path.read_text())
        if name.endswith("_beams") or (names and name not in names):
            continue
        model = randomized(config)
        blocks = check_blocks(name, config, model)
        write_weights(name, config, model)
        differences = check_gradients(name, config, model)
        tensors = golden(name, config, model)
        safetensors_by_hand.write(
            path.parent / "golden.safetensors", tensors, {"torch": torch.__version__})
        size = sum(file.stat().st_size for file in path.parent.iterdir())
        print(f"{name}: {size} bytes, loss {tensors['loss'][0]:.4f}, smoothed "
              f"{tensors['smoothed_loss'][0]:.4f}, blocks {blocks:.0e}, gradients {differences:.0e}")


if __name__ == "__main__":
    main()
