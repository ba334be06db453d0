"""Deviation metrics: how far predictions lie from what was expected, in buckets of percent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError, ShapeError
from ..nn.modules.module import Module
from ..ops.elementwise.comparison import where
from ..tensors.tensor import Tensor

# Percent: from a number up to, not including, the next one; the last bucket has no end.
EDGES = (0, 10, 20, 30, 40, 50, 100)


class DeviationMetrics(NamedTuple):
    """What `deviation_metrics` finds.

    Args:
        buckets: for each bucket its edges in percent and how many predictions lie in it.
        samples: for each bucket the indices of its predictions.
        total: predictions.
        failures: those off by 100 percent or more, or not finite.
        average: mean deviation in percent; a failure counts 100.
        score: ``100 - average``, from 0 to 100.
        accuracy: part of predictions off by less than 10 percent.
    """

    buckets: dict[tuple[int, float], int]
    samples: dict[tuple[int, float], list[int]]
    total: int
    failures: int
    average: float
    score: float
    accuracy: float

    def __str__(self) -> str:
        rows = [f"{self.total} predictions, score {self.score:.1f}, accuracy {self.accuracy:.1%}"]
        for (low, high), count in self.buckets.items():
            edges = f"{low}% and more" if high == float("inf") else f"{low}% to {high}%"
            rows.append(f"{edges:>14} {count:6} {'#' * round(40 * count / max(self.total, 1))}")
        return "\n".join(rows)


def deviation_metrics(expected: Tensor, actual: Tensor) -> DeviationMetrics:
    """Sort predictions by ``100 |actual - expected| / |expected|`` percent.

    Where 0 is expected, it is ``100 |actual|``.

    Args:
        expected, actual: of one shape; each element is a prediction.

    Raises:
        ShapeError: the shapes differ, or there is nothing.

    Example:
        >>> import pellucid
        >>> expected = pellucid.tensor([1.0, 2.0], device="cpu")
        >>> metrics = pellucid.grid.deviation_metrics(expected, pellucid.tensor([1.05, 5.0], device="cpu"))
        >>> metrics.failures, round(metrics.accuracy, 2)
        (1, 0.5)
    """
    if expected.shape != actual.shape or not expected.numel():
        raise ShapeError(
            f"deviation_metrics: expected and actual must have one shape with elements, not "
            f"{tuple(expected.shape)} and {tuple(actual.shape)}."
        )
    right, found = expected.detach().float().flatten(), actual.detach().float().flatten()
    off = 100 * (found - right).abs() / where(right == 0, 1.0, right.abs())
    off = off.nan_to_num(100.0, 100.0)
    ends = [*EDGES[1:], float("inf")]
    percent = off.tolist()
    samples: dict[tuple[int, float], list[int]] = {edges: [] for edges in zip(EDGES, ends, strict=True)}
    for k, value in enumerate(percent):
        place = max(n for n, low in enumerate(EDGES) if value >= low)
        samples[EDGES[place], ends[place]].append(k)
    buckets = {edges: len(found) for edges, found in samples.items()}
    average = float(off.clamp(max=100.0).mean())
    return DeviationMetrics(
        buckets, samples, len(percent), buckets[EDGES[-1], float("inf")], average, 100 - average,
        buckets[EDGES[0], ends[0]] / len(percent),
    )  # fmt: skip


def evaluate(models: Mapping[str, Module], input: Tensor, expected: Tensor) -> dict[str, DeviationMetrics]:
    """The deviation metrics of several models on the same examples, best score first.

    Args:
        models: by name.
        input, expected: what each is called with, and what it should give.

    Example:
        >>> import pellucid
        >>> x = pellucid.ones(2, device="cpu")
        >>> pellucid.grid.evaluate({"same": pellucid.nn.Identity()}, x, x)["same"].score
        100.0
    """
    if not models:
        raise ArgumentError("evaluate: there must be at least one model.")
    with no_grad():
        found = {name: deviation_metrics(expected, model(input)) for name, model in models.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1].score))
