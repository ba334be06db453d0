"""What programs may do with the graph: see and replace what nodes save, and hear of several gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..errors import ArgumentError, GradientError, RangeError
from ..tensors.tensor import Tensor
from .edges import LEAF
from .engine import reached, walking
from .handle import Handle
from .nodes import Node, saving

# What says why hooks of saved tensors are refused now, the last one in force.
_refused: list[str] = []


class saved_tensors_hooks:
    """Within the context, whatever the graph saves is handed to ``pack_hook``, and what that returns is kept.

    Args:
        pack_hook: of a tensor; returns anything.
        unpack_hook: of what ``pack_hook`` returned; returns a tensor of the same values, shape and dtype.

    Raises:
        ArgumentError: one of them cannot be called.

    Source: https://pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise ArgumentError(f"saved_tensors_hooks: {name} must be a function, not {hook!r}.")
        self._pair = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _refused:
            raise GradientError(_refused[-1])
        saving.append(self._pair)

    def __exit__(self, *exc: Any) -> None:
        saving.pop()


class save_on_cpu(saved_tensors_hooks):
    """Within the context, what the graph saves is kept on the cpu device and brought back for the walk.

    Every saved tensor is read where it is saved, which waits for the device.

    Args:
        pin_memory: accepted.

    Source: https://pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "webgpu"):
        super().__init__(lambda t: (t.device, t.to("cpu", copy=True)), lambda kept: kept[1].to(kept[0]))


class _Copies:
    """What the context of `allow_mutation_on_saved_tensors` holds."""

    opened = False  # whether a program is within such a context

    def __init__(self) -> None:
        self.is_open = True

    def clear(self) -> None:
        """Let the copies of graphs within the context not be used any more."""
        self.is_open = False


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Copies]:
    """Within the context, tensors that the graph saved may be changed in place: it keeps copies.

    Every saved tensor is copied where it is saved, while PyTorch copies those that are changed. The walk
    backward belongs into the context, too.

    Raises:
        GradientError: it is within another one.

    Source: https://pytorch.org/docs/stable/autograd.html#saved-tensors-hooks

    Example:
        >>> import pellucid as torch
        >>> a = torch.ones(2, requires_grad=True, device="cpu")
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     b = a.clone()
        ...     out = b**2
        ...     _ = b.mul_(5)
        ...     out.sum().backward()
        >>> a.grad.tolist()
        [2.0, 2.0]
    """
    if _Copies.opened:
        raise GradientError(
            "allow_mutation_on_saved_tensors: contexts cannot be nested. Leave the outer one."
        )
    copies = _Copies()

    def unpack(kept: Tensor) -> Tensor:
        if not copies.is_open:
            raise GradientError(
                "allow_mutation_on_saved_tensors: the walk backward left the context in which the graph was "
                "made. Call backward() within it."
            )
        return kept

    with saved_tensors_hooks(lambda t: t.detach().clone(), unpack):
        _Copies.opened = True
        try:
            yield copies
        finally:
            _Copies.opened = False
            copies.clear()


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the context, hooks of saved tensors are refused.

    Args:
        error_message: what the error says.

    Raises:
        GradientError: there are such hooks already.

    Source: https://pytorch.org/docs/stable/autograd.html#torch.autograd.graph.disable_saved_tensors_hooks
    """
    if saving:
        raise GradientError(error_message)
    _refused.append(error_message)
    try:
        yield
    finally:
        _refused.pop()


class _Handles(Handle):
    """Several handles as one."""

    def __init__(self, handles: Iterable[Handle]):
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> Handle:
    """Call a function when a walk knows the gradients of several tensors.

    Args:
        tensors: they require grad.
        fn: takes the list of gradients, None for tensors that the walk does not come to; in mode "any" the
            first gradient that is known.
        mode: "all" or "any".

    Raises:
        RangeError: it is another mode.
        GradientError: a tensor does not require grad.

    Source: https://pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook
    """
    if mode not in ("all", "any"):
        raise RangeError(f"register_multi_grad_hook: mode must be 'all' or 'any', not {mode!r}.")
    walk: Any = None
    known: list = []
    left = 0

    def see(k: int, g: Tensor) -> None:
        nonlocal walk, known, left
        if walk is not walking.get():
            walk, known = walking.get(), [None] * len(tensors)
            places = reached()
            left = sum((id(t) if t._node is LEAF else t._node) in places for t in tensors)
            if mode == "any":
                fn(g)
        known[k], left = g, left - 1
        if not left and mode == "all":
            fn(known)

    def hook(k: int) -> Callable:
        return lambda g: see(k, g)

    return _Handles([t.register_hook(hook(k)) for k, t in enumerate(tensors)])


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Note that a tensor, or several, was changed in place by means that the library does not see."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t._storage.version += 1


class GradientEdge(NamedTuple):
    """Where a gradient goes.

    Attributes:
        node: the node that computed the tensor, or the leaf itself.
        output_nr: which of the node's results it is.
    """

    node: Any
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place of a tensor in the graph.

    Raises:
        GradientError: it does not require grad.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.graph.get_gradient_edge.html
    """
    if not tensor.requires_grad:
        raise GradientError("get_gradient_edge: the tensor does not require grad.")
    return GradientEdge(tensor.grad_fn or tensor, tensor._index)


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip
