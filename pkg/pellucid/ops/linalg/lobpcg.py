"""The largest or smallest eigenvalues of large symmetric matrices, by products with them alone: `lobpcg`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ...autograd.composed import composed
from ...errors import GradientError, MissingError, RangeError, ShapeError
from ...op.arguments import number
from ...op.public import function
from ...tensors import dtypes as dt
from ...tensors.limits import finfo
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..random.distributions import randn
from ..shape.joining import cat, stack
from .matrices import floats
from .norms import norm
from .solvers import solve
from .spectral import eigh

_STEPS = 1000  # where niter is not given


@dataclass
class Iteration:
    """What a tracker sees of the iteration, by PyTorch's names.

    Args:
        A, B, iK: the matrix, that of the inner product and the preconditioner; None for those not given.
        iparams, fparams, bparams: settings.
        ivars, fvars, bvars, tvars: what changes; ``bvars["force_stop"] = True`` ends it.
        X, E, R, S: eigenvectors and eigenvalues so far, residuals, and the basis that the last were taken of.
    """

    A: Tensor
    B: Tensor | None
    iK: Tensor | None
    iparams: dict[str, int]
    fparams: dict[str, float]
    bparams: dict[str, bool]
    X: Tensor
    E: Tensor
    R: Tensor
    S: Tensor
    ivars: dict[str, int] = field(default_factory=lambda: {"istep": 0, "converged_count": 0})
    fvars: dict[str, float] = field(default_factory=dict)
    bvars: dict[str, bool] = field(default_factory=lambda: {"force_stop": False})
    tvars: dict[str, Tensor] = field(default_factory=dict)


def _times(matrix: Tensor | None, x: Tensor) -> Tensor:
    """A product, with the identity where there is no matrix."""
    return x if matrix is None else matrix @ x


def _basis(V: Tensor, B: Tensor | None) -> Tensor:
    """Orthonormal columns that span those given, less the directions in which there is next to nothing.

    Source: Stathopoulos and Wu 2002, "A block orthogonalization procedure with constant synchronization
        requirements", algorithm SVQB
    """
    limit = finfo(V.dtype).eps * V.shape[1]
    for _ in range(2):
        gram = V.mH @ _times(B, V)
        lengths = gram.diagonal().real
        scale = (lengths > 0).to(lengths.dtype) / lengths.where(lengths > 0, 1.0).sqrt()
        values, turns = eigh(gram * scale.unsqueeze(1) * scale)
        kept = (values > limit * values.max()).nonzero().reshape(-1)
        V = (V * scale) @ turns.index_select(1, kept) * values.index_select(0, kept).rsqrt()
        if not V.shape[1]:
            break
    return V


def _beside(V: Tensor, X: Tensor, B: Tensor | None) -> Tensor:
    """What of these columns is orthogonal to the orthonormal ones of ``X``."""
    for _ in range(2):
        V = V - X @ (X.mH @ _times(B, V))
    return V


def _best(S: Tensor, A: Tensor, count: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The first eigenvalues of a matrix within an orthonormal basis, and their vectors in it."""
    inner = S.mH @ (A @ S)
    values, turns = eigh((inner + inner.mH) * 0.5)
    if largest:
        values, turns = values.flip(0), turns.flip(1)
    return values[:count], turns[:, :count]


def _iterate(
    A: Tensor, k: int, B: Tensor | None, X: Tensor, iK: Tensor | None, niter: int, tol: float, largest: bool,
    tracker: Callable | None,
) -> Tensor:  # fmt: skip
    """Eigenvalues of one matrix above the eigenvectors, (1 + rows, k)."""
    columns = X.shape[1]
    length = norm(X)
    sizes = {"A_norm": (norm(A @ X) / length).item(), "B_norm": (norm(_times(B, X)) / length).item()}
    S = _basis(X, B)
    if S.shape[1] < columns:
        raise RangeError(f"lobpcg: the {columns} columns of X are linearly dependent. Give others, or n=.")
    E, turns = _best(S, A, columns, largest)
    X = S @ turns
    seen = Iteration(
        A, B, iK, {"m": A.shape[0], "n": columns, "k": k, "niter": niter}, {"tol": tol}, {"largest": largest},
        X, E, A @ X - _times(B, X) * E, S, fvars=sizes,
    )  # fmt: skip
    direction: Tensor | None = None
    while True:
        error = norm(seen.R, dim=0) / (norm(X, dim=0) * (sizes["A_norm"] + E.abs() * sizes["B_norm"]))
        seen.tvars["rerr"] = error
        far = (~(error < tol)).to(dt.int64)
        seen.ivars["converged_count"] = done = int((far.cumsum(0) == 0).sum().item())
        if tracker is not None:
            tracker(seen)
        if seen.bvars["force_stop"] or done >= k or 0 <= niter <= seen.ivars["istep"]:
            break
        seen.ivars["istep"] += 1
        more = _times(iK, seen.R)
        V = _basis(_beside(more if direction is None else cat([more, direction], 1), X, B), B)
        V = _basis(_beside(V, X, B), B) if V.shape[1] else V
        if not V.shape[1]:  # residuals have vanished
            break
        S = cat([X, V], 1)
        E, turns = _best(S, A, columns, largest)
        X, direction = S @ turns, V @ turns[columns:]
        seen.X, seen.E, seen.S, seen.R = X, E, S, A @ X - _times(B, X) * E
    return cat([E[:k].to(X.dtype).unsqueeze(0), X[:, :k]])


def _gradient(g, out, A, B):
    """Perturbation theory: of a value the product of its vector with itself, of a vector a linear system."""
    if B is not None or A.is_complex():
        what = "of complex matrices" if B is None else "with B"
        raise GradientError(f"lobpcg: has no derivative {what}, as in PyTorch. Use linalg.eigh.")
    values, vectors = out[..., 0, :], out[..., 1:, :]
    along, beside = g[..., 0, :], g[..., 1:, :]
    rows = vectors.mT.unsqueeze(-1)  # (..., k, rows, 1)
    ones = A.new_ones(A.shape[-1]).diag_embed()
    # A less the value is singular in the vector's direction, which is filled up and taken out again.
    size = A.square().sum((-2, -1), keepdim=True).sqrt().unsqueeze(-3)
    system = A.unsqueeze(-3) - values.unsqueeze(-1).unsqueeze(-1) * ones + size * (rows @ rows.mT)
    right = beside.mT.unsqueeze(-1)
    right = rows * (rows * right).sum(-2, keepdim=True) - right
    turned = solve(system, right).squeeze(-1)
    turned = turned - vectors.mT * (vectors.mT * turned).sum(-1, keepdim=True)
    return vectors @ (along.unsqueeze(-1) * vectors.mT + turned)


@composed(name="lobpcg", A=_gradient, B=_gradient)
def _eigenpairs(
    A: Tensor, k: int, B: Tensor | None, X: Tensor, iK: Tensor | None, niter: int, tol: float, largest: bool,
    tracker: Callable | None,
) -> Tensor:  # fmt: skip
    """Of each matrix of a batch what `_iterate` finds."""
    batch, rows = A.shape[:-2], A.shape[-1]
    given: list[list[Any]] = [
        [None] * prod(batch) if t is None else list(t.reshape(-1, *t.shape[-2:])) for t in (A, B, X, iK)
    ]
    found = [
        _iterate(own, k, own_B, start, own_iK, niter, tol, largest, tracker)
        for own, own_B, start, own_iK in zip(*given, strict=True)
    ]
    return stack(found).reshape(*batch, 1 + rows, k) if found else A.new_zeros((*batch, 1 + rows, k))


@function(ours="PyTorch computes it in Python")
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable | None = None,
    ortho_iparams: dict | None = None,
    ortho_fparams: dict | None = None,
    ortho_bparams: dict | None = None,
) -> tuple[Tensor, Tensor]:
    """Some eigenvalues and eigenvectors of symmetric matrices, ``A X = B X diag(E)``, by products with them.

    Each step adds to the vectors their residuals and the directions of the step before, and takes the best of
    what these span. It reads how far it is, and so waits for the device at every step.

    Args:
        A: (..., m, m), symmetric.
        k: how many eigenvalues; the columns of ``X``, or 1, if None.
        B: (..., m, m), positive definite; the identity if None.
        X: (..., m, n), where to begin; random if None.
        n: columns of a random beginning; k if None.
        iK: (..., m, m), by which residuals are multiplied, near the inverse of ``A``.
        niter: at most as many steps, 1000 if None, no end if -1.
        tol: residuals, relative to the sizes of matrices, that end it; the root of the dtype's epsilon if
            None.
        largest: the largest eigenvalues (True, also if None), or the smallest.
        method: "ortho" or "basic"; both choose the basis in the way of the former here.
        tracker: called at every step with an `Iteration`, for each matrix of a batch.
        ortho_iparams, ortho_fparams, ortho_bparams: settings of PyTorch's basis, which is another: None.

    Returns:
        (E, X): (..., k) eigenvalues, in falling order or, of the smallest, in rising order, and (..., m, k)
        eigenvectors, whose signs are not defined.

    Raises:
        ShapeError: shapes do not fit, or m is less than 3 n.
        RangeError: k, n, niter or tol is out of range.
        GradientError: backward, with ``B`` or of complex matrices.
        MissingError: settings of PyTorch's basis.

    Source: https://pytorch.org/docs/stable/generated/torch.lobpcg.html; Knyazev 2001, "Toward the optimal
        preconditioned eigensolver"

    Example:
        >>> import pellucid as torch
        >>> A = torch.arange(1.0, 13.0, device="cpu").diag()
        >>> [round(x, 2) for x in torch.lobpcg(A, k=2)[0].tolist()]
        [12.0, 11.0]
    """
    meta = A._meta
    if meta.rank < 2 or meta.shape[-1] != meta.shape[-2]:
        raise ShapeError(f"lobpcg: A has shape {tuple(meta.shape)}; give square matrices.")
    floats(meta.dtype)
    if method not in (None, "basic", "ortho"):
        raise RangeError(f"lobpcg: method is {method!r}. It must be 'basic' or 'ortho'.")
    if any((ortho_iparams, ortho_fparams, ortho_bparams)):
        raise MissingError("lobpcg: the basis is not PyTorch's and has no settings. Leave out ortho_*params.")
    rows = meta.shape[-1]
    k = (1 if X is None else X._meta.shape[-1]) if k is None else index(k, "lobpcg: k")
    columns = X._meta.shape[-1] if X is not None else k if n is None else index(n, "lobpcg: n")
    if not 0 < k <= columns:
        raise RangeError(f"lobpcg: k is {k}; it must be positive and at most the {columns} columns of X.")
    if rows < 3 * columns:
        raise ShapeError(
            f"lobpcg: A has {rows} rows, less than 3 for each of {columns} columns. Use linalg.eigh."
        )
    for name, t, shape in (("B", B, (rows, rows)), ("iK", iK, (rows, rows)), ("X", X, (rows, columns))):
        if t is not None and tuple(t._meta.shape) != (*meta.shape[:-2], *shape):
            raise ShapeError(
                f"lobpcg: {name} has shape {tuple(t._meta.shape)}, not {(*meta.shape[:-2], *shape)}."
            )
    steps = _STEPS if niter is None else index(niter, "lobpcg: niter")
    if steps < -1:
        raise RangeError(f"lobpcg: niter is {steps}; give a number of steps, or -1 for no end.")
    limit = finfo(meta.dtype).eps ** 0.5 if tol is None else number(tol, "lobpcg: tol")
    if not limit > 0:
        raise RangeError(f"lobpcg: tol is {tol}; it must be positive.")
    if X is None:
        X = randn(*meta.shape[:-2], rows, columns, dtype=meta.dtype, device=meta.device)
    whole = (A + A.mH) * 0.5 if A.requires_grad else A
    found = _eigenpairs(whole, k, B, X, iK, steps, limit, largest is None or largest, tracker)
    values, vectors = found[..., 0, :], found[..., 1:, :]
    return values.real if meta.dtype.is_complex else values, vectors
