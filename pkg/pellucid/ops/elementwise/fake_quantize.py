"""Fake quantization: numbers as an integer type could hold them, with a straight-through gradient.

Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference".
"""

from __future__ import annotations

import numpy as np

from ...errors import DTypeError, RangeError, ShapeError
from ...op.declaration import Call, elementwise, function, op
from ...op.rules import float_input
from ...tensors.shape import axis as _axis
from ...tensors.tensor import Tensor


def _expression(call: Call) -> str:
    low, high = call["quant_min"], call["quant_max"]
    whole = "clamp({zero_point} + round(select(0.0, input, input == input) * (1.0 / {scale})), %d.0, %d.0)"
    nan = f"select({low}.0, {whole % (low, high)}, input == input)"
    return f"({nan} - {{zero_point}}) * {{scale}}"


def _reference(input, scale, zero_point, quant_min, quant_max):
    with np.errstate(all="ignore"):
        places = zero_point + np.rint(input * (input.dtype.type(1) / scale))
        places = np.fmin(np.fmax(places, quant_min), quant_max)
        return ((places - zero_point) * scale).astype(input.dtype)


def _straight_through(g, input, scale, zero_point, quant_min, quant_max):
    """1 where the integer is in range, and 0 elsewhere; PyTorch multiplies, so NaN stays."""
    places = (input * (1.0 / scale)).round() + zero_point
    return g * ((places >= quant_min) & (places <= quant_max))


def _in_range(input, scale, zero_point, quant_min, quant_max):
    name = "fake_quantize_per_tensor_affine"
    if quant_min > quant_max:
        raise RangeError(f"{name}: quant_min is {quant_min} and quant_max {quant_max}. Exchange them.")
    if isinstance(zero_point, float):
        raise DTypeError(f"{name}: zero_point is {zero_point}, no integer. Round it.")
    if isinstance(zero_point, int) and not quant_min <= zero_point <= quant_max:
        raise RangeError(f"{name}: zero_point is {zero_point}; it must lie in [{quant_min}, {quant_max}].")


@op(
    dtype=float_input,
    kernel=elementwise(_expression, i32=False),
    reference=_reference,
    grad={"input": _straight_through},
    check=_in_range,
    aten=("fake_quantize_per_tensor_affine.default", "fake_quantize_per_tensor_affine.tensor_qparams"),
)  # fmt: skip
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | float, zero_point: Tensor | float, quant_min: int, quant_max: int
) -> Tensor:
    """Each number as the nearest one that an integer from ``quant_min`` to ``quant_max`` stands for.

    ``(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale``. The derivative
    by ``input`` is 1 where nothing is clamped, and 0 elsewhere. NaN counts as below all.

    Args:
        input: floating point.
        scale: the step between two integers, a number or a tensor.
        zero_point: the integer of 0.
        quant_min, quant_max: the least and the largest integer.

    Raises:
        DTypeError: ``input`` is not floating point, or ``zero_point`` is no integer.
        RangeError: there is no such range, or it does not hold ``zero_point``.

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([0.24, 9.0], device="cpu")
        >>> [round(v, 4) for v in torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -8, 7).tolist()]
        [0.2, 0.7]
    """


@function()
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each place along an axis.

    Args:
        input: floating point.
        scale, zero_point: (input.shape[axis],).
        axis: which axis.
        quant_min, quant_max: the least and the largest integer.

    Raises:
        ShapeError: a vector has another length than the axis.
    """
    k = _axis(axis, input.dim())
    for name, given in (("scale", scale), ("zero_point", zero_point)):
        if given.shape != input.shape[k : k + 1]:
            raise ShapeError(
                f"{name} has shape {tuple(given.shape)}; the axis {k} of the input takes ({input.shape[k]},)."
            )
    along = [-1 if j == k else 1 for j in range(input.dim())]
    parts = scale.reshape(along), zero_point.reshape(along)
    return fake_quantize_per_tensor_affine(input, *parts, quant_min, quant_max)
