"""Three moles: one token with three senses. At which layer do its vectors tell the senses apart?"""

import numpy as np

import heed

model = heed.load("starter")
mole = model.to_single_token(" mole")
# Stories of the microworld come with the sense of each word.
examples = []
for index in range(4000):
    story = heed.microworld.story(11, index)
    for sense in story.get("senses", []):
        if sense["word"] == "mole" and len(examples) < 240:
            examples.append((sense["sense"], story["text"].encode()[:sense["end"]].decode()))
senses = sorted({sense for sense, _ in examples})
assert len(senses) == 3, senses
labels = np.array([senses.index(sense) for sense, _ in examples])
shuffled = np.random.default_rng(1).permutation(labels)

vectors = []
for _, text in examples:
    _, cache = model.run_with_cache(text, "resid_post", return_type=None)
    vectors.append([cache["resid_post", layer][0, -1] for layer in range(model.cfg.n_layers)])
vectors = np.array(vectors)  # (examples, L, C)
train = np.arange(len(labels)) % 2 == 0


def accuracy(rows, labels):
    """Of the nearest mean of the other half's vectors."""
    means = np.stack([rows[train & (labels == sense)].mean(0) for sense in range(3)])
    nearest = ((rows[~train][:, None] - means) ** 2).sum(-1).argmin(1)
    return (nearest == labels[~train]).mean()


for layer in range(model.cfg.n_layers):
    print(f"after layer {layer}: {accuracy(vectors[:, layer], labels):.0%} of moles sorted by "
          f"sense, with shuffled senses {accuracy(vectors[:, layer], shuffled):.0%}")
