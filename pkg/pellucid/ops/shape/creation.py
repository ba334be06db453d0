"""Tensors from nothing but a shape: zeros, ones, full, arange, linspace, eye, and their ``_like`` forms."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

import numpy as np

from ...device import device as Device
from ...device import resolved
from ...device.cpu import CpuStorage
from ...device.stream import Storage, stream
from ...errors import ArgumentError, PellucidError, RangeError, ShapeError
from ...op.arguments import by_name, element_type, named, number
from ...op.declaration import elementwise, function, moved, op
from ...op.kernel import physical
from ...op.plan import NoStorage
from ...op.rules import sized, stated
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.dtypes import DType
from ...tensors.meta import Meta, meta
from ...tensors.shape import Size, index, sizes
from ...tensors.tensor import Tensor

# What the numbers of a range stay within, as in PyTorch.
_FAR = 1 << 63


@op(
    public="full",
    dtype=stated,
    shape=sized,
    kernel=moved("fill_value"),
    reference=lambda size, fill_value, dtype, device: np.full(size, fill_value, dtype.numpy),
    grad=None,
    exact=("fill_value",),
    fits=("fill_value",),
)
def filled(size: tuple[int, ...], fill_value: float, dtype: DType, device: Device) -> Tensor:
    """A tensor of one value; `full` without defaults."""


def _range_type(d: DType):
    """What the elements of a range are made in: of halves each is rounded once."""
    return np.float32 if d in dt.LARGEST_HALF else d.numpy


@op(
    public="arange",
    dtype=stated,
    shape=lambda call: Size((call["count"],)),
    kernel=elementwise(
        "start + f32(index) * step",
        i32="start + i32(index) * step",
        u32="start + index * step",
        i64="i64_add(start, i64_mul(vec2<u32>(index, 0u), step))",
    ),
    reference=lambda start, step, count, dtype, device: (
        start + np.arange(count, dtype=_range_type(dtype)) * np.asarray(step, _range_type(dtype))
    ),
    grad=None,
)
def progression(start: float, step: float, count: int, dtype: DType, device: Device) -> Tensor:
    """``out[i] = start + i * step``."""


def _filled(where: str, *given: Any) -> Tensor:
    """`filled`, whose errors name the function that asks for it."""
    try:
        return filled(*given)
    except PellucidError as error:
        raise named(where, type(error)(re.sub(r"^full(\(\))?: ", "", str(error)))) from None


def _finish(out: Tensor, requires_grad: bool) -> Tensor:
    return out if requires_grad is False or requires_grad is None else out.requires_grad_(requires_grad)


@function()
def full(size, fill_value, *, dtype: DType | None = None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor of one value.

    Args:
        size: its shape.
        fill_value: the value.
        dtype: the value's own type if not given (float32, int64 or bool).

    Example:
        >>> import pellucid as torch
        >>> torch.full((2,), 3.5, device="cpu").tolist()
        [3.5, 3.5]
    """
    if isinstance(size, (int, Tensor)):
        raise ArgumentError(f"full: size must be several lengths, not {size!r}. Give ({size!r},).")
    if isinstance(fill_value, complex):
        made = tensor(fill_value, dtype=dtype, device=device)
        return _finish(made.expand(sizes((size,))).clone(), requires_grad)
    if type(fill_value) is not float:
        fill_value = number(fill_value, "full: fill_value")
    d = dt.scalar_dtype(fill_value.__class__) if dtype is None else element_type(dtype)
    return _finish(filled(sizes((size,)), fill_value, d, resolved(device)), requires_grad)


@function()
@by_name
def zeros(*given, size=None, dtype: DType | None = None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros."""
    shape = sizes(given if size is None else (*given, size))
    d = dt.get_default_dtype() if dtype is None else dtype
    return _finish(_filled("zeros", shape, 0, d, resolved(device)), requires_grad)


@function()
@by_name
def ones(*given, size=None, dtype: DType | None = None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    shape = sizes(given if size is None else (*given, size))
    d = dt.get_default_dtype() if dtype is None else dtype
    return _finish(_filled("ones", shape, 1, d, resolved(device)), requires_grad)


@function(aten="empty.memory_format")
@by_name
def empty(*given, size=None, dtype: DType | None = None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor whose values are whatever the memory holds."""
    shape = sizes(given if size is None else (*given, size))
    if any(n < 0 for n in shape):
        raise ShapeError(f"empty: size {shape} has a negative length.")
    m = meta(shape, dt.get_default_dtype() if dtype is None else element_type(dtype), resolved(device))
    return _finish(blank(m), requires_grad)


def blank(m: Meta) -> Tensor:
    """`empty` of a layout that is known."""
    if m.device.type == "cpu":
        return Tensor(CpuStorage(np.zeros(m.shape, m.dtype.numpy)), m, 0)
    if m.device.type == "meta":
        return Tensor(NoStorage(), m, 0)
    physical(m.dtype)
    stream().check_size(m.nbytes)
    return Tensor(Storage(m.nbytes), m, 0)


@function()
def full_like(
    input: Tensor, fill_value, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """`full` with the shape, dtype and device of ``input``."""
    m = input._meta
    d, where = m.dtype if dtype is None else dtype, m.device if device is None else resolved(device)
    if isinstance(fill_value, complex):
        return full(m.shape, fill_value, dtype=d, device=where, requires_grad=requires_grad)
    return _finish(filled(m.shape, fill_value, d, where), requires_grad)


@function()
def zeros_like(
    input: Tensor, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """`zeros` with the shape, dtype and device of ``input``."""
    return full_like(input, 0, dtype=dtype, device=device, requires_grad=requires_grad)


@function()
def ones_like(
    input: Tensor, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """`ones` with the shape, dtype and device of ``input``."""
    return full_like(input, 1, dtype=dtype, device=device, requires_grad=requires_grad)


def options_of(input: Tensor, dtype: DType | None, device: Any) -> dict[str, Any]:
    """A dtype and a device: those of a tensor where they are None."""
    return {
        "dtype": input.dtype if dtype is None else dtype,
        "device": input._meta.device if device is None else device,
    }


@function()
def empty_like(
    input: Tensor, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """`empty` with the shape, dtype and device of ``input``."""
    return empty(input.shape, **options_of(input, dtype, device), requires_grad=requires_grad)


@function(
    aten=(
        "arange.default(end, *, dtype=None, layout=None, device=None, pin_memory=None)",
        "arange.start",
        "arange.start_step",
    )
)
def arange(
    start=None, end=None, step=None, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """Numbers from ``start`` to before ``end``: ``out[i] = start + i * step``.

    Args:
        start, end, step: numbers; with one of them it is the end and the start is 0.
        dtype: int64 if all are integers, else the default float.

    Raises:
        RangeError: ``step`` is zero or leads away from ``end``.

    Example:
        >>> import pellucid as torch
        >>> torch.arange(1, 2, 0.25, device="cpu").tolist()
        [1.0, 1.25, 1.5, 1.75]
    """
    if end is None:
        start, end = None, start
    if end is None or (start is None and step is not None):
        raise ArgumentError("arange: give end, or start and end, or start, end and step.")
    start, step = 0 if start is None else start, 1 if step is None else step
    if not type(start) is type(end) is type(step) is int:
        start, end, step = (
            number(v, f"arange: {name}") for v, name in ((start, "start"), (end, "end"), (step, "step"))
        )
    is_near = -_FAR <= start < _FAR and -_FAR <= end < _FAR and -_FAR <= step < _FAR
    whole = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    if dtype is not None and element_type(dtype) is dt.int64 and is_near:
        start, end, step = int(start), int(end), int(step)  # as PyTorch counts them
        whole = True
    if not is_near:
        raise RangeError(f"arange: from {start} to {end} in steps of {step} is not a range of numbers.")
    if step == 0 or (end - start) * step < 0:
        raise RangeError(f"arange: step {step} does not lead from {start} to {end}.")
    if dtype is None:
        dtype = dt.int64 if whole else dt.get_default_dtype()
    count = len(range(start, end, step)) if whole else ceil((end - start) / step)  # type: ignore[arg-type]
    return _finish(progression(start, step, count, element_type(dtype), resolved(device)), requires_grad)


@function()
def linspace(
    start, end, steps: int, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, equally far apart.

    Raises:
        RangeError: there are fewer than no steps, or the dtype does not hold an end.
    """
    steps = index(steps, "linspace: steps")
    if steps < 0:
        raise RangeError(f"linspace: steps is {steps}; it must not be negative.")
    start, end = number(start, "linspace: start"), number(end, "linspace: end")
    d = dt.get_default_dtype() if dtype is None else element_type(dtype)
    for name, value in (("start", start), ("end", end)):
        if not dt.holds(d, value):
            raise RangeError(f"linspace: {name} is {value}, which {d} does not hold. Give another.")
    if d.is_integer:
        start, end = int(start), int(end)
    # Each half from its own end, as in PyTorch: what is infinite or NaN at one reaches the other.
    k = np.arange(steps, dtype=np.float64)
    with np.errstate(all="ignore"):
        step = (np.float64(end) - start) / max(steps - 1, 1)
        values = np.where(k < steps // 2, start + step * k, end - step * (steps - 1 - k))
    if steps == 1:
        values[0] = start
    return tensor(values.astype(d.numpy), dtype=d, device=device, requires_grad=requires_grad)


@function(aten=("eye.default", "eye.m"))
def eye(
    n: int, m: int | None = None, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """A matrix of ones on the diagonal and zeros elsewhere."""
    out = zeros(n, n if m is None else m, dtype=dtype, device=device)
    out.diagonal().fill_(1)
    return _finish(out, requires_grad)


@function()
def scalar_tensor(s, *, dtype: DType | None = None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor without axes, of the default float unless a dtype is given.

    Source: https://pytorch.org/docs/stable/torch.html#tensor-creation-ops
    """
    d = dt.get_default_dtype() if dtype is None else dtype
    return full((), s, dtype=d, device=device, requires_grad=requires_grad)


@function()
def logspace(
    start, end, steps: int, base: float = 10.0, *, dtype: DType | None = None, device=None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``steps`` powers of ``base``, whose exponents are equally far apart from ``start`` to ``end``.

    Raises:
        RangeError: there are fewer than no steps, or the dtype does not hold an end.

    Example:
        >>> import pellucid as torch
        >>> torch.logspace(0, 3, 4, base=2.0, device="cpu").tolist()
        [1.0, 2.0, 4.0, 8.0]
    """
    base, d = number(base, "logspace: base"), dt.get_default_dtype() if dtype is None else element_type(dtype)
    if d.is_integer:  # the ends are such ones, what lies between them is not
        start, end = int(number(start, "logspace: start")), int(number(end, "logspace: end"))
    # Float64 exponents: those of float32 would leave large powers off by many units.
    exponents = linspace(start, end, steps, dtype=dt.float64, device="cpu").numpy()
    with np.errstate(all="ignore"):
        values = np.power(np.float64(base), exponents)
    return tensor(values.astype(d.numpy), dtype=d, device=device, requires_grad=requires_grad)


def _reach(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How many elements a layout spans."""
    if len(size) != len(stride) or min((*size, *stride), default=0) < 0:
        raise ShapeError(f"empty_strided: size {size} and stride {stride} must be as long and not negative.")
    return 1 + sum(s * (n - 1) for s, n in zip(stride, size, strict=True)) if all(size) else 0


@function()
def empty_strided(
    size, stride, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """`empty` with given strides.

    Raises:
        ShapeError: another number of strides than axes, or a negative one.
    """
    lengths, steps = sizes((size,)), sizes((stride,))
    held = empty(_reach(lengths, steps), dtype=dtype, device=device)
    return _finish(held.as_strided(lengths, steps), requires_grad)


@function()
def empty_permuted(
    size, physical_layout, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """`empty` whose axes lie in memory in the given order, the slowest first.

    Raises:
        ShapeError: the order does not name each axis once.
    """
    lengths, order = sizes((size,)), sizes((physical_layout,))
    if sorted(order) != list(range(len(lengths))):
        raise ShapeError(f"empty_permuted: {order} does not name each of {len(lengths)} axes once.")
    held = empty(*[lengths[k] for k in order], dtype=dtype, device=device)
    return _finish(held.permute([order.index(k) for k in range(len(order))]), requires_grad)


@function(exports=None, method=True)
def new_empty_strided(
    input: Tensor,
    size,
    stride,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """`empty_strided` with the dtype and device of this tensor."""
    m = input._meta
    dtype, device = m.dtype if dtype is None else dtype, m.device if device is None else device
    return empty_strided(size, stride, dtype=dtype, device=device, requires_grad=requires_grad)
