"""Normalization of rows (RMS norm, layer norm) and vector norms."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes as dt
from ..call import Call
from ..dtypes import DType
from ..errors import DTypeError, ShapeError
from ..kernel import Launch
from ..op import op
from ..rules import as_input
from ..shape import axes
from ..variants import rows_of
from .extremum import amax, amin
from .reduce import mean, sum

if TYPE_CHECKING:
    from ..tensor import Tensor

# The distance from 1 to the next number, which PyTorch adds where rms_norm is given no eps.
_EPSILON = {dt.float64: 2.0**-52, dt.float32: 2.0**-23, dt.float16: 2.0**-10, dt.bfloat16: 2.0**-7}


def _types(call: Call):
    m = call["input"]
    if not m.dtype.is_floating_point:
        raise DTypeError(f"the input is {m.dtype}, not floating point. Convert it with .float().")
    shape = call["normalized_shape"]
    if not isinstance(shape, tuple) or not shape or tuple(m.shape[-len(shape) :]) != shape:
        raise ShapeError(
            f"normalized_shape {shape} does not end the input's shape {tuple(m.shape)}. Give the lengths of "
            f"its last axes."
        )
    for name in ("weight", "bias"):
        if (given := call.args.get(name)) is not None and tuple(given.shape) != shape:
            raise ShapeError(
                f"{name} has shape {tuple(given.shape)}, normalized_shape is {shape}. They must be equal."
            )
    return m.dtype, m.dtype


def _launch(call: Call, kind: str, flags: dict[str, bool], eps: float) -> Launch:
    columns = prod(call["normalized_shape"])
    rows = call.out.numel // max(columns, 1)
    lanes = rows_of(columns)
    file = f"norm/{kind}_held" if lanes.quads else f"norm/{kind}"
    source = lanes.fill(file, {name: str(flag).lower() for name, flag in flags.items()})
    params: dict[str, int | float] = {"rows": rows, "columns": columns, "eps": eps}
    return Launch(source, lanes.grid(rows), params, bind={"x": "input"})


def _last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


def _rms_eps(d: DType, eps: float | None) -> float:
    return _EPSILON[d] if eps is None else eps


def _rms_composite(input, normalized_shape, weight, eps):
    scale = (mean(input * input, _last(normalized_shape), True) + _rms_eps(input.dtype, eps)).rsqrt()
    return input * scale if weight is None else input * scale * weight


def _rms_reference(input, normalized_shape, weight, eps):
    x = input.astype(np.float64)
    if eps is None:
        eps = np.finfo(input.dtype).eps
    out = x / np.sqrt((x * x).mean(_last(normalized_shape), keepdims=True) + eps)
    return out if weight is None else out * weight


@op(
    dtype=_types,
    shape=as_input,
    kernel=lambda call: _launch(
        call,
        "rms",
        {"HAS_WEIGHT": call["weight"] is not None},
        _rms_eps(call["input"].dtype, call["eps"]),
    ),
    reference=_rms_reference,
    composite=_rms_composite,
    grad="composite",
)
def rms_norm(
    input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """``out = input / sqrt(mean(input^2) + eps) * weight`` over the last axes.

    Args:
        input: (*, *normalized_shape), floating point.
        normalized_shape: lengths of the axes that are normalized together.
        weight: normalized_shape, or None.
        eps: added to the mean; the dtype's machine epsilon if None.

    Returns:
        Shape and dtype of the input.

    Raises:
        ShapeError: ``normalized_shape`` or the weight does not fit.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html; Zhang and Sennrich
        2019, equation 4
    """


def _layer_composite(input, normalized_shape, weight, bias, eps):
    dims = _last(normalized_shape)
    centred = input - mean(input, dims, True)
    out = centred * (mean(centred * centred, dims, True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias


def _layer_reference(input, normalized_shape, weight, bias, eps):
    x = input.astype(np.float64)
    dims = _last(normalized_shape)
    centred = x - x.mean(dims, keepdims=True)
    out = centred / np.sqrt((centred * centred).mean(dims, keepdims=True) + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


@op(
    dtype=_types,
    shape=as_input,
    kernel=lambda call: _launch(
        call,
        "layer",
        {"HAS_WEIGHT": call["weight"] is not None, "HAS_BIAS": call["bias"] is not None},
        call["eps"],
    ),
    reference=_layer_reference,
    composite=_layer_composite,
    grad="composite",
)
def layer_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float | int = 1e-5,
) -> Tensor:
    """``out = (input - mean) / sqrt(variance + eps) * weight + bias`` over the last axes.

    Args:
        input: (*, *normalized_shape), floating point.
        normalized_shape: lengths of the axes that are normalized together.
        weight, bias: normalized_shape, or None.
        eps: added to the variance.

    Returns:
        Shape and dtype of the input.

    Raises:
        ShapeError: ``normalized_shape``, the weight or the bias does not fit.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html; Ba, Kiros and
        Hinton 2016, equation 3
    """


def norm(
    input: Tensor, p: float | str = "fro", dim=None, keepdim: bool = False, dtype: DType | None = None
) -> Tensor:
    """Vector norm over axes: ``(sum |x|^p)^(1/p)``; p = inf largest, -inf smallest, 0 the number of
    nonzero elements.

    Args:
        input: floating point.
        p: the order; "fro" is 2.
        dim: axis or axes; all if None.
        keepdim: keep the axes, with length 1.
        dtype: type to convert to first.

    Raises:
        DTypeError: an integer tensor.

    Source: https://pytorch.org/docs/stable/generated/torch.norm.html
    """
    if dtype is not None:
        input = input.to(dtype)
    if not input.dtype.is_floating_point:
        raise DTypeError(f"norm: the input is {input.dtype}, not floating point. Convert it with .float().")
    if isinstance(p, str):
        if p != "fro":
            raise ValueError(f"norm: p={p!r} is not a vector norm. Give a number or 'fro'.")
        p = 2.0
    axes(dim, input.dim())
    if p == 2:
        # The gradient of the root is infinite at 0; there the norm's is taken as 0, as in PyTorch.
        squares = sum(input * input, dim, keepdim)
        is_zero = squares == 0
        return squares.masked_fill(is_zero, 1.0).sqrt().masked_fill(is_zero, 0.0)
    size = input.abs()
    if p == inf:
        return amax(size, dim, keepdim)
    if p == -inf:
        return amin(size, dim, keepdim)
    if p == 0:
        return sum(input.sign().abs(), dim, keepdim)
    if p == 1:
        return sum(size, dim, keepdim)
    return sum(size**p, dim, keepdim) ** (1.0 / p)


# What is also a method of Tensor.
METHODS = "norm"
