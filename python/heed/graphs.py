"""Attribution graphs: which tokens and neurons a prediction is made of, and of what these are.

    graph = heed.graphs.attribution_graph(model, "The fox waited in the forest, and the hare saw the")
    graph.paths(3)                                   # the strongest ways from a token to the word
    graph.effects(10)                                # what switching off the strongest neurons does
    graph.save("graph.json")                         # for the viewers of circuit-tracer

A node is a token at its position, a neuron at a position, or a logit. An edge is the value of its
source times the gradient of what its target reads, along all ways on which no other neuron lies, with
attention patterns and the deviations of norms held: the edges into a node and the part of biases add
up to what it reads, exactly (Ameisen et al. 2025, with the model's own neurons in the place of
transcoders, so that no error is left over; Dunefsky, Chlenski and Nanda 2024).
"""

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _files
from .errors import InvalidArgument, NotFound, Unsupported

# Bytes of all edges into the expanded nodes.
_MAX_BYTES = 1 << 30
# Nodes whose edges one pass computes, at most, and the positions of all of them.
_MAX_TOGETHER, _MAX_ROWS = 64, 4096


class Node(NamedTuple):
    """``kind`` "token", "neuron" or "logit"; ``number``: the token's id, or the neuron of ``layer``.

    ``value``: what the node sends: the neuron after its activation, of a token 1. ``read``: what it
    reads: the neuron before its activation, the logit less the mean of all logits. ``bias``: the
    part of it that biases make.
    """

    kind: str
    layer: int  # -1 of a token, the number of layers of a logit
    position: int
    number: int
    text: str
    value: float
    read: float
    bias: float
    influence: float  # on the logits, of all that their edges carry

    def __str__(self):
        return {"token": f"{self.text!r}@{self.position}",
                "neuron": f"L{self.layer}N{self.number}@{self.position}",
                "logit": f"-> {self.text!r}"}[self.kind]


class Path(NamedTuple):
    """A way from a token to a logit. ``share``: the product of the shares that its edges have of all
    edges into their targets."""

    nodes: List[Node]
    weights: List[float]  # of its edges
    share: float

    def __str__(self):
        return " -> ".join(str(node) for node in self.nodes[:-1]) + f" {self.nodes[-1]}"


class _Pass:
    """The model on the text, and edges into nodes of it."""

    def __init__(self, model, text):
        model._refuse_translator("attribution graphs")
        cfg = model.cfg
        if cfg.gated_mlp or cfg.norm_placement != "pre":
            raise Unsupported(f"attribution graphs of '{cfg.model_name}': expected neurons without a "
                              "gate, and norms before attention and feed-forward")
        self.model, self.cfg = model, cfg
        self.tokens = model._tokens(text)
        if isinstance(self.tokens, list) or len(self.tokens) != 1:
            raise InvalidArgument("an attribution graph is of one text")
        self.positions = self.tokens.shape[1]
        logits, cache = model.run_with_cache(self.tokens, ["resid_pre0", "post", "pre"])
        self.logits = np.float64(logits[0, -1])
        self.embedding = np.array(cache["resid_pre0"][0])  # (T, C)
        self.post = np.stack([cache["post", layer][0] for layer in range(cfg.n_layers)])  # (L, T, F)
        self.pre = np.stack([cache["pre", layer][0] for layer in range(cfg.n_layers)])
        self.sources = self.positions + self.post.size  # tokens, then neurons (L, T, F)

    def weight(self, name) -> Optional[np.ndarray]:
        try:
            return self.model.weight(name)
        except (NotFound, Unsupported):  # a bias that the model lacks
            return None

    def of_head_values(self, layer) -> np.ndarray:
        """(G, D): what biases make of the values of a layer."""
        cfg = self.cfg
        found = np.zeros((cfg.n_key_value_heads, cfg.d_head), np.float64)
        norm, bias = self.weight(f"blocks.{layer}.ln1.b"), self.weight(f"blocks.{layer}.attn.b_V")
        if norm is not None:
            found += np.einsum("c,gcd->gd", norm, self.model.weight(f"blocks.{layer}.attn.W_V"))
        return found if bias is None else found + bias

    def neuron_bias(self, layer, neuron) -> float:
        norm, bias = self.weight(f"blocks.{layer}.ln2.b"), self.weight(f"blocks.{layer}.mlp.b_in")
        found = 0.0 if bias is None else float(bias[neuron])
        if norm is not None:
            into = self.model.weight(f"blocks.{layer}.mlp.W_in")[:, neuron]
            found += float(norm.astype(np.float64) @ into)
        return found

    def logit_bias(self, token) -> float:
        """Less the mean of all."""
        norm, bias = self.weight("ln_final.b"), self.weight("unembed.b_U")
        found = 0.0 if bias is None else float(bias[token] - np.mean(bias, dtype=np.float64))
        if norm is not None:
            unembedding = self.model.W_U
            found += float(np.float64(norm) @ (unembedding[:, token] - unembedding.mean(1)))
        return found

    def edges(self, targets) -> Tuple[np.ndarray, np.ndarray]:
        """(targets, sources) float32, and the part of biases (targets), of ("logit", token) or
        ("neuron", layer, position, neuron)."""
        cfg, count = self.cfg, len(targets)
        has_logits = any(target[0] == "logit" for target in targets)
        layers = cfg.n_layers if has_logits else 1 + max(target[1] for target in targets)
        shape = (count, self.positions, cfg.d_mlp)
        wanted: Dict[str, np.ndarray] = {}
        bias = np.zeros(count)
        for row, target in enumerate(targets):
            if target[0] == "logit":
                weights = wanted.setdefault("logits", np.zeros(
                    (count, self.positions, cfg.d_vocab), np.float32))
                weights[row, -1] = -1 / cfg.d_vocab
                weights[row, -1, target[1]] += 1
                bias[row] += self.logit_bias(target[1])
            else:
                _, layer, position, neuron = target
                weights = wanted.setdefault(f"blocks.{layer}.mlp.hook_pre", np.zeros(shape, np.float32))
                weights[row, position, neuron] = 1
                bias[row] += self.neuron_bias(layer, neuron)
        found = np.zeros((count, self.sources), np.float32)
        neurons = found[:, self.positions:].reshape(count, *self.post.shape)

        def at_neurons(gradient, hook):
            """No way leads through another neuron."""
            neurons[:, hook.layer()] = gradient * self.post[hook.layer()]
            gradient[...] = 0

        names = ["resid_pre0", *(f"blocks.{layer}.{name}" for layer in range(layers)
                                 for name in ("attn.hook_v", "hook_attn_out", "hook_mlp_out"))]
        _, cache = self.model.run_with_cache(
            np.repeat(self.tokens, count, 0), names, incl_bwd=True, logit_target=wanted,
            bwd_hooks=[(f"blocks.{layer}.mlp.hook_post", at_neurons) for layer in range(layers)],
            freeze=["pattern", "scale"], return_type=None,
            stop_at_layer=None if has_logits else layers)
        found[:, :self.positions] = (cache["resid_pre0_grad"] * self.embedding).sum(-1)
        for layer in range(layers):
            bias += np.einsum("btgd,gd->b", cache["v_grad", layer], self.of_head_values(layer))
            for name, part in (("attn_out", "attn.b_O"), ("mlp_out", "mlp.b_out")):
                constant = self.weight(f"blocks.{layer}.{part}")
                if constant is not None:
                    bias += np.einsum("btc,c->b", cache[name + "_grad", layer], constant)
        return found, bias

    def depth(self, target) -> int:
        return self.cfg.n_layers if target[0] == "logit" else target[1]

    def number(self, target) -> int:
        """Of a neuron among the sources."""
        _, layer, position, neuron = target
        return self.positions + int(np.ravel_multi_index((layer, position, neuron), self.post.shape))

    def target(self, number):
        """The neuron of a number."""
        layer, position, neuron = np.unravel_index(number - self.positions, self.post.shape)
        return ("neuron", int(layer), int(position), int(neuron))


def _influence(run, targets, shares, start) -> np.ndarray:
    """(sources): the share of the logits' weights that reaches them over all edges."""
    found = np.zeros(run.sources)
    for row in sorted(range(len(targets)), key=lambda row: -run.depth(targets[row])):
        weight = start[row] if targets[row][0] == "logit" else found[run.number(targets[row])]
        found += weight * shares[row]
    return found


class AttributionGraph:
    """``nodes``: tokens, neurons layer by layer, logits. ``edges`` (nodes, nodes): row by target,
    column by source. ``left_out``: the share of the logits' edges that ends in neurons that are no
    nodes, ``of_biases`` that in biases."""

    def __init__(self, model, text, tokens, nodes, edges, left_out, of_biases):
        self._model = model
        self.text: str = text
        self.tokens: np.ndarray = tokens
        self.nodes: List[Node] = nodes
        self.edges: np.ndarray = edges
        self.left_out: float = left_out
        self.of_biases: float = of_biases

    def of_kind(self, kind: str) -> List[int]:
        """The numbers of nodes of a kind."""
        return [i for i, node in enumerate(self.nodes) if node.kind == kind]

    def token_influence(self) -> np.ndarray:
        """(T): of each token that is a node, over all ways in the graph."""
        return np.array([self.nodes[i].influence for i in self.of_kind("token")])

    def _shares(self) -> np.ndarray:
        sizes = np.abs(self.edges)
        totals = sizes.sum(1) + np.abs([node.bias for node in self.nodes])
        return sizes / np.maximum(totals, 1e-30)[:, None]

    def paths(self, count: int = 3, logit: Optional[int] = None) -> List[Path]:
        """The strongest ways to a logit [the likeliest], one from each token at most."""
        logits = self.of_kind("logit")
        end = logits[0] if logit is None else logit
        if end not in logits:
            raise InvalidArgument(f"node {logit} is no logit of the graph: these are {logits}")
        shares = self._shares()
        best = np.zeros(len(self.nodes))
        following = np.full(len(self.nodes), -1)
        best[end] = 1
        for target in sorted(range(len(self.nodes)), key=lambda i: -self.nodes[i].layer):
            reached = best[target] * shares[target]
            better = reached > best
            best[better], following[better] = reached[better], target
        paths = []
        for token in sorted(self.of_kind("token"), key=lambda i: -best[i])[:count]:
            way = [token]
            while following[way[-1]] >= 0:
                way.append(int(following[way[-1]]))
            if best[token] > 0:
                paths.append(Path([self.nodes[i] for i in way],
                                  [float(self.edges[b, a]) for a, b in zip(way, way[1:])],
                                  float(best[token])))
        return paths

    def effects(self, count: int = 10) -> List[Tuple[Node, float]]:
        """What the likeliest logit of the graph, less the mean of all, gains where a neuron is
        switched off, for the neurons of the largest influence: of the model itself, with nothing
        held."""
        neurons = sorted(self.of_kind("neuron"), key=lambda i: -self.nodes[i].influence)[:count]
        word = self.nodes[self.of_kind("logit")[0]].number

        def value(hooks=()):
            logits = np.float64(self._model.run_with_hooks(self.tokens, hooks)[0, -1])
            return logits[word] - logits.mean()

        whole, found = value(), []
        for i in neurons:
            node = self.nodes[i]

            def off(values, hook, node=node):
                values[:, node.position, node.number] = 0

            found.append((node, value([(f"blocks.{node.layer}.mlp.hook_post", off)]) - whole))
        return found

    def pruned(self, share: float = 0.8, edge_share: float = 0.98,
               min_token_share: float = 0.0) -> "AttributionGraph":
        """The neurons that carry so much of the influence of all neurons, the strongest first, the
        edges that carry so much of what edges carry, and the tokens that carry at least
        ``min_token_share`` of the influence of all tokens [all tokens]; logits stay."""
        for value, what in ((share, "share"), (edge_share, "edge_share")):
            if not 0 < value <= 1:
                raise InvalidArgument(f"{what} is {value}, expected more than 0 and at most 1")
        if not 0 <= min_token_share < 1:
            raise InvalidArgument(f"min_token_share is {min_token_share}, expected 0 to less than 1")
        neurons = sorted(self.of_kind("neuron"), key=lambda i: -self.nodes[i].influence)
        kept = set(range(len(self.nodes))) - set(neurons)
        of_tokens = self.token_influence()
        kept -= {i for i, influence in zip(self.of_kind("token"), of_tokens)
                 if influence < min_token_share * of_tokens.sum()}
        total, reached = sum(self.nodes[i].influence for i in neurons), 0.0
        for i in neurons:
            if reached >= share * total:
                break
            kept.add(i)
            reached += self.nodes[i].influence
        order = sorted(kept)
        edges = self.edges[np.ix_(order, order)].copy()
        carried = self._shares()[np.ix_(order, order)] * np.array(
            [1.0 if self.nodes[i].kind == "logit" else self.nodes[i].influence for i in order])[:, None]
        flat = np.sort(carried.reshape(-1))[::-1]
        enough = int(np.searchsorted(np.cumsum(flat), edge_share * flat.sum()))
        edges[carried < flat[min(enough, len(flat) - 1)]] = 0
        return AttributionGraph(self._model, self.text, self.tokens, [self.nodes[i] for i in order],
                                edges, self.left_out, self.of_biases)

    # Files

    def to_json(self) -> Dict[str, Any]:
        """As circuit-tracer's and Neuronpedia's viewers read graphs; neurons are their features."""
        layers = self._model.cfg.n_layers
        nodes: List[Dict[str, Any]] = []
        names: List[str] = []
        for node in self.nodes:
            if node.kind == "token":
                name, layer, kind = f"E_{node.number}_{node.position}", "E", "embedding"
                feature = node.position
            elif node.kind == "neuron":
                name = f"{node.layer}_{node.number}_{node.position}"
                layer, kind = str(node.layer), "cross layer transcoder"
                total = node.layer + node.number
                feature = total * (total + 1) // 2 + node.number
            else:
                name, layer, kind = f"{layers + 1}_{node.number}_{node.position}", str(layers + 1), "logit"
                feature = node.number
            clerp = {"token": node.text, "neuron": str(node),
                     "logit": f'Output "{node.text}" (p={node.value:.3f})'}[node.kind]
            names.append(name)
            nodes.append({
                "node_id": name, "feature": feature, "layer": layer, "ctx_idx": node.position,
                "feature_type": kind, "token_prob": node.value if node.kind == "logit" else 0.0,
                "is_target_logit": node.kind == "logit" and not any(
                    other["is_target_logit"] for other in nodes),
                "run_idx": 0, "reverse_ctx_idx": 0, "jsNodeId": name, "clerp": clerp,
                "influence": node.influence,
                "activation": node.value if node.kind == "neuron" else None})
        links = [{"source": names[source], "target": names[target],
                  "weight": float(self.edges[target, source])}
                 for target, source in np.argwhere(self.edges)]
        pieces = self._model.to_str_tokens(self.tokens)
        return {"metadata": {"slug": "heed", "scan": self._model.name, "transcoder_list": [],
                             "prompt_tokens": pieces, "prompt": self.text or "".join(pieces),
                             "node_threshold": None, "schema_version": 1},
                "qParams": {"pinnedIds": [], "supernodes": [], "linkType": "both", "clickedId": "",
                            "sg_pos": ""},
                "nodes": nodes, "links": links}

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes :meth:`to_json`. An existing file is replaced once it is complete."""
        with _files.replaced(path, "w", encoding="utf-8") as file:
            json.dump(self.to_json(), file)

    def __repr__(self):
        kinds = {kind: len(self.of_kind(kind)) for kind in ("token", "neuron", "logit")}
        return (f"AttributionGraph of {kinds['token']} tokens, {kinds['neuron']} neurons and "
                f"{kinds['logit']} logits, {np.count_nonzero(self.edges)} edges")


def _wanted_logits(run, logits) -> List[Tuple[int, float]]:
    """(token, probability): those that are named, or the likeliest."""
    probabilities = np.exp(run.logits - run.logits.max())
    probabilities /= probabilities.sum()
    if logits is not None:
        named = [logits] if isinstance(logits, (str, int, np.integer)) else list(logits)
        ids = [run.model.to_single_token(one) if isinstance(one, str) else int(one) for one in named]
        if not ids or min(ids) < 0 or max(ids) >= len(probabilities) or len(set(ids)) != len(ids):
            raise InvalidArgument(f"logits are {logits!r}, expected different tokens")
        return [(token, float(probabilities[token])) for token in ids]
    order = np.argsort(-probabilities, kind="stable")[:10]
    reached = np.cumsum(probabilities[order])
    return [(int(token), float(probabilities[token]))
            for token in order[:1 + int(np.searchsorted(reached, 0.95))]]


def attribution_graph(model, text, logits: Union[None, str, int, Sequence[Union[str, int]]] = None,
                      max_neurons: int = 256) -> AttributionGraph:
    """The graph of the word after a text. ``logits``: tokens whose logits it explains [the likeliest,
    up to ten, that have 95 % together]. ``max_neurons``: how many neurons become nodes; those of the
    largest influence on the logits are taken, again and again by what is known until then.

    Memory: 4 bytes for each neuron, position and layer, for each node; refused above 1 GiB. One
    forward and backward pass for each 64 nodes.
    """
    if int(max_neurons) < 1:
        raise InvalidArgument(f"max_neurons is {max_neurons}, expected at least 1")
    run = _Pass(model, text)
    chosen = _wanted_logits(run, logits)
    needed = 4 * run.sources * (int(max_neurons) + len(chosen))
    if needed > _MAX_BYTES:
        raise InvalidArgument(f"the edges of {max_neurons} neurons of {run.positions} tokens take "
                              f"{needed / 2**20:.0f} MiB, expected at most {_MAX_BYTES >> 20}: a "
                              "shorter text, or a smaller max_neurons")
    weights = np.array([probability for _, probability in chosen])
    weights /= weights.sum()
    together = max(1, min(_MAX_TOGETHER, _MAX_ROWS // run.positions))
    targets: List[Tuple] = []
    rows, biases = [], []

    def expand(more):
        for begin in range(0, len(more), together):
            found, bias = run.edges(more[begin:begin + together])
            rows.append(found)
            biases.append(bias)
        targets.extend(more)

    def shares_of(edges, bias):
        sizes = np.abs(edges)
        return sizes / (sizes.sum(1, dtype=np.float64) + np.abs(bias))[:, None]

    expand([("logit", token) for token, _ in chosen])
    expanded = np.zeros(run.sources, bool)
    expanded[:run.positions] = True
    shares = [shares_of(rows[0], biases[0])]
    while len(targets) - len(chosen) < int(max_neurons):
        influence = _influence(run, targets, np.concatenate(shares), weights)
        influence[expanded] = 0
        count = min(_MAX_TOGETHER, int(max_neurons) - (len(targets) - len(chosen)))
        best = np.argsort(-influence, kind="stable")[:count]
        best = best[influence[best] > 0]
        if len(best) == 0:
            break
        expanded[best] = True
        before = len(rows)
        expand([run.target(int(number)) for number in best])
        shares += [shares_of(*each) for each in zip(rows[before:], biases[before:])]
    return _graph(run, text, targets, np.concatenate(rows), np.concatenate(biases),
                  (np.concatenate(shares), weights, chosen))


def _graph(run, text, targets, rows, biases, known) -> AttributionGraph:
    """Tokens, neurons layer by layer, logits, of what was expanded."""
    shares, weights, chosen = known
    influence = _influence(run, targets, shares, weights)
    pieces = run.model.to_str_tokens(run.tokens)
    # What of the logits ends in neurons that are no nodes, and in biases.
    is_node = np.zeros(run.sources, bool)
    is_node[:run.positions] = True
    neurons = sorted((row for row in range(len(targets)) if targets[row][0] == "neuron"),
                     key=lambda row: targets[row][1:])
    columns = [run.number(targets[row]) for row in neurons]
    is_node[columns] = True
    of_logits = {row: weights[row] for row in range(len(chosen))}
    of_biases = sum(of_logits.get(row, influence[run.number(targets[row])] if row >= len(chosen) else 0)
                    * (1 - shares[row].sum()) for row in range(len(targets)))
    nodes = [Node("token", -1, position, int(run.tokens[0, position]), pieces[position], 1.0, 1.0, 0.0,
                  float(influence[position])) for position in range(run.positions)]
    for row in neurons:
        _, layer, position, neuron = targets[row]
        nodes.append(Node("neuron", layer, position, neuron, pieces[position],
                          float(run.post[layer, position, neuron]),
                          float(run.pre[layer, position, neuron]), float(biases[row]),
                          float(influence[run.number(targets[row])])))
    mean = run.logits.mean()
    for row, (token, probability) in enumerate(chosen):
        nodes.append(Node("logit", run.cfg.n_layers, run.positions - 1, token,
                          run.model.to_single_str_token(token), probability,
                          float(run.logits[token] - mean), float(biases[row]), float(weights[row])))
    order = np.array(list(range(run.positions)) + columns)
    edges = np.zeros((len(nodes), len(nodes)))
    at = run.positions
    for row in [*neurons, *range(len(chosen))]:
        edges[at, :len(order)] = rows[row][order]
        at += 1
    return AttributionGraph(run.model, text if isinstance(text, str) else "", run.tokens, nodes, edges,
                            float(influence[~is_node].sum()), float(of_biases))
