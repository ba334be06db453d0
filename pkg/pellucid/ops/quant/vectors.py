"""Products of the same rows with several quantized weights in one launch; of one row together with the norm
before them."""

from __future__ import annotations

from collections.abc import Sequence

from ...device.stream import stream
from ...op.kernel import Launch, flag
from ...op.kernel.variants import uses_subgroups
from ...op.launches import RegisteredLaunch
from ...tensors.dtypes import float32
from ..attention.joint import Joint, join
from ..matmul.launch import read_as
from .lanes import choose as choose_lanes
from .products import format_source
from .tiles import choose


def vectors(
    products: Sequence[RegisteredLaunch], norm: RegisteredLaunch | None = None, paired: bool = False
) -> Joint | None:
    """One launch for products of the same rows, or None where there is no kernel for them.

    Args:
        products: up to three launches of kernels whose header names a ``joint`` one. Their ``x`` is the same
            tensor, the output of ``norm`` if that is given.
        norm: an RMS norm of one row, whose output nobody else needs.
        paired: two products of as many rows make their results together: ``store_pair(i, a, b)`` stores both,
            where else ``store_out_<k>(i, value)`` store one each.

    Returns:
        The launch; its parts are the products, then the norm.
    """
    first = products[0]
    if not first.source.header.joint or not all(_fits(p, first) for p in products):
        return None
    if norm is not None and not _is_norm_of(norm, first):
        return None
    if len(products) == 1:
        return None if norm is None else _alone(first, norm)
    if len(products) > (2 if paired else 3) or any(_has_bias(p) for p in products):
        return None
    rows = [int(p.values["rows"]) for p in products]
    if not all(_is_whole(p) for p in products) or (paired and rows[0] != rows[1]):
        return None
    launch = (_tiled if _is_tiled(first) else _launch)(products, rows, paired)
    bind = {"x": "0.x", "params.x_offset": "0.x_offset"}
    for k in range(len(products)):
        bind |= {f"weight_{k}": f"{k}.weight", f"out_{k}": f"{k}.out"}
    if len(products) == 2 and not paired:
        # The third output, which a kernel of two weights must not bind, is its last buffer.
        launch.file = launch.source.fill({"store_out_2": "return;"}).without("out_2")
        bind["weight_2"] = "1.weight"
    launch.bind = bind
    alone = _is_direct(first) or _is_tiled(first)
    return join(launch, products) if alone else _with_norm(launch, products, norm)


def _launch(products: Sequence[RegisteredLaunch], rows: list[int], paired: bool) -> Launch:
    """The kernel of several products, its sizes and workgroups."""
    first = products[0]
    units = int(first.values["units"])
    fixed = ["columns", "units"]
    source = format_source(first.source.header.joint[paired], _format(first))
    if _is_direct(first):
        per = 64
    else:
        fixed.append("batch")
        batch, info = int(first.values["batch"]), stream().open().info
        lanes = choose_lanes(batch, sum(rows), units, _format(first), info)
        source, per = lanes.fill(source), lanes.rows
    params = {name: first.values[name] for name in fixed} | _weights(products, paired)
    grid = -(-rows[0] // (per // 2)) if paired else sum(-(-n // per) for n in rows)
    padded = flag(first.values["columns"] != 32 * units)
    return Launch(source.fill({"PADDED": padded}), grid, params)


def _tiled(products: Sequence[RegisteredLaunch], rows: list[int], paired: bool) -> Launch:
    """The kernel of several products of many rows."""
    first = products[0]
    batch, columns, units = (int(first.values[name]) for name in ("batch", "columns", "units"))
    # A pair is one product in whose tile the rows of both weights alternate.
    tile = choose(batch, (sum(rows),) if paired else tuple(rows), units, stream().open().info)
    params = {"batch": batch, "columns": columns, "units": units} | _weights(products, paired)
    grid = tile.groups(batch, *rows)
    if paired:
        params["tiles_n"] = -(-2 * rows[0] // tile.columns)
        grid = -(-batch // tile.rows) * params["tiles_n"]
    in_fours = columns % 4 == 0
    holes = tile.holes(32 * units) | {"X_FOUR": flag(in_fours)}
    source = format_source(first.source.header.joint[paired], _format(first)).fill(holes)
    return Launch(read_as(source, "x", float32, in_fours), grid, params)


def _is_tiled(product: RegisteredLaunch) -> bool:
    """Whether it has many rows of x, which are normalized by a launch of its own."""
    return product.source.name == "matmul/quant/tiled"


def _is_direct(product: RegisteredLaunch) -> bool:
    """Whether it runs without workgroup memory: one row of x, which is normalized by a launch of its own."""
    return product.source.name == "matmul/quant/direct_vector"


def _fits(product: RegisteredLaunch, first: RegisteredLaunch) -> bool:
    """Whether a product can share a kernel with the first one."""
    same = ("columns", "units") if _is_direct(first) else ("batch", "columns", "units")
    return (
        product.source.header.joint == first.source.header.joint
        and _format(product) == _format(first)
        and all(product.values[name] == first.values[name] for name in same)
        and _dtype(product, "x") is float32
    )


def _is_whole(product: RegisteredLaunch) -> bool:
    """Whether it is not some rows of a weight in several buffers; of one row of x the first may be."""
    values = product.values
    return not values["start"] and (_is_direct(product) or values["out_columns"] == values["rows"])


def _is_norm_of(norm: RegisteredLaunch, product: RegisteredLaunch) -> bool:
    return (
        norm.source.name in product.source.header.norms
        and norm.values["rows"] == product.values["batch"] == 1
        and norm.values["columns"] == product.values["columns"]
        and _dtype(norm, "x") is float32
        and _dtype(norm, "weight") in (float32, None)
    )


def _dtype(node: RegisteredLaunch, binding: str):
    m = node.metas[node.binding(binding)]
    return None if m is None else m.dtype


def _format(product: RegisteredLaunch) -> str:
    m = product.metas[product.binding("weight")]
    assert m is not None
    return m.dtype.name


def _has_bias(product: RegisteredLaunch) -> bool:
    return _dtype(product, "bias") is not None


def _weights(products: Sequence[RegisteredLaunch], paired: bool) -> dict:
    """The parameters that say where the planes of each weight lie; both of a pair lie alike."""
    names = ("rows", "plane_1", "plane_2", "plane_3")
    each = [tuple(p.values[name] for name in names) for p in products]
    if paired:
        return dict(zip(names, each[0], strict=True))
    return {f"planes_{k}": each[k] if k < len(each) else (0, 0, 0, 0) for k in range(3)}


def _alone(product: RegisteredLaunch, norm: RegisteredLaunch) -> Joint | None:
    """One product with the norm before it."""
    source, grid = product.source, product.grid
    if source.name == "matmul/quant/split":
        if _dtype(product, "bias") not in (float32, None):
            return None
        rows, units = int(product.values["rows"]), int(product.values["units"])
        lanes = choose_lanes(1, rows, units, _format(product), stream().open().info)
        flags = {"HAS_BIAS": _has_bias(product), "PADDED": product.values["columns"] != 32 * units}
        source = format_source("matmul/quant/vector", _format(product))
        source = lanes.fill(source).fill({name: flag(on) for name, on in flags.items()})
        grid = -(-rows // lanes.rows)
    dynamic = ("x_offset", "norm_weight_offset", "bias_offset", "eps")
    params = {name: product.values[name] for name in source.fields if name not in dynamic}
    bind = {b.name: f"0.{b.name}" for b in source.bindings}
    bind["params.bias_offset"] = "0.bias_offset"
    return _with_norm(Launch(source, grid, params, bind=bind), [product], norm)


def _with_norm(launch: Launch, products: Sequence[RegisteredLaunch], norm: RegisteredLaunch | None) -> Joint:
    """Let the launch normalize its row, or have it read as it is."""
    if norm is None:
        launch.bind |= {"norm_weight": "0.x", "params.norm_weight_offset": "0.x_offset"}
        launch.params["eps"] = 0.0
        return join(launch, products)
    part = len(products)
    add = "subgroup_sum" if uses_subgroups() else "workgroup_sum"
    holes = {"NORM": "true", "all_squares": f"{add}(thread, squares)"}
    if _dtype(norm, "weight") is None:
        holes["load_norm_weight"] = "1.0"
    launch.file = launch.source.fill(holes)
    launch.bind |= {
        "x": f"{part}.x",
        "norm_weight": f"{part}.weight",
        "params.x_offset": f"{part}.x_offset",
        "params.norm_weight_offset": f"{part}.weight_offset",
        "params.eps": f"{part}.eps",
    }
    return join(launch, [*products, norm])
