"""``__torch_function__``: calls whose arguments are of classes that compute them in their own way, subclasses
of Tensor that ops keep, and modes that see every call.

Nothing is paid where there is neither: a subclass shows ops a layout that no plan has in its key, what stands
for a tensor has no layout, and a mode takes their plans away. So such calls come to the slow path, which asks
here. Methods that are no ops ask by forms of their own, which subclasses have, and Tensor itself within a
mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from types import FunctionType
from typing import Any

from ..autograd.edges import LEAF, note_view
from ..errors import ArgumentError
from ..op.public import EXPORTS
from ..op.schema import Schema, overrides
from .meta import Meta
from .tensor import Tensor

_enabled: ContextVar[bool] = ContextVar("torch_function_enabled", default=True)
modes: ContextVar[tuple[Any, ...]] = ContextVar("torch_functionmodes", default=())
# Of classes whose instances compute nothing in their own way.
_PLAIN = frozenset({Tensor, bool, int, float, complex, str, type(None)})
# What else of Tensor calls dispatch, of the methods with two underscores.
_SPOKEN = frozenset({"__contains__", "__getitem__", "__len__", "__repr__", "__setitem__"})


def disabled(*given: Any) -> Any:
    """The ``__torch_function__`` of parameters: ops take them as tensors."""
    return NotImplemented


_disabled_torch_function_impl = disabled


class _Switched:
    """A context that switches dispatch off."""

    modes_too = False

    def __enter__(self) -> None:
        self._before = _enabled.get(), modes.get()
        _enabled.set(False)
        if self.modes_too:
            modes.set(())

    def __exit__(self, *exc: Any) -> None:
        _enabled.set(self._before[0])
        modes.set(self._before[1])


class DisableTorchFunctionSubclass(_Switched):
    """Within the context, ops take subclasses of Tensor as tensors."""


class DisableTorchFunction(_Switched):
    """Within the context, ops take subclasses of Tensor as tensors, and no mode sees them."""

    modes_too = True


# Who computes a call


def overriding(values: Iterable) -> list:
    found: list = []
    for v in values:
        kind = type(v)
        if kind in _PLAIN:
            continue
        if kind in (list, tuple):
            found += overriding(v)
        elif has_own(kind):
            found.append(v)
    return found


def has_own(kind: type) -> bool:
    """Whether a class has a ``__torch_function__`` of its own."""
    own = getattr(kind, "__torch_function__", None)
    return own is not None and own is not disabled and (not issubclass(kind, Tensor) or _is_shown(kind))


def _is_shown(kind: type) -> bool:
    return _shown.cache_info().currsize > 0 and issubclass(kind, _shown())


def find(values: Iterable) -> list | None:
    """Which values of a call compute it in their own way; None if none does, and no mode sees it."""
    found = overriding(values) if _enabled.get() else []
    return found if found or modes.get() else None


def dispatch(function: Callable, args: tuple, kwargs: dict[str, Any], found: list) -> Any:
    """What the innermost mode, or one of these values, makes of a call.

    Raises:
        ArgumentError: none of them computes it.
    """
    overrides.active = True
    order: list = []
    for v in found:
        if type(v) not in map(type, order):
            at = next((k for k, w in enumerate(order) if issubclass(type(v), type(w))), len(order))
            order.insert(at, v)
    types = tuple(map(type, order))
    if within := modes.get():
        token = modes.set(within[:-1])
        try:
            made = within[-1].__torch_function__(function, types, args, kwargs)
        finally:
            modes.reset(token)
        if made is not NotImplemented:
            return made
    for v in order:
        made = v.__torch_function__(function, types, args, kwargs)
        if made is not NotImplemented:
            return made
    raise ArgumentError(
        f"Multiple dispatch failed for {resolve_name(function)!r}; all __torch_function__ handlers returned "
        f"NotImplemented: those of {', '.join(type(v).__name__ for v in (*within[-1:], *order))}."
    )


def _of_op(o: Schema, function: Callable, values: Sequence, found: list, **more: Any) -> Any:
    """A call of an op, with the arguments that are not their defaults."""
    pairs = [*zip(o.arguments, values, strict=True)]
    placed = [(a, v) for a, v in pairs if not a.keyword]
    while placed and placed[-1][1] is placed[-1][0].default:
        placed.pop()
    kwargs = {a.name: v for a, v in pairs if a.keyword and v is not a.default} | more
    return dispatch(function, tuple(v for _, v in placed), kwargs, found)


def resolve_name(f: Callable) -> str | None:
    """The public name of a function, such as "torch.add"; None if it has none."""
    for place, functions in EXPORTS.items():
        for name, function in functions.items():
            if function is f:
                return f"torch.{name}" if place == "torch" else f"torch.{place}.{name}"
    return next((f"torch.Tensor.{name}" for name, value in vars(Tensor).items() if value is f), None)


# Subclasses of Tensor


class Veiled(Meta):
    """The layout of a tensor that no plan has in its key.

    Args:
        of: the layout.
    """

    def __init__(self, of: Meta):
        super().__init__(of.shape, of.strides, of.dtype, of.device)
        self.of = of


_veiled = lru_cache(256)(Veiled)


class _Layout:
    """The attribute ``_meta`` of a subclass: veiled where its ``__torch_function__`` is to be asked."""

    def __get__(self, t: Any, owner: Any = None) -> Any:
        try:
            m = vars(t)["_meta"]
        except KeyError:
            raise AttributeError("_meta") from None
        return _veiled(m) if _enabled.get() else m

    def __set__(self, t: Any, m: Meta) -> None:
        vars(t)["_meta"] = getattr(m, "of", m)


def asking(function: Callable, asked: Any) -> Callable:
    """The form of a method that asks first who computes it.

    Args:
        function: the method.
        asked: what is given as the function to whoever computes it.
    """

    @wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        found = find((*args, *kwargs.values()))
        return function(*args, **kwargs) if found is None else dispatch(asked, args, kwargs, found)

    return method


@cache
def forms() -> dict[str, Any]:
    """The forms of Tensor's methods and properties that are no ops."""
    made: dict[str, Any] = {}
    for kind in reversed(Tensor.__mro__[:-1]):
        for name, value in vars(kind).items():
            if (
                name == "as_subclass"
                or (name[0] == "_" and name not in _SPOKEN)
                or "plans" in getattr(value, "__globals__", ())
            ):
                continue
            if isinstance(value, property) and value.fget is not None:
                written = value.fset and asking(value.fset, value.__set__)
                made[name] = property(asking(value.fget, value.__get__), written)
            elif isinstance(value, FunctionType):
                made[name] = asking(value, value)
    return made


@cache
def _shown() -> type[Tensor]:
    """The class between Tensor and its subclasses."""

    def new(cls: type, *given: Any, **options: Any) -> Any:
        self = object.__new__(cls)
        known = {"device"} & options.keys()
        Tensor.__init__(self, *given, **{name: options[name] for name in known})
        return self

    def begin(self: Any, *given: Any, **options: Any) -> None:
        if len(given) == 3 and isinstance(given[1], Meta):
            Tensor.__init__(self, *given)

    body = {"__new__": new, "__init__": begin, "_meta": _Layout(), "__module__": Tensor.__module__}
    return type("Tensor", (Tensor,), {**forms(), **body})


def _subclass(cls: Any, **options: Any) -> None:
    """Let ops ask a class that a program derives from Tensor."""
    super(Tensor, cls).__init_subclass__(**options)
    if cls.__module__.startswith("pellucid.") or cls.__torch_function__ is disabled:
        return
    between = _shown()
    overrides.active = True
    if not issubclass(cls, between):
        bases = [between if b is Tensor else b for b in cls.__bases__]
        cls.__bases__ = tuple(bases if between in bases else [*bases, between])


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor as one of a subclass, in the same place of the graph.

    Source: https://pytorch.org/docs/stable/generated/torch.Tensor.as_subclass.html
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise ArgumentError(f"as_subclass: takes a subclass of Tensor, not {cls!r}.")
    with DisableTorchFunctionSubclass():
        source = self.view_as(self) if self._node is LEAF else self
        made = _bare(source, cls)
        made._node, made._index = source._node, source._index
        if source._base is not None:
            made._base = source._base
            note_view(source._base, made)
    return made


def _bare(t: Tensor, cls: type) -> Any:
    made: Any = object.__new__(cls)
    made._storage, made._meta, made._offset = t._storage, t._meta, t._offset
    return made


def make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """A tensor of a subclass with the values of another one, outside the graph."""
    with DisableTorchFunctionSubclass():
        return _bare(data, cls).requires_grad_(require_grad)


def _converted(made: Any, cls: type) -> Any:
    if isinstance(made, Tensor) and not isinstance(made, cls):
        return as_subclass(made, cls)
    if isinstance(made, (tuple, list)) and type(made) is not type(Tensor.shape):
        make = getattr(made, "_make", type(made))  # named tuples take their parts one by one
        return make([_converted(m, cls) for m in made])
    return made


@cache
def get_default_nowrap_functions() -> frozenset:
    """The properties whose tensors keep their class."""
    kinds: Any = vars(Tensor)
    return frozenset({kinds["grad"].__get__})


def torch_function(
    cls: type, func: Callable, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
) -> Any:
    """Compute a call as that of tensors, and give results this class."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        made = func(*args, **(kwargs or {}))
    return made if cls is Tensor or func in get_default_nowrap_functions() else _converted(made, cls)


def _attach() -> None:
    kind: Any = Tensor
    kind.__init_subclass__ = classmethod(_subclass)
    overrides.find, overrides.dispatch, overrides.of_op = find, dispatch, _of_op


_attach()
