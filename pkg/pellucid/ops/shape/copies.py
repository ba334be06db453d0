"""Copies of views: ``view_copy``, ``transpose_copy`` and their like, which share no storage."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...op.public import function
from ...tensors.tensor import Tensor
from . import slicing, splitting, views
from .movement import clone

# What they copy: the view, and ATen's overloads of the copy, whose arguments are those of the view.
_VIEWS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "alias": (lambda input: input, ("alias_copy.default",)),
    "as_strided": (slicing.as_strided, ("as_strided_copy.default",)),
    "diagonal": (slicing.diagonal, ("diagonal_copy.default",)),
    "expand": (views.expand, ("expand_copy.default(self, size, *, implicit=False)",)),
    "narrow": (slicing.narrow, ("narrow_copy.default",)),
    "permute": (views.permute, ("permute_copy.default",)),
    "select": (slicing.select, ("select_copy.int",)),
    "split_with_sizes": (splitting.split_with_sizes, ("split_with_sizes_copy.default",)),
    "squeeze": (views.squeeze, ("squeeze_copy.default", "squeeze_copy.dim", "squeeze_copy.dims")),
    "t": (views.t, ("t_copy.default",)),
    "transpose": (views.transpose, ("transpose_copy.int",)),
    "unbind": (splitting.unbind, ("unbind_copy.int",)),
    "unfold": (slicing.unfold, ("unfold_copy.default",)),
    "unsqueeze": (views.unsqueeze, ("unsqueeze_copy.default",)),
    "view": (views.view, ("view_copy.default", "view_copy.dtype(self, dtype)")),
}


def _copy_of(name: str, show: Callable) -> Callable:
    def copy(input: Tensor, *args, **kwargs):
        shown = show(input, *args, **kwargs)
        return tuple([clone(part) for part in shown]) if isinstance(shown, tuple) else clone(shown)

    made: Any = copy
    made.__name__ = made.__qualname__ = f"{name}_copy"
    made.__signature__ = inspect.signature(show)
    made.__doc__ = f"A copy of what `{name}` shows." if name != "alias" else "A copy."
    return made


for _name, (_show, _overloads) in _VIEWS.items():
    globals()[f"{_name}_copy"] = function(aten=_overloads, method=_name == "narrow")(_copy_of(_name, _show))
