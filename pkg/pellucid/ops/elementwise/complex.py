"""Complex numbers: parts, angle, conjugate, and the same of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import pi

import numpy as np

from ...autograd.formulas import zeros
from ...errors import DTypeError, ShapeError
from ...op.declaration import Call, elementwise, function, op
from ...op.families import binary, called, unary
from ...op.rules import floating, promote, real_result
from ...tensors import dtypes as dt
from ...tensors.tensor import Tensor
from .comparison import eq
from .functions import cos, sign, sin

_PART = {dt.complex64: dt.float32, dt.complex128: dt.float64}
_WHOLE = {part: whole for whole, part in _PART.items()}


def _angle(input):
    return np.angle(input) if input.dtype.kind == "c" else np.where(np.isnan(input), input, pi * (input < 0))


def _angle_grad(g, input):
    if not input._meta.dtype.is_complex:
        return zeros(g)
    return g * (input * 1j / input.abs().square()).masked_fill(input == 0, 0.0)


angle = unary(
    "angle", elementwise(
        f"select(select(0.0, {pi}, input < 0.0), input, is_nan(input))", i32=False,
        c64="atan2_of(input.y, input.x)", result="real",
    ), _angle, _angle_grad,
    "The angle in radians from 1 to the number: 0 or pi of real ones.", dtype=real_result(floating),
    takes="any dtype", at=-1.5, in_place=False,
)  # fmt: skip


conj_physical = unary(
    "conj_physical",
    elementwise("input", i64="input", boolean="input", c64="vec2<f32>(input.x, -input.y)"), np.conj,
    lambda g: g.conj_physical(), "The conjugate: the imaginary part negated.", dtype=promote,
)  # fmt: skip


def _sgn(input):
    if input.dtype.kind != "c":
        return sign.op.reference(input)
    return np.divide(input, np.abs(input), out=np.zeros_like(input), where=input != 0)


def _sgn_grad(g, input, out):
    if not input._meta.dtype.is_complex:
        return zeros(g)
    # What is left of the gradient is at right angles to the number.
    along = out * real(g * out.conj())
    return ((g - along) / input.abs()).masked_fill(input == 0, 0.0)


sgn = unary(
    "sgn", replace(sign.op.kernel, texts={**sign.op.kernel.texts, "c64": "complex_sgn(input)"}), _sgn,
    _sgn_grad, "The number over its size, 0 at 0: of real ones the sign.",
    dtype=promote, at=-0.5,
)  # fmt: skip


@function(method=True)
def conj(input: Tensor) -> Tensor:
    """The conjugate; of real numbers the tensor itself. It is computed at once, and no view."""
    return conj_physical(input) if input.dtype.is_complex else input


def _resolve(name: str, what: str) -> Callable[[Tensor], Tensor]:
    def call(input: Tensor) -> Tensor:
        return input

    return called(name, f"The tensor itself: {what} are computed at once.", call, method=True)


resolve_conj, resolve_neg = _resolve("resolve_conj", "conjugates"), _resolve("resolve_neg", "negatives")


@function(method=True, ours="PyTorch reads the dtype, in Python")
def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex numbers."""
    return input.dtype.is_complex


def _parts(call: Call):
    m = call["input"]
    if not m.dtype.is_complex:
        raise DTypeError(f"takes complex tensors, not {m.dtype}.")
    strides = (*[2 * step for step in m.strides], 1)
    return (*m.shape, 2), strides, 0, _PART[m.dtype]


def _whole(g: Tensor) -> Tensor:
    return view_as_complex(g.contiguous())


@op(view=_parts, grad={"input": _whole})
def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor as one of floats in the same memory: a last axis has the parts, the real one first."""


def _joined(call: Call):
    m = call["input"]
    if m.dtype not in _WHOLE:
        raise DTypeError(f"takes float32 or float64, not {m.dtype}.")
    if not m.rank or m.shape[-1] != 2:
        raise ShapeError(f"the last axis must have length 2, for both parts; the shape is {tuple(m.shape)}.")
    if m.strides[-1] != 1 or any(step % 2 for step in m.strides[:-1]):
        raise ShapeError(
            f"parts that lie {m.strides} apart are no complex numbers in memory. Call .contiguous() first."
        )
    return m.shape[:-1], tuple(step // 2 for step in m.strides[:-1]), 0, _WHOLE[m.dtype]


def _even(input: Tensor) -> None:
    if input._offset % 2:
        raise ShapeError("view_as_complex: the tensor begins between two numbers. Call .clone() first.")


@op(view=_joined, grad={"input": lambda g: view_as_real(g)}, check=_even)
def view_as_complex(input: Tensor) -> Tensor:
    """Floats as complex numbers, which share memory: the last axis, of length 2, has both parts.

    Raises:
        ShapeError: the last axis has another length, or parts do not lie side by side.
        DTypeError: not float32 or float64.
    """


@function(ours="PyTorch makes a view of it, in C++")
def real(input: Tensor) -> Tensor:
    """The real parts, which share memory with the tensor; of real numbers the tensor itself."""
    return view_as_real(input)[..., 0] if input.dtype.is_complex else input


@function(ours="PyTorch makes a view of it, in C++")
def imag(input: Tensor) -> Tensor:
    """The imaginary parts, which share memory with the tensor."""
    if not input.dtype.is_complex:
        raise DTypeError(f"imag: takes complex tensors, not {input.dtype}, whose imaginary part is 0.")
    return view_as_real(input)[..., 1]


@function(method=True)
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0."""
    if not input.dtype.is_complex:
        return input.new_ones(input.shape, dtype=dt.bool_)
    return eq(imag(input.detach()), 0)


def of_parts(real: Tensor, imag: Tensor) -> Tensor: ...


def _whole_of(first: dt.DType, second: dt.DType) -> dt.DType:
    if first is not second or first not in _WHOLE:
        raise DTypeError(f"takes two tensors of float32, or two of float64, not {first} and {second}.")
    return _WHOLE[first]


def _complex_types(call: Call):
    whole = _whole_of(*[m.dtype for _, m in call.tensors()])
    return whole, whole


def _with_parts(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    """Both parts as they are: a product with the imaginary unit makes NaN of the other one at infinity."""
    real, imag = np.broadcast_arrays(real, imag)
    out = np.empty(real.shape, np.result_type(real, np.complex64))
    out.real, out.imag = np.real(real), np.real(imag)  # the operands are cast to the result's type
    return out


complex = binary(
    "complex", elementwise(None, c64="vec2<f32>(real.x, imag.x)"), _with_parts,
    {"real": lambda g: real(g), "imag": lambda g: imag(g)}, "The complex number of two parts.",
    form=of_parts, dtype=_complex_types, takes="float32 or float64", method=False, at=(1.0, 2.0),
)  # fmt: skip


@function(node="Polar")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """The complex number of a size and an angle in radians.

    Args:
        abs, angle: float32 or float64.
    """
    _whole_of(abs.dtype, angle.dtype)
    return complex(abs * cos(angle), abs * sin(angle))
