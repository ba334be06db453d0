"""Words of float32 parameters: the bits of Python's numbers, remembered."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import isinf

# A program uses few numbers. Never remembered are zero (0.0 and -0.0 are equal as keys), and floats as large
# as integers that are refused (2.0**64 and 2**64 are equal, too).
float_words: dict[float, int] = {}


def float_bits(value: float) -> int:
    """The word of a float32 parameter. A number that is too large for one is infinite, and not remembered."""
    word = float_words.get(value)
    if word is None:
        try:
            word = struct.unpack("<I", struct.pack("<f", value))[0]
        except (OverflowError, struct.error):
            return 0x7F800000 if value > 0 else 0xFF800000
        known = len(float_words) < 4096 and (abs(value) < 2.0**63 or isinf(value))
        if value and known:
            float_words[float(value)] = word  # an integer finds it, too
    return word


def bits_of_floats(values: Sequence[float]) -> list[int]:
    """The words of several float32 parameters, which are mostly new ones."""
    count = len(values)
    try:
        return [*struct.unpack(f"<{count}I", struct.pack(f"<{count}f", *values))]
    except (OverflowError, struct.error):
        return [float_bits(value) for value in values]
