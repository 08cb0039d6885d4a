"""Translation with an encoder and a decoder (Marian, BART, T5, heed's own)."""

from typing import List, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _heed, _inputs


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


class Translator:
    """``heed.Translator.load("translator")`` is the built-in one, English to German."""

    def __init__(self, handle):
        self._handle = handle

    @classmethod
    def load(cls, name_or_directory: str = "translator") -> "Translator":
        return cls(_heed.Translator.load(str(name_or_directory)))

    @property
    def name(self) -> str:
        return self._handle.name

    def translate(self, text: Union[str, Sequence[str]], beams: int = 5,
                  length_penalty: float = 1.0, best: int = 1, longest: int = 0,
                  alignment: bool = False) -> Union[Translation, List[Translation]]:
        """Translates one text, or several together. ``alignment``: also the cross-attention."""
        texts = [text] if isinstance(text, str) else list(text)
        found = self._handle.translate(texts, beams, length_penalty, best, longest, alignment)
        all_of_them = [Translation(source, [Hypothesis(*one) for one in hypotheses], attention)
                       for source, hypotheses, attention in found]
        return all_of_them[0] if isinstance(text, str) else all_of_them

    def to_tokens(self, source: str) -> np.ndarray:
        return np.array(self._handle.encode(source), np.int32)

    def source_pieces(self, tokens) -> List[str]:
        return self._handle.source_pieces(_inputs.token_array(tokens).reshape(-1))

    def target_pieces(self, tokens) -> List[str]:
        return self._handle.target_pieces(_inputs.token_array(tokens).reshape(-1))

    def cross_attention(self, source, target) -> np.ndarray:
        """(L, H, T, S) of any pair of tokens."""
        return self._handle.cross_attention(_inputs.token_array(source).reshape(-1),
                                            _inputs.token_array(target).reshape(-1))
