"""The larger and the smaller of two, and clamp, element by element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...autograd.formulas import without
from ...errors import RangeError
from ...op.declaration import Call, elementwise, op
from ...op.families import binary, of_tensors
from ...op.rules import ordered
from ...tensors.tensor import Tensor
from .comparison import ge, gt, le, lt, where


def _share(g, input, other, beaten):
    """The gradient of what was chosen; equal ones have half of it, NaN and what it hides all."""
    return without(where(input == other, g / 2, g), beaten)


def _choice(name: str, which: str, f32: str, reference, grad: dict[str, Callable], nan: str):
    """Declare the choice of the larger or the smaller of two."""
    whole, i64 = f"{which}(input, other)", f"i64_{which}(input, other)"
    bools = "input || other" if which == "max" else "input && other"
    return binary(
        name, elementwise(f32, i32=whole, u32=whole, i64=i64, boolean=bools), reference, grad,
        f"The {'larger' if which == 'max' else 'smaller'} of two{nan}",
        form=of_tensors, dtype=ordered, in_place=False,
    )  # fmt: skip


def _extreme(name: str, which: str, reference, loses: Callable):
    """Declare a choice that takes NaN where one is."""
    return _choice(name, which, f"nan_{which}(input, other)", reference, {
        "input": lambda g, input, other: _share(g, input, other, loses(input, other)),
        "other": lambda g, input, other: _share(g, input, other, loses(other, input)),
    }, ", element by element; NaN if one is NaN.")  # fmt: skip


maximum = _extreme("maximum", "max", np.maximum, lt)
minimum = _extreme("minimum", "min", np.minimum, gt)


def _number_first(name: str, which: str, reference, beats: Callable):
    """Declare a choice that takes NaN only where both are."""
    f32 = f"select(select({which}(input, other), other, is_nan(input)), input, is_nan(other))"
    return _choice(name, which, f32, reference, {
        "input": lambda g, input, other: g.where(beats(input, other) | other.isnan(), 0.0),
        "other": lambda g, input, other: g.masked_fill(beats(input, other) | other.isnan(), 0.0),
    }, "; the other one where one is NaN.")  # fmt: skip


fmax = _number_first("fmax", "max", np.fmax, ge)
fmin = _number_first("fmin", "min", np.fmin, le)


def at_least(input: Tensor, min: Tensor | float) -> Tensor: ...
def at_most(input: Tensor, max: Tensor | float) -> Tensor: ...


def _bound(name: str, form: Callable, bound: str, which: str, reference, grad: dict[str, Callable]):
    """Declare `clamp` with one bound; at the bound the gradient is that of the input."""
    whole, i64 = f"{which}(input, {{{bound}}})", f"i64_{which}(input, {{{bound}}})"
    bools = f"input {'||' if which == 'max' else '&&'} {{{bound}}}"
    return binary(
        name, elementwise(f"nan_{whole}", i32=whole, i64=i64, boolean=bools), reference, grad,
        f"`clamp` with ``{bound}`` alone.", form=form, dtype=ordered,
        aten=(f"{name}.default", f"{name}.Tensor"),
    )  # fmt: skip


clamp_min = _bound("clamp_min", at_least, "min", "max", np.maximum, {
    "input": lambda g, input, min: where(input >= min, g, 0.0),
    "min": lambda g, input, min: where(input < min, g, 0.0),
})  # fmt: skip
clamp_max = _bound("clamp_max", at_most, "max", "min", np.minimum, {
    "input": lambda g, input, max: where(input <= max, g, 0.0),
    "max": lambda g, input, max: where(input > max, g, 0.0),
})  # fmt: skip


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
    kernel=elementwise(
        _clamp_text("nan_max({}, {{min}})", "nan_min({}, {{max}})"),
        i32=_clamp_text("max({}, {{min}})", "min({}, {{max}})"),
        i64=_clamp_text("i64_max({}, {{min}})", "i64_min({}, {{max}})"),
    ),
    reference=_clamp_reference,
    grad={"input": _clamp_grad, "min": _clamp_grad_min, "max": _clamp_grad_max},
    exact=("min", "max"),
    fits=("min", "max"),
    in_place=True,
    aten=("clamp.default", "clamp.Tensor"),
)
def clamp(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Values moved into ``[min, max]``.

    Args:
        input: any tensor.
        min, max: numbers or tensors; at least one.
    """
