"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod as product
from types import MappingProxyType

from ...autograd.formulas import without
from ...autograd.grad_mode import is_grad_enabled
from ...op.call import Call
from ...op.kernel import NATIVE, Launch, is_direct, load, per_element, register_type, rows_of
from ...tensors import dtypes as dt
from ...tensors.shape import axis
from ..elementwise.comparison import where
from .families import along_as, scan
from .passes import Pass, column_parts
from .reductions import (
    _ONE,
    _PRODUCT,
    _SUM,
    _ZERO,
    Through,
    accumulated,
    float_products,
    fused,
    product_parts,
    wide,
)

# A row up to this length is scanned by one workgroup (on a software adapter by one lane), also a longer one,
# where there are many. Otherwise it is scanned in parts, which start from the totals of those before.
_LONG, _MANY = 4096, 512
# The elements of a part where a lane scans it, and of a product's row the parts at most.
_CHUNK, _PRODUCT_PARTS = 1024, 1024
# A workgroup scans its part in tiles; so many parts fill a GPU, and a row has so many at most, for each adds
# up the totals before it.
_TILE, _FULL, _PARTS = 2048, 1024, 1024


def scan_launches(
    call: Call,
    one: dict[str, str],
    identity: dict[str, str],
    through: Mapping[str, Through] = MappingProxyType({}),
) -> list[Launch]:
    """Launches that combine by an expression over a and b along the last axis, and what elements are combined
    ``through``, by register type."""
    m = call["input"]
    kind = register_type(call.compute)
    via = through.get(kind, Through(kind, "value"))
    holes = {"X": kind, "T": via.kind, "apply": one[kind], "identity": identity[kind]}
    holes |= {"entry": via.entry, "result": via.result}
    if (k := axis(call["dim"], m.rank)) != m.rank - 1:
        return _columns(call, m.shape, k, holes)
    rows, columns = m.numel // max(m.shape[-1], 1), m.shape[-1]
    return _rows(call, "input", "out", rows, columns, holes, 0)


def _columns(call: Call, shape, k: int, holes: dict[str, str]) -> list[Launch]:
    """Launches that scan an axis whose neighbours lie apart, on a GPU."""
    outer, columns, inner = product(shape[:k]), shape[k], product(shape[k + 1 :])
    parts = column_parts(shape, k)
    step = Pass(outer, columns, inner, parts, "strips")
    call.temporary("totals", (step.outputs,), NATIVE[holes["T"]])
    before = []
    if parts > 1:
        own = {**holes, "U": holes["T"], "average": "value", "result": "value"}
        file = load("reduce/strips").fill(own)
        sizes = {**step.params, "divisor": 1}
        before = [Launch(file, step.grid, sizes, bind={"x": "input", "out": "totals"})]
    sizes = {"outputs": step.outputs, "columns": columns, "inner": inner, "parts": parts, "chunk": step.chunk}
    file = load("reduce/scan_columns").fill(holes)
    return [*before, per_element(file, step.outputs, sizes, bind={"x": "input"})]


def running_sums(call: Call, source: str, out: str, count: int) -> list[Launch]:
    """Launches that write the running sums of uint32 ``source`` into ``out``."""
    holes = {"X": "u32", "T": "u32", "apply": "a + b", "identity": "0u"}
    return _rows(call, source, out, 1, count, holes, 0, 4 * _LONG)


def _totals(
    source: str, out: str, rows: int, columns: int, parts: int, chunk: int, holes: dict[str, str]
) -> Launch:
    """The launch that combines what each part of a row has."""
    lanes = rows_of(chunk, rows * parts)
    file = lanes.fill("reduce/rows", {**holes, "U": holes["T"], "average": "value", "result": "value"})
    sizes = {"outputs": rows * parts, "reduced": columns, "inner": 1, "parts": parts, "chunk": chunk}
    return Launch(file, lanes.grid(rows * parts), {**sizes, "divisor": 1}, bind={"x": source, "out": out})


def _rows(
    call: Call,
    source: str,
    out: str,
    rows: int,
    columns: int,
    holes: dict[str, str],
    depth: int,
    longest: int = _LONG,
) -> list[Launch]:
    """Launches that scan rows of a source. So many scans (``depth``) wait for this one; ``longest`` is a row
    that a workgroup scans whole."""
    direct = is_direct()
    chunk = columns
    if columns > longest and direct:
        chunk = _CHUNK
    elif columns > longest and rows < _MANY:
        filling = min(-(-rows * columns // _FULL), 8 * _TILE)
        chunk = -(-max(filling, -(-columns // _PARTS)) // _TILE) * _TILE
    parts = -(-columns // chunk)
    before: list[Launch] = []
    totals = carry = source
    if parts > 1:
        totals = f"totals{depth}"
        call.temporary(totals, (rows * parts,), NATIVE[holes["T"]])
        before = [_totals(source, totals, rows, columns, parts, chunk, holes)]
    if direct and parts > 1:
        carry = f"carry{depth}"
        call.temporary(carry, (rows * parts,), NATIVE[holes["T"]])
        own = {"X": holes["T"], "entry": "value", "result": "value"}
        before += _rows(call, totals, carry, rows, parts, {**holes, **own}, depth + 1)
    params = {"rows": rows, "columns": columns, "parts": parts, "chunk": chunk}
    bind = {"x": source, "out": out, "carry" if direct else "totals": carry if direct else totals}
    if direct:
        file, grid = load("reduce/scan_direct").fill(holes), -(-rows * parts // 16)
    else:
        # 16 elements a lane at a time; short rows share a workgroup
        lanes = min(128, max(4, 1 << (-(-chunk // 16) - 1).bit_length()))
        together = max(64, lanes) // lanes
        sizes = {"LANES": f"{lanes}u", "WORKGROUP": f"{lanes * together}u"}
        file, grid = load("reduce/scan").fill({**holes, **sizes}), -(-rows * parts // together)
    return [*before, Launch(file, grid, params, bind=bind)]


def _products() -> dict[str, str]:
    """What reduce/rows makes of the parts of a row of floats."""
    via = float_products()
    return {
        "X": "f32", "T": via.kind, "apply": "product_times(a, b)", "identity": "PRODUCT_ONE",
        "entry": via.entry, **via.holes["split_rows"],
    }  # fmt: skip


def _shared_product_scan(call: Call, rows: int, columns: int) -> list[Launch]:
    """Running products of floats on a GPU."""
    lanes = min(128, max(32, 1 << (-(-columns // 16) - 1).bit_length()))
    tile, chunk = 16 * lanes, columns
    if columns > _LONG and rows < _MANY:
        chunk = -(-max(-(-rows * columns // _FULL), -(-columns // _PARTS)) // tile) * tile
    parts = -(-columns // chunk)
    call.temporary("totals", (rows * parts,), NATIVE["vec2<u32>"])
    before = [_totals("input", "totals", rows, columns, parts, chunk, _products())] if parts > 1 else []
    params = {"rows": rows, "columns": columns, "parts": parts, "chunk": chunk}
    file = load("reduce/product/float_scan").fill({"WORKGROUP": f"{lanes}u", "FUSED": fused()})
    return [*before, Launch(file, rows * parts, params, bind={"x": "input"})]


def _product_scan(call: Call) -> list[Launch]:
    m = call["input"]
    if register_type(call.compute) != "f32":
        return scan_launches(call, _PRODUCT, _ONE)
    rows, columns = m.numel // max(m.shape[-1], 1), m.shape[-1]
    if not is_direct():
        return _shared_product_scan(call, rows, columns)
    chunk = max(_CHUNK, -(-columns // _PRODUCT_PARTS))
    parts = -(-columns // chunk)
    params = {"rows": rows, "columns": columns, "parts": parts, "chunk": chunk}
    call.temporary("carry", (rows * parts,), dt.int64)
    groups = -(-rows * parts // 16)
    last = Launch("reduce/product/scan", groups, params, bind={"x": "input"})
    if parts == 1:
        return [last]
    call.temporary("totals", (rows * parts,), dt.int64)
    carried = {"rows": rows, "parts": parts}
    return [
        product_parts("input", "totals", (rows, columns, 1), chunk),
        Launch("reduce/product/carry", -(-rows // 16), carried, bind={"x": "totals", "out": "carry"}),
        last,
    ]


def _reversed_sum(g):
    """The derivative of a running sum: the running sum from the other end."""
    return cumsum(g.flip(-1), -1).flip(-1)


cumsum = scan(
    "cumsum", lambda call: scan_launches(call, _SUM, _ZERO),
    lambda input, dim, dtype: wide(input, dtype).cumsum(-1), _reversed_sum,
    """Running sum along an axis: ``out[..., i] = input[..., 0] + ... + input[..., i]``.

    Floats are added in float32 on webgpu, where PyTorch takes float64. A million times 0.1 is off by 3e-7 of
    the sum on GPUs and by 1.5e-6 on adapters that run on the CPU.

    Args:
        input: any real dtype; integers and bools are added in int64.
        dtype: type to convert to before adding.

    Example:
        >>> import pellucid as torch
        >>> torch.tensor([1, 2, 3], device="cpu").cumsum(0).tolist()
        [1, 3, 6]
    """,
    dtype=accumulated, form=along_as,
)  # fmt: skip


def _product_grad(g, input, out):
    if is_grad_enabled():
        return _recorded_product_grad(g, input, out)
    # d out_j / d x_i = out_j / x_i for j >= i; behind a zero there is none, and its own is that of the
    # products that leave it out, up to the next zero.
    is_zero = input == 0
    others = input.masked_fill(is_zero, 1)
    before = cumsum(is_zero.to(dt.float32), -1)
    plain = _reversed_sum(without(g * out, before != 0)) / others
    alone = _reversed_sum(without(g * cumprod(others, -1), before != 1))
    return where(before == 0, plain, where(is_zero & (before == 1), alone, 0.0))


def _recorded_product_grad(g, input, out):
    """The same, as what has a derivative also at zeros: line k of a square holds the running products of all
    elements but the k-th, and those from the k-th on count."""
    n = input._meta.shape[-1]
    is_zero = input == 0
    plain = _reversed_sum(g * out) / input.masked_fill(is_zero, 1)
    own = input.new_ones((n, n)).triu().tril() != 0
    products = cumprod(input.unsqueeze(-2).masked_fill(own, 1.0), -1).triu()
    return where(is_zero.any(), (g.unsqueeze(-2) * products).sum(-1), plain)


cumprod = scan(
    "cumprod", _product_scan, lambda input, dim, dtype: wide(input, dtype).cumprod(-1), _product_grad,
    """Running product along an axis: ``out[..., i] = input[..., 0] * ... * input[..., i]``.

    Args:
        input: any real dtype; integers and bools are multiplied in int64.
        dtype: type to convert to before multiplying.
    """,
    dtype=accumulated, form=along_as, of_columns=False,
)  # fmt: skip
