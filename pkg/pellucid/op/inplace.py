"""Writing in place: the form of an op that overwrites its first argument, and the graph of tensors that are
written so, also through views: the whole gets a new node, and so does the view."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from typing import Any, cast

import numpy as np

from ..autograd import recorder
from ..autograd.edges import LEAF, edge, note_change, views_of
from ..autograd.engine import sum_to
from ..autograd.formulas import zeros
from ..autograd.grad_mode import is_grad_enabled
from ..autograd.nodes import Node, freed
from ..errors import DTypeError, GradientError, PellucidError, ShapeError
from ..tensors import dtypes as dt
from ..tensors.meta import Meta, meta
from ..tensors.tensor import Tensor
from . import slow_path
from .arguments import NUMBER_SECOND, named
from .call_path import in_place_path
from .plan import cpu_plan, meta_plan, webgpu_plan
from .plan_cache import keep_plan, table_of_plans
from .planning import Op
from .schema import overrides
from .slow_path import following, plain_numbers, regular
from .symbols import SYMBOLS


def in_place(o: Op, operator: bool = False) -> Callable:
    """The in-place form of an op: the result is written over its first argument, whose version moves on.

    Args:
        o: the op.
        operator: beside an array of numpy it is not for Python, which then makes a new tensor, as in PyTorch.

    Raises:
        GradientError: a leaf that requires grad, or a view of one.
        ShapeError, DTypeError: the result does not fit into the tensor.
    """
    plans = table_of_plans()
    first = o.arguments[0].name
    # What has no derivative is written over a value all the same, whose gradient ends there.
    recorded = o
    if o.grad is None:
        recorded = copy(o)
        recorded.grad = {first: (zeros, ("g",))}

    def slow(values: tuple):
        if operator and type(values[1]) is np.ndarray and values[1].ndim:
            return NotImplemented
        if (found := overrides.find(values)) is not None:
            return overrides.of_op(o, form, values, found)
        if slow_path.batched is not None and slow_path.has_batched(values):
            return slow_path.batched[1](o, values)
        if slow_path.wide is not None and slow_path.wide[0](o, values):
            return slow_path.wide[2](o, values)
        try:
            values = regular(o, values)
        except PellucidError as error:
            raise named(f"{o.public}_", error) from None
        self = values[0]
        if is_grad_enabled():
            prepare(f"{o.public}_", self)
        aliased, given = [], [self]
        for a, value in zip(o.arguments[1:], values[1:], strict=True):
            if getattr(value, "_storage", None) is self._storage and a.role in (
                "tensor",
                "operand",
                "optional",
            ):
                if value._meta is self._meta and _is_one(value._offset, self._offset):
                    aliased.append(a.name)
                else:
                    value = value.clone()
            given.append(value)
        plain = given
        if not SYMBOLS.isdisjoint(map(type, given)):
            plain = plain_numbers(o, tuple(given))
        try:
            key = o.key(tuple(plain))  # refuses what is no tensor
        except PellucidError as error:
            raise named(f"{o.public}_", error) from None
        plan = plans.get((key, *aliased))
        if plan is None:
            plan = _plan_in_place(o, tuple(plain), frozenset({first, *aliased}))
            keep_plan(plans, (key, *aliased), plan)
            if not aliased:
                keep_plan(quick, key, plan)
        if plain is not given:
            plan = following(plan, tuple(given), tuple(plain))
        if o.check is not None:
            o.check(*given)
        wants = is_grad_enabled() and recorded.any_node(values)
        if wants and o.grad and "value" in o.grad:
            recorder.check_value(f"{o.public}_", given[-1], self._meta.dtype)
        graph = recorder.prepare(recorded, tuple(given)) if wants else None
        if graph is not None:
            keep_original(graph, self, (first, *aliased))
        plan(*plain)
        self._storage.version += 1
        if graph is not None:
            rebase(graph, self, first)
        return self

    form, quick = in_place_path(o, slow)
    form.__qualname__ = f"Tensor.{o.name}_"
    if o.name in NUMBER_SECOND:
        shown, given = cast(Any, form), inspect.signature(form)
        usual = {a.name: a.default for a in o.arguments}
        today = [p for p in given.parameters.values() if p.kind is not p.VAR_POSITIONAL]
        shown.__signature__ = given.replace(parameters=[p.replace(default=usual[p.name]) for p in today])
    form.__doc__ = f"In-place form of `{o.name}`: writes the result into this tensor and returns it."
    return form


def _is_one(a: int, b: int) -> bool:
    """Whether two offsets are one, also in replays: those of two symbols may differ there."""
    return a is b or (a == b and type(a) is type(b) is int)


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
        if target.dtype.is_complex and call.out.dtype.is_floating_point:
            raise DTypeError(f"the result for {target.dtype} is real. Use the form without underscore.")
        if _shares_memory(target):
            raise ShapeError(
                f"an expanded tensor has elements that share memory, here of shape {tuple(target.shape)} "
                f"and strides {target.strides}, and cannot be written in place. Call .clone() first."
            )
        if call.device.type == "cpu":
            plan = cpu_plan(o, call, written=o.arguments[0].name)
        elif call.device.type == "meta":
            plan = meta_plan(o, call, written=o.arguments[0].name)
        else:
            plan = webgpu_plan(o, call, written=o.arguments[0].name, aliased=aliased)
        return o.guarded(call, plan)
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
    copy = None
    for name in names:
        saved = node.saved.get(name)
        if saved is not None:
            copy = t.detach().clone() if copy is None else copy
            saved.storage, saved.meta, saved.offset, saved.version = copy._storage, copy._meta, 0, 0


def rebase(node: Node, t: Tensor, written: str) -> None:
    """Hang a tensor that was written in place at its new place in the graph. Integers have none: what is
    written into them is cut off, and so is its gradient.

    Args:
        node: the operation that wrote it.
        t: the tensor.
        written: the name of the argument that was written.

    Raises:
        GradientError: ``t`` is a view of a tensor whose elements share memory.
    """
    if not node.edges or t._meta.dtype.kind not in "fc":
        return
    recorder.finish(node, (t,))
    note_change()
    base = t._base
    if base is None:
        hang(t, node)
        _show_others(t, t)
        return
    _refuse_shared(getattr(node.op, "public", node.op.name), base)
    _refuse_parts(t, base)
    hang(base, _Written(node, t, base, written))
    show(t, base)
    _show_others(base, t)


def _refuse_shared(where: str, base: Tensor) -> None:
    """Refuse a base whose elements share memory: what is written into one is in others, too.

    Raises:
        GradientError: it is one.
    """
    if not base._meta.is_contiguous and _shares_memory(base._meta):
        raise GradientError(
            f"{where}: the gradient of a view cannot follow into a tensor with strides {base._meta.strides}, "
            "whose elements share memory. Call .contiguous() before the view is taken."
        )


def _refuse_parts(t: Tensor, base: Tensor) -> None:
    """Refuse a view of parts of complex numbers.

    Raises:
        GradientError: ``t`` is one of ``base``.
    """
    if t._meta.dtype is not base._meta.dtype:
        raise GradientError(
            f"a view of {t._meta.dtype} of a tensor of {base._meta.dtype}: gradients do not follow what is "
            "written in place. Call .clone() before the view is taken."
        )


def _show_others(base: Tensor, written: Tensor) -> None:
    """Every view shows what was written, so each is hung anew."""
    for view in views_of(base):
        if view is not written and view._node is not LEAF:
            show(view, base)


def show(t: Tensor, base: Tensor) -> None:
    """Hang a view below the present state of its base.

    Raises:
        GradientError: elements of the base share memory.
    """
    _refuse_shared("as_strided", base)
    _refuse_parts(t, base)
    place = {"base": base._meta, "part": t._meta, "offset": t._offset - base._offset}
    node = Node(_Part, {"input": (edge(base), base._meta)}, place)
    node.outputs = (t._meta,)
    note_change()
    hang(t, node)


def hang(t: Tensor, node: Node) -> None:
    """Give a tensor its place in the graph. A gradient that it retains is from now on that of this place."""
    old = t._node
    if old is not None and old.retained and (kept := old.retained.get(t._index)) is not None and kept() is t:
        del old.retained[t._index]
        node.retained = {0: kept}
    t._node, t._index = node, 0


def _part_of(whole: Tensor, part: Meta, offset: int) -> Tensor:
    return whole.as_strided(part.shape, part.strides, whole._offset + offset)


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
    if not base.is_contiguous:
        low, high = _extent(base)
        line = _placed(g, meta((high - low + 1,), base.dtype, base.device), part, offset - low)
        return line.as_strided(base.shape, base.strides, line._offset - low)
    # `as_strided` shows elements around a tensor that is itself a part; these have no gradient in it.
    reach = [(n - 1) * s for n, s in zip(part.shape, part.strides, strict=True)] if part.numel else []
    before = max(-offset - sum(min(r, 0) for r in reach), 0)
    after = max(offset + sum(max(r, 0) for r in reach) + 1 - base.numel, 0) if part.numel else 0
    if before or after:
        line = meta((before + base.numel + after,), base.dtype, base.device)
        return _placed(g, line, part, before + offset).narrow(0, before, base.numel).reshape(base.shape)
    whole = g.new_zeros(base.shape)
    if _may_overlap(part):
        index = whole.new_tensor(_positions(part) + offset, dtype=dt.int64)
        return whole.reshape(-1).index_add(0, index, g.reshape(-1)).reshape(base.shape)
    _part_of(whole, part, offset).copy_(g)
    return whole


def _extent(m: Meta) -> tuple[int, int]:
    """The places of a tensor's first and last element in memory, seen from that of index 0."""
    reach = [(n - 1) * s for n, s in zip(m.shape, m.strides, strict=True)] if m.numel else [0]
    return sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)


def _laid_out(g: Tensor, base: Meta) -> Tensor:
    """A copy that lies in memory as the base does."""
    if base.is_contiguous:
        return g.clone()
    low, high = _extent(base)
    return g.new_zeros(high - low + 1).as_strided(base.shape, base.strides, -low).copy_(g)


def _positions(part: Meta) -> np.ndarray:
    """Where the elements of a view lie, from its first."""
    places = np.zeros(tuple(part.shape), np.int64)
    for k, (length, stride) in enumerate(zip(part.shape, part.strides, strict=True)):
        places += (np.arange(length) * stride).reshape((-1,) + (1,) * (part.rank - 1 - k))
    return places.reshape(-1)


def _may_overlap(part: Meta) -> bool:
    """Whether strides alone do not show that elements of a view lie apart, as those of an expanded tensor do
    not."""
    reach = 0
    for stride, length in sorted((abs(s), n) for s, n in zip(part.strides, part.shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (length - 1)
    return False


def _shares_memory(part: Meta) -> bool:
    """Whether elements of a view share memory."""
    if not _may_overlap(part):
        return False
    zero = any(s == 0 and n > 1 for s, n in zip(part.strides, part.shape, strict=True))
    return part.numel > 0 and (zero or len(np.unique(_positions(part))) < part.numel)


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
        if grads[0] is None:
            return {}
        if self.released:
            raise freed(self.public)
        saved = self.saved
        whole = _laid_out(grads[0], self.outputs[0])
        part = _part_of(whole, saved["part"], saved["offset"])
        found = saved["node"].gradients([part.clone()], keep_graph)
        own = found.pop(saved["written"], None)
        if "base" in self.edges:
            if own is None:
                part.fill_(0)
            else:
                part.copy_(sum_to(own, part._meta.shape))
            found["base"] = whole
        return found
