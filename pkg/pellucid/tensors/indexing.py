"""``x[key]`` and ``x[key] = value``: basic keys are views, tensors and lists in the key gather or scatter."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from ..autograd.edges import edge, labelled
from ..autograd.grad_mode import is_grad_enabled
from ..autograd.nodes import Node
from ..errors import ArgumentError, DimensionError, DTypeError, PellucidError, RangeError, warn
from ..op import inplace
from ..op.symbols import SYMBOLS
from ..ops.elementwise.comparison import where
from ..ops.index.selection import nonzero, put_at, select_rows, take_at
from ..ops.shape import movement, slicing, views
from . import dtypes as dt
from .construct import tensor
from .shape import index as index_of
from .tensor import Tensor

# What makes a list one entry for each axis, as a tuple is.
_APART = (Tensor, np.ndarray, list, tuple, range, slice, type(None), type(Ellipsis))


def _parts(key: Any) -> tuple:
    """The entries of a key: those of a tuple, and as in PyTorch those of a short list of other things than
    numbers."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < 32 and any(isinstance(k, _APART) for k in key):
        warn("a list of indices for several axes is deprecated: use x[tuple(indices)].")
        return tuple(key)
    return (key,)


def _expanded(items: list, rank: int) -> list:
    """The key with an entry for every axis, the ellipsis written out."""
    used = sum(_taken(k) for k in items if k is not Ellipsis)
    if sum(1 for k in items if k is Ellipsis) > 1:
        raise DimensionError("an index can only have one ellipsis ('...').")
    if used > rank:
        raise DimensionError(f"too many indices: {used} for a tensor of {rank} axes.")
    if not any(k is Ellipsis for k in items):
        items.append(Ellipsis)
    at = next(j for j, k in enumerate(items) if k is Ellipsis)
    return items[:at] + [slice(None)] * (rank - used) + items[at + 1 :]


def _taken(k: Any) -> int:
    """How many axes of the tensor an entry of the key stands for."""
    if k is None or _is_truth(k):
        return 0
    return k.ndim if _is_mask(k) else 1


def _is_truth(k: Any) -> bool:
    """Whether an entry of the key is one bool: all of the tensor or nothing, below a new axis."""
    return isinstance(k, bool) or (getattr(k, "dtype", None) is dt.bool_ and k.ndim == 0)


def _is_mask(k: Any) -> bool:
    return getattr(k, "dtype", None) in (dt.bool_, np.dtype(bool)) and getattr(k, "ndim", 0) > 0


def _as_index(k: Any, like: Tensor) -> Any:
    """Lists and arrays as index tensors on the device of the tensor; bytes are masks."""
    if isinstance(k, (list, range, tuple)):
        k = np.asarray(list(k)) if len(k) else np.zeros(0, np.int64)
        if k.dtype.kind not in "biuf":
            raise ArgumentError("an index must be a list of integers, not one of other things.")
    if getattr(k, "dtype", None) in (dt.uint8, np.uint8) and isinstance(k, (Tensor, np.ndarray)):
        warn("indexing with dtype uint8 is deprecated: use a dtype bool.")
        k = k != 0
    if isinstance(k, np.ndarray):
        return tensor(k if k.dtype == bool else k.astype(np.int64), device=like.device)
    if isinstance(k, Tensor) and k.device is not like.device:
        return k.to(like.device)
    return k


def _resolve(x: Tensor, key: Any) -> tuple[Tensor, dict[int, Tensor]]:
    """The view that the basic part of a key shows, and the index tensors by axis of that view."""
    items = _expanded([_as_index(k, x) for k in _parts(key)], x.ndim)
    # A place in an example of `vmap` is not known.
    tensors = [k for k in items if isinstance(k, Tensor)]
    places = any(k.ndim or getattr(k, "is_batched", False) for k in tensors) or sum(map(_is_truth, items)) > 1
    index: dict[int, Tensor] = {}
    axis = source = 0
    shape = x.shape
    for k in items:
        here, source = source, source + _taken(k)
        if k is None:
            x = views.unsqueeze(x, axis)
            axis += 1
        elif _is_truth(k):
            x, count = views.unsqueeze(x, axis), 1 if bool(k) else 0
            if places:  # it goes along with them: its axis is theirs
                index[axis] = tensor([0] * count, dtype=dt.int64, device=x.device)
            else:
                x = slicing.slice_dim(x, axis, 0, count, 1)
            axis += 1
        elif isinstance(k, slice):
            start, stop, step = (_bound(v) for v in (k.start, k.stop, k.step))
            if step == 0:
                raise RangeError("slice step cannot be zero. Give another.")
            if (start, stop, step) not in ((None, None, None), (None, None, 1)):
                x = slicing.slice_at(x, axis, start, stop, step)
            axis += 1
        elif isinstance(k, Tensor) and k.dtype is dt.bool_:
            _check_mask(k, x, axis)
            for positions in _nonzero(k):
                index[axis] = positions
                axis += 1
        elif isinstance(k, Tensor) and (k.ndim or places):
            if not k.dtype.is_integer or (k.ndim and k.dtype not in (dt.int64, dt.int32)):
                raise DimensionError(
                    f"tensors used as indices must be int64, int32, uint8 or bool, not {k.dtype}."
                )
            index[axis] = k
            axis += 1
        elif hasattr(k, "__index__"):
            at = k if type(k) in SYMBOLS else k.__index__()
            if not -shape[here] <= at < shape[here]:
                raise DimensionError(
                    f"select: index {at} is out of range for axis {here} of length {shape[here]}."
                )
            x = slicing.select_at(x, axis, at)
        else:
            # As in PyTorch, where a text is wrong in another way.
            kind = ArgumentError if isinstance(k, str) else DimensionError
            raise kind(
                "an index must be an integer, a slice, None, ..., a list or a tensor, not "
                f"{type(k).__name__}."
            )
    return x, index


def _bound(value: Any) -> int | None:
    """One of the three numbers of a slice."""
    if value is None or type(value) is int or type(value) in SYMBOLS:
        return value
    return int(value) if type(value) is bool else index_of(value, "a slice's bound")


def _check_mask(mask: Tensor, x: Tensor, axis: int) -> None:
    part = tuple(x.shape[axis : axis + mask.ndim])
    if tuple(mask.shape) != part:
        raise DimensionError(
            f"a mask of shape {tuple(mask.shape)} does not fit axes {axis} to {axis + mask.ndim - 1} of "
            f"shape {part}."
        )


def _nonzero(mask: Tensor) -> tuple[Tensor, ...]:
    """Positions of a mask along each axis; how many there are must be read, so this waits."""
    if mask.is_webgpu:
        return nonzero(mask, as_tuple=True)
    return tuple(tensor(p.astype(np.int64), device=mask.device) for p in np.nonzero(mask.numpy()))


_PLAIN = {int, type(None)}


def get(x: Tensor, key: Any) -> Tensor:
    """``x[key]``. Basic keys share storage; index tensors copy.

    Raises:
        DimensionError: an index or the number of indices is out of range (also an IndexError).
    """
    try:
        if type(key) is int:
            return slicing.select(x, 0, key)
        if (
            type(key) is slice
            and {type(key.start), type(key.stop), type(key.step)} <= _PLAIN
            and x._meta.shape
        ):
            return slicing.slice_dim(x, 0, key.start, key.stop, key.step)
        if _is_mask(key):
            mask = _as_index(key, x)
            _check_mask(mask, x, 0)
            return labelled("IndexBackward0", select_rows(x, mask))
        x, index = _resolve(x, key)
    except PellucidError as error:  # a key says nothing of the ops that it is read by
        raise type(error)(re.sub("^(select|slice): ", "", str(error))) from None
    if not index:
        copies = any(map(_is_truth, key if isinstance(key, tuple) else (key,)))
        return movement.clone(x) if copies else x
    return labelled("IndexBackward0", take_at(x, index))


class _Masked(NamedTuple):
    """What one mask in a key chooses, without asking how much that is.

    Args:
        view: what the rest of the key shows.
        mask: in the view's axes, with length 1 where it says nothing.
        axes: those of the view that the mask chooses from; in what is written they are one.
    """

    view: Tensor
    mask: Tensor
    axes: range

    def spread(self, value: Tensor) -> Tensor | None:
        """A value in the axes of the view; None where it differs between the places of the mask."""
        behind = self.view.ndim - self.axes.stop
        shape = tuple(value.shape)
        while len(shape) > self.axes.start + 1 + behind and shape[0] == 1:
            shape = shape[1:]
        split = len(shape) - behind - 1
        if split < 0:
            return value
        if split > self.axes.start or shape[split] != 1:
            return None
        return value.reshape(*shape[:split], *(1 for _ in self.axes), *shape[split + 1 :])

    def sum(self) -> Tensor:
        """Of all places of the mask, as one."""
        total = where(self.mask, self.view, 0)
        if self.axes:
            total = total.sum(tuple(self.axes), keepdim=True)
        return total.reshape(*total.shape[: self.axes.start], 1, *total.shape[self.axes.stop :])


def _masked(x: Tensor, key: Any) -> _Masked | None:
    """What a key chooses, where a mask is all in it that is not basic; else None."""
    keys = _parts(key)
    if not any(_is_mask(k) or (isinstance(k, list) and k and type(k[0]) is bool) for k in keys):
        return None
    keys = [_as_index(k, x) for k in keys]
    tensors = [k for k in keys if isinstance(k, Tensor)]
    if len(tensors) != 1 or not _is_mask(tensors[0]) or any(map(_is_truth, keys)):
        return None
    items, mask = _expanded(keys, x.ndim), tensors[0]
    at = next(j for j, k in enumerate(items) if k is mask)
    view, _ = _resolve(x, (*items[:at], *[slice(None)] * mask.ndim, *items[at + 1 :]))
    axis = sum(k is None or isinstance(k, slice) for k in items[:at])
    _check_mask(mask, view, axis)
    axes = range(axis, axis + mask.ndim)
    return _Masked(view, mask.reshape(*mask.shape, *[1] * (view.ndim - axes.stop)), axes)


class _Overwrite:
    """What the graph needs to know of ``x[key] = value``: the value's gradient is the part, the rest is
    x's."""

    name = "setitem"
    arguments = ()
    outputs = ("out",)

    grad = {
        "input": (lambda g, key: _without(g, key), ("g", "key")),
        "value": (lambda g, key: get(g, key), ("g", "key")),
    }


class _Fill(_Overwrite):
    """The same where every place of a mask gets one value."""

    grad = {**_Overwrite.grad, "value": (lambda g, key: _summed(g, key), ("g", "key"))}


def _summed(g: Tensor, key: Any) -> Tensor | None:
    chosen = _masked(g, key)
    return None if chosen is None else chosen.sum()


def _without(g: Tensor, key: Any) -> Tensor:
    g = movement.clone(g)
    put(g, key, 0)
    return g


def put(x: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value``: written in place, broadcast and converted.

    Raises:
        GradientError: ``x`` is a leaf that requires grad.
        ShapeError: the value does not broadcast to the part.
    """
    key = _parts(key)
    if any(getattr(t, "is_batched", False) for t in (x, value, *key)):
        return _put_examples(x, key, value)
    if isinstance(value, Tensor) and value.dtype is not x.dtype:
        _fits(x, key, value)
    wants = is_grad_enabled()
    if wants:
        inplace.prepare("setitem", x)
        wants = x._node is not None or (isinstance(value, Tensor) and value._node is not None)
    # A number that a half does not hold is infinite here, which fill_ refuses; a tensor of it is as well.
    overflows = (
        x.dtype in dt.LARGEST_HALF and isinstance(value, (int, float)) and not dt.holds(x.dtype, value)
    )
    is_number = isinstance(value, (int, float)) and not overflows
    record = _Overwrite
    if (chosen := _masked(x.detach(), key)) is not None and _fill(chosen, value, is_number):
        record = _Fill
    else:
        view, index = _resolve(x.detach(), key)
        if is_number and not index:
            movement.fill_(view, value)
        else:
            value = value if isinstance(value, Tensor) else tensor(value, dtype=x.dtype, device=x.device)
            _write(view, index, value.detach().to(x.dtype).to(x.device))
    if wants:
        edges = {}
        if x._node is not None:
            edges["input"] = (edge(x), x._meta)
        if isinstance(value, Tensor) and value._node is not None:
            edges["value"] = (edge(value), value._meta)
        node = Node(record, edges, {"key": _fixed(key)})
        inplace.rebase(node, x, "input")


def _fits(x: Tensor, key: tuple, value: Tensor) -> None:
    """Refuse values of another dtype for places that are given by tensors or lists; one value for all places
    of masks is converted, and so are integers of another width: numpy's have 32 bits in a page.

    Raises:
        DTypeError: they are.
    """
    if x.dtype.is_integer and value.dtype.is_integer:
        return
    parts = [np.asarray(k) if isinstance(k, (list, tuple)) else k for k in key]
    masks = [k.dtype in (dt.bool_, np.bool_) for k in parts if isinstance(k, (Tensor, np.ndarray)) and k.ndim]
    if masks and not (value.numel() == 1 and all(masks)):
        raise DTypeError(
            f"setitem: values of {value.dtype} for places of a tensor of {x.dtype}. Convert them with "
            f".to({x.dtype})."
        )


def _fill(chosen: _Masked, value: Any, is_number: bool) -> bool:
    """Write one value to every place of a mask: how many there are need not be read, so nothing waits.

    Returns:
        Whether it was written: not where each place has a value of its own.
    """
    view, mask = chosen.view, chosen.mask
    if is_number and (view.dtype.is_floating_point or (type(value) is int and dt.holds(view.dtype, value))):
        view.masked_fill_(mask, value)
        return True
    if not isinstance(value, Tensor):
        value = tensor(value, dtype=view.dtype, device=view.device)
    spread = chosen.spread(value.detach())
    if spread is None:
        return False
    spread = spread.to(view.dtype).to(view.device)
    if spread.numel() == 1:
        view.masked_fill_(mask, spread.reshape(()))
    else:
        movement.copy_(view, where(mask, spread, view))
    return True


def _put_examples(x: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value`` of examples of a batch (`vmap`): the batch records it."""
    view, index = _resolve(x, key)
    if index:
        raise ArgumentError(
            "setitem: positions by tensors or lists are not written within vmap. Use where() or scatter()."
        )
    (movement.copy_ if isinstance(value, Tensor) else movement.fill_)(view, value)


def _fixed(key: Any) -> Any:
    """A key for later: what changes in place until then is copied."""
    if isinstance(key, tuple):
        return tuple(_fixed(k) for k in key)
    if isinstance(key, Tensor):
        return movement.clone(key.detach())
    return key.copy() if isinstance(key, (list, np.ndarray)) else key


def _write(view: Tensor, index: dict[int, Tensor], plain: Tensor) -> None:
    # Axes of length 1 in front may be more than the part has.
    while plain.ndim and plain.shape[0] == 1 and (index or plain.ndim > view.ndim):
        plain = slicing.select(plain, 0, 0)
    if index:
        put_at(view, index, plain)
    else:
        movement.copy_(view, plain)
