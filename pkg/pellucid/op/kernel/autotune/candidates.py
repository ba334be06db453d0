"""What `pellucid.webgpu.tune` chooses between: the kernels that can make a product or a convolution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from operator import index
from typing import Any, NamedTuple, TypeVar

from ....device.stream import stream
from ....errors import DTypeError, ShapeError
from ....ops.conv import tiles as conv_tiles
from ....ops.conv.convolution import conv2d
from ....ops.matmul.choice import candidates, choose, forced, is_narrow, key
from ....ops.matmul.dense import matmul
from ....ops.matmul.variants import Shape, Variant
from ....ops.random.distributions import randn
from ....tensors.dtypes import DType
from ....tensors.tensor import Tensor
from ..variants import is_direct

Kernel = TypeVar("Kernel")

# Squares, products of a linear layer (rows are tokens, the weight lies as (columns, depth)), and convolutions
# of a network for images.
USUAL = (
    ("nn", (1, 512, 512, 512)),
    ("nn", (1, 1024, 1024, 1024)),
    ("nn", (1, 2048, 2048, 2048)),
    ("nn", (1, 4096, 4096, 4096)),
    ("nt", (1, 32, 4096, 4096)),
    ("nt", (1, 128, 4096, 4096)),
    ("nt", (1, 512, 4096, 4096)),
    ("nt", (1, 512, 1536, 576)),
    ("nt", (1, 512, 576, 1536)),
    ("nt", (1, 1, 4096, 4096)),
    ("conv2d", (1, 64, 56, 56, 64, 3)),
    ("conv2d", (1, 256, 14, 14, 256, 3)),
    ("conv2d", (8, 128, 28, 28, 128, 3)),
)
LAYOUTS = ("nn", "nt", "tn", "tt")
# How many tiles are tried for a shape, and how many cuts of the depth of one tile.
_MOST_TILES, _MOST_CUTS = 8, 2
# By how much results may differ, of their largest element.
_CLOSE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


def shape_of(layout: str, sizes: tuple[int, ...]) -> Shape:
    """The shape that sizes (rows, columns, depth), with a batch before them or not, and a layout describe.

    Raises:
        ShapeError: they describe none.
    """
    whole = (1, *sizes) if len(sizes) == 3 else sizes
    if layout not in LAYOUTS or len(whole) != 4 or min(whole) < 1:
        raise ShapeError(_no_product((layout, sizes)))
    return Shape(*whole, layout[0] == "n", layout[1] == "t")


def _no_product(asked: object) -> str:
    return (
        f"tune: {asked!r} is no product. Give a list of pairs: one of {LAYOUTS} and positive (rows, columns, "
        "depth) or (batch, rows, columns, depth), or 'conv2d' and (batch, channels, height, width, channels "
        "made, kernel)."
    )


def operands(shape: Shape, dtype: DType) -> tuple[Tensor, Tensor]:
    """Random matrices of a shape: what is multiplied changes how fast a device may run."""

    def made(rows: int, columns: int, by_row: bool) -> Tensor:
        sizes = (rows, columns) if by_row else (columns, rows)
        x = randn(*((shape.batch, *sizes) if shape.batch > 1 else sizes), device="webgpu").to(dtype)
        return x if by_row else x.transpose(-2, -1)

    return (
        made(shape.rows, shape.depth, shape.a_depth_first),
        made(shape.depth, shape.columns, not shape.b_depth_first),
    )


def _few(candidates: Iterable[Kernel], tile_of: Callable[[Kernel], Any]) -> list[Kernel]:
    """The candidates that are worth a measurement, the one that would be used without it first."""
    found: list[Kernel] = []
    for candidate in candidates:
        tile, tiles = tile_of(candidate), [tile_of(one) for one in found]
        if tiles.count(tile) < _MOST_CUTS and len({*tiles, tile}) <= _MOST_TILES:
            found.append(candidate)
    return found


def shortlist(shape: Shape) -> list[Variant]:
    """The kernels of a product that are worth a measurement."""
    info = stream().open().info
    if is_direct():
        direct = Variant("direct")
        return list(dict.fromkeys((choose(shape, info), direct))) if is_narrow(shape) else [direct]
    return _few(candidates(shape, info), lambda variant: (variant.file, variant.tile))


class Contest(NamedTuple):
    """Kernels that make the same.

    Attributes:
        name: what the choice is kept by.
        flops: multiplications and additions.
        close: by how much results may differ, of their largest element.
        kernels: the one that is used without a measurement first.
        call_of: from a kernel to the call that runs it.
    """

    name: str
    flops: int
    close: float
    kernels: Sequence[Any]
    call_of: Callable[[Any], Callable[[], Tensor]]


def product(shape: Shape, dtype: DType, kernels: Sequence[Variant] | None = None) -> Contest:
    """What makes a product; the short list where no kernels are given."""
    a, b = operands(shape, dtype)

    def call_of(variant: Variant) -> Callable[[], Tensor]:
        with forced(variant):
            return partial(matmul.op.plan((a, b)), a, b)

    name = key(shape, dtype.name)
    return Contest(name, shape.flops, _CLOSE[dtype.name], kernels or shortlist(shape), call_of)


def convolution(sizes: tuple[int, ...], dtype: DType) -> Contest:
    """What makes a convolution of (batch, channels, height, width, channels made, kernel) with a border."""
    batch, channels, height, width, made, kernel = sizes
    x = randn(batch, channels, height, width, device="webgpu").to(dtype)
    weight = randn(made, channels, kernel, kernel, device="webgpu").to(dtype)
    values = (x, weight, None, 1, "same", 1, 1)
    as_product = conv_tiles.Sizes(1, made, batch * height * width, channels * kernel * kernel)

    def call_of(choice: conv_tiles.TileChoice | str) -> Callable[[], Tensor]:
        with nullcontext() if isinstance(choice, str) else conv_tiles.forced(*choice):
            return partial(conv2d.op.plan(values), *values)

    kernels: Sequence[Any] = ["direct"]
    if not is_direct():
        kernels = _few(conv_tiles.candidates(as_product, stream().open().info), lambda choice: choice.tile)
    flops = 2 * made * as_product.columns * as_product.depth
    name = conv_tiles.key(as_product, dtype.name)
    return Contest(name, flops, _CLOSE[dtype.name], kernels, call_of)


def contest_of(asked: tuple[str, Iterable[int]], dtype: DType) -> Callable[[], Contest]:
    """What `pellucid.webgpu.tune` was asked for, checked; its operands are made by the call of the result.

    Args:
        asked: a layout and sizes.
        dtype: of the operands.

    Raises:
        ShapeError: it is neither a product nor a convolution.
        DTypeError: nothing is measured of the dtype.
    """
    if not isinstance(dtype, DType) or dtype.name not in _CLOSE:
        raise DTypeError(f"tune: dtype {dtype} is not measured. Give one of {', '.join(_CLOSE)}.")
    try:
        layout, sizes = asked
        sizes = tuple(index(size) for size in sizes)
    except (TypeError, ValueError):
        raise ShapeError(_no_product(asked)) from None
    if layout == "conv2d" and len(sizes) == 6 and min(sizes) > 0:
        return partial(convolution, sizes, dtype)
    return partial(product, shape_of(layout, sizes), dtype)
