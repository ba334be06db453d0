"""The linear layer's product: rows times a weight that lies as (out, in), float or quantized."""

from __future__ import annotations

from math import prod

from ...autograd.composed import composed
from ...autograd.edges import LEAF
from ...errors import ShapeError
from ...op.declaration import Call, op
from ...op.kernel import Launch
from ...quant.rows import RowStorage, row_chunks
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..quant.products import quant_linear
from .dense import are_complex, floats, matmul, wide_product
from .launch import MatrixOperand, Product


def _shape(call: Call) -> Size:
    x, weight, bias = call["input"], call["weight"], call["bias"]
    if weight.rank != 2 or x.rank == 0:
        raise ShapeError(
            f"weight has shape {tuple(weight.shape)} and input {tuple(x.shape)}; they must be (out, in) and "
            f"(..., in)."
        )
    if x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"input of shape {tuple(x.shape)} ends in {x.shape[-1]}, weight of shape {tuple(weight.shape)} "
            f"takes {weight.shape[1]}."
        )
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        given, features = tuple(bias.shape), weight.shape[0]
        raise ShapeError(f"bias has shape {given}, weight makes {features} features. Give ({features},).")
    return Size((*x.shape[:-1], weight.shape[0]))


def _launches(call: Call) -> list[Launch]:
    columns, depth = call["weight"].shape
    rows = call.out.numel // max(columns, 1)
    right = MatrixOperand(0, 0, *call["weight"].strides).transposed
    product = Product(1, 1, rows, columns, depth, MatrixOperand(0, 0, depth, 1), right)
    return product.launches(call, "input", "weight", "bias" if call["bias"] is not None else None)


def _as_rows(x: Tensor) -> Tensor:
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def _reference(input, weight, bias):
    out = wide_product(input, weight.T)
    return out if bias is None else out + bias


@composed(
    name="linear",
    input=lambda g, weight: matmul(g, weight),
    weight=lambda g, input: matmul(_as_rows(g).t(), _as_rows(input)),
    bias=lambda g: g,
)
def _through(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product with a quantized weight that stands for a float one, which has the gradient."""
    return quant_linear(input, row_chunks(weight.detach()), bias)


def _prepared(input, weight, bias):
    """The product with a quantized weight, and that of integers and of complex numbers."""
    try:
        held = weight._meta
    except AttributeError:
        return None
    if held.dtype.kind == "q":
        if weight._node is not None and weight._node is not LEAF:
            return _through(input, weight, bias)
        return quant_linear(input, row_chunks(weight), bias)
    if held.rank != 1 and not ((held.dtype.is_integer or are_complex(input, weight)) and held.rank == 2):
        return None
    out = matmul(input, weight.t())
    return out if bias is None else out + bias


def _route(input, weight, bias):
    """The plan itself of a product with a quantized weight, of which a step of generation has hundreds."""
    if weight._meta.dtype.kind != "q" or type(weight._storage) is RowStorage:
        return None
    plan = quant_linear.op.plan_of(input, [weight], bias)

    def run(input, weight, bias):
        if (
            input._node is not None
            or weight._node is not None
            or (bias is not None and bias._node is not None)
        ):
            return _prepared(input, weight, bias)
        # A weight of the same layout may lie in several buffers.
        if type(weight._storage) is RowStorage:
            return _prepared(input, weight, bias)
        return plan(input, [weight], bias)

    return run


@op(
    dtype=floats,
    shape=_shape,
    kernel=_launches,
    reference=_reference,
    grad={
        # The node's name says whether there is a bias, also where it has no gradient.
        "input": lambda g, weight, bias_meta: matmul(g, weight),
        "weight": lambda g, input, bias_meta: matmul(_as_rows(g).t(), _as_rows(input)),
        "bias": lambda g, bias_meta: g,
    },
    strided=("weight",),
    exports="nn.functional",
    prepare=_prepared,
    route=_route,
)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``out[..., j] = sum_l input[..., l] * weight[j, l] + bias[j]``.

    Args:
        input: (..., in).
        weight: (out, in), same dtype or quantized; or (in,), for results without an axis of their own.
        bias: (out,) or None.

    Returns:
        (..., out).

    Raises:
        ShapeError: lengths do not fit.
        DTypeError: dtypes differ.
    """
