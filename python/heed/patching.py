"""Activation patching, on heed's sweeps: unchanged layers and positions are computed once, and many
cells in one pass.

    sweep = heed.patching.head_out(model, clean, corrupted, answer=" Mary", wrong=" John")
    sweep.recovered  # (L, H): 0 as corrupted, 1 as clean

Sources: Meng et al. 2022 (causal tracing), Wang et al. 2022 (interchange), Nanda 2023 (attribution
patching), Goldowsky-Dill et al. 2023 (path patching).
"""

from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

import numpy as np

from . import _heed, _inputs
from .errors import InvalidArgument
from .names import get_act_name
from .pictures import Picture, grid_picture


class Sweep(Picture):
    """A grid of patched cells: ``values`` of the metric (rows, columns), float64."""

    def __init__(self, grid, values, clean, corrupted, row_labels, column_labels):
        self.grid: str = grid
        self.values: np.ndarray = values
        self.clean: float = clean
        self.corrupted: float = corrupted
        self.row_labels: List[str] = row_labels
        self.column_labels: List[str] = column_labels

    @property
    def recovered(self) -> np.ndarray:
        """(rows, columns): 0 where the metric is that of the corrupted prompt, 1 of the clean."""
        if self.clean == self.corrupted:
            return np.full_like(self.values, np.nan)
        return (self.values - self.corrupted) / (self.clean - self.corrupted)

    def picture(self) -> str:
        return grid_picture(self.recovered, self.row_labels, self.column_labels,
                            f"{self.grid}: share of the metric that patching restores "
                            f"(clean {self.clean:.4g}, corrupted {self.corrupted:.4g})")

    def __repr__(self):
        return (f"Sweep({self.grid!r}, {self.values.shape[0]} x {self.values.shape[1]}, clean "
                f"{self.clean:.6g}, corrupted {self.corrupted:.6g})")


def grid_names() -> List[str]:
    """The grids of :func:`sweep`."""
    return _heed.patch_grid_names()


def _token(model, token, what):
    if token is None:
        return -1
    return model.to_single_token(token) if isinstance(token, str) else int(token)


def sweep(model, clean, corrupted, grid: str = "resid_pre",
          answer: Union[None, str, int] = None, wrong: Union[None, str, int] = None,
          metric: str = "logit_difference", method: str = "exact", layer: int = -1, head: int = -1,
          results: str = "", progress: Optional[Callable[[int, int], Optional[bool]]] = None,
          *, target=None, site: str = "encoder") -> Sweep:
    """Patches activations of the clean prompt into the corrupted one, cell by cell.

    ``grid``: what a cell replaces; see :func:`grid_names`. ``answer``, ``wrong``: texts of one
    token each, or ids. ``metric``: "logit_difference", "probability" of the answer, or "kl" to the
    clean prediction, after the last token. ``method``: "exact", or "attribution" for the
    first-order estimate of all cells from one backward pass. ``layer``, ``head``: of edge grids.
    ``results``: a file that finished cells are kept in and resumed from. ``progress``: called with
    (cells done, cells); returning False stops.

    Of a translator, ``clean`` and ``corrupted`` are sources, with one ``target``, or pairs (source,
    target), and the cells are of a ``site``: "encoder", "decoder" or "cross". The metric is of the
    token after the target.
    """
    if not isinstance(metric, str):
        raise InvalidArgument(f"metric is {metric!r}, expected 'logit_difference', 'probability' or "
                              "'kl': generic_activation_patch() takes functions of logits")
    options = {"grid": grid, "metric": metric, "method": method, "layer": layer, "head": head,
               "answer": _token(model, answer, "answer"), "wrong": _token(model, wrong, "wrong"),
               "results": str(results)}
    if model.is_translator:
        pairs = [_pair(model, prompt, target) for prompt in (clean, corrupted)]
        values, of_clean, of_corrupted, _ = _heed.patch_sweep(
            model._hooked, pairs[0], pairs[1], {**options, "site": site}, progress)
        return Sweep(grid, values, of_clean, of_corrupted,
                     *_labels_of_pair(model, values.shape, pairs[1], grid, site))
    model._refuse_pair(None, target)
    clean, corrupted = [model._one(model._tokens(prompt)) for prompt in (clean, corrupted)]
    none = np.empty(0, np.int32)
    values, of_clean, of_corrupted, _ = _heed.patch_sweep(
        model._hooked, (none, clean), (none, corrupted), {**options, "site": ""}, progress)
    heads = _heed.patch_head_names(model._handle, grid, "")
    pieces = model._pieces(corrupted)
    return Sweep(grid, values, of_clean, of_corrupted,
                 *_labels(values.shape, heads, (pieces, pieces), grid))


def _pair(model, prompt, target):
    """The ids of a source and of a target."""
    if (target is None) != isinstance(prompt, tuple):
        raise InvalidArgument("a prompt of a translator is a pair (source, target), or a source "
                              "beside target=")
    pair = model._pair(*(prompt if target is None else (prompt, target)))
    return pair.source, pair.target


def _labels_of_pair(model, shape, pair, grid, site):
    source = model.to_str_tokens(source=pair[0])
    target = model.to_str_tokens(target=pair[1])
    heads = _heed.patch_head_names(model._handle, grid, site)
    axes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    return _labels(shape, heads, axes[site], grid)


def _labels(shape, heads, axes, grid):
    """Of rows and columns; ``axes``: the tokens of queries and of keys."""
    queries, keys = [[f"{t} {piece}" for t, piece in enumerate(axis)] for axis in axes]
    if grid.startswith("edge"):
        return queries, keys
    layers = [f"L{layer}" for layer in range(shape[0])]
    pieces = keys if grid.startswith(("attn_head_k", "attn_head_v")) else queries
    if not grid.startswith("attn_head"):
        return layers, pieces
    if not grid.endswith("_by_pos"):
        return layers, heads
    return layers, [f"{head} {piece}" for head in heads for piece in pieces]


def _named(grid, doc):
    def patch(model, clean, corrupted, answer=None, wrong=None, **options) -> Sweep:
        return sweep(model, clean, corrupted, grid, answer, wrong, **options)

    patch.__doc__ = f"{doc} See :func:`sweep`."
    return patch


resid_pre = get_act_patch_resid_pre = _named("resid_pre", "The stream before each layer (L, T).")
resid_mid = get_act_patch_resid_mid = _named("resid_mid", "The stream between the halves (L, T).")
attn_out = get_act_patch_attn_out = _named("attn_out", "The output of attention (L, T).")
mlp_out = get_act_patch_mlp_out = _named("mlp_out", "The output of feed-forward (L, T).")
head_out = get_act_patch_attn_head_out_all_pos = _named(
    "attn_head_out", "The mixed values of each head, at all positions (L, H).")
head_q = get_act_patch_attn_head_q_all_pos = _named("attn_head_q", "Queries (L, H).")
head_k = get_act_patch_attn_head_k_all_pos = _named("attn_head_k", "Keys (L, G).")
head_v = get_act_patch_attn_head_v_all_pos = _named("attn_head_v", "Values (L, G).")
head_pattern = get_act_patch_attn_head_pattern_all_pos = _named("attn_head_pattern",
                                                                "Patterns (L, H).")
head_out_by_pos = get_act_patch_attn_head_out_by_pos = _named(
    "attn_head_out_by_pos", "The mixed values of each head at each position (L, H·T).")
head_pattern_by_pos = get_act_patch_attn_head_pattern_by_pos = _named(
    "attn_head_pattern_by_pos", "Rows of patterns (L, H·T).")


def neurons(model, clean, corrupted, metric: Callable, layer: int, wanted: Sequence[int]
            ) -> np.ndarray:
    """The metric of logits (1, T, V) with each neuron of a layer patched alone, at all positions:
    (neurons)."""
    name = get_act_name("post", layer)
    _, cache = model.run_with_cache(clean, name, return_type=None)

    def patch(values, at, clean_values):
        values[..., at[1]] = clean_values[..., at[1]]

    return generic_activation_patch(model, corrupted, cache, metric, patch, "post",
                                    [(layer, int(neuron)) for neuron in wanted])


def generic_activation_patch(model, corrupted_tokens, clean_cache, metric: Callable, setter: Callable,
                             activation_name: str, index: Sequence[Tuple[int, ...]]) -> np.ndarray:
    """Runs the model once for each index with any patch and any metric of logits (1, T, V).

    ``setter(corrupted, index, clean)`` returns the patched activation, of the layer ``index[0]``.
    (TransformerLens: ``generic_activation_patch``.) For the usual grids :func:`sweep` is many
    times as fast.
    """
    found = []
    for at in index:
        name = get_act_name(activation_name, at[0])
        clean = clean_cache[name]

        def patch(values, hook, at=at, clean=clean):
            return setter(values, at, clean)

        found.append(metric(model.run_with_hooks(corrupted_tokens, [(name, patch)])))
    return np.array(found)


_RECEIVERS = {"q": "q_input", "k": "k_input", "v": "v_input"}


def _layer_of(model, layer) -> int:
    """Counted from the end where it is negative."""
    count = model.cfg.n_layers
    if not isinstance(layer, (int, np.integer)) or not -count <= layer < count:
        raise InvalidArgument(f"layer {layer!r} does not exist: the model has layers 0 to "
                              f"{count - 1}, or from -1 back")
    return int(layer) % count


def _head_of(model, head) -> int:
    count = model.cfg.n_heads
    if not isinstance(head, (int, np.integer)) or not -count <= head < count:
        raise InvalidArgument(f"head {head!r} does not exist: a layer has heads 0 to {count - 1}, or "
                              "from -1 back")
    return int(head) % count


def _senders(model, senders) -> Tuple[Set[Tuple[int, int]], Set[int]]:
    """Heads (layer, head), and layers whose feed-forward part sends."""
    heads, layers = set(), set()
    for sender in senders:
        if not isinstance(sender, (tuple, list)) or len(sender) != 2:
            raise InvalidArgument(f"a sender is {sender!r}, expected (layer, head) or (layer, 'mlp')")
        layer = _layer_of(model, sender[0])
        if sender[1] == "mlp":
            layers.add(layer)
        else:
            heads.add((layer, _head_of(model, sender[1])))
    return heads, layers


def _receivers(model, receivers) -> Dict[str, Optional[List[int]]]:
    """Heads at points, or None at those that have none."""
    wanted: Dict[str, Optional[List[int]]] = {}
    for receiver in receivers:
        if not isinstance(receiver, (tuple, list)) or len(receiver) not in (2, 3):
            raise InvalidArgument(f"a receiver is {receiver!r}, expected (layer, head, 'q', 'k' or "
                                  "'v') or (layer, 'mlp')")
        layer = _layer_of(model, receiver[0])
        if len(receiver) == 2:
            if receiver[1] != "mlp":
                raise InvalidArgument(f"a receiver of layer {layer} reads {receiver[1]!r}, expected "
                                      "'mlp', or a head and 'q', 'k' or 'v'")
            wanted[get_act_name("mlp_in", layer)] = None
            continue
        head, part = _head_of(model, receiver[1]), receiver[2]
        if part not in _RECEIVERS:
            raise InvalidArgument(f"a receiver reads {part!r}, expected 'q', 'k' or 'v'")
        group = head if part == "q" else head * model.cfg.n_key_value_heads // model.cfg.n_heads
        heads = wanted.setdefault(get_act_name(part, layer), [])
        assert heads is not None
        heads.append(group)
    return wanted


def path_patch(model, clean, corrupted, senders: Sequence[Tuple], receivers, metric: Callable):
    """Patches the direct paths from heads and feed-forward layers to later ones, with all other heads
    held as they are in the corrupted prompt (Goldowsky-Dill et al. 2023; Wang et al. 2022).
    Feed-forward layers on the way are computed anew.

    ``senders``: heads (layer, head), or (layer, "mlp"), whose clean outputs are sent.
    ``receivers``: (layer, head, "q", "k" or "v"), (layer, "mlp"), or "logits". Layers and heads may
    count from the end, -1 the last. ``metric``: of logits (1, T, V). Returns the metric of the
    corrupted prompt with what reaches the receivers replaced.
    """
    if not callable(metric):
        raise InvalidArgument(f"metric is {metric!r}, expected a function of logits (1, T, V)")
    model._refuse_translator("path patching")
    heads, feed_forward = _senders(model, senders)
    wanted = {} if isinstance(receivers, str) and receivers == "logits" else _receivers(model,
                                                                                      receivers)
    clean_tokens = model._tokens(clean)
    corrupted_tokens = model._tokens(corrupted)
    layers = range(model.cfg.n_layers)
    z_names = [get_act_name("z", layer) for layer in layers]
    mlp_names = [get_act_name("mlp_out", layer) for layer in sorted(feed_forward)]
    _, sent_from = model.run_with_cache(clean_tokens, z_names + mlp_names, return_type=None)
    _, frozen = model.run_with_cache(corrupted_tokens, z_names, return_type=None)
    if sent_from["z", 0].shape != frozen["z", 0].shape:
        raise InvalidArgument(f"the prompts have {sent_from['z', 0].shape[1]} and "
                              f"{frozen['z', 0].shape[1]} tokens, expected the same number")

    def send_heads(values, hook):
        values[...] = frozen[hook.name]
        for layer, head in heads:
            if layer == hook.layer():
                values[:, :, head] = sent_from[hook.name][:, :, head]

    def send_feed_forward(values, hook):
        values[...] = sent_from[hook.name]

    hooks = ([(name, send_heads) for name in z_names] +
             [(name, send_feed_forward) for name in mlp_names])
    if not wanted:
        return metric(model.run_with_hooks(corrupted_tokens, hooks))
    _, sent = model.run_with_cache(corrupted_tokens, list(wanted), return_type=None,
                                   fwd_hooks=hooks)

    def receive(values, hook):
        chosen = wanted[hook.name]
        if chosen is None:
            values[...] = sent[hook.name]
        else:
            for head in chosen:
                values[:, :, head] = sent[hook.name][:, :, head]

    return metric(model.run_with_hooks(corrupted_tokens, [(name, receive) for name in wanted]))
