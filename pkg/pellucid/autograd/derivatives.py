"""`backward` and `grad`: walks through the graph from results to leaves, or to tensors that are named."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any

from ..errors import ArgumentError, GradientError, RangeError, ShapeError
from ..tensors.dtypes import float32
from ..tensors.tensor import Tensor
from .engine import call_after, walk
from .grad_mode import under


def backward(
    tensors, grad_tensors=None, retain_graph: bool | None = None, create_graph: bool = False, inputs=None
) -> None:
    """Add to ``.grad`` of every leaf the derivative of the sum of ``tensors`` with respect to it.

    Args:
        tensors: a tensor or several; without ``grad_tensors`` each must have one element.
        grad_tensors: the incoming gradients, same shapes.
        retain_graph: keep what the graph saved for another walk (``create_graph`` if not given).
        create_graph: record the walk, for derivatives of derivatives.
        inputs: add to these leaves only.

    Raises:
        GradientError: nothing requires grad, the graph was freed, or a saved value was changed.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.backward.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([3.0], requires_grad=True, device="cpu")
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [6.0]
    """
    roots = _roots(tensors, grad_tensors, "backward")
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        walk(roots, None, keep, create_graph)
        return
    inputs = list({id(t): t for t in _several(inputs, "backward", "inputs")}.values())
    if not inputs:
        raise GradientError("backward: 'inputs' is empty. Name leaves, or leave it out for all.")
    for t in inputs:
        _takes_part(t, "backward")
    for t, g in zip(inputs, walk(roots, inputs, keep, create_graph), strict=True):
        if g is not None:
            t._grad = g if t._grad is None else under(create_graph, add, t._grad, g)
            call_after(t)


def irregular(t: Tensor) -> Tensor:
    """Vectors that stand for any, by which a walk back is differentiated: it is linear in them, but where its
    formulas look at signs, zero would be a place apart, and equal numbers cancel out."""
    count = t.new_ones(t.numel(), dtype=float32).cumsum(0)
    return (count.sin() + 1.5).reshape(tuple(t.shape)).to(t.dtype).requires_grad_()


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
):
    """The gradients of the sum of ``outputs`` with respect to ``inputs``, as a tuple; ``.grad`` is not
    touched.

    Args:
        outputs: a tensor or several.
        inputs: a tensor or several, leaves or not.
        grad_outputs: the incoming gradients.
        retain_graph, create_graph: as in `backward`.
        only_inputs: accepted; no other ``.grad`` is touched.
        allow_unused: give None for inputs that did not take part, instead of an error.
        is_grads_batched: ``grad_outputs`` have one more axis, the first: several walks by `vmap`, whose
            gradients have that axis, too.
        materialize_grads: give zeros for inputs that did not take part.

    Returns:
        A tuple of tensors, one per input.

    Raises:
        GradientError: as `backward`, and for an input that did not take part.
        RangeError: ``materialize_grads`` with ``allow_unused=False``.
        ArgumentError: a batch without ``grad_outputs``.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.grad.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor(2.0, requires_grad=True, device="cpu")
        >>> (first,) = torch.autograd.grad(x**3, x, create_graph=True)
        >>> torch.autograd.grad(first, x)[0].item()
        12.0
    """
    if allow_unused is None:
        allow_unused = materialize_grads
    if materialize_grads and not allow_unused:
        raise RangeError("grad: materialize_grads=True gives zeros where allow_unused=False wants an error.")
    inputs = _several(inputs, "grad", "inputs")
    for t in inputs:
        _takes_part(t, "grad")
    if is_grads_batched:
        if grad_outputs is None:
            raise ArgumentError("grad: is_grads_batched=True needs grad_outputs, which have the axis.")
        vectors = _several(grad_outputs, "grad", "grad_outputs", True)
        results = _batched(outputs, inputs, vectors, create_graph, allow_unused)
    else:
        roots = _roots(outputs, grad_outputs, "grad")
        keep = create_graph if retain_graph is None else retain_graph
        results = walk(roots, inputs, keep, create_graph)
    if not allow_unused and any(g is None for g in results):
        raise GradientError(
            "grad: one of the inputs did not take part in the outputs. Give allow_unused=True to get None "
            "for it."
        )
    if materialize_grads:  # without the axis of a batch, as PyTorch
        results = [t.new_zeros(t.shape) if g is None else g for t, g in zip(inputs, results, strict=True)]
    return tuple(results)


def _batched(
    outputs: Any, inputs: list[Tensor], vectors: list, create_graph: bool, allow_unused: bool
) -> list[Tensor | None]:
    """The gradients for each example of a batch of vectors."""
    from .mapped import vmap

    unused: list[bool] = []

    def one(*gradients: Tensor) -> tuple[Tensor, ...]:
        found = grad(outputs, inputs, gradients, True, create_graph, allow_unused=allow_unused)
        unused[:] = [g is None for g in found]
        return tuple([g for g in found if g is not None])

    found = iter(vmap(one)(*vectors))
    return [None if is_unused else next(found) for is_unused in unused]


def _takes_part(t: Tensor, where: str) -> None:
    if t._node is None:
        raise GradientError(
            f"{where}: one of the inputs does not require grad. Make it with requires_grad=True before it "
            "is used."
        )


def _several(given: Any, where: str, name: str, optional: bool = False) -> list:
    """A tensor or several, as a list.

    Raises:
        TypeError: it is something else.
    """
    given = [given] if isinstance(given, Tensor) else given
    kind = "Tensors or None" if optional else "Tensors"
    if not isinstance(given, Iterable):
        raise ArgumentError(f"{where}(): {name} must be {kind}, not {type(given).__name__} {given!r}")
    given = list(given)
    for g in given:
        if not (isinstance(g, Tensor) or (optional and g is None)):
            raise ArgumentError(f"{where}(): {name} must be {kind}, not {type(g).__name__} {g!r}")
    return given


def _roots(tensors: Any, gradients: Any, where: str) -> list[tuple[Tensor, Tensor]]:
    """The tensors at which a walk begins, each with the gradient that comes in there, in the tensor's dtype.

    Raises:
        GradientError: a tensor is outside the graph, or gradients are missing, too many or on another device.
        ShapeError: a gradient has another shape.
    """
    tensors = _several(tensors, where, "tensors")
    gradients = [None] * len(tensors) if gradients is None else _several(gradients, where, "gradients", True)
    if len(gradients) != len(tensors):
        raise GradientError(
            f"{where}: {len(gradients)} gradients for {len(tensors)} tensors. Give one per tensor, or None."
        )
    roots = []
    for t, g in zip(tensors, gradients, strict=True):
        if t._node is None:
            raise GradientError(
                f"{where}: the tensor does not require grad and has no grad_fn. Compute it from tensors "
                "with requires_grad=True."
            )
        if g is None:
            if t._meta.dtype.is_complex:
                raise GradientError(
                    f"{where}: grad can be created implicitly only for real numbers, and this is "
                    f"{t._meta.dtype}. Give a gradient."
                )
            if t._meta.numel != 1:
                raise GradientError(
                    f"{where}: grad can be created implicitly only for one element, and shape is "
                    f"{tuple(t._meta.shape)}. Give a gradient, or reduce first."
                )
            g = t.new_ones(t._meta.shape)
        elif g._meta.shape != t._meta.shape:
            raise ShapeError(
                f"{where}: the gradient has shape {tuple(g._meta.shape)}, the tensor "
                f"{tuple(t._meta.shape)}. They must be equal."
            )
        elif g._meta.device is not t._meta.device:
            raise GradientError(
                f"{where}: the gradient is on {g._meta.device}, the tensor on {t._meta.device}. Move the "
                f"gradient with .to('{t._meta.device}')."
            )
        elif g._meta.dtype is not t._meta.dtype:
            g = g.to(t._meta.dtype)
        roots.append((t, g))
    return roots


__all__ = ["backward", "grad"]
