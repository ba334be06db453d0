"""ATen by its own names: `from_aten` finds what computes an operator of a graph, such as ``aten.add.Tensor``.

Declarations name their overloads (``aten=``). `aten_operators.py` has those that have no function of their
own in PyTorch's Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any

from ..errors import ArgumentError
from ..nn import loss  # noqa: F401  its functions are operators of ATen, as are those that it imports
from ..op.public import OVERLOADS
from ..tensors.tensor import Tensor
from . import aten_operators  # noqa: F401  its functions are operators of ATen

# How a tensor lies in memory, which is no part of what an operator computes.
_LAYOUT = frozenset({"layout", "pin_memory", "memory_format", "non_blocking", "cudnn_enable"})
# ATen's numbers of the reductions of losses.
_REDUCTIONS = ("none", "mean", "sum")


@cache
def from_aten(name: str) -> Callable[..., Any]:
    """The function that computes an operator of ATen.

    Args:
        name: ``aten.<operator>.<overload>``, in-place operators included.

    Returns:
        A function of ATen's arguments in ATen's order. The first is given by place, devices and dtypes are
        Pellucid's.

    Raises:
        ArgumentError: there is none, or at a call, an argument has a value that is not computed here.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.ops.aten import from_aten
        >>> from_aten("aten.add.Scalar")(torch.tensor([1, 2], device="cpu"), 3, 10).tolist()
        [31, 32]
    """
    overload = name.removeprefix("aten.")
    packet, _, kind = overload.partition(".")
    found = OVERLOADS.get(overload)
    functional = OVERLOADS.get(f"{packet[:-1]}.{kind}") if packet.endswith("_") else None
    if functional is not None and (form := getattr(Tensor, packet, None)) is not None:
        found = form, functional[1]
    if found is None:
        near = get_close_matches(overload, OVERLOADS, 3)
        hint = f" There are: {', '.join(f'aten.{n}' for n in near)}." if near else ""
        raise ArgumentError(f"from_aten: there is no operator {name}.{hint}")
    return _with_arguments(overload, *found)


def _with_arguments(overload: str, function: Callable, arguments: str) -> Callable:
    """A function in ATen's terms: its text is written where those are not the function's own."""
    own = inspect.signature(function).parameters
    several = [n for n, p in own.items() if p.kind is p.VAR_POSITIONAL]
    if not arguments and not several and not {"device", "reduction"} & set(own):
        return function
    scope: dict[str, Any] = {"call": function, "refuse": _refuse, "overload": overload, "known": _REDUCTIONS}
    taken: dict[str, inspect.Parameter]
    if arguments:
        taken = dict(inspect.signature(eval(f"lambda {arguments}: None")).parameters)
    else:
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
        taken = {n: p.replace(kind=plain) if n in several else p for n, p in own.items()}
        if "reduction" in own:
            taken["reduction"] = own["reduction"].replace(default=1)
    if "device" in own:
        taken |= {
            n: inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None)
            for n in ("layout", "pin_memory", "memory_format")
            if n not in taken
        }
    parameters: list[str] = []
    checks: list[str] = []
    given: dict[str, str] = {}
    for k, (n, p) in enumerate(taken.items()):
        if p.kind is p.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        scope[f"default_{n}"] = p.default
        parameters.append(n if p.default is p.empty else f"{n}=default_{n}")
        target = n if n in own else "input" if n == "self" and "input" in own else ""
        if not target and p.default is p.empty:
            target = list(own)[k]
        if target:
            given[target] = "known[reduction]" if n == "reduction" else f"*{n}" if n in several else n
        elif n not in _LAYOUT:
            checks.append(f"    if {n} != default_{n}: refuse(overload, {n!r}, {n})")
    words, by_place = [], True
    for n, p in own.items():
        by_place = by_place and n in given and p.kind is not p.KEYWORD_ONLY
        if n in given:
            words.append(given[n] if by_place else f"{n}={given[n]}")
    text = [f"def run({', '.join(parameters)}):", *checks, f"    return call({', '.join(words)})"]
    exec("\n".join(text), scope)
    return scope["run"]


def _refuse(overload: str, name: str, value: Any) -> None:
    raise ArgumentError(f"aten.{overload}: {name}={value!r} is not computed here. Leave it out.")
