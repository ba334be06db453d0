"""FP8 (E4M3 and E5M2): float32 numbers rounded to it."""

from __future__ import annotations

from ..tensors.tensor import Tensor

LARGEST = {"fp8_e4m3": 448.0, "fp8_e5m2": 57344.0}
# Bits of the mantissa, and the exponent of the least normal number.
_PARTS = {"fp8_e4m3": (3, -6), "fp8_e5m2": (2, -14)}


def round_to_fp8(x: Tensor, dtype: str) -> Tensor:
    """Each number as the nearest of an fp8 type, ties to even; what is too large becomes the largest.

    Args:
        x: floating point.
        dtype: ``"fp8_e4m3"`` or ``"fp8_e5m2"``.

    Source: Micikevicius et al. 2022, "FP8 formats for deep learning", table 1

    Example:
        >>> import pellucid as torch
        >>> from pellucid.quant.float8 import round_to_fp8
        >>> round_to_fp8(torch.tensor([0.3, 17.0, 1000.0], device="cpu"), "fp8_e4m3").tolist()
        [0.3125, 16.0, 448.0]
    """
    mantissa, least = _PARTS[dtype]
    largest = LARGEST[dtype]
    x = x.clamp(-largest, largest)
    # frexp gives a mantissa from 1/2 on, so the exponent of a normal number is one less.
    exponent = (x.frexp()[1] - 1).clamp(min=least) - mantissa
    return x.ldexp(-exponent).round().ldexp(exponent).clamp(-largest, largest)
