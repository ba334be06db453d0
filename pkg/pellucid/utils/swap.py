"""Two tensors that change places, with all who hold them: PyTorch's ``torch.utils.swap_tensors``."""

from __future__ import annotations

import weakref

from ..autograd.edges import LEAF
from ..errors import ArgumentError, GradientError
from ..tensors.tensor import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let each of two tensors be what the other is: values, dtype, device, class and attributes.

    Who holds one of them, such as a module or an optimizer, then holds the other's content.

    Args:
        t1, t2: leaves of the graph.

    Raises:
        ArgumentError: one is no tensor, or has a weak reference.
        GradientError: one is a result that the graph records, or a view.

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
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
