"""Arguments as heed's arrays: refused with the value and what was expected, never guessed."""

import functools
import inspect
import os

import numpy as np

from . import _heed
from .device import CPU, CUDA
from .errors import InvalidArgument

def _here(values, what):
    """The same values, on the processor: those on the GPU that heed computes on as a copy."""
    device = getattr(values, "__dlpack_device__", None)
    if device is None or isinstance(values, np.ndarray):
        return values
    kind, number = device()
    if kind == CPU:
        return values
    opened = _heed.cuda_device()
    if kind != CUDA or number != opened:
        expected = "the CPU" if opened is None else f"the CPU or cuda:{opened}"
        raise InvalidArgument(f"{what} are on device {getattr(values, 'device', (int(kind), number))}, "
                              f"expected {expected}")
    return _heed.copy_from_device(_capsule(values, what), what)


def _capsule(values, what):
    """Of an array on the GPU. Its producer has the legacy default stream wait for what it launched,
    and heed waits for all streams."""
    try:
        try:
            return values.__dlpack__(stream=1, max_version=(1, 0))
        except TypeError:  # from before the argument was in the standard
            return values.__dlpack__(stream=1)
    except Exception as error:
        raise InvalidArgument(f"{what} on {getattr(values, 'device', 'the GPU')} cannot be read by "
                              f"DLPack: {error}") from error


def _without_masked(values, what):
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidArgument(f"{what} have {np.ma.count_masked(values)} masked elements, expected "
                              "none: fill them, or leave them out")


def name_or_path(value) -> str:
    """What names a model, a file or a directory."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise InvalidArgument(f"the name or path is {value!r} ({type(value).__name__}), expected a "
                              "str or a path")
    return os.fspath(value)


def gradient_target(target):
    """(position, token id, weight) of logits, as heed takes them."""
    if target is None:
        return []
    try:
        return [(int(position), int(token), float(weight)) for position, token, weight in target]
    except (TypeError, ValueError):
        raise InvalidArgument(f"target is {target!r}, expected a list of (position, token id, "
                              "weight) of logits") from None


def naming_arguments(function):
    """Calls with arguments that a function does not have name those that it has.

    ``**sampling`` stands for the sampling options, with their defaults.
    """
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.kind != each.VAR_KEYWORD]
    if len(parameters) < len(signature.parameters):
        parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
                       for name, default in _heed.sampling_defaults()]
    known = [parameter.name for parameter in parameters if parameter.name != "self"]

    @functools.wraps(function)
    def call(*arguments, **options):
        unknown = [name for name in options if name not in known]
        if unknown:
            raise InvalidArgument(f"{function.__name__}() has no argument {unknown[0]!r}, expected "
                                  f"{', '.join(known)}")
        return function(*arguments, **options)

    call.__signature__ = signature.replace(parameters=parameters)
    return call


def token_array(values):
    """Token ids of any integer array or list as a dense int32 array (T,) or (B, T)."""
    values = _here(values, "tokens")
    _without_masked(values, "tokens")
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
    values = _here(values, f"the values that the hook at '{name}' returned")
    _without_masked(values, f"the values that the hook at '{name}' returned")
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
    values = _here(values, what)
    _without_masked(values, what)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"{what} must be numbers: {error}") from None
    if array.dtype.kind not in "fiu":
        raise InvalidArgument(f"{what} have the type {array.dtype}, expected numbers")
    return np.ascontiguousarray(array, dtype=np.float32)


def of_each(tokens, count, what):
    """A token of each text, where there is one for all, or as many; texts and ids as they are."""
    if tokens is None or isinstance(tokens, (str, int, np.integer)):
        return [tokens] * count
    if len(tokens) != count:
        raise InvalidArgument(f"{what} has {len(tokens)} tokens for {count} texts, expected one each, "
                              "or one for all")
    return [token if isinstance(token, str) else int(token) for token in tokens]


def mean_and_error(values):
    """Over texts: the mean, and its standard error."""
    stacked = np.stack(values)
    return stacked.mean(0), stacked.std(0, ddof=1) / np.sqrt(len(stacked))
