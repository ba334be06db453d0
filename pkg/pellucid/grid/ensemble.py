"""Ensembles: networks that complement each other, votes, and networks grafted into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import ArgumentError, RangeError, ShapeError
from ..nn.modules.module import Module
from ..ops.shape.creation import arange
from ..ops.shape.joining import stack
from ..tensors import dtypes as dt
from ..tensors.shape import index
from ..tensors.tensor import Tensor
from .branches import Parallel
from .layers import Residual


class EnsembleMatch(NamedTuple):
    """Two models and what they get right together: numbers from 0 to 1 of all examples."""

    first: int
    second: int
    coverage: float
    overlap: float


def _masks(masks: Sequence[Tensor], name: str) -> Tensor:
    found = list(masks)
    if not found:
        raise ArgumentError(f"{name}: there must be at least one mask.")
    for mask in found:
        if not isinstance(mask, Tensor) or mask.dtype is not dt.bool_ or mask.dim() != 1 or not len(mask):
            raise ArgumentError(f"{name}: a mask is a bool tensor with one value for each example.")
        if mask.shape != found[0].shape:
            raise ShapeError(f"{name}: masks of {len(found[0])} and {len(mask)} examples.")
    return stack(found).float()


def performance_similarity(first: Tensor, second: Tensor) -> float:
    """How alike two models' right answers are: the cosine of their masks, 0 if one has none.

    Args:
        first, second: bool (examples,): what each got right.

    Example:
        >>> import pellucid
        >>> mask = pellucid.tensor([True, False], device="cpu")
        >>> pellucid.grid.performance_similarity(mask, mask)
        1.0
    """
    a, b = _masks([first, second], "performance_similarity")
    length = ((a * a).sum() * (b * b).sum()).sqrt().item()
    return (a * b).sum().item() / length if length else 0.0


def complementary_matches(masks: Sequence[Tensor], min_coverage: float = 0.0) -> list[EnsembleMatch]:
    """Pairs of models by how many examples at least one of them gets right, most first.

    Args:
        masks: for each model a bool tensor (examples,): what it got right.
        min_coverage: pairs that cover less, as a part of all examples, are left out.

    Returns:
        Pairs with coverage (union) and overlap (intersection); of equal coverage, least overlap first.

    Example:
        >>> import pellucid
        >>> masks = [pellucid.tensor(m, device="cpu") for m in ([True, False], [False, True])]
        >>> pellucid.grid.complementary_matches(masks)[0].coverage
        1.0
    """
    if not 0 <= min_coverage <= 1:
        raise RangeError(f"complementary_matches: min_coverage lies between 0 and 1, not {min_coverage}.")
    table = _masks(masks, "complementary_matches")
    both = (table @ table.T).tolist()
    count = table.shape[1]
    found = []
    for a in range(len(both)):
        for b in range(a + 1, len(both)):
            coverage = (both[a][a] + both[b][b] - both[a][b]) / count
            if coverage >= min_coverage:
                found.append(EnsembleMatch(a, b, coverage, both[a][b] / count))
    return sorted(found, key=lambda m: (-m.coverage, m.overlap, m.first, m.second))


def majority_vote(outputs: Sequence[Tensor] | Tensor, num_classes: int | None = None) -> Tensor:
    """The class that most models chose; of equally many votes, the smallest class.

    Args:
        outputs: integers (models, examples), or one tensor (examples,) for each model.
        num_classes: classes are 0 to num_classes - 1; found from the largest if None.

    Returns:
        int64 (examples,).

    Raises:
        RangeError: a class is negative or not below `num_classes`.

    Example:
        >>> import pellucid
        >>> pellucid.grid.majority_vote(pellucid.tensor([[1, 0], [1, 2], [0, 1]], device="cpu")).tolist()
        [1, 0]
    """
    votes = outputs if isinstance(outputs, Tensor) else stack(list(outputs))
    if votes.dim() != 2 or not votes.numel() or votes.dtype.is_floating_point or votes.dtype is dt.bool_:
        raise ArgumentError(
            f"majority_vote: the outputs must be integers (models, examples), not {votes.dtype} "
            f"{tuple(votes.shape)}."
        )
    low, high = int(votes.min()), int(votes.max())
    count = high + 1 if num_classes is None else index(num_classes, "majority_vote: num_classes")
    if low < 0 or high >= count:
        raise RangeError(
            f"majority_vote: classes lie between 0 and {count - 1}, but {low} to {high} are there."
        )
    classes = arange(count, device=votes.device, dtype=votes.dtype)
    return (votes.unsqueeze(-1) == classes).to(dt.int32).sum(0).argmax(-1)


def graft(networks: Iterable[Module], combine: str = "avg", **settings) -> Parallel:
    """Several networks as one layer, which combines what they give.

    Args:
        networks: modules that take the same input.
        combine, settings: as of `Parallel`.

    Example:
        >>> import pellucid
        >>> both = pellucid.grid.graft([pellucid.nn.ReLU(), pellucid.nn.Identity()])
        >>> both(pellucid.tensor([-2.0], device="cpu")).item()
        -1.0
    """
    return Parallel(networks, combine, **settings)


def residual_graft(network: Module) -> Residual:
    """A network inside of a residual block: ``x + network(x)``.

    Args:
        network: gives the shape that it takes.

    Example:
        >>> import pellucid
        >>> pellucid.grid.residual_graft(pellucid.nn.ReLU())(pellucid.ones(1, device="cpu")).item()
        2.0
    """
    return Residual(network)
