"""Reductions along axes that combine values: sums, products, means, and what is made of them."""

# A declaration has no body.
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping
from math import prod as product
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ...autograd.formulas import without
from ...autograd.grad_mode import is_grad_enabled
from ...device.stream import stream
from ...errors import DTypeError
from ...op.declaration import Call, function, op
from ...op.kernel import NATIVE, Launch, flag, is_direct, load, register_type, rows_of
from ...op.rules import float_only
from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from ...tensors.shape import Size, axes
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..shape.joining import cat
from .families import over_axes_as, over_axis_as, reduction
from .passes import runs, stages


def reduced_shape(call: Call) -> Size:
    """The shape without the axes ``dim``, or with length 1 there."""
    return _without(call["input"].shape, axes(call["dim"], call["input"].rank), call["keepdim"])


def _without(shape, dims: tuple[int, ...], keepdim: bool) -> Size:
    if keepdim:
        return Size(1 if k in dims else n for k, n in enumerate(shape))
    return Size(n for k, n in enumerate(shape) if k not in dims)


def spread(g: Tensor, m, dim, keepdim: bool) -> Tensor:
    """A reduced tensor as a view of the shape before."""
    return restore(g, m, dim, keepdim).expand(m.shape)


def restore(g: Tensor, m, dim, keepdim: bool) -> Tensor:
    """A reduced tensor with the axes that went back in place, of length 1."""
    return g if keepdim else g.reshape(tuple(_without(m.shape, axes(dim, m.rank), True)))


class Through(NamedTuple):
    """What elements are combined as, where that is no value of their own type.

    Args:
        kind: its register type.
        entry: the expression that makes it of an element's ``value``.
        result: the expression that makes the result of its ``value``.
        out: register type of the result; that of the elements if not given.
        holes: what else a kernel of elements has, by form.
    """

    kind: str
    entry: str
    result: str = "value"
    out: str | None = None
    holes: Mapping[str, dict[str, str]] = MappingProxyType({})


def fold(
    one: Mapping[str, str],
    identity: Mapping[str, str],
    mean: bool = False,
    through: Mapping[str, Through] = MappingProxyType({}),
):
    """Launches that combine by an expression over a and b, which `identity` does not change, or as their
    mean; all, and what elements are combined ``through``, by register type."""

    def launches(call: Call) -> list[Launch]:
        return fold_into(call, "out", one, identity, mean, through)

    return launches


def fold_into(
    call: Call,
    out: str,
    one: Mapping[str, str],
    identity: Mapping[str, str],
    mean: bool = False,
    through: Mapping[str, Through] = MappingProxyType({}),
) -> list[Launch]:
    """As `fold`, into an output or a temporary."""
    m = call["input"]
    own = register_type(call.compute)
    via = through.get(own, Through(own, "value"))
    kind = via.kind
    dims = axes(call["dim"], m.rank)
    steps = stages(m.shape, dims, strips=True)
    count = product(m.shape[d] for d in dims)
    made, source = [], "input"
    for k, step in enumerate(steps):
        last = k == len(steps) - 1
        target = out if last else f"partial{k}"
        if not last:
            call.temporary(target, (step.outputs,), NATIVE[kind])
        holes = {"T": kind, "identity": identity[own], "apply": one[own], "MEAN": flag(mean and last)}
        holes |= {"X": own, "entry": via.entry} if k == 0 else {"X": kind}
        holes |= via.holes.get(step.form, {}) if k == 0 else {}
        holes |= {"U": via.out or own, "result": via.result} if last else {"U": kind}
        if kind == "vec2<f32>":
            holes["average"] = "value / f32(count)"
        if step.is_split:
            holes |= _WIDE.get(kind, {})
        grid = step.grid
        if step.form == "rows":
            lanes = rows_of(step.chunk, step.outputs)
            file, grid = lanes.fill("reduce/rows", holes), lanes.grid(step.outputs)
        else:
            file = load(f"reduce/{step.form}").fill(holes)
        made.append(Launch(file, grid, {**step.params, "divisor": count}, bind={"x": source, "out": target}))
        source = target
    return made


def by_type(f32: str, i32: str, u32: str, i64: str, c64: str = "") -> dict[str, str]:
    """Texts of a kernel by register type."""
    return {"f32": f32, "i32": i32, "u32": u32, "vec2<u32>": i64, "vec2<f32>": c64}


_SUM = by_type("a + b", "a + b", "a + b", "i64_add(a, b)", "a + b")
_PRODUCT = by_type("a * b", "a * b", "a * b", "i64_mul(a, b)", "complex_mul(a, b)")
_ZERO = by_type("0.0", "0", "0u", "vec2<u32>()", "vec2<f32>()")
_ONE = by_type("1.0", "1", "1u", "vec2<u32>(1u, 0u)", "vec2<f32>(1.0, 0.0)")
# How the kernels of split forms hand on a value of two words.
_WIDE = {
    "vec2<u32>": {"WIDE": "true", "to_bits": "value", "from_bits": "bits"},
    "vec2<f32>": {"WIDE": "true", "to_bits": "bitcast<vec2<u32>>(value)", "from_bits": "bitcast<T>(bits)"},
}

# Long products have a range of their own: parts of one are infinite, or 0, where the whole is not. On GPUs a
# lane multiplies its share of floats 16 at a time.
_LANE_PRODUCT = "lane_product({0}, {1} * params.inner, (max(end, first) - first + {1} - 1u) / {1}, {2})"


def fused() -> str:
    """Whether ``fma`` rounds once (wgsl/parts/product/factored.wgsl)."""
    return flag(not stream().open().info.is_software)


def float_products() -> Through:
    """What long products of floats on a GPU are made through."""
    rows = {"share": _LANE_PRODUCT.format("start", "LANES", fused())}
    strips = {"share": _LANE_PRODUCT.format("base + first * params.inner", "STRIPS", fused())}
    long_rows = {**rows, "across_fold": "product_fold(lane, value)"}
    holes = {"rows": rows, "split_rows": long_rows, "strips": strips, "split_strips": strips}
    return Through("vec2<u32>", "product_of(value)", "product_value(value)", holes=holes)


# Factors of a part where no lanes share one.
_FACTORS = 64


def product_parts(source: str, out: str, shape: tuple[int, int, int], chunk: int, **holes: str) -> Launch:
    """The dispatch that makes products of parts of the middle axis, ``chunk`` long, with a range of their
    own, on an adapter that runs on the CPU."""
    outer, columns, inner = shape
    parts = -(-columns // chunk)
    count = outer * parts * inner
    params = {"count": count, "columns": columns, "inner": inner, "parts": parts, "chunk": chunk}
    file = load("reduce/product/parts").fill(holes)
    return Launch(file, -(-count // 16), params, bind={"x": source, "out": out})


def _product(call: Call) -> list[Launch]:
    m = call["input"]
    dims = axes(call["dim"], m.rank)
    parts = {step.parts for step in stages(m.shape, dims, strips=True)}
    if register_type(call.compute) != "f32" or parts == {1}:
        return fold(_PRODUCT, _ONE)(call)
    if not is_direct():
        one, identity = {"f32": "product_times(a, b)"}, {"f32": "PRODUCT_ONE"}
        return fold(one, identity, through={"f32": float_products()})(call)
    steps = []
    for outer, reduced, inner in runs(m.shape, dims):
        while not steps or reduced > 1:
            chunk = reduced if reduced <= 4 * _FACTORS else _FACTORS  # the whole where it is not much longer
            steps.append(((outer, reduced, inner), chunk))
            reduced = -(-reduced // chunk)
    made, source = [], "input"
    for k, (shape, chunk) in enumerate(steps):
        first, last = k == 0, k == len(steps) - 1
        outer, columns, inner = shape
        target = "out" if last else f"partial{k}"
        if not last:
            call.temporary(target, (outer * -(-columns // chunk) * inner,), dt.int64)
        holes = {} if first else {"X": "vec2<u32>", "factor": "value"}
        holes |= {"U": "f32", "result": "product_value(value)"} if last else {}
        made.append(product_parts(source, target, shape, chunk, **holes))
        source = target
    return made


def accumulated(call: Call):
    """Integers and bools add up in int64, unless a dtype is asked for."""
    own = call["input"].dtype
    d = call["dtype"] or (own if own.is_floating_point or own.is_complex else dt.int64)
    return d, d


def _averaged(call: Call):
    d = call["dtype"] or call["input"].dtype
    if not (d.is_floating_point or d.is_complex):
        raise DTypeError(
            f"the mean of {d} is not an integer. Give dtype=pellucid.float32, or convert the input with "
            ".float()."
        )
    return d, d


def wide(x: np.ndarray, d: DType | None = None) -> np.ndarray:
    """What the references accumulate in: float64 for floats, int64 for integers."""
    kind = np.dtype(d.numpy if d else x.dtype).kind
    return x.astype(
        {"f": np.float64, "c": np.complex128}.get(kind, np.int64 if d is None or kind != "b" else np.bool_)
    )


def count_of(m, dim) -> int:
    """How many elements are combined, at least one."""
    return max(product(m.shape[d] for d in axes(dim, m.rank)), 1)


def mean_grad(g, input_meta, dim, keepdim):
    """That of a mean."""
    return spread(g / count_of(input_meta, dim), input_meta, dim, keepdim)


def wide_mean(x: np.ndarray, dims: tuple[int, ...], keepdim: bool, own) -> np.ndarray:
    """The references' mean of what was widened from the type ``own``. Where the sum leaves the range of
    float32, in which kernels add, it is infinite."""
    count = product(x.shape[d] for d in dims)
    with np.errstate(all="ignore"):
        total = x.sum(dims, keepdims=keepdim)
        if total.dtype == np.float64 and np.dtype(own) != np.float64:
            total = total.astype(np.float32)
        return total / np.float64(count)


def _wide_product(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """The references' product. Parts of it may leave the range of float64 where the whole does not."""
    if x.dtype != np.float64:
        return x.prod(dims, keepdims=keepdim)
    kept = [n for d, n in enumerate(x.shape) if d not in dims]
    values = np.moveaxis(x, dims, range(-len(dims), 0)).reshape(*kept, product(x.shape[d] for d in dims))
    powers = np.zeros(values.shape, np.int64)
    with np.errstate(all="ignore"):
        while (count := values.shape[-1]) != 1:
            pad = [(0, 0)] * len(kept) + [(0, count % 2 or 2 * (not count))]
            values, powers = np.pad(values, pad, constant_values=1), np.pad(powers, pad)
            values, moved = np.frexp(values[..., ::2] * values[..., 1::2])
            powers = powers[..., ::2] + powers[..., 1::2] + moved
        found = np.ldexp(values, powers.clip(-3000, 3000).astype(np.int32))
    return found.reshape([1 if d in dims else n for d, n in enumerate(x.shape)] if keepdim else kept)


sum = reduction(
    "sum", fold(_SUM, _ZERO),
    lambda input, dim, keepdim, dtype: wide(input, dtype).sum(axes(dim, input.ndim), keepdims=keepdim),
    lambda g, input_meta, dim, keepdim: spread(g, input_meta, dim, keepdim),
    "Sum over axes: ``out = sum_r input[..., r, ...]``.", shape=reduced_shape, dtype=accumulated,
    form=over_axes_as, takes="any dtype; integers and bools are added in int64.", converted="adding",
    aten=("sum.default", "sum.dim_IntList"),
)  # fmt: skip


mean = reduction(
    "mean", fold(_SUM, _ZERO, mean=True),
    lambda input, dim, keepdim, dtype: wide_mean(
        wide(input, dtype), axes(dim, input.ndim), keepdim, dtype.numpy if dtype else input.dtype
    ),
    mean_grad, "Mean over axes: ``sum(input, dim) / count``.", shape=reduced_shape, dtype=_averaged,
    form=over_axes_as, takes="floating point, unless ``dtype`` says so.", converted="adding",
    raises={"DTypeError": "an integer tensor.", "DimensionError": "an axis is out of range."},
    at=[[1.0, 4.0], [3.0, 2.0]], aten=("mean.default", "mean.dim"),
)  # fmt: skip


def _product_grad(g, input, dim, keepdim, out):
    """The product divided by each element; where the tensor has a zero, the products of the others."""
    is_zero = input == 0
    zeros = sum(is_zero)
    plain = restore(out, input._meta, dim, keepdim) / input.masked_fill(is_zero, 1)
    slope = where(zeros == 0, plain, _products_of_others(input, dim))
    g = restore(g, input._meta, dim, keepdim)
    # Two zeros hide NaN where PyTorch knows that nothing asks for a second derivative.
    return without(g * slope, zeros > 1) if dim is None and not is_grad_enabled() else g * slope


def _products_of_others(input, dim):
    """For each element the product of those before and behind it, whose own derivative is right at zeros."""
    is_line = dim is None or input.dim() == 0
    x = input.reshape(-1) if is_line else input.movedim(dim, -1)
    one = x.new_ones((*x.shape[:-1], 1))
    before = cat([one, x], -1)[..., :-1].cumprod(-1)
    behind = cat([one, x.flip(-1)], -1)[..., :-1].cumprod(-1).flip(-1)
    others = before * behind
    return others.reshape(input.shape) if is_line else others.movedim(-1, dim)


prod = reduction(
    "prod", _product,
    lambda input, dim, keepdim, dtype: _wide_product(wide(input, dtype), axes(dim, input.ndim), keepdim),
    _product_grad, "Product over one axis, or of all elements: ``out = prod_r input[..., r, ...]``.",
    shape=reduced_shape, dtype=accumulated, form=over_axis_as,
    takes="any dtype; integers and bools are multiplied in int64.", converted="multiplying",
    aten=("prod.default", "prod.dim_int"),
)  # fmt: skip


def no_complex(name: str, input: Tensor) -> None:
    """Refuse complex tensors."""
    if input.dtype.is_complex:
        raise DTypeError(f"{name}: takes no complex tensors. Work on their real and imaginary parts.")


@function(method=True, node="Nansum")
def nansum(
    input: Tensor,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Sum of what is not NaN."""
    no_complex("nansum", input)
    known = input.masked_fill(input.isnan(), 0) if input._meta.dtype.is_floating_point else input
    return sum(known, dim, keepdim, dtype=dtype)


def _known_mean(input: np.ndarray, dim, keepdim: bool) -> np.ndarray:
    dims, known = axes(dim, input.ndim), ~np.isnan(input)
    with np.errstate(all="ignore"):
        return np.where(known, wide(input), 0).sum(dims, keepdims=keepdim) / known.sum(dims, keepdims=keepdim)


@op(
    dtype=float_only, shape=reduced_shape, reference=_known_mean, public="nanmean",
    # sums and counts go side by side, so that what is read is read once
    kernel=fold(
        {"f32": "a + b"}, {"f32": "vec2<f32>()"},
        through={"f32": Through(
            "vec2<f32>", "select(vec2<f32>(value, 1.0), vec2<f32>(), is_nan(value))", "value.x / value.y",
        )},
    ),
    grad={"input": lambda g, input, dim, keepdim: _known_mean_grad(g, input, dim, keepdim)},
)  # fmt: skip
def known_mean(input: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    """`nanmean` of a floating type."""


def _known_mean_grad(g, input, dim, keepdim):
    known = ~input.isnan()
    return known * restore(g / sum(known, dim, keepdim), input._meta, dim, keepdim)


@function(method=True, node="Div")
def nanmean(
    input: Tensor,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Mean of what is not NaN."""
    if not input._meta.dtype.is_floating_point:
        raise DTypeError(f"nanmean: takes floating point, not {input._meta.dtype}. Convert with .float().")
    if dtype is not None and not dtype.is_floating_point:
        return nansum(input, dim, keepdim, dtype=dtype) / sum(~input.isnan(), dim, keepdim)
    return known_mean(input if dtype is None else input.to(dtype), dim, keepdim)
