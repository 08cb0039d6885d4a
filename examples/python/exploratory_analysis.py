"""The steps of TransformerLens's demos, with its names: the difference of two logits by depth and by
head, what patching brings back, and the estimate of all patches from two passes."""

import numpy as np

import heed
from heed import patching

model = heed.load("starter")
prompts = ["Late one evening, a fluffy blue hare", "Late one evening, a fluffy brown hare"]
tokens = model.to_tokens(prompts)
answers = np.array([[model.to_single_token(" deep"), model.to_single_token(" soft")]] * 2)
logits, cache = model.run_with_cache(tokens)


def logit_diff(logits):
    """Of the first prompt: how much likelier deep, as the sea is, is than soft."""
    return logits[0, -1, answers[0, 0]] - logits[0, -1, answers[0, 1]]


clean, corrupted = logit_diff(logits), logit_diff(logits[1:])
print(f"blue: {clean:.2f}, brown: {corrupted:.2f}")
assert clean > corrupted + 1

# 1. along the stream
directions = model.tokens_to_residual_directions(answers)          # (2, 2, C)
direction = directions[0, 0] - directions[0, 1]
accumulated, labels = cache.accumulated_resid(layer=-1, incl_mid=True, pos_slice=-1,
                                              return_labels=True)
scaled = cache.apply_ln_to_stack(accumulated, layer=-1, pos_slice=-1)
gain, bias = model.weight("ln_final.w"), model.weight("ln_final.b")
along = scaled[:, 0] @ (gain * direction) + bias @ direction
print("along the stream:", " ".join(f"{label} {value:.2f}" for label, value in zip(labels, along)))
assert abs(along[-1] - clean) < 1e-3

# 2. head by head, and through whom they compose
heads, names = cache.stack_head_results(pos_slice=-1, return_labels=True, apply_ln=True)
by_head = heads[:, 0] @ (gain * direction)
largest = np.argsort(-np.abs(by_head))[:3]
print("heads:", ", ".join(f"{names[i]} {by_head[i]:.2f}" for i in largest))
scores = model.all_composition_scores("V")
print(f"values compose at most {scores.max():.2f}, {scores[scores > 0].mean():.2f} on average")

# 3. patching: 0 as with brown, 1 as with blue
clean_cache = model.run_with_cache(tokens[:1])[1]


def metric(logits):
    return (logit_diff(logits) - corrupted) / (clean - corrupted)


exact = patching.get_act_patch_resid_pre(model, tokens[1:], clean_cache, metric)
layer, position = np.unravel_index(exact[1:].argmax(), exact[1:].shape)
print(f"before layer {layer + 1}, position {position}: {exact[layer + 1, position]:.2f}")
assert exact.max() > 0.9

# 4. the same, estimated
weights = np.zeros_like(logits[:1])
weights[0, -1, answers[0]] = np.array([1, -1]) / (clean - corrupted)
estimate = patching.sweep(model, tokens[:1], tokens[1:], "resid_pre", method="attribution",
                          metric=lambda logits: (metric(logits), weights)).values
print(f"estimated: correlation {np.corrcoef(estimate.ravel(), exact.ravel())[0, 1]:.2f}")
