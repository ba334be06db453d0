"""Data types of storage: 21 kinds of numbers, from float64 to single bits, as codes and their exact values.

Source: Micikevicius et al. 2022, "FP8 Formats for Deep Learning", for float8; the OCP Microscaling (MX)
    specification for float4; Li and Liu 2016, "Ternary Weight Networks"; Rastegari et al. 2016, "XNOR-Net"
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ...errors import DTypeError
from ...ops.elementwise.comparison import where
from ...tensors import dtypes
from ...tensors.construct import tensor
from ...tensors.dtypes import DType
from ...tensors.tensor import Tensor

# Bits of exponent and of significand, and the largest number, of the small floats.
SMALL_FLOATS = {"float8_e4m3fn": (4, 3, 448.0), "float8_e5m2": (5, 2, 57344.0), "float4_e2m1fn": (2, 1, 6.0)}


@dataclass(frozen=True)
class Precision:
    """One kind of number in which weights can be stored.

    Args:
        name: as PyTorch's dtype where it has one.
        number: 0 to 20, its place in the table.
        bits: of one number.
        kind: "float" without a scale; "small" floats, "signed" and "unsigned" integers, "ternary" (-1, 0, 1)
            and "binary" (-1, 1), which are multiples of a scale.

    Example:
        >>> from pellucid.grid import precision
        >>> precision("fp4").values().tolist()[:8]
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """

    name: str
    number: int
    bits: int
    kind: str

    @property
    def is_scaled(self) -> bool:
        """Whether its numbers are multiples of a scale."""
        return self.kind != "float"

    @property
    def largest(self) -> float:
        """The largest number that it holds and float32 can say."""
        if self.kind == "small":
            return SMALL_FLOATS[self.name][2]
        if self.kind in ("ternary", "binary"):
            return 1.0
        if self.kind == "float":
            return 65504.0 if self.bits == 16 and self.name == "float16" else dtypes.float32.largest
        bits = self.bits - (self.kind == "signed")
        return float(2**bits - 2 ** max(bits - 24, 0))

    def values(self) -> np.ndarray:
        """The number of each code, from 0 up.

        Raises:
            DTypeError: it has more than 8 bits.
        """
        if self.bits > 8:
            raise DTypeError(f"{self.name}: a table of 2 to the power of {self.bits} numbers is too long.")
        return _values(self.name).copy()

    def encode(self, numbers: Tensor) -> Tensor:
        """The codes of float32 numbers: rounded to the nearest, halves to even, held within the range.

        Args:
            numbers: a vector, float32, already divided by a scale.

        Returns:
            int32 for up to 8 bits, else uint8 bytes, little-endian.
        """
        if self.bits > 8:
            return _wide_bytes(self, numbers)
        if self.kind == "binary":
            return (numbers >= 0).int()
        if self.kind == "small":
            return _small_float(self.name, numbers)
        least = 0.0 if self.kind == "unsigned" else -1.0 if self.kind == "ternary" else -self.largest - 1
        return numbers.round().clamp(least, self.largest).int() & ((1 << self.bits) - 1)

    def decode(self, codes: Tensor) -> Tensor:
        """The float32 numbers of what `encode` gave."""
        if self.bits > 8:
            return _wide_numbers(self, codes)
        return tensor(_values(self.name), device=codes.device)[codes]

    def __repr__(self) -> str:
        return f"precision({self.name!r})"


PRECISIONS = {
    name: Precision(name, number, bits, kind)
    for number, (name, bits, kind) in enumerate([
        ("float64", 64, "float"), ("float32", 32, "float"), ("float16", 16, "float"),
        ("bfloat16", 16, "float"), ("float8_e4m3fn", 8, "small"), ("float8_e5m2", 8, "small"),
        ("int64", 64, "signed"), ("int32", 32, "signed"), ("int16", 16, "signed"), ("int8", 8, "signed"),
        ("uint64", 64, "unsigned"), ("uint32", 32, "unsigned"), ("uint16", 16, "unsigned"),
        ("uint8", 8, "unsigned"), ("int4", 4, "signed"), ("uint4", 4, "unsigned"),
        ("float4_e2m1fn", 4, "small"), ("int2", 2, "signed"), ("uint2", 2, "unsigned"),
        ("ternary", 2, "ternary"), ("binary", 1, "binary"),
    ])
}  # fmt: skip
_ALIASES = {
    "double": "float64", "float": "float32", "half": "float16",
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
    "fp8e4m3": "float8_e4m3fn", "fp8e5m2": "float8_e5m2", "float8e4m3": "float8_e4m3fn",
    "float8e5m2": "float8_e5m2", "fp4": "float4_e2m1fn", "float4": "float4_e2m1fn", "e2m1": "float4_e2m1fn",
}  # fmt: skip


def precision(name: str | DType | Precision) -> Precision:
    """The kind of number of a name.

    Args:
        name: a name of `PRECISIONS` in either case, a dtype such as ``pellucid.float16``, or a short form:
            fp64, fp32, fp16, bf16, fp8e4m3, fp8e5m2, fp4.

    Raises:
        DTypeError: there is none of that name.

    Example:
        >>> import pellucid
        >>> pellucid.grid.precision("FP8E4M3").name, pellucid.grid.precision(pellucid.int8).bits
        ('float8_e4m3fn', 8)
    """
    if isinstance(name, Precision):
        return name
    given = name.name if isinstance(name, DType) else name
    if isinstance(given, str):
        low = given.lower()
        found = PRECISIONS.get(low) or PRECISIONS.get(_ALIASES.get(low.replace("_", ""), ""))
        if found is not None:
            return found
    raise DTypeError(f"precision: {given!r} is no kind of number. There are {', '.join(PRECISIONS)}.")


@cache
def _values(name: str) -> np.ndarray:
    p = PRECISIONS[name]
    codes = np.arange(1 << p.bits)
    if p.kind == "binary":
        return np.array([-1, 1], np.float32)
    if p.kind == "small":
        return np.array([_small_value(name, int(code)) for code in codes], np.float32)
    if p.kind == "unsigned":
        return codes.astype(np.float32)
    signed = np.where(codes >> (p.bits - 1), codes - (1 << p.bits), codes).astype(np.float32)
    # The fourth code of two bits is not used; it is the one that is nearest.
    return np.maximum(signed, -1).astype(np.float32) if p.kind == "ternary" else signed


def _small_value(name: str, code: int) -> float:
    exponent_bits, significand_bits, largest = SMALL_FLOATS[name]
    sign = -1.0 if code >> (exponent_bits + significand_bits) else 1.0
    exponent = code >> significand_bits & ((1 << exponent_bits) - 1)
    significand = code & ((1 << significand_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == 0:
        return sign * significand * 2.0 ** (1 - bias - significand_bits)
    value = (1 + significand / (1 << significand_bits)) * 2.0 ** (exponent - bias)
    if value <= largest:
        return sign * value
    return sign * float("inf") if name == "float8_e5m2" and not significand else float("nan")


def _small_float(name: str, numbers: Tensor) -> Tensor:
    exponent_bits, significand_bits, largest = SMALL_FLOATS[name]
    bias = (1 << (exponent_bits - 1)) - 1
    size = numbers.abs().clamp(max=largest)
    exponent = ((size.view(dtypes.int32) >> 23) - 127).clamp(1 - bias, bias + 1)
    # A power of two, made of its bits: the product is exact, and so is the rounding of halves.
    inverse = ((significand_bits + 127 - exponent) << 23).view(dtypes.float32)
    code = ((exponent + (bias - 1)) << significand_bits) + (size * inverse).round().int()
    sign = (numbers.view(dtypes.int32) >> 31) & (1 << (exponent_bits + significand_bits))
    if name.startswith("float8"):
        code = where(numbers.isnan(), 127, code)
    return code | sign


def _wide_bytes(p: Precision, numbers: Tensor) -> Tensor:
    if p.name == "float64":
        words = _float64_words(numbers)
    elif p.name == "bfloat16":
        words = _bfloat16_bits(numbers).to(dtypes.int16)
    elif p.kind == "float":
        words = numbers.clone() if p.bits == 32 else numbers.to(dtypes.NAMES[p.name])
    else:
        least = 0.0 if p.kind == "unsigned" else -float(2 ** (p.bits - 1))
        whole = numbers.round().clamp(least, p.largest)
        if p.name == "uint64":  # as the signed number of the same bits
            whole = where(whole >= 2.0**63, whole - 2.0**64, whole)
        words = whole.to(dtypes.int64 if p.bits == 64 else dtypes.NAMES[p.name])
    return words.contiguous().view(dtypes.uint8).reshape(-1)


def _wide_numbers(p: Precision, data: Tensor) -> Tensor:
    if p.name == "float64":
        return _float64_numbers(data.view(dtypes.int32).reshape(-1, 2))
    if p.name == "bfloat16":
        return (data.view(dtypes.int16).int() << 16).view(dtypes.float32)
    words = data.view(dtypes.int64 if p.name == "uint64" else dtypes.NAMES[p.name]).float()
    return where(words < 0, words + 2.0**64, words) if p.name == "uint64" else words


def _bfloat16_bits(numbers: Tensor) -> Tensor:
    """The upper half of the bits of float32, rounded to even; NaN stays NaN."""
    bits = numbers.view(dtypes.int32)
    rounded = (bits + ((bits >> 16 & 1) + 0x7FFF)) >> 16
    return where(numbers.isnan(), 0x7FC0, rounded)


def _float64_words(numbers: Tensor) -> Tensor:
    """The two words of float64, low first, by integers: WebGPU has no such floats."""
    bits = numbers.view(dtypes.int32)
    exponent, significand = bits >> 23 & 255, bits & 0x7FFFFF
    # What is below the normal numbers of float32 is normal in float64: with the significand as a float.
    low = significand.float().view(dtypes.int32)
    wide = where(exponent == 255, exponent + 1792, exponent + 896)
    wide = where(exponent == 0, where(significand == 0, exponent, (low >> 23) + 747), wide)
    significand = where(exponent == 0, low & 0x7FFFFF, significand)
    high = (bits & -0x80000000) | (wide << 20) | (significand >> 3)
    return (
        (significand << 29)
        .unsqueeze(-1)
        .expand(-1, 2)
        .where(tensor([True, False], device=numbers.device), high.unsqueeze(-1))
    )


def _float64_numbers(words: Tensor) -> Tensor:
    """float32 of the two words of float64, rounded to even."""
    low, high = words[:, 0], words[:, 1]
    exponent = (high >> 20 & 2047) - 896
    significand = ((high & 0xFFFFF) << 3) | (low >> 29 & 7)
    rest = low & 0x1FFFFFFF
    up = ((rest > 1 << 28) | ((rest == 1 << 28) & (significand & 1 == 1))).int()
    bits = where(exponent >= 255, 0x7F800000, (exponent.clamp(0, 254) << 23 | significand) + up)
    is_nan = (exponent == 1151) & ((significand | rest) != 0)
    value = where(is_nan, 0x7FC00000, bits).view(dtypes.float32)
    # Below the normal numbers of float32: 24 bits, times a power of two in steps of which the last rounds.
    power = ((exponent + 126).clamp(1, 254) << 23).view(dtypes.float32)
    small = (significand + up + (1 << 23)).float() * power * 2.0**-23 * 2.0**-126
    value = where(exponent <= 0, small, value)
    return where(high < 0, -value, value)
