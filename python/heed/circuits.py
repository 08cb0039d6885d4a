"""Edges between the parts of a model: which of them a behaviour needs.

    scores = heed.circuits.edge_attribution(model, clean, corrupted, metric)
    scores.top(10)                                   # [("L1H3", "L4H2.q", -0.81), …]
    kept = scores.largest(200)
    logits = heed.circuits.keep_edges(model, clean, corrupted, kept)
    heed.circuits.faithfulness(model, clean, corrupted, metric, scores, [10, 100, 1000])

A sender is the embedding ("embed", positions included), a head ("L1H3") or a feed-forward layer
("mlp2"): what it adds to the stream. A receiver is what reads the stream: a head's queries, keys or
values ("L4H2.q"; keys and values that heads share are those of the first of them), a feed-forward
layer ("mlp2") or "logits". An edge carries what a sender adds to one receiver alone.

Sources: Syed, Rager and Conmy 2023 (edge attribution patching); Hanna, Pezzelle and Belinkov 2024
(its integrated gradients, and faithfulness); Conmy et al. 2023 (circuits with resampled edges).
"""

from typing import Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

import numpy as np

from .errors import InvalidArgument, Unsupported
from .names import get_act_name

Edge = Tuple[str, str]


class ScoredEdge(NamedTuple):
    sender: str
    receiver: str
    score: float


class _Parts:
    """The senders and receivers of a model, and which of them can be joined."""

    def __init__(self, model):
        model._refuse_translator("edges between parts")
        cfg = model.cfg
        if cfg.parallel_attn_mlp or cfg.norm_placement != "pre":
            raise Unsupported(f"edges of '{cfg.model_name}': its blocks read the stream in parallel or "
                              "norm it afterwards, expected norms before attention and feed-forward")
        self.heads, self.groups = cfg.n_heads, cfg.n_key_value_heads
        self.layers = cfg.n_layers
        self.senders, self._when = ["embed"], [0]  # a sender is there after so many halves of layers
        self.receivers, self._reads = [], []  # after how many of them a receiver reads
        for layer in range(self.layers):
            self.senders += [f"L{layer}H{head}" for head in range(self.heads)]
            self._when += [2 * layer + 1] * self.heads
            self.senders.append(f"mlp{layer}")
            self._when.append(2 * layer + 2)
            for part, count in (("q", self.heads), ("k", self.groups), ("v", self.groups)):
                share = self.heads // count
                self.receivers += [f"L{layer}H{head * share}.{part}" for head in range(count)]
                self._reads += [2 * layer] * count
            self.receivers.append(f"mlp{layer}")
            self._reads.append(2 * layer + 1)
        self.receivers.append("logits")
        self._reads.append(2 * self.layers)
        self.sender_numbers = {name: i for i, name in enumerate(self.senders)}
        self.receiver_numbers = {name: i for i, name in enumerate(self.receivers)}

    @property
    def joined(self) -> np.ndarray:
        """(receivers, senders): whether the sender comes before the receiver."""
        return np.array(self._when)[None] <= np.array(self._reads)[:, None]

    def numbers(self, edges: Iterable[Edge]) -> np.ndarray:
        """The same shape: which edges are named."""
        wanted = np.zeros((len(self.receivers), len(self.senders)), bool)
        for edge in edges:
            sender, receiver = edge[0], edge[1]
            if sender not in self.sender_numbers or receiver not in self.receiver_numbers:
                raise InvalidArgument(f"there is no edge from {sender!r} to {receiver!r}: senders are "
                                      "'embed', 'L0H0' or 'mlp0', receivers 'L0H0.q', 'mlp0' or "
                                      "'logits'")
            wanted[self.receiver_numbers[receiver], self.sender_numbers[sender]] = True
        if (wanted & ~self.joined).any():
            receiver, sender = np.argwhere(wanted & ~self.joined)[0]
            raise InvalidArgument(f"{self.senders[sender]} comes after {self.receivers[receiver]}: "
                                  "there is no edge between them")
        return wanted

    # Where the stream is read: the point, and the receivers of its heads.

    def reading_points(self) -> List[Tuple[str, List[int]]]:
        points = []
        at = 0
        for layer in range(self.layers):
            for part, count in (("q", self.heads), ("k", self.groups), ("v", self.groups)):
                points.append((get_act_name(f"{part}_input", layer), list(range(at, at + count))))
                at += count
            points.append((get_act_name("mlp_in", layer), [at]))
            at += 1
        points.append((get_act_name("resid_post", self.layers - 1), [at]))
        return points

    def writing_points(self) -> List[Tuple[str, List[int]]]:
        points = []
        at = 1
        for layer in range(self.layers):
            points.append((get_act_name("result", layer), list(range(at, at + self.heads))))
            points.append((get_act_name("mlp_out", layer), [at + self.heads]))
            at += self.heads + 1
        return points


def _rows(values) -> np.ndarray:
    """(parts, B, T, C) of values (B, T, C) or (B, T, parts, C)."""
    values = np.asarray(values)
    return np.moveaxis(values, 2, 0) if values.ndim == 4 else values[None]


def _written(parts, cache) -> np.ndarray:
    """(senders, B, T, C): what each adds to the stream."""
    rows = [_rows(cache["resid_pre", 0])]
    rows += [_rows(cache[name]) for name, _ in parts.writing_points()]
    return np.concatenate(rows)


def _prompts(model, clean, corrupted) -> Tuple[np.ndarray, np.ndarray]:
    tokens = [model._tokens(prompt) for prompt in (clean, corrupted)]
    if any(isinstance(rows, list) for rows in tokens) or tokens[0].shape != tokens[1].shape:
        raise InvalidArgument("the clean and the corrupted prompts are texts of one length, as many "
                              "of each")
    return tokens[0], tokens[1]


class EdgeScores:
    """``values`` (receivers, senders): what the metric is estimated to gain where an edge carries
    what it carries in the corrupted prompt; NaN where there is no edge. Its ``clean`` and
    ``corrupted`` are the metric's values."""

    def __init__(self, parts, values, clean, corrupted):
        self.senders: List[str] = parts.senders
        self.receivers: List[str] = parts.receivers
        self.values: np.ndarray = np.where(parts.joined, values, np.nan)
        self.clean: float = clean
        self.corrupted: float = corrupted

    def _ranked(self) -> List[Tuple[int, int]]:
        sizes = np.nan_to_num(np.abs(self.values), nan=-1).reshape(-1)
        order = np.argsort(-sizes, kind="stable")[:int(np.isfinite(self.values).sum())]
        return [(int(at) // len(self.senders), int(at) % len(self.senders)) for at in order]

    def top(self, count: int = 10) -> List[ScoredEdge]:
        """Those with the largest absolute scores."""
        return [ScoredEdge(self.senders[s], self.receivers[r], float(self.values[r, s]))
                for r, s in self._ranked()[:count]]

    def largest(self, count: int) -> List[Edge]:
        """The same as (sender, receiver) alone."""
        return [(edge.sender, edge.receiver) for edge in self.top(count)]

    def __len__(self):
        return int(np.isfinite(self.values).sum())

    def __getitem__(self, edge: Edge) -> float:
        sender, receiver = edge
        if sender not in self.senders or receiver not in self.receivers:
            raise InvalidArgument(f"there is no edge from {sender!r} to {receiver!r}")
        return float(self.values[self.receivers.index(receiver), self.senders.index(sender)])

    def __repr__(self):
        return (f"EdgeScores of {len(self)} edges, clean {self.clean:.6g}, corrupted "
                f"{self.corrupted:.6g}")


def edge_attribution(model, clean, corrupted, metric: Callable, steps: int = 1,
                     freeze: Sequence[str] = ()) -> EdgeScores:
    """Edge attribution patching: (corrupted − clean) of what a sender adds, times the gradient of the
    metric by what a receiver reads, summed over positions and prompts.

    ``clean``, ``corrupted``: texts of one length, or as many of each. ``metric``: what
    ``logit_target`` of :meth:`heed.Model.run_with_cache` takes, such as a function of logits that
    returns (value, gradient). ``steps``: 1 takes the gradient at the clean prompts; more take its
    mean over as many points between the corrupted embeddings and the clean ones (EAP-IG). One
    forward and backward pass for each step.
    """
    parts = _Parts(model)
    if int(steps) < 1:
        raise InvalidArgument(f"steps is {steps}, expected at least 1")
    tokens = _prompts(model, clean, corrupted)
    writing = ["resid_pre0", *(name for name, _ in parts.writing_points())]
    caches = [model.run_with_cache(each, writing, return_type=None)[1] for each in tokens]
    clean_rows, corrupted_rows = (_written(parts, cache) for cache in caches)
    differences = corrupted_rows - clean_rows
    start, end = corrupted_rows[0], clean_rows[0]

    names = [name for name, _ in parts.reading_points()]
    total = np.zeros((len(parts.receivers), *end.shape), np.float32)
    clean_value = None
    for step in range(1, int(steps) + 1):
        part = np.float32(step / int(steps))
        stream = start + part * (end - start)

        def read(values, hook, stream=stream):
            values[...] = stream

        hooks = [("resid_pre0", read)] if part != 1 else []
        _, cache = model.run_with_cache(tokens[0], names, incl_bwd=True, logit_target=metric,
                                        fwd_hooks=hooks, freeze=freeze, return_type=None)
        total += np.concatenate([_rows(cache[name + "_grad"]) for name in names])
        clean_value = cache.metric
    flat = (total / np.float32(steps)).reshape(len(parts.receivers), -1)
    rows = differences.reshape(len(parts.senders), -1)
    scores = flat.astype(np.float64) @ rows.astype(np.float64).T
    _, cache = model.run_with_cache(tokens[1], "resid_pre0", incl_bwd=True, logit_target=metric,
                                    return_type=None)
    nan = float("nan")
    return EdgeScores(parts, scores, nan if clean_value is None else clean_value,
                      nan if cache.metric is None else cache.metric)


class _EdgePasses:
    """Passes over the clean prompts in which each receiver reads what its edges carry: kept ones what
    their senders add in this pass, others what they add in the corrupted prompts."""

    def __init__(self, model, clean, corrupted):
        self._model = model
        self.parts = _Parts(model)
        self.clean, self.corrupted = _prompts(model, clean, corrupted)
        writing = ["resid_pre0", *(name for name, _ in self.parts.writing_points())]
        reading = [name for name, _ in self.parts.reading_points()]
        _, cache = model.run_with_cache(self.corrupted, writing + reading, return_type=None)
        self._sent = _written(self.parts, cache)
        self._read = {name: np.array(cache[name]) for name in reading}

    def logits(self, kept: np.ndarray) -> np.ndarray:
        """(B, T, V), of edges (receivers, senders)."""
        changes = np.zeros_like(self._sent)  # of each sender in this pass
        changed = np.zeros(len(self._sent), bool)

        def embedded(values, hook):
            changes[0] = values - self._sent[0]
            changed[0] = True

        def writes(numbers):
            def write(values, hook):
                rows = _rows(values)
                for row, number in zip(rows, numbers):
                    changes[number] = row - self._sent[number]
                    changed[number] = bool(np.any(changes[number]))
            return write

        def reads(numbers):
            def read(values, hook):
                corrupted = self._read[hook.name]
                for at, number in enumerate(numbers):
                    senders = np.flatnonzero(kept[number] & changed)
                    own = corrupted[:, :, at] if corrupted.ndim == 4 else corrupted
                    value = own + changes[senders].sum(0) if len(senders) else own
                    if corrupted.ndim == 4:
                        values[:, :, at] = value
                    else:
                        values[...] = value
            return read

        hooks = [("resid_pre0", embedded)]
        hooks += [(name, writes(numbers)) for name, numbers in self.parts.writing_points()]
        hooks += [(name, reads(numbers)) for name, numbers in self.parts.reading_points()]
        return self._model.run_with_hooks(self.clean, hooks)


def _value(metric, logits) -> float:
    found = metric(logits)
    return float(found[0] if isinstance(found, tuple) else found)


def keep_edges(model, clean, corrupted, edges: Iterable[Edge]) -> np.ndarray:
    """Logits (B, T, V) of the clean prompts where only these edges carry what they do there, and all
    others what they carry in the corrupted prompts (resampling)."""
    passes = _EdgePasses(model, clean, corrupted)
    return passes.logits(passes.parts.numbers(edges))


def edge_patching(model, clean, corrupted, metric: Callable, edges: Sequence[Edge]) -> np.ndarray:
    """What the metric of logits (B, T, V) gains where one edge alone carries what it carries in the
    corrupted prompts, for each of the edges: exact, with a pass for each. ``metric`` returns a
    number, or (value, gradient)."""
    passes = _EdgePasses(model, clean, corrupted)
    whole = passes.parts.joined
    before = _value(metric, passes.logits(whole))
    found = []
    for edge in edges:
        found.append(_value(metric, passes.logits(whole & ~passes.parts.numbers([edge]))) - before)
    return np.array(found)


def faithfulness(model, clean, corrupted, metric: Callable, scores: EdgeScores,
                 counts: Sequence[int]) -> Dict[int, float]:
    """For each count: the share of the metric's change from the corrupted to the clean prompts that
    the so many edges of the largest scores keep, all others resampled. 1 of all edges, 0 of none."""
    passes = _EdgePasses(model, clean, corrupted)
    clean_value = _value(metric, passes.logits(passes.parts.joined))
    corrupted_value = _value(metric, passes.logits(np.zeros_like(passes.parts.joined)))
    if clean_value == corrupted_value:
        raise InvalidArgument("the metric is the same of the clean and of the corrupted prompts: "
                              f"{clean_value}")
    return {int(count): (_value(metric, passes.logits(passes.parts.numbers(
        scores.largest(int(count))))) - corrupted_value) / (clean_value - corrupted_value)
        for count in counts}
