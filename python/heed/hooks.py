"""Hooks: Python functions at the points of a pass."""

import contextlib
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _inputs, metrics
from .errors import InvalidArgument


class HookPoint:
    """Where a hook is called: ``name``, such as ``"blocks.3.attn.hook_z"``, in a generation the
    position of the first of its values, ``first_position``, and of texts of different lengths which
    of them, ``text``."""

    def __init__(self, name: str, first_position: int = 0, text: int = 0):
        self.name = name
        self.first_position = first_position
        self.text = text
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

    def call(name, first_position, text, values):
        result = function(values, hook=HookPoint(name, first_position, text))
        if result is not None and result is not values:
            _inputs.assign(values, result, name)

    return call


def call_with_gradient(function):
    """The same for gradients; torch's backward hooks return a tuple of one."""

    def unwrapped(values, hook):
        result = function(values, hook=hook)
        return result[0] if isinstance(result, tuple) and len(result) == 1 else result

    return call_with_point(unwrapped)


def checked(hooks):
    """(name or predicate, function) pairs, refused where they are none."""
    for entry in hooks:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise InvalidArgument(f"a hook is a pair (name, function), not {entry!r}")
        where, function = entry
        if not callable(function):
            raise InvalidArgument(f"the hook at {where!r} is {type(function).__name__}, expected "
                                  "a function of (values, hook)")
        if not isinstance(where, str) and not callable(where):
            raise InvalidArgument(f"the name of a hook is {where!r}, expected a string or a "
                                  "function of a name")
        yield where, function


def resolved(model, hooks, wrap):
    """(name, call) pairs for heed, of (name or predicate, function) pairs."""
    if getattr(model, "_splice", None) is not None:
        return model._splice.resolved(hooks, wrap)
    return resolved_in_model(model, hooks, wrap)


def resolved_in_model(model, hooks, wrap):
    """The same, of the model's own points alone."""
    pairs = []
    for where, function in checked(hooks):
        # Logits cannot be changed: see unembed.hook_in.
        names = [where] if isinstance(where, str) else [
            name for name in model.hook_names if name != "unembed.hook_out" and where(name)]
        pairs += [(name, wrap(function)) for name in names]
    return pairs


def named(hooks, wrap):
    """The same where no model is known yet, so that only names say where."""
    pairs = []
    for where, function in checked(hooks):
        if not isinstance(where, str):
            raise InvalidArgument("the name of a hook in training is a function, expected a string "
                                  "or a glob: the model is not made yet")
        pairs.append((where, wrap(function)))
    return pairs


class Hooked:
    """What has points, and hooks that stay: ``hook_names``, ``add_hook``, ``hooks``.

    Its ``_handle`` knows the names of points.
    """

    def __init__(self, handle):
        self._handle = handle
        self._fwd_hooks: List[Tuple[Any, Callable]] = []
        self._bwd_hooks: List[Tuple[Any, Callable]] = []
        self._hook_names = handle.point_names()

    @property
    def hook_names(self) -> List[str]:
        """The points, in the order of a pass."""
        return list(self._hook_names)

    @property
    def hook_dict(self) -> Dict[str, HookPoint]:
        """The points by name."""
        return {name: HookPoint(name) for name in self._hook_names}

    def points_named(self, name: str) -> List[str]:
        """Those that a name, a glob or a short name selects."""
        return self._handle.points_named(name)

    def add_hook(self, name, hook: Callable, dir: str = "fwd") -> None:
        """Adds a hook to all passes, whatever runs them, until :meth:`reset_hooks`; with ``dir``
        "bwd", to the backward passes of :meth:`run_with_cache` and :meth:`run_with_hooks`."""
        if dir not in ("fwd", "bwd"):
            raise InvalidArgument(f"dir is {dir!r}, expected 'fwd' or 'bwd'")
        resolved(self, [(name, hook)], call_with_point)
        if isinstance(name, str):
            self._handle.points_named(name)
        (self._fwd_hooks if dir == "fwd" else self._bwd_hooks).append((name, hook))

    def reset_hooks(self) -> None:
        self._fwd_hooks.clear()
        self._bwd_hooks.clear()

    def set_use_attn_result(self, use_attn_result: bool = True) -> None:
        """Does nothing: what heads write (``result``) is always a point, computed where it is asked
        for; so are those of the next ones."""

    set_use_split_qkv_input = set_use_attn_in = set_use_hook_mlp_in = set_use_attn_result

    @contextlib.contextmanager
    def hooks(self, fwd_hooks=(), bwd_hooks=()):
        """Adds hooks to the passes of a ``with`` block."""
        before = list(self._fwd_hooks), list(self._bwd_hooks)
        try:
            for name, hook in fwd_hooks:
                self.add_hook(name, hook)
            for name, hook in bwd_hooks:
                self.add_hook(name, hook, "bwd")
            yield self
        finally:
            self._fwd_hooks[:], self._bwd_hooks[:] = before

    def _forward(self, fwd_hooks):
        """The calls of hooks that stay, and of these."""
        return resolved(self, [*self._fwd_hooks, *fwd_hooks], call_with_point)

    def _backward(self, bwd_hooks):
        return resolved(self, [*self._bwd_hooks, *bwd_hooks], call_with_gradient)

    @property
    def _hooked(self):
        """heed's model, all of whose passes call the hooks that stay."""
        hooks = self._forward(())
        return self._handle.with_hooks(hooks) if hooks else self._handle

    def _options(self, fwd_hooks, bwd_hooks, target, freeze=(), layers=(0, -1), stream=None):
        """Of a pass, from a :class:`metrics.Target`."""
        return {"hooks": self._forward(fwd_hooks), **target.given,
                "gradient_hooks": self._backward(bwd_hooks), "freeze": metrics.frozen(freeze),
                "layers": layers, "stream": stream}

    def _points(self, names_filter, incl_bwd) -> List[str]:
        """Names for heed's recorder; none: everything where the pass wrote it."""
        if names_filter is None:
            # A list of names: gradients are not kept where the pass wrote its activations.
            names = [name for name in self._hook_names if not _is_optional(name)]
            return names + [name + "_grad" for name in names] if incl_bwd else []
        if isinstance(names_filter, str):
            names = [names_filter]
        elif callable(names_filter):
            names = [name for name in self._hook_names if names_filter(name)]
        else:
            names = list(names_filter)
        if not all(isinstance(name, str) for name in names):
            raise InvalidArgument(f"names_filter is {names_filter!r}, expected names, or a "
                                  "function of a name")
        if not names:
            raise InvalidArgument("names_filter selects no activation")
        return names + [name + "_grad" for name in names] if incl_bwd else names


def _is_optional(name: str) -> bool:
    return name.endswith(("hook_attn_in", "hook_q_input", "hook_k_input", "hook_v_input",
                          "hook_mlp_in", "hook_result"))


def wanted_return(return_type):
    """``return_type``, if it is one."""
    if return_type not in ("logits", "loss", "both", None):
        raise InvalidArgument(f"return_type is {return_type!r}, expected 'logits', 'loss', "
                              "'both' or None")
    return return_type
