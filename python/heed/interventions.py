"""Interventions on heed's own engine: edits as `heed predict --ablate` takes them, without a Python
call in the pass. One form for models of one stack and translators.

    edited = heed.interventions.apply(model, ablate("L2H3"), steer("resid_post1", 4, " good", " bad"))
    edited.generate("I think that")
    edited = heed.interventions.apply(translator, ablate("cross.L1H2"), mask("encoder", "causal"))
    edited.translate("A dog runs.")

``where`` is a head ("L2H3"), a neuron ("L2N17"), a block ("L2"), its half ("L2.attn") or any point,
in a translator after its stack or attention ("cross.L1H2", "encoder.L0", "decoder.L1.mlp"); ``@5``,
``@3-7`` or ``@4-`` after it choose positions. Texts of a translator are sources, which it
translates itself, or pairs (source, target).
"""

from typing import List, Sequence, Tuple, Union

import numpy as np

from . import _inputs
from .model import Model


class Edit(dict):
    """An edit; make one with the functions of this module."""


def _edit(kind: str, where: str, first_position: int, **values) -> Edit:
    return Edit(kind=kind, where=where, first_position=first_position, **values)


def _vector(vector) -> List[float]:
    return _inputs.float_array(vector, "the vector").reshape(-1).tolist()


def ablate(where: str, first_position: int = 0) -> Edit:
    """Sets to zero."""
    return _edit("ablate", where, first_position)


def mean(where: str, texts: Sequence, first_position: int = 0) -> Edit:
    """Sets the mean over all positions of texts."""
    return _edit("mean", where, first_position, texts=list(texts))


def scale(where: str, factor: float, first_position: int = 0) -> Edit:
    return _edit("scale", where, first_position, factor=float(factor))


def add(where: str, vector, first_position: int = 0) -> Edit:
    """Adds a vector (width) at every position."""
    return _edit("add", where, first_position, vector=_vector(vector))


def set_row(where: str, vector, first_position: int = 0) -> Edit:
    """Sets one vector (width) at every position."""
    return _edit("set", where, first_position, vector=_vector(vector))


def steer(where: str, factor: float, toward, away=None, first_position: int = 0) -> Edit:
    """Adds factor · (mean over `toward` − mean over `away`) (Turner et al. 2023)."""
    return _edit("steer", where, first_position, factor=float(factor), toward=toward,
                 away=away)


def replace(where: str, text, first_position: int = 0) -> Edit:
    """Sets the values of a run on another text, which reaches to the end of the one that is edited,
    or to that of the positions that ``where`` chooses."""
    return _edit("replace", where, first_position, text=text)


def freeze(where: str, text, first_position: int = 0) -> Edit:
    """Sets the patterns of a head, a block, or all of an attention ("self", "encoder", "decoder",
    "cross") from a run on another text."""
    return _edit("freeze", where, first_position, text=text)


def cut(where: str, edges: Sequence[Tuple[int, int]], renormalise: bool = False,
        first_position: int = 0) -> Edit:
    """Sets weights of patterns from queries to keys to zero."""
    return _edit("cut", where, first_position, renormalise=bool(renormalise),
                 edges=[(int(query), int(key)) for query, key in edges])


def cut_words(where: str, text, query: int, key: int, renormalise: bool = False,
              first_position: int = 0) -> Edit:
    """Cuts the edges from the positions that write a word of ``text`` to the tokens of another.
    Words are counted from 0, with the tokens between them; of "cross", ``key`` is one of the
    source."""
    return _edit("cut_words", where, first_position, text=text, query=int(query), key=int(key),
                 renormalise=bool(renormalise))


def mask(where: str, mask: str = "causal", first_position: int = 0) -> Edit:
    """Gives attention a "causal" mask, or "none" where it has one."""
    return _edit("mask", where, first_position, mask=mask)


# Names of earlier releases.
zero, take_from, freeze_pattern, cut_edges = ablate, replace, freeze, cut


def _resolved(model: Model, edit: Edit) -> dict:
    """The edit with ids, (source, target), for its texts."""
    made = dict(edit)
    for name in ("toward", "away", "text"):
        if name in made:
            made[name] = ([], []) if made[name] is None else model._text_ids(made[name])
    if "texts" in made:
        made["texts"] = [model._text_ids(text) for text in made["texts"]]
    return made


class EditedModel(Model):
    """A model with edits, on every path: texts, batches, prompts and steps of a generation or a
    search, lenses, attributions, heads and evaluations. It shares the weights of ``model``, obeys
    the hooks that were added to that, and takes hooks of its own."""

    def __init__(self, model: Model, edits: Sequence[Edit]):
        self.model = model
        made = [_resolved(model, edit) for edit in edits]
        # Hooks of a translator see one hypothesis alone, and stay hooks.
        handle = model._handle if model.is_translator else model._hooked
        super().__init__(handle.with_edits(made))
        if model.is_translator:
            self._fwd_hooks = list(model._fwd_hooks)

    def trace(self, text=None, points: Union[str, Sequence[str]] = (), *, source=None,
              target=None) -> dict:
        """Copies of points by their full names."""
        _, cache = self.run_with_cache(text, [points] if isinstance(points, str) else list(points),
                                       return_type=None, source=source, target=target)
        return {name: np.array(values) for name, values in cache.items()}


def apply(model: Model, *edits: Edit) -> EditedModel:
    """The model with edits, in their order."""
    return EditedModel(model, edits)
