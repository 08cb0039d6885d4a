"""Protocol buffers, read by their published encoding. Shares no code with heed."""

import struct


def varint(data, at):
    """The integer that begins at a byte, and the byte behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The number of each field of a message, and its value: an integer, a fraction or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            assert kind in (1, 5), f"a field of kind {kind}"
            (value,) = struct.unpack_from("<d" if kind == 1 else "<f", data, at)
            at += 8 if kind == 1 else 4
        yield key >> 3, value
