"""Models whose weights are changed so that they are easier to interpret, and predict the same."""

import dataclasses
import tempfile

import numpy as np

from . import _heed
from .errors import InvalidArgument, Unsupported
from .factored import FactoredMatrix


def load(kind, name, dtype, cache_dtype, pack, flags, refactors, device):
    """A model of the class ``kind``, with the weights that ``flags`` and ``refactors`` ask for."""
    if device is not None and str(device) != "cpu":
        raise InvalidArgument(f"device is {device!r}, expected 'cpu'")
    model = kind.load(name, dtype, cache_dtype, pack)
    wanted = {value for value in flags.values() if value is not None}
    if wanted == {True, False}:
        raise InvalidArgument("fold_ln, center_writing_weights, center_unembed and fold_value_biases are "
                              f"done together: expected all or none of them, not {flags}")
    if True in wanted:
        model._refuse_translator("processed weights")
        with tempfile.TemporaryDirectory() as folder:
            _heed.save_processed(model._handle, folder)
            processed = kind.load(folder, dtype, cache_dtype, pack)
        processed.cfg = dataclasses.replace(processed.cfg, model_name=model.cfg.model_name)
        model = processed
    if refactors:
        _refactor(model)
    return model


def _refactor(model):
    """W_Q·W_Kᵀ with biases, and W_V·W_O, as U·√S and √S·Vᵀ, and U and S·Vᵀ."""
    model._refuse_translator("refactored weights")
    cfg = model.cfg
    if cfg.n_key_value_heads != cfg.n_heads or cfg.positions == "rotary" or any(
            "q_norm" in name for name in model.weight_names):
        raise Unsupported(f"refactor_factored_attn_matrices: '{cfg.model_name}' turns or norms its "
                          "queries and keys, or shares keys between heads")
    for layer in range(cfg.n_layers):
        name = f"blocks.{layer}.attn."
        weights = {part: model.weight(name + part) for part in ("W_Q", "W_K", "W_V", "W_O")}
        biases = {part: model.weight(name + part) for part in ("b_Q", "b_K", "b_V")
                  if name + part in model.weight_names}
        if not all(weight.flags.writeable for weight in weights.values()):
            raise Unsupported("refactor_factored_attn_matrices: weights can only be changed in f32, "
                              "without pack")

        def with_bias(part):
            bias = biases.get("b_" + part)
            rows = np.zeros((cfg.n_heads, 1, cfg.d_head)) if bias is None else bias[:, None]
            return np.concatenate([np.float64(weights["W_" + part]), rows], axis=1)  # (H, C + 1, D)

        even = FactoredMatrix(with_bias("Q"), np.swapaxes(with_bias("K"), -1, -2)).make_even()
        for part, values in (("Q", even.A), ("K", np.swapaxes(even.B, -1, -2))):
            weights["W_" + part][...] = values[:, :-1]
            if "b_" + part in biases:
                biases["b_" + part][...] = values[:, -1]
        mixed = FactoredMatrix(np.float64(weights["W_V"]), np.float64(weights["W_O"]))
        if "b_V" in biases:  # what it adds is added behind the heads
            written = np.einsum("hd,hdc->c", np.float64(biases["b_V"]), np.float64(weights["W_O"]))
            model.weight(name + "b_O")[...] += written
            biases["b_V"][...] = 0
        weights["W_V"][...] = mixed.U
        weights["W_O"][...] = mixed.S[..., :, None] * np.swapaxes(mixed.Vh, -1, -2)
