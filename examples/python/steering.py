"""Steering: adding the difference of two texts' activations moves what the model writes
(Turner et al. 2023). Measured as the probability of words, beside a random vector of one length."""

import numpy as np

import heed
from heed.interventions import add, apply

model = heed.load("starter")
prompt = "Once upon a time, a fluffy black bear"
deep, dark = model.to_single_token(" deep"), model.to_single_token(" dark")
LAYER = 4


def odds(logits):
    return float(logits[0, -1, deep] - logits[0, -1, dark])


def vector_of(text):
    """The stream at the last token."""
    return model.run_with_cache(text, f"resid_post{LAYER}")[1]["resid_post", LAYER][0, -1]


# What " blue" rather than " black" leaves at a later noun, in other sentences.
pairs = [(f"Late one evening, a fluffy {{}} {noun}") for noun in ("hare", "fox", "wolf")]
vector = np.mean([vector_of(text.format("blue")) - vector_of(text.format("black"))
                  for text in pairs], 0)
noise = np.random.default_rng(3).normal(size=vector.shape)
noise *= np.linalg.norm(vector) / np.linalg.norm(noise)

last = len(model.to_tokens(prompt)[0]) - 1
plain = odds(model(prompt))
steered = odds(apply(model, add(f"resid_post{LAYER}@{last}", vector))(prompt))
random = odds(apply(model, add(f"resid_post{LAYER}@{last}", noise))(prompt))
print(f"log odds of ' deep' over ' dark' after {prompt!r}: {plain:+.2f}; steered {steered:+.2f}; "
      f"with a random vector of that length {random:+.2f}")

# The same as a hook.
by_hook = odds(model.run_with_hooks(prompt, [
    (f"resid_post{LAYER}", lambda stream, hook: stream.__setitem__((0, -1), stream[0, -1] + vector))]))
assert abs(by_hook - steered) < 1e-3
edited = apply(model, add(f"resid_post{LAYER}@{last}", vector))
print("steered:", edited.generate(prompt, 12, temperature=0))
print("plain:  ", model.generate(prompt, 12, temperature=0).finish().text)
