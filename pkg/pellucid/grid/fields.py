"""Fields of a layer's specification, each taken with its kind checked."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import FormatError

PLACE = ("z", "y", "x", "l")
OF_NETWORK = (*PLACE, "weights", "disabled")  # of a layer's fields, what the network keeps
DEEPEST = 32  # layers within each other: each takes a part of Python's stack, which is short in a page


class Fields:
    """The fields of one layer of a specification, each taken with its kind checked.

    Args:
        values: what the specification says.
        where: the layer, for errors.
    """

    def __init__(self, values: dict[str, Any], where: str):
        self.values, self.where = values, where

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def _take(self, name: str, default: Any, kinds: tuple[type, ...], what: str) -> Any:
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise FormatError(f"{self.where}: {name} is missing. Give {what}.")
            return default
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise FormatError(f"{self.where}: {name} must be {what}, not {value!r}.")
        return value

    def count(self, name: str, default: int | None = None, least: int = 1) -> int:
        value = self._take(name, default, (int,), f"an integer of at least {least}")
        if not least <= value <= 1 << 24:
            raise FormatError(f"{self.where}: {name} must lie between {least} and {1 << 24}, not {value}.")
        return value

    def either(self, name: str, other: str) -> int:
        """A count under one of two names, the first of which goes before."""
        return self.count(name if name in self or other not in self else other)

    def number(self, name: str, default: float | None = None) -> float:
        value = self._take(name, default, (int, float), "a number")
        if not abs(value) <= sys.float_info.max:
            raise FormatError(f"{self.where}: {name} must be finite and a float64, not {value!r:.40}.")
        return float(value)

    def positive(self, name: str, default: float) -> float:
        value = self.number(name, default)
        if not value > 0:
            raise FormatError(f"{self.where}: {name} must be above 0, not {value}.")
        return value

    def counts(self, name: str) -> list[int]:
        values = self.items(name)
        if not values or not all(type(n) is int and 1 <= n <= 1 << 24 for n in values):
            raise FormatError(f"{self.where}: {name} must be integers from 1 to {1 << 24}, not {values!r}.")
        return values

    def text(self, name: str, default: str | None = None) -> str:
        return self._take(name, default, (str,), "a text")

    def flag(self, name: str, default: bool = False) -> bool:
        return self._take(name, default, (bool,), "true or false")

    def items(self, name: str, default: list | None = None) -> list:
        return self._take(name, default, (list,), "a list")


def refuse_deep(specification: dict[str, Any], where: str) -> None:
    """Refuse what lies too deep within itself before Python goes there."""
    level: list[Any] = [specification]
    for _ in range(2 * DEEPEST + 2):  # a list and an object for each layer
        inner = [v for one in level for v in (one.values() if isinstance(one, dict) else one)]
        # What one level has twice counts once, or what lies within itself would double at each.
        level = list({id(v): v for v in inner if isinstance(v, (dict, list))}.values())
        if not level:
            return
    raise FormatError(f"{where}: layers lie too deep within each other; at most {DEEPEST} are read.")
