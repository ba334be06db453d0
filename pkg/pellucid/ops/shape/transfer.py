"""Moving tensors between devices: explicit, and differentiable."""

from __future__ import annotations

from ...autograd.edges import edge
from ...autograd.grad_mode import is_grad_enabled
from ...autograd.nodes import Node
from ...device import device as Device
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor


class _Transfer:
    """What the graph needs to know of a move: the gradient moves back."""

    name = "to_copy"
    arguments = ()
    outputs = ("out",)
    grad = {"input": (lambda g, origin: transfer(g, origin), ("g", "origin"))}


def transfer(x: Tensor, target: Device) -> Tensor:
    """The values of ``x`` on another device; waits when they come from the GPU."""
    out = tensor(x.detach().numpy(), dtype=x.dtype, device=target)
    if x._node is not None and is_grad_enabled():
        node = Node(_Transfer, {"input": (edge(x), x._meta)}, {"origin": x._meta.device})
        node.outputs = (out._meta,)
        out._node, out._index = node, 0
    return out
