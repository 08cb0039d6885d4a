"""Which edges between heads and feed-forward layers a word needs, and what it is made of."""

import numpy as np

import heed

model = heed.load("starter")
clean, corrupted = "Late one evening, a fluffy blue hare", "Late one evening, a fluffy brown hare"
deep, soft = model.to_single_token(" deep"), model.to_single_token(" soft")


def metric(logits):
    """The difference of two logits, and its gradient."""
    gradient = np.zeros_like(logits)
    gradient[:, -1, deep], gradient[:, -1, soft] = 1, -1
    return (gradient * logits).sum(), gradient


# 1. edge attribution patching, beside exact patching of the same edges
scores = heed.circuits.edge_attribution(model, clean, corrupted, metric, steps=5)
print(f"{len(scores)} edges: {scores.clean:.2f} with blue, {scores.corrupted:.2f} with brown")
edges = scores.largest(5)
exact = heed.circuits.edge_patching(model, clean, corrupted, metric, edges)
for edge, score, change in zip(edges, scores.top(5), exact):
    print(f"  {edge[0]} -> {edge[1]}: estimated {score.score:.2f}, exactly {change:.2f}")

# 2. how many edges it takes, the others carrying what they carry with brown
for count, share in heed.circuits.faithfulness(model, clean, corrupted, metric, scores,
                                               [0, 20, 100, 400, len(scores)]).items():
    print(f"  {count} edges keep {100 * share:.0f} %")

# 3. what the word is made of
graph = heed.graphs.attribution_graph(model, clean, logits=" deep", max_neurons=128)
for path in graph.paths(3):
    print(f"  {path}: {100 * path.share:.1f} %")
first = int(graph.token_influence()[:-1].argmax())
assert graph.nodes[first].text == " blue"
for node, change in graph.effects(3):
    print(f"  without {node}: {change:+.2f}")
