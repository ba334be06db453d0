"""Divisions, element by element: quotients, rounded or not, and remainders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.formulas import refused, zeros
from ...errors import RangeError
from ...op.declaration import Call, elementwise, function, op
from ...op.families import binary, of_tensor
from ...op.rules import floating, ordered
from ...tensors.tensor import Tensor

_MODES = (None, "floor", "trunc")


def _by_mode(*texts: str) -> Callable[[Call], str]:
    """An expression for each rounding."""
    return lambda call: texts[_MODES.index(call["rounding_mode"])]


def _quotient_types(call: Call):
    if call["rounding_mode"] not in _MODES:
        raise RangeError(f"rounding_mode must be None, 'trunc' or 'floor', not {call['rounding_mode']!r}.")
    return floating(call) if call["rounding_mode"] is None else ordered(call)


def _towards_zero(input, other):
    if np.asarray(input).dtype.kind == "f":
        return np.trunc(np.divide(input, other))
    quotient = np.floor_divide(input, other)
    return quotient + ((quotient < 0) & (quotient * other != input)).astype(quotient.dtype)


_QUOTIENTS = dict(zip(_MODES, (np.true_divide, np.floor_divide, _towards_zero), strict=True))
_FLOORED: dict[str, Any] = {
    "i32": "floor_divide_i32(input, other)", "u32": "divide_u32(input, other)",
    "i64": "i64_floor_divide(input, other)",
}  # fmt: skip


@op(
    dtype=_quotient_types,
    kernel=elementwise(
        _by_mode("ratio_of(input, other)", "floor_divide_of(input, other)", "trunc_divide_of(input, other)"),
        i32=_by_mode("", _FLOORED["i32"], "trunc_divide_i32(input, other)"),
        u32=_FLOORED["u32"],
        i64=_by_mode("", _FLOORED["i64"], "i64_trunc_divide(input, other)"),
        c64="complex_div(input, other)",
        wide=("other",),
    ),
    reference=lambda input, other, rounding_mode: _QUOTIENTS[rounding_mode](input, other),
    # From the inputs, as in PyTorch: the result may be changed in place afterwards.
    grad={
        "input": lambda g, other, rounding_mode: g / other if rounding_mode is None else zeros(g),
        "other": lambda g, input, other, rounding_mode: (
            -g * ((input / other) / other) if rounding_mode is None else zeros(g)
        ),
    },
    in_place=True,
    aten=("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode"),
)
def div(input: Tensor | float, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient: ``out = input / other``, floating point for integers too.

    Args:
        input, other: tensors or numbers that broadcast.
        rounding_mode: None for the true quotient, "trunc" to round toward zero, "floor" to round down; the
            derivative of what is rounded is 0.
    """


@function(method=True, in_place=True, aten=("true_divide.Tensor", "true_divide.Scalar"))
def true_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """`div` without rounding."""
    return div(input, other)


_NO_FLOOR_DIVIDE = refused(
    "floor_divide", "Use div(rounding_mode='floor'), whose derivative is 0, or detach what is divided."
)


floor_divide = binary(
    "floor_divide", elementwise("floor_divide_of(input, other)", **_FLOORED, wide=("other",)),
    np.floor_divide, dict.fromkeys(("input", "other"), _NO_FLOOR_DIVIDE),
    "Quotient rounded down: ``out = floor(input / other)``.", dtype=ordered,
    aten=("floor_divide.default", "floor_divide.Scalar"),
)  # fmt: skip


def _remainder(name: str, reference: Callable, mode: str, sentence: str, **options: Any):
    """Declare what a rounded quotient leaves."""
    return binary(
        name, elementwise(
            f"{name}_of(input, other)", i32=f"{name}_i32(input, other)", u32="remainder_u32(input, other)",
            i64=f"i64_{name}(input, other)",
        ), reference,
        {"input": lambda g: g, "other": lambda g, input, other: -g * div(input, other, rounding_mode=mode)},
        sentence, dtype=ordered, **options,
    )  # fmt: skip


def _of_floor(a, b):
    """What a quotient rounded down leaves; 0 has the sign of ``a``, where numpy gives it that of ``b``."""
    if np.result_type(a, b).kind != "f":
        return np.remainder(a, b)
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


remainder = _remainder(
    "remainder", _of_floor, "floor", "Remainder with the sign of ``other``, as Python's ``%``.",
    aten=("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor"),
)  # fmt: skip
fmod = _remainder(
    "fmod", np.fmod, "trunc", "Remainder with the sign of ``input``, as C's ``fmod``.", form=of_tensor
)
