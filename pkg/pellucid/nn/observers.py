"""Hooks of modules, found again when one came or went: taps that keep values, and hooks that run Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .hooks import HookTable, Tap
from .kept import Late
from .modules import module as modules
from .modules.module import Module


class Observers:
    """Who looks into some modules.

    Args:
        tree: gives the modules; all there are if None.

    Attributes:
        at: the versions at which they were looked for.
        taps: those that only keep values.
        run_python: there are hooks that are no taps.
        key: equal where the same modules are tapped alike.
    """

    def __init__(self, tree: Callable[[], Iterable[Module]] | None = None):
        self._tree = tree
        self.at = (-1, -1)
        self.taps: list[Tap] = []
        self.run_python = False
        self.key: tuple = ()
        # Numbers of taps -> those that keep their values at one place, by path.
        self._shared: dict[tuple, list[dict[str, int]]] = {}

    def find(self) -> None:
        """Look for them again, if any may have come or gone."""
        at = modules.version, modules.looks
        if self.at != at:
            self.at = at
            tables = HookTable.all() if self._tree is None else [m._hooks for m in self._tree()]
            found = [
                (id(table), h.function)
                for table in tables
                for h in list(table.values())
                if not hasattr(h.function, "is_for_recording")
            ]
            taps = [(number, tap) for number, tap in found if isinstance(tap, Tap)]
            self.run_python = len(taps) < len(found)
            self.taps = [tap for _, tap in taps]
            self._shared.clear()
            self.key = tuple([(number, tap.kind) for number, tap in taps])

    def run(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a function; while taps look, with the values that they keep, by number."""
        before = Tap.turns
        result = function(*args, **kwargs)
        if not self.taps:
            return result
        ran = sorted((tap.turn, k) for k, tap in enumerate(self.taps) if tap.turn > before)
        return result, {k: self.taps[k].seen[self.taps[k].path] for _, k in ran}

    def show(self, result: Any, values: Mapping[int, Any]) -> Any:
        """Have taps keep such values again; returns the result."""
        numbers = tuple(values)
        for paths in self._shared.get(numbers) or self._find_shared(numbers):
            # As `Tap.keep`, but for the turn, which counts while a function runs.
            self.taps[next(iter(paths.values()))].seen.put(paths, Late(paths, values))
        return result

    def _find_shared(self, numbers: tuple) -> list[dict[str, int]]:
        shared: dict[int, dict[str, int]] = {}
        for k in numbers:
            paths = shared.setdefault(id(self.taps[k].seen), {})
            paths.pop(self.taps[k].path, None)
            paths[self.taps[k].path] = k
        self._shared[numbers] = [*shared.values()]
        return self._shared[numbers]


__all__ = ["Observers"]
