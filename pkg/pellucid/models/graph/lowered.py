"""What a reader makes of a file: steps with their rows of the table, and what each calls when it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...device import device as Device
from ...errors import ArgumentError, OutOfMemoryError, PellucidError, ShapeError
from ...tensors.dtypes import DType
from ...tensors.tensor import Tensor
from ...weights.checkpoint import TensorInfo
from .rows import Operator

_SMALL = 4096  # elements of an integer constant that may be a shape, or indices of one
_REMEMBERED = 16  # results of a step that follow from shapes


@dataclass
class GraphStep:
    """One node.

    Args:
        name: the node's, or made of its operator where it has none or another node has it.
        operator: its row.
        inputs, outputs: names of values; "" is one left out.
        attributes: by name.
        early: the value depends on constants and shapes alone.
        declared: what the file says of outputs, by name, where it says something.
    """

    name: str
    operator: Operator
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    early: bool = False
    declared: dict[str, GraphValue] = field(default_factory=dict)


@dataclass(frozen=True)
class GraphValue:
    """A value that a file declares: name, dtype and shape, whose lengths are numbers, names or None."""

    name: str
    dtype: DType | None
    shape: tuple[int | str | None, ...] | None

    def __repr__(self) -> str:
        shape = "?" if self.shape is None else ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.name}: {self.dtype.name if self.dtype else '?'} [{shape}]"

    def fits(self, shape: tuple[int | str | None, ...] | None, dtype: DType | None) -> bool:
        """Whether a value may be so: no number is another one, and no type. Names and None are any number."""
        if dtype is not None and self.dtype is not None and dtype is not self.dtype:
            return False
        if shape is None or self.shape is None:
            return True
        numbers = [pair for pair in zip(shape, self.shape) if all(isinstance(n, int) for n in pair)]
        return len(shape) == len(self.shape) and all(a == b for a, b in numbers)


@dataclass
class FileGraph:
    """What a file says.

    Args:
        name: of the file.
        inputs, outputs: what it declares.
        steps: in order.
        constants: by name, values or their places in the files.
        early: names of values that are known before any element of an input is.
    """

    name: str
    inputs: list[GraphValue]
    outputs: list[GraphValue]
    steps: list[GraphStep]
    constants: dict[str, np.ndarray | TensorInfo]
    early: set[str]


def find_early(steps: list[GraphStep], early: set[str], constants: set[str]) -> None:
    """Mark steps whose values follow from constants and shapes; constants that only others use are no more
    early."""
    wanted: set[str] = set()
    for step in steps:
        row = step.operator
        if row.measures or (row.fixed and all(n in early for n in step.inputs if n)):
            step.early = True
            early.update(n for n in step.outputs if n)
        read = zip(step.inputs, row.inputs)
        wanted.update(step.inputs if step.early else (n for n, kind in read if kind != "Tensor"))
    early -= constants - wanted


def is_small(value: np.ndarray | TensorInfo) -> bool:
    """Whether a constant may be a shape, axes, or numbers of such: what is known early."""
    if isinstance(value, TensorInfo):
        return False
    return value.size <= (_SMALL if value.dtype.kind in "iub" else 64)


def unique(name: str, names: set[str]) -> str:
    """The name, with a number if it is among ``names``, to which it is added."""
    found, k = name, 1
    while found in names:
        k += 1
        found = f"{name}_{k}"
    names.add(found)
    return found


class Lowered:
    """What a node calls: the operator's function, of inputs that are where and what it takes.

    Early values (shapes, axes and what is computed of them) live on the cpu device, whatever the model's is:
    so Python can read them without waiting. They are computed once for the same arguments.
    """

    def __init__(self, step: GraphStep, early: set[str]):
        self.step = step
        self.kept = [name in early for name in step.inputs]
        # What a function asks for beside the node's own: how many outputs it has, a place to keep things.
        asked = {"outputs": len(step.outputs), "kept": {}}
        own = {n: v for n, v in asked.items() if n in step.operator.attributes}
        self.attributes = {**step.attributes, **own}
        kinds = step.operator.inputs
        self.kinds = [kinds[min(k, len(kinds) - 1)] for k in range(len(step.inputs))]
        self._measures = step.operator.measures
        self._known: dict[Any, tuple[tuple, Any]] = {}
        self._moved: dict[tuple[int, Device], tuple[Tensor, Tensor]] = {}

    def __call__(self, device: Device, *inputs: Tensor | None) -> Any:
        step = self.step
        if not step.early:
            return self._call([self._placed(*each, device) for each in zip(self.kinds, self.kept, inputs)])
        key = inputs[0].shape if self._measures and inputs[0] is not None else tuple(map(id, inputs))
        if key in self._known:
            return self._known[key][1]
        if len(self._known) >= _REMEMBERED:
            self._known.pop(next(iter(self._known)))
        result = self._call([x if k == "Tensor" else _read(k, x) for k, x in zip(self.kinds, inputs)])
        # The arguments stay alive, so no other tensor gets their ids.
        self._known[key] = (() if self._measures else inputs), result
        return result

    def _call(self, given: list[Any]) -> Any:
        try:
            result = self.step.operator.function(*given, **self.attributes)
        except MemoryError as error:
            raise OutOfMemoryError(f"takes more memory than there is ({error}).") from error
        except NotImplementedError as error:
            # Ops raise PyTorch's class for a mode that nobody has; here it is the file's argument.
            if isinstance(error, PellucidError):
                raise
            raise ArgumentError(str(error)) from error
        names = self.step.outputs
        made = result if isinstance(result, (tuple, list)) else (result,)
        if any(name and (k >= len(made) or made[k] is None) for k, name in enumerate(names)):
            raise ArgumentError(f"outputs are {', '.join(names)}, and not all of them are computed here.")
        for name, x in zip(names, made):
            declared = self.step.declared.get(name)
            if declared is not None and not declared.fits(x.shape, x.dtype):
                there = GraphValue(name, x.dtype, tuple(x.shape))
                raise ShapeError(
                    f"gives {there!r}, and the file declares {declared!r}. The file contradicts itself: "
                    "export it again, or take that declaration out of it."
                )
        return made[0] if len(names) == 1 else made[: len(names)]

    def _placed(self, kind: str, kept: bool, x: Tensor | None, device: Device) -> Any:
        if kind != "Tensor":
            return _read(kind, x)
        if x is None or x.device == device or x.device.type != "cpu":
            return x
        if not kept:
            return x.to(device)
        key = id(x), device
        if key not in self._moved:
            if len(self._moved) >= _REMEMBERED:
                self._moved.pop(next(iter(self._moved)))
            self._moved[key] = x, x.to(device)
        return self._moved[key][1]


def _read(kind: str, value: Tensor | None) -> Any:
    """An input as Python numbers."""
    if value is None:
        return None
    numbers = value.reshape(-1).tolist()
    if kind != "Number":
        return numbers
    if len(numbers) != 1:
        raise ShapeError(f"takes one number where it is given {len(numbers)}.")
    return numbers[0]
