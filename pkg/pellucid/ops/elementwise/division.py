"""Divisions, element by element: quotients, rounded or not, and remainders."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...autograd.formulas import refused, zeros
from ...errors import RangeError
from ...op.declaration import op
from ...op.elementwise import elementwise
from ...op.families import binary, of_tensor
from ...op.inplace import in_place
from ...op.public import function
from ...op.rules import broadcast, floating, ordered
from ...tensors.tensor import Tensor


@op(
    dtype=floating,
    shape=broadcast,
    kernel=elementwise("ratio_of(input, other)", i32=False, c64="complex_div(input, other)", wide=("other",)),
    reference=np.true_divide,
    # From the inputs, as in PyTorch: the result may be changed in place afterwards.
    grad={
        "input": lambda g, other: g / other,
        "other": lambda g, input, other: -g * ((input / other) / other),
    },
    method=True,
    in_place=True,
    aten=("true_divide.Tensor", "true_divide.Scalar"),
)
def true_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient: ``out = input / other``, floating point for integers too."""


def _rounded(forms: tuple[Callable, Callable], input, other, mode):
    if mode not in ("floor", "trunc"):
        raise RangeError(f"div: rounding_mode must be None, 'trunc' or 'floor', not {mode!r}.")
    return forms[mode == "trunc"](input, other)


@function(method=True, aten=("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode"))
def div(input: Tensor | float, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient: ``out = input / other``.

    Args:
        input, other: tensors or numbers that broadcast.
        rounding_mode: None for the true quotient, "trunc" to round toward zero, "floor" to round down.
    """
    if rounding_mode is None:
        return true_divide(input, other)
    return _rounded((floor_quotient, trunc_divide), input, other, rounding_mode)


@function(exports=None, method=True, ours="the in-place form of div")
def div_(input: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of `div`: writes the result into this tensor and returns it."""
    if rounding_mode is None:
        return _over(input, other)
    return _rounded(_ROUNDED_OVER, input, other, rounding_mode)


_FLOOR_DIVIDE = elementwise(
    "floor_divide_of(input, other)",
    i32="floor_divide_i32(input, other)",
    u32="divide_u32(input, other)",
    i64="i64_floor_divide(input, other)",
    wide=("other",),
)
_NO_FLOOR_DIVIDE = refused(
    "floor_divide", "Use div(rounding_mode='floor'), whose derivative is 0, or detach what is divided."
)
_STEPS = dict.fromkeys(("input", "other"), zeros)


floor_divide = binary(
    "floor_divide", _FLOOR_DIVIDE, np.floor_divide, dict.fromkeys(("input", "other"), _NO_FLOOR_DIVIDE),
    "Quotient rounded down: ``out = floor(input / other)``.", dtype=ordered, takes="any real dtype",
    aten=("floor_divide.default", "floor_divide.Scalar"),
)  # fmt: skip


@op(public="div", shape=broadcast, kernel=_FLOOR_DIVIDE, reference=np.floor_divide, grad=_STEPS)
def floor_quotient(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient rounded down, what ``div(..., rounding_mode="floor")`` computes: its derivative is 0."""


def _trunc_reference(input, other):
    if np.asarray(input).dtype.kind == "f":
        return np.trunc(np.divide(input, other))
    quotient = np.floor_divide(input, other)
    return quotient + ((quotient < 0) & (quotient * other != input)).astype(quotient.dtype)


@op(
    dtype=ordered,
    public="div",
    shape=broadcast,
    kernel=elementwise(
        "trunc_divide_of(input, other)",
        i32="trunc_divide_i32(input, other)",
        u32="divide_u32(input, other)",
        i64="i64_trunc_divide(input, other)",
        wide=("other",),
    ),
    reference=_trunc_reference,
    grad=_STEPS,
)
def trunc_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient rounded toward zero, what ``div(..., rounding_mode="trunc")`` computes."""


_over = in_place(true_divide.op)
_ROUNDED_OVER = in_place(floor_quotient.op), in_place(trunc_divide.op)


remainder = binary(
    "remainder",
    elementwise(
        "remainder_of(input, other)",
        i32="remainder_i32(input, other)",
        u32="remainder_u32(input, other)",
        i64="i64_remainder(input, other)",
    ),
    np.remainder,
    {"input": lambda g: g, "other": lambda g, input, other: -g * floor_quotient(input, other)},
    "Remainder with the sign of ``other``, as Python's ``%``.",
    dtype=ordered,
    takes="any real dtype",
    aten=("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor"),
)

fmod = binary(
    "fmod",
    elementwise(
        "fmod_of(input, other)",
        i32="fmod_i32(input, other)",
        u32="remainder_u32(input, other)",
        i64="i64_fmod(input, other)",
    ),
    np.fmod,
    {"input": lambda g: g, "other": lambda g, input, other: -g * trunc_divide(input, other)},
    "Remainder with the sign of ``input``, as C's ``fmod``.",
    form=of_tensor,
    dtype=ordered,
    takes="any real dtype",
)
