"""Sorting rows, and their largest or smallest few. NaN counts as the largest value; sorts are stable on
every device.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...errors import ShapeError
from ...op.call import results
from ...op.declaration import Call, function, op
from ...op.kernel import NATIVE, PIECE, Launch, Params, flag, is_direct, load, per_element, register_type
from ...op.rules import refusing, same
from ...tensors import dtypes as dt
from ...tensors.shape import Size, axis, index
from ...tensors.tensor import Tensor
from ..reduce.extremum import order_holes
from ..reduce.scan import running_sums
from ..shape.movement import contiguous

# Entries that one workgroup sorts: keys of 8 bytes and places of 4 stay below 16 KiB of workgroup memory.
SORTED_AT_ONCE = 1024
# Longer rows are sorted by their digits, in blocks, and from a block on, where there are so many entries; of
# others sorted blocks are merged.
_MERGED, _BLOCK, _MANY = 4096, 2048, 1 << 20
# Lengths of rows that a workgroup sorts by their digits, where elements have 32 bits at most.
_ROW = 512, 4096
# The most that a top-k looks for by choosing; it sorts for more. And what a lane of its direct kernel keeps.
_MOST, _LIST = 256, 64
# A lane of a top-k looks at up to so many entries; a workgroup collects so many to choose from.
_PER, _CANDIDATES = 16, 1024


class ValuesAndIndices(NamedTuple):
    """What type checkers know of a result; at run time its class is the op's own."""

    values: Tensor
    indices: Tensor


@cache
def values_and_indices(name: str) -> Any:
    """The class of a function's values and indices."""
    return results(name)(type(name, (ValuesAndIndices,), {"__slots__": ()}))


def order_launches(
    call: Call,
    x: str,
    d: dt.DType,
    rows: int,
    columns: int,
    descending: bool,
    out: str,
    values: str | None = None,
    bits: int = 64,
) -> list[Launch]:
    """The dispatches that write the stable order of every row of ``x`` into ``out``: an output of int64, with
    ``values`` only, or a temporary of uint32. ``values`` gets the elements in order; it, too, is made here
    unless it is an output. Of unsigned numbers only so many ``bits`` are in use."""
    holes = order_holes(d, descending)
    for name, kind in ((out, dt.uint32), (values, NATIVE[holes["T"]])):
        if name and name not in call.op.outputs:
            call.temporary(name, (rows * columns,), kind)
    if _ROW[0] < columns <= _ROW[1] and d.itemsize < 8 and not is_direct():
        lanes = max(32, 1 << (-(-columns // 16) - 1).bit_length())
        own = {"WORKGROUP": f"{lanes}u", "FIRST": f"{_low(d)}u", "END": f"{min(bits, 32)}u"}
        return [_row_launch(call, rows, columns, {**holes, **own}, {"x": x, "order": out}, values)]
    if columns > _MERGED or (columns >= _BLOCK and rows * columns >= _MANY):
        return _by_digits(call, x, rows, columns, holes, _digits(d, bits), out, values)
    order = f"{out}_places" if values else out
    merges = max(-(-columns // SORTED_AT_ONCE) - 1, 0).bit_length()
    names = [f"{order}{k}" for k in range(merges)] + [order]
    for name in names[: None if values else -1]:
        call.temporary(name, (rows * columns,), dt.uint32)
    block = min(SORTED_AT_ONCE, max(2, 1 << (columns - 1).bit_length()))
    blocks = -(-columns // block)
    params: Params = {"groups": rows * blocks, "columns": columns, "blocks": blocks}
    file = load("index/sort/blocks").fill(
        {**holes, "BLOCK": f"{block}u", "WORKGROUP": f"{min(256, block // 2)}u"}
    )
    made = [Launch(file, rows * blocks, params, bind={"x": x, "order": names[0]})]
    file = load("index/sort/merge").fill(holes)
    for k in range(merges):
        params = {"count": rows * columns, "columns": columns, "run": SORTED_AT_ONCE << k}
        bind = {"x": x, "places": names[k], "order": names[k + 1]}
        made.append(per_element(file, rows * columns, params, bind=bind))
    if values:
        bind = {"x": x, "order": order, "values": values, "indices": out}
        made.append(_finish(call, d, rows, columns, columns, columns, bind))
    return made


def _row_launch(
    call: Call, rows: int, columns: int, holes: dict[str, str], bind: dict[str, str], values: str | None
) -> Launch:
    """One workgroup for each row."""
    params: Params = {"groups": rows, "columns": columns}
    file = load("index/sort/rows").fill({**holes, **_places(call, bind["order"])})
    if values is None:
        return Launch(file.fill({"store_values": ";"}).without("values"), rows, params, bind=bind)
    return Launch(file, rows, params, bind={**bind, "values": values})


def _low(d: dt.DType) -> int:
    """The lowest bit in which keys of a dtype differ."""
    return {dt.float16: 12, dt.bfloat16: 16}.get(d, 0)


def _digits(d: dt.DType, bits: int) -> list[int]:
    """The first bits of the digits by which elements of a dtype differ, the lowest first."""
    if d.itemsize == 8:
        return list(range(0, 64, 8))
    low = _low(d)
    # Narrow integers have their sign in all bits above their own.
    used = 32 if d.is_floating_point else min(8 * d.itemsize if d is not dt.bool_ else 1, bits)
    signed = [56] if used < 32 and d.is_signed else []
    return [*range(32 + low, 32 + used, 8), *signed]


def _by_digits(
    call: Call,
    x: str,
    rows: int,
    columns: int,
    holes: dict[str, str],
    digits: list[int],
    out: str,
    values: str | None,
) -> list[Launch]:
    """A pass for each digit: how often each occurs in each block, running sums of that, and the entries."""
    blocks = -(-columns // _BLOCK)
    groups = rows * blocks
    call.temporary("counts", (256 * groups,), dt.uint32)
    call.temporary("ends", (256 * groups,), dt.uint32)
    for k in (0, 1):
        call.temporary(f"values{k}", (rows * columns,), NATIVE[holes["T"]])
        call.temporary(f"places{k}", (rows * columns,), dt.uint32)
    count = load("index/sort/radix_count").fill({**holes, "BLOCK": f"{_BLOCK}u"})
    wide = {"NARROW": "false", "word": "value.x", "of_word": "vec2<u32>(bits, 0u)"}
    move = load("index/sort/radix_move").fill({**holes, **(wide if holes["T"] == "vec2<u32>" else {})})
    made: list[Launch] = []
    source, known = x, None
    for k, shift in enumerate(digits):
        params: Params = {"groups": groups, "columns": columns, "blocks": blocks, "shift": shift}
        fours = rows * -(-blocks // 4)
        made.append(Launch(count, fours, {**params, "groups": fours}, bind={"x": source}))
        made += running_sums(call, "counts", "ends", 256 * groups)
        own, target, places = {"HAS_PLACES": flag(known is not None)}, f"values{k % 2}", f"places{k % 2}"
        if k == len(digits) - 1:
            target, places = values or target, out
            own |= {"HAS_VALUES": flag(values is not None), **_places(call, out)}
        bind = {"x": source, "places": known or "ends", "values": target, "order": places}
        made.append(Launch(move.fill(own), groups, params, bind=bind))
        source, known = target, places
    return made


def _places(call: Call, out: str) -> dict[str, str]:
    """Holes of a kernel that writes places into an output, if it is one."""
    return {"U": "vec2<u32>", "result": "vec2<u32>(place, 0u)"} if out in call.op.outputs else {}


def _finish(
    call: Call, d: dt.DType, rows: int, columns: int, entries: int, keep: int, bind: dict[str, str]
) -> Launch:
    params: Params = {"count": rows * keep, "columns": columns, "entries": entries, "keep": keep}
    file = load("index/sort/finish").fill({"T": register_type(d), **_places(call, bind["indices"])})
    return per_element(file, rows * keep, params, bind=bind)


def _rows(shape) -> tuple[int, int]:
    return prod(shape[:-1]), shape[-1] if shape else 1


def _types(call: Call):
    d, _ = refusing(same, "c")(call)
    return (d, dt.int64), d


def _first(input: np.ndarray, descending: bool, k: int | None = None):
    """The first ``k`` elements of each row in order, or all, and where they were."""
    x = input.reshape(input.shape or (1,))
    order = numpy_order(x, descending)[..., : k if input.ndim else 1]
    shape = order.shape if input.ndim else ()
    return np.take_along_axis(x, order, -1).reshape(shape), order.reshape(shape)


def _sort_launches(call: Call) -> list[Launch]:
    m = call["input"]
    rows, columns = _rows(m.shape)
    return order_launches(call, "input", m.dtype, rows, columns, call["descending"], "indices", "values")


def numpy_order(x: np.ndarray, descending: bool) -> np.ndarray:
    """The stable order of the last axis; downwards NaN comes first."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    return x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]


def _at_indices(g, indices, input_meta):
    return g.new_zeros(input_meta.shape).scatter(-1, indices, g)


def _last_axis(order: str, input: Tensor, dim: int, *given) -> Any:
    """What an order along another axis than the last is: that along the last one of what is transposed."""
    k = axis(dim, input.dim())
    if input.dim() == 0 or k == input.dim() - 1:
        return None
    out = getattr(input.transpose(k, -1), order)(*given)
    return type(out)(*[contiguous(t.transpose(k, -1)) for t in out])


@op(
    dtype=_types,
    shape=lambda call: (call["input"].shape, call["input"].shape),
    kernel=_sort_launches,
    reference=lambda input, dim, descending, stable: _first(input, descending),
    grad={"input": _at_indices},
    outputs=("values", "indices"),
    method=True,
    aten=("sort.default", "sort.stable"),
    prepare=lambda input, dim, *given: _last_axis("sort", input, dim, -1, *given),
    node="Sort",
)
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> ValuesAndIndices:
    """Elements in order along an axis, and where they were.

    Args:
        input: any real dtype; NaN counts as the largest value.
        descending: largest first.
        stable: accepted; equal elements always keep their order.

    Returns:
        The named tuple (values, indices); indices are int64.

    Example:
        >>> import pellucid as torch
        >>> torch.sort(torch.tensor([3, 1, 2], device="cpu")).indices.tolist()
        [1, 2, 0]
    """


@function(method=True, aten=("argsort.default", "argsort.stable"))
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The places of the elements in order along an axis, int64; arguments as `sort`."""
    return sort(input, dim, descending, stable)[1]


def _topk_shapes(call: Call):
    shape, k = call["input"].shape, index(call["k"], "k")
    columns = shape[-1] if shape else 1
    if not 0 <= k <= columns:
        raise ShapeError(f"k = {k} is out of range: the axis has {columns} elements. Give 0 to {columns}.")
    out = Size((*shape[:-1], k)) if shape else shape
    return out, out


def _lanes_of_choice(entries: int, keep: int) -> tuple[int, int]:
    """Lanes of a workgroup that chooses ``keep`` of a row, and the entries of each: the whole row where one
    workgroup can, else so few that many workgroups share it, if what they keep is for one workgroup then."""
    lanes = min(_MOST, max(32, 1 << (entries - 1).bit_length()))
    most = min(_PER, 1 << (_CANDIDATES // keep).bit_length() - 1)
    if entries <= lanes * most:
        return lanes, 1 << (-(-entries // lanes) - 1).bit_length()
    per = 4
    while per < most and -(-entries // (lanes * per)) * keep > lanes * most:
        per *= 2
    return lanes, per


def _topk_launches(call: Call) -> list[Launch]:
    m = call["input"]
    rows, columns = _rows(m.shape)
    k = call["k"] if m.rank else 1
    if k == 0:
        return []
    if k > _MOST:
        order = order_launches(call, "input", m.dtype, rows, columns, call["largest"], "order")
        bind = {"x": "input", "order": "order", "values": "values", "indices": "indices"}
        return [*order, _finish(call, m.dtype, rows, columns, columns, k, bind)]
    # Every block keeps its best k; of what is kept the best are chosen again, until one block is left.
    holes = order_holes(m.dtype, call["largest"])
    made: list[Launch] = []
    entries, source, known = columns, "input", "input"
    while True:
        if k <= _LIST and is_direct():
            # An entry may go past all that are kept.
            block, per_group = min(SORTED_AT_ONCE, PIECE // (k + 1)), 16
            file = load("index/sort/best_direct").fill({**holes, "KEEP": f"{k}u", "BLOCK": f"{block}u"})
        else:
            lanes, per = _lanes_of_choice(entries, k)
            block, per_group = lanes * per, 1
            own = {"WORKGROUP": f"{lanes}u", "PER": f"{per}u", "CANDIDATES": f"{k * per}u"}
            file = load("index/sort/best").fill({**holes, **own})
        file = file.fill({"HAS_PLACES": flag(known != "input")})
        blocks = -(-entries // block)
        pitch = (blocks - 1) * k + min(k, entries - (blocks - 1) * block)
        best, places = ("values", "indices") if blocks == 1 else (f"values{len(made)}", f"places{len(made)}")
        if blocks > 1:
            call.temporary(best, (rows * pitch,), NATIVE[holes["T"]])
            call.temporary(places, (rows * pitch,), dt.int64)
        params: Params = {
            "groups": rows * blocks, "entries": entries, "blocks": blocks, "keep": k, "pitch": pitch,
        }  # fmt: skip
        bind = {"x": source, "places": known, "values": best, "indices": places}
        made.append(Launch(file, -(-rows * blocks // per_group), params, bind=bind))
        if blocks == 1:
            return made
        entries, source, known = pitch, best, places


@op(
    dtype=refusing(_types, "b"),
    shape=_topk_shapes,
    kernel=_topk_launches,
    reference=lambda input, k, dim, largest, sorted: _first(input, largest, k),
    grad={"input": _at_indices},
    outputs=("values", "indices"),
    method=True,
    prepare=lambda input, k, dim, *given: _last_axis("topk", input, dim, k, -1, *given),
    node="Topk",
)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesAndIndices:
    """The ``k`` largest (or smallest) elements along an axis, in order, and where they were.

    Args:
        input: any real dtype; NaN counts as the largest value.
        k: how many, at most the axis' length.
        largest: False for the smallest.
        sorted: accepted; the result is always in order, equal elements by place.

    Returns:
        The named tuple (values, indices); indices are int64.

    Raises:
        ShapeError: ``k`` is out of range.

    Example:
        >>> import pellucid as torch
        >>> torch.topk(torch.tensor([1.0, 5.0, 3.0], device="cpu"), 2).values.tolist()
        [5.0, 3.0]
    """
