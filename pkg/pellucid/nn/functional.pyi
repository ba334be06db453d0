"""What layers compute, as functions.

Written by `scripts/reference`; do not edit.
"""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Sequence
from typing import Any

from ..tensors.tensor import Tensor

__all__: list[str]

def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int | None]) -> Tensor:
    """Means of so many windows, as equal as they can be, which cover the image."""

def adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int | None]) -> Tensor:
    """Means of so many windows, as equal as they can be, which cover the image."""

def adaptive_avg_pool3d(input: Tensor, output_size: _int | Sequence[_int | None]) -> Tensor:
    """Means of so many windows, as equal as they can be, which cover the image."""

def adaptive_max_pool1d(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False
) -> Any:
    """Maxima of so many windows, as equal as they can be, which cover the image."""

def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False
) -> Any:
    """Maxima of so many windows, as equal as they can be, which cover the image."""

def adaptive_max_pool2d(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False
) -> Any:
    """Maxima of so many windows, as equal as they can be, which cover the image."""

def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False
) -> Any:
    """Maxima of so many windows, as equal as they can be, which cover the image."""

def adaptive_max_pool3d(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False
) -> Any:
    """Maxima of so many windows, as equal as they can be, which cover the image."""

def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False
) -> Any:
    """Maxima of so many windows, as equal as they can be, which cover the image."""

def affine_grid(theta: Tensor, size: Sequence[_int], align_corners: _bool | None = None) -> Tensor:
    """The points for `grid_sample` that an affine map makes of those of an image: ``theta @ (x, y,
    1)``."""

def alpha_dropout(input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Elements replaced with probability ``p`` by the end of SELU, so that mean 0 and variance 1 stay."""

def avg_pool1d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
) -> Tensor:
    """The mean of each window; of int64, the quotient towards 0."""

def avg_pool2d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
) -> Tensor:
    """The mean of each window; of int64, the quotient towards 0."""

def avg_pool3d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
) -> Tensor:
    """The mean of each window; of int64, the quotient towards 0."""

def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: _bool = False,
    momentum: _float = 0.1,
    eps: _float = 1e-05,
) -> Tensor:
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` by channel, over all other axes."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``out[..., k] = input1[..., :] @ weight[k] @ input2[..., :] + bias[k]``."""

def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, logarithms not below -100."""

def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, without overflow."""

def celu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input`` where positive, else ``alpha * (exp(input / alpha) - 1)``."""

def celu_(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """In-place form of `celu`: writes the result into this tensor and returns it."""

def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Channels in another order: of each group the first, then of each the second, and so on."""

def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | str = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor:
    """``out[n, o, p] = bias[o] + sum(weight[o, c, t] * input[n, c, p * stride + t * dilation -
    padding] for c, t)``."""

def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | str = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor:
    """`conv1d` over height and width."""

def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | str = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor:
    """`conv1d` over depth, height and width. Holds the input once for each place of the kernel's
    depth."""

def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """The transpose of `conv1d` as a linear map: ``out[n, c, p * stride + t * dilation - padding] +=
    weight[o, c, t] * input[n, o, p]``, plus the bias."""

def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """`conv_transpose1d` over height and width."""

def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """`conv_transpose1d` over depth, height and width. Holds the output once for each place of the
    kernel's depth that a stride leaves."""

def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: _float = 0.0,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos(input1, input2)`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""

def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08, *, axis: _int = ...
) -> Tensor:
    """``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))`` along an axis of the shape to which both
    broadcast."""

def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _bool | None = None,
    ignore_index: _int = -100,
    reduce: _bool | None = None,
    reduction: str = "mean",
    label_smoothing: _float = 0.0,
) -> Tensor:
    """``-sum_c target_c * log_softmax(input)_c``."""

def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: _int = 0,
    reduction: str = "mean",
    zero_infinity: _bool = False,
) -> Tensor:
    """The negative logarithm of a sequence of labels' probability, over all its alignments to the
    input."""

def dropout(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Elements zeroed with probability ``p``, the others divided by ``1 - p``."""

def dropout1d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Whole channels of (batch, channels, length) zeroed; see `dropout`."""

def dropout2d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Whole channels of (batch, channels, height, width) zeroed; see `dropout`."""

def dropout3d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Whole channels of (batch, channels, depth, height, width) zeroed; see `dropout`."""

def elu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input`` where positive, else ``alpha * (exp(input) - 1)``."""

def elu_(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """In-place form of `elu`: writes the result into this tensor and returns it."""

def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: _int | None = None,
    max_norm: _float | None = None,
    norm_type: _float = 2.0,
    scale_grad_by_freq: _bool = False,
    sparse: _bool = False,
) -> Tensor:
    """Rows of a table: ``out[..., :] = weight[input[...], :]``."""

def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: _float | None = None,
    norm_type: _float = 2,
    scale_grad_by_freq: _bool = False,
    mode: str = "mean",
    sparse: _bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: _bool = False,
    padding_idx: _int | None = None,
) -> Tensor:
    """The sum, mean or largest of the rows of every bag of indices; 0 for a bag without any."""

def feature_alpha_dropout(
    input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels."""

def fold(
    input: Tensor,
    output_size: _int | Sequence[_int],
    kernel_size: _int | Sequence[_int],
    dilation: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    stride: _int | Sequence[_int] = 1,
) -> Tensor:
    """The sums of what windows hold of each place: col2im, the transpose of `unfold`."""

def fractional_max_pool2d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    output_size: _int | Sequence[_int] | None = None,
    output_ratio: _float | Sequence[_float] | None = None,
    return_indices: _bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest element of windows at pseudo-random distances (Graham 2014), two neighbouring
    integers."""

def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    output_size: _int | Sequence[_int] | None = None,
    output_ratio: _float | Sequence[_float] | None = None,
    return_indices: _bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest element of windows at pseudo-random distances (Graham 2014), two neighbouring
    integers."""

def fractional_max_pool3d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    output_size: _int | Sequence[_int] | None = None,
    output_ratio: _float | Sequence[_float] | None = None,
    return_indices: _bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest element of windows at pseudo-random distances (Graham 2014), two neighbouring
    integers."""

def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    output_size: _int | Sequence[_int] | None = None,
    output_ratio: _float | Sequence[_float] | None = None,
    return_indices: _bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest element of windows at pseudo-random distances (Graham 2014), two neighbouring
    integers."""

def gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: _float | None = None,
    initial_state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gated delta rule, a linear attention: ``S = exp(g[t]) * S``, then ``S = S + beta[t] *
    outer(k[t], v[t] - S^T k[t])`` and ``out[t] = scale * S^T q[t]``."""

def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | _float,
    full: _bool = False,
    eps: _float = 1e-06,
    reduction: str = "mean",
) -> Tensor:
    """``(log(var) + (input - target)^2 / var) / 2``."""

def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """``input * Phi(input)`` with the normal distribution function Phi."""

def glu(input: Tensor, dim: _int = -1, *, axis: _int = ...) -> Tensor:
    """The first half along an axis times the sigmoid of the second."""

def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: _bool | None = None,
) -> Tensor:
    """Images at points: ``out[n, :, i, j]`` is ``input[n]`` at the point ``grid[n, i, j]``."""

def group_norm(
    input: Tensor,
    num_groups: _int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _float = 1e-05,
) -> Tensor:
    """The channels of a group, and all axes behind them, less their mean and divided by their
    deviation; see `pellucid.group_norm`."""

def gumbel_softmax(
    logits: Tensor,
    tau: _float = 1,
    hard: _bool = False,
    eps: _float = 1e-10,
    dim: _int = -1,
    *,
    axis: _int = ...,
) -> Tensor:
    """A random category, as weights: the softmax of ``(logits + noise) / tau`` with noise of Gumbel's
    law."""

def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``input``, but 0 where it is at most ``lambd`` away from 0."""

def hardsigmoid(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``relu6(input + 3) / 6``."""

def hardswish(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input * relu6(input + 3) / 6``."""

def hardtanh(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0, inplace: _bool = False) -> Tensor:
    """Values moved into ``[min_val, max_val]``."""

def hardtanh_(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0, inplace: _bool = False) -> Tensor:
    """In-place form of `hardtanh`: writes the result into this tensor and returns it."""

def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: _float = 1.0,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""

def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: _float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``d^2 / 2`` where ``d = |input - target|`` is below ``delta``, else ``delta * (d - delta / 2)``."""

def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: _bool = True,
    momentum: _float = 0.1,
    eps: _float = 1e-05,
) -> Tensor:
    """Every channel of every member of the batch with its own mean and variance;
    `pellucid.instance_norm`."""

def interpolate(
    input: Tensor,
    size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None,
    mode: str = "nearest",
    align_corners: _bool | None = None,
    recompute_scale_factor: _bool | None = None,
    antialias: _bool = False,
) -> Tensor:
    """Images of another size."""

def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
    log_target: _bool = False,
) -> Tensor:
    """``target * (log(target) - input)``, where ``0 * log(0)`` is 0."""

def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``|input - target|``."""

def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[_int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _float = 1e-05,
) -> Tensor:
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` over the last axes."""

def leaky_relu(
    input: Tensor, negative_slope: _float = 0.01, inplace: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """``input`` where positive, else ``negative_slope * input``."""

def leaky_relu_(input: Tensor, negative_slope: _float = 0.01, inplace: _bool = False) -> Tensor:
    """In-place form of `leaky_relu`: writes the result into this tensor and returns it."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``out[..., j] = sum_l input[..., l] * weight[j, l] + bias[j]``."""

def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: _int | None = None,
    label_smoothing: _float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of ``linear(input, linear_weight, linear_bias)``."""

def local_response_norm(
    input: Tensor, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0
) -> Tensor:
    """``input / (k + alpha * mean(input^2 over size neighbouring channels))^beta``."""

def log_softmax(
    input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype=None, *, axis: _int | None = ...
) -> Tensor:
    """``x_i - log(sum_j exp(x_j))`` along an axis; see `pellucid.log_softmax`, and `softmax` for
    ``dim``."""

def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(sigmoid(input))``."""

def lp_pool1d(
    input: Tensor,
    norm_type: _int | _float,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> Tensor:
    """The norm of each window: ``sum(x ** norm_type) ** (1 / norm_type)``."""

def lp_pool2d(
    input: Tensor,
    norm_type: _int | _float,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> Tensor:
    """The norm of each window: ``sum(x ** norm_type) ** (1 / norm_type)``."""

def lp_pool3d(
    input: Tensor,
    norm_type: _int | _float,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> Tensor:
    """The norm of each window: ``sum(x ** norm_type) ** (1 / norm_type)``."""

def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: _float = 0.0,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin - target * (input1 - input2))``."""

def max_pool1d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_pool2d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_pool3d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    output_size: Sequence[_int] | None = None,
) -> Tensor:
    """The values at their places in an image of zeros: the inverse of a pooling."""

def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    output_size: Sequence[_int] | None = None,
) -> Tensor:
    """The values at their places in an image of zeros: the inverse of a pooling."""

def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    output_size: Sequence[_int] | None = None,
) -> Tensor:
    """The values at their places in an image of zeros: the inverse of a pooling."""

def mish(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input * tanh(softplus(input))``."""

def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target)^2``."""

def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: _int,
    num_heads: _int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: _bool,
    dropout_p: _float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: _bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: _bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: _bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: _bool = True,
    is_causal: _bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `nn.MultiheadAttention` computes: projections, attention of every head, and a projection."""

def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: _int = 1,
    margin: _float = 1.0,
    weight: Tensor | None = None,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of ``max(0, margin - input[target] + input[i])^p``, but of the target
    itself."""

def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over targets and other classes of ``max(0, 1 - input[target] + input[i])``, over the
    classes."""

def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the last axis of the cross entropies of single classes, by logits."""

def native_channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Channels in another order: of each group the first, then of each the second, and so on."""

def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _bool | None = None,
    ignore_index: _int = -100,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight[target] * input[target]``; the mean is divided by the sum of the weights."""

def normalize(
    input: Tensor,
    p: _float = 2.0,
    dim: _int = 1,
    eps: _float = 1e-12,
    out: Tensor | None = None,
    *,
    axis: _int = ...,
) -> Tensor:
    """``input / max(norm(input), eps)`` along an axis."""

def one_hot(tensor: Tensor = ..., num_classes: _int = -1, *, input: Tensor = ...) -> Tensor:
    """1 where the class is the value, else 0, along a new last axis."""

def pad(
    input: Tensor, pad: Sequence[_int], mode: str = "constant", value: _float | _complex | None = None
) -> Tensor:
    """More elements, or fewer where negative, at the ends of the last axes."""

def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: _float = 2.0,
    eps: _float = 1e-06,
    keepdim: _bool = False,
    *,
    keepdims: _bool = ...,
) -> Tensor:
    """The norm of ``x1 - x2 + eps`` over the last axis."""

def pdist(input: Tensor, p: _float = 2.0) -> Tensor:
    """The distances of all pairs of rows: ``norm(input[i] - input[j], p)`` for i < j."""

def pixel_shuffle(input: Tensor, upscale_factor: _int) -> Tensor:
    """Channels become pixels: (..., c * r * r, height, width) to (..., c, height * r, width * r)."""

def pixel_unshuffle(input: Tensor, downscale_factor: _int) -> Tensor:
    """Pixels become channels: the inverse of `pixel_shuffle`."""

def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: _bool = True,
    full: _bool = False,
    size_average: _bool | None = None,
    eps: _float = 1e-08,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(input) - target * input``; without ``log_input`` ``input - target * log(input + eps)``."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where positive, else ``weight * input``."""

def relu(input: Tensor, inplace: _bool = False) -> Tensor:
    """``max(input, 0)``."""

def relu6(input: Tensor, inplace: _bool = False) -> Tensor:
    """``min(max(input, 0), 6)``."""

def relu_(input: Tensor, inplace: _bool = False) -> Tensor:
    """In-place form of `relu`: writes the result into this tensor and returns it."""

def rms_norm(
    input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, eps: _float | None = None
) -> Tensor:
    """``input / sqrt(mean(input^2) + eps) * weight`` over the last axes."""

def rrelu(
    input: Tensor,
    lower: _float = 0.125,
    upper: _float = 0.3333333333333333,
    training: _bool = False,
    inplace: _bool = False,
) -> Tensor:
    """``input`` where positive, else ``input`` times a random slope; without training times the middle
    one."""

def rrelu_(
    input: Tensor,
    lower: _float = 0.125,
    upper: _float = 0.3333333333333333,
    training: _bool = False,
    inplace: _bool = False,
) -> Tensor:
    """In-place form of `rrelu`: writes the result into this tensor and returns it."""

def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: _float | _int = 0.0,
    is_causal: _bool = False,
    scale: _float | _int | None = None,
    enable_gqa: _bool = False,
) -> Tensor:
    """``softmax(scale * query @ key.T + attn_mask) @ value``, without the scores ever lying in memory."""

def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: _bool = False,
    initial_state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Selective scan of Mamba: ``h[t] = exp(delta[t] * A) * h[t - 1] + delta[t] * B[t] * u[t]`` and
    ``out[t] = (C[t] * h[t] + D * u[t]) * silu(z[t])``, products with C summed over the states."""

def selu(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``elu(input, 1.67326)`` times 1.0507."""

def selu_(input: Tensor, inplace: _bool = False) -> Tensor:
    """In-place form of `selu`: writes the result into this tensor and returns it."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-input))``."""

def silu(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input * sigmoid(input)``, also called swish."""

def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
    beta: _float = 1.0,
) -> Tensor:
    """``d^2 / (2 beta)`` where ``d = |input - target|`` is below ``beta``, else ``d - beta / 2``."""

def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``."""

def softmax(
    input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype=None, *, axis: _int | None = ...
) -> Tensor:
    """``exp(x_i) / sum_j exp(x_j)`` along an axis; see `pellucid.softmax`."""

def softmin(
    input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype=None, *, axis: _int | None = ...
) -> Tensor:
    """`softmax` of the negated input."""

def softplus(
    input: Tensor, beta: _float = 1.0, threshold: _float = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, the input itself where ``beta * input`` exceeds the
    threshold."""

def softshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``input`` moved toward 0 by ``lambd``, and 0 where that would pass it."""

def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic tangent."""

def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""

def threshold(
    input: Tensor, threshold: _float, value: _float, inplace: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """``input`` where it is above ``threshold``, else ``value``."""

def threshold_(input: Tensor, threshold: _float, value: _float, inplace: _bool = False) -> Tensor:
    """In-place form of `threshold`: writes the result into this tensor and returns it."""

def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: _float = 1.0,
    p: _float = 2.0,
    eps: _float = 1e-06,
    swap: _bool = False,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with `pairwise_distance` as d."""

def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable | None = None,
    margin: _float = 1.0,
    swap: _bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance, a function of two tensors."""

def unfold(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    dilation: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    stride: _int | Sequence[_int] = 1,
) -> Tensor:
    """The elements that windows hold, one window a column: im2col."""

def upsample(
    input: Tensor,
    size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None,
    mode: str = "nearest",
    align_corners: _bool | None = None,
) -> Tensor:
    """`interpolate`, by its earlier name."""

def upsample_bilinear(
    input: Tensor,
    size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None,
) -> Tensor:
    """`interpolate` with "bilinear" and the corners aligned."""

def upsample_nearest(
    input: Tensor,
    size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None,
) -> Tensor:
    """`interpolate` to the nearest."""
