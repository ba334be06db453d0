"""Views in place: ``squeeze_``, ``unsqueeze_``, ``transpose_``, ``t_``, ``as_strided_`` give a tensor itself
another layout over its storage."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...autograd.edges import LEAF, note_change
from ...autograd.grad_mode import enable_grad, is_grad_enabled
from ...errors import ArgumentError
from ...op.inplace import hang, prepare
from ...op.public import function
from ...tensors.tensor import Tensor
from . import slicing, views

# What each shows, and ATen's overloads, whose arguments are those of the view.
_VIEWS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "as_strided": (slicing.as_strided, ("as_strided_.default",)),
    "squeeze": (views.squeeze, ("squeeze_.default", "squeeze_.dim", "squeeze_.dims")),
    "t": (views.t, ("t_.default",)),
    "transpose": (views.transpose, ("transpose_.default",)),
    "unsqueeze": (views.unsqueeze, ("unsqueeze_.default",)),
}


def _in_place(name: str, show: Callable) -> Callable:
    where = f"{name}_"

    def relayout(input: Tensor, *args, **kwargs):
        if getattr(input, "is_batched", False):
            raise ArgumentError(f"{where}: an example of a batch keeps its layout. Use {name}.")
        node = input._node
        if node is None or node is LEAF:
            if is_grad_enabled():
                prepare(where, input)
            shown = show(input, *args, **kwargs)
        else:
            # Its gradient has the layout that it had, so the graph learns of the new one in any mode.
            with enable_grad():
                prepare(where, input)
                shown = show(input, *args, **kwargs)
        if shown is not input:
            note_change()
            input._meta, input._offset = shown._meta, shown._offset
            if input._node is not LEAF and shown._node is not None:
                hang(input, shown._node)
        return input

    made: Any = relayout
    made.__name__ = made.__qualname__ = where
    made.__signature__ = inspect.signature(show)
    made.__doc__ = (
        f"In-place form of `{name}`: this tensor itself becomes that view of its storage. Nothing moves.\n\n"
        "Raises:\n    GradientError: a leaf that requires grad, or a view of one."
    )
    return made


for _name, (_show, _overloads) in _VIEWS.items():
    globals()[f"{_name}_"] = function(exports=None, method=True, aten=_overloads)(_in_place(_name, _show))
