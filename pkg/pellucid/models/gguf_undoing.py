"""What llama.cpp's converter changed of a model of a GGUF, changed back: weights as a folder has them."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..device import device as Device
from ..errors import ArgumentError
from ..quant.format import FORMATS
from ..quant.weight import dequantize, planes_of
from ..tensors import dtypes as dt
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .gguf_changes import CHANGES, TensorChange

# What packed halves are as elements.
HALVES: dict[str, dt.DType] = {"f16": dt.float16, "bf16": dt.bfloat16}


class FolderWeight(NamedTuple):
    """A weight of the folder that a GGUF was made of.

    Attributes:
        path: of its parameter.
        shape: of that parameter.
        names: names and shapes of the folder's tensors of it, in the order of its rows; none of blocks.
        parts: of each parameter of the model that has a part of it, or all, the path, and the changes by the
            settings that made them.
    """

    path: str
    shape: tuple[int, ...]
    names: list[tuple[str, tuple[int, ...]]]
    parts: tuple[tuple[str, tuple[tuple[str, TensorChange], ...]], ...]

    @property
    def keeps_rows(self) -> bool:
        """Whether rows of the model's parameters are whole rows of this one."""
        return all(change.keeps_rows for _, steps in self.parts for _, change in steps)


def converted(model: Any) -> list[str]:
    """The settings that a GGUF has decided, of a model that is of one."""
    if model.origin is None or model.origin.keys is not None:
        return []
    settings = getattr(model.config_class, "gguf_settings", {})
    known = type(model.config).__dataclass_fields__
    return [s for s, value in settings.items() if s in known and getattr(model.config, s) == value]


def folder_weights(model: Any) -> dict[str, FolderWeight]:
    """What the folder of a model of a GGUF has, by path; empty where nothing was changed.

    Raises:
        ArgumentError: the model has a parameter that no such folder has.
    """
    settings = [s for s in converted(model) if s in CHANGES]
    if not settings:
        return {}
    config = replace(
        model.config, **{s: type(model.config).__dataclass_fields__[s].default for s in settings}
    )
    own = model.state_dict()
    is_float = not any(map(_is_in_blocks, own.values()))

    def made() -> Any:
        with Device("meta"):
            made_of = type(model)(config)
            if is_float:
                made_of.lay_out_floats()
        made_of.fit(own)
        return made_of

    # Ctrl-C where the `with` ends may leave its device, but not in the program's context.
    before = copy_context().run(made)
    found = {}
    for path, value in before.state_dict().items():
        steps = [(s, c) for s in settings for c in CHANGES[s](before, TensorChange(path))]
        parts = {c.path: tuple(step for step in steps if step[1].path == c.path) for _, c in steps}
        if len(parts) > 1:  # a setting that gives it several tensors; the others leave it alone
            parts.pop(path, None)
        shape = tuple(value.shape)
        kept = tuple((p, tuple(step for step in some if _does(step[1]))) for p, some in parts.items())
        in_blocks = any(_is_in_blocks(parameter_at(model, p)) for p in parts if p in own)
        names = [] if in_blocks else before.folder_names(path, shape)
        found[path] = FolderWeight(path, shape, names, kept)
    given = {path for weight in found.values() for path, _ in weight.parts}
    if unknown := sorted(set(own) - given):
        raise ArgumentError(
            f"save_pretrained: the folder of this {type(model).__name__}, which is of a GGUF, has no place "
            f"for {', '.join(unknown[:5])}. Adapters become part of a model by merge_and_unload()."
        )
    return found


def _is_in_blocks(value: Tensor) -> bool:
    return value.dtype.is_quantized and value.dtype.name not in HALVES


def _does(change: TensorChange) -> bool:
    """Whether a change is one at all."""
    return not change.keeps_rows or change.rows is not None


def read_weight(model: Any, weight: FolderWeight) -> Any:
    """A weight as the folder has it: a tensor, or the planes of a quantized one. Waits for the device.

    Args:
        model: of a GGUF.
        weight: of its folder.
    """
    values = [parameter_at(model, path).detach() for path, _ in weight.parts]
    kinds = {value.dtype.name for value in values}
    quantized = _is_in_blocks(values[0])
    if len(values) > 1:
        changes = [steps[0][1] for _, steps in weight.parts]
        return _joined_planes(weight, values, changes) if quantized else _joined(weight, values, changes)
    ((_, steps),), value = weight.parts, values[0]
    if quantized:
        planes, shared = planes_of(value), [plane.shared for plane in FORMATS[kinds.pop()].planes]
        for _, change in steps:
            assert change.rows is not None  # others were refused
            order = np.argsort(change.rows)
            planes = [p if same else p[order] for p, same in zip(planes, shared, strict=True)]
        return planes
    value = plain(value)
    for setting, change in reversed(steps):
        if change.values is not None:
            value = _VALUES[setting](value)
        if change.columns is not None:
            value = value[:, tensor(np.argsort(change.columns), device=value.device)]
        if change.rows is not None:
            value = value[tensor(np.argsort(change.rows), device=value.device)]
        if change.parts:
            value = value.unflatten(0, (change.parts, -1)).transpose(1, 2).flatten(0, 1)
    return value


def plain(value: Tensor) -> Tensor:
    """A parameter as elements: packed halves as such."""
    half = HALVES.get(value.dtype.name)
    return value if half is None else dequantize(value).to(half)


def _joined(weight: FolderWeight, values: list[Tensor], changes: list[TensorChange]) -> Tensor:
    """One weight of several, each of which is some rows and columns of it, or of it transposed."""
    whole = np.empty(weight.shape, np.float32)
    for value, change in zip(values, changes, strict=True):
        floats, rows = plain(value).float().numpy(), change.rows
        if change.parts:
            parts = whole.reshape(change.parts, -1, weight.shape[1]).swapaxes(1, 2)
            columns = np.arange(parts.shape[2]) if change.columns is None else change.columns
            order = np.arange(parts.shape[0] * parts.shape[1]) if rows is None else rows
            part, row = np.divmod(order.reshape(-1, 1), parts.shape[1])
            parts[part, row, columns] = floats
        elif rows is None:
            raise AssertionError(f"{change.path} is all of {weight.path}")
        elif len(rows) > len(whole):  # of a table with a row for each expert some columns
            whole.reshape(-1)[rows] = floats.reshape(-1)
        else:
            whole[rows] = floats
    (dtype,) = {plain(value).dtype for value in values} if _are_alike(values) else {dt.float32}
    return tensor(whole, device="cpu").to(dtype)


def _joined_planes(
    weight: FolderWeight, values: list[Tensor], changes: list[TensorChange]
) -> list[np.ndarray]:
    """The planes of one quantized weight of several, each of which is some rows of it."""
    parts, kinds = [planes_of(value) for value in values], FORMATS[values[0].dtype.name].planes
    found = []
    for k, kind in enumerate(kinds):
        own = [planes[k] for planes in parts]
        if kind.shared:
            found.append(own[0])
            continue
        whole = np.empty((weight.shape[0], *own[0].shape[1:]), own[0].dtype)
        for change, rows in zip(changes, own, strict=True):
            assert change.rows is not None  # others were refused
            whole[change.rows] = rows
        found.append(whole)
    return found


def _are_alike(values: list[Tensor]) -> bool:
    return len({value.dtype.name for value in values}) == 1


def format_of(model: Any, weight: FolderWeight) -> Any:
    """The format of blocks of a weight, or the dtype of its elements.

    Raises:
        ArgumentError: it is quantized, and its parts are no rows of one format.
    """
    values = [parameter_at(model, path) for path, _ in weight.parts]
    if any(map(_is_in_blocks, values)):
        if weight.keeps_rows and _are_alike(values):
            return values[0].dtype
        formats = " and ".join(sorted({str(v.dtype) for v in values}))
        raise ArgumentError(
            f"save_pretrained: {weight.parts[0][0]} is {formats}, and this architecture's GGUF has its "
            "columns otherwise than a folder, or parts of it in several formats. Load the model with "
            "dtype=pellucid.float32."
        )
    kind = values[0].dtype
    return (HALVES.get(kind.name) or kind) if _are_alike(values) else dt.float32


def parameter_at(model: Any, path: str) -> Any:
    """A parameter or buffer of a model by its path."""
    owner, _, name = path.rpartition(".")
    return getattr(model.get_submodule(owner), name)


# What undoes a change of numbers.
_VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "norms_from_one": lambda x: x - 1,
    "rates_are_logs": lambda x: (-x).log(),
}
