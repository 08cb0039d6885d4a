"""Hooks: Python functions at the points of a pass."""

import re
from typing import Optional

from . import _inputs
from .errors import InvalidArgument


class HookPoint:
    """Where a hook is called: ``name``, such as ``"blocks.3.attn.hook_z"``, and in a generation
    the position of the first of its values, ``first_position``."""

    def __init__(self, name: str, first_position: int = 0):
        self.name = name
        self.first_position = first_position
        self.ctx: dict = {}

    def layer(self) -> Optional[int]:
        """The layer, or None outside the blocks."""
        found = re.match(r"\w+\.(\d+)\.", self.name)
        return int(found[1]) if found else None

    def __repr__(self):
        return f"HookPoint({self.name!r})"


def call_with_point(function):
    """heed's call of a hook, as ``function(values, hook=point)``: what it returns replaces the
    values."""

    def call(name, first_position, values):
        result = function(values, hook=HookPoint(name, first_position))
        if result is not None and result is not values:
            _inputs.assign(values, result, name)

    return call


def call_with_gradient(function):
    """The same for gradients, which a hook only reads."""

    def call(name, first_position, values):
        values.flags.writeable = False
        if function(values, hook=HookPoint(name, first_position)) is not None:
            raise InvalidArgument(f"the backward hook at '{name}' returned a value: gradients "
                                  "can be read but not changed")

    return call


def resolved(model, hooks, wrap):
    """(name, call) pairs for heed, of (name or predicate, function) pairs."""
    pairs = []
    for entry in hooks:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise InvalidArgument(f"a hook is a pair (name, function), not {entry!r}")
        where, function = entry
        if not callable(function):
            raise InvalidArgument(f"the hook at {where!r} is {type(function).__name__}, expected "
                                  "a function of (values, hook)")
        if isinstance(where, str):
            names = [where]
        elif callable(where):
            # Logits cannot be changed: see unembed.hook_in.
            names = [name for name in model.hook_names
                     if name != "unembed.hook_out" and where(name)]
        else:
            raise InvalidArgument(f"the name of a hook is {where!r}, expected a string or a "
                                  "function of a name")
        pairs += [(name, wrap(function)) for name in names]
    return pairs
