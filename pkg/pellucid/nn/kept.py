"""A dictionary that taps keep values in, where values of a replay are made when somebody asks for one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple


class Late(NamedTuple):
    """Values that are not made yet.

    Args:
        numbers: path -> number of the value, in the order in which they were computed.
        values: gives a value by its number, and makes all of them for the first one.
    """

    numbers: Mapping[str, int]
    values: Mapping[int, Any]


class Kept(dict[str, Any]):
    """Values by path, in the order in which they were computed.

    Most values of a captured step are never looked at: making a tensor for each, or as much as an entry here,
    would cost more than the rest of the replay does in Python.
    """

    def __init__(self, *values: Any):
        # Where there are values to be made, nothing else is kept.
        self._late: Late | None = None
        # The last numbers of which it was seen that they are those of some paths, and these.
        self._fitting: tuple[Any, Any] = (None, None)
        super().__init__(*values)

    def _make(self) -> None:
        """Make what is not made yet."""
        if self._late is not None:
            numbers, values = self._late
            dict.update(self, {path: values[number] for path, number in numbers.items()})
            self._late = None

    def has_others(self, paths: Collection[str]) -> bool:
        """Whether values of other paths are kept, too."""
        late, fitting = self._late, self._fitting
        if late is not None and (
            paths is late.numbers or (late.numbers is fitting[0] and paths is fitting[1])
        ):
            return False
        known = dict.keys(self) if late is None else late.numbers
        found = not all(map(paths.__contains__, known))
        if late is not None and not found:
            self._fitting = late.numbers, paths
        return found

    def now(self, paths: Collection[str]) -> Late | dict[str, Any]:
        """What is kept of some paths, to be put back by `put`."""
        if not self.has_others(paths):
            return self._late or dict(dict.items(self))
        self._make()
        return {path: value for path, value in dict.items(self) if path in paths}

    def put(self, paths: Collection[str], values: Late | dict[str, Any]) -> None:
        """Keep these values of some paths, which ran last, and let go of those before."""
        if not self.has_others(paths):
            self.clear()
            if isinstance(values, Late):
                self._late = values
                return
        else:
            self._make()
            for path in paths:
                dict.pop(self, path, None)
            if isinstance(values, Late):
                values = {path: values.values[number] for path, number in values.numbers.items()}
        dict.update(self, values)

    def clear(self) -> None:
        """Let go of all values."""
        self._late = None
        super().clear()


def _after_making(name: str) -> Callable[..., Any]:
    own = getattr(dict, name)

    def method(self: Kept, *args: Any, **kwargs: Any) -> Any:
        self._make()
        return own(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, own.__doc__
    return method


# With an ``__iter__`` of its own, `dict(kept)` and ``{**kept}`` ask for values as anybody does.
for _name in (
    "__contains__", "__delitem__", "__eq__", "__getitem__", "__ior__", "__iter__", "__len__", "__ne__",
    "__or__", "__repr__", "__reversed__", "__setitem__", "copy", "get", "items", "keys",
    "pop", "popitem", "setdefault", "update", "values",
):  # fmt: skip
    setattr(Kept, _name, _after_making(_name))


__all__ = ["Kept", "Late"]
