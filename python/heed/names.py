"""Names of activations, as TransformerLens shortens them."""

import re

_ALIASES = {"attn": "pattern", "attn_logits": "attn_scores", "key": "k", "query": "q",
            "value": "v", "mlp_pre": "pre", "mlp_mid": "mid", "mlp_post": "post"}
_KINDS = {"a": "attn", "m": "mlp", "b": "", "block": "", "blocks": "", "attention": "attn"}
_OF_ATTENTION = {"k", "v", "q", "z", "rot_k", "rot_q", "result", "pattern", "attn_scores"}
_OF_FEED_FORWARD = {"pre", "post", "mid", "pre_linear"}
_OF_NORMS = {"scale", "normalized"}
_AT_THE_END = {"logits": "unembed.hook_out"}


def get_act_name(name, layer=None, layer_type=None):
    """The full name of an activation (TransformerLens: ``utils.get_act_name``).

    >>> get_act_name("k", 6)
    'blocks.6.attn.hook_k'
    >>> get_act_name("pre2")
    'blocks.2.mlp.hook_pre'
    >>> get_act_name("normalized", 3, "ln2")
    'blocks.3.ln2.hook_normalized'
    >>> get_act_name("scale")
    'ln_final.hook_scale'
    """
    if ("." in name or name.startswith("hook_")) and layer is None and layer_type is None:
        return name
    short = re.fullmatch(r"([a-z_]+?)(\d+)([a-z]?.*)", name)
    if short is not None and layer is None:
        name, layer, layer_type = short[1], int(short[2]), short[3] or layer_type
    name = _ALIASES.get(name, name)
    if layer is None and name in _AT_THE_END:
        return _AT_THE_END[name]
    if name in _OF_ATTENTION:
        layer_type = "attn"
    elif name in _OF_FEED_FORWARD:
        layer_type = "mlp"
    else:
        layer_type = _KINDS.get(layer_type, layer_type)
    full = "" if layer is None else f"blocks.{layer}."
    if layer_type:
        full += f"{layer_type}."
    full += f"hook_{name}"
    return f"ln_final.{full}" if name in _OF_NORMS and layer is None else full
