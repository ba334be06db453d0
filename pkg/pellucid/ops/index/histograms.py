"""histogram and histogramdd: how many points, or how much weight, lies in each bin."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from ...errors import ArgumentError, DTypeError, RangeError, ShapeError
from ...op.arguments import boolean, number, wrong
from ...op.call import results
from ...op.public import function
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..reduce.extremum import extremes
from ..shape.creation import linspace
from .counting import searchsorted


@results("histogram")
class Histogram(NamedTuple):
    """Heights of bins, and their edges."""

    hist: Tensor
    bin_edges: Tensor


@results("histogramdd")
class Histograms(NamedTuple):
    """Heights of bins, and the edges of each coordinate."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _edges(name: str, x: Tensor, bins: Any, ends: tuple[float, float] | None) -> Tensor:
    """The edges of the bins of one coordinate."""
    if isinstance(bins, Tensor):
        if bins.dim() != 1 or bins.numel() < 2 or bins.dtype is not x.dtype:
            raise ShapeError(
                f"{name}: edges have shape {tuple(bins.shape)} and {bins.dtype}; give a vector of at least "
                f"two, of {x.dtype}."
            )
        return bins
    count = index(bins, f"{name}: bins")
    if count < 1:
        raise RangeError(f"{name}: bins is {count}; there must be at least one.")
    if ends is None:
        ends = extremes(x) if x.numel() else (0.0, 1.0)
    low, high = ends
    if not low <= high or high - low == float("inf"):
        raise RangeError(f"{name}: from {low} to {high} is not a finite range.")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, count + 1, dtype=x.dtype, device=x.device)


def _counted(name: str, columns: list[Tensor], edges: list[Tensor], weight: Tensor | None, density: bool):
    """The histogram of points that are given by columns of coordinates."""
    lengths = [e.numel() - 1 for e in edges]
    place, inside = 0, True
    for x, e, n in zip(columns, edges, lengths, strict=True):
        inside = inside & (x >= e[0]) & (x <= e[-1])
        place = place * n + (searchsorted(e, x.contiguous(), right=True) - 1).clamp(0, n - 1)
    first, total = columns[0], 1
    for n in lengths:
        total *= n
    weights = first * 0 + 1 if weight is None else weight.detach().reshape(-1)
    if weights.shape != first.shape or weights.dtype is not first.dtype:
        raise ShapeError(
            f"{name}: weight has {weights.numel()} elements of {weights.dtype} for {first.numel()} points of "
            f"{first.dtype}."
        )
    hist = first.new_zeros(total + 1).scatter_add(0, where(inside, place, total), weights)[:total]
    hist = hist.reshape(lengths)
    if boolean(density, f"{name}: density"):
        hist = hist / hist.sum()
        for k, e in enumerate(edges):
            hist = hist / (e[1:] - e[:-1]).reshape([-1 if j == k else 1 for j in range(len(edges))])
    return hist


def _ends(name: str, range: Any, count: int) -> list[tuple[float, float] | None]:
    """The range of each coordinate."""
    if range is None:
        return [None] * count
    if not isinstance(range, (tuple, list)):
        raise wrong(f"{name}: range", "tuple of floats", range)
    ends = [number(v, f"{name}: range") for v in range]
    if len(ends) != 2 * count:
        raise ArgumentError(f"{name}: range has {len(ends)} numbers; give {2 * count}.")
    return [pair for k, pair in enumerate(pairwise(ends)) if k % 2 == 0]


@function(
    method=True,
    aten=("histogram.bin_ct(self, bins=100, *, range=None, weight=None, density=False)",
          "histogram.bins_tensor(self, bins, *, weight=None, density=False)"),
)  # fmt: skip
def histogram(
    input: Tensor, bins=100, *, range=None, weight: Tensor | None = None, density: bool = False
) -> Histogram:
    """How many elements lie in each bin, each of which has its left edge and the last one its right, too.

    Args:
        input: floating point, of any shape.
        bins: how many of equal width, or a rising vector of edges.
        range: the ends of the first and last; those of the elements if not given, which are read.
        weight: what each element counts, in the shape of ``input``; 1 if not given.
        density: whether the sum over bins of height times width is 1.

    Returns:
        hist, and the bin_edges.

    Raises:
        DTypeError: the elements are not floating point.
        RangeError: no bins, or no finite range.
        ShapeError: edges or weights do not fit.

    Example:
        >>> import pellucid as torch
        >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0], device="cpu"), 4, range=(0.0, 3.0)).hist.tolist()
        [0.0, 2.0, 1.0, 0.0]
    """
    _floating("histogram", input)
    x = input.detach().reshape(-1)
    edges = _edges("histogram", x, bins, _ends("histogram", range, 1)[0])
    return Histogram(_counted("histogram", [x], [edges], weight, density), edges)


@function(ours="PyTorch makes it of private operators, in C++")
def histogramdd(
    input: Tensor, bins, range=None, weight: Tensor | None = None, density: bool = False
) -> Histograms:
    """`histogram` of points with several coordinates, which are the last axis.

    Args:
        input: (..., d) floating point.
        bins: how many for all, or of each coordinate, or a list of rising vectors of edges.
        range: the ends, two for each coordinate.
        weight: what each point counts, (...).
        density: whether the sum over bins of height times volume is 1.

    Returns:
        hist, one axis for each coordinate, and the bin_edges of each.

    Raises:
        As `histogram`.
    """
    _floating("histogramdd", input)
    if input.dim() < 2:
        raise ShapeError(f"histogramdd: points have shape {tuple(input.shape)}; give (..., coordinates).")
    points = input.detach().reshape(-1, input.shape[-1])
    columns = list(points.unbind(1))
    if isinstance(bins, Tensor):
        raise wrong("histogramdd: bins", "int, tuple of ints or tuple of Tensors", bins)
    each = list(bins) if isinstance(bins, (tuple, list)) else [bins] * len(columns)
    if len(each) != len(columns):
        raise ArgumentError(f"histogramdd: {len(each)} bins for {len(columns)} coordinates.")
    ends = _ends("histogramdd", range, len(columns))
    edges = [_edges("histogramdd", x, b, e) for x, b, e in zip(columns, each, ends, strict=True)]
    return Histograms(_counted("histogramdd", columns, edges, weight, density), tuple(edges))


def _floating(name: str, input: Tensor) -> None:
    if not input.dtype.is_floating_point:
        raise DTypeError(f"{name}: takes floating point, not {input.dtype}. Convert with .float().")
