"""What is differentiated: logits, weights of logits or of points, functions of logits."""

import numpy as np

from . import _inputs
from .errors import InvalidArgument


class Target:
    """What ``logit_target`` says, as a pass takes it; ``value`` is that of a function, once the pass
    has run.

    None is the mean next-token loss. Others are a list of (position, token id, weight) of logits;
    weights of all logits, (B, T, V), or a list of (1, T, V) where the lengths of texts differ; a
    dict of weights by the names of points (and of logits, "logits"), each of their shape; or a
    function of logits, of the same forms, that returns (value, gradient).
    """

    def __init__(self, target, read):
        self._read = read
        self._function = target if callable(target) else None
        self.value = None
        self.given = {"logits": [], "logit_weights": None, "point_weights": [],
                      "metric": self._call if callable(target) else None}
        if target is None or callable(target):
            return
        if isinstance(target, dict):
            points = dict(target)
            self._weigh(points.pop("logits", None))
            self.given["point_weights"] = [
                (name, _batched(weights, f"the weights of {name!r}", 3))
                for name, weights in points.items()]
            if not target:
                raise InvalidArgument("logit_target weights nothing, expected names of points")
        elif _is_triples(target):
            self.given["logits"] = _inputs.gradient_target(target)
        else:
            self._weigh(target)

    def _weigh(self, weights):
        if weights is None:
            return
        what = "weights of logits"
        expected = "expected an array (B, T, V), or a list of (position, token id, weight)"
        if not self._read.lengths and (not 2 <= np.ndim(weights) <= 3 or np.shape(weights)[-1] < 3):
            raise InvalidArgument(f"{what} have the shape {np.shape(weights)}, {expected}")
        self.given["logit_weights"] = self._padded(weights, what)

    def _padded(self, values, what):
        """(B, T, V) of one array, or of one each text."""
        lengths = self._read.lengths
        if not lengths:
            return _batched(values, what, 3)
        if len(values) != len(lengths):
            raise InvalidArgument(f"{what} are of {len(values)} texts, expected {len(lengths)}")
        rows = [_batched(row, what, 3) for row in values]
        for row, length in zip(rows, lengths):
            if row.shape[:2] != (1, length):
                raise InvalidArgument(f"{what} of a text have the shape {row.shape}, expected "
                                      f"(1, {length}, V)")
        padded = np.zeros((len(rows), max(lengths), rows[0].shape[2]), np.float32)
        for b, row in enumerate(rows):
            if row.shape[2] != padded.shape[2]:
                raise InvalidArgument(f"{what} have {row.shape[2]} and {padded.shape[2]} columns")
            padded[b, :row.shape[1]] = row[0]
        return padded

    def _call(self, logits):
        logits = logits.copy()  # heed's own memory is not for writing
        found = self._function(self._read.each(logits))
        if not isinstance(found, tuple) or len(found) != 2:
            raise InvalidArgument(f"the metric returned {type(found).__name__}, expected a pair "
                                  "(value, gradient of the logits); heed.torch.metric() makes one "
                                  "of a function of PyTorch's")
        value, gradient = found
        self.value = float(value)
        gradient = self._padded(gradient, "the gradient of the metric")
        if gradient.shape != logits.shape:
            raise InvalidArgument(f"the metric returned a gradient of shape {gradient.shape}, "
                                  f"expected that of the logits, {logits.shape}")
        return gradient


def _is_triples(target):
    if isinstance(target, np.ndarray) or not isinstance(target, (list, tuple)):
        return not hasattr(target, "__array__") and not hasattr(target, "__dlpack__")
    return all(isinstance(each, (list, tuple)) and len(each) == 3 and not np.ndim(each[0])
               for each in target)


def _batched(values, what, rank):
    """Of ``rank`` dimensions or more; one text may leave out the first."""
    array = _inputs.float_array(values, what)
    array = array[None] if array.ndim == rank - 1 else array
    if array.ndim < rank:
        raise InvalidArgument(f"{what} have the shape {array.shape}, expected that of the values")
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{what} are not all finite")
    return array


def frozen(freeze):
    """Names of what backward takes for constants."""
    return [freeze] if isinstance(freeze, str) else list(freeze)


def layer_range(model, start_at_layer, stop_at_layer):
    """[begin, end) of blocks, −1 for the last one's end; negative layers count from the end."""
    layers = model.cfg.n_layers

    def layer(given, what):
        counted = int(given) + (layers if given < 0 else 0)
        if not 0 <= counted <= layers:
            raise InvalidArgument(f"{what} is {given}, expected -{layers} to {layers}")
        return counted

    begin = 0 if start_at_layer is None else layer(start_at_layer, "start_at_layer")
    end = -1 if stop_at_layer is None else layer(stop_at_layer, "stop_at_layer")
    if end >= 0 and end < begin:
        raise InvalidArgument(f"the pass stops at layer {end}, before it starts at {begin}")
    return begin, end
