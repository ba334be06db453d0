"""Settings of optimizers: what is given to a constructor, and the ranges in which it must lie."""

from __future__ import annotations

from math import inf
from typing import Any

from ..errors import ArgumentError, RangeError
from ..op.arguments import number

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
_PAIRS = ("betas", "etas", "step_sizes")


def given(names: dict[str, Any]) -> dict[str, Any]:
    """The settings among a constructor's local names."""
    return {k: v for k, v in names.items() if k not in ("self", "params", "__class__")}


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


__all__ = ["check", "given"]
