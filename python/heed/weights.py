"""Weights by TransformerLens's names, and what they make together."""

from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from . import _heed
from .device import DeviceArray
from .errors import InvalidArgument, NotFound, Unsupported
from .factored import FactoredMatrix
from .parts import Part


def _dimension(name: str, doc: str):
    def weight(self):
        try:
            return self._weight(name)
        except (NotFound, Unsupported) as error:  # so that hasattr() says it is not there
            raise AttributeError(str(error)) from error

    return property(weight, doc=doc)


def _part(name: str):
    def part(self):
        found = Part(self, name)
        if not found._members():
            raise AttributeError(f"'{self.cfg.model_name}' has no part '{name}'")
        return found

    return property(part, doc=f"Weights and points whose names begin with \"{name}.\".")


class Weights:
    """What a model has whose ``_handle`` knows views of its weights."""

    _handle: Any
    cfg: Any
    _refuse_translator: Any
    to_single_token: Any

    @property
    def weight_names(self) -> List[str]:
        self._refuse_translator("names of weights")
        return self._handle.weight_names()

    def weight(self, name: str) -> np.ndarray:
        """A view of a weight by TransformerLens's name, such as ``"blocks.3.attn.W_Q"`` (H, C, D).

        Writable where passes read it (f32, not packed, on the processor): a change then takes effect
        at once.
        """
        self._refuse_translator("views of weights")
        return self._handle.weight(name)

    def on_device(self, name: str) -> DeviceArray:
        """A weight, as :meth:`weight`, in the memory of the GPU: that which passes read, without a
        copy, and not to be written to.

        Raises :class:`~heed.errors.InvalidArgument` where the model is on the processor, and
        :class:`~heed.errors.Unsupported` for a matrix that is on the GPU only quantised.
        """
        self._refuse_translator("views of weights")
        return DeviceArray(_heed.weight_on_device(self._handle, name))

    _weight = weight

    @property
    def blocks(self) -> List[Part]:
        """The layers, whose weights and points are attributes: ``model.blocks[3].attn.W_Q``."""
        self._refuse_translator("blocks of layers")
        return [Part(self, f"blocks.{layer}") for layer in range(self.cfg.n_layers)]

    embed = _part("embed")
    pos_embed = _part("pos_embed")
    ln_final = _part("ln_final")
    unembed = _part("unembed")

    def named_parameters(self) -> Iterator[Tuple[str, np.ndarray]]:
        """Names and weights, as :meth:`weight` gives them."""
        for name in self.weight_names:
            yield name, self.weight(name)

    def state_dict(self) -> Dict[str, np.ndarray]:
        """The same as a dict."""
        return dict(self.named_parameters())

    W_E = _dimension("embed.W_E", "Token embedding (V, C).")
    W_pos = _dimension("pos_embed.W_pos", "Position embedding (P, C).")
    W_U = _dimension("unembed.W_U", "Unembedding (C, V); of a tied model W_E transposed, and "
                     "read-only: change W_E.")
    b_U = _dimension("unembed.b_U", "Bias of the unembedding (V).")
    W_Q = _dimension("attn.W_Q", "Queries of all layers (L, H, C, D).")
    W_K = _dimension("attn.W_K", "Keys of all layers (L, G, C, D).")
    W_V = _dimension("attn.W_V", "Values of all layers (L, G, C, D).")
    W_O = _dimension("attn.W_O", "Outputs of the heads of all layers (L, H, D, C).")
    W_in = _dimension("mlp.W_in", "Inputs of the neurons of all layers (L, C, F).")
    W_gate = _dimension("mlp.W_gate", "Gates of the neurons of all layers (L, C, F).")
    W_out = _dimension("mlp.W_out", "Outputs of the neurons of all layers (L, F, C).")
    b_Q = _dimension("attn.b_Q", "Biases of queries (L, H, D).")
    b_K = _dimension("attn.b_K", "Biases of keys (L, G, D).")
    b_V = _dimension("attn.b_V", "Biases of values (L, G, D).")
    b_O = _dimension("attn.b_O", "Biases of attention's outputs (L, C).")
    b_in = _dimension("mlp.b_in", "Biases of the neurons (L, F).")
    b_out = _dimension("mlp.b_out", "Biases of feed-forward outputs (L, C).")

    def _of_each_head(self, weight: np.ndarray) -> np.ndarray:
        """(L, H, C, D) of the keys or values (L, G, C, D) that heads share."""
        return np.repeat(weight, self.cfg.n_heads // self.cfg.n_key_value_heads, axis=1)

    @property
    def QK(self) -> FactoredMatrix:
        """W_Q·W_Kᵀ of every head, (L, H, C, C): which streams ask for which, before rotation and
        biases."""
        return FactoredMatrix(self.W_Q, np.swapaxes(self._of_each_head(self.W_K), -1, -2))

    @property
    def OV(self) -> FactoredMatrix:
        """W_V·W_O of every head, (L, H, C, C): what a stream that is attended to writes."""
        return FactoredMatrix(self._of_each_head(self.W_V), self.W_O)

    def all_composition_scores(self, mode: str) -> np.ndarray:
        """How much each head (L, H) writes into what each later one (L, H) reads as its queries
        ("Q"), keys ("K") or values ("V"): ‖OV·W‖ / (‖OV‖·‖W‖), 0 for a head that is not later
        (Elhage et al. 2021). Weights are not processed: see :func:`heed.explain.save_processed`."""
        return _heed.composition_scores(self._handle, mode)

    def tokens_to_residual_directions(self, tokens) -> np.ndarray:
        """Columns of the unembedding: (C) of one token, a text of one token or an id, (…, C) of
        ids (…)."""
        if isinstance(tokens, str):
            tokens = self.to_single_token(tokens)
        ids = np.asarray(tokens)
        if ids.dtype.kind not in "iu" or ids.size == 0 or ids.min() < 0 or ids.max() >= self.cfg.d_vocab:
            raise InvalidArgument(f"tokens are {tokens!r}, expected ids from 0 to "
                                  f"{self.cfg.d_vocab - 1}")
        ids = ids.reshape(()) if ids.size == 1 else ids
        return np.moveaxis(self.W_U[:, ids], 0, -1)

    @property
    def all_head_labels(self) -> List[str]:
        return [f"L{layer}H{head}" for layer in range(self.cfg.n_layers)
                for head in range(self.cfg.n_heads)]
