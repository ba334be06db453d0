"""Writing in place: the form of an op that overwrites its first argument, and the graph of tensors that are
written so, also through views: the whole gets a new node, and so does the view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes as dt
from .autograd import recorder
from .autograd.edges import LEAF, edge, note_change, views_of
from .autograd.engine import sum_to
from .autograd.grad_mode import is_grad_enabled
from .autograd.nodes import Node, freed
from .errors import DTypeError, GradientError, PellucidError, ShapeError
from .meta import Meta
from .plan import PLAN_LIMIT, cpu_plan, meta_plan, webgpu_plan
from .specialise import in_place_path

if TYPE_CHECKING:
    from .op import Op
    from .tensor import Tensor


def in_place(o: Op) -> Callable:
    """The in-place form of an op: the result is written over its first argument, whose version moves on.

    Raises:
        GradientError: a leaf that requires grad, or a view of one.
        ShapeError, DTypeError: the result does not fit into the tensor.
    """
    plans: dict = {}
    first = o.arguments[0].name

    def slow(values: tuple):
        self = values[0]
        if is_grad_enabled():
            prepare(f"{o.public}_", self)
        aliased, regular = [], [self]
        for a, value in zip(o.arguments[1:], values[1:], strict=True):
            if getattr(value, "_storage", None) is self._storage and a.role in (
                "tensor",
                "operand",
                "optional",
            ):
                if value._meta is self._meta and value._offset == self._offset:
                    aliased.append(a.name)
                else:
                    value = value.clone()
            elif isinstance(value, list):
                value = tuple(value)
            elif isinstance(value, np.generic):
                value = value.item()
            regular.append(value)
        key = o.key(tuple(regular))
        plan = plans.get((key, *aliased))
        if plan is None:
            plan = _plan_in_place(o, tuple(regular), frozenset({first, *aliased}))
            if len(plans) >= PLAN_LIMIT:
                plans.clear()
                quick.clear()
            plans[key, *aliased] = plan
            if not aliased:
                quick[key] = plan
        if o.check is not None:
            o.check(*regular)
        wants = is_grad_enabled() and o.grad is not None and o.any_node(values)
        graph = recorder.prepare(o, tuple(regular)) if wants else None
        if graph is not None:
            keep_original(graph, self, (first, *aliased))
        plan(*regular)
        self._storage.version += 1
        if graph is not None:
            rebase(graph, self, first)
        return self

    form, quick = in_place_path(o, slow)
    form.__qualname__ = f"Tensor.{o.name}_"
    form.__doc__ = f"In-place form of `{o.name}`: writes the result into this tensor and returns it."
    o.forms.extend((plans, quick))
    return form


def _plan_in_place(o: Op, values: tuple, aliased: frozenset[str]) -> Callable:
    try:
        call = o.understand(values)
        o.infer(call)
        target = call.args[o.arguments[0].name]
        if call.out.shape != target.shape:
            raise ShapeError(
                f"the result has shape {tuple(call.out.shape)}, the tensor that it is written into "
                f"{tuple(target.shape)}. Use the form without underscore."
            )
        if not dt.can_cast(call.out.dtype, target.dtype):
            raise DTypeError(
                f"a result of {call.out.dtype} does not fit into a tensor of {target.dtype}. Use the form "
                "without underscore."
            )
        if 0 in [s for s, n in zip(target.strides, target.shape, strict=True) if n > 1]:
            raise ShapeError(
                "an expanded tensor has elements that share memory and cannot be written in place. Call "
                ".clone() first."
            )
        if call.device.type == "cpu":
            return cpu_plan(o, call, written=o.arguments[0].name)
        if call.device.type == "meta":
            return meta_plan(o, call, written=o.arguments[0].name)
        return webgpu_plan(o, call, written=o.arguments[0].name, aliased=aliased)
    except PellucidError as error:
        raise type(error)(f"{o.public}_: {str(error).removeprefix(f'{o.public}: ')}") from None


def prepare(where: str, t: Tensor) -> None:
    """Before ``t`` is written with the graph on: refuse leaves, and let a view know what its base has become
    since.

    Raises:
        GradientError: the tensor or what it is a view of is a leaf that requires grad.
    """
    base = t._base
    if t._node is LEAF or (base is not None and base._node is LEAF):
        kind = "a leaf" if t._node is LEAF else "a view of a leaf"
        raise GradientError(
            f"{where}: {kind} that requires grad cannot be changed in place. "
            "Use it under pellucid.no_grad(), or work on a clone."
        )
    if base is not None and base._node is not None:
        show(t, base)


def keep_original(node: Node, t: Tensor, names: tuple[str, ...]) -> None:
    """Let what a node saved of ``t``, which is about to be written, be a copy."""
    from .ops.movement import clone

    copy = None
    for name in names:
        saved = node.saved.get(name)
        if saved is not None:
            copy = clone(t.detach()) if copy is None else copy
            saved.storage, saved.meta, saved.offset, saved.version = copy._storage, copy._meta, 0, 0


def rebase(node: Node, t: Tensor, written: str) -> None:
    """Hang a tensor that was written in place at its new place in the graph.

    Args:
        node: the operation that wrote it.
        t: the tensor.
        written: the name of the argument that was written.

    Raises:
        GradientError: ``t`` is a view of a tensor that is not contiguous.
    """
    if not node.edges:
        return
    recorder.finish(node, (t,))
    note_change()
    base = t._base
    if base is None:
        t._node, t._index = node, 0
        _show_others(t, t)
        return
    if not base._meta.is_contiguous:
        raise GradientError(
            f"{node.op.public}_: a view of a tensor with strides {base._meta.strides} was written in place, "
            "and its gradient "
            "cannot follow. Call .contiguous() before the view is taken."
        )
    base._node, base._index = _Written(node, t, base, written), 0
    show(t, base)
    _show_others(base, t)


def _show_others(base: Tensor, written: Tensor) -> None:
    """Every view shows what was written, so each is hung anew."""
    for view in views_of(base):
        if view is not written and view._node is not LEAF:
            show(view, base)


def show(t: Tensor, base: Tensor) -> None:
    """Hang a view below the present state of its base.

    Raises:
        GradientError: the base is not contiguous.
    """
    if not base._meta.is_contiguous:
        raise GradientError(
            f"as_strided: the gradient of a view cannot follow into a tensor with strides "
            f"{base._meta.strides}. Call .contiguous() before the view is taken."
        )
    place = {"base": base._meta, "part": t._meta, "offset": t._offset - base._offset}
    node = Node(_Part, {"input": (edge(base), base._meta)}, place)
    node.outputs = (t._meta,)
    note_change()
    t._node, t._index = node, 0


def _part_of(whole: Tensor, part: Meta, offset: int) -> Tensor:
    from .ops.views import as_strided

    return as_strided(whole, part.shape, part.strides, whole._offset + offset)


class _Part:
    """What the graph needs to know of a view of a written tensor: its gradient lies in zeros."""

    name = "as_strided"
    arguments = ()
    outputs = ("out",)

    grad = {
        "input": (
            lambda g, base, part, offset: _placed(g, base, part, offset),
            ("g", "base", "part", "offset"),
        )
    }


def _placed(g: Tensor, base: Meta, part: Meta, offset: int) -> Tensor:
    from .ops.movement import copy_

    whole = g.new_zeros(base.shape)
    if _overlaps(part):
        places = np.full(tuple(part.shape), offset)
        for k, (length, stride) in enumerate(zip(part.shape, part.strides, strict=True)):
            places += (np.arange(length) * stride).reshape((-1,) + (1,) * (part.rank - 1 - k))
        index = whole.new_tensor(places.reshape(-1), dtype=dt.int64)
        return whole.reshape(-1).index_add(0, index, g.reshape(-1)).reshape(base.shape)
    copy_(_part_of(whole, part, offset), g)
    return whole


def _overlaps(part: Meta) -> bool:
    """Whether elements of a view may share memory, as those of an expanded tensor do."""
    reach = 0
    for stride, length in sorted((abs(s), n) for s, n in zip(part.strides, part.shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (length - 1)
    return False


class _CopySlices:
    """The name under which a partly written tensor stands in the graph."""

    name = "copy_slices"


class _Written(Node):
    """A tensor of which a part was written by another node: the part's gradient goes through that node, the
    rest stays."""

    __slots__ = ()

    def __init__(self, node: Node, t: Tensor, base: Tensor, written: str):
        edges: dict[str, Any] = {k: e for k, e in node.edges.items() if k != written}
        if base._node is not None:
            edges["base"] = (edge(base), base._meta)
        saved = {"node": node, "part": t._meta, "offset": t._offset - base._offset, "written": written}
        super().__init__(_CopySlices, edges, saved)
        self.outputs = (base._meta,)

    def gradients(self, grads: list, keep_graph: bool) -> dict[str, Any]:
        from .ops.movement import clone, copy_

        if grads[0] is None:
            return {}
        if self.released:
            raise freed(self.public)
        saved = self.saved
        whole = clone(grads[0])
        part = _part_of(whole, saved["part"], saved["offset"])
        found = saved["node"].gradients([clone(part)], keep_graph)
        own = found.pop(saved["written"], None)
        if "base" in self.edges:
            if own is None:
                part.fill_(0)
            else:
                copy_(part, sum_to(own, part._meta.shape))
            found["base"] = whole
        return found
