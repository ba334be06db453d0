"""Products and powers of matrices, and functions of vectors: multi_dot, matrix_power, matrix_exp, vander."""

from __future__ import annotations

import itertools
from functools import reduce
from math import ceil, factorial, log2, prod

from ...autograd.composed import composed
from ...errors import ArgumentError, ShapeError
from ...op.arguments import integers, wrong
from ...op.public import function
from ...tensors import dtypes as dt
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..matmul import contractions
from ..shape.creation import arange
from ..shape.joining import cat
from ..shape.slicing import diagonal as diagonal_of
from .matrices import floats, square
from .solvers import inv, solve
from .triangular import identity


@function(exports="linalg", aten="linalg_multi_dot.default(tensors)")
def multi_dot(tensors: list[Tensor]) -> Tensor:
    """The product of several matrices, in the order of multiplications that takes least work.

    Args:
        tensors: at least two matrices; the first and the last may be vectors.

    Raises:
        ShapeError: fewer than two, or lengths that do not fit.
    """
    if not isinstance(tensors, (tuple, list)):
        raise wrong("multi_dot: tensors", "tuple of Tensors", tensors)
    if len(tensors) < 2:
        raise ShapeError(f"takes at least two tensors, not {len(tensors)}.")
    first, last = tensors[0].ndim == 1, tensors[-1].ndim == 1
    chain = list(tensors)
    chain[0] = chain[0].unsqueeze(0) if first else chain[0]
    chain[-1] = chain[-1].unsqueeze(1) if last else chain[-1]
    if any(t.ndim != 2 for t in chain):
        raise ShapeError("takes matrices; only the first and the last may be vectors.")
    for a, b in itertools.pairwise(chain):
        if a.shape[1] != b.shape[0]:
            raise ShapeError(f"matrices of shapes {tuple(a.shape)} and {tuple(b.shape)} have no product.")
    lengths = [chain[0].shape[0], *[t.shape[1] for t in chain]]
    # The least work for the matrices from i to j, and behind which of them it is split.
    best = {(i, i): (0, i) for i in range(len(chain))}
    for span in range(1, len(chain)):
        for i in range(len(chain) - span):
            j = i + span
            best[i, j] = min(
                (best[i, s][0] + best[s + 1, j][0] + lengths[i] * lengths[s + 1] * lengths[j + 1], s)
                for s in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        split = best[i, j][1]
        return chain[i] if i == j else product(i, split) @ product(split + 1, j)

    found = product(0, len(chain) - 1)
    found = found.squeeze(-1) if last else found
    return found.squeeze(0) if first else found


@function()
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices; `linalg.multi_dot` of them."""
    for m in matrices:
        if m.dim() != 2:
            raise ShapeError(f"takes matrices, not a tensor of shape {tuple(m.shape)}.")
    return matrices[0] if len(matrices) == 1 else multi_dot(list(matrices))


@function(
    exports=("torch", "linalg"), method=True, aten=("matrix_power.default", "linalg_matrix_power.default")
)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A power of square matrices, by squaring.

    Args:
        input: (..., n, n).
        n: an integer; of a negative one the inverse is taken.

    Raises:
        ShapeError: matrices that are not square.
        LinAlgError: n is negative and a matrix singular.

    Source: https://pytorch.org/docs/stable/generated/torch.linalg.matrix_power.html
    """
    square(input)
    n = index(n, "n")
    if n == 0:
        return identity(input).expand(*input.shape).clone()
    base = inv(input) if n < 0 else input
    found = None
    for bit in bin(abs(n))[2:]:
        found = base if found is None else found @ found
        found = found @ base if bit == "1" and found is not base else found
    return input.clone() if found is None or found is input else found


# Up to this 1-norm the Taylor polynomials below are exact to the last place.
_NORM = 0.5


def _taylor(A: Tensor, root: int) -> Tensor:
    """The Taylor polynomial of the exponential of degree ``root² - 1``, by powers up to ``root`` (Paterson
    and Stockmeyer 1973)."""
    powers = [identity(A), A]
    while len(powers) <= root:
        powers.append(powers[-1] @ A)
    found = None
    for begin in reversed(range(0, root * root, root)):
        parts = [powers[k] * (1 / factorial(begin + k)) for k in range(root)]
        part = reduce(lambda a, b: a + b, parts)
        found = part if found is None else part + found @ powers[root]
    assert found is not None
    return found


def _exp_grad(g, A):
    """The upper right block of ``exp([[Aᴴ, g], [0, Aᴴ]])`` (Mathias 1996)."""
    n, Ah = A.shape[-1], A.mH
    top, bottom = cat([Ah, g], -1), cat([Ah.new_zeros(Ah.shape), Ah], -1)
    return _exp(cat([top, bottom], -2))[..., :n, n:]


@composed(name="linalg.matrix_exp", A=_exp_grad)
def _exp(A: Tensor) -> Tensor:
    norms = A.detach().abs().sum(-2).amax(-1)
    largest = float(norms.amax().item())
    root = 3 if A.dtype in (dt.float32, dt.complex64) else 4
    if not _NORM < largest < float("inf"):
        return _taylor(A, root)
    halvings = (norms / _NORM).log2().ceil().clamp(min=0).unsqueeze(-1).unsqueeze(-1)
    found = _taylor(A * (-halvings).exp2(), root)
    for k in range(ceil(log2(largest / _NORM))):
        found = where(halvings > k, found @ found, found)
    return found


@function(exports="linalg")
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of square matrices: ``I + A + A²/2 + A³/6 + ...``.

    A is halved until its 1-norm is small, which is read to know how often, and the result squared again.

    Args:
        A: (..., n, n).

    Raises:
        ShapeError: matrices that are not square.
    """
    square(A, "A")
    floats(A.dtype)
    return _exp(A) if A._meta.numel else A.clone()


@function(exports="linalg")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Vandermonde matrices: column ``j`` is ``x ** j``.

    Args:
        x: (..., n).
        N: columns; n if None.

    Returns:
        (..., n, N).

    Raises:
        ShapeError: N is not above 1.
    """
    x = x if x.ndim else x.reshape(1)
    count = x.shape[-1] if N is None else index(N, "N")
    if count <= 1:
        raise ShapeError(f"takes N above 1, not {count}.")
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = x.to(dt.int64)
    return x.unsqueeze(-1) ** arange(count, device=x.device)


@function(exports="linalg")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Products of vectors along an axis, the first conjugated: ``sum(conj(x) * y)``."""
    product = x.conj() * y
    return product.sum(axis(dim, product.ndim))


@function(exports="linalg", node="LinalgCross")
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Cross products of vectors of three elements along an axis.

    Raises:
        ShapeError: the axis has another length, or other numbers of axes.
    """
    if input.ndim != other.ndim:
        raise ShapeError(f"takes tensors of equally many axes, not of {input.ndim} and {other.ndim}.")
    for x in (input, other):
        if x.shape[axis(dim, x.ndim)] != 3:
            raise ShapeError(f"axis {dim} has length {x.shape[dim]}; vectors have 3 elements.")
    return contractions.cross(input, other, dim)


@function(exports="linalg", aten="linalg_diagonal.default(A, *, offset=0, dim1=-2, dim2=-1)")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """What lies on a diagonal of matrices, as a view; `diagonal` of the last two axes."""
    return diagonal_of(A, offset, dim1, dim2)


@function(exports="linalg")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a map between tensors: `tensordot` with it undoes that with A.

    Args:
        A: the product of the first ``ind`` lengths is that of the others.
        ind: how many axes come first, at least 1.

    Returns:
        The last axes of A, then the first.

    Raises:
        ShapeError: the products are not equal.
        LinAlgError: there is no inverse.
    """
    if index(ind, "ind") <= 0:
        raise ArgumentError(f"ind must be at least 1, not {ind}.")
    first, rest = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if prod(first) != prod(rest):
        raise ShapeError(
            f"the first {ind} axes {first} and the others {rest} have other numbers of elements."
        )
    return inv(A.reshape(prod(first), prod(rest))).reshape(*rest, *first)


@function(exports="linalg", aten="linalg_tensorsolve.default(self, other, dims=None)")
def tensorsolve(A: Tensor, B: Tensor, dims: tuple[int, ...] | None = None) -> Tensor:
    """The ``X`` of ``tensordot(A, X, X.ndim) = B``.

    Args:
        A: its first lengths are those of B, the product of the others is the same.
        B: the right side.
        dims: axes of A that move to its end first.

    Raises:
        ShapeError: the products are not equal.
        LinAlgError: there is no solution.
    """
    if dims is not None:
        moved = integers(dims, "dims")
        A = A.movedim(moved, tuple(range(-len(moved), 0)))
    rest = tuple(A.shape[B.ndim :])
    if prod(rest) != B._meta.numel or prod(A.shape[: B.ndim]) != prod(rest):
        raise ShapeError(f"A of shape {tuple(A.shape)} and B of shape {tuple(B.shape)} are no square system.")
    return solve(A.reshape(prod(rest), prod(rest)), B.reshape(-1)).reshape(rest)
