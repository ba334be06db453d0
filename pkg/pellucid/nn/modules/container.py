"""Modules that hold modules: in a row, in a list, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, overload

from ...errors import ArgumentError, DimensionError, RangeError
from ...op.arguments import describe
from .module import Module


def position(index: int, length: int, where: str) -> int:
    if not -length <= index < length:
        raise DimensionError(f"{where}: index {index} is out of range for {length} entries.")
    return index % length


def listed(values: Any, where: str) -> list[Any]:
    """What a container is given to hold, in order."""
    if values is None:
        return []
    if not isinstance(values, Iterable):
        raise ArgumentError(f"{where}: takes a list or another iterable, not {describe(values)}.")
    return list(values)


class _Numbered(Module):
    """Submodules under the names "0", "1", ..."""

    def _items(self) -> list[Any]:
        return list(self._own("module").values())

    def _renew(self, items: list[Any]) -> None:
        for name in self._own("module"):
            delattr(self, name)
        for k, m in enumerate(items):
            self.add_module(str(k), m)

    def _part(self, index: slice) -> Any:
        out = type(self)()
        out._renew(self._items()[index])
        return out

    def __len__(self) -> int:
        return len(self._own("module"))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index):
        items = self._items()
        if isinstance(index, slice):
            return self._part(index)
        return items[position(index, len(items), type(self).__name__)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._own("module"))[position(index, len(self), type(self).__name__)], module)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        if not isinstance(index, slice):
            index = position(index, len(items), type(self).__name__)
        del items[index]
        self._renew(items)

    def append(self, module: Module):
        """Add a module at the end, and return this one."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module):
        """Add a module before position ``index``, and return this one."""
        items = self._items()
        items.insert(index, module)
        self._renew(items)
        return self

    def extend(self, modules: Iterable[Module]):
        """Add modules at the end, and return this one."""
        for m in listed(modules, type(self).__name__):
            self.append(m)
        return self

    def pop(self, key: int | slice = -1) -> Any:
        """Take out and return the module at a position."""
        m = self[key]
        del self[key]
        return m


class Sequential(_Numbered):
    """Modules called one after the other.

    Args:
        args: modules, or one mapping of names to modules.

    Example:
        >>> import pellucid as torch
        >>> nn = torch.nn
        >>> with torch.device("cpu"):
        ...     net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        ...     net(torch.zeros(4, 2)).shape
        Size([4, 1])
    """

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, m in named:
            self.add_module(str(name), m)

    def _part(self, index: slice) -> Any:
        # Names stay, so that those of a state dict fit.
        return type(self)(OrderedDict(list(self._own("module").items())[index]))

    def forward(self, input: Any) -> Any:
        for m in self._items():
            input = m(input)
        return input

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other) if isinstance(other, Sequential) else NotImplemented

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(other) if isinstance(other, Sequential) else NotImplemented

    def __mul__(self, count: int) -> Sequential:
        return Sequential(*self._items() * self._checked(count)) if isinstance(count, int) else NotImplemented

    __rmul__ = __mul__

    def __imul__(self, count: int) -> Sequential:
        if not isinstance(count, int):
            return NotImplemented
        return self.extend(self._items() * (self._checked(count) - 1))

    @staticmethod
    def _checked(count: int) -> int:
        if count <= 0:
            raise RangeError(f"Sequential: it can be there once or more, not {count} times.")
        return count


class ModuleList(_Numbered):
    """A list of modules, which are registered as submodules.

    Args:
        modules: what to begin with.
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        self.extend(listed(modules, "ModuleList"))

    def __getitem__(self, index):
        # Models ask for one layer after the other: to list all for each takes their number squared.
        name = str(index)
        return self.__dict__[name] if self._kinds.get(name) == "module" else super().__getitem__(index)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def __repr__(self) -> str:
        """Neighbours that are alike are one line, as in PyTorch."""
        lines, first = [], 0
        for text, alike in groupby(map(repr, self)):
            count = len([*alike])
            last = first + count - 1
            lines.append(f"({first}): {text}" if count == 1 else f"({first}-{last}): {count} x {text}")
            first += count
        inner = "\n".join(lines).replace("\n", "\n  ")
        return f"{self._get_name()}(\n  {inner}\n)" if lines else f"{self._get_name()}()"


class ByName(Module):
    """Values of one kind, which is that of the attributes they become."""

    _kind: str

    def __init__(self, values: Any = None):
        super().__init__()
        self.update({} if values is None else values)

    def _held(self) -> dict[str, Any]:
        """What it holds, by name."""
        return self._own(self._kind)

    def __getitem__(self, key: str) -> Any:
        return self._held()[key]

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __contains__(self, key: object) -> bool:
        return key in self._held()

    def __setitem__(self, key: str, value: Any) -> None:
        raise NotImplementedError

    def keys(self):
        """The names."""
        return self._held().keys()

    def values(self):
        """What they name."""
        return self._held().values()

    def items(self):
        """Pairs of name and value."""
        return self._held().items()

    def update(self, values: Any) -> None:
        """Add values by name, replacing those of the same name."""
        where, is_mapping = type(self).__name__, isinstance(values, (Mapping, ByName))
        pairs: Any = values.items() if is_mapping else listed(values, where)
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise RangeError(f"{where}: takes pairs of a name and a {self._kind}, not {describe(pair)}.")
            name, value = pair
            self[name] = value

    def pop(self, key: str) -> Any:
        """Take out and return a value."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Take out all values."""
        for name in list(self):
            del self[name]


class ModuleDict(ByName):
    """Modules by name, which are registered as submodules.

    Args:
        modules: a mapping, or pairs, to begin with.
    """

    _kind = "module"

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__(modules)

    def __setitem__(self, key: str, value: Module) -> None:
        self.add_module(key, value)


class DataParallel(Module):
    """A module that several GPUs would share; here it is called as it is, on its own device.

    Args:
        module: the module, whose names in `state_dict` begin with ``module.``.
        device_ids, output_device, dim: accepted for PyTorch's sake.
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module.")
        self.module, self.device_ids, self.dim = module, [], dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


__all__ = ["DataParallel", "ModuleDict", "ModuleList", "Sequential"]
