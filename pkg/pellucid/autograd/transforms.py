"""Derivatives as functions of functions: `grad`, `vjp`, `jvp`, Jacobians and Hessians that nest, also with
`vmap`.

Each makes new leaves of what it differentiates by, with the batches of every `vmap` around it, so that
examples have gradients of their own. A result keeps its graph where something outside asks for derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ..errors import ArgumentError, GradientError, ShapeError
from ..op.pytree import flatten, unflatten
from ..op.schema import OPS
from ..tensors.shape import axis
from ..tensors.tensor import Tensor
from . import derivatives
from .batching import Level, enclose, full, levels, loop
from .grad_mode import is_grad_enabled, under
from .mapped import vmap
from .nodes import behind

Argnums = int | tuple[int, ...]


class Pushed:
    """Values of a function, and the tensors by which it is differentiated, to both sides.

    Args:
        where: for messages.
        levels: calls of `vmap` around it, whose batches all have as axes.
        inputs: by what.
        roots: of what.
        goes_on: whether derivatives may be asked for outside.
    """

    def __init__(
        self,
        where: str,
        levels: tuple[Level, ...],
        inputs: Sequence[Tensor],
        roots: Sequence[Tensor],
        goes_on: bool,
    ):
        self.where, self.levels, self.inputs, self.roots = where, levels, inputs, roots
        self.goes_on = goes_on and self._has_others()

    def _has_others(self) -> bool:
        """Whether something else than the leaves made here wants gradients."""
        if any(not t.is_leaf for t in self.inputs):
            return True
        mine = {id(t) for t in self.inputs}
        nodes = [t.grad_fn for t in self.roots if t.grad_fn is not None]
        return any(isinstance(x, Tensor) and id(x) not in mine for node in nodes for x in behind(node))

    def pull(self, vectors: Sequence[Tensor], goes_on: bool | None = None) -> list[Tensor]:
        """The gradients of the inputs from those of the outputs."""
        goes_on = self.goes_on if goes_on is None else goes_on
        used = [(r, v) for r, v in zip(self.roots, vectors, strict=True) if r.requires_grad]
        return _walked([r for r, _ in used], self.inputs, [v for _, v in used], goes_on)

    def push(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """The change of the outputs with the inputs: the derivative of `pull` by its vectors."""
        self._prepare()
        used = [(p, t) for p, t in zip(self.pulled, tangents, strict=True) if p.requires_grad]
        return _walked([p for p, _ in used], self.vectors, [t for _, t in used], self.goes_on)

    def is_reached(self) -> bool:
        """Whether a root depends on an input."""
        self._prepare()
        return any(p.requires_grad for p in self.pulled)

    def _prepare(self) -> None:
        if not hasattr(self, "vectors"):
            self.vectors = [derivatives.irregular(r) for r in self.roots]
            self.pulled = under(True, self.pull, self.vectors, True)


class _Point(Pushed):
    """Where a function is differentiated: its value, and the leaves that stand for its arguments.

    Args:
        func: the function.
        args, kwargs: its arguments.
        argnums: which of them.
        where: for messages.
        has_aux: it returns a pair, whose second part is only handed on.
    """

    def __init__(
        self, func: Callable, args: Sequence[Any], kwargs: dict, argnums: Argnums, where: str, has_aux: bool
    ):
        self.where, self.levels = where, levels()
        self.one = not isinstance(argnums, (tuple, list))
        numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
        if not all(isinstance(k, int) and -len(args) <= k < len(args) for k in numbers):
            raise ArgumentError(f"{where}: argnums={argnums!r} for a function of {len(args)} arguments.")
        numbers = [axis(k, len(args)) for k in numbers]
        given: list[Any] = []
        self.structure = flatten([args[k] for k in numbers], given)
        for t in given:
            if not isinstance(t, Tensor) or not t.is_floating_point():
                raise ArgumentError(f"{where}: differentiates by floating-point Tensors, not {t!r}.")
        self.inputs = [self._leaf(t) for t in given]
        shown = unflatten(self.structure, iter([enclose(t, self.levels) for t in self.inputs]))
        full_args = list(args)
        for k, value in zip(numbers, shown, strict=True):
            full_args[k] = value
        out = under(True, func, *full_args, **kwargs)
        self.aux = None
        if has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise ArgumentError(f"{where}: with has_aux=True the function must return (output, aux).")
            out, aux = out
            self.aux = self._outside(aux)
        found: list[Any] = []
        self.form = flatten(out, found)
        for t in found:
            if not isinstance(t, Tensor):
                raise ArgumentError(
                    f"{where}: the function must return Tensors, not {type(t).__name__} {t!r}."
                )
        self.outputs = found
        super().__init__(
            where, self.levels, self.inputs, [full(t, self.levels) for t in found], is_grad_enabled()
        )

    def _leaf(self, t: Tensor) -> Tensor:
        x = full(t, self.levels)
        # A new handle on the same value: the gradient stops here although the graph goes on.
        return x.view_as(x) if x.requires_grad and is_grad_enabled() else x.detach().requires_grad_()

    def _outside(self, value: Any) -> Any:
        """A value that was made here, without the leaves if nothing outside goes on from it."""
        leaves: list[Any] = []
        form = flatten(value, leaves)
        return unflatten(form, iter([t.detach() if isinstance(t, Tensor) else t for t in leaves]))

    def value(self) -> Any:
        """What the function returned."""
        outs = self.outputs if self.goes_on else [t.detach() for t in self.outputs]
        return unflatten(self.form, iter(outs))

    def inner(self, given: Any, like: Sequence[Tensor], what: str) -> list[Tensor] | Level:
        """Vectors with the batches that the leaves have; or a level that they have besides."""
        found: list[Any] = []
        flatten(given, found)
        if len(found) != len(like):
            raise ArgumentError(f"{self.where}: {len(found)} {what} for {len(like)} Tensors.")
        for t, m in zip(found, like, strict=True):
            if not isinstance(t, Tensor):
                raise ArgumentError(f"{self.where}: {what} must be Tensors, not {type(t).__name__} {t!r}.")
            if tuple(t.shape) != tuple(m.shape):
                raise ShapeError(
                    f"{self.where}: {what} have shape {tuple(t.shape)}, where {tuple(m.shape)} is needed."
                )
            if self.levels and getattr(t, "is_batched", False) and t._level not in self.levels:  # type: ignore[attr-defined]
                return t._level  # type: ignore[attr-defined]
        return [full(t, self.levels) for t in found]

    def given(self, found: Sequence[Tensor], form: Any) -> Any:
        return unflatten(form, iter([enclose(t, self.levels) for t in found]))


def _walked(roots: list, inputs: Sequence[Tensor], vectors: list, goes_on: bool) -> list[Tensor]:
    found: Sequence[Tensor | None] = [None] * len(inputs)
    if roots:
        found = derivatives.grad(
            roots, inputs, vectors, retain_graph=True, create_graph=goes_on, allow_unused=True
        )
    return [t.new_zeros(tuple(t.shape)) if g is None else g for g, t in zip(found, inputs, strict=True)]


def grad_and_value(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """The function that returns ``func``'s gradient and its value, which is one number.

    Args:
        func: of tensors, or of lists, tuples and dictionaries of them.
        argnums: by which arguments; a tuple gives a tuple.
        has_aux: ``func`` returns (value, aux), and the function (gradient, (value, aux)).

    Source: https://pytorch.org/docs/stable/generated/torch.func.grad_and_value.html
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        at = _Point(func, args, kwargs, argnums, "grad", has_aux)
        if len(at.outputs) != 1 or at.form is not type(at.outputs[0]):
            raise GradientError("grad: Expected f(*args) to return a scalar tensor, got several.")
        if at.outputs[0].dim():
            raise GradientError(
                "grad: Expected f(*args) to return a scalar tensor, got tensor with "
                f"{at.outputs[0].dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        found = at.pull([r.new_ones(tuple(r.shape)) for r in at.roots])
        slopes = at.given(found, at.structure)
        slopes = slopes[0] if at.one else tuple(slopes)
        return slopes, (at.value(), at.aux) if has_aux else at.value()

    return call


def grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """The function that returns ``func``'s gradient; see `grad_and_value`.

    Source: https://pytorch.org/docs/stable/generated/torch.func.grad.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([1.0, 2.0], device="cpu")
        >>> torch.vmap(torch.func.grad(torch.sin))(x).tolist() == torch.cos(x).tolist()
        True
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        slopes, value = both(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return call


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), vjp_fn): the value, and the function of vectors like it that gives their products with
    the Jacobian, a tuple by ``primals``; with ``has_aux`` also the second part of what ``func`` returns.

    Source: https://pytorch.org/docs/stable/generated/torch.func.vjp.html
    """
    at = _Point(func, primals, {}, tuple(range(len(primals))), "vjp", has_aux)

    def pull(*vectors: Any) -> tuple:
        given = vectors[0] if len(vectors) == 1 and at.form is type(at.outputs[0]) else vectors
        given = given[0] if isinstance(given, tuple) and len(given) == 1 and len(at.outputs) > 1 else given
        inner = at.inner(given, at.outputs, "cotangents")
        if isinstance(inner, Level):
            return loop(pull, vectors, {})
        return tuple(at.given(at.pull(inner), at.structure))

    return (at.value(), pull, at.aux) if has_aux else (at.value(), pull)


def _linear(at: _Point) -> Callable:
    def push(*tangents: Any) -> Any:
        inner = at.inner(tangents, [enclose(t, at.levels) for t in at.inputs], "tangents")
        if isinstance(inner, Level):
            return loop(push, tangents, {})
        return at.given(at.push(inner), at.form)

    return push


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """(func(*primals), jvp_fn): the value, and the function of tangents like ``primals`` that gives the
    products of the Jacobian with them.

    Source: https://pytorch.org/docs/stable/generated/torch.func.linearize.html
    """
    at = _Point(func, primals, {}, tuple(range(len(primals))), "linearize", False)
    return at.value(), _linear(at)


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(func(*primals), J tangents): the value and its change; by two walks backward.

    Args:
        func: the function.
        primals, tangents: tuples of its arguments, and of tensors like them.
        strict: accepted.
        has_aux: also return the second part of what ``func`` returns.

    Source: https://pytorch.org/docs/stable/generated/torch.func.jvp.html
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError("jvp: primals and tangents must be tuples.")
    at = _Point(func, tuple(primals), {}, tuple(range(len(primals))), "jvp", has_aux)
    pushed = _linear(at)(*tangents)
    return (at.value(), pushed, at.aux) if has_aux else (at.value(), pushed)


def _units(t: Tensor, number: int, like: Sequence[Tensor]) -> list[Tensor]:
    """A batch of unit vectors for one of several tensors, with zeros for the others."""
    n = t.numel()
    one = t.new_zeros((n, n))
    one.diagonal().fill_(1)
    return [
        one.reshape((n, *t.shape)) if k == number else other.new_zeros((n, *other.shape))
        for k, other in enumerate(like)
    ]


def _for_each(function: Callable, units: list[Tensor], chunk_size: int | None) -> list[Tensor]:
    """The results for a batch of unit vectors: at once, or one after the other within a `vmap`."""

    def flat(*vectors: Tensor) -> list[Tensor]:
        return function(vectors)

    if not levels() and units[0].shape[0]:
        return vmap(flat, chunk_size=chunk_size)(*units)
    rows = [flat(*[u[k] for u in units]) for k in range(units[0].shape[0])]
    return [_stack([row[j] for row in rows]) for j in range(len(rows[0]))]


def _stack(parts: list[Tensor]) -> Tensor:
    return OPS["cat"].call([p.unsqueeze(0) for p in parts], 0)


def jacrev(
    func: Callable, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable:
    """The function that returns ``func``'s Jacobian, of the shape of the output and then of the input: by
    rows, in one walk (within `vmap` a walk for each).

    Args:
        func, argnums, has_aux: as in `grad`.
        chunk_size: so many rows at once.

    Source: https://pytorch.org/docs/stable/generated/torch.func.jacrev.html
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        at = _Point(func, args, kwargs, argnums, "jacrev", has_aux)
        blocks: list[Any] = []
        for number, out in enumerate(at.outputs):
            if not out.numel():
                rows = [t.new_zeros((0, *t.shape)) for t in at.inputs]
            else:
                rows = _for_each(
                    lambda v: [enclose(g, at.levels) for g in at.pull([full(t, at.levels) for t in v])],
                    _units(out, number, at.outputs), chunk_size,
                )  # fmt: skip
            shaped = [r.reshape((*out.shape, *r.shape[1:])) for r in rows]
            block = unflatten(at.structure, iter(shaped))
            blocks.append(block[0] if at.one else tuple(block))
        made = unflatten(at.form, iter(blocks))
        return (made, at.aux) if has_aux else made

    return call


def jacfwd(
    func: Callable,
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable:
    """The function that returns ``func``'s Jacobian by columns; see `jacrev`.

    Args:
        func, argnums, has_aux: as in `grad`.
        chunk_size: so many columns at once.
        randomness: accepted: ``func`` itself runs once.

    Source: https://pytorch.org/docs/stable/generated/torch.func.jacfwd.html
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        at = _Point(func, args, kwargs, argnums, "jacfwd", has_aux)
        inputs = [enclose(t, at.levels) for t in at.inputs]
        columns: list[list[Tensor]] = [[] for _ in at.outputs]
        for number, t in enumerate(inputs):
            found = _for_each(
                lambda v: [enclose(g, at.levels) for g in at.push([full(u, at.levels) for u in v])],
                _units(t, number, inputs), chunk_size,
            )  # fmt: skip
            for column, out, part in zip(columns, at.outputs, found, strict=True):
                column.append(part.movedim(0, -1).reshape((*out.shape, *t.shape)))
        blocks = [unflatten(at.structure, iter(c)) for c in columns]
        made = unflatten(at.form, iter([b[0] if at.one else tuple(b) for b in blocks]))
        return (made, at.aux) if has_aux else made

    return call


def hessian(func: Callable, argnums: Argnums = 0) -> Callable:
    """The function that returns the second derivatives of ``func``, whose value is one number:
    ``jacfwd(jacrev(func))``.

    Source: https://pytorch.org/docs/stable/generated/torch.func.hessian.html
    """
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
