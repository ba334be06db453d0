"""What a run is judged by: a number for each row of logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ArgumentError
from ...op.arguments import describe
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor

Metric = Callable[[Tensor], Tensor]


def logit_difference(right: int | Sequence[int], wrong: int | Sequence[int]) -> Metric:
    """The metric of most circuits: how far the right answer's logit stands above the wrong one's, at the end.

    Args:
        right, wrong: ids; one for all rows, or one for each.

    Returns:
        A function of logits (batch, time, vocab) that gives (batch,).

    Source: Wang et al. 2022, "Interpretability in the wild", section 2

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens
        >>> logits = torch.tensor([[[0.0, 2.0, 5.0]]], device="cpu")
        >>> lens.logit_difference(2, 1)(logits).tolist()
        [3.0]
    """

    def metric(logits: Tensor) -> Tensor:
        last = logits[:, -1]
        return _logit(last, right) - _logit(last, wrong)

    return metric


def _logit(last: Tensor, ids: int | Sequence[int]) -> Tensor:
    if isinstance(ids, int):
        return last[:, ids]
    return last.gather(1, tensor(list(ids), device=last.device).unsqueeze(1)).squeeze(1)


def measured(where: str, metric: Any, logits: Tensor) -> Tensor:
    """What a metric gives, if it is a function whose result is a tensor of one number a row.

    Raises:
        ArgumentError: it is not.
    """
    if not callable(metric):
        raise ArgumentError(f"{where}: metric must be a function of logits, not {describe(metric)}.")
    value = metric(logits)
    if not isinstance(value, Tensor) or value.ndim > 1:
        got = describe(value) if not isinstance(value, Tensor) else f"shape {tuple(value.shape)}"
        raise ArgumentError(f"{where}: metric must give (batch,) or one number of the logits, not {got}.")
    return value
