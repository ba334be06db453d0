"""Settings of optimizers: what is given to a constructor, and the ranges in which it must lie."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from math import inf
from typing import Any

from ..errors import ArgumentError, RangeError
from ..op.arguments import described, named, number, wrong
from ..tensors.tensor import Tensor

# Settings that have a range: the least value, and the least one that is too large. Of pairs, each has it.
_RANGES = {
    "lr": (0, inf),
    "eps": (0, inf),
    "weight_decay": (0, inf),
    "momentum": (0, inf),
    "betas": (0, 1),
    "rho": (0, 1 + 1e-9),
    "alpha": (0, inf),
    "lr_decay": (0, inf),
    "initial_accumulator_value": (0, inf),
    "momentum_decay": (0, inf),
    "d": (1, inf),
    "beta2_decay": (-inf, 1e-9),
}
# What arguments of many optimizers and schedules are, where a docstring does not say.
_SHARED = {
    "params": "parameters or groups.",
    "optimizer": "whose rates.",
    "lr": "learning rate.",
    "betas": "what the running means keep per step.",
    "eps": "added to the denominator.",
    "weight_decay": "times the parameter is added to the gradient.",
    "foreach": "taken, and without effect: a step is one dispatch per parameter.",
    "capturable": "taken, and without effect.",
    "fused": "taken, and without effect.",
    "maximize": "go up instead of down.",
    "differentiable": "must be False.",
    "last_epoch": "steps already taken; -1 begins anew.",
}
_PAIRS = ("betas", "etas", "step_sizes")


def given(names: dict[str, Any]) -> dict[str, Any]:
    """The settings among a constructor's local names."""
    return {k: v for k, v in names.items() if k not in ("self", "params", "__class__")}


def check_kinds(made: type, settings: dict[str, Any]) -> None:
    """Refuse settings that are not what the annotations of the constructor say.

    Args:
        made: whose constructor.
        settings: by name.

    Raises:
        ArgumentError: one is of another type.
    """
    told = made.__init__.__annotations__
    for key, value in settings.items():
        text = str(told.get(key, ""))
        kinds = set(text.split(" | "))
        if (value is None and "None" in text) or (isinstance(value, Tensor) and "Tensor" in kinds):
            continue
        several = isinstance(value, (tuple, list))
        try:
            pair = key in _PAIRS  # `check` looks at these
            if text.startswith("tuple[") and not (pair or (several and len(value) == text.count(",") + 1)):
                raise wrong(key, f"{text.count(',') + 1} numbers", value)
            if kinds - {"None", "Tensor"} <= {"int", "float"} and kinds & {"int", "float"}:
                number(value, key)
            if "Callable" in text and "Sequence" not in text and not callable(value):
                raise wrong(key, "a function", value)
            if kinds - {"None"} == {"str"} and not isinstance(value, str):
                raise wrong(key, "a text", value)
        except ArgumentError as error:
            raise named(made.__name__, error) from None


def constructed(cls: Any) -> None:
    """Give a class that has a constructor of its own one that is `checked`, and a docstring that is whole."""
    init = vars(cls).get("__init__")
    if init is None:
        return
    cls.__init__ = checked(init)
    if cls.__doc__ and cls.__module__.startswith("pellucid."):
        cls.__doc__ = described(cls.__doc__, signature(init).parameters, _SHARED)


def checked(init: Callable) -> Callable:
    """A constructor that refuses, by its annotations, what its arguments cannot be."""
    form = signature(init)

    @wraps(init)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            arguments = form.bind(self, *args, **kwargs).arguments
        except TypeError:  # too few or too many, which Python says below
            arguments = {}
        if type(self).__init__ is made:
            check_kinds(type(self), dict(arguments))
        init(self, *args, **kwargs)

    return made


def check(name: str, settings: dict[str, Any]) -> None:
    """Refuse settings that are no numbers or out of range, and ways to compute a step that are not there."""
    for key in _PAIRS:
        pair = settings.get(key, (0, 0))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(f"{name}: {key} must be two numbers, not {pair!r}.")
    for key, (least, end) in _RANGES.items():
        values = settings.get(key, ())
        several = isinstance(values, (tuple, list))
        for k, value in enumerate(values if several else (values,)):
            if key == "eps" and several and value is None:
                continue
            where = f"{key}[{k}]" if several else key
            if not least <= number(value, f"optimizer: {where}") < end:
                bound = "" if end == inf else f" and at most {int(end)}" if end % 1 else f" and below {end}"
                raise RangeError(f"optimizer: {where} must be at least {least}{bound}, not {value}.")
    if settings.get("differentiable"):
        raise RangeError(f"{name}: a step is not differentiable. Write the update as ops, or leave it out.")
    if settings.get("foreach") and settings.get("fused"):
        raise RangeError(f"{name}: foreach and fused exclude each other. Give one of them.")


__all__ = ["check", "check_kinds", "checked", "constructed", "given"]
