"""Steering: adding the difference of two texts' activations moves what the model writes
(Turner et al. 2023). Measured as the probability of words, beside a random vector of one length."""

import numpy as np

import heed
from heed.interventions import add, apply, steer

model = heed.load("starter")
prompt = "Late one evening, a fluffy"
blue, black = model.to_single_token(" blue"), model.to_single_token(" black")


def odds(logits):
    return float(logits[0, -1, blue] - logits[0, -1, black])


plain = odds(model(prompt))
edited = apply(model, steer("resid_post2", 4.0, " blue", " black"))
steered = odds(edited(prompt))

# The same vector by hand, and a random one as long.
vector = [model.run_with_cache(text, "resid_post2")[1]["resid_post", 2][0].mean(0)
          for text in (" blue", " black")]
vector = 4.0 * (vector[0] - vector[1])
by_hand = odds(apply(model, add("resid_post2", vector))(prompt))
noise = np.random.default_rng(3).normal(size=vector.shape)
noise *= np.linalg.norm(vector) / np.linalg.norm(noise)
random = odds(apply(model, add("resid_post2", noise))(prompt))

print(f"log odds of blue over black: {plain:+.2f}; steered {steered:+.2f} (by hand {by_hand:+.2f}); "
      f"a random vector of that length {random:+.2f}")
assert abs(steered - by_hand) < 1e-3
print("steered:", edited.generate(prompt, 16, temperature=0))
