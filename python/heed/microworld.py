"""The microworld: short English stories of a grammar, with the truth about them."""

import json
from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np

from . import _heed
from .errors import InvalidArgument


def kinds() -> List[str]:
    """The kinds of stories, such as "mystery"."""
    return _heed.microworld_kinds()


def story(seed: int, index: int, kinds: Sequence[str] = ()) -> Dict[str, Any]:
    """Story ``index`` of a seed: its "text", exact "log_probability", and the truth: senses of
    words, who names mean, which adjectives belong to a noun, who did it, and what decides it.
    Offsets are bytes of the text."""
    return json.loads(_heed.microworld_story(seed, index, list(kinds)))


def log_probability(text: str) -> float:
    """Natural logarithm of a text's probability under the grammar; -inf without derivation."""
    return _heed.microworld_log_probability(text)


class Evidence(NamedTuple):
    """A beginning of a story, and what decides its next word."""

    subject: str  # such as "mole/animal"
    text: str
    positions: List[int]  # of the tokens in which the words that decide begin
    answer: int  # the token that follows

    def __str__(self):
        return f"{self.subject}: {self.text}"


def evidence(model, subject: str, count: int, seed: int = 1, min_tokens: int = 2,
             max_stories: int = 20000) -> List[Evidence]:
    """The first so many cases of a ``subject`` in the stories of a seed, such as "culprit", "pronoun"
    or "mole" (any of its senses; "mole/skin": one), as tokens of a model of the microworld. The texts
    are stories from their beginnings. ``min_tokens``: shorter texts are left out."""
    found: List[Evidence] = []
    kinds_of: Dict[str, List[str]] = {"culprit": ["mystery"], "adjective": [], "fate": ["creature"]}
    wanted = kinds_of.get(subject.split("/")[0], ["album"])
    for index in range(max_stories):
        known = story(seed, index, wanted)
        whole = known["text"].encode()
        for case in known["evidence"]:
            if subject not in (case["subject"], case["subject"].split("/")[0]):
                continue
            before = whole[:case["word"]["end"]]
            tokens = model.to_tokens(before.decode())[0]
            after = model.to_tokens((before + whole[len(before):case["answer"]["end"]]).decode())[0]
            if len(tokens) < min_tokens or len(after) == len(tokens):
                continue
            ends = np.cumsum([len(piece.encode()) for piece in model.to_str_tokens(tokens)])
            positions = [int(np.searchsorted(ends, word["begin"], side="right"))
                         for word in case["evidence"]]
            found.append(Evidence(case["subject"], before.decode(), positions,
                                  int(after[len(tokens)])))
            if len(found) == count:
                return found
    raise InvalidArgument(f"{max_stories} stories of seed {seed} have {len(found)} cases of "
                          f"{subject!r}, expected {count}")
