"""Two tensors that change places, with all who hold them: PyTorch's ``torch.utils.swap_tensors``."""

from __future__ import annotations

import gc
import weakref

from ..autograd.edges import LEAF, views_of
from ..errors import ArgumentError, GradientError
from ..tensors.meta import Meta
from ..tensors.tensor import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let each of two tensors be what the other is: values, dtype, device, class and attributes.

    Who holds one of them, such as a module or an optimizer, then holds the other's content.

    Args:
        t1, t2: leaves of the graph.

    Raises:
        ArgumentError: one is no tensor, or has a weak reference.
        GradientError: one is a result that the graph records, or a view, or has views; or a graph that is
            there would give it a gradient, which were the other one's.

    Source: https://pytorch.org/docs/stable/generated/torch.utils.swap_tensors.html

    Example:
        >>> import pellucid as torch
        >>> a, b = torch.ones(2, device="cpu"), torch.zeros(3, device="cpu")
        >>> torch.utils.swap_tensors(a, b)
        >>> a.tolist(), b.tolist()
        ([0.0, 0.0, 0.0], [1.0, 1.0])
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise ArgumentError(f"swap_tensors: {name} must be a Tensor, not {type(t).__name__}.")
        if weakref.getweakrefs(t):
            raise ArgumentError(f"swap_tensors: {name} has a weak reference, which would see the other one.")
        if t._node not in (None, LEAF) or t._base is not None:
            raise GradientError(f"swap_tensors: {name} is recorded in the graph. Give leaves, or detach().")
        if views_of(t):
            raise GradientError(f"swap_tensors: {name} has views, which would be of the other's memory.")
        if t._node is LEAF and _is_awaited(t):
            raise GradientError(
                f"swap_tensors: a graph leads to {name}. Walk it, or let go of its results, before they swap."
            )
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__


def _is_awaited(leaf: Tensor) -> bool:
    """Whether a node of a graph has an edge to a leaf."""
    edges = [pair for pair in gc.get_referrers(leaf) if type(pair) is tuple and len(pair) == 2]
    return any(target is leaf and type(seen) is Meta for target, seen in edges)
