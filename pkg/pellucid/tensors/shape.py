"""Integer algebra of shapes: broadcasting, strides, axes, slices. Knows nothing of tensors or devices."""

import operator
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import SupportsIndex, overload

from ..errors import ArgumentError, DimensionError, RangeError, ShapeError

# What an integer argument stays below, as in PyTorch.
_FAR = 1 << 63


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of its axis lengths, as ``torch.Size``."""

    __slots__ = ()
    prefix = ""  # "torch." where `compat.install` lets the package stand for PyTorch

    def numel(self) -> int:
        """Number of elements: the product of the lengths."""
        return prod(self)

    def __repr__(self) -> str:
        return f"{self.prefix}Size([{', '.join(map(str, self))}])"

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> "Size": ...

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a row-major tensor."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie in row-major order without gaps (axes of length 1 do not matter)."""
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 0:
            return True
        if length != 1:
            if stride != step:
                return False
            step *= length
    return True


def broadcast_shapes(*shapes: Sequence[int]) -> Size:
    """The shape that all shapes broadcast to.

    Raises:
        ShapeError: two lengths at the same place differ and neither is 1.

    Example:
        >>> broadcast_shapes((4, 1, 3), (2, 1))
        Size([4, 2, 3])
    """
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for s in shapes:
        for k, length in enumerate(s, rank - len(s)):
            if length != 1 and result[k] != length:
                if result[k] != 1:
                    sizes = " and ".join(str(tuple(s)) for s in shapes)
                    raise ShapeError(
                        f"shapes {sizes} do not broadcast: counted from the right, axis {rank - k} is "
                        f"{result[k]} and {length}. "
                        "Reshape one of them so that the lengths agree or one of them is 1."
                    )
                result[k] = length
    return Size(result)


def broadcast_strides(shape: Sequence[int], strides: Sequence[int], to: Sequence[int]) -> tuple[int, ...]:
    """Strides that read a tensor of ``shape`` as one of shape ``to``: 0 along broadcast axes."""
    lead = len(to) - len(shape)
    return (0,) * lead + tuple(
        0 if length == 1 and wanted != 1 else stride
        for length, stride, wanted in zip(shape, strides, to[lead:], strict=True)
    )


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front.

    Raises:
        DimensionError: ``dim`` is outside ``[-rank, rank - 1]``.
    """
    if type(dim) is int and -rank <= dim < rank:
        return dim if dim >= 0 else dim + rank
    dim = index(dim, "dim")
    span = max(rank, 1)
    if not -span <= dim < span:
        raise DimensionError(
            f"dimension {dim} is out of range: a tensor of {rank} axes takes {-span} to {span - 1}."
        )
    return dim % span


# Of tensors along some of whose axes something is done.
_MOST_AXES = 64


def axes(dim, rank: int) -> tuple[int, ...]:
    """Sorted, distinct axes of a ``dim`` argument: ``None`` and ``()`` are all of them.

    Raises:
        DimensionError: one is out of range.
        ShapeError: one appears twice, or there are more than 64, as in PyTorch.
    """
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(rank))
    if rank > _MOST_AXES:
        raise ShapeError(f"dim {dim} of {rank} axes: at most {_MOST_AXES} can be named. Reshape the tensor.")
    if not isinstance(dim, (tuple, list)):
        dim = (dim,)
    result = [axis(d, rank) for d in dim]
    if len(set(result)) != len(result):
        raise ShapeError(f"dim {tuple(dim)} names an axis twice. Name each axis once.")
    return tuple(sorted(a for a in result if a < rank))


def index(value, name: str) -> int:
    """An integer argument: an integer of Python or numpy, or an integer tensor of one element, which is read.

    Raises:
        ArgumentError: it is something else, such as a bool or a float.
        RangeError: it needs more than 64 bits.
    """
    if type(value) is not int:
        # A flag is no number, also where it is a tensor.
        kind = value.dtype.kind if hasattr(value, "_meta") else ""
        if isinstance(value, bool) or kind == "b" or (getattr(value, "ndim", 0) and not kind):
            raise ArgumentError(f"{name} must be an integer, not {type(value).__name__} ({_short(value)}).")
        try:
            value = operator.index(value)
        except TypeError:  # also what a tensor of other elements says
            raise ArgumentError(
                f"{name} must be an integer, not {type(value).__name__} ({_short(value)})."
            ) from None
    if not -_FAR <= value < _FAR:
        raise RangeError(f"{name} is {value}; integers have 64 bits. Give a smaller one.")
    return value


def _short(value) -> str:
    """A value in a message: what it is made of is not its matter."""
    text = repr(value) if isinstance(value, (int, float, complex, str, type(None))) else f"of {type(value)}"
    return text if len(text) <= 80 else text[:77] + "..."


def sizes(args: tuple, name: str = "a size") -> tuple[int, ...]:
    """Shape arguments written ``f(2, 3)`` or ``f((2, 3))``."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    for a in args:
        if type(a) is not int:
            return tuple([index(each, name) for each in args])
    return args


def infer(shape: Sequence[int], count: int) -> Size:
    """``shape`` with a -1 replaced so that it has ``count`` elements.

    Raises:
        ShapeError: it cannot have.
    """
    shape = tuple(shape)
    if shape.count(-1) > 1 or any(s < -1 for s in shape):
        raise ShapeError(f"shape {shape}: at most one length may be -1 and none may be less.")
    known = prod(s for s in shape if s != -1)
    if -1 in shape:
        if known == 0 or count % known:
            raise ShapeError(
                f"shape {shape} is invalid for {count} elements: {count} is not a multiple of {known}. "
                "Choose other lengths."
            )
        shape = tuple(count // known if s == -1 else s for s in shape)
    elif known != count:
        raise ShapeError(
            f"shape {shape} is invalid for {count} elements: it has {known}. Choose lengths whose product "
            f"is {count}."
        )
    return Size(shape)


@lru_cache(maxsize=1024)
def view_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], to: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides that show the same elements in shape ``to`` without a copy, or None where there are none."""
    if prod(shape) == 0:
        return contiguous_strides(to)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    k = 0
    new = list(to)
    j = 0
    while j < len(new):
        if new[j] == 1:
            result.append(1)
            j += 1
            continue
        # Gather old axes and new axes until both cover the same count.
        have, want, last = old[k][0], new[j], j + 1
        group = [old[k]]
        k += 1
        while have != want:
            if have < want:
                have *= old[k][0]
                group.append(old[k])
                k += 1
            else:
                want *= new[last]
                last += 1
        for (_, outer), (length, inner) in pairwise(group):
            if outer != inner * length:
                return None
        step = group[-1][1]
        part: list[int] = []
        for length in reversed(new[j:last]):
            part.append(step)
            step *= length
        result.extend(reversed(part))
        j = last
    return tuple(result)


def merge_axes(
    shape: Sequence[int], all_strides: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The fewest axes that walk the same elements in the same order, for several operands at once.

    Example:
        >>> merge_axes((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
        ((2, 12), [(12, 1), (0, 1)])
    """
    lengths: list[int] = []
    merged: list[list[int]] = [[] for _ in all_strides]
    for k, length in enumerate(shape):
        if length == 1:
            continue
        if lengths and all(m[-1] == s[k] * length for m, s in zip(merged, all_strides, strict=True)):
            lengths[-1] *= length
            for m, s in zip(merged, all_strides, strict=True):
                m[-1] = s[k]
        else:
            lengths.append(length)
            for m, s in zip(merged, all_strides, strict=True):
                m.append(s[k])
    return tuple(lengths), [tuple(m) for m in merged]


def slice_axis(length: int, stride: int, key: slice) -> tuple[int, int, int]:
    """(new length, new stride, added offset) of a slice along one axis; negative steps run backwards, as in
    Python."""
    start, stop, step = key.indices(length)
    count = len(range(start, stop, step))
    return count, stride * step, start * stride if count else 0
