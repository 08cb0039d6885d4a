"""A probe: can the position of a token be read off the stream by a linear map? Trained on one half
of the texts, tested on the other, beside shuffled positions."""

import numpy as np

import heed

model = heed.load("starter")
texts = [heed.microworld.story(3, index)["text"] for index in range(60)]


streams = []  # of each text, (L, T, C)
for text in texts:
    _, cache = model.run_with_cache(model.to_tokens(text)[:, :64], "resid_post", return_type=None)
    streams.append([cache["resid_post", layer][0] for layer in range(model.cfg.n_layers)])
positions = [np.arange(len(stream[0])) for stream in streams]


def explained(rows, positions):
    """Share of the variance of positions that ridge regression explains on held-out texts."""
    half = len(rows) // 2
    x, y = np.concatenate(rows[:half]).astype(np.float64), np.concatenate(positions[:half])
    mean, target = x.mean(0), y.mean()
    weights = np.linalg.solve((x - mean).T @ (x - mean) + np.eye(x.shape[1]),
                              (x - mean).T @ (y - target))
    x, y = np.concatenate(rows[half:]).astype(np.float64), np.concatenate(positions[half:])
    residual = y - ((x - mean) @ weights + target)
    return 1 - residual.var() / y.var()


random = np.random.default_rng(0)
shuffled = [random.permutation(each) for each in positions]
for layer in range(model.cfg.n_layers):
    rows = [stream[layer] for stream in streams]
    print(f"layer {layer}: {explained(rows, positions):.1%} of the variance of positions, "
          f"shuffled {explained(rows, shuffled):.1%}")
