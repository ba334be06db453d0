"""What layers compute, as functions: ops, and what is composed of them. PyTorch's ``torch.nn.functional``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ..autograd.composed import composed
from ..errors import DimensionError, DTypeError, RangeError, ShapeError
from ..op.arguments import integers, number
from ..op.call import written
from ..op.public import EXPORTS, copied_over, function
from ..ops.elementwise import activations
from ..ops.index.one_hot import one_hot_rows
from ..ops.linalg.norms import norm
from ..ops.norm import channels, normalization
from ..ops.norm import softmax as _softmax
from ..ops.reduce.extremum import extremes
from ..ops.shape.views import broadcast_tensors
from ..tensors.absent import refuse_others
from ..tensors.dtypes import int64, promote_types
from ..tensors.shape import axis, index
from ..tensors.tensor import Tensor
from . import attention as _attention  # noqa: F401  (declares what it exports here)
from . import likelihood_loss as _likelihood_loss  # noqa: F401  (declares what it exports here)
from . import loss as _loss  # noqa: F401  (declares what it exports here)
from . import margin_loss as _margin_loss  # noqa: F401  (declares what it exports here)
from . import sequence_loss as _sequence_loss  # noqa: F401  (declares what it exports here)


@function(exports="nn.functional", ours="the form of nn.functional; `pellucid.relu` is that of ATen")
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``.

    Args:
        input: any shape.
        inplace: write the result over the input.
    """
    return input.relu_() if inplace else activations.relu(input)


@function(exports="nn.functional", ours="the form of nn.functional; `pellucid.softmax` is that of ATen")
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """``exp(x_i) / sum_j exp(x_j)`` along an axis; see `pellucid.softmax`.

    Args:
        input: floating point.
        dim: the axis. Without it, with a warning, the first of one or three axes, else the second.
        dtype: type to convert to first.
    """
    return _softmax.softmax(input, _chosen("softmax", input, dim, _stacklevel), dtype)


@function(exports="nn.functional", ours="PyTorch computes it as the softmax of the negative, in Python")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """`softmax` of the negated input."""
    return _softmax.softmax(-input, _chosen("softmin", input, dim, _stacklevel), dtype)


@function(exports="nn.functional", ours="the form of nn.functional; `pellucid.log_softmax` is that of ATen")
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """``x_i - log(sum_j exp(x_j))`` along an axis; see `pellucid.log_softmax`, and `softmax` for ``dim``."""
    return _softmax.log_softmax(input, _chosen("log_softmax", input, dim, _stacklevel), dtype)


def _chosen(name: str, input: Tensor, dim: int | None, level: int) -> int:
    """PyTorch's axis where none is named."""
    if dim is not None:
        return dim
    warnings.warn(f"{name}: dim is not given. Name the axis, such as dim=-1.", UserWarning, level + 1)
    return 0 if input.dim() in (0, 1, 3) else 1


@function(exports="nn.functional", node="Glu")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along an axis times the sigmoid of the second."""
    if not input.dim():
        raise DimensionError("glu: a tensor without axes has no halves.")
    if input.shape[axis(dim, input.dim())] % 2:
        raise ShapeError(
            f"glu: axis {dim} of shape {tuple(input.shape)} has an odd length; it is cut in halves."
        )
    value, gate = input.chunk(2, dim)
    return value * gate.sigmoid()


@function(exports="nn.functional", ours="the form of nn.functional; `pellucid.rms_norm` is that of ATen")
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """``input / sqrt(mean(input^2) + eps) * weight`` over the last axes."""
    return normalization.rms_norm(input, integers(normalized_shape, "normalized_shape"), weight, eps)


@function(exports="nn.functional", ours="the form of nn.functional; `pellucid.layer_norm` is that of ATen")
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` over the last axes."""
    return normalization.layer_norm(input, integers(normalized_shape, "normalized_shape"), weight, bias, eps)


@function(
    exports="nn.functional",
    ours="the form of nn.functional; `pellucid.group_norm` is that of ATen",
    node="NativeGroupNorm",
)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The channels of a group, and all axes behind them, less their mean and divided by their deviation; see
    `pellucid.group_norm`.

    Raises:
        ValueError: a group has one element, which has no deviation.
    """
    if input.dim() > 1 and input.shape[0] * input.shape[1] // max(int(num_groups), 1) == 1:
        channels.more_than_one(input, "value per channel", tuple(range(2, input.dim())))
    return channels.group_norm(input, num_groups, weight, bias, eps)


@function(
    exports="nn.functional",
    ours="the form of nn.functional; `pellucid.batch_norm` is that of ATen",
    node="NativeBatchNorm",
)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` by channel, over all other axes.

    Args:
        input: (batch, channels, ...), floating point.
        running_mean, running_var: (channels,): the statistics, or what those of the batch move, or None.
        weight, bias: (channels,) or None.
        training: use the batch's statistics and move the running ones.
        momentum: how far these move, from 0 to 1; the unbiased variance counts.
        eps: added to the variance.

    Raises:
        ShapeError: the shapes do not fit, statistics are missing, or a channel has one value in training.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html; Ioffe and Szegedy
        2015

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([[1.0], [3.0]], device="cpu")
        >>> torch.nn.functional.batch_norm(x, None, None, training=True, eps=0.0).tolist()
        [[-1.0], [1.0]]
    """
    if training:
        channels.more_than_one(input, "value per channel", (0, *range(2, input.dim())))
    return channels.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


@function(exports="nn.functional", ours="the form of nn.functional; `pellucid.instance_norm` is that of ATen")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel of every member of the batch with its own mean and variance; `pellucid.instance_norm`.

    Raises:
        ShapeError: the shapes do not fit, or a channel has one value.
    """
    if use_input_stats:
        channels.more_than_one(input, "spatial element", tuple(range(2, input.dim())))
    return channels.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


@function(exports="nn.functional")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 where the class is the value, else 0, along a new last axis.

    Args:
        tensor: any shape, int64 classes from 0.
        num_classes: how many there are; the largest value plus one if -1, which waits for the device.

    Returns:
        int64, (*tensor.shape, num_classes).

    Raises:
        DTypeError: the classes are not int64.
        RangeError: there are no classes to count, or num_classes is less than 1.
        IndexError: a class is negative or past the last, once values are read.

    Example:
        >>> import pellucid as torch
        >>> torch.nn.functional.one_hot(torch.tensor([1, 0], device="cpu"), 3).tolist()
        [[0, 1, 0], [1, 0, 0]]
    """
    if tensor.dtype is not int64:
        raise DTypeError(f"one_hot: classes must be int64, not {tensor.dtype}. Convert them with .long().")
    num_classes = index(num_classes, "one_hot: num_classes")
    if not tensor.numel() and num_classes < 1:
        raise RangeError("one_hot: an empty tensor does not tell the number of classes. Give num_classes.")
    if num_classes == -1:
        least, most = extremes(tensor)
        if least < 0:
            raise RangeError("one_hot: classes are numbers from 0 on, and one is negative.")
        num_classes = most + 1
    if num_classes < 1:
        raise RangeError(f"one_hot: num_classes is {num_classes}, and there are classes. Give at least one.")
    return one_hot_rows(tensor, num_classes)


@function(exports="nn.functional", ours="PyTorch computes it by a norm and a division, in Python")
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """``input / max(norm(input), eps)`` along an axis."""
    found = input / norm(input, p, dim, True).clamp(min=eps)
    return found if out is None else written("normalize", out, found)


@composed(name="clamp", input=lambda g: g)
def _at_least(input: Tensor, eps: float) -> Tensor:
    """The larger of the two; to the derivative it is always the input."""
    return input.clamp(min=eps)


@function(exports="nn.functional")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))`` along an axis of the shape to which both broadcast."""
    if (d := promote_types(x1.dtype, x2.dtype)).is_complex:
        raise DTypeError("cosine_similarity: takes no complex tensors. Work on real and imaginary parts.")
    if d.is_floating_point:
        x1, x2 = x1.to(d), x2.to(d)
    x1, x2 = broadcast_tensors(x1, x2)
    dim, eps = index(dim, "dim"), number(eps, "eps")
    if not eps >= 0:
        raise RangeError(f"cosine_similarity: eps must not be negative, not {eps}.")
    first = _at_least(norm(x1, 2.0, dim, True), eps)
    second = _at_least(norm(x2, 2.0, dim, True), eps)
    return (x1 / first * (x2 / second)).sum(dim)


for _name in ("celu", "elu", "hardtanh", "leaky_relu", "relu", "rrelu", "selu", "threshold"):
    function(exports="nn.functional", ours="an in-place form")(copied_over(EXPORTS["nn.functional"][_name]))
globals().update(EXPORTS["nn.functional"])
__all__ = sorted(EXPORTS["nn.functional"])  # pyright: ignore[reportUnsupportedDunderAll]

refuse_others("torch.nn.functional", globals())
