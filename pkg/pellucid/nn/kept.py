"""A dictionary that taps keep values in, where values of a replay are made when somebody asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..tensors.tensor import Tensor


class _Late:
    """Stands for values that are not made yet.

    Args:
        numbers: path -> number of the value.
        values: gives a value by its number.
    """

    __slots__ = ("numbers", "values")

    def __init__(self, numbers: Mapping[str, int], values: Mapping[int, Any]):
        self.numbers, self.values = numbers, values


class Kept(dict):
    """Values by path, in the order in which they were computed.

    Most values of a captured step are never looked at: making a tensor for each would cost more than the rest
    of the replay does in Python.
    """

    def keep_late(self, numbers: Mapping[str, int], values: Mapping[int, Any]) -> None:
        """Keep values, which ran last, and let go of those before.

        Args:
            numbers: path -> number of the value.
            values: gives a value by its number, and makes all of them for the first one.
        """
        if dict.keys(self) <= numbers.keys():
            self.clear()
        else:
            for path in numbers:
                dict.pop(self, path, None)
        dict.update(self, dict.fromkeys(numbers, _Late(numbers, values)))

    def _make(self) -> None:
        """Make what is not made yet."""
        # All at once: what stands for some of them would hold the memory of all.
        for path, value in [*dict.items(self)]:
            if type(value) is _Late:
                self[path] = value.values[value.numbers[path]]

    def __getitem__(self, path: str) -> Any:
        value = super().__getitem__(path)
        if not isinstance(value, Tensor):
            self._make()
            value = super().__getitem__(path)
        return value

    def __iter__(self) -> Iterator[str]:
        # With one of its own, `dict(kept)` and ``{**kept}`` ask for values as anybody does.
        return super().__iter__()

    def get(self, path: str, default: Any = None) -> Any:
        """The value of a path, or another one if there is none."""
        self._make()
        return super().get(path, default)

    def setdefault(self, path: str, default: Any = None) -> Any:
        """The value of a path, which becomes another one if there is none."""
        self._make()
        return super().setdefault(path, default)

    def pop(self, path: str, *default: Any) -> Any:
        """The value of a path, or another one if there is none, and the path is gone."""
        self._make()
        return super().pop(path, *default)

    def popitem(self) -> tuple[str, Any]:
        """The last path with its value, which are gone."""
        self._make()
        return super().popitem()

    def items(self) -> Any:
        """Paths with their values."""
        return [(path, self[path]) for path in self]

    def values(self) -> Any:
        """The values alone."""
        return [self[path] for path in self]

    def copy(self) -> dict[str, Any]:
        """A dictionary of its own with the same values."""
        return dict(self.items())

    def __repr__(self) -> str:
        return repr(self.copy())


__all__ = ["Kept"]
