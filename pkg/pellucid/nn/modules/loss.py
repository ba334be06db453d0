"""Losses as modules; what they compute stands in the files of losses beside this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...tensors.tensor import Tensor
from .. import functional, likelihood_loss, loss, margin_loss
from ..older_reduction import reduction_of
from .module import Configured, Module


class _Loss(Module):
    """A loss; ``size_average`` and ``reduce`` are older names of ``reduction``."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """``|input - target|``; see `functional.l1_loss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """``(input - target)^2``; see `functional.mse_loss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.mse_loss(input, target, reduction=self.reduction)


class HuberLoss(_Loss):
    """Square near zero, linear from ``delta`` on; see `functional.huber_loss`."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.huber_loss(input, target, self.reduction, self.delta)


class SmoothL1Loss(_Loss):
    """Square near zero, linear from ``beta`` on with slope 1; see `functional.smooth_l1_loss`."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return loss.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class NLLLoss(_WeightedLoss):
    """``-weight[target] * input[target]``; see `functional.nll_loss`."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return likelihood_loss.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """`NLLLoss` of images, under its older name."""


class CrossEntropyLoss(_WeightedLoss):
    """``-sum_c target_c * log_softmax(input)_c``; see `functional.cross_entropy`.

    Args:
        weight: (classes,) or None.
        ignore_index: class indices of this value count for nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: share of the target that is spread over all classes.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return likelihood_loss.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Cross entropy of two classes by probabilities; see `functional.binary_cross_entropy`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return likelihood_loss.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Cross entropy of two classes by logits; see `functional.binary_cross_entropy_with_logits`."""

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return likelihood_loss.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """``target * (log(target) - input)``; see `functional.kl_div`."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return likelihood_loss.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class _Measured(_Loss, Configured):
    """A loss with settings."""

    _function: Callable[..., Tensor]
    # What the function calls an argument, where the layer has another name.
    _called: ClassVar[dict[str, str]] = {}

    def __init__(
        self, reduction: str, size_average: bool | None = None, reduce: bool | None = None, **settings: Any
    ):
        super().__init__(size_average, reduce, reduction)
        self._set(**settings)

    def forward(self, *tensors: Tensor, **named: Tensor) -> Tensor:
        given = {name: getattr(self, name) for name in self._settings}
        tensors_by_name = {self._called.get(name, name): t for name, t in named.items()}
        return type(self)._function(*tensors, **tensors_by_name, **given, reduction=self.reduction)


class SoftMarginLoss(_Measured):
    """See `functional.soft_margin_loss`."""

    _function = staticmethod(margin_loss.soft_margin_loss)

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
        super().__init__(reduction, size_average, reduce)


class HingeEmbeddingLoss(_Measured):
    """See `functional.hinge_embedding_loss`."""

    _function = staticmethod(margin_loss.hinge_embedding_loss)

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(reduction, size_average, reduce, margin=margin)


class MarginRankingLoss(_Measured):
    """See `functional.margin_ranking_loss`."""

    _function = staticmethod(margin_loss.margin_ranking_loss)

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(reduction, size_average, reduce, margin=margin)


class CosineEmbeddingLoss(_Measured):
    """See `functional.cosine_embedding_loss`."""

    _function = staticmethod(margin_loss.cosine_embedding_loss)

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(reduction, size_average, reduce, margin=margin)


class MultiLabelMarginLoss(_Measured):
    """See `functional.multilabel_margin_loss`."""

    _function = staticmethod(margin_loss.multilabel_margin_loss)

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
        super().__init__(reduction, size_average, reduce)


class PoissonNLLLoss(_Measured):
    """See `functional.poisson_nll_loss`."""

    _function = staticmethod(margin_loss.poisson_nll_loss)
    _called = {"log_input": "input"}

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(reduction, size_average, reduce, log_input=log_input, full=full, eps=eps)


class TripletMarginLoss(_Measured):
    """See `functional.triplet_margin_loss`."""

    _function = staticmethod(margin_loss.triplet_margin_loss)

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(reduction, size_average, reduce, margin=margin, p=p, eps=eps, swap=swap)


class GaussianNLLLoss(_Measured):
    """See `functional.gaussian_nll_loss`."""

    _function = staticmethod(margin_loss.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction, full=full, eps=eps)


class TripletMarginWithDistanceLoss(_Measured):
    """See `functional.triplet_margin_with_distance_loss`."""

    _function = staticmethod(margin_loss.triplet_margin_with_distance_loss)

    def __init__(
        self,
        *,
        distance_function: Callable | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        super().__init__(reduction, distance_function=distance_function, margin=margin, swap=swap)


class MultiMarginLoss(_WeightedLoss):
    """See `functional.multi_margin_loss`."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return margin_loss.multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """See `functional.multilabel_soft_margin_loss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return margin_loss.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class CTCLoss(_Loss):
    """Of sequences without alignment; see `functional.ctc_loss`."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        given = log_probs, targets, input_lengths, target_lengths
        return functional.ctc_loss(*given, self.blank, self.reduction, self.zero_infinity)


__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip
