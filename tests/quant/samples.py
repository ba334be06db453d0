"""Random blocks of every weight format. Needs numpy and the library only, so that it also runs in a page."""

import numpy as np

from pellucid.quant import FORMATS

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
}
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
    for at in SCALES[name]:
        blocks[:, at : at + 2] = _halves(len(blocks), rng).view(np.uint8).reshape(-1, 2)
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
    for at in SCALES[name]:
        scales = rng.uniform(-0.01, 0.01, len(blocks)).astype(np.float16)
        blocks[:, at : at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(-1)


def widths(name):
    """Columns worth trying: whole blocks, an odd number of units, and for halves also parts of a unit."""
    return {1: (512, 41, 1), 32: (512, 96, 32), 256: (512, 768, 256)}[FORMATS[name].block]
