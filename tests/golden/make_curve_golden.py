#!/usr/bin/python3
"""Writes loss_curve.safetensors: how PyTorch's loss falls over a hundred steps of training.

    /usr/bin/python3 tests/golden/make_curve_golden.py

needs PyTorch and numpy. The model begins with the weights of gpt_tied.safetensors; everything is
computed in float64. The file holds

    tokens  (16, 2, 22): batches of sequences, each token foretold by the two before it most of the
            time; step s trains on batch s mod 16, every token but the last foretelling the next
    losses  (100): the mean loss of each step's batch before the step, f64

The steps are those of make_gpt_golden.py.
"""

import pathlib

import numpy
import torch

import safetensors_by_hand
from gpt_module import Transformer
from make_gpt_golden import MODELS, adamw, loss_of, randomize

STEPS, BATCHES, SEQUENCES, POSITIONS = 100, 16, 2, 21


def sequences(vocabulary_size):
    generator = torch.Generator().manual_seed(22)
    draw = lambda shape: torch.randint(vocabulary_size, shape, generator=generator)
    tokens = draw((BATCHES, SEQUENCES, POSITIONS + 1))
    follows_rule = torch.rand(tokens.shape, generator=generator) < 0.9
    for position in range(2, POSITIONS + 1):
        foretold = (tokens[..., position - 1] + 2 * tokens[..., position - 2] + 1) % vocabulary_size
        tokens[..., position] = torch.where(
            follows_rule[..., position], foretold, tokens[..., position])
    return tokens


def main():
    config = MODELS["gpt_tied"]
    model = Transformer(config).double()
    randomize(model)
    tokens = sequences(config.vocabulary_size)
    optimizer = adamw(model)
    losses = []
    for step in range(STEPS):
        batch = tokens[step % BATCHES]
        optimizer.zero_grad()
        _, loss = loss_of(model, batch[:, :-1], batch[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        losses.append(loss.item())
        optimizer.step()
    path = pathlib.Path(__file__).parent / "loss_curve.safetensors"
    tensors = {"tokens": tokens.numpy().astype(numpy.int32), "losses": numpy.array(losses)}
    safetensors_by_hand.write(path, tensors, {"torch": torch.__version__})
    print(f"{path}: {path.stat().st_size} bytes, losses {losses[0]:.4f} to {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
