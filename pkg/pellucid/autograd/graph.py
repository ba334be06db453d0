"""What programs may do with the graph: see and replace what nodes save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import ArgumentError, GradientError
from ..tensors.tensor import Tensor
from .nodes import Node, saving


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


__all__ = ["GradientEdge", "Node", "get_gradient_edge", "save_on_cpu", "saved_tensors_hooks"]
