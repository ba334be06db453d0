"""One call as rules and kernels see it: metas instead of tensors, by the names of the declaration; and
classes of what a call gives several of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..device import device as Device
from ..tensors import dtypes as dt
from ..tensors.dtypes import DType
from ..tensors.meta import Meta, meta
from ..tensors.shape import Size
from .schema import Schema

T = TypeVar("T", bound=type)


def results(name: str) -> Callable[[T], T]:
    """Let a class of several results, a named tuple, be printed as PyTorch's ``return_types.<name>``."""

    def describe(self: Any) -> str:
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
        return f"{Size.prefix}return_types.{name}(\n{parts})"

    def declare(cls: T) -> T:
        made: Any = cls
        made.__repr__ = describe
        return cls

    return declare


class Call:
    """One call on the slow path: metas instead of tensors. Rules and kernels read it.

    ``call["x"]`` is the meta of a tensor argument, the type of a number, a list of metas, or the value of a
    static argument.
    """

    def __init__(self, op: Schema, args: dict[str, Any], device: Device):
        self.op = op
        self.args = args
        self.device = device
        self.outputs: list[Meta] = []
        self.compute: DType = dt.float32
        self.temporaries: dict[str, Meta] = {}

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def tensors(self) -> list[tuple[str, Meta]]:
        """Every tensor argument by the name that launches bind; those of a list as ``name[k]``."""
        found: list[tuple[str, Meta]] = []
        for a in self.op.arguments:
            value = self.args[a.name]
            if a.role == "tensors":
                found += [(f"{a.name}[{k}]", m) for k, m in enumerate(value)]
            elif isinstance(value, Meta):
                found.append((a.name, value))
        return found

    def operands(self) -> list[tuple[str, Meta | type]]:
        """Tensors and numbers that take part in the computation, in order."""
        return [
            (a.name, self.args[a.name])
            for a in self.op.arguments
            if a.role in ("tensor", "operand", "number", "optional")
            and self.args[a.name] not in (None, type(None))
        ]

    def temporary(self, name: str, shape, dtype: DType = dt.float32) -> Meta:
        """Memory that lives during this call only; launches bind it by name."""
        self.temporaries[name] = m = meta(shape, dtype, self.device)
        return m

    def lay_out(self, strides: tuple[int, ...]) -> None:
        """Give the output strides of the kernel's choice in the place of contiguous ones."""
        m = self.out
        self.outputs = [meta(m.shape, m.dtype, m.device, strides)]

    @property
    def out(self) -> Meta:
        return self.outputs[0]
