"""Random weights of every format. Needs numpy and the library only, so that it also runs in a page."""

import numpy as np

import pellucid
from pellucid.op.kernel.source import load
from pellucid.ops.quant.lanes import has_dots
from pellucid.quant import BLOCK_FORMATS, FORMATS, dequantize_planes, repack_blocks
from pellucid.quant.weight import weight_from_blocks, weight_from_planes

# Formats of GGUF blocks, and those that integer dot products read.
BLOCKS = list(BLOCK_FORMATS)
DOTS = [name for name in FORMATS if has_dots(name)]
# Those whose kernels differ from others of these by `dequantize_octet` alone: few of them go through every
# kernel.
OCTETS = {name for name in FORMATS if "quant/octets" in load(f"quant/{name}").text}
_ONE_OF_THEM = {"iq2_s", "codebook4"}  # the second with a plane that rows share
THOROUGH = [name for name in BLOCKS if name not in OCTETS - _ONE_OF_THEM]

# Where the binary16 scales of a block lie, in bytes.
SCALES = {
    "q4_0": (0,),
    "q4_1": (0, 2),
    "q5_0": (0,),
    "q5_1": (0, 2),
    "q8_0": (0,),
    "q4_k": (0, 2),
    "q5_k": (0, 2),
    "q6_k": (208,),
    "q2_k": (80, 82),
    "q3_k": (108,),
    "tq1_0": (52,),
    "tq2_0": (64,),
}  # else 0
# Both zeros, both smallest and largest subnormals, the smallest normal, both largest, one.
ODD_HALVES = (0, 0x8000, 1, 0x8001, 0x3FF, 0x83FF, 0x400, 0x7BFF, 0xFBFF, 0x3C00)


def _halves(count, rng):
    """Bits of finite binary16 numbers, every second one odd in some way."""
    bits = rng.integers(0, 1 << 16, count).astype(np.uint16)
    odd = rng.random(count) < 0.5
    bits[odd] = rng.choice(np.array(ODD_HALVES, np.uint16), odd.sum())
    bits[bits & 0x7C00 == 0x7C00] &= 0xBFFF
    return bits


def any_blocks(name, rows, columns, rng):
    """GGUF bytes of a weight: every quant random, every scale any finite bit pattern."""
    f = FORMATS[name]
    size = f.raw_bytes(rows, columns)
    if name == "f16":
        return _halves(size // 2, rng).view(np.uint8)
    if name == "bf16":
        bits = rng.integers(0, 1 << 16, size // 2).astype(np.uint16)
        bits[bits & 0x7F80 == 0x7F80] &= 0xBFFF
        return bits.view(np.uint8)
    blocks = rng.integers(0, 256, (size // f.block_bytes, f.block_bytes)).astype(np.uint8)
    return _scaled(name, blocks, lambda: _halves(len(blocks), rng))


def _scaled(name, blocks, halves):
    """Blocks as bytes, with scales whose bits are given, of blocks that have any of binary16."""
    if name == "iq1_m":
        nibbles = halves()[:, None] >> np.arange(0, 16, 4) & 15
        blocks[:, 49::2] = blocks[:, 49::2] & 15 | nibbles << 4
    elif name not in ("mxfp4", "nvfp4"):
        for at in SCALES.get(name, (0,)):
            blocks[:, at : at + 2] = halves().view(np.uint8).reshape(-1, 2)
    return blocks.reshape(-1)


def tame_blocks(name, rows, columns, rng):
    """GGUF bytes of a weight whose values are of the size of a model's."""
    f = FORMATS[name]
    size = f.raw_bytes(rows, columns)
    if f.block == 1:
        values = rng.standard_normal(size // 2).astype(np.float32)
        bits = values.astype(np.float16).view(np.uint16) if name == "f16" else values.view(np.uint32) >> 16
        return bits.astype(np.uint16).view(np.uint8)
    blocks = rng.integers(0, 256, (size // f.block_bytes, f.block_bytes)).astype(np.uint8)
    if name == "mxfp4":
        blocks[:, 0] = rng.integers(118, 124, len(blocks))
    if name == "nvfp4":
        blocks[:, :4] &= 31
    return _scaled(
        name, blocks, lambda: rng.uniform(-0.01, 0.01, len(blocks)).astype(np.float16).view(np.uint16)
    )


def _scales(shape, rng, odd):
    """float32, of the size of a model's or, odd, of any that is far from the least and the largest."""
    return np.ldexp(rng.uniform(1, 2, shape), rng.integers(-90, 90, shape) if odd else -7).astype(np.float32)


def int8_rows(rows, columns, rng, odd):
    quants = rng.integers(-128, 128, (rows, columns)).astype(np.int8)
    scales = _scales((rows, 1), rng, odd)
    padded = np.pad(quants, ((0, 0), (0, -columns % 32)))
    return [padded, scales], scales * quants.astype(np.float32)


def fp8(exponent_bits, nan):
    def made(rows, columns, rng, odd):
        """The value by way of binary16, which has the same mantissa or more of it."""
        quants = rng.integers(0, nan, (rows, columns)).astype(np.uint8)
        quants |= rng.integers(0, 2, (rows, columns)).astype(np.uint8) << np.uint8(7)
        scales = _scales((rows, -(-columns // 128)), rng, odd)
        halves = (quants.astype(np.uint16) & 128) << 8 | (quants.astype(np.uint16) & 127) << (
            3 + exponent_bits
        )
        values = (256 if exponent_bits == 4 else 1) * halves.view(np.float16).astype(np.float32)
        padded = np.pad(quants, ((0, 0), (0, -columns % 32)))
        return [padded, scales], values * scales[:, np.arange(columns) // 128]

    return made


def int4_groups(rows, columns, rng, odd):
    quants = rng.integers(0, 16, (rows, columns))
    zeros = rng.integers(0, 17, (rows, columns // 32)).astype(np.uint8)
    shape = zeros.shape
    bits = _halves(zeros.size, rng) if odd else rng.uniform(-0.01, 0.01, zeros.size).astype(np.float16)
    scales = bits.view(np.float16).reshape(shape)
    places = 16 ** np.arange(8)
    words = (quants.reshape(rows, -1, 8) * places).sum(2).astype(np.uint32)
    unit = np.arange(columns) // 32
    values = scales.astype(np.float32)[:, unit] * (quants - zeros.astype(int)[:, unit]).astype(np.float32)
    return [words.view(np.int32), scales, zeros], values


def int4_offsets(rows, columns, rng, odd):
    quants, shape = rng.integers(0, 16, (rows, columns)), (rows, columns // 32)
    bits = _halves(shape[0] * shape[1], rng) if odd else rng.uniform(-0.01, 0.01, shape).astype(np.float16)
    scales = bits.view(np.float16).astype(np.float32).reshape(shape)
    offsets = rng.uniform(-0.1, 0.1, shape).astype(np.float32)
    unit = np.arange(columns) // 32
    values = scales[:, unit] * (quants - 8).astype(np.float32) + offsets[:, unit]
    return [packed_bits(quants, 4), scales, offsets], values


def affine(bits, group=32):
    def made(rows, columns, rng, odd):
        """With scales of binary16, whose products are exact."""
        quants = rng.integers(0, 1 << bits, (rows, columns))
        shape = rows, columns // 32 if group else 1
        halves = (
            _halves(shape[0] * shape[1], rng) if odd else rng.uniform(-0.01, 0.01, shape).astype(np.float16)
        )
        scales = halves.view(np.float16).astype(np.float32).reshape(shape)
        offsets = rng.uniform(-0.1, 0.1, shape).astype(np.float32)
        unit = np.arange(columns) // (group or columns)
        values = scales[:, unit] * quants.astype(np.float32) + offsets[:, unit]
        padded = np.pad(quants, ((0, 0), (0, -columns % 32)), constant_values=1)
        return [packed_bits(padded, bits), scales, offsets], values

    return made


def packed_bits(numbers, bits):
    """Numbers (rows, columns) behind one another, the lowest bits first: uint8 (rows, columns * bits / 8)."""
    every = numbers.astype(np.uint8)[..., None] >> np.arange(bits, dtype=np.uint8) & np.uint8(1)
    return np.packbits(every.reshape(len(numbers), -1), axis=1, bitorder="little")


def g_idx(bits):
    def made(rows, columns, rng, odd):
        quants = rng.integers(0, 1 << bits, (rows, columns))
        zeros = rng.integers(0, 1 + (1 << bits), (rows, columns // 32)).astype(np.uint16)
        scales = _scales(zeros.shape, rng, odd)
        # Half of the columns in order: all eight that a kernel reads at once are of one group there.
        index = np.where(
            np.arange(columns) < columns // 2,
            np.arange(columns) // 32,
            rng.integers(0, columns // 32, columns),
        )
        values = scales[:, index] * (quants - zeros.astype(int)[:, index]).astype(np.float32)
        return [packed_bits(quants, bits), scales, zeros.view(np.int16), index.astype(np.int16)], values

    return made


def codebook4(rows, columns, rng, odd):
    quants = rng.integers(0, 16, (rows, columns))
    scales, book = _scales((rows, columns // 32), rng, odd), rng.uniform(-1, 1, 16).astype(np.float32)
    return [packed_bits(quants, 4), scales, book], scales[:, np.arange(columns) // 32] * book[quants]


def fp4_groups(rows, columns, rng, odd):
    """Numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, of which 0 has no sign; the scale by way of
    binary16."""
    quants = rng.integers(0, 16, (rows, columns))
    scales, factor = rng.integers(0, 127, (rows, columns // 16)).astype(np.uint8), _scales((1, 1), rng, odd)
    each = 256 * (scales.astype(np.uint16) << 7).view(np.float16).astype(np.float32) * factor
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    values = each[:, np.arange(columns) // 16] * np.concatenate([numbers, 0 - numbers])[quants]
    return [packed_bits(quants, 4), scales, factor], values


def fp4_rows(rows, columns, rng, odd):
    quants, scales = rng.integers(0, 16, (rows, columns)), _scales((rows, 1), rng, odd)
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    padded = np.pad(quants, ((0, 0), (0, -columns % 32)), constant_values=7)
    return [packed_bits(padded, 4), scales], scales * np.concatenate([numbers, 0 - numbers])[quants]


def int2_rows(rows, columns, rng, odd):
    quants, scales = rng.integers(0, 3, (rows, columns)), _scales((rows, 1), rng, odd)
    return [packed_bits(quants, 2), scales], scales * (quants - 1).astype(np.float32)


def wide(kind, group=32):
    def made(rows, columns, rng, odd):
        """Numbers that float32 has, and with offsets scales that are powers of two: products are exact."""
        bits, is_signed = np.dtype(kind).itemsize * 8, kind.startswith("int")
        digits = min(bits, 24)
        quants = rng.integers(0, 1 << digits, (rows, columns)).astype(np.uint64)
        quants <<= (
            np.uint64(bits - digits)
            if not odd
            else rng.integers(0, bits - digits + 1, (rows, columns), np.uint64)
        )
        if is_signed:
            quants = quants.astype(np.int64) - (1 << 15) * (bits == 16)
        quants = quants.astype(kind)
        shape = rows, columns // 32 if group else 1
        unit = np.arange(columns) // (group or columns)
        scales = (
            _scales(shape, rng, odd) if is_signed else np.ldexp(np.float32(1), rng.integers(-9, 2, shape))
        )
        scales = scales.astype(np.float32) * np.float32(2.0 ** (8 - bits))
        values = scales[:, unit] * quants.astype(np.float32)
        padded = np.pad(quants, ((0, 0), (0, -columns % 32)), constant_values=1)
        planes = [padded.view(np.uint8).reshape(rows, -1), scales]
        if not is_signed:
            offsets = -scales * np.float32(2.0 ** (bits - 1))
            planes, values = [*planes, offsets], values + offsets[:, unit]
        return planes, values

    return made


# Planes and values of formats without blocks.
PLANES = {
    "int8_rows": int8_rows,
    "fp8_e4m3": fp8(4, 127),
    "fp8_e5m2": fp8(5, 124),
    "int4_groups": int4_groups,
    "int4_offsets": int4_offsets,
    **{f"int{bits}_affine": affine(bits) for bits in (1, 2, 4, 8)},
    **{f"int{bits}_affine_rows": affine(bits, None) for bits in (1, 2, 4, 8)},
    "codebook4": codebook4,
    "fp4_groups": fp4_groups,
    "fp4_rows": fp4_rows,
    "int2_rows": int2_rows,
    **{f"int{bits}_g_idx": g_idx(bits) for bits in (2, 3, 4, 8)},
    **{f"int{bits}_scaled": wide(f"int{bits}") for bits in (16, 32)},
    **{f"int{bits}_scaled_rows": wide(f"int{bits}", None) for bits in (16, 32)},
    **{f"uint{bits}_affine": wide(f"uint{bits}") for bits in (16, 32)},
    **{f"uint{bits}_affine_rows": wide(f"uint{bits}", None) for bits in (16, 32)},
}
# Formats that differ from int3_g_idx, fp8_e4m3, int8_affine, int4_offsets, int16_scaled and uint32_affine in
# a const or how a number is read: their products are tested by way of these.
ALIKE = (
    *("int2_g_idx", "int4_g_idx", "int8_g_idx", "fp8_e5m2", "int1_affine", "int2_affine", "int4_affine"),
    *("int1_affine_rows", "int2_affine_rows", "int8_affine_rows"),
    *(f"int{bits}_scaled{end}" for bits in (16, 32) for end in ("", "_rows") if (bits, end) != (16, "")),
    *(f"uint{bits}_affine{end}" for bits in (16, 32) for end in ("", "_rows") if (bits, end) != (32, "")),
)
# Those that go through every kernel of products.
OWN_PRODUCTS = [name for name in FORMATS if name not in (OCTETS - _ONE_OF_THEM) | {*ALIKE}]


def sampled(name, rows, columns, rng, device=None, odd=False):
    """A weight, its values by numpy, and the bytes of its blocks or its planes."""
    if name not in BLOCK_FORMATS:
        assert name in PLANES, f"{name} has no samples: give it planes and values in PLANES of {__file__}"
        planes, values = PLANES[name](rows, columns, rng, odd)
        tensors = [pellucid.tensor(plane, device=device) for plane in planes]
        return weight_from_planes(tensors, name, (rows, columns)), values, planes
    raw = (any_blocks if odd else tame_blocks)(name, rows, columns, rng)
    words = repack_blocks(raw, FORMATS[name], rows, columns)
    values = dequantize_planes(words, FORMATS[name], rows, columns)
    return weight_from_blocks(raw, name, (rows, columns), device), values, raw


def widths(name):
    """Columns worth trying: whole blocks, an odd number of units, and parts of a unit where there may be."""
    f = FORMATS[name]
    if name not in BLOCK_FORMATS:
        partial = name in ("int8_rows", "fp8_e4m3", "fp8_e5m2", "fp4_rows")
        partial |= name.endswith(("affine_rows", "scaled_rows"))
        return (512, 41, 160) if partial else (512, 96, 32)
    return {1: (512, 41, 1), 32: (512, 96, 32), 64: (512, 192, 64), 256: (512, 768, 256)}[f.block]
