"""What a model is: its sizes and kinds, by TransformerLens's names."""

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Config:
    """The architecture of a stack, under TransformerLens's names where it has them."""

    model_name: str
    n_layers: int  # L
    d_model: int  # C
    n_heads: int  # H, of queries
    n_key_value_heads: int  # G
    d_head: int  # D
    d_mlp: int  # F
    d_vocab: int  # V
    n_ctx: int
    n_params: int  # of the whole model
    act_fn: str
    gated_mlp: bool
    normalization_type: str  # "LN" or "RMS"
    norm_placement: str  # "pre" or "post"
    eps: float
    positions: str  # "learned", "rotary", "sinusoidal" or "none"
    rotary_base: float
    windows: Tuple[int, ...]  # of each layer: positions a query attends to; 0: all before
    parallel_attn_mlp: bool
    tied_unembedding: bool
    dtype: str

    @property
    def device(self) -> str:
        """Where activations and weights are read: "cpu"."""
        return "cpu"

    @property
    def d_vocab_out(self) -> int:
        return self.d_vocab

    @property
    def positional_embedding_type(self) -> str:
        """TransformerLens's word for ``positions``."""
        return {"learned": "standard"}.get(self.positions, self.positions)


def config_of(name: str, known) -> Config:
    return Config(
        model_name=name, n_layers=known["layers"], d_model=known["channels"],
        n_heads=known["heads"], n_key_value_heads=known["key_value_heads"],
        d_head=known["head_size"], d_mlp=known["feed_forward"], d_vocab=known["vocabulary"],
        n_ctx=known["context"], n_params=known["parameters"], act_fn=known["activation"],
        gated_mlp=known["gated"], normalization_type="LN" if known["norm"] == "layer" else "RMS",
        norm_placement=known["norm_placement"], eps=known["norm_epsilon"],
        positions=known["positions"], rotary_base=known["rotary_base"],
        windows=tuple(known["windows"]), parallel_attn_mlp=known["parallel"],
        tied_unembedding=known["tied_unembedding"], dtype=known["dtype"])
