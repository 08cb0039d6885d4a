"""Interventions on heed's own engine: edits as `heed predict --ablate` takes them, without a Python
call in the pass.

    edited = heed.interventions.apply(model, zero("L2H3"), steer("resid_post1", 4, " good", " bad"))
    edited.generate("I think that")
"""

from typing import List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _inputs
from .model import Model


class Edit(dict):
    """An edit; make one with the functions of this module."""


def _edit(kind: str, where: str, first_position: int, **values) -> Edit:
    return Edit(kind=kind, where=where, first_position=first_position, **values)


def zero(where: str, first_position: int = 0) -> Edit:
    """Sets a head ("L2H3"), a neuron ("L2N17"), a block's half ("L2.attn") or any point to zero.
    ``@5``, ``@3-7`` behind it choose positions."""
    return _edit("zero", where, first_position)


def scale(where: str, factor: float, first_position: int = 0) -> Edit:
    return _edit("scale", where, first_position, factor=float(factor))


def add(where: str, vector, first_position: int = 0) -> Edit:
    """Adds a vector (width) at every position."""
    return _edit("add", where, first_position,
                 vector=_inputs.float_array(vector, "the vector").reshape(-1).tolist())


def set_row(where: str, vector, first_position: int = 0) -> Edit:
    """Sets one vector (width) at every position."""
    return _edit("set", where, first_position,
                 vector=_inputs.float_array(vector, "the vector").reshape(-1).tolist())


def steer(where: str, factor: float, toward, away=None, first_position: int = 0) -> Edit:
    """Adds factor · (mean over `toward` − mean over `away`) (Turner et al. 2023)."""
    return _edit("steer", where, first_position, factor=float(factor), toward=toward,
                 away=away)


def mean(where: str, texts: Sequence, first_position: int = 0) -> Edit:
    """Sets the mean over all positions of texts."""
    return _edit("mean", where, first_position, texts=list(texts))


def take_from(where: str, text, first_position: int = 0) -> Edit:
    """Sets the values of a run on another text, which reaches to the end of the one that is edited,
    or to that of the positions that ``where`` chooses."""
    return _edit("take", where, first_position, tokens=text)


def freeze_pattern(where: str, text, first_position: int = 0) -> Edit:
    """Sets the pattern of a run on another text."""
    return _edit("freeze", where, first_position, tokens=text)


def cut_edges(where: str, edges: Sequence[Tuple[int, int]], renormalise: bool = False,
              first_position: int = 0) -> Edit:
    """Sets weights of a head's pattern from queries to keys to zero."""
    return _edit("cut", where, first_position, renormalise=bool(renormalise),
                 edges=[(int(query), int(key)) for query, key in edges])


class EditedModel(Model):
    """A model with edits, on every path: texts, batches, prompts and steps of a generation, lenses,
    attributions, heads and evaluations. It shares the weights of ``model``, obeys the hooks that
    were added to that, and takes hooks of its own."""

    def __init__(self, model: Model, edits: Sequence[Edit]):
        self.model = model
        super().__init__(model._hooked.with_edits([self._resolved(edit) for edit in edits]))

    def _resolved(self, edit: Edit) -> dict:
        ids = lambda text: self.model._one(self.model._tokens(text)).tolist()  # noqa: E731
        made = dict(edit)
        for name in ("toward", "away", "tokens"):
            if name in made:
                made[name] = [] if made[name] is None else ids(made[name])
        if "texts" in made:
            made["texts"] = [ids(text) for text in made["texts"]]
        return made

    def trace(self, text, points: Union[str, Sequence[str]]) -> dict:
        """Copies of points by their full names."""
        _, cache = self.run_with_cache(text, [points] if isinstance(points, str) else list(points),
                                       return_type=None)
        return {name: np.array(values) for name, values in cache.items()}


def apply(model, *edits: Edit) -> EditedModel:
    """The model with edits, in their order."""
    return EditedModel(model, edits)
