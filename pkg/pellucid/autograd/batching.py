"""Examples of a batch: tensors that stand for one and hold all of them, which `vmap` gives to a function.

An op that is given one finds no plan, so its slow path asks here. A family's rule (`batching_rules`) makes
one call for the batch of it; an op without a rule runs once for each example, and the results are stacked.
Ops record what they do to the batch, so derivatives need no rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, GradientError, ShapeError
from ..op import slow_path
from ..op.planning import Op
from ..op.pytree import flatten, unflatten
from ..op.schema import OPS
from ..tensors.dtypes import can_cast
from ..tensors.meta import Meta
from ..tensors.shape import Size, contiguous_strides
from ..tensors.tensor import Tensor
from .engine import sum_to
from .function import Function


@dataclass
class Level:
    """One `vmap` that runs.

    Args:
        number: how many are around it.
        size: of its batch.
        randomness: "error", "same" or "different".
    """

    number: int
    size: int
    randomness: str


_levels: ContextVar[tuple[Level, ...]] = ContextVar("vmap_levels", default=())


def levels() -> tuple[Level, ...]:
    """The calls of `vmap` that run, from the outermost."""
    return _levels.get()


class Batched(Tensor):
    """An example of a batch, as the function that `vmap` calls sees it.

    Args:
        value: the batch, along its first axis.
        level: whose.
        is_copy: it should be a view and is not: writing into it would be lost.
    """

    is_batched = True

    def __init__(self, value: Tensor, level: Level, is_copy: bool = False):
        self._value, self._level, self._is_copy = value, level, is_copy
        shape = Size(value.shape[1:])
        # Not interned: no plan has it in its key.
        self._meta = Meta(shape, contiguous_strides(tuple(shape)), value.dtype, value.device)
        self._offset = 0

    @property
    def _storage(self) -> Any:
        raise ArgumentError(
            "vmap: the values of one example cannot be read or moved within the function, as item(), bool(), "
            "numpy() and to() do. Use where() for a condition."
        )

    @property
    def requires_grad(self) -> bool:
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._refuse("requires_grad")

    def new_zeros(self, *size: Any, **options: Any) -> Tensor:
        return self._new("new_zeros", size, options)

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        return self._new("new_ones", size, options)

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        return self._new("new_empty", size, options)

    def new_full(self, size: Any, fill_value: Any, *more: Any, **options: Any) -> Tensor:
        return Batched(
            self._value.new_full((self._level.size, *size), fill_value, *more, **options), self._level
        )

    def _new(self, name: str, size: tuple, options: dict[str, Any]) -> Tensor:
        """A tensor of the batch, so that examples can be written into it."""
        shape = size if not size or isinstance(size[0], int) else tuple(size[0])
        return Batched(getattr(self._value, name)((self._level.size, *shape), **options), self._level)

    def strided(self, size: tuple[int, ...], stride: tuple[int, ...], start: int) -> Tensor:
        """`as_strided` of an example, which must lie in one piece.

        Raises:
            ArgumentError: it does not.
            ShapeError: the view would reach outside the example.
        """
        count, v = self.numel(), self._value
        reach = [(n - 1) * s for n, s in zip(size, stride, strict=True)]
        low, high = start + sum(min(r, 0) for r in reach), start + sum(max(r, 0) for r in reach)
        if not v.is_contiguous():
            raise ArgumentError(
                "as_strided: an example does not lie in one piece within vmap. Clone it first."
            )
        if low < 0 or high >= max(count, 1):
            raise ShapeError(f"as_strided: reaches elements {low} to {high} of an example of {count}.")
        many, steps = (self._level.size, *size), (count, *stride)
        return Batched(v.as_strided(many, steps, v._offset + start), self._level)

    def detach(self) -> Tensor:
        return Batched(self._value.detach(), self._level, self._is_copy)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self._refuse("requires_grad_")
        return self

    def register_hook(self, hook: Any) -> Any:
        self._refuse("register_hook")

    def __repr__(self) -> str:
        return f"Batched(level={self._level.number}, batch={self._level.size}, shape={tuple(self.shape)})"

    def _refuse(self, name: str) -> None:
        raise GradientError(f"vmap: {name} is not there within the function. Use pellucid.func.grad.")


def is_batched(value: Any) -> bool:
    """Whether an argument is an example of a batch, or a list with one."""
    if isinstance(value, (list, tuple)):
        return any(map(is_batched, value))
    return getattr(value, "is_batched", False)


def _top(values: Sequence[Any]) -> Level:
    """The innermost level of some arguments."""
    found: list[Level] = []
    for v in values:
        if isinstance(v, Batched):
            found.append(v._level)
        elif isinstance(v, (list, tuple)) and is_batched(v):
            found.append(_top(v))
    return max(found, key=lambda level: level.number)


def of_level(value: Any, level: Level) -> bool:
    """Whether a value is an example of this level's batch."""
    return isinstance(value, Batched) and value._level is level


def invoke(o: Op, values: Sequence[Any]) -> Any:
    """Call an op with all its arguments."""
    named = {a.name: v for a, v in zip(o.arguments, values, strict=True) if a.keyword}
    return o.call(*[v for a, v in zip(o.arguments, values, strict=True) if not a.keyword], **named)


def _wrapped(result: Any, level: Level, is_copy: bool = False) -> Any:
    if isinstance(result, Tensor):
        return Batched(result, level, is_copy)
    values = [_wrapped(r, level, is_copy) for r in result]
    return type(result)._make(values) if hasattr(result, "_make") else type(result)(values)


def apply(o: Op, values: tuple) -> Any:
    """An op of examples: by a rule, or one call for each.

    Raises:
        ArgumentError: it writes into memory, or looks at it.
    """
    from .batching_rules import rule_of

    level = _top(values)
    if o.mutates or o.name == "_strided_view":
        raise ArgumentError(f"{o.public}: is not there within vmap. Call it outside.")
    if o.prepare is not None and (done := o.prepare(*values)) is not None:
        return done
    rule = rule_of(o)
    made = NotImplemented if rule is None else rule(o, values, level)
    if made is NotImplemented:
        return loop(lambda *v: invoke(o, v), values, {}, is_copy=o.view is not None)
    return _wrapped(
        made, level, o.view is not None and _plain(made)._storage is not _plain(values[0])._storage
    )


def _plain(t: Any) -> Tensor:
    """The tensor in the middle of nested batches."""
    return _plain(t._value) if isinstance(t, Batched) else t


def loop(function: Callable, args: Sequence[Any], kwargs: dict[str, Any], is_copy: bool = False) -> Any:
    """Call a function for each example of the innermost batch among its arguments, and stack what it returns.

    Raises:
        ArgumentError: the batch is empty, or results that are no tensors differ.
    """
    level = _top([*args, *kwargs.values()])
    leaves: list[Any] = []
    structure = flatten((tuple(args), kwargs), leaves)
    if not level.size:
        raise ArgumentError("vmap: a batch of no examples needs ops that have a rule.")
    outs: list[list[Any]] = []
    form: Any = None
    for k in range(level.size):
        given = [t._value.select(0, k) if of_level(t, level) else t for t in leaves]
        a, named = unflatten(structure, iter(given))
        outs.append([])
        form = flatten(function(*a, **named), outs[-1])
    results = []
    for parts in zip(*outs, strict=True):
        if isinstance(parts[0], Tensor):
            stacked = OPS["cat"].call([p.unsqueeze(0) for p in parts], 0)
            results.append(Batched(stacked, level, is_copy))
        elif any(p != parts[0] for p in parts):
            raise ArgumentError("vmap: a result that is no Tensor differs between examples.")
        else:
            results.append(parts[0])
    return unflatten(form, iter(results))


def write(o: Op, values: tuple) -> Any:
    """The in-place form of an op: the result is copied over the batch.

    Raises:
        ArgumentError: the tensor is not of the batch, or only a copy of a part of it.
    """
    target, level = values[0], _top(values)
    if not of_level(target, level):
        raise ArgumentError(
            f"{o.public}_: values of a batch do not fit into a tensor that is none. Use the form without "
            "underscore, or make the tensor from one of the batch, for example by zeros_like()."
        )
    if target._is_copy:
        raise ArgumentError(f"{o.public}_: this view is a copy within vmap, which nobody would see changed.")
    first = Batched(target._value.clone(), level) if target.requires_grad else target
    out = invoke(o, (first, *values[1:]))
    if tuple(out.shape) != tuple(target.shape) or not can_cast(out.dtype, target.dtype):
        raise ShapeError(
            f"{o.public}_: a result of shape {tuple(out.shape)} and {out.dtype} does not fit into a tensor "
            f"of shape {tuple(target.shape)} and {target.dtype}."
        )
    target._value.copy_(out._value if of_level(out, level) else out)
    return target


slow_path.batched = (apply, write)


def drawn_by_each() -> tuple[Level, ...]:
    """The levels whose examples draw random numbers of their own."""
    return tuple(level for level in _levels.get() if level.randomness == "different")


def check_drawing(each: bool) -> None:
    """Look at what the calls of `vmap` that run say of random numbers.

    Args:
        each: they are drawn for every example.

    Raises:
        ArgumentError: one says nothing, or examples would share what must differ.
    """
    for level in _levels.get():
        if level.randomness == "error":
            raise ArgumentError(
                "vmap: called random operation while in randomness error mode. Give randomness='same' or "
                "'different'."
            )
        if level.randomness == "different" and not each:
            raise ArgumentError(
                "vmap: this random operation is not there with randomness='different'. Use rand(), randn(), "
                "randint() or dropout(), or call it outside."
            )


# Composed functions: their formulas see examples, their node the batch


def composed_call(o: Any, function: Callable, values: tuple) -> Any:
    """A function with formulas of its own (`composed`), of examples."""
    level = _top(values)
    places = [k for k, v in enumerate(values) if isinstance(v, Tensor)]
    flags = [of_level(values[k], level) for k in places]
    names = [a.name for a in o.arguments]

    def whole(given: Sequence[Tensor]) -> list[Any]:
        full = list(values)
        for k, flag, t in zip(places, flags, given, strict=True):
            full[k] = Batched(t, level) if flag else t
        return full

    def forward(ctx: Any, *given: Tensor) -> Tensor:
        out = whole_of(function(*whole(given)), level)
        ctx.save_for_backward(*given, out)
        return out

    def backward(ctx: Any, g: Tensor) -> Any:
        *given, out = ctx.saved_tensors
        known = dict(zip(names, whole(given), strict=True))
        known |= {f"{n}_meta": v._meta for n, v in known.items() if isinstance(v, Tensor)}
        known |= {"g": Batched(g, level), "out": Batched(out, level)}
        needed = frozenset(names[k] for k, n in zip(places, ctx.needs_input_grad, strict=True) if n)
        slopes: dict[str, Any] = {}
        for name in needed & o.grad.keys():
            if name not in slopes:
                formula, wanted = o.grad[name]
                made = formula(*[needed if w == "needs" else known[w] for w in wanted])
                slopes |= made if type(made) is dict else {name: made}
        found: list[Any] = []
        for k, flag in zip(places, flags, strict=True):
            part = slopes.get(names[k])
            if part is not None:
                part = whole_of(sum_to(part, known[names[k]].shape), level)
                part = part if flag else part.sum(0)
            found.append(part)
        return tuple(found)

    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    node: Any = type(o.public, (Function,), body)
    return Batched(
        node.apply(*[v._value if of_level(v, level) else v for v in (values[k] for k in places)]), level
    )


def spread(t: Tensor, level: Level) -> Tensor:
    """A tensor that is the same for all examples, as a batch."""
    return t.unsqueeze(0).expand((level.size, *t.shape))


def whole_of(t: Any, level: Level) -> Tensor:
    """The batch of an example, or of what is the same for all."""
    return t._value if of_level(t, level) else spread(t, level)


# Batches of several levels at once


def full(t: Tensor, of: Sequence[Level]) -> Tensor:
    """The batch that an example stands for, with an axis for each of these levels in front."""
    if not of:
        return t
    inner = of[:-1]
    if of_level(t, of[-1]):
        return full(t._value, inner)  # type: ignore[attr-defined]
    x = full(t, inner)
    shape = tuple(x.shape)
    n = len(inner)
    return x.unsqueeze(n).expand((*shape[:n], of[-1].size, *shape[n:]))


def enclose(x: Tensor, of: Sequence[Level]) -> Tensor:
    """The example of a batch with an axis for each of these levels in front."""
    for level in of:
        x = Batched(x, level)
    return x


def running(level: Level, function: Callable, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function returns that runs within a level."""
    token = _levels.set((*_levels.get(), level))
    try:
        return function(*args, **kwargs)
    finally:
        _levels.reset(token)


__all__ = [
    "Batched", "Level", "check_drawing", "composed_call", "drawn_by_each", "enclose", "full", "levels",
    "loop", "of_level", "running", "spread", "whole_of",
]  # fmt: skip
