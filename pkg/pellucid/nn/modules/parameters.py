"""Modules that hold parameters and other values: ParameterDict, ParameterList."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...errors import ArgumentError
from ...op.arguments import describe
from ...tensors.queries import typename
from ...tensors.tensor import Tensor
from ..parameter import Parameter
from .container import ByName, position
from .module import Module


class ParameterDict(ByName):
    """Parameters and other values by name; plain tensors become parameters.

    Args:
        parameters: a mapping, or pairs, to begin with. Names of a mapping that promises no order are sorted.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.ParameterDict.html
    """

    _kind = "parameter"
    _keys: dict[str, None]

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys = {}
        self.update({} if parameters is None else parameters)

    def _held(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._keys}

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: a name must be a str, not {describe(key)}.")
        value = _as_parameter(value)
        if isinstance(value, Parameter) and key not in self._keys:
            self._new_name(key, self._kind)
        setattr(self, key, value)
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def update(self, values: Any) -> None:
        """Add values by name, replacing those of the same name."""
        is_unordered = isinstance(values, Mapping) and not isinstance(values, OrderedDict)
        super().update(sorted(values.items()) if is_unordered else values)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, or the default."""
        return self._held().get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, which becomes the default where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Take out and return the pair that was added last."""
        key = list(self)[-1]
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(self)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary of these names, each with the default."""
        return ParameterDict((key, default) for key in keys)

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def extra_repr(self) -> str:
        return "\n".join(f"  ({name}): {_shown(value, typename(value))}" for name, value in self.items())


class ParameterList(Module):
    """A list of parameters and of other values; plain tensors become parameters.

    Args:
        values: what to begin with.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.ParameterList.html
    """

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        self.extend(() if values is None else values)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)().extend(list(self)[index])
        return getattr(self, str(position(index, len(self), "ParameterList")))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(position(index, len(self), "ParameterList")), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end, and return this list."""
        value = _as_parameter(value)  # before the list is longer: not every tensor can be one
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end, and return this list.

        Raises:
            ArgumentError: it is no iterable, or one tensor.
        """
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise ArgumentError(f"ParameterList: extend takes several values, not {describe(values)}.")
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({k}): {_shown(value, getattr(value, 'dtype', None))}" for k, value in enumerate(self)
        )


def _shown(value: Any, kind: Any) -> str:
    """A value as it is printed; a parameter with its kind, which is its dtype or its type."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    return f"Parameter containing: [{kind} of size {'x'.join(map(str, value.shape))}]"


def _as_parameter(value: Any) -> Any:
    """A plain tensor as a parameter, anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


__all__ = ["ParameterDict", "ParameterList"]
