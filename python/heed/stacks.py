"""Stacks of the residual stream from arrays by name: of stored caches, and of those that a user fills.
The same functions of a pass that heed holds are in the extension, with the same arguments."""

from typing import List, Tuple

import numpy as np

from . import _heed
from .errors import InvalidArgument, NotFound

Stack = Tuple[np.ndarray, List[str]]


def _at(recorded, name, positions) -> np.ndarray:
    """(B, P, …) of a point (B, T, …); negative positions count from the end of each text."""
    values = np.asarray(recorded.at(recorded.full_name(name)), np.float32)
    if not positions:
        return values
    at = np.array(positions)[None]
    lengths = np.array(recorded.lengths)[:, None]
    if (at < -lengths).any() or at.max() >= values.shape[1]:
        raise InvalidArgument(f"there are positions 0 to {values.shape[1] - 1}, not {positions}")
    return values[np.arange(len(values))[:, None], np.where(at < 0, at + lengths, at)]


def _layers(recorded, layer) -> int:
    layers = recorded.model.cfg.n_layers
    if not -1 <= layer <= layers:
        raise InvalidArgument(f"layer is {layer}, expected 0 to {layers}, or -1 for all")
    return layers if layer == -1 else layer


def _joined(recorded, parts, labels, positions) -> Stack:
    if not parts:
        raise NotFound("the cache has none of the parts of the stack")
    return np.stack([_at(recorded, name, positions) for name in parts]), labels


def accumulated_residual(recorded, layer, mlp_input, positions, incl_mid) -> Stack:
    layers = _layers(recorded, layer)
    middle = not recorded.model.cfg.parallel_attn_mlp
    parts, labels = [], []
    for one in range(layers + 1):
        is_last = one == layers
        if one == recorded.model.cfg.n_layers:
            parts.append(f"blocks.{one - 1}.hook_resid_post")
            labels.append("final_post")
            break
        parts.append(f"blocks.{one}.hook_resid_pre")
        labels.append(f"{one}_pre")
        if middle and ((incl_mid and not is_last) or (is_last and mlp_input)):
            parts.append(f"blocks.{one}.hook_resid_mid")
            labels.append(f"{one}_mid")
    return _joined(recorded, parts, labels, positions)


def decomposed_residual(recorded, layer, mlp_input, positions, mode) -> Stack:
    if mode not in ("all", "attn", "mlp"):
        raise InvalidArgument(f"mode is {mode!r}, expected 'all', 'attn' or 'mlp'")
    layers = _layers(recorded, layer)
    parts = [f"hook_{name}" for name in ("embed", "pos_embed") if recorded.has(f"hook_{name}")]
    labels = [name[len("hook_"):] for name in parts]
    for one in range(layers + 1):
        before_mlp = one == layers and mlp_input and one < recorded.model.cfg.n_layers
        if one == layers and not (before_mlp and not recorded.model.cfg.parallel_attn_mlp):
            break
        if mode in ("all", "attn"):
            parts.append(f"blocks.{one}.hook_attn_out")
            labels.append(f"{one}_attn_out")
        if mode in ("all", "mlp") and not before_mlp:
            parts.append(f"blocks.{one}.hook_mlp_out")
            labels.append(f"{one}_mlp_out")
    return _joined(recorded, parts, labels, positions)


def head_results(recorded, layer, positions, incl_remainder) -> Stack:
    layers = _layers(recorded, layer)
    if layers == 0:
        raise InvalidArgument("no head writes to the stream before layer 0")
    found = []
    for one in range(layers):
        name = f"blocks.{one}.attn.hook_result"
        if recorded.has(name) or not recorded.of_pass:
            result = _at(recorded, name, positions)
        else:
            mixed = _at(recorded, f"blocks.{one}.attn.hook_z", positions)
            result = np.einsum("bphd,hdc->bphc", mixed, recorded.model.weight(f"blocks.{one}.attn.W_O"))
        found += list(np.moveaxis(result, 2, 0))
    labels = [f"L{one}H{head}" for one in range(layers) for head in range(len(found) // layers)]
    if incl_remainder:
        stream = _at(recorded, f"blocks.{layers - 1}.hook_resid_post", positions)
        found.append(stream - np.sum(found, 0))
        labels.append("remainder")
    return np.stack(found), labels


def _norm(recorded, layer, mlp_input) -> str:
    layers = _layers(recorded, layer)
    if layers == recorded.model.cfg.n_layers:
        return "ln_final"
    return f"blocks.{layers}.ln{2 if mlp_input else 1}"


def normalised_stack(recorded, stack, layer, mlp_input, positions, recompute) -> np.ndarray:
    cfg = recorded.model.cfg
    stack = np.asarray(stack, np.float32)
    if cfg.normalization_type == "LN":
        stack = stack - stack.mean(-1, keepdims=True)
    if recompute:
        if _norm(recorded, layer, mlp_input) != "ln_final":
            raise InvalidArgument(f"the norm before layer {layer} scales by the pass: only the final "
                                  "norm scales each part by its own statistics")
        return stack / np.sqrt((stack ** 2).mean(-1, keepdims=True) + np.float32(cfg.eps))
    name = _norm(recorded, layer, mlp_input) + ".hook_scale"
    scale = _at(recorded, name, positions)
    return stack / np.where(scale == 0, np.inf, scale)  # 0 after the end of a text


def logit_contributions(recorded, stack, tokens, wrong, positions) -> np.ndarray:
    model, count = recorded.model, recorded.sequences
    if len(tokens) not in (1, count) or (wrong and len(wrong) not in (1, count)):
        raise InvalidArgument(f"{len(tokens)} tokens and {len(wrong)} to compare with, expected 1 or "
                              f"{count}")
    # Of a pass over one token, whose parts are nothing: refuses what has no contributions.
    _, cache = model.run_with_cache([[0]], return_type=None)
    nothing = np.zeros((1, 1, 1, model.cfg.d_model), np.float32)
    for i in range(max(len(tokens), len(wrong))):
        _heed.logit_contributions(cache._recorded, nothing, [tokens[min(i, len(tokens) - 1)]],
                                  wrong and [wrong[min(i, len(wrong) - 1)]], [])
    direction = np.moveaxis(model.W_U[:, list(tokens)], 0, -1)  # (B or 1, C)
    if wrong:
        direction = direction - np.moveaxis(model.W_U[:, list(wrong)], 0, -1)
    scaled = normalised_stack(recorded, stack, -1, False, positions, False)
    return np.einsum("nbpc,bc->nbp", scaled * model.weight("ln_final.w"),
                     np.broadcast_to(direction, (count, direction.shape[-1])))
