"""Random blocks of weights in a GGUF file, and what they stand for, by whole arrays of bits.

    gguf_blocks.py write FILE             writes 1,000 random blocks of each type
    gguf_blocks.py compare FILE NUMBERS   compares f32 NUMBERS, tensor after tensor, with this
                                          module's own reading of FILE, bit for bit
"""

import struct
import sys

import numpy as np

BLOCKS = 1000
F = np.float32

# name: (number of the type, numbers of a block, bytes of a block, offsets of its f16 scales)
TYPES = {
    "f32": (0, 1, 4, []), "f16": (1, 1, 2, []), "bf16": (30, 1, 2, []), "f64": (28, 1, 8, []),
    "q4_0": (2, 32, 18, [0]), "q4_1": (3, 32, 20, [0, 2]),
    "q5_0": (6, 32, 22, [0]), "q5_1": (7, 32, 24, [0, 2]), "q8_0": (8, 32, 34, [0]),
    "q2_k": (10, 256, 84, [80, 82]), "q3_k": (11, 256, 110, [108]),
    "q4_k": (12, 256, 144, [0, 2]), "q5_k": (13, 256, 176, [0, 2]), "q6_k": (14, 256, 210, [208]),
}


def random_blocks(rng, name):
    """Any bits, with scales that are finite; (BLOCKS, bytes) u8."""
    _, _, size, scales = TYPES[name]
    if name in ("f32", "f16", "bf16", "f64"):
        numbers = rng.standard_normal(BLOCKS)
        if name == "bf16":
            return (numbers.astype(F).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(BLOCKS, 2)
        kind = {"f32": F, "f16": np.float16, "f64": np.float64}[name]
        return numbers.astype(kind).view(np.uint8).reshape(BLOCKS, size)
    blocks = rng.integers(0, 256, (BLOCKS, size), np.uint8)
    for offset in scales:
        scale = rng.standard_normal(BLOCKS).astype(np.float16)
        blocks[:, offset:offset + 2] = scale.view(np.uint8).reshape(BLOCKS, 2)
    return blocks


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def write(path):
    rng = np.random.default_rng(7)
    data, infos = b"", b""
    for name, (number, values, _, _) in TYPES.items():
        blocks = random_blocks(rng, name).tobytes()
        infos += text(name) + struct.pack("<IQQIQ", 2, values, BLOCKS, number, len(data))
        data += blocks + bytes(-len(blocks) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(TYPES), 0) + infos
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + data)


def little_bits(data, width):
    """(N, bytes) u8 to the fields of `width` bits, lowest first: (N, bytes · 8 / width) i64."""
    bits = np.unpackbits(data, axis=1, bitorder="little").astype(np.int64)
    fields = bits.reshape(len(data), -1, width)
    return (fields << np.arange(width)).sum(axis=2)


def halves(data):
    """Lower halves of all bytes, then upper ones."""
    pairs = little_bits(data, 4).reshape(len(data), -1, 2)
    return np.concatenate([pairs[:, :, 0], pairs[:, :, 1]], axis=1)


def scale_at(blocks, offset):
    return np.ascontiguousarray(blocks[:, offset:offset + 2]).view(np.float16).astype(F)  # (N, 1)


def spread_pairs(data):
    """K-quants' pairs of bits: 32 bytes hold 128 numbers, 32 for each of their four pairs."""
    fields = little_bits(data, 2).reshape(len(data), -1, 32, 4)
    return fields.transpose(0, 1, 3, 2).reshape(len(data), -1)


def spread_halves(data):
    """K-quants' halves: 32 bytes hold 64 numbers, the first 32 in the lower halves."""
    fields = little_bits(data, 4).reshape(len(data), -1, 32, 2)
    return fields.transpose(0, 1, 3, 2).reshape(len(data), -1)


def k_scales(packed):
    """12 bytes to eight scales and eight minima of six bits."""
    packed = packed.astype(np.int64)
    first, second, rest = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([first % 64, rest % 16 + first // 64 * 16], axis=1)
    minima = np.concatenate([second % 64, rest // 16 + second // 64 * 16], axis=1)
    return scales, minima


def over(groups, numbers):
    """A number of each group for each of its `numbers` numbers."""
    return np.repeat(groups, numbers, axis=1)


def unpack(name, blocks):
    if name in ("f32", "f16", "f64"):
        kind = {"f32": F, "f16": np.float16, "f64": np.float64}[name]
        return np.ascontiguousarray(blocks).view(kind).astype(F)
    if name == "bf16":
        return (np.ascontiguousarray(blocks).view(np.uint16).astype(np.uint32) << 16).view(F)
    d = scale_at(blocks, TYPES[name][3][0])
    m = scale_at(blocks, TYPES[name][3][1]) if len(TYPES[name][3]) > 1 else None
    if name == "q4_0":
        return (halves(blocks[:, 2:]) - 8).astype(F) * d
    if name == "q4_1":
        return halves(blocks[:, 4:]).astype(F) * d + m
    if name == "q5_0":
        return (halves(blocks[:, 6:]) + 16 * little_bits(blocks[:, 2:6], 1) - 16).astype(F) * d
    if name == "q5_1":
        return (halves(blocks[:, 8:]) + 16 * little_bits(blocks[:, 4:8], 1)).astype(F) * d + m
    if name == "q8_0":
        return np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(F) * d
    if name == "q2_k":
        scales, minima = blocks[:, :16] % 16, blocks[:, :16] // 16
        return over(d * scales.astype(F), 16) * spread_pairs(blocks[:, 16:80]).astype(F) - over(m * minima.astype(F), 16)
    if name == "q3_k":
        # The third bits: bit k of 32 bytes belongs to the k-th 32 numbers.
        third = little_bits(blocks[:, :32], 1).reshape(-1, 32, 8).transpose(0, 2, 1).reshape(-1, 256)
        values = spread_pairs(blocks[:, 32:96]) + 4 * third - 4
        low = halves(blocks[:, 96:104])
        high = little_bits(blocks[:, 104:108], 2).reshape(-1, 4, 4).transpose(0, 2, 1).reshape(-1, 16)
        return over(d * (low + 16 * high - 32).astype(F), 16) * values.astype(F)
    if name in ("q4_k", "q5_k"):
        scales, minima = k_scales(blocks[:, 4:16])
        if name == "q4_k":
            values = spread_halves(blocks[:, 16:])
        else:
            fifth = little_bits(blocks[:, 16:48], 1).reshape(-1, 32, 8).transpose(0, 2, 1).reshape(-1, 256)
            values = spread_halves(blocks[:, 48:]) + 16 * fifth
        return over(d * scales.astype(F), 32) * values.astype(F) - over(m * minima.astype(F), 32)
    if name == "q6_k":
        # Each 64 bytes of halves hold 128 numbers: all lower halves, then all upper ones.
        low = np.concatenate([halves(blocks[:, :64]), halves(blocks[:, 64:128])], axis=1)
        values = low + 16 * spread_pairs(blocks[:, 128:192]) - 32
        scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
        return over(d * scales.astype(F), 16) * values.astype(F)
    raise ValueError(name)


def compare(path, numbers):
    rng = np.random.default_rng(7)
    found = np.fromfile(numbers, F)
    begin = 0
    for name, (_, values, _, _) in TYPES.items():
        expected = unpack(name, random_blocks(rng, name)).reshape(-1)
        own = found[begin:begin + BLOCKS * values]
        begin += BLOCKS * values
        different = np.flatnonzero(expected.view(np.uint32) != own.view(np.uint32))
        # -0 and 0 are one number.
        different = [i for i in different if expected[i] != own[i]]
        if different:
            i = different[0]
            sys.exit(f"{name}: {len(different)} numbers differ; number {i} is {own[i]!r}, not {expected[i]!r}")
        print(f"{name}: {BLOCKS} blocks, {BLOCKS * values} numbers, all bits equal")
    if begin != len(found):
        sys.exit(f"{len(found)} numbers instead of {begin}")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        compare(sys.argv[2], sys.argv[3])
