"""A model of LLaMA's kind: rotary positions, RMS norms, gated neurons. Its points have the names of
all others, and the same functions read them."""

import pathlib
import tempfile

import numpy as np

import heed
from random_checkpoint import write_llama

with tempfile.TemporaryDirectory() as folder:
    write_llama(pathlib.Path(folder), layers=2, channels=64, heads=4, vocabulary=512, context=128)
    model = heed.load(folder)
print(model.cfg)
tokens = np.random.default_rng(0).integers(0, 512, (2, 40))
logits, cache = model.run_with_cache(tokens)
print(f"logits {logits.shape}, {len(cache)} activations")

# Scores are of rotated queries and keys: rotation keeps lengths.
plain, rotated = cache["q", 1], cache["rot_q", 1]
assert np.allclose(np.linalg.norm(plain, axis=-1), np.linalg.norm(rotated, axis=-1), rtol=1e-4)
scores = np.einsum("bthd,bshd->bhts", rotated, cache["rot_k", 1]) / np.sqrt(model.cfg.d_head)
visible = np.tril(np.ones(scores.shape[-2:], bool))
assert np.allclose(scores[..., visible], np.array(cache["attn_scores", 1])[..., visible], atol=1e-4)

# Neurons: a gate's activation times what it multiplies.
gate, linear = cache["pre", 0], cache["pre_linear", 0]
assert np.allclose(gate / (1 + np.exp(-gate)) * linear, cache["post", 0], atol=1e-4)
print("scores, rotations and neurons are what their definitions say")
