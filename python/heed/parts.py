"""The parts of a model as TransformerLens has them: `model.blocks[3].attn.W_Q`, `model.embed.W_E`."""

from typing import Any, List

from .hooks import HookPoint


class Part:
    """A part of a model by its name, such as ``blocks.3.attn``: its weights, its points and the parts
    that it has in turn are attributes."""

    def __init__(self, model, name: str):
        self._model = model
        self.name = name

    def _members(self) -> List[str]:
        """What follows the name in those of weights and points."""
        begin = self.name + "."
        names = [*self._model._handle.weight_names(), *self._model.hook_names]
        found = [name[len(begin):] for name in names if name.startswith(begin)]
        return list(dict.fromkeys(name.split(".")[0] for name in found))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        full = f"{self.name}.{name}"
        if full in self._model._handle.weight_names():
            return self._model.weight(full)
        if full in self._model.hook_names:
            return HookPoint(full)
        if name not in self._members():
            raise AttributeError(f"'{self.name}' has no '{name}', only {', '.join(self._members())}")
        return Part(self._model, full)

    def __dir__(self):
        return ["name", *self._members()]

    def __repr__(self):
        return f"Part({self.name!r}: {', '.join(self._members())})"
