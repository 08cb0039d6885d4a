"""Attribution: which components, heads and words make a logit? The parts sum to it."""

import numpy as np

import heed

model = heed.load("starter")
text = "Late one evening, a fluffy blue hare"
answer = " deep"

parts = heed.attribute_logit(model, text, answer)
logit = float(model(text)[0, -1, model.to_single_token(answer)])
print(f"logit of {answer!r}: {logit:.3f}; the sum of {len(parts.names)} components: "
      f"{parts.values.sum():.3f}")
print("largest components:", parts.largest(4))
print("largest heads:", heed.attribute_logit(model, text, answer, unit="head").largest(4))

# The same from a cache, part by part.
_, cache = model.run_with_cache(text)
stack, labels = cache.decompose_resid(pos_slice=-1, return_labels=True)
shares = cache.logit_attrs(stack, answer, pos_slice=-1)[:, 0]
by_name = dict(zip(parts.names, parts.values))
assert all(abs(by_name[name] - share) < 1e-3 for name, share in zip(labels, shares))

words = heed.attribute_tokens(model, text, answer)
print("integrated gradients:", [(piece, round(float(value), 2)) for piece, value in
                                zip(words.pieces, words.values)])
assert abs(words.values.sum() - (words.logit - words.baseline)) < 0.05 * np.ptp(
    [words.logit, words.baseline, 1.0])
