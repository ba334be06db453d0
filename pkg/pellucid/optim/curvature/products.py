"""Hessian-vector and Gauss-Newton-vector products, and systems of them by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...autograd.derivatives import grad
from ...errors import ArgumentError, RangeError, ShapeError
from ...tensors.tensor import Tensor

Vectors = list[Tensor]


def listed(where: str, params: Iterable[Tensor], vectors: Sequence[Tensor] | None = None) -> Vectors:
    """Parameters as a list, with vectors of their shapes."""
    params = list(params)
    if not params or not all(isinstance(p, Tensor) for p in params):
        raise ArgumentError(f"{where}: params must be Tensors, at least one.")
    shapes = [tuple(p.shape) for p in params]
    if vectors is not None and [tuple(v.shape) for v in vectors] != shapes:
        raise ShapeError(
            f"{where}: vectors of shapes {[tuple(v.shape) for v in vectors]} for parameters of "
            f"{shapes}. Give one "
            "of its shape for each."
        )
    return params


def _dot(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
    total = (a[0] * b[0]).sum()
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + (x * y).sum()
    return total


def walked(root: Tensor, params: Sequence[Tensor], **options: bool) -> Vectors:
    """Derivatives of the sum of a Tensor, 0 by what takes no part."""
    found = grad(root, params, allow_unused=True, **options)
    return [p * 0 if g is None else g for p, g in zip(params, found, strict=True)]


def hessian_vector_product(
    loss: Tensor, params: Iterable[Tensor], vectors: Sequence[Tensor], *, retain_graph: bool = True
) -> Vectors:
    """``H v``, with H the second derivatives of a loss, in the time of two gradients and without H.

    Args:
        loss: one number with its graph.
        params: by which parameters.
        vectors: one of its shape for each parameter.
        retain_graph: keep the graph for another product.

    Returns:
        A Tensor for each parameter.

    Raises:
        ShapeError: vectors do not fit the parameters.

    Source: Pearlmutter 1994, "Fast exact multiplication by the Hessian"

    Example:
        >>> import pellucid as torch
        >>> from pellucid.optim import curvature
        >>> w = torch.tensor([1.0, 2.0], requires_grad=True, device="cpu")
        >>> curvature.hessian_vector_product((w**3).sum(), [w], [torch.ones(2, device="cpu")])
        [tensor([ 6., 12.], device='cpu')]
    """
    params = listed("hessian_vector_product", params, vectors)
    slopes = walked(loss, params, create_graph=True)
    along = _dot(slopes, [v.detach() for v in vectors])
    if not along.requires_grad:  # a loss that is linear
        return [p.detach() * 0 for p in params]
    return [g.detach() for g in walked(along, params, retain_graph=retain_graph)]


def gauss_newton_vector_product(
    loss: Callable[[Tensor], Tensor], output: Tensor, params: Iterable[Tensor], vectors: Sequence[Tensor]
) -> Vectors:
    """``J' H J v``, with J the derivatives of a model's output and H the second derivatives of the loss by
    it.

    It has no negative curvature where the loss is convex in the output.

    Args:
        loss: of the output, to one number.
        output: of a model, with its graph.
        params: by which parameters.
        vectors: one of its shape for each parameter.

    Returns:
        A Tensor for each parameter.

    Raises:
        ShapeError: vectors do not fit the parameters.

    Source: Schraudolph 2002, "Fast curvature matrix-vector products for second-order gradient descent"

    Example:
        >>> import pellucid as torch
        >>> from pellucid.optim import curvature
        >>> w = torch.tensor([2.0], requires_grad=True, device="cpu")
        >>> one = torch.ones(1, device="cpu")
        >>> curvature.gauss_newton_vector_product(lambda y: (y * y).sum() / 2, w * w, [w], [one])
        [tensor([16.], device='cpu')]
    """
    params = listed("gauss_newton_vector_product", params, vectors)
    # The derivative of a product with J' by its vector is a product with J.
    probe = (output.detach() * 0).requires_grad_()
    pulled = walked((output * probe).sum(), params, create_graph=True)
    pushed = walked(_dot(pulled, [v.detach() for v in vectors]), [probe], retain_graph=True)
    leaf = output.detach().requires_grad_()
    (curved,) = hessian_vector_product(loss(leaf), [leaf], pushed, retain_graph=False)
    return [g.detach() for g in walked((output * curved).sum(), params, retain_graph=True)]


def conjugate_gradients(
    product: Callable[[Vectors], Vectors], right: Vectors, *, steps: int = 100, tolerance: float = 1e-5
) -> Vectors:
    """Solve ``A x = b`` by products with a positive definite A. Waits for the device once a step.

    Args:
        product: ``A v``.
        right: ``b``.
        steps: at most.
        tolerance: of ``|A x - b| / |b|``.

    Raises:
        RangeError: A is not positive definite.

    Source: Hestenes and Stiefel 1952, "Methods of conjugate gradients for solving linear systems"
    """
    x = [b * 0 for b in right]
    rest, way = list(right), list(right)
    square = _dot(rest, rest).item()
    goal = square * tolerance**2
    for _ in range(steps):
        if square <= goal:
            break
        curved = product(way)
        curvature = _dot(way, curved).item()
        if not curvature > 0:
            raise RangeError(
                f"conjugate gradients: the curvature along a direction is {curvature:g}, not above 0. "
                "Give more "
                "damping."
            )
        length = square / curvature
        x = [a + w * length for a, w in zip(x, way, strict=True)]
        rest = [r - c * length for r, c in zip(rest, curved, strict=True)]
        before, square = square, _dot(rest, rest).item()
        way = [r + w * (square / before) for r, w in zip(rest, way, strict=True)]
    return x
