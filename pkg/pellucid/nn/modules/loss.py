"""Losses as modules; what they compute stands in loss.py."""

from __future__ import annotations

from ...tensors.tensor import Tensor
from .. import loss
from .module import Module


class _Loss(Module):
    def __init__(self, reduction: str = "mean"):
        super().__init__()
        self.reduction = reduction


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(self, weight: Tensor | None, reduction: str):
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """``|input - target|``; see `functional.l1_loss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.l1_loss(input, target, self.reduction)


class MSELoss(_Loss):
    """``(input - target)^2``; see `functional.mse_loss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.mse_loss(input, target, self.reduction)


class HuberLoss(_Loss):
    """Square near zero, linear from ``delta`` on; see `functional.huber_loss`."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.huber_loss(input, target, self.reduction, self.delta)


class SmoothL1Loss(_Loss):
    """Square near zero, linear from ``beta`` on with slope 1; see `functional.smooth_l1_loss`."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0):
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.smooth_l1_loss(input, target, self.reduction, self.beta)


class NLLLoss(_WeightedLoss):
    """``-weight[target] * input[target]``; see `functional.nll_loss`."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """``-sum_c target_c * log_softmax(input)_c``; see `functional.cross_entropy`.

    Args:
        weight: (classes,) or None.
        ignore_index: class indices of this value count for nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: share of the target that is spread over all classes.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.cross_entropy(
            input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class BCELoss(_WeightedLoss):
    """Cross entropy of two classes by probabilities; see `functional.binary_cross_entropy`."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(weight, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Cross entropy of two classes by logits; see `functional.binary_cross_entropy_with_logits`."""

    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None
    ):
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.binary_cross_entropy_with_logits(
            input, target, self.weight, self.reduction, self.pos_weight
        )


class KLDivLoss(_Loss):
    """``target * (log(target) - input)``; see `functional.kl_div`."""

    def __init__(self, reduction: str = "mean", log_target: bool = False):
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.kl_div(input, target, self.reduction, self.log_target)


__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss",
    "NLLLoss", "SmoothL1Loss",
]  # fmt: skip
