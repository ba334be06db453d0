"""Public names: the functions that `pellucid`, `nn.functional` and Tensor offer, registered where each is
declared.

`@op` registers ops, `@function` what is written in terms of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable)

# Functions by name, for each module that exports them; "torch" is `pellucid` itself.
EXPORTS: dict[str, dict[str, Callable]] = {"torch": {}, "nn.functional": {}}
# Methods of Tensor by name.
METHODS: dict[str, Callable] = {}
# The op of each in-place method of Tensor, by the method's name.
IN_PLACE: dict[str, Any] = {}
# What gives Tensor its methods: those of ops that a program declares later come at once.
attach: list[Callable[[], None]] = []
# By ATen's overload, such as "add.Tensor": what computes it, and the arguments where they are not its own.
OVERLOADS: dict[str, tuple[Callable, str]] = {}
# Why a function is no operator of ATen.
OURS: dict[Callable, str] = {}


def function(
    *,
    exports: str | tuple[str, ...] | None = "torch",
    method: bool = False,
    aliases: tuple[str, ...] = (),
    aten: str | tuple[str, ...] | None = None,
    ours: str = "",
) -> Callable[[F], F]:
    """Declare a public function that has no kernel of its own; `publish` explains the arguments."""

    def declare(function: F) -> F:
        publish(function, exports, method, aliases)
        name_overloads(function, aten, ours, aliases)
        return function

    return declare


def publish(
    function: Callable,
    exports: str | tuple[str, ...] | None,
    method: bool,
    aliases: tuple[str, ...] = (),
    in_place: bool | tuple[str, ...] = False,
) -> None:
    """Register a function under its name.

    Args:
        function: what users call.
        exports: where it is public: "torch", "nn.functional", both or None.
        method: whether it is a method of Tensor.
        aliases: further names, everywhere where it is public.
        in_place: of an op: whether Tensor has its in-place form, as ``<name>_`` or as the names given here.

    Raises:
        TypeError: the name is taken.
    """
    name = function.__name__
    places = [EXPORTS[place] for place in ((exports,) if isinstance(exports, str) else exports or ())]
    if method:
        places.append(METHODS)
    forms = in_place if isinstance(in_place, tuple) else (f"{name}_",) if in_place else ()
    entries = [(place, n, function) for place in places for n in (name, *aliases)]
    entries += [(IN_PLACE, n, function.op) for n in forms]  # type: ignore[attr-defined]
    for place, n, _ in entries:
        if n in place or (place in (METHODS, IN_PLACE) and (n in METHODS or n in IN_PLACE)):
            raise TypeError(f"function {n} is declared twice")
    for place, n, value in entries:
        place[n] = value
    if method or forms:
        for give in attach:
            give()


def name_overloads(
    function: Callable, aten: str | tuple[str, ...] | None, ours: str, aliases: tuple[str, ...] = ()
) -> None:
    """Register which of ATen's operators a function computes; `ops.aten` calls it by them.

    Args:
        function: what computes them.
        aten: overloads; ``<name>.default`` if None, where nothing else is. Behind one that takes other
            arguments than the function, or in another order, stand ATen's, as in ``"add.Scalar(self, other,
            alpha=1)"``.
        ours: why there is none.
        aliases: further names of each operator.

    Raises:
        TypeError: an overload has been named before.
    """
    name = function.__name__
    if ours:
        OURS[function] = ours
        return
    if aten is None:
        for n in (name, *aliases):
            OVERLOADS.setdefault(f"{n}.default", (function, ""))
        return
    for text in (aten,) if isinstance(aten, str) else aten:
        overload, _, arguments = text.rstrip(")").partition("(")
        packet, _, kind = overload.partition(".")
        for n in (overload, *[f"{alias}.{kind}" for alias in aliases if packet == name]):
            if n in OVERLOADS:
                raise TypeError(f"aten.{n} is declared twice")
            OVERLOADS[n] = function, arguments
