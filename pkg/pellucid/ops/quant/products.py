"""Ops on quantized weights: products, rows, and back to float32.

The rows of a weight may lie in several buffers: ops take its `row_chunks`. It has no gradient; inputs do.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from ...device.stream import stream
from ...errors import DTypeError, ShapeError
from ...op.declaration import Call, function, op
from ...op.kernel import KernelSource, Launch, Params, flag, is_direct, load
from ...quant.format import BLOCK_FORMATS, FORMATS
from ...quant.planes import dequantize_planes, dequantize_rows, repack_blocks
from ...quant.rows import as_matrix, row_chunks
from ...tensors import dtypes as dt
from ...tensors.meta import Meta
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..index.bounds import integers, outside
from ..matmul.launch import MatrixOperand, Product, read_as
from .lanes import MOST_ROWS
from .lanes import choose as choose_lanes
from .tiles import choose


@cache
def format_source(file: str, name: str) -> KernelSource:
    """A kernel of format ``name``; the files name q4_0 as the one that stands for all."""
    return load(file).with_part("quant/q4_0", f"quant/{name}")


def _chunks(call: Call) -> list[tuple[str, Meta, int, int]]:
    """(binding, meta, first row, rows) of every chunk."""
    found, start = [], 0
    for k, m in enumerate(call["weight"]):
        rows = int(m.shape[0])
        found.append((f"weight[{k}]", m, start, rows))
        start += rows
    return found


def _weight_shape(call: Call) -> tuple[int, int]:
    metas = call["weight"]
    for m in metas:
        if not m.dtype.is_quantized or m.rank != 2:
            raise DTypeError(
                f"'weight' has dtype {m.dtype} and shape {tuple(m.shape)}; it must be a quantized matrix."
            )
        if m.dtype is not metas[0].dtype or m.shape[1] != metas[0].shape[1]:
            raise ShapeError("the chunks of a weight must have one format and one number of columns.")
    return sum(m.shape[0] for m in metas), metas[0].shape[1]


def _plane_params(m: Meta) -> Params:
    rows, columns = m.shape
    return {"rows": rows, "columns": columns, **FORMATS[m.dtype.name].layout(rows, columns).params}


def dequantized(weight) -> np.ndarray:
    """float32 values of a weight's chunks on the cpu device."""
    words = [(chunk._storage.data.view(np.uint32), chunk._meta) for chunk in weight]
    return np.concatenate([dequantize_planes(data, FORMATS[m.dtype.name], *m.shape) for data, m in words])


def as_input(call: Call):
    """The dtype rule of products: that of the input, which is floating point."""
    d = call["input"].dtype
    if not d.is_floating_point:
        raise DTypeError(
            f"'input' is {d}; a quantized weight multiplies floating-point tensors. Convert it with .float()."
        )
    return d, d


# Products


def _linear_shape(call: Call) -> Size:
    x, bias = call["input"], call["bias"]
    rows, columns = _weight_shape(call)
    if x.rank == 0 or x.shape[-1] != columns:
        raise ShapeError(
            f"input of shape {tuple(x.shape)} must end in {columns}, as the weight ({rows}, {columns}) does."
        )
    if bias is not None and tuple(bias.shape) != (rows,):
        raise ShapeError(f"bias has shape {tuple(bias.shape)}, weight makes {rows} features. Give ({rows},).")
    return Size((*x.shape[:-1], rows))


# Without workgroup memory: rows of x from which the weight is better made float once, and how many
# numbers of it are held at a time.
_MANY = 12
_FLOATS = 1 << 22


def _dequantized_launches(
    call: Call, name: str, m: Meta, start: int, features: int, batch: int, bias: str | None
) -> list[Launch]:
    """The product by way of float rows of the weight, some at a time: what many rows of x are worth."""
    rows, columns = m.shape
    held = min(max(_FLOATS // columns // 8 * 8, 8), rows)
    call.temporary("values", (held, columns))
    launches = []
    for first in range(0, rows, held):
        count = min(held, rows - first)
        launches.append(values_launch(name, m, first, count, 0, "values"))
        product = Product(
            1, 1, batch, count, columns, MatrixOperand(0, 0, columns, 1), MatrixOperand(0, 0, 1, columns)
        )
        launches.append(product.direct("input", "values", bias, start + first, features))
    return launches


def _direct(batch: int, rows: int, params: dict) -> tuple[str, int, dict[str, int]]:
    """File, workgroups and sizes of the kernels without workgroup memory."""
    if batch == 1:
        del params["batch"], params["out_columns"]
        return "matmul/quant/direct_vector", -(-rows // 64), {}
    held = min(1 << max(batch - 1, 0).bit_length(), 8)
    return "matmul/quant/direct", -(-(-(-rows // 4) * -(-batch // held)) // 16), {"BATCH": held}


def _linear_launches(call: Call) -> list[Launch]:
    x, has_bias = call["input"], call["bias"] is not None
    features, _ = _weight_shape(call)
    batch = prod(x.shape[:-1])
    launches = []
    for name, m, start, rows in _chunks(call):
        params = {**_plane_params(m), "batch": batch, "start": start, "out_columns": features}
        if is_direct() and batch >= _MANY:
            bias = "bias" if has_bias else None
            launches += _dequantized_launches(call, name, m, start, features, batch, bias)
            continue
        if is_direct():
            file, groups, sizes = _direct(batch, rows, params)
            source = format_source(file, m.dtype.name).fill({k: f"{v}u" for k, v in sizes.items()})
        elif batch <= MOST_ROWS:
            units, info = int(params["units"]), stream().open().info
            lanes = choose_lanes(batch, rows, units, m.dtype.name, info, alone=True)
            source = lanes.fill(format_source(lanes.file, m.dtype.name))
            split = lanes.split(units)
            groups = -(-rows // lanes.rows) * split.get("parts", 1)
            params |= {"eps": 0.0, **split}
        else:
            launches.append(_tiled_launch(call, name, m, start, params))
            continue
        padded = flag(params["columns"] != 32 * params["units"])
        source = source.fill({"HAS_BIAS": flag(has_bias), "PADDED": padded})
        bind = {"x": "input", "weight": name, "norm_weight": "input"}
        launches.append(Launch(source, groups, params, bind=bind))
    return launches


def _tiled_launch(call: Call, name: str, m: Meta, start: int, params: Params) -> Launch:
    """The product of many rows with a chunk of the weight."""
    rows, columns = m.shape
    batch, units, d = int(params["batch"]), int(params["units"]), call["input"].dtype
    tile = choose(batch, (rows,), units, stream().open().info)
    in_fours = columns % 4 == 0 and d is dt.float32
    holes = tile.holes(32 * units) | {"X_FOUR": flag(in_fours), "HAS_BIAS": flag(call["bias"] is not None)}
    source = format_source("matmul/quant/tiled", m.dtype.name).fill(holes)
    source = read_as(read_as(source, "x", d, in_fours), "bias", d, False)
    params |= {"tiles_n": -(-rows // tile.columns)}
    return Launch(source, tile.groups(batch, rows), params, bind={"x": "input", "weight": name})


def _linear_reference(input, weight, bias):
    out = input.astype(np.float64) @ dequantized(weight).T.astype(np.float64)
    return out if bias is None else out + bias


# A function of its own, with types: each of the two products is the derivative of the other.
def _grad_of_input(g: Tensor, weight: list[Tensor]) -> Tensor:
    return quant_product(g, weight)


@op(
    public="linear",
    dtype=as_input,
    shape=_linear_shape,
    kernel=_linear_launches,
    reference=_linear_reference,
    grad={"input": lambda g, weight: _grad_of_input(g, weight), "bias": lambda g: g},
)
def quant_linear(input: Tensor, weight: list[Tensor], bias: Tensor | None = None) -> Tensor:
    """``out[..., j] = sum_l input[..., l] * weight[j, l] + bias[j]`` for a quantized weight.

    As `nn.functional.linear`; the weight is row chunks of one format, and products are added in float32.
    """


def _product_shape(call: Call) -> Size:
    x = call["input"]
    rows, columns = _weight_shape(call)
    if x.rank == 0 or x.shape[-1] != rows:
        raise ShapeError(
            f"input of shape {tuple(x.shape)} must end in {rows}, the rows of the weight ({rows}, {columns})."
        )
    return Size((*x.shape[:-1], columns))


def _product_launches(call: Call) -> list[Launch]:
    features, columns = _weight_shape(call)
    d, batch = call["input"].dtype, prod(call["input"].shape[:-1])
    chunks, launches = _chunks(call), []
    if is_direct() and len(chunks) == 1 and features * columns <= _FLOATS:
        (name, m, _, _), values = chunks[0], MatrixOperand(0, 0, columns, 1)
        call.temporary("values", (features, columns))
        product = Product(1, 1, batch, columns, features, MatrixOperand(0, 0, features, 1), values)
        return [values_launch(name, m, 0, features, 0, "values"), product.direct("input", "values")]
    for name, m, start, rows in chunks:
        tile = choose(batch, (columns,), -(-rows // 32), stream().open().info)
        in_fours = d is dt.float32 and not (features % 4 or start % 4 or rows % 4)
        params = {**_plane_params(m), "batch": batch, "start": start, "x_columns": features}
        params["tiles_k"] = -(-columns // tile.columns)
        holes = tile.holes(rows) | {"X_FOUR": flag(in_fours), "ACCUMULATE": flag(start > 0)}
        source = format_source("matmul/quant/tiled_transposed", m.dtype.name).fill(holes)
        source, bind = read_as(source, "x", d, in_fours), {"x": "input", "weight": name}
        launches.append(Launch(source, tile.groups(batch, columns), params, bind=bind))
    return launches


@op(
    public="matmul",
    dtype=as_input,
    shape=_product_shape,
    kernel=_product_launches,
    reference=lambda input, weight: input.astype(np.float64) @ dequantized(weight).astype(np.float64),
    grad={"input": lambda g, weight: quant_linear(g, weight)},
)
def quant_product(input: Tensor, weight: list[Tensor]) -> Tensor:
    """``out[..., l] = sum_j input[..., j] * weight[j, l]`` for a quantized weight.

    What `quant_linear` does to gradients.
    """


# Rows and values


def _embedding_types(call: Call):
    integers(call, "indices")
    return dt.float32, dt.float32


def _embedding_launches(call: Call) -> list[Launch]:
    limit, _ = _weight_shape(call)
    count = call["indices"].numel
    launches = []
    for name, m, start, _ in _chunks(call):
        params = {**_plane_params(m), "count": count, "start": start, "limit": limit}
        groups, source = -(-count * int(params["units"]) * 4 // 64), format_source("quant/rows", m.dtype.name)
        launches.append(Launch(source, groups, params, bind={"weight": name}))
    return launches


def _embedding_reference(weight, indices):
    outside(indices, sum(chunk._meta.shape[0] for chunk in weight), "embedding")
    flat = indices.reshape(-1)
    out = np.empty((flat.size, weight[0]._meta.shape[1]), np.float32)
    start = 0
    for chunk in weight:
        rows, columns = chunk._meta.shape
        held = (flat >= start) & (flat < start + rows)
        words = chunk._storage.data.view(np.uint32)
        out[held] = dequantize_rows(words, FORMATS[chunk.dtype.name], rows, columns, flat[held] - start)
        start += rows
    return out.reshape(*indices.shape, out.shape[1])


@op(
    public="embedding",
    dtype=_embedding_types,
    shape=lambda call: Size((*call["indices"].shape, _weight_shape(call)[1])),
    kernel=_embedding_launches,
    reference=_embedding_reference,
    grad=None,
)
def quant_embedding(weight: list[Tensor], indices: Tensor) -> Tensor:
    """Rows of a quantized table as float32: ``out[..., :] = weight[indices[...], :]``.

    As `embedding`; bit for bit the rows of `dequantize`.
    """


def values_launch(name: str, m: Meta, first: int, count: int, start: int, out: str = "out") -> Launch:
    """Rows first to first + count - 1 of a chunk as float32, written from row `start` on."""
    params = {**_plane_params(m), "rows": count, "first": first, "start": start}
    groups = -(-count * int(params["units"]) * 4 // 64)
    source = format_source("quant/dequantize", m.dtype.name)
    return Launch(source, groups, params, bind={"weight": name, "out": out})


@op(
    public="dequantize",
    dtype=lambda call: (dt.float32, dt.float32),
    shape=lambda call: Size(_weight_shape(call)),
    kernel=lambda call: [values_launch(name, m, 0, rows, start) for name, m, start, rows in _chunks(call)],
    reference=dequantized,
    grad=None,
)
def dequantize_chunks(weight: list[Tensor]) -> Tensor:
    """The values of a quantized weight.

    As `dequantize`, of row chunks of one format.
    """


@function(exports=None, method=True, aten="dequantize.self")
def dequantize(input: Tensor) -> Tensor:
    """The values of a quantized weight.

    Args:
        input: (rows, columns) of a weight format, or of more axes.

    Returns:
        float32 of the same shape, bit for bit what the format defines.

    Raises:
        DTypeError: it is not quantized.
    """
    chunks = [as_matrix(input)] if input.dim() > 2 else row_chunks(input)
    return dequantize_chunks(chunks).reshape(input.shape)


# From a file's blocks


def _repack_launch(call: Call) -> Launch:
    fmt = BLOCK_FORMATS[call["format"]]
    rows, columns = call["rows"], call["columns"]
    layout = fmt.layout(rows, columns)
    units = call["count"] * layout.units
    params = {**layout.params, "units": units, "columns": columns, "first": call["start"] * layout.units}
    source = load("quant/repack").with_part("quant/repack_ranges", f"quant/{fmt.repack}")
    return Launch(source.fill(fmt.holes), -(-units // 64), params, bind={"out": "planes"})


def _repack_reference(planes, raw, format, rows, columns, start, count):
    fmt = BLOCK_FORMATS[format]
    part = repack_blocks(raw.view(np.uint8)[: fmt.raw_bytes(count, columns)], fmt, count, columns)
    whole, small = fmt.layout(rows, columns), fmt.layout(count, columns)
    for at, begin, plane in zip(whole.starts, small.starts, fmt.planes, strict=True):
        if plane.shared:
            continue
        row = plane.row_bytes(whole.units)
        size, first = count * row + 3 & ~3, 4 * at + start * row  # the kernel fills the last word
        planes.view(np.uint8)[first : first + size] = part.view(np.uint8)[4 * begin : 4 * begin + size]


@op(
    public="repack",
    kernel=_repack_launch,
    reference=_repack_reference,
    grad=None,
    outputs=(),
    mutates="planes",
)
def repack_rows(
    planes: Tensor, raw: Tensor, format: str, rows: int, columns: int, start: int, count: int
) -> Tensor:
    """Write rows ``start`` to ``start + count - 1`` of a weight's planes from the blocks of a GGUF file.

    The words ``raw`` begin with these blocks. Both numbers are multiples of 16, unless the rows end the
    weight, which is (rows, columns).
    """
