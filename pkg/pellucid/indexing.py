"""``x[key]`` and ``x[key] = value``: basic keys are views, tensors and lists in the key gather or scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import autograd
from . import dtypes as dt
from .errors import DimensionError, GradientError
from .ops import movement

if TYPE_CHECKING:
    from .tensor import Tensor


def _expanded(key: Any, rank: int) -> list:
    """The key as one entry per axis (and per None), the ellipsis written out."""
    items = list(key) if isinstance(key, tuple) else [key]
    used = 0
    for k in items:
        if k is None or k is Ellipsis or isinstance(k, bool):
            continue
        used += k.ndim if _is_mask(k) else 1
    if sum(1 for k in items if k is Ellipsis) > 1:
        raise DimensionError("an index can only have one ellipsis ('...').")
    if used > rank:
        raise DimensionError(f"too many indices: {used} for a tensor of {rank} axes.")
    if not any(k is Ellipsis for k in items):
        items.append(Ellipsis)
    at = next(j for j, k in enumerate(items) if k is Ellipsis)
    return items[:at] + [slice(None)] * (rank - used) + items[at + 1 :]


def _is_mask(k: Any) -> bool:
    return getattr(k, "dtype", None) in (dt.bool_, np.dtype(bool)) and getattr(k, "ndim", 0) > 0


def _as_index(k: Any, like: Tensor) -> Any:
    """Lists and arrays as index tensors on the device of the tensor."""
    from .tensor import Tensor, tensor

    if isinstance(k, (list, range)):
        k = np.asarray(list(k)) if len(k) else np.zeros(0, np.int64)
    if isinstance(k, np.ndarray):
        return tensor(k if k.dtype == bool else k.astype(np.int64), device=like.device)
    if isinstance(k, Tensor) and k.device is not like.device:
        return k.to(like.device)
    return k


def _resolve(x: Tensor, key: Any) -> tuple[Tensor, dict[int, Tensor]]:
    """The view that the basic part of a key shows, and the index tensors by axis of that view."""
    from .tensor import Tensor

    items = [_as_index(k, x) for k in _expanded(key, x.ndim)]
    index: dict[int, Tensor] = {}
    axis = 0
    for k in items:
        if k is None:
            x = movement.unsqueeze(x, axis)
            axis += 1
        elif isinstance(k, bool) or (isinstance(k, Tensor) and k.dtype is dt.bool_ and k.ndim == 0):
            x = movement.unsqueeze(x, axis)
            x = movement.slice_dim(x, axis, 0, 1 if bool(k) else 0, 1)
            axis += 1
        elif isinstance(k, slice):
            start, stop, step = (None if v is None else int(v) for v in (k.start, k.stop, k.step))
            if step == 0:
                raise ValueError("slice step cannot be zero")
            if (start, stop, step) not in ((None, None, None), (None, None, 1)):
                x = movement.slice_dim(x, axis, start, stop, step)
            axis += 1
        elif isinstance(k, Tensor) and k.dtype is dt.bool_:
            _check_mask(k, x, axis)
            for positions in _nonzero(k):
                index[axis] = positions
                axis += 1
        elif isinstance(k, Tensor) and (k.ndim or any(isinstance(j, Tensor) and j.ndim for j in items)):
            if not k.dtype.is_integer:
                raise DimensionError(f"tensors used as indices must be integer or bool, not {k.dtype}.")
            index[axis] = k
            axis += 1
        elif hasattr(k, "__index__"):
            x = movement.select(x, axis, k.__index__())
        else:
            raise TypeError(
                f"an index must be an integer, a slice, None, ..., a list or a tensor, not {type(k).__name__}."
            )
    return x, index


def _check_mask(mask: Tensor, x: Tensor, axis: int) -> None:
    part = tuple(x.shape[axis : axis + mask.ndim])
    if tuple(mask.shape) != part:
        raise DimensionError(
            f"a mask of shape {tuple(mask.shape)} does not fit axes {axis} to {axis + mask.ndim - 1} of shape {part}."
        )


def _nonzero(mask: Tensor) -> tuple[Tensor, ...]:
    """Positions of a mask along each axis; how many there are must be read, so this waits."""
    from .tensor import tensor

    return tuple(tensor(p.astype(np.int64), device=mask.device) for p in np.nonzero(mask.numpy()))


def get(x: Tensor, key: Any) -> Tensor:
    """``x[key]``. Basic keys share storage; index tensors copy.

    Raises:
        DimensionError: an index or the number of indices is out of range (also an IndexError).
    """
    if type(key) is int:
        return movement.select(x, 0, key)
    x, index = _resolve(x, key)
    if not index:
        return x
    from .ops.index import take_at

    return take_at(x, index)


class _Overwrite:
    """What the graph needs to know of ``x[key] = value``: the value's gradient is the part, the rest of x's gradient stays."""

    name = "setitem"
    arguments = ()
    outputs = ("out",)

    @staticmethod
    def _rest(g, key):
        g = movement.clone(g)
        put(g, key, 0)
        return g

    grad = {"input": (_rest.__func__, ("g", "key")), "value": (lambda g, key: get(g, key), ("g", "key"))}


def put(x: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value``: written in place, broadcast and converted.

    Raises:
        GradientError: ``x`` is a leaf that requires grad.
        ShapeError: the value does not broadcast to the part.
    """
    from .tensor import Tensor, tensor

    wants = autograd.is_grad_enabled() and (
        x._node is not None or (isinstance(value, Tensor) and value._node is not None)
    )
    if wants and x._node is autograd.LEAF:
        raise GradientError(
            "setitem: a leaf that requires grad cannot be changed in place. Do it under pellucid.no_grad(), or on a clone."
        )
    if not isinstance(value, Tensor):
        value = tensor(value, dtype=x.dtype, device=x.device)
    plain = value.detach().to(x.device)
    view, index = _resolve(x.detach(), key)
    if index:
        from .ops.index import put_at

        put_at(view, index, plain)
    else:
        while plain.ndim > view.ndim and plain.shape[0] == 1:
            plain = movement.select(plain, 0, 0)
        movement.copy_(view, plain)
    if wants:
        edges = {}
        if x._node is not None:
            edges["input"] = (autograd.edge(x), x._meta)
        if value._node is not None:
            edges["value"] = (autograd.edge(value), value._meta)
        node = autograd.Node(_Overwrite, edges, {"key": key})  # type: ignore[arg-type]
        node.outputs = (x._meta,)
        x._node, x._index = node, 0
