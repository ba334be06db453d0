"""Other forms of views: copies such as ``transpose_copy``, which share no storage, and those in place such as
``squeeze_``, which give a tensor itself another layout over its storage."""

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
from . import slicing, splitting, views
from .movement import clone

# By name: the view, and ATen's overloads of its copy and of its form in place, where there is one. Their
# arguments are those of the view.
_VIEWS: dict[str, tuple[Callable, str, str]] = {
    "alias": (lambda input: input, "default", ""), "as_strided": (slicing.as_strided, "default", "default"),
    "diagonal": (slicing.diagonal, "default", ""),
    "expand": (views.expand, "default(self,size,*,implicit=False)", ""),
    "narrow": (slicing.narrow, "default", ""), "permute": (views.permute, "default", ""),
    "select": (slicing.select, "int", ""), "split_with_sizes": (splitting.split_with_sizes, "default", ""),
    "squeeze": (views.squeeze, "default dim dims", "default dim dims"),
    "swapaxes": (views.swapaxes, "", "default"), "t": (views.t, "default", "default"),
    "transpose": (views.transpose, "int", "default"), "unbind": (splitting.unbind, "int", ""),
    "unfold": (slicing.unfold, "default", ""), "unsqueeze": (views.unsqueeze, "default", "default"),
    "view": (views.view, "default dtype(self,dtype)", ""),
}  # fmt: skip


def _declare(name: str, show: Callable, made: Any, overloads: list[str], doc: str, **public: Any) -> None:
    made.__name__ = made.__qualname__ = name
    made.__signature__ = inspect.signature(show)
    made.__doc__ = doc
    globals()[name] = function(aten=tuple(f"{name}.{kind}" for kind in overloads), **public)(made)


def _copy_of(show: Callable) -> Callable:
    def copy(input: Tensor, *args, **kwargs):
        shown = show(input, *args, **kwargs)
        return tuple([clone(part) for part in shown]) if isinstance(shown, tuple) else clone(shown)

    return copy


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

    return relayout


for _name, (_show, _copies, _over) in _VIEWS.items():
    if _copies:
        _declare(
            f"{_name}_copy", _show, _copy_of(_show), _copies.split(),
            f"A copy of what `{_name}` shows." if _name != "alias" else "A copy.", method=_name == "narrow",
        )  # fmt: skip
    if _over:
        _declare(
            f"{_name}_", _show, _in_place(_name, _show), _over.split(),
            f"In-place form of `{_name}`: this tensor itself becomes that view of its storage. Nothing moves."
            "\n\nRaises:\n    GradientError: a leaf that requires grad, or a view of one.",
            exports=None, method=True,
        )  # fmt: skip
