"""Layers that put elements around their input: constants, its reflection, its edge, its other end."""

from __future__ import annotations

from ...op.arguments import integer_or_integers
from ...ops.shape.padding import pad
from ...tensors.tensor import Tensor
from .module import Module


class _Pad(Module):
    """How many elements at each end of the last axes. ``axes`` is their number, ``mode`` that of `pad`.

    Args:
        padding: how many at every end, or (before, after) of the last axis, then of the one before it.
    """

    axes: int
    mode: str

    def __init__(self, padding: int | tuple[int, ...]):
        super().__init__()
        numbers = integer_or_integers(padding, f"{type(self).__name__}: padding")
        self.padding = (numbers,) * (2 * self.axes) if isinstance(numbers, int) else numbers

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """A padding of one value.

    Args:
        padding: how many at every end, or (before, after) of the last axis, then of the one before it.
        value: of the new elements.
    """

    def __init__(self, padding: int | tuple[int, ...], value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """A padding of zeros.

    Args:
        padding: how many at every end, or (before, after) of the last axis, then of the one before it.
    """

    def __init__(self, padding: int | tuple[int, ...]):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_ConstantPad):
    """At the ends of the last axis a constant; see `pad`."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """At the ends of the last two axes a constant; see `pad`."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """At the ends of the last three axes a constant; see `pad`."""

    axes = 3


class ZeroPad1d(_ZeroPad):
    """At the ends of the last axis zeros; see `pad`."""

    axes = 1


class ZeroPad2d(_ZeroPad):
    """At the ends of the last two axes zeros; see `pad`."""

    axes = 2


class ZeroPad3d(_ZeroPad):
    """At the ends of the last three axes zeros; see `pad`."""

    axes = 3


class ReflectionPad1d(_Pad):
    """At the ends of the last axis the elements next to the end, mirrored at it; see `pad`."""

    axes = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """At the ends of the last two axes the elements next to the end, mirrored at it; see `pad`."""

    axes = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """At the ends of the last three axes the elements next to the end, mirrored at it; see `pad`."""

    axes = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """At the ends of the last axis the last element again; see `pad`."""

    axes = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """At the ends of the last two axes the last element again; see `pad`."""

    axes = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """At the ends of the last three axes the last element again; see `pad`."""

    axes = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """At the ends of the last axis the elements at the other end; see `pad`."""

    axes = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """At the ends of the last two axes the elements at the other end; see `pad`."""

    axes = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """At the ends of the last three axes the elements at the other end; see `pad`."""

    axes = 3
    mode = "circular"


__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]
