"""Tokenizers without a model."""

from typing import List, Sequence

import numpy as np

from . import _heed, _inputs


class Tokenizer:
    """A tokenizer by the name of its model, a tokenizer.json or a SentencePiece file."""

    def __init__(self, handle):
        self._handle = handle

    @classmethod
    def load(cls, name_or_path: str) -> "Tokenizer":
        return cls(_heed.Tokenizer.load(_inputs.name_or_path(name_or_path)))

    @classmethod
    def learn(cls, texts: Sequence[str], vocabulary_size: int) -> "Tokenizer":
        """Learns a byte-level byte-pair tokenizer from texts (Sennrich et al. 2016)."""
        return cls(_heed.Tokenizer.learn([texts] if isinstance(texts, str) else list(texts),
                                         vocabulary_size))

    @property
    def kind(self) -> str:
        return self._handle.kind

    @property
    def vocabulary_size(self) -> int:
        return self._handle.vocabulary_size

    def encode(self, text: str) -> np.ndarray:
        return np.array(self._handle.encode(text), np.int32)

    def decode(self, tokens) -> str:
        return self._handle.decode(_inputs.token_array(tokens).reshape(-1)).decode("utf-8",
                                                                                  "replace")

    def pieces(self, tokens) -> List[str]:
        array = _inputs.token_array(tokens).reshape(-1)
        return [piece.decode("utf-8", "replace") for piece in self._handle.token_texts(array)]

    def save(self, directory: str) -> None:
        self._handle.save(str(directory))
