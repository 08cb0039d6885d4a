"""What a translator writes."""

from typing import List, NamedTuple, Optional

import numpy as np


class Hypothesis(NamedTuple):
    text: str
    tokens: List[int]
    log_probability: float
    score: float
    finished: bool


class Translation(NamedTuple):
    source: List[int]  # tokens that the encoder reads
    hypotheses: List[Hypothesis]  # the best first
    cross_attention: Optional[np.ndarray]  # (L, H, T, S) of the best one, where it was asked for

    @property
    def text(self) -> str:
        return self.hypotheses[0].text
