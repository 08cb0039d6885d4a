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
        # (rows, columns), of means over several prompts
        self.standard_errors: Optional[np.ndarray] = None

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
          metric: Union[str, Callable] = "logit_difference", method: str = "exact",
          layer: int = -1, head: int = -1, results: str = "",
          progress: Optional[Callable[[int, int], Optional[bool]]] = None,
          *, target=None, site: str = "encoder") -> Sweep:
    """Patches activations of the clean prompt into the corrupted one, cell by cell.

    ``grid``: what a cell replaces; see :func:`grid_names`. ``answer``, ``wrong``: texts of one
    token each, or ids. ``metric``: "logit_difference", "probability" of the answer, or "kl" to the
    clean prediction, after the last token, or a function of logits (B, 1, V), those after the last
    token of each prompt, that returns a number. ``method``: "exact", or "attribution" for the
    first-order estimate of all cells from one backward pass; a function of one's own then returns
    (value, gradient), as ``logit_target`` takes them. ``layer``, ``head``: of edge grids.
    ``results``: a file that finished cells are kept in and resumed from. ``progress``: called with
    (cells done, cells); returning False stops.

    Of a translator, ``clean`` and ``corrupted`` are sources, with one ``target``, or pairs (source,
    target), and the cells are of a ``site``: "encoder", "decoder" or "cross". The metric is of the
    token after the target.

    Several prompts, each with its ``answer`` and ``wrong``, give the means over prompts, with their
    standard errors in ``standard_errors``; a function of logits is given those of all prompts. They
    may differ in length where the grid's columns are heads.
    """
    if callable(metric):
        if answer is not None or wrong is not None or results:
            raise InvalidArgument("a metric of one's own reads the answers itself, and its cells "
                                  "cannot be resumed: expected neither answer, wrong nor results")
        return _own_sweep(model, clean, corrupted, grid, metric, method,
                          {"layer": layer, "head": head, "progress": progress, "target": target,
                           "site": site})
    if not isinstance(metric, str):
        raise InvalidArgument(f"metric is {metric!r}, expected 'logit_difference', 'probability', "
                              "'kl' or a function of logits")
    options = {"grid": grid, "metric": metric, "method": method, "layer": layer, "head": head,
               "results": str(results)}
    if not model.is_translator:
        model._refuse_pair(None, target)
        prompts = _prompts(model, clean, corrupted)
        if len(prompts) > 1:
            if results:
                raise InvalidArgument("results are of one prompt, expected none of several")
            answers = [_inputs.of_each(token, len(prompts), what)
                       for token, what in ((answer, "answer"), (wrong, "wrong"))]
            return _mean([sweep(model, one, other, grid, right, false, metric, method, layer, head,
                                progress=progress)
                          for (one, other), right, false in zip(prompts, *answers)])
    options["answer"] = _token(model, answer, "answer")
    options["wrong"] = _token(model, wrong, "wrong")
    return _sweep(model, clean, corrupted, options, progress, target, site)


def _prompts(model, clean, corrupted):
    """(clean, corrupted) ids of each prompt."""
    rows = [model._tokens(prompt) for prompt in (clean, corrupted)]
    if len(rows[0]) != len(rows[1]):
        raise InvalidArgument(f"there are {len(rows[0])} clean prompts and {len(rows[1])} "
                              "corrupted ones, expected as many")
    return list(zip(*rows))


def _mean(found: List[Sweep]) -> Sweep:
    """Over prompts, with standard errors."""
    if len({each.values.shape for each in found}) > 1:
        raise InvalidArgument("the prompts have different lengths, and so do the grids: expected "
                              "prompts of one length, or a grid of heads")
    values, errors = _inputs.mean_and_error([each.values for each in found])
    mean = Sweep(found[0].grid, values, float(np.mean([each.clean for each in found])),
                 float(np.mean([each.corrupted for each in found])), found[0].row_labels,
                 found[0].column_labels)
    mean.standard_errors = errors
    return mean


def _sweep(model, clean, corrupted, options, progress, target, site) -> Sweep:
    grid = options["grid"]
    if model.is_translator:
        pairs = [_pair(model, prompt, target) for prompt in (clean, corrupted)]
        values, of_clean, of_corrupted, _ = _heed.patch_sweep(
            model._hooked, pairs[0], pairs[1], {**options, "site": site}, progress)
        return Sweep(grid, values, of_clean, of_corrupted,
                     *_labels_of_pair(model, values.shape, pairs[1], grid, site))
    clean, corrupted = [model._one(model._tokens(prompt)) for prompt in (clean, corrupted)]
    none = np.empty(0, np.int32)
    values, of_clean, of_corrupted, _ = _heed.patch_sweep(
        model._hooked, (none, clean), (none, corrupted), {**options, "site": ""}, progress)
    heads = _heed.patch_head_names(model._handle, grid, "")
    pieces = model._pieces(corrupted)
    return Sweep(grid, values, of_clean, of_corrupted,
                 *_labels(values.shape, heads, (pieces, pieces), grid))


# Bytes of logits that a sweep keeps for a metric of all prompts.
_MAX_LOGITS = 1 << 30


def _own_sweep(model, clean, corrupted, grid, metric, method, options) -> Sweep:
    """Of a metric of one's own, of one prompt or of all of a batch."""
    if method == "attribution":
        return _estimated(model, clean, corrupted, grid, metric)
    if model.is_translator:
        prompts = [(clean, corrupted)]
    else:
        prompts = _prompts(model, clean, corrupted)
    found: List[Sweep] = []
    kept: List[List[np.ndarray]] = []
    for prompt in prompts:
        logits: List[np.ndarray] = []

        def keep(row, logits=logits):
            """A cell's value is the number of its logits."""
            logits.append(row.copy())
            if sum(map(len, kept)) + len(logits) > _MAX_LOGITS // (4 * len(row)):
                raise InvalidArgument(f"the cells' logits of {len(prompts)} prompts take more than "
                                      f"{_MAX_LOGITS >> 20} MiB: sweep a part of the prompts, or "
                                      "a grid of fewer cells")
            return len(logits) - 1

        own = {"grid": grid, "metric": "own", "own": keep, "method": method, "answer": -1,
               "wrong": -1, "results": "", "layer": options["layer"], "head": options["head"]}
        found.append(_sweep(model, *prompt, own, options["progress"], options["target"],
                            options["site"]))
        kept.append(logits)
    if len({each.values.shape for each in found}) > 1:
        raise InvalidArgument("the prompts have different lengths, and so do the grids: expected "
                              "prompts of one length, or a grid of heads")

    def value(numbers):
        return float(metric(np.stack([own[int(at)] for own, at in zip(kept, numbers)])[:, None]))

    first = found[0]
    values = np.full(first.values.shape, np.nan)
    known: Dict[Tuple[float, ...], float] = {}
    for cell in np.ndindex(values.shape):
        numbers = tuple(each.values[cell] for each in found)
        if not np.isnan(numbers).any():
            if numbers not in known:
                known[numbers] = value(numbers)
            values[cell] = known[numbers]
    return Sweep(grid, values, value([0] * len(found)), value([1] * len(found)),
                 first.row_labels, first.column_labels)


# The point that a grid patches, and the axes of its values that a cell sums over.
_ESTIMATED = {
    "resid_pre": ("resid_pre", (0, 2)), "resid_mid": ("resid_mid", (0, 2)),
    "attn_out": ("attn_out", (0, 2)), "mlp_out": ("mlp_out", (0, 2)),
    "attn_head_out": ("z", (0, 1, 3)), "attn_head_q": ("q", (0, 1, 3)),
    "attn_head_k": ("k", (0, 1, 3)), "attn_head_v": ("v", (0, 1, 3)),
    "attn_head_pattern": ("pattern", (0, 2, 3)),
    "attn_head_out_by_pos": ("z", (0, 3)), "attn_head_q_by_pos": ("q", (0, 3)),
    "attn_head_k_by_pos": ("k", (0, 3)), "attn_head_v_by_pos": ("v", (0, 3)),
    "attn_head_pattern_by_pos": ("pattern", (0, 3)),
}


def _estimated(model, clean, corrupted, grid, metric) -> Sweep:
    """The first-order estimate of a metric with a gradient, of prompts of one length: (clean −
    corrupted) · gradient (Nanda 2023)."""
    model._refuse_translator("attribution patching with a metric of one's own")
    if grid not in _ESTIMATED:
        raise InvalidArgument(f"attribution patching does not support the grid {grid!r}")
    tokens = [model._tokens(prompt) for prompt in (clean, corrupted)]
    shapes = [np.shape(rows) if isinstance(rows, np.ndarray) else None for rows in tokens]
    if None in shapes or shapes[0] != shapes[1]:
        raise InvalidArgument("attribution patching needs clean and corrupted prompts of one length")
    name, axes = _ESTIMATED[grid]
    caches = [model.run_with_cache(each, name, incl_bwd=True, logit_target=metric)[1]
              for each in tokens]
    rows = []
    for layer in range(model.cfg.n_layers):
        change = np.float64(caches[0][name, layer]) - caches[1][name, layer]
        sums = (change * caches[1][name + "_grad", layer]).sum(axes)
        # head by head
        rows.append((sums.T if grid.endswith("_by_pos") and name != "pattern" else sums).reshape(-1))
    pieces = model._pieces(tokens[1][0])
    values = caches[1].metric + np.stack(rows)
    return Sweep(grid, values, caches[0].metric, caches[1].metric,
                 *_labels(values.shape, _heed.patch_head_names(model._handle, grid, ""),
                          (pieces, pieces), grid))


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


resid_pre = _named("resid_pre", "The stream before each layer (L, T).")
resid_mid = _named("resid_mid", "The stream between the halves (L, T).")
attn_out = _named("attn_out", "The output of attention (L, T).")
mlp_out = _named("mlp_out", "The output of feed-forward (L, T).")
head_out = _named("attn_head_out", "The mixed values of each head, at all positions (L, H).")
head_q = _named("attn_head_q", "Queries (L, H).")
head_k = _named("attn_head_k", "Keys (L, G).")
head_v = _named("attn_head_v", "Values (L, G).")
head_pattern = _named("attn_head_pattern", "Patterns (L, H).")
head_out_by_pos = _named("attn_head_out_by_pos",
                         "The mixed values of each head at each position (L, H·T).")
head_pattern_by_pos = _named("attn_head_pattern_by_pos", "Rows of patterns (L, H·T).")


def _from_values(model, corrupted_tokens, cache, grid, metric) -> np.ndarray:
    """A grid from the activations of a cache that is of no pass of heed's, a pass for each cell."""
    name, by_position = _ESTIMATED[grid][0], grid.endswith("_by_pos")
    rows = []
    for layer in range(model.cfg.n_layers):
        clean = np.asarray(cache[name, layer])
        if name == "pattern":  # (B, H, T, S)
            shape = clean.shape[1:3] if by_position else clean.shape[1:2]
        elif grid.startswith("attn_head"):  # (B, T, heads, D)
            shape = clean.shape[1:3] if by_position else clean.shape[2:3]
        else:
            shape = clean.shape[1:2]
        whole = name != "pattern" and grid.startswith("attn_head") and not by_position
        values = np.empty(shape)
        for cell in np.ndindex(shape):
            at = (slice(None), slice(None), *cell) if whole else (slice(None), *cell)

            def put(values, hook, at=at, clean=clean):
                values[at] = clean[at]

            logits = model.run_with_hooks(corrupted_tokens, [(get_act_name(name, layer), put)])
            values[cell] = metric(logits[:, -1:])
        rows.append(values)
    return np.stack(rows)


def _in_transformer_lens(grid, doc):
    def patch(model, corrupted_tokens, clean_cache, patching_metric: Callable) -> np.ndarray:
        if clean_cache.tokens.size == 0:
            return _from_values(model, corrupted_tokens, clean_cache, grid, patching_metric)
        found = sweep(model, clean_cache.tokens, corrupted_tokens, grid, metric=patching_metric)
        if not grid.endswith("_by_pos"):
            return found.values
        positions = clean_cache.tokens.shape[1]
        by_head = found.values.reshape(len(found.values), -1, positions)
        return by_head if "pattern" in grid else by_head.transpose(0, 2, 1)

    patch.__doc__ = (f"{doc}, float64, with TransformerLens's arguments. The metric is given the "
                     "logits after the last token alone, (B, 1, V): the others are not computed. A "
                     "cache that hooks filled (``ActivationCache(arrays, model)``) takes a pass for "
                     "each cell, one of a pass far fewer.")
    return patch


get_act_patch_resid_pre = _in_transformer_lens("resid_pre", "(L, T)")
get_act_patch_resid_mid = _in_transformer_lens("resid_mid", "(L, T)")
get_act_patch_attn_out = _in_transformer_lens("attn_out", "(L, T)")
get_act_patch_mlp_out = _in_transformer_lens("mlp_out", "(L, T)")
get_act_patch_attn_head_out_all_pos = _in_transformer_lens("attn_head_out", "(L, H)")
get_act_patch_attn_head_q_all_pos = _in_transformer_lens("attn_head_q", "(L, H)")
get_act_patch_attn_head_k_all_pos = _in_transformer_lens("attn_head_k", "(L, G)")
get_act_patch_attn_head_v_all_pos = _in_transformer_lens("attn_head_v", "(L, G)")
get_act_patch_attn_head_pattern_all_pos = _in_transformer_lens("attn_head_pattern", "(L, H)")
get_act_patch_attn_head_out_by_pos = _in_transformer_lens("attn_head_out_by_pos", "(L, T, H)")
get_act_patch_attn_head_q_by_pos = _in_transformer_lens("attn_head_q_by_pos", "(L, T, H)")
get_act_patch_attn_head_k_by_pos = _in_transformer_lens("attn_head_k_by_pos", "(L, T, G)")
get_act_patch_attn_head_v_by_pos = _in_transformer_lens("attn_head_v_by_pos", "(L, T, G)")
get_act_patch_attn_head_pattern_by_pos = _in_transformer_lens("attn_head_pattern_by_pos",
                                                              "(L, H, T)")


def get_act_patch_block_every(model, corrupted_tokens, clean_cache, metric: Callable) -> np.ndarray:
    """(3, L, T): the stream, attention and feed-forward."""
    return np.stack([patch(model, corrupted_tokens, clean_cache, metric) for patch in (
        get_act_patch_resid_pre, get_act_patch_attn_out, get_act_patch_mlp_out)])


def get_act_patch_attn_head_all_pos_every(model, corrupted_tokens, clean_cache,
                                          metric: Callable) -> np.ndarray:
    """(5, L, H): outputs, queries, keys, values and patterns, of models whose heads have keys of
    their own."""
    return np.stack([patch(model, corrupted_tokens, clean_cache, metric) for patch in (
        get_act_patch_attn_head_out_all_pos, get_act_patch_attn_head_q_all_pos,
        get_act_patch_attn_head_k_all_pos, get_act_patch_attn_head_v_all_pos,
        get_act_patch_attn_head_pattern_all_pos)])


def get_act_patch_attn_head_by_pos_every(model, corrupted_tokens, clean_cache,
                                         metric: Callable) -> np.ndarray:
    """(5, L, T, H): the same at each position."""
    found = [patch(model, corrupted_tokens, clean_cache, metric) for patch in (
        get_act_patch_attn_head_out_by_pos, get_act_patch_attn_head_q_by_pos,
        get_act_patch_attn_head_k_by_pos, get_act_patch_attn_head_v_by_pos)]
    pattern = get_act_patch_attn_head_pattern_by_pos(model, corrupted_tokens, clean_cache, metric)
    return np.stack([*found, pattern.transpose(0, 2, 1)])


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
