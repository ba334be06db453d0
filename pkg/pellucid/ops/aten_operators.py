"""Operators of ATen that have no function of their own in PyTorch's Python: exported graphs are made of them.

A row, where a function of the op table computes the operator; a function, where arguments or results differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DTypeError, ShapeError
from ..op.public import OVERLOADS, copied_over, name_overloads
from ..tensors import dtypes as dt
from ..tensors.tensor import Tensor
from .conv import convolution as conv
from .elementwise import bitwise
from .fft import transforms as fft
from .image import resample
from .matmul import contractions
from .norm import channels, softmax
from .random import distributions
from .shape import creation, views
from .shape import padding as pads

# Functions by the operators that they compute besides their own.
_ROWS: dict[str, Callable] = {
    "_unsafe_view.default": views.view,
    "_native_batch_norm_legit.default": channels.native_batch_norm,
    **{
        f"__{name}__.{kind}": function
        for kind in ("Tensor", "Scalar")
        for name, function in (
            ("and", bitwise.bitwise_and),
            ("or", bitwise.bitwise_or),
            ("xor", bitwise.bitwise_xor),
            ("lshift", bitwise.bitwise_left_shift),
            ("rshift", bitwise.bitwise_right_shift),
        )
    },
}
# Operators that Tensor has no in-place form of: the result is copied over the first argument.
_IN_PLACE = (
    "celu.default elu.default gelu.default hardsigmoid.default hardswish.default hardtanh.default "
    "leaky_relu.default mish.default selu.default silu.default threshold.default dropout.default "
    "addbmm.default cumsum.default cumprod.default"
)


def _overload(*names: str) -> Callable[[Callable], Callable]:
    """Name the overloads of a function whose arguments are ATen's."""

    def declare(function: Callable) -> Callable:
        name_overloads(function, names, "")
        return function

    return declare


@_overload("_softmax.default")
def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return softmax.softmax(self, dim, dt.float32 if half_to_float else None)


@_overload("_log_softmax.default")
def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return softmax.log_softmax(self, dim, dt.float32 if half_to_float else None)


@_overload("cdist.default", "_cdist_forward.default")
def _cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    return contractions.cdist(x1, x2, p, contractions.MODES[compute_mode or 0])


@_overload("tensordot.default")
def _tensordot(self: Tensor, other: Tensor, dims_self, dims_other) -> Tensor:
    return contractions.tensordot(self, other, (dims_self, dims_other))


@_overload("convolution.default")
def _convolution(
    input: Tensor,
    weight: Tensor,
    bias,
    stride,
    padding,
    dilation,
    transposed: bool,
    output_padding,
    groups: int,
) -> Tensor:
    count, settings = len(stride), (input, weight, bias, tuple(stride), tuple(padding))
    if transposed:
        spread = getattr(conv, f"conv_transpose{count}d")
        return spread(*settings, tuple(output_padding), groups, tuple(dilation))
    return getattr(conv, f"conv{count}d")(*settings, tuple(dilation), groups)


@_overload("index.Tensor", "_unsafe_index.Tensor")
def _index(self: Tensor, indices) -> Tensor:
    return self[tuple(slice(None) if i is None else i for i in indices)]


@_overload("_to_copy.default")
def _to_copy(
    self: Tensor,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=None,
    non_blocking=False,
    memory_format=None,
) -> Tensor:
    return self.to(device or self.device, dtype or self.dtype, copy=True)


@_overload("alias.default", "lift_fresh_copy.default", "lift_fresh.default")
def _alias(self: Tensor) -> Tensor:
    return views.view_as(self, self)


@_overload("detach.default")
def _detach(self: Tensor) -> Tensor:
    return self.detach()


@_overload("scalar_tensor.default")
def _scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=None) -> Tensor:
    return creation.full((), s, dtype=dtype or dt.get_default_dtype(), device=device)


@_overload("arange.default")
def _arange(end, *, dtype=None, layout=None, device=None, pin_memory=None) -> Tensor:
    return creation.arange(end, dtype=dtype, device=device)


@_overload("randint.default")
def _randint(high, size, *, dtype=None, layout=None, device=None, pin_memory=None) -> Tensor:
    return distributions.randint(0, high, size, dtype=dtype, device=device)


@_overload("to.dtype_layout")
def _to(
    self: Tensor,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format=None,
) -> Tensor:
    return self.to(device or self.device, dtype or self.dtype, copy=copy)


@_overload("to.dtype")
def _to_dtype(
    self: Tensor, dtype, non_blocking: bool = False, copy: bool = False, memory_format=None
) -> Tensor:
    return self.to(self.device, dtype, copy=copy)


@_overload("to.device")
def _to_device(
    self: Tensor, device, dtype, non_blocking: bool = False, copy: bool = False, memory_format=None
) -> Tensor:
    return self.to(device, dtype, copy=copy)


@_overload("to.other")
def _to_other(
    self: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False, memory_format=None
) -> Tensor:
    return self.to(other.device, other.dtype, copy=copy)


@_overload("type_as.default")
def _type_as(self: Tensor, other: Tensor) -> Tensor:
    return self.to(other.device, other.dtype)


@_overload("new_full.default")
def _new_full(
    self: Tensor, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None
) -> Tensor:
    return creation.full(size, fill_value, dtype=dtype or self.dtype, device=device or self.device)


@_overload("new_zeros.default", "new_empty.default")
def _new_zeros(self: Tensor, size, *, dtype=None, layout=None, device=None, pin_memory=None) -> Tensor:
    return creation.zeros(size, dtype=dtype or self.dtype, device=device or self.device)


@_overload("new_ones.default")
def _new_ones(self: Tensor, size, *, dtype=None, layout=None, device=None, pin_memory=None) -> Tensor:
    return creation.ones(size, dtype=dtype or self.dtype, device=device or self.device)


@_overload("_native_batch_norm_legit_no_training.default")
def _batch_norm_inference(
    input: Tensor, weight, bias, running_mean: Tensor, running_var: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return channels.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@_overload("_native_batch_norm_legit.no_stats")
def _batch_norm_alone(
    input: Tensor, weight, bias, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return channels.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


@_overload("native_dropout.default")
def _native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if not train:
        return input.clone(), creation.ones_like(input, dtype=dt.bool_)
    kept = distributions.rand_like(input) >= p
    return (input * kept / (1 - p) if p < 1 else input * 0), kept


@_overload("_safe_softmax.default")
def _safe_softmax(self: Tensor, dim: int, dtype=None) -> Tensor:
    hidden = (self == float("-inf")).all(dim, True)
    return softmax.softmax(self, dim, dtype).masked_fill(hidden, 0.0)


@_overload("_prelu_kernel.default")
def _prelu_kernel(self: Tensor, weight: Tensor) -> Tensor:
    return self.where(self > 0, weight * self)


@_overload("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def _reflection_pad(self: Tensor, padding) -> Tensor:
    return pads.pad(self, tuple(padding), "reflect")


@_overload("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def _replication_pad(self: Tensor, padding) -> Tensor:
    return pads.pad(self, tuple(padding), "replicate")


@_overload("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def _upsample_nearest(input: Tensor, output_size, scale_factors) -> Tensor:
    return _resampled(input, output_size, scale_factors, "nearest")


@_overload("_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec")
def _upsample_exact(input: Tensor, output_size, scale_factors) -> Tensor:
    return _resampled(input, output_size, scale_factors, "nearest-exact")


@_overload("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec")
def _upsample_linear(input: Tensor, output_size, align_corners: bool, scale_factors) -> Tensor:
    mode = {3: "linear", 4: "bilinear", 5: "trilinear"}[input.ndim]
    return _resampled(input, output_size, scale_factors, mode, align_corners)


@_overload("upsample_bicubic2d.vec")
def _upsample_cubic(input: Tensor, output_size, align_corners: bool, scale_factors) -> Tensor:
    return _resampled(input, output_size, scale_factors, "bicubic", align_corners)


@_overload("_upsample_bilinear2d_aa.vec")
def _upsample_smooth_linear(input: Tensor, output_size, align_corners: bool, scale_factors) -> Tensor:
    return _resampled(input, output_size, scale_factors, "bilinear", align_corners, True)


@_overload("_upsample_bicubic2d_aa.vec")
def _upsample_smooth_cubic(input: Tensor, output_size, align_corners: bool, scale_factors) -> Tensor:
    return _resampled(input, output_size, scale_factors, "bicubic", align_corners, True)


@_overload("_upsample_bilinear2d_aa.default")
def _upsample_smooth_linear_by(
    self: Tensor, output_size, align_corners: bool, scales_h=None, scales_w=None
) -> Tensor:
    size, scales = _sized(output_size, scales_h, scales_w)
    return _resampled(self, size, scales, "bilinear", align_corners, True)


@_overload("_upsample_bicubic2d_aa.default")
def _upsample_smooth_cubic_by(
    self: Tensor, output_size, align_corners: bool, scales_h=None, scales_w=None
) -> Tensor:
    size, scales = _sized(output_size, scales_h, scales_w)
    return _resampled(self, size, scales, "bicubic", align_corners, True)


def _sized(size, *scales: float | None) -> tuple[Any, Any]:
    """Sizes or scales: of both, which belong together, scales say more."""
    return (size, None) if None in scales else (None, scales)


def _resampled(
    input: Tensor, size, scales, mode: str, align_corners: bool | None = None, antialias: bool = False
) -> Tensor:
    size, scales = (None if v is None else tuple(v) for v in (size, scales))
    return resample.interpolate(input, size, scales, mode, align_corners, antialias=antialias)


# By ATen's number of a scaling: none, by the root of the length, by the length.
_FORWARD, _BACKWARD = ("backward", "ortho", "forward"), ("forward", "ortho", "backward")


@_overload("_fft_r2c.default")
def _fft_of_real(self: Tensor, dim, normalization: int, onesided: bool) -> Tensor:
    transform = fft.rfftn if onesided else fft.fftn
    return transform(self, None, tuple(dim), _FORWARD[normalization])


@_overload("_fft_c2r.default")
def _fft_to_real(self: Tensor, dim, normalization: int, last_dim_size: int) -> Tensor:
    lengths = (*[self.shape[d] for d in dim[:-1]], last_dim_size)
    return fft.irfftn(self, lengths, tuple(dim), _BACKWARD[normalization])


@_overload("_fft_c2c.default")
def _fft_of_complex(self: Tensor, dim, normalization: int, forward: bool) -> Tensor:
    if forward:
        return fft.fftn(self, None, tuple(dim), _FORWARD[normalization])
    return fft.ifftn(self, None, tuple(dim), _BACKWARD[normalization])


@_overload("item.default", "_local_scalar_dense.default")
def _item(self: Tensor) -> Any:
    return self.item()


@_overload("sym_size.int")
def _size(self: Tensor, dim: int) -> int:
    return self.shape[dim]


@_overload("sym_stride.int")
def _stride(self: Tensor, dim: int) -> int:
    return self.stride(dim)


@_overload("sym_numel.default")
def _numel(self: Tensor) -> int:
    return self.numel()


@_overload("sym_storage_offset.default")
def _storage_offset(self: Tensor) -> int:
    return self.storage_offset()


@_overload("_assert_tensor_metadata.default")
def _assert_metadata(a: Tensor, size=None, stride=None, dtype=None, *, device=None, layout=None) -> None:
    if dtype is not None and a.dtype is not dtype:
        raise DTypeError(f"the program was made for {dtype} here, not {a.dtype}. Convert its inputs.")
    if size is not None and tuple(size) != tuple(a.shape):
        raise ShapeError(f"the program was made for shape {tuple(size)} here, not {tuple(a.shape)}.")


@_overload("_assert_scalar.default")
def _assert_scalar(self, assert_msg: str) -> None:
    if not self:
        raise ShapeError(f"a condition of the program does not hold: {assert_msg}")


@_overload("sym_constrain_range.default", "sym_constrain_range_for_size.default")
def _constrain(size, *, min: int | None = None, max: int | None = None) -> None:
    if (min is not None and size < min) or (max is not None and size > max):
        raise ShapeError(f"the program was made for a size from {min} to {max} here, not {size}.")


for _name, _function in _ROWS.items():
    name_overloads(_function, (_name,), "")
for _name in _IN_PLACE.split():
    _function, _arguments = OVERLOADS[_name]
    _packet, _, _kind = _name.partition(".")
    OVERLOADS[f"{_packet}_.{_kind}"] = copied_over(_function), _arguments
