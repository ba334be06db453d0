"""Normalization of rows: RMS norm, layer norm."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...op.arguments import integers
from ...op.declaration import Call, op
from ...op.kernel import LONG, Launch, Params, flag, is_direct, load, rows_of
from ...op.rules import as_input, fit_input
from ...tensors import dtypes as dt
from ...tensors.meta import Meta
from ...tensors.tensor import Tensor
from ..reduce.reductions import mean, sum, wide_mean

# So many rows fill a GPU with a workgroup each. So few are those of a step of decoding: its norm is one
# kernel, which products take into theirs, unless its rows are longer than any model's.
_MANY, _FEW, _LONGEST = 2048, 16, 32768
# The distance from 1 to the next number, which PyTorch adds where rms_norm is given no eps.
_EPSILON = {dt.float64: 2.0**-52, dt.float32: 2.0**-23, dt.float16: 2.0**-10, dt.bfloat16: 2.0**-7}


def _types(call: Call):
    m = call["input"]
    if not m.dtype.is_floating_point:
        raise DTypeError(f"the input is {m.dtype}, not floating point. Convert it with .float().")
    _check_shapes(m, call["normalized_shape"], **{k: call.args.get(k) for k in ("weight", "bias")})
    return m.dtype, m.dtype


def _layer_types(call: Call):
    fit_input(call["input"], call.args.get("weight"), call.args.get("bias"))
    return _types(call)


def _check_shapes(m: Meta, shape: Any, **factors: Meta | None) -> None:
    """Refuse a shape that does not end the input's, and factors that do not have it."""
    if not isinstance(shape, tuple) or not shape or tuple(m.shape[-len(shape) :]) != shape:
        raise ShapeError(
            f"normalized_shape {shape} does not end the input's shape {tuple(m.shape)}. Give the lengths of "
            f"its last axes."
        )
    for name, given in factors.items():
        if given is not None and tuple(given.shape) != shape:
            raise ShapeError(
                f"{name} has shape {tuple(given.shape)}, normalized_shape is {shape}. They must be equal."
            )


def _launches(call: Call, kind: str, flags: dict[str, bool], eps: float) -> list[Launch]:
    columns = prod(call["normalized_shape"])
    rows = call.out.numel // max(columns, 1)
    params: Params = {"rows": rows, "columns": columns, "eps": eps}
    bind = {"x": "input"}
    if _are_shared(rows, columns):
        bind |= {} if "HAS_BIAS" in flags else {"bias": "input"}
        flags = {"HAS_BIAS": False, **flags, "CENTRED": kind == "layer"}
        return _in_parts(call, "norm/", 2, flags, params, bind)
    lanes = rows_of(columns, rows)
    file = f"norm/{kind}_held" if lanes.quads else f"norm/{kind}"
    holes = {name: flag(on) for name, on in flags.items()}
    return [Launch(lanes.fill(file, holes), lanes.grid(rows), params, bind=bind)]


def _are_shared(rows: int, columns: int) -> bool:
    """Whether a row is worth several workgroups."""
    return columns >= (_LONGEST if rows < _FEW else LONG) and rows < _MANY


def _in_parts(
    call: Call, name: str, numbers: int, flags: dict[str, bool], params: Params, bind: dict[str, str]
) -> list[Launch]:
    """Of few long rows: several workgroups share one. The first kernel leaves ``numbers`` of each part; each
    takes those of the flags and params that it has."""
    chunk = 2048 if is_direct() else 4096
    parts = -(-int(params["columns"]) // chunk)
    groups = int(params["rows"]) * parts
    lanes = rows_of(chunk, groups, several=False)
    call.temporary("state", (groups, numbers))
    given = params | {"parts": parts, "chunk": chunk}
    made = []
    for file in (f"{name}parts", f"{name}finish"):
        source = load(file)
        holes = {name: flag(on) for name, on in flags.items() if f"const {name} " in source.text}
        own = {name: value for name, value in given.items() if name in source.fields}
        made.append(Launch(lanes.fill(file, holes), groups, own, bind=bind))
    return made


def _last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


def _rms_eps(d: dt.DType, eps: float | None) -> float:
    return _EPSILON[d] if eps is None else eps


def _gradient_launches(call: Call) -> list[Launch]:
    columns = prod(call["normalized_shape"])
    flags = {"HAS_WEIGHT": call["weight"] is not None, "CENTRED": call["centred"]}
    rows = call.out.numel // max(columns, 1)
    params: Params = {"rows": rows, "columns": columns, "eps": call["eps"]}
    bind = {"x": "input"}
    if _are_shared(rows, columns):
        return _in_parts(call, "norm/gradient_", 4, flags, params, bind)
    lanes = rows_of(columns, several=False)
    source = lanes.fill("norm/gradient", {name: flag(on) for name, on in flags.items()})
    return [Launch(source, rows, params, bind=bind)]


def input_gradient(g: Tensor, input: Tensor, dims: tuple[int, ...], eps: float, centred: bool) -> Tensor:
    """The derivative of a norm over axes with respect to its input, of ops that have derivatives."""
    x = input - mean(input, dims, True) if centred else input
    scale = (mean(x * x, dims, True) + eps).rsqrt()
    normal = x * scale
    rest = g - normal * mean(g * normal, dims, True)
    return scale * (rest - mean(g, dims, True) if centred else rest)


def _gradient_composite(g, input, weight, normalized_shape, eps, centred):
    return input_gradient(g if weight is None else g * weight, input, _last(normalized_shape), eps, centred)


def _centred(input: np.ndarray, dims: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The distances from the mean, and the variance: NaN where it leaves the range of float32."""
    x = input.astype(np.float64)
    x = x - wide_mean(x, dims, True, input.dtype)
    variance = wide_mean(x * x, dims, True, input.dtype)
    return x, np.where(np.isinf(variance), np.nan, variance)


def _gradient_reference(g, input, weight, normalized_shape, eps, centred):
    g, x, dims = g.astype(np.float64), input.astype(np.float64), _last(normalized_shape)
    x, square = _centred(input, dims) if centred else (x, wide_mean(x * x, dims, True, input.dtype))
    scale = 1 / np.sqrt(square + eps)
    g = g if weight is None else g * weight
    rest = g - x * (wide_mean(g * x, dims, True, input.dtype) * scale * scale)
    return scale * (rest - g.mean(dims, keepdims=True) if centred else rest)


@op(
    dtype=_types,
    shape=as_input,
    kernel=_gradient_launches,
    reference=_gradient_reference,
    composite=_gradient_composite,
    grad="composite",
    exports=None,
    ours="one of the results of ATen's native_layer_norm_backward and _fused_rms_norm_backward",
)
def norm_gradient(
    g: Tensor,
    input: Tensor,
    weight: Tensor | None,
    normalized_shape: tuple[int, ...],
    eps: float | int,
    centred: bool,
) -> Tensor:
    """The derivative of a norm with respect to its input, where ``g`` is that with respect to its output.

    ``out = s * (h - n * mean(h * n))`` with ``n = input * s``, ``s = 1 / sqrt(mean(input^2) + eps)`` and
    ``h = g * weight``; ``centred``, of a layer norm: the input without its mean, and less ``s * mean(h)``.

    Source: Ba, Kiros and Hinton 2016, "Layer Normalization", equation 3, differentiated
    """


def _normalized(input: Tensor, normalized_shape: tuple[int, ...], eps: float | None, centred: bool) -> Tensor:
    """The norm before its weight."""
    if centred:
        return layer_norm(input, normalized_shape, None, None, 0.0 if eps is None else eps)
    return rms_norm(input, normalized_shape, None, eps)


def _summed(g, normalized_shape, weight_meta):
    """What every row adds to the gradient of a weight or a bias."""
    leading = tuple(range(g.dim() - len(normalized_shape)))
    return (sum(g, leading) if leading else g).to(weight_meta.dtype)


def _rms_reference(input, normalized_shape, weight, eps):
    x, dims = input.astype(np.float64), _last(normalized_shape)
    if eps is None:
        eps = np.finfo(input.dtype).eps
    out = x / np.sqrt(wide_mean(x * x, dims, True, input.dtype) + eps)
    return out if weight is None else out * weight


def _complex_rms(
    input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, eps: float | None
) -> Tensor | None:
    """Of complex numbers the root of the mean of squares, not of squared lengths, as PyTorch has it."""
    meta = input._meta
    if not meta.dtype.is_complex:
        return None
    shape = integers(normalized_shape, "normalized_shape")
    _check_shapes(meta, shape, weight=None if weight is None else weight._meta)
    square = mean(input * input, _last(shape), True)
    eps = _rms_eps(dt.float32 if meta.dtype is dt.complex64 else dt.float64, eps)
    out = input * (square + eps).rsqrt()
    return out if weight is None else out * weight


@op(
    dtype=_types,
    shape=as_input,
    prepare=_complex_rms,
    kernel=lambda call: _launches(
        call, "rms", {"HAS_WEIGHT": call["weight"] is not None}, _rms_eps(call["input"].dtype, call["eps"])
    ),
    reference=_rms_reference,
    grad={
        "input": lambda g, input, normalized_shape, weight, eps: norm_gradient(
            g, input, weight, normalized_shape, _rms_eps(input.dtype, eps), False
        ),
        "weight": lambda g, input, normalized_shape, weight_meta, eps: _summed(
            g * _normalized(input, normalized_shape, eps, centred=False), normalized_shape, weight_meta
        ),
    },
)
def rms_norm(
    input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """``out = input / sqrt(mean(input^2) + eps) * weight`` over the last axes; 0 where the squares of
    a row add up past float32, as in PyTorch.

    Args:
        input: (*, *normalized_shape), floating point, or complex, whose squares are complex, too.
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


def _layer_reference(input, normalized_shape, weight, bias, eps):
    dims = _last(normalized_shape)
    centred, variance = _centred(input, dims)
    out = centred / np.sqrt(variance + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


@op(
    dtype=_layer_types,
    shape=as_input,
    kernel=lambda call: _launches(
        call,
        "layer",
        {"HAS_WEIGHT": call["weight"] is not None, "HAS_BIAS": call["bias"] is not None},
        call["eps"],
    ),
    reference=_layer_reference,
    grad={
        "input": lambda g, input, normalized_shape, weight, eps: norm_gradient(
            g, input, weight, normalized_shape, eps, True
        ),
        "weight": lambda g, input, normalized_shape, weight_meta, eps: _summed(
            g * _normalized(input, normalized_shape, eps, centred=True), normalized_shape, weight_meta
        ),
        "bias": lambda g, normalized_shape, bias_meta: _summed(g, normalized_shape, bias_meta),
    },
    aten="layer_norm.default(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True)",
)
def layer_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float | int = 1e-5,
) -> Tensor:
    """``out = (input - mean) / sqrt(variance + eps) * weight + bias`` over the last axes; NaN where the
    squares of a row add up past float32.

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
