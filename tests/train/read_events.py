"""The scalars in event files of TensorBoard, as JSON lines: read_events.py FILE.

Reads records, checksums and protocol buffers by their published definitions and shares no code with
heed. Exits with a message where a byte is not as they say.
"""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from protobuf import fields


def crc32c(data):
    """Bit by bit: the CRC of Castagnoli's polynomial, reflected."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(data):
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at:at + 8]), f"the length at byte {at}"
        content = data[at + 12:at + 12 + length]
        assert len(content) == length, f"the record at byte {at} is cut off"
        (check,) = struct.unpack_from("<I", data, at + 12 + length)
        assert check == masked(content), f"the record at byte {at}"
        yield content
        at += length + 16


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    assert crc32c(b"123456789") == 0xE3069283, "the check value of CRC-32C"
    for index, event in enumerate(records(data)):
        members = dict(fields(event))
        row = {"wall_time": members[1], "step": members.get(2, 0)}
        if index == 0:
            assert members[3] == b"brain.Event:2", members
            continue
        if 7 in members:
            row["session"] = dict(fields(members[7]))[1]
        if 5 in members:
            row["scalars"] = {}
            for field, value in fields(members[5]):
                assert field == 1, field
                scalar = dict(fields(value))
                row["scalars"][scalar[1].decode()] = scalar[2]
        yield row


if __name__ == "__main__":
    for line in read(sys.argv[1]):
        print(json.dumps(line))
