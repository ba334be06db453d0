"""Memory formats: in which order the axes of a tensor lie in memory."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError


class memory_format:
    """An order of axes in memory: `contiguous_format`, `preserve_format`, `channels_last` or
    `channels_last_3d`.

    Source: https://pytorch.org/docs/stable/tensor_attributes.html#torch.memory_format
    """

    package = "pellucid"  # see `DType.package`

    def __init__(self, name: str, rank: int | None = None):
        self.name = name
        # The number of axes that a tensor has to have.
        self.rank = rank

    def __repr__(self) -> str:
        return f"{self.package}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout:
    """How elements are stored: `strided`, that of all tensors here. The names of PyTorch's others, such as
    `sparse_coo`, are there to be compared with.

    Source: https://pytorch.org/docs/stable/tensor_attributes.html#torch.layout
    """

    package = "pellucid"

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"{self.package}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last", 4)
channels_last_3d = memory_format("channels_last_3d", 5)
strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")


def packed(format: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor without gaps in a format.

    Raises:
        ArgumentError: it is no format that has strides of its own.
        ShapeError: the format is one of tensors with another number of axes.
    """
    if not isinstance(format, memory_format) or format is preserve_format:
        raise ArgumentError(
            f"memory_format: must be contiguous_format, channels_last or channels_last_3d, not {format!r}."
        )
    if format.rank not in (None, len(shape)):
        raise ShapeError(
            f"memory_format: {format.name} takes {format.rank} axes, not shape {tuple(shape)}. Use "
            "contiguous_format."
        )
    order = range(len(shape)) if format.rank is None else (0, *range(2, len(shape)), 1)
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def is_packed(format: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether strides are those of a format; axes of length 1 may have any."""
    if isinstance(format, memory_format) and format.rank not in (None, len(shape)):
        return False
    wanted = packed(format, shape)
    return 0 in shape or all(n == 1 or a == b for n, a, b in zip(shape, strides, wanted, strict=True))
