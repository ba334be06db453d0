"""Complex numbers, which live on the cpu device: parts, angle, conjugate, and the same of real numbers."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import pi

import numpy as np

from ...autograd.formulas import zeros
from ...errors import DTypeError, GradientError
from ...op.arguments import wrong
from ...op.call import Call
from ...op.elementwise import elementwise
from ...op.families import binary, unary
from ...op.public import function
from ...op.rules import floating, promote
from ...tensors import dtypes as dt
from ...tensors.meta import meta
from ...tensors.tensor import Tensor
from .comparison import eq
from .functions import sign

_PART = {dt.complex64: dt.float32, dt.complex128: dt.float64}
_WHOLE = {part: whole for whole, part in _PART.items()}


def _angle_types(call: Call):
    d, compute = floating(call)
    return _PART.get(d, d), compute


def _angle(input):
    return np.angle(input) if input.dtype.kind == "c" else np.where(np.isnan(input), input, pi * (input < 0))


def _angle_grad(g, input):
    if not input._meta.dtype.is_complex:
        return zeros(g)
    return g * (input * 1j / input.abs().square()).masked_fill(input == 0, 0.0)


angle = unary(
    "angle", f"select(select(0.0, {pi}, input < 0.0), input, is_nan(input))", _angle, _angle_grad,
    "The angle in radians from 1 to the number: 0 or pi of real ones.", dtype=_angle_types,
    takes="any dtype", at=-1.5, in_place=False,
)  # fmt: skip


def _conjugate(name: str, in_place: bool):
    return unary(
        name, elementwise("input", i64="input", boolean="input"), np.conj,
        lambda g: g.conj_physical(), "The conjugate: the imaginary part negated.", dtype=promote,
        in_place=in_place,
    )  # fmt: skip


conj_physical = _conjugate("conj_physical", True)


def _sgn(input):
    if input.dtype.kind != "c":
        return sign.op.reference(input)
    return np.divide(input, np.abs(input), out=np.zeros_like(input), where=input != 0)


sgn = unary(
    "sgn", sign.op.kernel, _sgn, zeros, "The number over its size, 0 at 0: of real ones the sign.",
    dtype=promote, at=-0.5,
)  # fmt: skip


@function(method=True)
def conj(input: Tensor) -> Tensor:
    """The conjugate; of real numbers the tensor itself. It is computed at once, and no view.

    Source: https://pytorch.org/docs/stable/generated/torch.conj.html
    """
    return conj_physical(input) if input.dtype.is_complex else input


def _itself(name: str, input: Tensor) -> Tensor:
    if not isinstance(input, Tensor):
        raise wrong(f"{name}: input", "Tensor", input)
    return input


@function(method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once.

    Source: https://pytorch.org/docs/stable/generated/torch.resolve_conj.html
    """
    return _itself("resolve_conj", input)


@function(method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negatives are computed at once.

    Source: https://pytorch.org/docs/stable/generated/torch.resolve_neg.html
    """
    return _itself("resolve_neg", input)


@function(method=True, ours="PyTorch reads the dtype, in Python")
def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex numbers.

    Source: https://pytorch.org/docs/stable/generated/torch.is_complex.html
    """
    return input.dtype.is_complex


def _part(name: str, input: Tensor, k: int) -> Tensor:
    """A view of every second float."""
    if input.requires_grad:
        raise GradientError(f"{name}: has no derivative here. Use .abs() and .angle(), or detach the tensor.")
    m = input._meta
    steps = tuple(2 * step for step in m.strides)
    return Tensor(input._storage, meta(m.shape, _PART[m.dtype], m.device, steps), 2 * input._offset + k)


@function(ours="PyTorch makes a view of it, in C++")
def real(input: Tensor) -> Tensor:
    """The real parts, which share memory with the tensor; of real numbers the tensor itself.

    Source: https://pytorch.org/docs/stable/generated/torch.real.html
    """
    return _part("real", input, 0) if input.dtype.is_complex else input


@function(ours="PyTorch makes a view of it, in C++")
def imag(input: Tensor) -> Tensor:
    """The imaginary parts, which share memory with the tensor.

    Source: https://pytorch.org/docs/stable/generated/torch.imag.html
    """
    if not input.dtype.is_complex:
        raise DTypeError(f"imag: takes complex tensors, not {input.dtype}, whose imaginary part is 0.")
    return _part("imag", input, 1)


@function(method=True)
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0.

    Source: https://pytorch.org/docs/stable/generated/torch.isreal.html
    """
    if not input.dtype.is_complex:
        return input.new_ones(input.shape, dtype=dt.bool_)
    return eq(imag(input.detach()), 0)


def of_parts(real: Tensor, imag: Tensor) -> Tensor: ...


def of_angle(abs: Tensor, angle: Tensor) -> Tensor: ...


def _complex_types(call: Call):
    first, second = [m.dtype for _, m in call.tensors()]
    if first is not second or first not in _WHOLE:
        raise DTypeError(f"takes two tensors of float32, or two of float64, not {first} and {second}.")
    return _WHOLE[first], _WHOLE[first]


_OPTIONS = {"dtype": _complex_types, "takes": "float32 or float64", "method": False, "at": (1.0, 2.0)}
polar = binary(
    "polar", "abs", lambda abs, angle: abs * np.exp(1j * angle), None,
    "The complex number of a size and an angle in radians.", form=of_angle, **_OPTIONS,
)  # fmt: skip
complex = binary(
    "complex", "real", lambda real, imag: real + 1j * imag, None,
    "The complex number of two parts.", form=of_parts, **_OPTIONS,
)  # fmt: skip
