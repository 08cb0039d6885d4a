"""What a pass reads, and the calls of heed that read it: one text (or a batch), or a source and a
target."""

from . import _heed


class OneText:
    """Tokens (B, T) of a model of one stack, and their types, of the same shape or none."""

    record = staticmethod(_heed.record)

    def __init__(self, tokens, types):
        self.tokens = tokens
        self.of_pass = (tokens, types)

    def losses_of(self, handle, logits):
        return _heed.losses_of(logits, self.tokens)


class Pair:
    """A source (M) and a target (T) of a translator."""

    record = staticmethod(_heed.record_pair)

    def __init__(self, source, target):
        self.source, self.target = source, target
        self.of_pass = (source, target)

    def losses_of(self, handle, logits):
        return _heed.losses_of_next(logits, handle.next_tokens(self.target))
