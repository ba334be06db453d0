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
from .aliases import SPECIAL
from .conv import convolution as conv
from .elementwise import bitwise
from .fft import transforms as fft
from .image import resample
from .matmul import contractions
from .norm import channels, softmax
from .random import distributions
from .shape import creation, views
from .shape import padding as pads


def _of_halves(function: Callable) -> Callable:
    return lambda self, dim, half_to_float: function(self, dim, dt.float32 if half_to_float else None)


# Functions by the operators that they compute besides their own.
_ROWS: dict[str, Callable] = {
    "_unsafe_view.default": views.view,
    "_native_batch_norm_legit.default": channels.native_batch_norm,
    "_native_batch_norm_legit_no_training.default": (
        lambda input, weight, bias, running_mean, running_var, momentum, eps: channels.native_batch_norm(
            input, weight, bias, running_mean, running_var, False, momentum, eps
        )
    ),
    "_native_batch_norm_legit.no_stats": (
        lambda input, weight, bias, training, momentum, eps: channels.native_batch_norm(
            input, weight, bias, None, None, training, momentum, eps
        )
    ),
    **{
        f"__{name}__.{kind}": function
        for kind in ("Tensor", "Scalar")
        for name, function in (
            *[(name, getattr(bitwise, f"bitwise_{name}")) for name in ("and", "or", "xor")],
            ("lshift", bitwise.bitwise_left_shift),
            ("rshift", bitwise.bitwise_right_shift),
        )
    },
    "tensordot.default": lambda self, other, dims_self, dims_other: contractions.tensordot(
        self, other, (dims_self, dims_other)
    ),
    **dict.fromkeys(
        ("alias.default", "lift_fresh_copy.default", "lift_fresh.default"),
        lambda self: views.view_as(self, self),
    ),
    "_softmax.default": _of_halves(softmax.softmax),
    "_log_softmax.default": _of_halves(softmax.log_softmax),
    "sigmoid_backward.default": lambda grad_output, output: grad_output * (1 - output) * output,
    "tanh_backward.default": lambda grad_output, output: grad_output * (1 - output * output),
    "detach.default": lambda self: self.detach(),
    **dict.fromkeys(("item.default", "_local_scalar_dense.default"), lambda self: self.item()),
    "sym_size.int": lambda self, dim: self.shape[dim],
    "sym_stride.int": lambda self, dim: self.stride(dim),
    "sym_numel.default": lambda self: self.numel(),
    "sym_storage_offset.default": lambda self: self.storage_offset(),
}
# What `torch.special` calls functions of `torch` is an operator of its own, ``special_<name>``.
_SPECIAL = {f"{name}.default": f"{known}.default" for name, known in SPECIAL.items()} | {
    "softmax.default": "softmax.int", "log_softmax.default": "log_softmax.int",
    "xlogy.default": "xlogy.Tensor", "xlogy.other_scalar": "xlogy.Scalar_Other",
    "xlogy.self_scalar": "xlogy.Scalar_Self",
}  # fmt: skip
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


@_overload("cdist.default", "_cdist_forward.default")
def _cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    return contractions.cdist(x1, x2, p, contractions.MODES[compute_mode or 0])


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


_COPIED = "non_blocking=False, copy=False, memory_format=None"
_MADE = "*, dtype=None, layout=None, device=None, pin_memory=None"


@_overload(
    f"to.dtype_layout(self, {_MADE}, {_COPIED})",
    f"to.dtype(self, dtype, {_COPIED})",
    f"to.device(self, device, dtype, {_COPIED})",
)
def _to(self: Tensor, device=None, dtype=None, copy: bool = False) -> Tensor:
    return self.to(device or self.device, dtype or self.dtype, copy=copy)


@_overload(f"_to_copy.default(self, {_MADE}, non_blocking=False, memory_format=None)")
def _to_copy(self: Tensor, device=None, dtype=None) -> Tensor:
    return _to(self, device, dtype, True)


@_overload(f"to.other(self, other, {_COPIED})", "type_as.default(self, other)")
def _to_other(self: Tensor, other: Tensor, copy: bool = False) -> Tensor:
    return self.to(other.device, other.dtype, copy=copy)


@_overload("randint.default")
def _randint(high, size, *, dtype=None, device=None) -> Tensor:
    return distributions.randint(0, high, size, dtype=dtype, device=device)


@_overload(
    f"new_full.default(self, size, fill_value, {_MADE})",
    f"new_zeros.default(self, size, {_MADE})",
    f"new_empty.default(self, size, {_MADE})",
)
def _new_full(self: Tensor, size, fill_value=0, *, dtype=None, device=None) -> Tensor:
    return creation.full(size, fill_value, dtype=dtype or self.dtype, device=device or self.device)


@_overload("new_ones.default")
def _new_ones(self: Tensor, size, *, dtype=None, device=None) -> Tensor:
    return _new_full(self, size, 1, dtype=dtype, device=device)


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


def _padding(mode: str) -> Callable:
    return lambda self, padding: pads.pad(self, tuple(padding), mode)


for _name, _mode in (("reflection", "reflect"), ("replication", "replicate")):
    name_overloads(_padding(_mode), tuple(f"{_name}_pad{n}d.default" for n in (1, 2, 3)), "")


def _resampling(mode: str, antialias: bool) -> Callable:
    def resampled(
        input: Tensor,
        output_size,
        align_corners: bool | None = None,
        scale_factors=None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        if None not in (scales_h, scales_w):  # sizes and scales belong together, scales say more
            output_size, scale_factors = None, (scales_h, scales_w)
        size, scales = (None if v is None else tuple[Any, ...](v) for v in (output_size, scale_factors))
        return resample.interpolate(input, size, scales, mode, align_corners, antialias=antialias)

    return resampled


_PLAIN = "(input, output_size, scale_factors)"
_WITH_CORNERS = "(input, output_size, align_corners, scale_factors)"
_BOTH = f"vec{_WITH_CORNERS}", "default(self, output_size, align_corners, scales_h=None, scales_w=None)"
for _mode, _antialias, _overloads in (
    ("nearest", False, [f"upsample_nearest{n}d.vec{_PLAIN}" for n in (1, 2, 3)]),
    ("nearest-exact", False, [f"_upsample_nearest_exact{n}d.vec{_PLAIN}" for n in (1, 2, 3)]),
    ("linear", False, [f"upsample_linear1d.vec{_WITH_CORNERS}"]),
    ("bilinear", False, [f"upsample_bilinear2d.vec{_WITH_CORNERS}"]),
    ("trilinear", False, [f"upsample_trilinear3d.vec{_WITH_CORNERS}"]),
    ("bicubic", False, [f"upsample_bicubic2d.vec{_WITH_CORNERS}"]),
    ("bilinear", True, [f"_upsample_bilinear2d_aa.{end}" for end in _BOTH]),
    ("bicubic", True, [f"_upsample_bicubic2d_aa.{end}" for end in _BOTH]),
):
    name_overloads(_resampling(_mode, _antialias), tuple(_overloads), "")


# By ATen's number of a scaling: none, by the root of the length, by the length.
_FORWARD, _BACKWARD = ("backward", "ortho", "forward"), ("forward", "ortho", "backward")


@_overload("_fft_r2c.default")
def _fft_of_real(self: Tensor, dim, normalization: int, onesided: bool) -> Tensor:
    return (fft.rfftn if onesided else fft.fftn)(self, None, tuple(dim), _FORWARD[normalization])


@_overload("_fft_c2r.default")
def _fft_to_real(self: Tensor, dim, normalization: int, last_dim_size: int) -> Tensor:
    lengths = (*[self.shape[d] for d in dim[:-1]], last_dim_size)
    return fft.irfftn(self, lengths, tuple(dim), _BACKWARD[normalization])


@_overload("_fft_c2c.default")
def _fft_of_complex(self: Tensor, dim, normalization: int, forward: bool) -> Tensor:
    if forward:
        return fft.fftn(self, None, tuple(dim), _FORWARD[normalization])
    return fft.ifftn(self, None, tuple(dim), _BACKWARD[normalization])


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
for _name, _known in _SPECIAL.items():
    OVERLOADS[f"special_{_name}"] = OVERLOADS[_known]
for _name in _IN_PLACE.split():
    _function, _arguments = OVERLOADS[_name]
    _packet, _, _kind = _name.partition(".")
    OVERLOADS[f"{_packet}_.{_kind}"] = copied_over(_function), _arguments
