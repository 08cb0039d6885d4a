"""Attribution graphs: which tokens and neurons a prediction is made of, and of what these are.

    graph = heed.graphs.attribution_graph(model, "The fox waited in the forest, and the hare saw the")
    graph.paths(3)                                   # the strongest ways from a token to the word
    graph.effects(10)                                # what switching off the strongest neurons does
    graph.save("graph.json")                         # for the viewers of circuit-tracer
    heed.graphs.causes(model, "Late one evening, a fluffy blue hare")   # measured, beside controls
    heed.graphs.attribution_graph(model, text, transcoders=heed.sae.load_all("starter"))

A node is a token at its position, a neuron at a position, or a logit. With transcoders, one for each
layer, their features take the place of neurons, and what they leave out of a layer at a position is
a node as well, an error. An edge is the value of its source times the gradient of what its target
reads, along all ways on which no other neuron or feature lies, with attention patterns and the
deviations of norms held: the edges into a node and the part of biases add up to what it reads,
exactly (Ameisen et al. 2025; Dunefsky, Chlenski and Nanda 2024).
"""

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _files, _heed
from .errors import InvalidArgument
from .sae import SAE


class Node(NamedTuple):
    """``kind`` "token", "neuron", "feature", "error" or "logit"; ``number``: the token's id, or the
    neuron or feature of ``layer``; of an error -1.

    ``value``: what the node sends: the neuron or feature after its activation, of a token or error 1;
    of a logit its probability. ``read``: what it reads: the neuron or feature before its activation,
    the logit less its baseline. ``bias``: the part of it that biases make.
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
                "feature": f"L{self.layer}F{self.number}@{self.position}",
                "error": f"L{self.layer} error@{self.position}",
                "logit": f"-> {self.text!r}"}[self.kind]


class Path(NamedTuple):
    """A way from a token to a logit. ``share``: the product of the shares that its edges have of the graph's
    edges into their targets."""

    nodes: List[Node]
    weights: List[float]  # of its edges
    share: float

    def __str__(self):
        return " -> ".join(str(node) for node in self.nodes[:-1]) + f" {self.nodes[-1]}"


class Edges(NamedTuple):
    """Into nodes: ``edges`` (targets, T + L * T * F) from tokens, then neurons; with transcoders
    (targets, T + A + L * T) from tokens, the A active features, then errors layer by layer;
    ``biases`` (targets); ``reads`` (targets), which both add up to; ``features``: (layer, position,
    feature) of each active one."""

    edges: np.ndarray
    biases: np.ndarray
    reads: np.ndarray
    features: List[Tuple[int, int, int]]


class Estimate(NamedTuple):
    """Of a graph before it is computed."""

    bytes: int
    seconds: float


class Cause(NamedTuple):
    """A path from a token to the word by neurons, or features, of one block at one position, and what
    is left of the word's probability without them. ``controls``: the probability where the same
    activations of other units of the block, drawn, are taken away, of features at the same length;
    ``control``: the one of these that moves it most. ``is_cause``: whether switching the units off
    takes more than any control moves, and at least 0.005."""

    token: int  # its position
    text: str
    layer: int
    position: int
    units: List[int]  # neurons, or features
    activations: List[float]  # of the units
    share: float
    without: float
    instead: str  # the likeliest word then
    instead_probability: float
    controls: List[float]
    control: float
    is_cause: bool


class Causes(NamedTuple):
    word: str
    probability: float
    paths: List[Cause]


class AttributionGraph:
    """``nodes``: tokens, errors and neurons or features layer by layer, logits. ``edges`` (nodes,
    nodes): row by target, column by source. ``left_out``: the share of the logits' edges that ends in
    neurons or features that are no nodes, ``of_biases`` that in biases, ``of_errors`` that in what
    transcoders leave out."""

    def __init__(self, model, text: str, graph):
        self._model, self._graph = model, graph
        self.text = text
        self.tokens: np.ndarray = np.array([graph.tokens], np.int32)
        pieces = model.to_str_tokens(self.tokens)
        self.nodes: List[Node] = [
            Node(kind, layer, position, number,
                 model.to_single_str_token(number) if kind == "logit" else pieces[position], *values)
            for kind, layer, position, number, *values in graph.nodes]
        self.edges: np.ndarray = graph.edges
        self.left_out: float = graph.left_out
        self.of_biases: float = graph.of_biases

    def of_kind(self, kind: str) -> List[int]:
        """The numbers of nodes of a kind."""
        return [i for i, node in enumerate(self.nodes) if node.kind == kind]

    @property
    def of_errors(self) -> float:
        return float(sum(self.nodes[i].influence for i in self.of_kind("error")))

    def token_influence(self) -> np.ndarray:
        """(T): of each token that is a node, over all ways in the graph."""
        return np.array([self.nodes[i].influence for i in self.of_kind("token")])

    def paths(self, count: int = 3, logit: Optional[int] = None) -> List[Path]:
        """The strongest ways to a logit [the likeliest], one from each token at most."""
        found = self._graph.paths(count, -1 if logit is None else logit)
        return [Path([self.nodes[i] for i in nodes], weights, share) for nodes, weights, share in found]

    def effects(self, count: int = 10) -> List[Tuple[Node, float]]:
        """What the likeliest logit of the graph, less the mean of all, gains where a neuron is
        switched off, or what a feature writes is taken away, for those of the largest influence: of
        the model itself, with nothing held."""
        return [(self.nodes[i], change)
                for i, change in self._graph.effects(self._model._hooked, count)]

    def pruned(self, share: float = 0.8, edge_share: float = 0.98,
               min_token_share: float = 0.0) -> "AttributionGraph":
        """The neurons, or features and errors, that carry so much of the influence of all of them,
        the strongest first, the edges that carry so much of what edges carry, and the tokens that
        carry at least ``min_token_share`` of the influence of all tokens [all tokens]; logits
        stay."""
        return AttributionGraph(self._model, self.text,
                                self._graph.pruned(share, edge_share, min_token_share))

    def to_json(self) -> Dict[str, Any]:
        """As circuit-tracer's and Neuronpedia's viewers read graphs; neurons stand as features."""
        return json.loads(self._json())

    def _json(self) -> str:
        return self._graph.json(self._model._hooked, self.text)

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes :meth:`to_json`. An existing file is replaced once it is complete."""
        with _files.replaced(path, "w", encoding="utf-8") as file:
            file.write(self._json())

    def __repr__(self):
        kinds = [f"{len(self.of_kind(kind))} {kind}s"
                 for kind in ("token", "error", "neuron", "feature", "logit") if self.of_kind(kind)]
        return (f"AttributionGraph of {', '.join(kinds[:-1])} and {kinds[-1]}, "
                f"{np.count_nonzero(self.edges)} edges")


def _tokens(model, text) -> np.ndarray:
    model._refuse_translator("attribution graphs")
    tokens = model._tokens(text)
    if isinstance(tokens, list) or len(tokens) != 1:
        raise InvalidArgument("an attribution graph is of one text")
    return tokens


def _ids(model, logits) -> List[int]:
    if logits is None:
        return []
    named = [logits] if isinstance(logits, (str, int, np.integer)) else list(logits)
    if not named:
        raise InvalidArgument("logits are [], expected different tokens")
    return [model.to_single_token(one) if isinstance(one, str) else int(one) for one in named]


def _handles(transcoders):
    for each in transcoders:
        if not isinstance(each, SAE):
            raise InvalidArgument(f"a transcoder is {each!r}, expected one of heed.sae.load_all()")
    return [each._handle for each in transcoders]


def attribution_graph(model, text, logits: Union[None, str, int, Sequence[Union[str, int]]] = None,
                      max_neurons: int = 256, baseline: str = "mean",
                      transcoders: Sequence[SAE] = ()) -> AttributionGraph:
    """The graph of the word after a text. ``logits``: tokens whose logits it explains [the likeliest,
    up to ten, that have 95 % together]. ``max_neurons``: how many neurons, or features, become nodes;
    those of the largest influence on the logits are taken, again and again by what is known until
    then. ``baseline``: what is subtracted from a logit, the "mean" of all, or that of its
    "alternatives", weighted by their probabilities. ``transcoders``: one for each layer, from what
    its feed-forward reads (``ln2.hook_normalized``, ``hook_resid_mid``) to ``hook_mlp_out``, or
    across layers; features are nodes in the place of neurons then, also of models with gated ones.

    Memory: 4 bytes for each neuron, position and layer, or each active feature, for each node;
    refused above 1 GiB, with an estimate of the time. One forward pass, and one backward pass for
    each 64 nodes.
    """
    graph = _heed.attribution_graph(model._hooked, _tokens(model, text), _ids(model, logits),
                                    int(max_neurons), baseline, _handles(transcoders))
    return AttributionGraph(model, text if isinstance(text, str) else "", graph)


def estimate(model, positions: int, logits: int = 0, max_neurons: int = 256,
             transcoders: Sequence[SAE] = ()) -> Estimate:
    """The memory and, by the speed of one short pass, the time that a graph of a text of so many
    tokens takes. ``logits``: how many it explains [the likeliest]. Of transcoders that do not say how
    many features are active (all but TopK) it is a guess, 128 a position."""
    return Estimate(*_heed.estimate_graph(model._hooked, int(positions), int(logits),
                                          int(max_neurons), _handles(transcoders)))


def edges_into(model, text, targets: Sequence[Tuple], baseline: str = "mean",
               transcoders: Sequence[SAE] = ()) -> Edges:
    """The edges into nodes, ("logit", token), and ("neuron", layer, position, neuron) or, with
    transcoders, ("feature", layer, position, feature)."""
    rows = []
    unit = "feature" if transcoders else "neuron"
    for kind, *place in targets:
        if kind not in ("logit", unit) or (kind == unit and place[0] < 0):
            raise InvalidArgument(f"a target is {(kind, *place)}, expected ('logit', token) or "
                                  f"('{unit}', layer, position, {unit}) with a layer from 0 on")
        rows.append((-1, -1, *place) if kind == "logit" else tuple(place))
    edges, biases, reads, features = _heed.edges_into(model._hooked, _tokens(model, text), rows,
                                                      baseline, _handles(transcoders))
    return Edges(edges, np.array(biases), np.array(reads),
                 [(layer, position, number) for layer, position, number in features])


def causes(model, text, paths: int = 3, max_neurons: int = 128, controls: int = 8,
           transcoders: Sequence[SAE] = ()) -> Causes:
    """Why the likeliest word follows a text: the strongest paths to it in the graph that sets it
    against its alternatives, at most one from each token, and what is left of it without each. With
    ``transcoders`` (of starter: ``heed.sae.load_all("starter")``) by features in the place of neurons;
    what these write is taken away, what the transcoders leave out stays."""
    tokens = _tokens(model, text)
    word, probability, _, found = _heed.word_causes(model._hooked, tokens, paths, max_neurons, controls,
                                                      _handles(transcoders))
    pieces = model.to_str_tokens(tokens)
    return Causes(model.to_single_str_token(word), probability, [
        Cause(token, pieces[token], layer, position, units, activations, share, without,
              model.to_single_str_token(instead), *rest)
        for token, layer, position, units, activations, share, without, instead, *rest in found])
