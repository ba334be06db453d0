"""grid_sample, affine_grid: images at any points, and the points of affine maps."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product
from math import prod
from typing import Any

from ...autograd.edges import labelled
from ...errors import DTypeError, RangeError, ShapeError
from ...op.arguments import integers
from ...op.families import called
from ...op.public import function
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..shape.creation import arange
from ..shape.joining import stack

_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _reflected(x: Tensor, low: float, span: float) -> Tensor:
    """Mirrored at both ends of an interval, as often as it takes."""
    if not span:
        return x * 0
    away = x - low
    away = where(away < 0, -away, away)
    turns = (away / span).floor().detach()
    rest = away - turns * span
    return where(turns % 2 == 0, rest, span - rest) + low


def _inside(x: Tensor, length: int, padding: str, aligned: bool) -> Tensor:
    """Places of an axis, those outside of it as the padding says."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        x = _reflected(x, 0.0, length - 1.0) if aligned else _reflected(x, -0.5, float(length))
    # What is not within the image gets no gradient, nor do the first and the last place.
    return where((x > 0) & (x < length - 1), x, x.detach().clamp(0, length - 1))


def _cubic(t: Tensor) -> list[Tensor]:
    """Weights of four neighbours, the second of which lies t before the point."""
    a = -0.75
    far = [((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in (t + 1, 2 - t)]
    near = [((a + 2) * x - (a + 3)) * x * x + 1 for x in (t, 1 - t)]
    return [far[0], *near, far[1]]


def _taps(x: Tensor, length: int, mode: str, padding: str, aligned: bool) -> list[tuple[Tensor, Tensor]]:
    """Places that points of an axis take in, whole numbers, and the weights of these; of -1 to 1."""
    x = (x + 1) / 2 * (length - 1) if aligned else ((x + 1) * length - 1) / 2
    if mode == "bicubic":
        below = x.detach().floor()
        return [
            (_inside(below + k, length, padding, aligned), weight)
            for k, weight in zip((-1, 0, 1, 2), _cubic(x - below), strict=True)
        ]
    x = _inside(x, length, padding, aligned)
    if mode == "nearest":
        # The weight is 1. Its derivative by the point is 0, and not missing.
        return [(x.detach().round(), x.sign() * 0 + 1)]
    below = x.detach().floor()
    return [(below, below + 1 - x), (below + 1, x - below)]


def _sampled(name: str, input: Tensor, grid: Tensor, mode: str, padding: str, aligned: bool) -> Tensor:
    image, count = tuple(input.shape[2:]), input.dim() - 2
    if count not in (2, 3) or grid.dim() != count + 2 or 0 in input.shape[1:]:
        raise ShapeError(
            f"{name}: input has shape {tuple(input.shape)} and grid {tuple(grid.shape)}; they must be "
            "(batch, channels, height, width) and (batch, rows, columns, 2), or that with a depth and 3, "
            "and have elements."
        )
    if grid.shape[0] != input.shape[0] or grid.shape[-1] != count:
        raise ShapeError(
            f"{name}: grid has shape {tuple(grid.shape)}; for an input of shape {tuple(input.shape)} it must "
            f"have {input.shape[0]} as the first and {count} as the last length."
        )
    if grid.dtype is not input.dtype:
        raise DTypeError(f"{name}: grid is {grid.dtype} and input is {input.dtype}. Convert one of them.")
    if mode == "bicubic" and count == 3:
        raise ShapeError(f"{name}: mode 'bicubic' takes images of two axes, and these have three.")
    # Points have x before y. A row holds the channels of a pixel, so one place is one row.
    axes = [_taps(grid.select(-1, count - 1 - k), n, mode, padding, aligned) for k, n in enumerate(image)]
    rows = input.movedim(1, -1).reshape(-1, input.shape[1])
    first = arange(len(input), device=input.device).reshape(-1, *(1,) * count) * prod(image)
    out: Any = 0
    for taps in product(*axes):
        held = [(place >= 0) & (place < n) for (place, _), n in zip(taps, image, strict=True)]
        there, flat = reduce(lambda a, b: a & b, held), 0
        for (place, _), at, n in zip(taps, held, image, strict=True):
            flat = flat * n + where(at, place, 0.0).long()
        values = rows.index_select(0, (first + flat).reshape(-1)).reshape(*grid.shape[:-1], -1)
        weight = reduce(lambda a, b: a * b, [weight for _, weight in taps])
        out = out + where(there.unsqueeze(-1), values * weight.unsqueeze(-1), 0.0)
    return out.movedim(-1, 1).contiguous()


@function(exports="nn.functional", ours="the form of nn.functional; `pellucid.grid_sampler` is that of ATen")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images at points: ``out[n, :, i, j]`` is ``input[n]`` at the point ``grid[n, i, j]``.

    Args:
        input: (batch, channels, height, width) or (batch, channels, depth, height, width).
        grid: (batch, rows, columns, 2) or (batch, slices, rows, columns, 3), points (x, y) or (x, y, z),
            where the image reaches from -1 to 1; same dtype.
        mode: "bilinear", "nearest", or of images "bicubic".
        padding_mode: what lies outside: "zeros", the "border" again, or the image's "reflection".
        align_corners: whether -1 and 1 are the middles of the first and the last pixel, or else their ends.

    Returns:
        (batch, channels, *the grid's lengths).

    Raises:
        ValueError: there is no such mode, or shapes do not fit.
        DTypeError: dtypes differ.

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]], device="cpu")
        >>> middle = torch.zeros(1, 1, 1, 2, device="cpu")
        >>> torch.nn.functional.grid_sample(x, middle).item()
        2.5
    """
    if mode not in _MODES:
        raise RangeError(f"grid_sample: mode is {mode!r}; there are {', '.join(_MODES)}.")
    if padding_mode not in _PADDINGS:
        raise RangeError(f"grid_sample: padding_mode is {padding_mode!r}; there are {', '.join(_PADDINGS)}.")
    out = _sampled("grid_sample", input, grid, mode, padding_mode, bool(align_corners))
    return labelled(f"GridSampler{input.dim() - 2}DBackward0", out)


def _sampler(name: str) -> Callable:
    """Declare a form of `grid_sample` that has numbers for the modes, as ATen."""

    def sampler(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        mode, padding = index(interpolation_mode, "interpolation_mode"), index(padding_mode, "padding_mode")
        if not (0 <= mode < 3 and 0 <= padding < 3):
            raise RangeError(f"{name}: modes are {mode} and {padding}; they are numbers from 0 to 2.")
        return _sampled(name, input, grid, _MODES[mode], _PADDINGS[padding], align_corners)

    page = "https://pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html"
    doc = f"`nn.functional.grid_sample` with numbers for its modes, in its order.\n\n    Source: {page}\n    "
    return called(name, doc, sampler)


grid_sampler, grid_sampler_2d, grid_sampler_3d = (_sampler(f"grid_sampler{d}") for d in ("", "_2d", "_3d"))


def _steps(count: int, aligned: bool, like: Tensor) -> Tensor:
    """Points of an axis from -1 to 1: the middles of cells, or from end to end."""
    places = arange(count, device=like.device).to(like.dtype)
    if aligned:
        return places * (2 / (count - 1)) - 1 if count > 1 else places
    return (places * 2 + (1 - count)) / count


@function(
    exports="nn.functional",
    ours="the form of nn.functional; `affine_grid_generator` is that of ATen",
    node="AffineGridGenerator",
)
def affine_grid(theta: Tensor, size: tuple[int, ...], align_corners: bool | None = None) -> Tensor:
    """The points for `grid_sample` that an affine map makes of those of an image: ``theta @ (x, y, 1)``.

    Args:
        theta: (batch, 2, 3) or (batch, 3, 4), floating point.
        size: of the result of `grid_sample`: (batch, channels, height, width), or with a depth.
        align_corners: as `grid_sample` has it.

    Returns:
        (batch, height, width, 2) or (batch, depth, height, width, 3).

    Raises:
        ValueError: shapes do not fit.
        NotImplementedError: a size of other axes.
    """
    size = integers(size, "affine_grid: size")
    if not theta.dtype.is_floating_point:
        raise RangeError(f"affine_grid: theta is {theta.dtype}; it must be floating point.")
    if len(size) not in (4, 5):
        raise NotImplementedError(f"affine_grid: size {size} must be that of images or volumes in a batch.")
    image, count = size[2:], len(size) - 2
    if tuple(theta.shape) != (size[0], count, count + 1) or min(size) < 1:
        raise ShapeError(
            f"affine_grid: theta has shape {tuple(theta.shape)}; for size {size} it must be "
            f"{(size[0], count, count + 1)}, and lengths at least 1."
        )
    points = []
    for k in reversed(range(count)):
        shape = [n if k == at else 1 for at, n in enumerate(image)]
        points.append(_steps(image[k], bool(align_corners), theta).reshape(shape).expand(image))
    points.append(theta.new_ones(image))
    grid = stack(points, -1).reshape(1, -1, count + 1) @ theta.mT
    return grid.reshape(size[0], *image, count)


@function()
def affine_grid_generator(theta: Tensor, size: tuple[int, ...], align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`, whose arguments it has.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.affine_grid.html
    """
    return affine_grid(theta, size, align_corners)
