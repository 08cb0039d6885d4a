"""Induction heads: on random tokens that are repeated, which heads attend to what followed the
token's first occurrence, beside the chance of uniform attention (Olsson et al. 2022)?"""

import numpy as np

import heed

model = heed.load("starter")
random = np.random.default_rng(7)
half = random.integers(0, model.cfg.d_vocab - 1, 60)
tokens = np.concatenate([half, half])

scores = heed.heads(model, tokens)["induction"]  # (L, H)
control = heed.heads(model, random.permutation(tokens))["induction"]
by_pattern = heed.detect_head(model, tokens, "induction_head")
layer, head = np.unravel_index(scores.argmax(), scores.shape)
uniform = np.mean([1 / (position + 1) for position in range(60, 120)])
print(f"strongest: L{layer}H{head}, {scores[layer, head]:.1%} of its attention; uniform attention "
      f"would give {uniform:.1%}, and on shuffled tokens it gives {control[layer, head]:.1%}")
print("an induction head" if scores[layer, head] > 3 * max(uniform, control[layer, head]) else
      "no more than chance: this small model of short stories has no induction head")
print(f"share over the whole pattern: {by_pattern[layer, head]:.1%}")

# Repetition helps prediction if there are such heads: the loss of each half.
losses = model.loss(tokens, per_token=True)[0]
print(f"loss of the first half {losses[:59].mean():.2f}, of the second {losses[60:].mean():.2f}")
