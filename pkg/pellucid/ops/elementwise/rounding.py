"""Rounding of numbers, element by element, and what is left of them."""

from __future__ import annotations

import numpy as np

from ...autograd.formulas import zeros
from ...errors import DTypeError, RangeError
from ...op.declaration import Call, elementwise, op
from ...op.families import unary
from ...op.rules import float_only, real
from ...tensors.tensor import Tensor


def _rounding(name: str, reference, sentence: str):
    """Declare a rounding, which leaves integers as they are."""
    return unary(
        name,
        elementwise(f"{name}(input)", i32="input", i64="input"),
        lambda input: input if input.dtype.kind in "iu" else reference(input),
        zeros,
        sentence,
        dtype=real,
        at=-1.5,
    )


floor = _rounding("floor", np.floor, "Rounded down.")
ceil = _rounding("ceil", np.ceil, "Rounded up.")
trunc = _rounding("trunc", np.trunc, "Rounded toward zero.")


def _round_types(call: Call):
    found = real(call)
    if not -300 <= call["decimals"] <= 300:
        raise RangeError(f"decimals is {call['decimals']}; give -300 to 300.")
    if call["decimals"] and not found[0].is_floating_point:
        raise DTypeError(f"takes floating-point tensors where decimals are given, not {found[0]}.")
    return found


def _round_text(call: Call) -> str:
    power = f"{10.0 ** max(call['decimals'], -call['decimals'])}"
    first, second = ("*", "/") if call["decimals"] > 0 else ("/", "*")
    return f"round(input {first} {power}) {second} {power}" if call["decimals"] else "round(input)"


def _round(input, decimals):
    if input.dtype.kind in "iu":
        return input
    power = input.dtype.type(10.0 ** max(decimals, -decimals))
    return np.round(input * power) / power if decimals > 0 else np.round(input / power) * power


@op(
    dtype=_round_types,
    kernel=elementwise(_round_text, i32="input", i64="input"),
    reference=_round,
    grad={"input": zeros},
    in_place=True,
    aten=("round.default", "round.decimals"),
)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounded to the nearest integer, halves to even.

    Args:
        input: any dtype but bool and complex ones.
        decimals: digits that stay behind the point; negative ones count before it.
    """


frac = unary(
    "frac", "input - trunc(input)", lambda input: input - np.trunc(input), lambda g: g,
    "The part after the point: ``input - trunc(input)``.", dtype=float_only, at=1.75,
)  # fmt: skip
