"""The microworld: short English stories of a grammar, with the truth about them."""

import json
from typing import Any, Dict, List, Sequence

from . import _heed


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
