"""Matrix products. Operands are read with any strides, so a transposed operand is never copied."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ...autograd.composed import composed
from ...autograd.edges import LEAF, labelled
from ...device import CPU
from ...errors import DTypeError, ShapeError
from ...op.arguments import any_number
from ...op.declaration import Call, function, op
from ...op.elementwise import cast_launch
from ...op.kernel import Launch
from ...op.rules import of_one_dtype, refuse_complex
from ...quant.rows import row_chunks
from ...tensors.dtypes import LARGEST_HALF, DType, complex64, float32
from ...tensors.meta import Meta, meta
from ...tensors.shape import Size, broadcast_shapes, broadcast_strides, merge_axes
from ...tensors.tensor import Tensor
from ..elementwise.complex import complex as joined
from ..elementwise.complex import imag, real
from ..quant.products import quant_linear, quant_product
from ..reduce.reductions import sum
from .launch import MatrixOperand, Product


def floats(call: Call):
    """One floating-point dtype for all operands."""
    metas = call.tensors()
    name, first = metas[0]
    for other, m in metas[1:]:
        if m.dtype is not first.dtype and not m.dtype.is_quantized:
            raise DTypeError(
                f"'{name}' is {first.dtype} and '{other}' is {m.dtype}. Convert one of them, for example "
                f"with .to({first.dtype})."
            )
    if call.device.type == "webgpu" and not first.dtype.is_floating_point:
        raise DTypeError(
            f"there is no kernel for {first.dtype} on webgpu. Convert with .float(), or use the cpu device."
        )
    if first.dtype.kind == "b":
        raise DTypeError("there is no product of bool tensors. Convert with .float() first.")
    return first.dtype, first.dtype


def _matrix(m: Meta, is_left: bool) -> tuple[Size, tuple[int, ...]]:
    """Shape and strides with a missing matrix axis added: a vector on the left is a row, on the right a
    column.
    """
    if m.rank > 1:
        return m.shape, m.strides
    return (Size((1, *m.shape)), (0, *m.strides)) if is_left else (Size((*m.shape, 1)), (*m.strides, 0))


def _shape(call: Call) -> Size:
    a, b = call["input"], call["other"]
    if a.rank == 0 or b.rank == 0:
        shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
        raise ShapeError(
            f"both operands need at least one axis; they have shapes {shapes}. Use * for numbers."
        )
    (left, _), (right, _) = _matrix(a, True), _matrix(b, False)
    if left[-1] != right[-2]:
        raise ShapeError(
            f"shapes {tuple(a.shape)} and {tuple(b.shape)} cannot be multiplied: the inner lengths are "
            f"{left[-1]} and {right[-2]}. "
            "They must be equal; transpose one operand if its axes are exchanged."
        )
    batch = broadcast_shapes(left[:-2], right[:-2])
    return Size((*batch, *((left[-2],) if a.rank > 1 else ()), *((right[-1],) if b.rank > 1 else ())))


def product_of(call: Call, first: str, second: str) -> tuple[list[Launch], Product, str, str]:
    """The product of two arguments; more than two batch axes that do not merge are copied first."""
    before: list[Launch] = []
    names = [first, second]
    a, b = call[first], call[second]
    (left, left_strides), (right, right_strides) = _matrix(a, True), _matrix(b, False)
    batch = broadcast_shapes(left[:-2], right[:-2])
    strides = [
        broadcast_strides(left[:-2], left_strides[:-2], batch),
        broadcast_strides(right[:-2], right_strides[:-2], batch),
    ]
    lengths, merged = merge_axes(batch, strides)
    if len(lengths) > 2:
        for k, (m, name) in enumerate(((a, first), (b, second))):
            matrix = (left, right)[k][-2:]
            own = (*strides[k], *(left_strides, right_strides)[k][-2:])
            held = meta((*batch, *matrix), m.dtype, m.device, own)
            names[k] = f"{name}_dense"
            before.append(cast_launch(name, names[k], held, call.temporary(names[k], held.shape, m.dtype)))
        left_strides, right_strides = (left[-1], 1), (right[-1], 1)
        lengths, merged = (prod(batch),), [(left[-2] * left[-1],), (right[-2] * right[-1],)]
    pads = (0,) * (2 - len(lengths))
    (a_outer, a_inner), (b_outer, b_inner) = pads + merged[0], pads + merged[1]
    product = Product(
        prod(batch), lengths[-1] if lengths else 1, left[-2], right[-1], left[-1],
        MatrixOperand(a_outer, a_inner, *left_strides[-2:]),
        MatrixOperand(b_outer, b_inner, *right_strides[-2:]),
    )  # fmt: skip
    return before, product, names[0], names[1]


def _launches(call: Call) -> list[Launch]:
    before, product, *names = product_of(call, "input", "other")
    return [*before, *product.launches(call, *names)]


def _whole(g: Tensor, a_rank: int, b_rank: int) -> Tensor:
    """The gradient of the result with the matrix axes that a vector operand took away."""
    if b_rank == 1:
        g = g.unsqueeze(-1)
    return g.unsqueeze(-2) if a_rank == 1 else g


def _grad_left(g, input_meta, other):
    right = other.unsqueeze(-1) if other.dim() == 1 else other
    grad = matmul(_whole(g, input_meta.rank, other.dim()), right.transpose(-2, -1))
    return grad.squeeze(-2) if input_meta.rank == 1 else grad


def _grad_right(g, input, other_meta):
    g = _whole(g, input.dim(), other_meta.rank)
    left = input.unsqueeze(0) if input.dim() == 1 else input
    if other_meta.rank <= 2 and left.dim() > 2:
        # One product over all rows instead of one for each batch and a sum.
        rows = prod(left.shape[:-1])
        left, g = left.reshape(rows, left.shape[-1]), g.reshape(rows, g.shape[-1])
    grad = matmul(left.transpose(-2, -1), g)
    return grad.squeeze(-1) if other_meta.rank == 1 else grad


def wide_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The reference: float32 products are added in float64."""
    return (a.astype(np.float64) @ b.astype(np.float64)) if a.dtype == np.float32 else a @ b


def are_complex(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors on webgpu hold complex numbers, of which kernels make no products."""
    a, b = input._meta, other._meta
    return a.dtype is complex64 and b.dtype is complex64 and b.device is not CPU


def by_parts(product: Callable, input: Tensor, other: Tensor) -> Tensor:
    """A product of complex numbers, or what is linear in both like one: four of their parts."""
    (a, b), (c, d) = [(real(x), imag(x)) for x in (input, other)]
    return joined(product(a, c) - product(b, d), product(a, d) + product(b, c))


@composed(
    name="matmul",
    input=lambda g, other: quant_linear(g, row_chunks(other)),
    other=lambda g, input: matmul(input.reshape(-1, input.shape[-1]).t(), g.reshape(-1, g.shape[-1])),
)
def _through(input: Tensor, other: Tensor) -> Tensor:
    """The product with a quantized weight that stands for a float one, which has the gradient."""
    return quant_product(input, row_chunks(other.detach()))


# Elements from which a product of two vectors is a reduction, which fills a GPU: the kernels of matrices cut
# the depth into parts that are too few then.
_LONG_VECTORS = 1 << 18


def _are_long(input: Tensor, other: Tensor) -> bool:
    a, b = input._meta, other._meta
    is_long = a.rank == b.rank == 1 and a.shape == b.shape and a.shape[0] >= _LONG_VECTORS
    return is_long and a.dtype is b.dtype is float32 and b.device is not CPU


def _prepared(input, other):
    """The product with a quantized weight, and on webgpu that of complex numbers, four of their parts, and of
    long vectors, the sum of what is multiplied."""
    held = getattr(other, "_meta", None)
    if held and held.dtype.is_quantized:
        if other._node is not None and other._node is not LEAF:
            return _through(input, other)
        return quant_product(input, row_chunks(other))
    if not held:
        return None
    if _are_long(input, other):
        return sum(input * other)
    return by_parts(matmul, input, other) if are_complex(input, other) else None


def _numbers(call: Call):
    """Floating point or integers, one dtype for both."""
    first, second = call["input"].dtype, call["other"].dtype
    return (first, first) if first is second and first.is_integer else floats(call)


@op(
    dtype=_numbers,
    shape=_shape,
    kernel=_launches,
    reference=lambda input, other: wide_product(input, other),
    grad={"input": _grad_left, "other": _grad_right},
    strided=("input", "other"),
    method=True,
    prepare=_prepared,
    out=True,
)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product over the last two axes: ``out[..., i, j] = sum_l input[..., i, l] * other[..., l, j]``.

    Args:
        input: (..., n, l) or (l,).
        other: (..., l, m) or (l,), same dtype; leading axes broadcast. Or a quantized weight.

    Returns:
        (..., n, m), without n or m where an operand is a vector.

    Raises:
        ShapeError: the inner lengths differ, or an operand has no axes.
        DTypeError: dtypes differ.

    Example:
        >>> import pellucid as torch
        >>> (torch.ones(2, 3, device="cpu") @ torch.ones(3, device="cpu")).tolist()
        [3.0, 3.0]
    """


def _ranked(name: str, ranks: tuple[int, int], operands: tuple[Tensor, ...], out: Tensor | None) -> Tensor:
    a, b = operands
    if (a.dim(), b.dim()) != ranks:
        raise ShapeError(
            f"{name}: takes tensors of {ranks[0]} and {ranks[1]} axes, not of shapes {tuple(a.shape)} and "
            f"{tuple(b.shape)}. Use matmul."
        )
    return matmul(a, b) if out is None else matmul(a, b, out=out)


def _widened(name: str, out_dtype: DType | None, *operands: Tensor) -> tuple[Tensor, ...]:
    """Operands whose product has the dtype that is asked for: in float32, products of halves are exact."""
    own = operands[0].dtype
    if out_dtype is None or out_dtype is own:
        return operands
    if out_dtype is not float32 or own not in LARGEST_HALF or operands[1].dtype is not own:
        raise DTypeError(
            f"{name}: out_dtype is {out_dtype} of a product of {own} and {operands[1].dtype}. It is theirs, "
            "or float32 of float16 or bfloat16. Convert the result."
        )
    return tuple(t.to(float32) for t in operands)


@function(method=True)
def mm(input: Tensor, mat2: Tensor, out_dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices, (n, l) by (l, m).

    Args:
        input, mat2: of one dtype.
        out_dtype: theirs, or float32 of float16 or bfloat16, whose sums are then not rounded to halves.
    """
    return _ranked("mm", (2, 2), _widened("mm", out_dtype, input, mat2), out)


@function(method=True)
def bmm(input: Tensor, mat2: Tensor, out_dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """Products of two batches of matrices, (b, n, l) by (b, l, m); ``out_dtype`` as of `mm`."""
    if input.dim() == 3 and mat2.dim() == 3 and input.shape[0] != mat2.shape[0]:
        batches = f"{input.shape[0]} and {mat2.shape[0]}"
        raise ShapeError(f"bmm: the batches are {batches}. They must be equal; matmul broadcasts.")
    return labelled("BmmBackward0", _ranked("bmm", (3, 3), _widened("bmm", out_dtype, input, mat2), out))


@function(method=True)
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of a matrix and a vector, (n, l) by (l,)."""
    return _ranked("mv", (2, 1), (input, vec), out)


@function(method=True)
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two vectors, (l,) by (l,): a tensor without axes."""
    return _ranked("dot", (1, 1), (input, tensor), out)


@function(method=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]``."""
    if (input.dim(), vec2.dim()) != (1, 1):
        shapes = f"{tuple(input.shape)} and {tuple(vec2.shape)}"
        raise ShapeError(f"outer: takes two vectors, not shapes {shapes}. Flatten them.")
    return input.unsqueeze(1) * vec2


def _added(name: str, input: Tensor, factor: Tensor, out_dtype: DType | None) -> Tensor:
    """What is added to a product of ``out_dtype``: of that, or of what is multiplied."""
    if out_dtype is None:
        of_one_dtype(input, factor)
    if out_dtype is None or input.dtype is out_dtype:
        return input
    if input.dtype is not factor.dtype:
        given = f"{input.dtype}, neither {factor.dtype} nor {out_dtype}"
        raise DTypeError(f"{name}: input is {given}. Convert it.")
    return input.to(out_dtype)


def _factor(value: float | complex, product: Tensor) -> float | complex:
    """A factor as the products' dtype holds it: of integers it is one, of real numbers it is real."""
    value = any_number(value, "a factor")
    if isinstance(value, complex):
        refuse_complex(complex, product.dtype)
        return value
    return int(value) if product.dtype.is_integer else value


def _times(alpha: float | complex, product: Tensor) -> Tensor:
    """``alpha * product``; 0 also where the product is NaN or infinite, as in BLAS."""
    alpha = _factor(alpha, product)
    if alpha == 0:
        return product.fill_(0)
    return product if alpha == 1 else product * alpha


@function(method=True, in_place=True, node="Addmm")
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    out_dtype: DType | None = None,
    *,
    beta: float | complex = 1,
    alpha: float | complex = 1,
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``; ``input`` broadcasts and is not read where beta is 0, nor the
    product where alpha is 0. ``out_dtype`` as of `mm`.
    """
    product, beta = _times(alpha, mm(mat1, mat2, out_dtype)), _factor(beta, mat1)
    if beta == 0:
        return product
    input = _added("addmm", input, mat1, out_dtype)
    if broadcast_shapes(input.shape, product.shape) != product.shape:
        own, wanted = tuple(input.shape), tuple(product.shape)
        raise ShapeError(f"addmm: input of shape {own} does not broadcast to {wanted}. Reshape it.")
    return product + (input if beta == 1 else input * beta)


@function(method=True, in_place=True, node="Baddbmm")
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    out_dtype: DType | None = None,
    *,
    beta: float | complex = 1,
    alpha: float | complex = 1,
) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` for batches of matrices; ``out_dtype`` as of `mm`."""
    product, beta = _times(alpha, bmm(batch1, batch2, out_dtype)), _factor(beta, batch1)
    if beta == 0:
        return product
    if input._meta.rank > 3:
        raise ShapeError(f"baddbmm: input has shape {tuple(input.shape)}, and the result three axes.")
    input = _added("baddbmm", input, batch1, out_dtype)
    return product + (input if beta == 1 else input * beta)
