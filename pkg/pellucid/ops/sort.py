"""Sorting rows, and their largest or smallest few. NaN counts as the largest value; sorts are stable on
every device.
"""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes as dt
from ..call import Call
from ..dtypes import DType
from ..errors import ShapeError
from ..kernel import Launch, load, register_type
from ..op import op
from ..shape import Size, axis, index
from ..variants import is_direct
from .extremum import order_holes

if TYPE_CHECKING:
    from ..tensor import Tensor

# As many are found by reading spans of so many entries once for each: far less work than sorting them.
_FEW, _SPAN = 16, 8192
# Entries that one workgroup sorts: keys of 8 bytes and places of 4 stay below 16 KiB of workgroup memory.
_BLOCK = 1024
# Entries that one invocation of a direct kernel keeps.
_LIST = 64


def _block_launch(
    x: str,
    holes: dict[str, str],
    rows: int,
    columns: int,
    entries: int,
    keep: int,
    pitch: int,
    places: str | None,
    out: str,
) -> Launch:
    block = min(_BLOCK, max(2, 1 << (entries - 1).bit_length()))
    blocks = -(-entries // block)
    flags = {"BLOCK": f"{block}u", "HAS_PLACES": str(places is not None).lower()}
    params: dict[str, int | float] = {
        "groups": rows * blocks, "columns": columns, "entries": entries, "blocks": blocks,
        "keep": min(keep, block), "pitch": pitch,
    }  # fmt: skip
    bind = {"x": x, "places": places or x, "order": out}
    if 0 < keep <= _LIST and is_direct():
        file = load("sort/best_direct").fill({**holes, **flags, "KEEP": f"{params['keep']}u"})
        return Launch(file, -(-rows * blocks // 16), params, bind=bind)
    flags["WORKGROUP"] = f"{min(256, block // 2)}u"
    return Launch(load("sort/blocks").fill({**holes, **flags}), rows * blocks, params, bind=bind)


def _select_launch(
    x: str,
    holes: dict[str, str],
    rows: int,
    columns: int,
    entries: int,
    keep: int,
    pitch: int,
    places: str | None,
    out: str,
) -> Launch:
    blocks = -(-entries // _SPAN)
    flags = {"BLOCK": f"{_SPAN}u", "HAS_PLACES": str(places is not None).lower()}
    params: dict[str, int | float] = {
        "groups": rows * blocks, "columns": columns, "entries": entries, "blocks": blocks,
        "keep": keep, "pitch": pitch,
    }  # fmt: skip
    file = load("sort/select").fill({**holes, **flags})
    return Launch(file, rows * blocks, params, bind={"x": x, "places": places or x, "order": out})


def order_launches(
    call: Call, x: str, d: DType, rows: int, columns: int, descending: bool, out: str
) -> list[Launch]:
    """The dispatches that write the stable order of every row into the temporary ``out``: (rows, columns)
    of uint32.
    """
    holes = order_holes(d, descending)
    merges = max(-(-columns // _BLOCK) - 1, 0).bit_length()
    names = [f"{out}{k}" for k in range(merges)] + [out]
    for name in names:
        call.temporary(name, (rows * columns,), dt.uint32)
    made = [_block_launch(x, holes, rows, columns, columns, min(_BLOCK, columns), columns, None, names[0])]
    for k in range(merges):
        params: dict[str, int | float] = {"count": rows * columns, "columns": columns, "run": _BLOCK << k}
        file = load("sort/merge").fill(holes)
        made.append(
            Launch(
                file,
                -(-rows * columns // 64),
                params,
                bind={"x": x, "places": names[k], "order": names[k + 1]},
            )
        )
    return made


def _finish(d: DType, rows: int, columns: int, entries: int, keep: int, order: str) -> Launch:
    params: dict[str, int | float] = {
        "count": rows * keep,
        "columns": columns,
        "entries": entries,
        "keep": keep,
    }
    file = load("sort/finish").fill({"T": register_type(d)})
    return Launch(file, -(-rows * keep // 64), params, bind={"x": "input", "order": order})


def _rows(shape) -> tuple[int, int]:
    return prod(shape[:-1]), shape[-1] if shape else 1


def _types(call: Call):
    d = call["input"].dtype
    return (d, dt.int64), d


def _sort_launches(call: Call) -> list[Launch]:
    m = call["input"]
    rows, columns = _rows(m.shape)
    order = order_launches(call, "input", m.dtype, rows, columns, call["descending"], "order")
    return [*order, _finish(m.dtype, rows, columns, columns, columns, "order")]


def numpy_order(x: np.ndarray, descending: bool) -> np.ndarray:
    """The stable order of the last axis; downwards NaN comes first."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    return x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]


def _sort_reference(input, descending):
    x = input.reshape(input.shape or (1,))
    order = numpy_order(x, descending)
    return np.take_along_axis(x, order, -1).reshape(input.shape), order.reshape(input.shape)


def _at_indices(g, indices, input_meta):
    return g.new_zeros(input_meta.shape).scatter(-1, indices, g)


@op(
    public="sort",
    dtype=_types,
    shape=lambda call: (call["input"].shape, call["input"].shape),
    kernel=_sort_launches,
    reference=_sort_reference,
    grad={"input": _at_indices},
    outputs=("values", "indices"),
)
def sort_last(input: Tensor, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Sort along the last axis; see `sort`."""


def _along(input: Tensor, dim: int, function) -> tuple[Tensor, Tensor]:
    """A function of the last axis along another one."""
    k = axis(dim, input.dim())
    if input.dim() == 0 or k == input.dim() - 1:
        return function(input)
    out = function(input.transpose(k, -1))
    return type(out)(*[t.transpose(k, -1) for t in out])


def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True
) -> tuple[Tensor, Tensor]:
    """Elements in order along an axis, and where they were.

    Args:
        input: any real dtype; NaN counts as the largest value.
        dim: the axis.
        descending: largest first.
        stable: accepted; equal elements always keep their order.

    Returns:
        The named tuple (values, indices); indices are int64.

    Source: https://pytorch.org/docs/stable/generated/torch.sort.html

    Example:
        >>> import pellucid as torch
        >>> torch.sort(torch.tensor([3, 1, 2], device="cpu")).indices.tolist()
        [1, 2, 0]
    """
    return _along(input, dim, lambda x: sort_last(x, bool(descending)))


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The places of the elements in order along an axis, int64; arguments as `sort`.

    Source: https://pytorch.org/docs/stable/generated/torch.argsort.html
    """
    return sort(input, dim, descending, stable)[1]


def _topk_shapes(call: Call):
    shape, k = call["input"].shape, index(call["k"], "k")
    columns = shape[-1] if shape else 1
    if not 0 <= k <= columns:
        raise ShapeError(f"k = {k} is out of range: the axis has {columns} elements. Give 0 to {columns}.")
    out = Size((*shape[:-1], k)) if shape else shape
    return out, out


def _topk_launches(call: Call) -> list[Launch]:
    m = call["input"]
    rows, columns = _rows(m.shape)
    k = call["k"] if m.rank else 1
    if 2 * k > _BLOCK and columns > _BLOCK:
        order = order_launches(call, "input", m.dtype, rows, columns, call["largest"], "order")
        return [*order, _finish(m.dtype, rows, columns, columns, k, "order")]
    # Every block keeps its best k; what is kept is sorted in blocks again, until one block is left.
    holes = order_holes(m.dtype, call["largest"])
    made: list[Launch] = []
    entries, places = columns, None
    few = 0 < k <= _FEW and not is_direct()
    launch = _select_launch if few else _block_launch
    while True:
        blocks = -(-entries // (_SPAN if few else _BLOCK))
        out = f"order{len(made)}"
        call.temporary(out, (rows * blocks * k,), dt.uint32)
        made.append(launch("input", holes, rows, columns, entries, k, blocks * k, places, out))
        entries, places = blocks * k, out
        if blocks == 1:
            return [*made, _finish(m.dtype, rows, columns, k, k, out)]


def _topk_reference(input, k, largest):
    x = input.reshape(input.shape or (1,))
    order = numpy_order(x, largest)[..., : k if input.ndim else 1]
    shape = order.shape if input.ndim else ()
    return np.take_along_axis(x, order, -1).reshape(shape), order.reshape(shape)


@op(
    public="topk",
    dtype=_types,
    shape=_topk_shapes,
    kernel=_topk_launches,
    reference=_topk_reference,
    grad={"input": _at_indices},
    outputs=("values", "indices"),
)
def topk_last(input: Tensor, k: int, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The best few along the last axis; see `topk`."""


def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The ``k`` largest (or smallest) elements along an axis, in order, and where they were.

    Args:
        input: any real dtype; NaN counts as the largest value.
        k: how many, at most the axis' length.
        dim: the axis.
        largest: False for the smallest.
        sorted: accepted; the result is always in order, equal elements by place.

    Returns:
        The named tuple (values, indices); indices are int64.

    Raises:
        ShapeError: ``k`` is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.topk.html

    Example:
        >>> import pellucid as torch
        >>> torch.topk(torch.tensor([1.0, 5.0, 3.0], device="cpu"), 2).values.tolist()
        [5.0, 3.0]
    """
    return _along(input, dim, lambda x: topk_last(x, k, bool(largest)))


# What is also a method of Tensor.
METHODS = "sort argsort topk"
