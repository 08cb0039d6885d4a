"""Passes whose activations are arrays: of a cache that was stored, or that a user filled."""

import numpy as np

from . import _heed
from .errors import InvalidArgument, NotFound
from .names import get_act_name

# Of a pass, beside its activations.
PREFIX = "heed."
META = ("tokens", "source_tokens", "sequences", "lengths", "source_lengths", "positions")


class StoredPass:
    """A pass that was stored, read as heed's own is."""

    def __init__(self, arrays, model=None):
        self.model = model
        # Whether these are values of a pass, so that what follows from them can be computed.
        self.of_pass = bool(arrays.get(PREFIX + "of_pass", True))
        meta = {key: np.asarray(arrays[PREFIX + key]).tolist() for key in META}
        self.tokens, self.source_tokens = meta["tokens"], meta["source_tokens"]
        self.sequences, self.positions = meta["sequences"], meta["positions"]
        self.lengths, self.source_lengths = meta["lengths"], meta["source_lengths"]
        self._values = {name: values for name, values in arrays.items()
                        if not name.startswith(PREFIX)}

    def as_heeds(self):
        """The same arrays as the extension takes passes; they share their memory where they are f32."""
        numbers = {name: np.ascontiguousarray(values, np.float32)
                   for name, values in self._values.items() if values.dtype.kind in "fiub"}
        return _heed.given_activations(self.model._handle, numbers, self.lengths, self.of_pass)

    @property
    def names(self):
        return list(self._values)

    @property
    def bytes(self) -> int:
        return sum(values.nbytes for values in self._values.values())

    def has(self, name) -> bool:
        return name in self._values

    def is_lazy(self, name) -> bool:
        return False

    def at(self, name) -> np.ndarray:
        return self._values[name]

    def full_name(self, name) -> str:
        suffix = "_grad" if name.endswith("_grad") else ""
        short = get_act_name(name[:len(name) - len(suffix)]) + suffix
        found = [full for full in (name, short) if full in self._values]
        if not found:
            raise NotFound(f"'{name}' is not in the stored cache")
        return found[0]


class GivenPass(StoredPass):
    """Arrays (B, T, …) by name that a user collected: activations, or gradients under their names."""

    def __init__(self, arrays, model):
        self.model, self.of_pass = model, False
        names = {name: np.asarray(values) for name, values in arrays.items()}
        if not names:
            raise InvalidArgument("a cache of no activations")
        for name, values in names.items():
            if not isinstance(name, str) or values.ndim < 3:
                raise InvalidArgument(f"the values at {name!r} have the shape {values.shape}, expected "
                                      "(B, T, …) at a name")
        known = set(model.hook_names)
        self._values = {name if name in known else get_act_name(name): values
                        for name, values in names.items()}
        first = next((values for name, values in self._values.items()
                      if not name.endswith(("hook_pattern", "hook_attn_scores"))), None)
        shape = next(iter(self._values.values())).shape if first is None else first.shape
        self.sequences = int(shape[0])
        self.positions = int(shape[1] if first is not None else shape[2])
        self.lengths, self.source_lengths = [self.positions] * self.sequences, []
        self.tokens, self.source_tokens = [], []


class NoModel:
    """In the place of the model of a cache that was read without it."""

    def __getattr__(self, name):
        if name.startswith("_") and name != "_handle":
            raise AttributeError(name)
        raise InvalidArgument("the cache was read without its model: heed.load_cache(path, model)")
