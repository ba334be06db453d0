"""Methods and operators of Tensor: the ops themselves, attached when this is imported."""

from __future__ import annotations

import numpy as np

from ..op.inplace import in_place
from ..ops import GROUPS
from ..ops.elementwise import arithmetic, comparison, functions
from ..ops.matmul import dense as matmul
from ..ops.random import distributions as random
from .dtypes import LARGEST_HALF
from .tensor import Tensor


def _reflected(function):
    def operator(self, other):
        return function(other, self)

    return operator


def _number_over(self, other):
    """``other / self`` of a number. The reciprocal of a half is rounded first, as in PyTorch."""
    if self._meta.dtype in LARGEST_HALF:
        return functions.reciprocal(self) * other
    return arithmetic.true_divide(other, self)


def _or_not(function):
    """An operator that lets Python try the other operand when this one cannot take it."""

    def operator(self, other):
        if isinstance(other, (Tensor, int, float, complex, np.generic)):
            return function(self, other)
        return NotImplemented

    return operator


_OPERATORS = {
    "__add__": arithmetic.add,
    "__radd__": arithmetic.add,
    "__sub__": arithmetic.sub,
    "__rsub__": arithmetic.rsub,
    "__mul__": arithmetic.mul,
    "__rmul__": arithmetic.mul,
    "__truediv__": arithmetic.true_divide,
    "__rtruediv__": _number_over,
    "__floordiv__": arithmetic.floor_divide,
    "__rfloordiv__": _reflected(arithmetic.floor_divide),
    "__mod__": arithmetic.remainder,
    "__rmod__": _reflected(arithmetic.remainder),
    "__pow__": arithmetic.pow,
    "__rpow__": _reflected(arithmetic.pow),
    "__neg__": arithmetic.neg,
    "__matmul__": matmul.matmul,
    "__rmatmul__": _reflected(matmul.matmul),
    "__pos__": arithmetic.positive,
    "__abs__": functions.abs,
    "__invert__": arithmetic.bitwise_not,
    "__and__": arithmetic.bitwise_and,
    "__rand__": arithmetic.bitwise_and,
    "__or__": arithmetic.bitwise_or,
    "__ror__": arithmetic.bitwise_or,
    "__xor__": arithmetic.bitwise_xor,
    "__rxor__": arithmetic.bitwise_xor,
    "__lshift__": arithmetic.bitwise_left_shift,
    "__rshift__": arithmetic.bitwise_right_shift,
    "__eq__": _or_not(comparison.eq),
    "__ne__": _or_not(comparison.ne),
    "__lt__": comparison.lt,
    "__le__": comparison.le,
    "__gt__": comparison.gt,
    "__ge__": comparison.ge,
    "__iadd__": in_place(arithmetic.add.op),
    "__isub__": in_place(arithmetic.sub.op),
    "__imul__": in_place(arithmetic.mul.op),
    "__itruediv__": in_place(arithmetic.true_divide.op),
    "__ifloordiv__": in_place(arithmetic.floor_divide.op),
    "__imod__": in_place(arithmetic.remainder.op),
    "__ipow__": in_place(arithmetic.pow.op),
    "__iand__": in_place(arithmetic.bitwise_and.op),
    "__ior__": in_place(arithmetic.bitwise_or.op),
    "__ixor__": in_place(arithmetic.bitwise_xor.op),
}


def _attach() -> None:
    for group in GROUPS:
        for name in getattr(group, "METHODS", "").split():
            setattr(Tensor, name, getattr(group, name))
        for name in getattr(group, "IN_PLACE", "").split():
            setattr(Tensor, f"{name}_", in_place(getattr(group, name).op))
    Tensor.div_ = in_place(arithmetic.true_divide.op)  # type: ignore[attr-defined]
    Tensor.normal_ = random.normal_  # type: ignore[attr-defined]
    Tensor.uniform_ = random.uniform_  # type: ignore[attr-defined]
    for name, function in _OPERATORS.items():
        setattr(Tensor, name, function.op.operator() if hasattr(function, "op") else function)


_attach()
