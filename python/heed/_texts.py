"""What a pass reads, and the calls of heed that read it: texts, or sources and targets.

Several texts of different lengths are read in one pass, which gives arrays of the longest. What
belongs to each is cut out of them.
"""

import numpy as np

from . import _heed


class _Texts:
    """``lengths`` of the texts that values are cut by: none where they are one array."""

    lengths: list = []
    unknown = 0  # tokens of a text whose loss is not known

    def each(self, values, less=0):
        """Of (B, T, …) what belongs to each text, or all where the texts are one array."""
        if not self.lengths:
            return values
        return [values[b:b + 1, :length - less] for b, length in enumerate(self.lengths)]

    def of_each(self, function, values):
        return [function(value) for value in values] if self.lengths else function(values)

    def each_loss(self, losses):
        return self.each(losses, self.unknown)


class OneText(_Texts):
    """Tokens of a model of one stack, (B, T) or a list of (T,), and their types, alike or none."""

    unknown = 1

    def __init__(self, tokens, types):
        self.tokens = tokens
        if isinstance(tokens, list):
            self.lengths = [len(row) for row in tokens]
            tokens = np.concatenate(tokens)
        self.of_pass = (tokens, types, self.lengths)

    def losses_of(self, handle, logits):
        if not self.lengths:
            return _heed.losses_of(logits, self.tokens)
        return [_heed.losses_of(own, row[None]) for own, row in zip(logits, self.tokens)]


class Pair(_Texts):
    """A source (M) and a target (T) of a translator, or a list of each."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        if isinstance(source, list):
            self.lengths = [len(row) for row in target]
            self.of_pass = (source, target)
        else:
            self.of_pass = ([source], [target])

    def losses_of(self, handle, logits):
        if not self.lengths:
            return _heed.losses_of_next(logits, handle.next_tokens(self.target))
        return [_heed.losses_of_next(own, handle.next_tokens(target))
                for own, target in zip(logits, self.target)]
