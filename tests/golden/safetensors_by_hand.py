"""safetensors with nothing but numpy: eight bytes of header length, a JSON header, the elements."""

import json
import struct

import numpy

DTYPES = {"F32": numpy.float32, "F64": numpy.float64, "I32": numpy.int32, "I64": numpy.int64}


def write(path, tensors, metadata=None):
    names = {numpy.dtype(dtype): name for name, dtype in DTYPES.items()}
    header = {"__metadata__": metadata} if metadata else {}
    offset = 0
    # Larger elements first keep every tensor aligned to its elements.
    ordered = sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize)
    for name, values in ordered:
        header[name] = {
            "dtype": names[values.dtype],
            "shape": list(values.shape),
            "data_offsets": [offset, offset + values.nbytes],
        }
        offset += values.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, values in ordered:
            file.write(numpy.ascontiguousarray(values).tobytes())


def read(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":  # the upper halves of f32
            halves = numpy.frombuffer(data[begin:end], dtype=numpy.uint16)
            values = (halves.astype(numpy.uint32) << 16).view(numpy.float32)
        else:
            values = numpy.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).copy()
    return tensors
