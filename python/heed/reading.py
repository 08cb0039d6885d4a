"""What a model has read, and the words of a text that it has not."""

from typing import Any, List, NamedTuple, Optional


class Read(NamedTuple):
    """What training read."""

    title: str  # in one line
    tokens: int
    words: Optional[int]  # different words, read whole often enough; None: not known
    target_words: Optional[int]  # of a translator's targets


class UnreadWord(NamedTuple):
    text: str
    begin: int  # bytes of the text in UTF-8, [begin, end)
    end: int


class Unread(NamedTuple):
    """Words of a text that a model has not read: ``str(unread)`` says so."""

    words: List[UnreadWord]  # in order, every occurrence
    of: int  # different words of the text
    note: str  # empty where every word was read

    def __str__(self):
        return self.note


class Reader:
    """Of models: what they have read."""

    _handle: Any

    @property
    def read(self) -> Optional[Read]:
        """What training read; None where the model has no reading.json, as published ones."""
        known = self._handle.read
        return None if known is None else Read(*known)

    def unread(self, text: str) -> Optional[Unread]:
        """The words of a text (of a translator's source) that the model has not read whole; None
        where it is not known which words it has read."""
        found = self._handle.unread(text)
        if found is None:
            return None
        words, of, note = found
        return Unread([UnreadWord(*word) for word in words], of, note)
