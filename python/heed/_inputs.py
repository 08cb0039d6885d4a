"""Arguments as heed's arrays: refused with the value and what was expected, never guessed."""

import numpy as np

from .errors import InvalidArgument

_CPU = 1  # of DLPack's devices


def _on_the_cpu(values, what):
    device = getattr(values, "__dlpack_device__", None)
    if device is None or isinstance(values, np.ndarray):
        return
    kind, number = device()
    if kind != _CPU:
        raise InvalidArgument(f"{what} are on device {getattr(values, 'device', (kind, number))}, "
                              "expected the CPU")


def token_array(values):
    """Token ids of any integer array or list as a dense int32 array (T,) or (B, T)."""
    _on_the_cpu(values, "tokens")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"tokens must be integers (T,) or (B, T): {error}") from None
    if array.dtype == object or array.dtype.kind not in "iu":
        if array.size > 0:
            raise InvalidArgument(f"tokens have the type {array.dtype}, expected integers")
        array = array.astype(np.int64)
    if array.ndim not in (1, 2):
        raise InvalidArgument(f"tokens have the shape {array.shape}, expected (T,) or (B, T)")
    limits = np.iinfo(np.int32)
    if array.size > 0 and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        worst = int(array.max()) if int(array.max()) > limits.max else int(array.min())
        raise InvalidArgument(f"token id {worst} does not fit 32 bits")
    return np.ascontiguousarray(array, dtype=np.int32)


def assign(target, values, name):
    """Copies what a hook returned into heed's array ``target``."""
    _on_the_cpu(values, f"the values that the hook at '{name}' returned")
    try:
        array = np.asarray(values)
    except Exception as error:
        raise InvalidArgument(f"the hook at '{name}' returned {type(values).__name__}, expected "
                              f"None or an array of shape {target.shape}: {error}") from None
    if array.dtype.kind not in "fiub":
        raise InvalidArgument(f"the hook at '{name}' returned values of type {array.dtype}, "
                              "expected numbers, or None")
    if array.shape != target.shape:
        raise InvalidArgument(f"the hook at '{name}' returned values of shape {array.shape}, "
                              f"expected {target.shape}")
    np.copyto(target, array, casting="unsafe")


def float_array(values, what):
    """Numbers as a dense float32 array."""
    _on_the_cpu(values, what)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"{what} must be numbers: {error}") from None
    if array.dtype.kind not in "fiu":
        raise InvalidArgument(f"{what} have the type {array.dtype}, expected numbers")
    return np.ascontiguousarray(array, dtype=np.float32)
