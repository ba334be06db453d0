"""Losses with layers of their own: adaptive softmax over many classes, cross entropy of a projection."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ...errors import RangeError, ShapeError
from ...op.arguments import integers, number
from ...ops.elementwise.comparison import where
from ...ops.index.gather import gather
from ...ops.norm.softmax import log_softmax
from ...ops.shape.joining import cat
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import functional
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Logarithms of probabilities of many classes, of which rare ones share a place in the first softmax.

    All clusters are computed for all rows, so nothing waits for the device.

    Args:
        in_features: columns of the input.
        n_classes: how many classes, the frequent ones first.
        cutoffs: where clusters of rarer classes begin, increasing.
        div_value: how many times fewer columns each further cluster has.
        head_bias: whether the first projection has a bias.
        device, dtype: of the parameters; the defaults if None.

    Raises:
        RangeError: the cutoffs are no increasing integers below the number of classes.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.AdaptiveLogSoftmaxWithLoss.html; Grave et al.
        2017
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        name = type(self).__name__
        self.in_features = in_features = index(in_features, f"{name}: in_features")
        self.n_classes = n_classes = index(n_classes, f"{name}: n_classes")
        ends = list(integers(cutoffs, f"{name}: cutoffs"))
        increasing = all(a < b for a, b in zip([0, *ends], [*ends, n_classes], strict=True))
        if not ends or not increasing:
            raise RangeError(
                f"{name}: cutoffs must be increasing integers from 1 to {n_classes - 1}, not {cutoffs!r}."
            )
        self.div_value = div_value
        divisor = number(div_value, f"{name}: div_value")
        if not divisor > 0:
            raise RangeError(f"{name}: div_value must be positive, not {div_value}.")
        self.head_bias = head_bias
        self.cutoffs = [*ends, n_classes]
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = ends[0] + len(ends)
        given = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, head_bias, **given)
        self.tail = ModuleList()
        for k, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            columns = int(in_features // divisor ** (k + 1))
            inner = Linear(in_features, columns, False, **given), Linear(columns, end - start, False, **given)
            self.tail.append(Sequential(*inner))

    def reset_parameters(self) -> None:
        """Draw new values."""
        for m in self.modules():
            if isinstance(m, Linear):
                m.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The logarithms of the targets' probabilities, and minus their mean.

        Args:
            input_: (batch, in_features) or (in_features,).
            target_: (batch,) or (): classes.

        Raises:
            ShapeError: the shapes do not fit.
            IndexError: at the next read, a target is no class.
        """
        if (
            input_.dim() != target_.dim() + 1
            or input_.dim() not in (1, 2)
            or input_.shape[:-1] != target_.shape
        ):
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: input_ has shape {tuple(input_.shape)}, target_ "
                f"{tuple(target_.shape)}; they must be (batch, columns) and (batch,), or without a batch."
            )
        rows, wanted = (input_, target_) if input_.dim() == 2 else (input_.unsqueeze(0), target_.unsqueeze(0))
        place, parts = wanted, []
        for k, tail in enumerate(self.tail):
            start, end = self.cutoffs[k], self.cutoffs[k + 1]
            inside = (wanted >= start) & (wanted < end)
            place = where(inside, self.shortlist_size + k, place)
            of_cluster = where(inside, wanted - start, 0).unsqueeze(1)
            found = gather(log_softmax(tail(rows), 1), 1, of_cluster).squeeze(1)
            parts.append(found.masked_fill(~inside, 0.0))
        # No class: a place that the head does not have either.
        place = where((wanted < 0) | (wanted >= self.n_classes), self.head_size, place)
        output = gather(log_softmax(self.head(rows), 1), 1, place.unsqueeze(1)).squeeze(1)
        for part in parts:
            output = output + part
        loss = -output.mean()
        return _ASMoutput(output if input_.dim() == 2 else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of all classes' probabilities, (batch, n_classes)."""
        head = log_softmax(self.head(input), 1)
        short = self.shortlist_size
        parts = [
            log_softmax(tail(input), 1) + head[:, short + k].unsqueeze(1) for k, tail in enumerate(self.tail)
        ]
        return cat([head[:, :short], *parts], 1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of every row, (batch,)."""
        return self.log_prob(input).argmax(1)


class LinearCrossEntropyLoss(Module):
    """Cross entropy of a linear layer's output; see `functional.linear_cross_entropy`.

    Args:
        in_features: columns of the input.
        num_classes: how many classes.
        out_features: lengths of further axes, for losses of several places.
        bias: whether the layer has one.
        device, dtype: of the parameters; the defaults if None.
        reduction, weight, ignore_index, label_smoothing, options: as the function has them.
    """

    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device=None,
        dtype: DType | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options=None,
    ):
        super().__init__()
        self.num_classes = index(num_classes, "LinearCrossEntropyLoss: num_classes")
        self.out_features = integers(out_features, "LinearCrossEntropyLoss: out_features")
        self.reduction, self.ignore_index = reduction, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.register_buffer("weight", weight)
        outputs = self.num_classes * prod(self.out_features)
        self.linear = Linear(in_features, outputs, bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = self.num_classes, *self.out_features
        bias = self.linear.bias
        return functional.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, -1),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss"]
