"""Operators over windows of images, products, and other sizes of images."""

from __future__ import annotations

from .....errors import ArgumentError, ShapeError
from .....nn import functional as F
from .....tensors.tensor import Tensor
from ...onnx.operators import images
from ...onnx.operators import windows as onnx
from ...onnx.operators.elementwise import ops
from ...rows import Ints, one_of
from ..layout import first, last
from ..table import operator

_PADDING = {0: "SAME_UPPER", 1: "VALID"}


def _image(x: Tensor) -> Tensor:
    """The image with its channels first.

    Raises:
        ShapeError: it has not four axes.
    """
    if len(x.shape) != 4:
        raise ShapeError(f"shape {tuple(x.shape)}; an image has batch, height, width and channels.")
    return first(x)


@operator("CONV_2D", options="Conv2D")
def conv_2d(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, padding: int = 0, stride_w: int, stride_h: int,
    dilation_w_factor: int = 1, dilation_h_factor: int = 1,
):  # fmt: skip
    y, v = _image(x), _image(w)
    groups = y.shape[1] // max(v.shape[1], 1)
    if not groups or y.shape[1] != groups * v.shape[1]:
        raise ShapeError(f"a weight of {v.shape[1]} channels for an image of {y.shape[1]}.")
    return last(
        onnx.conv(
            y, v, b, auto_pad=one_of("padding", padding, _PADDING), strides=[stride_h, stride_w],
            dilations=[dilation_h_factor, dilation_w_factor], group=groups,
        )
    )  # fmt: skip


@operator("DEPTHWISE_CONV_2D", options="DepthwiseConv2D")
def depthwise_conv_2d(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, padding: int = 0, stride_w: int, stride_h: int,
    depth_multiplier: int = 0, dilation_w_factor: int = 1, dilation_h_factor: int = 1,
):  # fmt: skip
    y, v = _image(x), _image(w)
    if v.shape[0] != 1 or not y.shape[1] or v.shape[1] % y.shape[1]:
        raise ShapeError(f"a weight of shape {tuple(w.shape)} for an image of {y.shape[1]} channels.")
    return last(
        onnx.conv(
            y, v.transpose(0, 1), b, auto_pad=one_of("padding", padding, _PADDING),
            strides=[stride_h, stride_w], dilations=[dilation_h_factor, dilation_w_factor],
            group=y.shape[1],
        )
    )  # fmt: skip


def _transposed(
    shape: list[int], w: Tensor, x: Tensor, b: Tensor | None, padding: int, stride_w: int, stride_h: int
) -> Tensor:
    """The transpose of the convolution that has an image of this shape as its input."""
    if len(shape) != 4:
        raise ShapeError(f"the result's shape is {shape}; an image has batch, height, width and channels.")
    y, v = _image(x), _image(w).transpose(0, 1)
    strides = [stride_h, stride_w]
    lengths, kernel = shape[1:3], v.shape[2:]
    at = onnx.WindowPlaces(
        lengths, kernel, strides, None, None, one_of("padding", padding, _PADDING)
    )  # fmt: skip
    more = [
        n + start + stop - (s * (m - 1) + k)
        for n, start, stop, s, m, k in zip(lengths, at.starts, at.stops, strides, y.shape[2:], kernel)
    ]
    if min(more) < 0 or any(m >= s for m, s in zip(more, strides)):
        raise ShapeError(f"an image of {tuple(x.shape)} does not make one of {tuple(shape)}.")
    z = ops.conv_transpose2d(y, v, None, strides, 0, 0, 1, 1)
    z = F.pad(z, [0, more[1], 0, more[0]]) if any(more) else z
    for k, (n, start) in enumerate(zip(lengths, at.starts)):
        z = z.narrow(k + 2, start, n)
    return last(z if b is None else z + b.reshape(-1, 1, 1))


@operator("TRANSPOSE_CONV", options="TransposeConv")
def transpose_conv(
    output_shape: Ints, w: Tensor, x: Tensor, b: Tensor | None = None, *, padding: int = 0, stride_w: int,
    stride_h: int,
):  # fmt: skip
    return _transposed(output_shape, w, x, b, padding, stride_w, stride_h)


def _pooled(function, x: Tensor, padding: int, strides: list[int], kernel: list[int]) -> Tensor:
    auto_pad = one_of("padding", padding, _PADDING)
    return last(function(_image(x), kernel_shape=kernel, auto_pad=auto_pad, strides=strides))


@operator("MAX_POOL_2D", options="Pool2D")
def max_pool_2d(
    x: Tensor, *, padding: int = 0, stride_w: int, stride_h: int, filter_width: int, filter_height: int
):
    return _pooled(onnx.max_pool, x, padding, [stride_h, stride_w], [filter_height, filter_width])


@operator("AVERAGE_POOL_2D", options="Pool2D")
def average_pool_2d(
    x: Tensor, *, padding: int = 0, stride_w: int, stride_h: int, filter_width: int, filter_height: int
):
    return _pooled(onnx.average_pool, x, padding, [stride_h, stride_w], [filter_height, filter_width])


@operator("L2_POOL_2D", options="Pool2D")
def l2_pool_2d(
    x: Tensor, *, padding: int = 0, stride_w: int, stride_h: int, filter_width: int, filter_height: int
):
    strides, kernel = [stride_h, stride_w], [filter_height, filter_width]
    return ops.sqrt(_pooled(onnx.average_pool, ops.square(x), padding, strides, kernel))


@operator("LOCAL_RESPONSE_NORMALIZATION", options="LocalResponseNormalization")
def local_response_normalization(
    x: Tensor, *, radius: int, bias: float = 0.0, alpha: float = 0.0, beta: float = 0.0
):
    size = 2 * radius + 1
    return last(F.local_response_norm(_image(x), size, alpha * size, beta, bias))


@operator("FULLY_CONNECTED", options="FullyConnected")
def fully_connected(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, weights_format: int = 0, keep_num_dims: bool = False
):
    if weights_format:
        raise ArgumentError("weights are shuffled for one processor. Convert the model with plain weights.")
    return F.linear(x if keep_num_dims else x.reshape(-1, w.shape[-1]), w, b)


@operator("BATCH_MATMUL", options="BatchMatMul")
def batch_matmul(a: Tensor, b: Tensor, *, adj_x: bool = False, adj_y: bool = False):
    return ops.matmul(a.transpose(-1, -2) if adj_x else a, b.transpose(-1, -2) if adj_y else b)


def _resized(x: Tensor, size: list[int], coordinates: str, mode: str, nearest: str = "floor") -> Tensor:
    return last(
        images.resize(
            _image(x), sizes=size, axes=[2, 3], coordinate_transformation_mode=coordinates, mode=mode,
            nearest_mode=nearest,
        )
    )  # fmt: skip


@operator("RESIZE_BILINEAR", options="ResizeBilinear")
def resize_bilinear(x: Tensor, size: Ints, *, align_corners: bool = False, half_pixel_centers: bool = False):
    places = "align_corners" if align_corners else "half_pixel" if half_pixel_centers else "asymmetric"
    return _resized(x, size, places, "linear")


@operator("RESIZE_NEAREST_NEIGHBOR", options="ResizeNearestNeighbor")
def resize_nearest_neighbor(
    x: Tensor, size: Ints, *, align_corners: bool = False, half_pixel_centers: bool = False
):
    if align_corners:
        return _resized(x, size, "align_corners", "nearest", "round_prefer_ceil")
    return _resized(x, size, "tf_half_pixel_for_nn" if half_pixel_centers else "asymmetric", "nearest")
