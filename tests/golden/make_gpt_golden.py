#!/usr/bin/python3
"""Writes gpt_*.safetensors: what PyTorch computes for small GPTs, for heed to be compared with.

    /usr/bin/python3 tests/golden/make_gpt_golden.py

needs PyTorch and numpy. Everything is computed in float64 from weights that float32 holds exactly,
so that the differences measured are heed's own. Each file holds

    parameter.NAME     the initial weights as Hugging Face keeps them (Conv1D matrices [in, out])
    gradient.NAME      of the mean loss, in the same layout
    tokens, targets    (B, T); a target of -1 is ignored
    logits             (B, T, V)
    loss               mean cross-entropy over the targets that count, in nats
    step_losses        (10): the loss before each of ten AdamW steps on the same batch, f64
    step_norms         (10): the gradient's norm before it is clipped, f64
    probe.NAME         every point of the first pass, by TransformerLens' names
    probe_gradient.NAME  the gradient of the mean loss by it
    and the config as JSON in the metadata

The steps: learning rate 1e-3, betas 0.9 and 0.95, epsilon 1e-8, weight decay 0.1 on matrices (all
tensors of two dimensions, embeddings included) and none on vectors, gradients clipped to norm 1.
"""

import json
import pathlib

import numpy
import torch

import safetensors_by_hand
from gpt_module import TRANSPOSED, Transformer, GptConfig, PointsWithGradients

STEPS = 10

MODELS = {
    # As GPT-2 is.
    "gpt_tied": GptConfig(
        vocabulary_size=61, context=24, channels=32, layers=3, heads=4, head_size=8,
        feed_forward=128),
    # As different as the config allows: an own unembedding, no biases, the exact GELU, heads whose width
    # is not the stream's, a feed-forward layer that is not four times as wide.
    "gpt_untied": GptConfig(
        vocabulary_size=37, context=16, channels=24, layers=2, heads=3, head_size=10,
        feed_forward=56, activation="gelu", norm_epsilon=1e-6, has_bias=False, tied_unembedding=False),
}


def config_json(config):
    return {
        "model_type": "gpt2",
        "vocab_size": config.vocabulary_size,
        "n_positions": config.context,
        "n_embd": config.channels,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_inner": config.feed_forward,
        "activation_function": config.activation,
        "layer_norm_epsilon": config.norm_epsilon,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": config.tied_unembedding,
        "heed": {"bias": config.has_bias, "head_size": config.head_size},
    }


def randomize(model):
    """Weights large enough that attention is sharp and activations curve; biases and gains too."""
    generator = torch.Generator().manual_seed(20)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            is_gain = parameter.dim() == 1 and name.endswith("weight")
            values = 1 + 0.2 * noise if is_gain else 0.2 * noise
            parameter.copy_(values.float())


def as_in_file(name, values):
    return values.T if name.endswith(TRANSPOSED) else values


def loss_of(model, tokens, targets, points=None):
    logits = model(tokens, points)
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    return logits, loss


def adamw(model):
    parameters = list(model.parameters())
    return torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.dim() == 2], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=1e-3, betas=(0.9, 0.95), eps=1e-8)


def ten_steps(model, tokens, targets):
    parameters = list(model.parameters())
    optimizer = adamw(model)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        _, loss = loss_of(model, tokens, targets)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, 1.0).item())
        losses.append(loss.item())
        optimizer.step()
    return losses, norms


def golden(config):
    model = Transformer(config).double()
    randomize(model)
    generator = torch.Generator().manual_seed(21)
    # One sequence stops short of the context, to see that positions count from zero.
    positions = config.context - 3
    draw = lambda: torch.randint(config.vocabulary_size, (2, positions), generator=generator)
    tokens, targets = draw(), draw()
    targets[0, :2] = -1
    targets[1, -1] = -1

    points = PointsWithGradients()
    logits, loss = loss_of(model, tokens, targets, points)
    loss.backward()

    single = lambda values: values.detach().numpy().astype(numpy.float32)
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors["parameter." + name] = single(as_in_file(name, parameter))
        tensors["gradient." + name] = single(as_in_file(name, parameter.grad))
    split = PointsWithGradients(split_heads=True)
    loss_of(model, tokens, targets, split)[1].backward()
    for seen in (points, split):
        for name, values in seen.items():
            tensors.setdefault("probe." + name, single(values))
            tensors.setdefault("probe_gradient." + name, single(seen.gradients[name]))
    tensors["tokens"] = tokens.numpy().astype(numpy.int32)
    tensors["targets"] = targets.numpy().astype(numpy.int32)
    tensors["logits"] = single(logits)
    tensors["loss"] = numpy.array([loss.item()])
    losses, norms = ten_steps(model, tokens, targets)
    tensors["step_losses"] = numpy.array(losses)
    tensors["step_norms"] = numpy.array(norms)
    return tensors


def main():
    folder = pathlib.Path(__file__).parent
    for name, config in MODELS.items():
        torch.manual_seed(0)
        path = folder / (name + ".safetensors")
        metadata = {"config": json.dumps(config_json(config)), "torch": torch.__version__}
        safetensors_by_hand.write(path, golden(config), metadata)
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
