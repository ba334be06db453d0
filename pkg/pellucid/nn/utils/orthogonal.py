"""Weights whose columns, or rows where there are fewer of these, are orthogonal and of length 1."""

from __future__ import annotations

from typing import Any

from ...autograd import no_grad
from ...errors import ArgumentError, ShapeError
from ...ops.linalg.orthogonal import geqrf, householder_product
from ...ops.linalg.products import matrix_exp
from ...ops.linalg.solvers import solve
from ...ops.random.distributions import randn
from ...ops.shape.creation import eye
from ...ops.shape.joining import cat
from ...tensors.tensor import Tensor
from ..modules.module import Module
from .parametrize import register_parametrization

_MAPS = ("matrix_exp", "cayley", "householder")


def _completed(A: Tensor) -> Tensor:
    """An orthogonal basis of the columns of square matrices, with the signs that Gram and Schmidt give."""
    X, tau = geqrf(A)
    return householder_product(X, tau) * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    base: Any

    def __init__(self, weight: Tensor, kind: str, use_trivialization: bool):
        super().__init__()
        if weight.dtype.is_complex and kind == "householder":
            raise ArgumentError("orthogonal: the householder map takes no complex weights.")
        self.shape, self.kind, self.is_trivial = weight.shape, kind, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        X = X.mT if (turned := X.shape[-2] < X.shape[-1]) else X
        n, k = X.shape[-2:]
        if self.kind == "householder":
            A = X.tril(-1)
            Q = householder_product(A, 2.0 / (1.0 + (A * A.conj()).sum(-2)))
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                X = cat([X, X.new_zeros((*X.shape[:-1], n - k))], -1)
            A = X - X.mH
            if self.kind == "matrix_exp":
                Q = matrix_exp(A)
            else:
                one = eye(n, dtype=A.dtype, device=A.device)
                Q = solve(one - A * 0.5, one + A * 0.5)
            Q = Q[..., :k]
        if self.is_trivial:
            Q = self.base @ Q
        return Q.mT if turned else Q

    @no_grad
    def right_inverse(self, Q: Tensor) -> Tensor:
        if tuple(Q.shape) != tuple(self.shape):
            raise ShapeError(f"orthogonal: the weight has shape {tuple(self.shape)}, not {tuple(Q.shape)}.")
        Q = Q.mT if (turned := Q.shape[-2] < Q.shape[-1]) else Q
        n, k = Q.shape[-2:]
        if not self.is_trivial:
            if self.kind != "householder":
                raise NotImplementedError(
                    f"orthogonal: with use_trivialization=False nothing is assigned to map {self.kind!r}."
                )
            A, tau = geqrf(Q)
            A = A.clone()
            line = A.diagonal(dim1=-2, dim2=-1)
            line.copy_(line.sign() * (1 - 2 * (tau == 0).to(A.dtype)))
            return A.mT if turned else A
        if n != k:
            Q = cat([Q, randn(*Q.shape[:-1], n - k, device=Q.device).to(Q.dtype)], -1)
        self.base = _completed(Q)
        begun = Q.new_zeros(self.shape)
        begun.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return begun


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """A weight that is orthogonal, or has orthogonal columns or rows; returns the module.

    Args:
        module: whose weight, of at least two axes.
        name: its name.
        orthogonal_map: "matrix_exp" or "cayley" of skew-symmetric matrices, or "householder", a product of
            reflections; of square and complex weights the first if None, else the last.
        use_trivialization: an orthogonal matrix times the map's, so that any orthogonal weight is assigned.

    Raises:
        ArgumentError: there is no such map, or the weight has fewer axes.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.orthogonal.html
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor) or weight.dim() < 2:
        raise ArgumentError(f"orthogonal: {type(module).__name__} has no {name!r} of two axes or more.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.dtype.is_complex else "householder"
    if orthogonal_map not in _MAPS:
        raise ArgumentError(
            f"orthogonal: orthogonal_map is {orthogonal_map!r}. There are {', '.join(_MAPS)}."
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
