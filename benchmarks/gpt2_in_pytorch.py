#!/usr/bin/env python3
"""GPT-2 124M in PyTorch, as a rival of `heed bench --against`: prints its tokens a second.

    gpt2_in_pytorch.py prompt|train [--batch 1] [--context 512] [--dtype f32|bf16] [--threads 2] [--device cuda] [--compile]

Blocks are those of GPT-2: norms before attention and feed-forward, a fused projection to query, key and value, learned
positions, a tied unembedding. Attention is `scaled_dot_product_attention` where PyTorch has it. A prompt gives the logits of
its last position; a training step is forward, backward and AdamW with clipping. The first of two runs, which compiles, is
not timed.
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional

LAYERS, CHANNELS, HEADS, VOCABULARY, CONTEXT = 12, 768, 12, 50257, 1024


def attention(query, key, value):
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(-1) @ value


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(CHANNELS), nn.LayerNorm(CHANNELS)
        self.qkv, self.out = nn.Linear(CHANNELS, 3 * CHANNELS), nn.Linear(CHANNELS, CHANNELS)
        self.up, self.down = nn.Linear(CHANNELS, 4 * CHANNELS), nn.Linear(4 * CHANNELS, CHANNELS)

    def forward(self, x):  # (B, T, C)
        batch, positions, _ = x.shape
        heads = [part.view(batch, positions, HEADS, -1).transpose(1, 2)
                 for part in self.qkv(self.norm_1(x)).split(CHANNELS, dim=2)]
        mixed = attention(*heads).transpose(1, 2).reshape(x.shape)
        x = x + self.out(mixed)
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, CHANNELS), nn.Embedding(CONTEXT, CHANNELS)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(CHANNELS)

    def forward(self, ids):  # (B, T) -> (B, T, C)
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def logits(self, x):
        return x @ self.tokens.weight.T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["prompt", "train"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true", help="by torch.compile, where PyTorch has it")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = Gpt2().to(options.device)
    ids = torch.randint(VOCABULARY, (options.batch, options.context + 1), device=options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    body = torch.compile(model) if options.compile else model

    def prompt():
        with torch.no_grad():
            model.logits(body(ids[:, :-1])[:, -1])

    def train():
        optimizer.zero_grad(set_to_none=True)
        logits = model.logits(body(ids[:, :-1]))
        functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    work = prompt if options.work == "prompt" else train

    def finish():
        if options.device != "cpu":
            torch.cuda.synchronize()

    with torch.autocast(torch.device(options.device).type, torch.bfloat16, enabled=options.dtype == "bf16"):
        work()
        finish()
        begin = time.perf_counter()
        work()
        finish()
        print(options.batch * options.context / (time.perf_counter() - begin))


if __name__ == "__main__":
    main()
