"""Comparisons, logic and selection, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.formulas import zeros
from ...device.stream import stream
from ...errors import ArgumentError, DTypeError, RangeError
from ...op.arguments import number, wrong
from ...op.declaration import Call, elementwise, function, moved, op
from ...op.families import compare, connective, predicate, unary
from ...op.rules import boolean, logical, lone, promote, refusing
from ...tensors.dtypes import get_default_dtype, uint8
from ...tensors.tensor import Tensor

# Complex numbers have no order.
_ORDER = refusing(boolean, "c")
_NUMBERS = "ordered(input.x, input.y) && ordered(other.x, other.y)"


eq = compare(
    "eq", "ordered(input, other) && input == other", "input == other", "i64_eq(input, other)",
    "input == other", np.equal, c64=f"{_NUMBERS} && all(input == other)",
)  # fmt: skip
ne = compare(
    "ne", "!ordered(input, other) || input != other", "input != other", "!i64_eq(input, other)",
    "input != other", np.not_equal, c64=f"!({_NUMBERS}) || any(input != other)",
)  # fmt: skip


def _order(name: str, whole: str, i64: str, bools: str, reference):
    """Declare a comparison of what has an order."""
    f32 = f"ordered(input, other) && {whole}"
    return compare(name, f32, whole, i64, bools, reference, dtype=_ORDER, takes="any real dtype")


lt = _order("lt", "input < other", "i64_lt(input, other)", "!input && other", np.less)
le = _order("le", "input <= other", "!i64_lt(other, input)", "!input || other", np.less_equal)
gt = _order("gt", "input > other", "i64_lt(other, input)", "input && !other", np.greater)
ge = _order("ge", "input >= other", "!i64_lt(input, other)", "input || !other", np.greater_equal)


logical_and = connective("logical_and", "input && other", np.logical_and, "Whether both are not zero.")
logical_or = connective("logical_or", "input || other", np.logical_or, "Whether one is not zero.")
logical_xor = connective("logical_xor", "input != other", np.logical_xor, "Whether exactly one is not zero.")

# Written over a floating-point tensor it makes zeros and ones of it.
logical_not = unary(
    "logical_not", elementwise(None, boolean="!input"), np.logical_not, zeros, "Whether the value is zero.",
    dtype=logical,
)  # fmt: skip


def _where_types(call: Call):
    d = call["condition"].dtype
    if d.kind != "b" and d is not uint8:
        raise DTypeError(f"condition must be bool, not {d}. Compare it with something: condition != 0.")
    return promote(call)


def _places_of(condition: Tensor) -> tuple[Tensor, ...]:
    if not isinstance(condition, Tensor):
        raise wrong("where: condition", "Tensor", condition)
    return condition.nonzero(as_tuple=True)


@op(
    dtype=_where_types,
    kernel=moved("select(other, input, condition)", {"condition": "bool"}),
    reference=np.where,
    grad={
        "input": lambda g, condition: g.where(condition, 0.0),
        "other": lambda g, condition: g.where(condition.logical_not(), 0.0),
    },
    exact=("input", "other"),
    alone=_places_of,
    aten=("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"),
)
def where(condition: Tensor, input: Tensor | float, other: Tensor | float) -> Tensor:
    """``input`` where the condition holds, else ``other``; of a condition alone the places where it holds, as
    ``nonzero(as_tuple=True)`` has them.

    Args:
        condition: bool tensor.
        input, other: tensors or numbers; everything broadcasts.

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([-1.0, 2.0], device="cpu")
        >>> torch.where(x > 0, x, 0.0).tolist()
        [0.0, 2.0]
    """


def _fill_types(call: Call):
    if call["mask"].dtype.kind != "b":
        raise DTypeError(
            f"mask must be bool, not {call['mask'].dtype}. Compare it with something, for example mask != 0."
        )
    return lone("value", "where")(call)


@op(
    dtype=_fill_types,
    kernel=moved("select(input, {value}, mask)", {"mask": "bool"}),
    reference=lambda input, mask, value: np.where(mask, np.asarray(value).astype(input.dtype), input),
    grad={
        "input": lambda g, mask: g.masked_fill(mask, 0.0),
        "value": lambda g, mask: g.where(mask, 0.0).sum(),
    },
    exact=("value",),
    fits=("value",),
    in_place=True,
    aten=("masked_fill.Scalar", "masked_fill.Tensor"),
)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
    """``value`` where the mask holds, else ``input``."""


isnan = predicate("isnan", "is_nan(input)", "false", np.isnan, "Whether the value is NaN.")
isinf = predicate(
    "isinf", "(bitcast<u32>(input) & 0x7fffffffu) == 0x7f800000u", "false", np.isinf,
    "Whether the value is infinite.",
)  # fmt: skip
isfinite = predicate(
    "isfinite", "(bitcast<u32>(input) & 0x7fffffffu) < 0x7f800000u", "true", np.isfinite,
    "Whether the value is neither infinite nor NaN.",
)  # fmt: skip


isposinf = predicate(
    "isposinf", "bitcast<u32>(input) == 0x7f800000u", "false", np.isposinf,
    "Whether the value is positive infinity.", _ORDER,
)  # fmt: skip
isneginf = predicate(
    "isneginf", "bitcast<u32>(input) == 0xff800000u", "false", np.isneginf,
    "Whether the value is negative infinity.", _ORDER,
)  # fmt: skip


@function(method=True)
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """``|input - other| <= atol + rtol * |other|``, element by element."""
    if input.dtype is not other.dtype:
        raise DTypeError(f"isclose: input is {input.dtype} and other is {other.dtype}. Convert one of them.")
    rtol, atol = number(rtol, "isclose: rtol"), number(atol, "isclose: atol")
    if not (rtol >= 0 and atol >= 0):
        raise RangeError(f"isclose: rtol is {rtol} and atol is {atol}; they must not be negative.")
    near = input == other
    if equal_nan:
        near = near | (isnan(input) & isnan(other))
    if rtol == 0 and atol == 0:
        return near
    if input.dtype.kind in "iub":  # as floats, whose difference does not wrap
        input, other = input.to(get_default_dtype()), other.to(get_default_dtype())
    error = (input - other).abs()
    return near | (error <= atol + (rtol * other).abs()) & isfinite(error)


@function(method=True)
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether `isclose` holds everywhere. Reads the answer, and so waits."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


@function(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and values. Reads the answer, and so waits."""
    return input._meta.shape == other._meta.shape and bool((input == other).all().item())


@function(ours="a function of functions, which PyTorch has among its higher orders")
def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """What one of two functions returns: ``true_fn(*operands)`` if ``pred`` holds, else
    ``false_fn(*operands)``.

    A tensor is read, and so waits for the device. A function that is recorded by `pellucid.compile` is split
    there, and each branch is recorded when it is first taken. With ``fullgraph=True`` the value must be known
    while recording.

    Args:
        pred: a number, or a tensor of one element.
        true_fn, false_fn: the branches. PyTorch runs both while it compiles, and requires results of the same
            structure, shapes and dtypes.
        operands: what the branches take; with a tensor as ``pred`` tensors, also nested in lists, tuples and
            dictionaries.

    Raises:
        RuntimeError: ``pred`` has more than one element, a branch is no function, or an operand is no tensor.

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([-1.0, 2.0], device="cpu")
        >>> torch.cond(x.sum() > 0, lambda x: x * 10, lambda x: -x, (x,)).tolist()
        [-10.0, 20.0]
    """
    if not isinstance(pred, (bool, int, float)):
        if not hasattr(pred, "_meta"):
            raise wrong("pred", "True, False or a tensor of one element", pred)
        if pred._meta.numel != 1:
            raise ArgumentError(f"pred has shape {tuple(pred._meta.shape)}; it must have one element.")
        if not (callable(true_fn) and callable(false_fn)):
            raise ArgumentError("true_fn and false_fn must be functions.")
        if not isinstance(operands, (tuple, list)) or not all(map(_holds_tensors, operands)):
            raise ArgumentError(
                "operands must be a tuple of tensors, also nested in lists, tuples and dicts."
            )
        capturing = stream().capturing
        if capturing is not None and capturing.is_whole:
            capturing.refuse(
                "torch.cond chooses a branch by a tensor's value, and only the branch that is taken would be "
                "recorded. PyTorch compiles both, and requires that they return tensors of equal shapes and "
                "dtypes; such tensors can be computed both, and chosen with where()"
            )
    return (true_fn if pred else false_fn)(*operands)


def _holds_tensors(value: Any) -> bool:
    """Whether all leaves of nested containers are tensors."""
    if isinstance(value, dict):
        value = list(value.values())
    return all(map(_holds_tensors, value)) if isinstance(value, (list, tuple)) else hasattr(value, "_meta")
