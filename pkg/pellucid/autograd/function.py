"""Functions with a forward and a backward of their own: `Function`, its context, `once_differentiable`."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ..device.stream import stream
from ..errors import ArgumentError, GradientError, ShapeError
from ..tensors.tensor import Tensor
from .edges import LEAF, edge, note_change
from .grad_mode import grad_enabled, is_grad_enabled, under
from .nodes import Node, Saved, freed, unpack


class FunctionCtx:
    """What `Function.forward` hands to `Function.backward`; programs may give it attributes of their own.

    Attributes:
        needs_input_grad: for each input, whether its gradient is asked for.

    Source: https://pytorch.org/docs/stable/autograd.html#context-method-mixins
    """

    needs_input_grad: tuple[bool, ...] = ()
    _to_save: tuple = ()
    _dirty: tuple = ()
    _constant: tuple = ()
    _materialize = True
    _of: Any = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where ``saved_tensors`` gives them; changes in place are noticed.

        Raises:
            ArgumentError: something is neither a tensor nor None.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise ArgumentError(
                    f"save_for_backward: keeps Tensors or None, not {type(t).__name__} {t!r}. Make that an "
                    "attribute of ctx."
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Accepted; there is no forward mode that would ask for them."""

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` kept.

        Raises:
            GradientError: it was freed, or changed in place since.
        """
        node = None if self._of is None else self._of()
        if node is None:
            return self._to_save
        if node.released:
            raise freed(node.public)
        return tuple(
            unpack(s, node, f"saved tensor {k}", is_grad_enabled())
            for k, s in enumerate(node.saved.get("tensors", ()))
        )

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` changed in place; they must be among its results."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which results have no gradient; `backward` is given zeros for them."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` is given zeros for results that nothing used, instead of None."""
        self._materialize = value


class FunctionNode(Node):
    """The step of a `Function` in the graph."""

    __slots__ = ("ctx", "function")

    def __init__(self, function: type[Function], edges: dict[str, Any], ctx: FunctionCtx):
        name = function.__name__
        super().__init__(SimpleNamespace(name=name, public=name), edges, {"tensors": ()})
        self.function, self.ctx = function, ctx

    def name(self) -> str:
        return f"{self.public}Backward"

    def gradients(self, grads: list, keep_graph: bool) -> dict[str, Any]:
        if self.released:
            raise freed(self.public)
        if self.ctx._materialize:
            like = next(g for g in grads if g is not None)
            grads = [
                like.new_zeros(tuple(m.shape), dtype=m.dtype) if g is None else g
                for g, m in zip(grads, self.outputs, strict=True)
            ]
        found = self.function.backward(self.ctx, *grads)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        edges = self.edges["inputs"]
        if len(found) < len(edges) or any(g is not None for g in found[len(edges) :]):
            raise GradientError(
                f"function {self.name()} returned an incorrect number of gradients (expected {len(edges)}, "
                f"got {len(found)})"
            )
        found = found[: len(edges)]
        for k, (g, (target, m)) in enumerate(zip(found, edges, strict=True)):
            self._check(k, g, target, m)
        return {"inputs": found}

    def _check(self, k: int, g: Any, target: Any, m: Any) -> None:
        """Refuse what cannot be the gradient of an input."""
        if g is None:
            return
        if m is None:
            raise GradientError(
                f"function {self.name()} returned a gradient different than None at position {k + 1}, but "
                "the corresponding forward input was not a Tensor"
            )
        if not isinstance(g, Tensor):
            raise ArgumentError(
                f"function {self.name()}: backward must return Tensors or None, not {type(g).__name__} {g!r}"
            )
        shape, wanted = tuple(g.shape), tuple(m.shape)
        lead = len(shape) - len(wanted)
        fits = lead >= 0 and all(n in (1, have) for n, have in zip(wanted, shape[lead:], strict=True))
        if target is not None and not fits:
            raise ShapeError(
                f"Function {self.name()} returned an invalid gradient at index {k} - got {list(shape)} but "
                f"expected shape compatible with {list(wanted)}"
            )
        if target is not None and g.device is not m.device:
            raise GradientError(
                f"Function {self.name()} returned an invalid gradient at index {k}: it is on {g.device}, the "
                f"input on {m.device}"
            )


class Function:
    """An operation with a derivative of its own: subclass it, define `forward` and `backward`, call `apply`.

    Either ``forward(ctx, *inputs)`` saves what `backward` needs, or ``forward(*inputs)`` computes and
    ``setup_context(ctx, inputs, output)`` saves. ``backward(ctx, *grads)`` returns a gradient for each
    input, None for what has none. Under `vmap` it runs for one example after the other, whatever ``vmap``
    the class defines. A call whose gradient is wanted is not captured by `compile`.

    Source: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function

    Example:
        >>> import pellucid as torch
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> x = torch.tensor([3.0], requires_grad=True, device="cpu")
        >>> Double.apply(x).sum().backward()
        >>> x.grad.tolist()
        [2.0]
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any):
        raise GradientError(
            f"{type(self).__name__}: is called by its method apply, not made. Write "
            f"{type(self).__name__}.apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results; to be defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple, output: Any) -> None:
        """Save what `backward` needs, where `forward` takes no context."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the inputs; to be defined."""
        raise NotImplementedError("You must implement the backward function for custom autograd.Function.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`, and hang its results into the graph.

        Args:
            args: of `forward`, behind the context.
            kwargs: of `forward` that takes a context; they have no gradients.
        """
        if any(getattr(a, "is_batched", False) for a in args):
            from .batching import loop

            return loop(cls.apply, args, kwargs)
        ctx = FunctionCtx()
        wants = [isinstance(a, Tensor) and a._node is not None for a in args]
        recorded = grad_enabled.get() and any(wants)
        if recorded and (capturing := stream().capturing) is not None:
            capturing.refuse(f"the backward of {cls.__name__} is Python that runs at every walk")
        ctx.needs_input_grad = tuple(recorded and w for w in wants)
        edges = [(edge(a), a._meta) if isinstance(a, Tensor) else (None, None) for a in args]
        if cls.setup_context is Function.setup_context:
            out = under(False, cls.forward, ctx, *args, **kwargs)
        else:
            out = under(False, cls.forward, *args, **kwargs)
            under(False, cls.setup_context, ctx, args, out)
        if not recorded:
            return out
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        node = FunctionNode(cls, {"inputs": edges}, ctx)
        hung = _hang(node, ctx, args, results)
        if not isinstance(out, (tuple, list)):
            return hung[0]
        kind: Any = type(out)
        return kind._make(hung) if hasattr(kind, "_make") else kind(hung)


class InplaceFunction(Function):
    """A `Function` by the name that programs of older versions derive from, where it may work in place.

    Source: https://pytorch.org/docs/stable/autograd.html#torch.autograd.function.InplaceFunction
    """


def _hang(node: FunctionNode, ctx: FunctionCtx, args: Sequence[Any], results: list) -> list:
    """The results of a function with their place in the graph, and what it saved."""
    for t in ctx._dirty:
        if not any(t is r for r in results):
            raise GradientError(f"{node.public}: a tensor of mark_dirty is not among the results of forward.")
        if t._node is LEAF or t._base is not None:
            kind = "a leaf that requires grad" if t._node is LEAF else "a view"
            raise GradientError(f"{node.public}: {kind} cannot be changed in place. Work on a clone.")
    found, metas = [], []
    for r in results:
        if not isinstance(r, Tensor):
            found.append(r)
            continue
        is_dirty = any(r is t for t in ctx._dirty)
        constant = any(r is t for t in ctx._constant) or r._meta.dtype.kind not in "fc"
        given = any(r is a for a in args)
        if not is_dirty and not constant and (given or r._node is not None):
            r = r.detach()
        if not constant:
            if is_dirty:
                note_change()
            r._node, r._index = node, len(metas)
        found.append(r)
        metas.append(r._meta)
    node.outputs = tuple(metas)
    places = {id(r): k for k, r in enumerate(results)}
    saved = []
    for t in ctx._to_save:
        mine = None if t is None else found[places[id(t)]] if id(t) in places else t
        if mine is None or mine._node is not node:
            saved.append(None if t is None else Saved(t))
        else:  # the node must not hold itself
            kept = Saved(mine)
            kept.node = weakref.ref(node)
            saved.append(kept)
    node.saved = {"tensors": saved} if saved else {}
    ctx._to_save, ctx._of = (), weakref.ref(node)
    return found


class _Twice(Function):
    """The results of a backward that has no derivative."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple(None if t is None else t.detach() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise GradientError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(function: Callable) -> Callable:
    """A decorator of `Function.backward` that is no differentiable Python: a second derivative is refused.

    Source: https://pytorch.org/docs/stable/notes/extending.html
    """

    @functools.wraps(function)
    def wrapper(ctx: FunctionCtx, *grads: Any) -> Any:
        out = under(False, function, ctx, *grads)
        if not is_grad_enabled():
            return out
        several = out if isinstance(out, tuple) else (out,)
        fakes = [t if t is None else t.detach().requires_grad_() for t in several]
        hung = _Twice.apply(*fakes)
        return hung if isinstance(out, tuple) else hung[0]

    return wrapper


__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
