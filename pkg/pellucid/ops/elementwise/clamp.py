"""The larger and the smaller of two, clamp, and logit, which may clamp, element by element."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import nan

import numpy as np

from ...autograd.formulas import without
from ...errors import RangeError
from ...op.call import Call
from ...op.declaration import op
from ...op.elementwise import elementwise
from ...op.families import binary, of_tensors
from ...op.rules import as_input, broadcast, floating, ordered, refusing
from ...tensors.tensor import Tensor
from .comparison import where


def _share(g, input, other, beaten):
    """The gradient of what was chosen; equal ones have half of it, NaN and what it hides all."""
    return without(where(input == other, g / 2, g), beaten)


maximum = binary(
    "maximum",
    elementwise(
        "nan_max(input, other)",
        i32="max(input, other)",
        u32="max(input, other)",
        i64="select(input, other, i64_lt(input, other))",
        boolean="input || other",
    ),
    np.maximum,
    {
        "input": lambda g, input, other: _share(g, input, other, input < other),
        "other": lambda g, input, other: _share(g, input, other, other < input),
    },
    "The larger of two, element by element; NaN if one is NaN.",
    form=of_tensors,
    dtype=ordered,
    takes="any real dtype",
    in_place=False,
)

minimum = binary(
    "minimum",
    elementwise(
        "nan_min(input, other)",
        i32="min(input, other)",
        u32="min(input, other)",
        i64="select(other, input, i64_lt(input, other))",
        boolean="input && other",
    ),
    np.minimum,
    {
        "input": lambda g, input, other: _share(g, input, other, input > other),
        "other": lambda g, input, other: _share(g, input, other, other > input),
    },
    "The smaller of two, element by element; NaN if one is NaN.",
    form=of_tensors,
    dtype=ordered,
    takes="any real dtype",
    in_place=False,
)


def _clamp_text(low: str, high: str):
    def text(call: Call) -> str:
        expression = "input"
        if call["min"] is not type(None):
            expression = low.format(expression)
        if call["max"] is not type(None):
            expression = high.format(expression)
        return expression

    return text


def _clamp_types(call: Call):
    if call["min"] is type(None) and call["max"] is type(None):
        raise RangeError("at least one of min and max must be given.")
    return ordered(call)


def _clamp_reference(input, min, max):
    out = input
    if min is not None:
        out = np.maximum(out, min)
    if max is not None:
        out = np.minimum(out, max)
    return out


def _clamp_grad(g, input, min, max):
    """Also at the bounds the gradient is that of the input; where they cross, the upper one counts."""
    inside = None if min is None else input >= min
    if max is not None:
        inside = input <= max if inside is None else inside & (input <= max)
    return where(inside, g, 0.0)


def _clamp_grad_min(g, input, min, max):
    below = input < min
    return where(below if max is None else below & (min < max), g, 0.0)


def _clamp_grad_max(g, input, min, max):
    above = input > max
    return where(above if min is None else above | (max < min), g, 0.0)


@op(
    dtype=_clamp_types,
    shape=broadcast,
    kernel=elementwise(
        _clamp_text("nan_max({}, {{min}})", "nan_min({}, {{max}})"),
        i32=_clamp_text("max({}, {{min}})", "min({}, {{max}})"),
        i64=_clamp_text("i64_max({}, {{min}})", "i64_min({}, {{max}})"),
    ),
    reference=_clamp_reference,
    grad={"input": _clamp_grad, "min": _clamp_grad_min, "max": _clamp_grad_max},
    exact=("min", "max"),
    fits=("min", "max"),
    method=True,
    aliases=("clip",),
    in_place=True,
    aten=("clamp.default", "clamp.Tensor"),
)
def clamp(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Values moved into ``[min, max]``.

    Args:
        input: any tensor.
        min, max: numbers or tensors; at least one.

    Source: https://pytorch.org/docs/stable/generated/torch.clamp.html
    """


def _bounds(eps: float | None) -> tuple[float, float] | None:
    """Between what `logit` takes its input; None where everywhere."""
    return None if eps is None or not eps >= 0 else (eps, 1 - eps)


def _logit_text(call: Call) -> str:
    # Outside (0, 1) the quotient is negative, but for divisors above 2^126, of which WGSL says nothing.
    if (bounds := _bounds(call["eps"])) is None:
        return "log_of(select(input / (1.0 - input), -1.0, abs(input) > 1.0))"
    low, high = (np.float32(bound).item() for bound in bounds)
    x = f"select(select(input, {high!r}, input > {high!r}), {low!r}, input < {low!r})"
    return f"log_of({x} / (1.0 - {x}))"


def _logit_reference(input: np.ndarray, eps: float | None) -> np.ndarray:
    if (bounds := _bounds(eps)) is not None:
        low, high = map(input.dtype.type, bounds)
        input = np.where(input < low, low, np.where(input > high, high, input))
    return np.log(input / (1 - input))


def _logit_grad(g: Tensor, input: Tensor, eps: float | None) -> Tensor:
    """As PyTorch's 0 outside of bounds, and NaN where there are none."""
    low, high = _bounds(eps) or (0, 1)
    outside = (input < low) | (input > high)
    return (g / (input * (1 - input))).masked_fill(outside, nan if _bounds(eps) is None else 0.0)


@op(
    dtype=refusing(floating, "c"),
    shape=as_input,
    kernel=elementwise(_logit_text, i32=False),
    reference=_logit_reference,
    grad={"input": _logit_grad},
    method=True,
    in_place=True,
    aten="logit.default(self, eps=None)",
)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(input / (1 - input))``.

    Args:
        input: any real dtype; integers and bools become the default float.
        eps: keep the input between this and ``1 - eps``.

    Source: https://pytorch.org/docs/stable/generated/torch.logit.html

    Example:
        >>> import pellucid as torch
        >>> torch.logit(torch.tensor([0.0, 0.5], device="cpu"), 0.5).tolist()
        [0.0, 0.0]
    """
