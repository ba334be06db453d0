"""Tensor types by dtype, such as ``torch.LongTensor``, and what ``torch.Tensor(...)`` makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device import resolved
from ..errors import ArgumentError
from ..op.arguments import describe
from ..ops.shape.creation import empty
from . import dtypes as dt
from .construct import tensor
from .dtypes import DType, get_default_dtype
from .tensor import Tensor


def construct(given: tuple, dtype: DType | None = None, device: Any = None) -> Tensor:
    """What ``torch.Tensor(*given)`` makes: memory of a shape given as integers, else a copy of data.

    Args:
        given: lengths of the axes, a `Size`, a sequence, an array, a tensor (which is shared), or nothing.
        dtype: of the result; the default float if None.
        device: where; the default device if None.

    Raises:
        ArgumentError: it is something else.
    """
    dtype = dtype or get_default_dtype()
    if len(given) == 1 and not isinstance(given[0], (int, np.integer)):
        data = given[0]
        if isinstance(data, tuple) and type(data) is not tuple:  # a Size is a shape
            return empty(tuple(data), dtype=dtype, device=device)
        if isinstance(data, Tensor):
            return data.detach().to(dtype)
        if not isinstance(data, (list, tuple, np.ndarray, range)):
            raise ArgumentError(
                f"Tensor: takes lengths of axes or a sequence of numbers, not {describe(data)}. Use "
                "torch.tensor for a number."
            )
        return tensor(data, device=device).to(dtype)
    if not given:
        return empty(0, dtype=dtype, device=device)
    return empty(*given, dtype=dtype, device=device)


def new(like: Tensor, *given: Any, device: Any = None) -> Tensor:
    """A tensor made as by ``torch.Tensor(...)``, of the dtype and the device of another one."""
    return construct(given, like.dtype, like.device if device is None else resolved(device))


class _TypeOfTensors(type):
    """The class of tensor types: each tensor of its dtype is an instance, wherever it lies."""

    dtype: DType

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype

    def __call__(cls, *given: Any, device: Any = None) -> Tensor:
        return construct(given, cls.dtype, device)


# By PyTorch's names. They say nothing of a device: what they make lies on the default one.
TYPES: dict[str, Any] = {
    f"{name}Tensor": _TypeOfTensors(
        f"{name}Tensor", (), {"dtype": d, "__doc__": f"Tensors of {d.name}.", "__module__": "pellucid"}
    )
    for name, d in {
        "Float": dt.float32, "Double": dt.float64, "Half": dt.float16, "BFloat16": dt.bfloat16,
        "Byte": dt.uint8, "Char": dt.int8, "Short": dt.int16, "Int": dt.int32, "Long": dt.int64,
        "Bool": dt.bool_, "ComplexFloat": dt.complex64, "ComplexDouble": dt.complex128,
    }.items()
}  # fmt: skip


def type_name(d: DType) -> str:
    """The name of the tensor type of a dtype, as ``x.type()`` gives it."""
    found = next((name for name, kind in TYPES.items() if kind.dtype is d), None)
    return f"torch.{found}" if found else f"torch.{d.name}"


def dtype_of(kind: Any) -> DType:
    """The dtype that a type of tensors, its name or a dtype stands for.

    Raises:
        ArgumentError: it is something else.
    """
    if isinstance(kind, str):
        kind = TYPES.get(kind.removeprefix("torch."), kind)
    if isinstance(kind, _TypeOfTensors):
        return kind.dtype
    if isinstance(kind, DType):
        return kind
    raise ArgumentError(
        f"type: takes a dtype or the name of a tensor type such as 'torch.LongTensor', not {describe(kind)}."
    )


def set_default_tensor_type(t: Any) -> None:
    """Change the dtype that Python floats become, by a tensor type or its name.

    Raises:
        ArgumentError: it is no tensor type.
        DTypeError: its dtype is not floating point.

    Source: https://pytorch.org/docs/stable/generated/torch.set_default_tensor_type.html
    """
    dt.set_default_dtype(dtype_of(t))
