"""Derivatives of functions: products with Jacobians and Hessians, and these themselves.

Products with a Jacobian from the right are the derivative of the product from the left (Townsend 2017, "A new
trick for calculating Jacobian vector products").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, GradientError, ShapeError
from ..op.schema import OPS
from ..tensors.tensor import Tensor
from .derivatives import grad, irregular
from .grad_mode import under


def _tuple(given: Any, where: str, what: str) -> tuple[Tensor, ...]:
    several = given if isinstance(given, (tuple, list)) else (given,)
    for t in several:
        if not isinstance(t, Tensor):
            raise ArgumentError(f"{where}: {what} must be Tensors, not {type(t).__name__} {t!r}.")
    return tuple(several)


def _inputs(given: Any, where: str, create_graph: bool) -> tuple[Tensor, ...]:
    """The inputs as tensors that require grad: part of the graph that is there, if it goes on."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_()
        for t in _tuple(given, where, "inputs")
    )


def _outputs(func: Callable, inputs: tuple[Tensor, ...], where: str) -> tuple[tuple[Tensor, ...], bool]:
    out = func(*inputs)
    return _tuple(out, where, "outputs of func"), isinstance(out, (tuple, list))


def _vectors(v: Any, like: tuple[Tensor, ...], where: str, what: str) -> tuple[Tensor, ...]:
    """The given vectors, or the one that may be left out."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise GradientError(f"{where}: v can only be None where there is one {what} of one element.")
        return (like[0].new_ones(tuple(like[0].shape)),)
    found = _tuple(v, where, "v")
    if [tuple(t.shape) for t in found] != [tuple(t.shape) for t in like]:
        raise ShapeError(
            f"{where}: v has shapes {[tuple(t.shape) for t in found]}, the {what}s "
            f"{[tuple(t.shape) for t in like]}. They must be equal."
        )
    return found


def _gradients(outputs, inputs, vectors, create_graph: bool, strict: bool, where: str) -> tuple[Tensor, ...]:
    """The gradients, zeros for what does not take part."""
    used = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if strict and len(used) < len(outputs):
        raise GradientError(f"{where}: an output of func is independent of the inputs, and strict=True.")
    found: Any = [None] * len(inputs)
    if used:
        found = grad(
            [o for o, _ in used], inputs, [v for _, v in used], create_graph=create_graph, retain_graph=True,
            allow_unused=True,
        )  # fmt: skip
    if strict and any(g is None for g in found):
        raise GradientError(f"{where}: the output of func is independent of an input, and strict=True.")
    return tuple(t.new_zeros(tuple(t.shape)) if g is None else g for g, t in zip(found, inputs, strict=True))


def _given(found: Any, create_graph: bool) -> Any:
    """Results, outside the graph if that is not asked for."""
    if isinstance(found, tuple):
        return tuple(_given(f, create_graph) for f in found)
    return found if create_graph else found.detach()


def _as(found: tuple, given: Any) -> Any:
    return found if isinstance(given, (tuple, list)) else found[0]


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(inputs), v^T J): the product of a vector with the Jacobian.

    Args:
        func: of tensors; returns a tensor or several.
        inputs: a tensor or several.
        v: like the outputs; may be left out for one number.
        create_graph: let the results be differentiable.
        strict: refuse outputs and inputs that do not depend on each other, which give zeros otherwise.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.functional.vjp.html
    """

    def run():
        given = _inputs(inputs, "vjp", create_graph)
        outputs, several = _outputs(func, given, "vjp")
        vectors = _vectors(v, outputs, "vjp", "output")
        found = _gradients(outputs, given, vectors, create_graph, strict, "vjp")
        return outputs if several else outputs[0], _as(found, inputs)

    return _given(under(True, run), create_graph)


def _push(outputs, inputs, vectors, create_graph: bool, strict: bool, where: str) -> tuple[Tensor, ...]:
    """J v: the derivative of v^T J with respect to v, which stands for any here."""
    given = tuple(irregular(o) for o in outputs)
    pulled = _gradients(outputs, inputs, given, True, strict, where)
    return _gradients(pulled, given, vectors, create_graph, False, where)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(inputs), J v): the product of the Jacobian with a vector.

    Args:
        func, inputs, create_graph, strict: as in `vjp`.
        v: like the inputs; may be left out for one number.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.functional.jvp.html
    """

    def run():
        given = _inputs(inputs, "jvp", create_graph)
        vectors = _vectors(v, given, "jvp", "input")
        outputs, several = _outputs(func, given, "jvp")
        found = _push(outputs, given, vectors, create_graph, strict, "jvp")
        return (outputs, found) if several else (outputs[0], found[0])

    return _given(under(True, run), create_graph)


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: ``J[i, j] = d output[i] / d input[j]``, of the output's shape and then the input's.

    Args:
        func, inputs, create_graph, strict: as in `vjp`.
        vectorize: accepted; the rows are walks one after the other. `pellucid.func.jacrev` makes one of them.
        strategy: "reverse-mode", or "forward-mode" with ``vectorize=True``: all columns.

    Returns:
        A tensor; tuples of them, by output and then by input, where ``func`` returns or takes several.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.functional.jacobian.html
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ArgumentError(f"jacobian: strategy must be 'reverse-mode' or 'forward-mode', not {strategy!r}.")
    if strategy == "forward-mode" and (not vectorize or strict):
        raise ArgumentError("jacobian: strategy 'forward-mode' needs vectorize=True and strict=False.")

    def run():
        given = _inputs(inputs, "jacobian", create_graph)
        outputs, several = _outputs(func, given, "jacobian")
        if strategy == "forward-mode":
            rows = _columns(outputs, given, create_graph)
        else:
            rows = tuple(_rows(o, given, create_graph, strict) for o in outputs)
        rows = tuple(_as(r, inputs) for r in rows)
        return rows if several else rows[0]

    return _given(under(True, run), create_graph)


def _rows(output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool) -> tuple[Tensor, ...]:
    """The Jacobian of one output, by inputs: a walk for each of its elements."""
    shape, count = tuple(output.shape), output.numel()
    found: list[list[Tensor]] = [[] for _ in inputs]
    for k in range(count):
        one = output.new_zeros(count)
        one[k] = 1
        parts = _gradients((output,), inputs, (one.reshape(shape),), create_graph, strict, "jacobian")
        for rows, part in zip(found, parts, strict=True):
            rows.append(part)
    return tuple(
        _stacked(rows).reshape((*shape, *t.shape)) if rows else t.new_zeros((*shape, *t.shape))
        for rows, t in zip(found, inputs, strict=True)
    )


def _columns(outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...], create_graph: bool) -> tuple:
    """The Jacobians of all outputs, by inputs: a product for each element of the inputs."""
    found: list[list[Tensor]] = [[] for _ in outputs]
    for number, t in enumerate(inputs):
        columns: list[list[Tensor]] = [[] for _ in outputs]
        for k in range(t.numel()):
            one = t.new_zeros(t.numel())
            one[k] = 1
            vectors = [i.new_zeros(tuple(i.shape)) for i in inputs]
            vectors[number] = one.reshape(tuple(t.shape))
            for column, part in zip(
                columns, _push(outputs, inputs, vectors, create_graph, False, "jacobian"), strict=True
            ):
                column.append(part)
        for rows, column, o in zip(found, columns, outputs, strict=True):
            shape = (*o.shape, *t.shape)
            rows.append(_stacked(column).movedim(0, -1).reshape(shape) if column else o.new_zeros(shape))
    return tuple(map(tuple, found))


def _stacked(parts: list[Tensor]) -> Tensor:
    return parts[0].unsqueeze(0) if len(parts) == 1 else OPS["cat"].call([p.unsqueeze(0) for p in parts], 0)


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function of one number: the Jacobian of its gradient.

    Args:
        func: returns one element.
        inputs, create_graph, strict, vectorize: as in `jacobian`.
        outer_jacobian_strategy: its ``strategy``.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.functional.hessian.html
    """

    def gradient(*given: Tensor) -> Any:
        outputs, _ = _outputs(func, given, "hessian")
        _one_number(outputs, "hessian")
        found = _gradients(
            outputs, given, _vectors(None, outputs, "hessian", "output"), True, strict, "hessian"
        )
        return _as(found, inputs)

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def _one_number(outputs: tuple[Tensor, ...], where: str) -> None:
    if len(outputs) != 1 or outputs[0].numel() != 1:
        raise GradientError(f"{where}: func must return one Tensor of one element.")


def _second(func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool, where: str) -> Any:
    def run():
        given = _inputs(inputs, where, create_graph)
        vectors = _vectors(v, given, where, "input")
        outputs, _ = _outputs(func, given, where)
        _one_number(outputs, where)
        ones = _vectors(None, outputs, where, "output")
        slope = _gradients(outputs, given, ones, True, strict, where)
        if where == "vhp":
            found = _gradients(slope, given, vectors, create_graph, strict, where)
        else:
            found = _push(slope, given, vectors, create_graph, strict, where)
        return outputs[0], _as(found, inputs)

    return _given(under(True, run), create_graph)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(inputs), v^T H): the product of a vector with the Hessian.

    Args:
        func: returns one element.
        inputs, create_graph, strict: as in `vjp`.
        v: like the inputs.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.functional.vhp.html
    """
    return _second(func, inputs, v, create_graph, strict, "vhp")


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(inputs), H v): the product of the Hessian with a vector; `vhp` is the same and needs less.

    Args:
        func: returns one element.
        inputs, create_graph, strict: as in `vjp`.
        v: like the inputs.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html
    """
    return _second(func, inputs, v, create_graph, strict, "hvp")


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
