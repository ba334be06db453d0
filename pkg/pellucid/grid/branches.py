"""Parallel branches with one result: concatenated, added, averaged, gated (a mixture of experts),
or placed in a grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ..errors import ArgumentError, RangeError, ShapeError
from ..nn.functional import softmax
from ..nn.modules.container import ModuleList
from ..nn.modules.module import Module
from ..ops.index.sort import topk
from ..ops.shape.joining import cat, stack
from ..tensors.shape import index
from ..tensors.tensor import Tensor

COMBINES = ("concat", "add", "avg", "filter", "grid_scatter")


class Parallel(Module):
    """Branches that all take the input, and one result of theirs.

    ``concat``: along the last axis. ``add``: their sum. ``avg``: their mean. ``filter``: the sum weighted by
    ``softmax(gate(input))``, with `top_k` only of the largest, renormalized. ``grid_scatter``: each at its
    place of a grid, with zeros where no branch is.

    Args:
        branches: modules; but for `concat` of results of one shape.
        combine: concat, add, avg, filter or grid_scatter.
        gate: for filter: a module from the input to (..., branches).
        top_k: for filter: how many branches count for each row; all if None.
        grid: for grid_scatter: lengths of the grid's axes, (depth, rows, columns) for example.
        places: for grid_scatter: the place of each branch in the grid; in order from the first if None.

    Returns:
        Called with an input: the combined result; of grid_scatter (..., *grid, n).

    Raises:
        RangeError: an unknown way to combine, a place outside the grid or twice, `top_k` that does not fit.
        ArgumentError: no branch, a gate that is missing or has no use.

    Source: Shazeer et al. 2017, "Outrageously Large Neural Networks", for the gate and its largest k

    Example:
        >>> import pellucid
        >>> both = pellucid.grid.Parallel([pellucid.nn.Identity(), pellucid.nn.ReLU()], "add")
        >>> both(pellucid.tensor([-1.0, 2.0], device="cpu")).tolist()
        [-1.0, 4.0]
    """

    def __init__(
        self,
        branches: Iterable[Module],
        combine: str = "concat",
        gate: Module | None = None,
        top_k: int | None = None,
        grid: Sequence[int] | None = None,
        places: Sequence[Sequence[int]] | None = None,
    ):
        super().__init__()
        self.branches = ModuleList(branches)
        count = len(self.branches)
        if not count:
            raise ArgumentError("Parallel: there must be at least one branch.")
        if combine not in COMBINES:
            raise RangeError(f"Parallel: combine must be one of {', '.join(COMBINES)}, not {combine!r}.")
        if (gate is not None) != (combine == "filter"):
            needed = "needs a gate" if combine == "filter" else "has no use for a gate"
            raise ArgumentError(f"Parallel: combine={combine!r} {needed}.")
        if (grid is not None) != (combine == "grid_scatter"):
            needed = "needs a grid" if combine == "grid_scatter" else "has no use for a grid"
            raise ArgumentError(f"Parallel: combine={combine!r} {needed}.")
        if top_k is not None and (combine != "filter" or not 1 <= index(top_k, "Parallel: top_k") <= count):
            raise RangeError(
                f"Parallel: top_k goes with combine='filter' and lies between 1 and the {count} branches, "
                f"not {top_k} with {combine!r}."
            )
        self.combine, self.top_k = combine, top_k
        self.gate = gate
        self.grid = None if grid is None else [index(n, "Parallel: grid") for n in grid]
        self.places = None if self.grid is None else _flat(self.grid, places, count)

    def weights(self, input: Tensor) -> Tensor:
        """How much each branch counts for each row of the input: (..., branches), for combine="filter"."""
        if self.gate is None:
            raise ArgumentError(f"Parallel.weights: combine={self.combine!r} has no weights.")
        logits = self.gate(input)
        if logits.shape[-1] != len(self.branches):
            raise ShapeError(
                f"Parallel: the gate must give one value for each of the {len(self.branches)} branches, not "
                f"{tuple(logits.shape)}."
            )
        if self.top_k is None or self.top_k == len(self.branches):
            return softmax(logits, -1)
        values, chosen = topk(logits, self.top_k, -1)
        return logits.new_zeros(logits.shape).scatter(-1, chosen, softmax(values, -1))

    def forward(self, input: Tensor) -> Tensor:
        found = [branch(input) for branch in self.branches]
        if self.combine == "concat":
            return cat(found, -1)
        if any(out.shape != found[0].shape for out in found):
            shapes = ", ".join(str(tuple(out.shape)) for out in found)
            raise ShapeError(f"Parallel: combine={self.combine!r} takes results of one shape, not {shapes}.")
        if self.combine == "filter":
            return (stack(found, -1) * self.weights(input).unsqueeze(-2)).sum(-1)
        if self.combine == "grid_scatter":
            assert self.grid is not None
            assert self.places is not None
            nothing = found[0].new_zeros(found[0].shape)
            cells = [nothing] * prod(self.grid)
            for place, out in zip(self.places, found, strict=True):
                cells[place] = out
            return stack(cells, -2).unflatten(-2, self.grid)
        total = found[0]
        for out in found[1:]:
            total = total + out
        return total / len(found) if self.combine == "avg" else total

    def extra_repr(self) -> str:
        return f"combine={self.combine!r}" + ("" if self.top_k is None else f", top_k={self.top_k}")


def _flat(grid: Sequence[int], places: Sequence[Sequence[int]] | None, count: int) -> list[int]:
    """The places as numbers of cells, row by row."""
    if not grid or min(grid) < 1:
        raise RangeError(f"Parallel: a grid has axes of at least 1, not {list(grid)}.")
    if places is None:
        if count > prod(grid):
            raise RangeError(f"Parallel: a grid of {prod(grid)} cells has no room for {count} branches.")
        return list(range(count))
    if len(places) != count:
        raise RangeError(f"Parallel: there are {count} branches, but {len(places)} places.")
    flat = []
    for place in places:
        if len(place) != len(grid) or any(not 0 <= p < n for p, n in zip(place, grid, strict=True)):
            raise RangeError(f"Parallel: the place {tuple(place)} is not in a grid of {tuple(grid)}.")
        number = 0
        for p, n in zip(place, grid, strict=True):
            number = number * n + p
        flat.append(number)
    if len(set(flat)) < count:
        raise RangeError("Parallel: two branches have one place in the grid.")
    return flat
