"""Tensors as programs of PyTorch before 0.4 wrap them."""

from __future__ import annotations

from typing import Any

from ..tensors.tensor import Tensor


class _Tensors(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_Tensors):
    """The tensor itself: since PyTorch 0.4 tensors are variables. Every tensor is an instance of it.

    Args:
        data: the tensor.
        requires_grad: whether ops record what becomes of it.

    Source: https://pytorch.org/docs/stable/autograd.html#variable-deprecated
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:
        own = data.detach()
        return own.requires_grad_(requires_grad and not volatile)


__all__ = ["Variable"]
