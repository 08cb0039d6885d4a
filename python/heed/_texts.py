"""What a pass reads, and the calls of heed that read it: texts, or sources and targets.

Several texts of different lengths are read in one pass, which gives arrays of the longest. What
belongs to each is cut out of them.
"""

import numpy as np

from . import _heed, _inputs
from .errors import InvalidArgument


_NONE = np.empty(0, np.int32)


class _Texts:
    """``of_pass``: what heed's passes read, tokens, their types, lengths, sources and their lengths.
    ``lengths`` of the texts that values are cut by: none where they are one array."""

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

    def losses_of(self, handle, logits):
        """Of logits (B, T, V), or of a list of (1, T, V)."""
        if self.lengths:
            return [self._losses(handle, *one) for one in zip(logits, self.target)]
        return self._losses(handle, logits, self.target)

    def _losses(self, handle, logits, tokens):
        rows = tokens if tokens.ndim == 2 else tokens[None]
        next_tokens = [token for row in rows for token in handle.next_tokens(row)]
        return _heed.losses_from_logits(logits, next_tokens)[:, :rows.shape[1] - self.unknown]


class OneText(_Texts):
    """Tokens of a model of one stack, (B, T) or a list of (T,), and their types, alike or none."""

    unknown = 1

    def __init__(self, tokens, types):
        self.tokens = self.target = tokens
        if isinstance(tokens, list):
            self.lengths = [len(row) for row in tokens]
            tokens = np.concatenate(tokens)
        self.of_pass = (tokens, types, self.lengths, _NONE, [])


class Pair(_Texts):
    """A source (M) and a target (T) of a translator, or a list of each."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        if isinstance(source, list):
            self.lengths = [len(row) for row in target]
            self.of_pass = (np.concatenate(target), _NONE, self.lengths, np.concatenate(source),
                            [len(row) for row in source])
        else:
            self.of_pass = (target, _NONE, [], source, [])


def types_of(token_types, tokens) -> np.ndarray:
    """As heed takes them: in the shape of the tokens, or none."""
    if token_types is None or (isinstance(token_types, np.ndarray) and token_types.size == 0):
        return np.empty(0, np.int32)
    if isinstance(tokens, list):
        rows = [_inputs.token_array(row).reshape(-1) for row in token_types]
        lengths, wanted = [len(row) for row in rows], [len(row) for row in tokens]
        if lengths != wanted:
            raise InvalidArgument(f"token_types have the lengths {lengths}, expected those of "
                                  f"the texts, {wanted}")
        return np.concatenate(rows)
    types = _inputs.token_array(token_types)
    types = types[None] if types.ndim == 1 else types
    if types.shape != tokens.shape:
        raise InvalidArgument(f"token_types have the shape {types.shape}, expected that of the "
                              f"tokens, {tokens.shape}")
    return types


def unpadded(input, token_types, attention_mask):
    """Texts of their own lengths, of padded tokens (B, T), or streams (B, T, C)."""
    if attention_mask is None:
        return input, token_types
    mask, padded = np.asarray(attention_mask), np.asarray(input)
    if mask.ndim != 2 or mask.dtype.kind not in "iub" or padded.shape[:2] != mask.shape:
        raise InvalidArgument(f"attention_mask has the shape {mask.shape}, expected that of the "
                              f"tokens (B, T), here {padded.shape[:2]}, of 0 and 1")
    rows = []
    for b, row in enumerate(mask):
        kept = np.flatnonzero(row)
        if not np.isin(row, (0, 1)).all() or len(kept) == 0 or kept[-1] - kept[0] + 1 != len(kept):
            raise InvalidArgument(f"attention_mask of text {b} is not one run of ones, with zeros "
                                  "before or after it")
        rows.append(slice(kept[0], kept[-1] + 1))
    types = None if token_types is None else np.asarray(token_types)
    if types is not None and types.shape != mask.shape:
        raise InvalidArgument(f"token_types have the shape {types.shape}, expected that of the "
                              f"mask, {mask.shape}")
    return ([padded[b, row] for b, row in enumerate(rows)],
            None if types is None else [types[b, row] for b, row in enumerate(rows)])


def stream_of(input, channels):
    """Texts of unknown tokens, and the stream (B, T, C) that their first layer reads."""
    rows = input if isinstance(input, (list, tuple)) else [input]
    arrays = [_inputs.float_array(row, "the stream") for row in rows]
    if len(arrays) == 1 and arrays[0].ndim == 3:
        stream = arrays[0]
        lengths = [stream.shape[1]] * len(stream)
    else:
        arrays = [row[0] if row.ndim == 3 and len(row) == 1 else row for row in arrays]
        for row in arrays:
            if row.ndim != 2:
                raise InvalidArgument(f"the stream has the shape {row.shape}, expected (B, T, "
                                      f"{channels}), or (T, {channels}) each")
        lengths = [len(row) for row in arrays]
        stream = np.zeros((len(arrays), max(lengths), arrays[0].shape[1]), np.float32)
        for b, row in enumerate(arrays):
            if row.shape[1] != stream.shape[2]:
                raise InvalidArgument(f"the streams have {row.shape[1]} and {stream.shape[2]} "
                                      "channels")
            stream[b, :len(row)] = row
    if stream.shape[2] != channels:
        raise InvalidArgument(f"the stream has {stream.shape[2]} channels, expected "
                              f"{channels}")
    tokens = [np.zeros(length, np.int32) for length in lengths]
    alike = len(set(lengths)) == 1
    return OneText(np.stack(tokens) if alike else tokens, np.empty(0, np.int32)), stream
