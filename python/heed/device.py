"""Arrays on a GPU, which PyTorch and others share without a copy."""

from typing import Optional, Tuple

import numpy as np

from . import _heed
from .errors import InvalidArgument

CPU, CUDA = 1, 2  # of DLPack's devices


class DeviceArray:
    """Numbers (float32) in the memory of the GPU that heed computes on: what
    :meth:`heed.ActivationCache.on_device` and :meth:`heed.Model.on_device` give.

    ``torch.from_dlpack(array)`` (or CuPy's, or JAX's) is a tensor of the same memory, by the array
    API's protocol, without a copy; ``np.asarray(array)`` is a copy on the processor. The memory is
    there for as long as the array or such a tensor is, also when the model was closed. It is not to
    be written to: heed reads it too. Only DLPack 1.0 and later can say so to a library
    (``max_version``); ``tensor.clone()`` is a tensor of one's own.
    """

    def __init__(self, memory):
        self._memory = memory

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(self._memory.shape)

    @property
    def strides(self) -> Tuple[int, ...]:
        """Elements from one index to the next, of each dimension."""
        return tuple(self._memory.strides)

    @property
    def ndim(self) -> int:
        return len(self._memory.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self._memory.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float32)

    @property
    def device(self) -> str:
        """Such as "cuda:0"."""
        return f"cuda:{self._memory.device}"

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __getitem__(self, index) -> "DeviceArray":
        """Without the first dimension, at an index of it; slices are PyTorch's."""
        if isinstance(index, (bool, np.bool_)) or not isinstance(index, (int, np.integer)):
            raise InvalidArgument(f"an index of an array on {self.device} is an integer, not {index!r}: "
                                  "torch.from_dlpack(array) takes any")
        if not self.ndim or not -len(self) <= index < len(self):
            raise IndexError(f"index {index} does not exist in an array of the shape {self.shape}")
        return DeviceArray(self._memory.at(int(index) % len(self)))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"the array is on {self.device}: NumPy's is a copy")
        array = self._memory.here()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """(2, number of the device): 2 is CUDA."""
        return (CUDA, self._memory.device)

    def __dlpack__(self, *, stream: Optional[int] = None,
                   max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None):
        """A capsule of the memory, for the ``from_dlpack`` of another library.

        ``stream``: the stream of CUDA that reads it: None or 1 the legacy default stream, 2 that of
        each thread, or an address. heed has then finished what it launched; −1 does not wait.
        ``max_version``: (1, 0) or later gives "dltensor_versioned", which says that the memory is
        read-only, else "dltensor". ``copy=True`` is a copy on the GPU, which may be written to.
        ``dl_device``: that of the array, or (1, 0), for a copy on the processor.

        Raises ValueError for other streams, versions and values of ``copy``, and BufferError for
        another device, and for the processor without a copy.
        """
        _check_stream(stream)
        is_versioned = _is_versioned(max_version)
        if copy not in (None, True, False):
            raise InvalidArgument(f"copy is {copy!r}, expected True, False or None")
        if dl_device is not None and tuple(dl_device) == (CPU, 0):
            if copy is False:
                raise BufferError(f"an array on {self.device} is on the CPU only as a copy")
            return self.__array__().__dlpack__()
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"an array on {self.device} cannot be had on DLPack's device "
                              f"{tuple(dl_device)}, only on {self.__dlpack_device__()} and the CPU, (1, 0)")
        memory = self._memory.copied() if copy else self._memory
        if stream != -1:
            _heed.wait_for_device()
        return memory.versioned_capsule() if is_versioned else memory.capsule()

    def __repr__(self):
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"


def _check_stream(stream):
    if stream is None:
        return
    if isinstance(stream, bool) or not isinstance(stream, (int, np.integer)) or stream < -1 or stream == 0:
        raise InvalidArgument(f"the stream is {stream!r}, expected None, -1 (do not wait), 1 (the legacy "
                              "default stream), 2 (that of each thread) or the address of one; 0 may mean "
                              "either")


def _is_versioned(max_version):
    if max_version is None:
        return False
    try:
        major, _ = max_version
        return int(major) >= 1
    except (TypeError, ValueError):
        raise InvalidArgument(f"max_version is {max_version!r}, expected (major, minor)") from None
