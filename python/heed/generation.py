"""What a model of one stack writes, as it writes it."""

from typing import Iterator, List, NamedTuple, Optional

import numpy as np


class Step(NamedTuple):
    """A step of a generation: ``str(step)`` is its text."""

    token: Optional[int]  # None: text that was held back, at the end
    text: str  # whole characters that are final now; may be empty
    logits: np.ndarray  # (V), that the token was drawn from

    def __str__(self):
        return self.text


class Generation:
    """A generation, computed as it is iterated: ``for step in model.generate(…)``.

    ``tokens``, ``text`` and ``finish_reason`` ("length", "stop_token", "stop_string",
    "context_full") are those so far; :meth:`finish` computes the rest.
    """

    def __init__(self, steps):
        self._steps = steps

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = self._steps.next()
        if step is None:
            raise StopIteration
        return Step(*step)

    def finish(self) -> "Generation":
        for _ in self:
            pass
        return self

    @property
    def tokens(self) -> List[int]:
        return self._steps.finished()[0]

    @property
    def text(self) -> str:
        return self._steps.finished()[1]

    @property
    def finish_reason(self) -> Optional[str]:
        return self._steps.finished()[2] or None

    def __str__(self):
        return self.text
