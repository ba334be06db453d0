"""Matrix products and what is made of them."""

from __future__ import annotations

from .....op.public import EXPORTS
from .....tensors.tensor import Tensor
from ..table import operator
from .elementwise import ops


@operator("MatMul")
def matmul(a: Tensor, b: Tensor):
    return ops.matmul(a, b)


@operator("Gemm")
def gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0, broadcast: int = 0,
):  # fmt: skip
    y = ops.matmul(a.T if transA else a, b.T if transB else b)
    if alpha != 1:
        y = (y * alpha).to(a.dtype)
    return y if c is None else (y + (c if beta == 1 else c * beta)).to(a.dtype)


@operator("Einsum", since=12)
def einsum(*inputs: Tensor, equation: str):
    return ops.einsum(equation.replace(" ", ""), *inputs)


@operator("Det", since=11)
def det(x: Tensor):
    return EXPORTS["linalg"]["det"](x)
