"""The values of a model by point, computed or read from a recording (npz, safetensors)."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from os import PathLike, fspath
from typing import Any

import numpy as np

from .. import weights
from ..autograd.grad_mode import under
from ..errors import ArgumentError, FormatError, WeightError
from ..nn.hooks import Tap
from ..nn.modules.module import Module
from ..op.arguments import describe
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from ..weights.document import parse_object
from ..weights.fields import shown
from .seen import Seen

# In a recording: "call:NAME" is an argument of the model, "PATH:input" what a module got, "PATH" what it
# returned, and "output:NAME" what the model did.
CALL, INPUT = "call:", ":input"
_ARGUMENTS = ("input_ids", "input", "inputs", "pixel_values")


class Side:
    """One of two things that are compared.

    Attributes:
        name: for messages.
        model: the module, or None of a recording.
        values: by point, in the order in which they were computed.
        inputs: by point, what it got.
        given: the model's arguments by name, where a recording has them.
    """

    def __init__(self, name: str, model: Any = None):
        self.name, self.model = name, model
        self.values: dict[str, np.ndarray] = {}
        self.inputs: dict[str, np.ndarray] = {}
        self.given: dict[str, np.ndarray] = {}

    def take(self, entries: Mapping[str, Any]) -> None:
        """Sort the entries of a recording."""
        for key, value in entries.items():
            array = np.asarray(value)
            if key.startswith(CALL):
                self.given[key.removeprefix(CALL)] = array
            elif key in _ARGUMENTS:
                self.given[key] = array
            elif array.dtype.kind in "fiub":
                place, name = (
                    (self.inputs, key.removesuffix(INPUT)) if key.endswith(INPUT) else (self.values, key)
                )
                place[name] = array.astype(np.float64)
        if not self.values:
            raise WeightError(f"match: {self.name} has no values to compare. Record outputs by module path.")

    def module(self, path: str) -> Any:
        """The module at a point, if there is one."""
        try:
            return None if self.model is None else self.model.get_submodule(path)
        except AttributeError:
            return None


def side(what: Any) -> Generator[tuple, Any, Side]:
    """Steps that make a side of a module, a mapping or a file of recorded values."""
    if isinstance(what, Side):
        return what
    if isinstance(what, Module):
        return Side(type(what).__name__, what)
    if isinstance(what, Mapping):
        made = Side("the reference")
        made.take(what)
        return made
    if not isinstance(what, (str, PathLike)):
        raise ArgumentError(f"match: compares modules and recordings, not {describe(what)}.")
    made = Side(fspath(what))
    made.take((yield from recorded(what)))
    return made


def recorded(path: Any) -> Generator[tuple, Any, dict[str, np.ndarray]]:
    """Steps that read arrays by name from an npz or safetensors file, in the order of their recording.

    Raises:
        FormatError: it is neither.
    """
    checkpoint = yield weights, "open", (path,), {}
    try:
        infos = list(checkpoint.values())
        raws = yield weights, "read", (checkpoint, infos), {}
    finally:
        checkpoint.close()
    arrays = {info.name: _array(checkpoint.name, info, raw) for info, raw in zip(infos, raws, strict=True)}
    return {key: arrays[key] for key in _order(checkpoint) if key in arrays} | arrays


def _order(checkpoint: weights.Checkpoint) -> list[str]:
    """The names of a recording in its order, where a file that sorts them says it."""
    text = checkpoint.metadata.get("points")
    if text is None:
        return []
    where = f"{checkpoint.name}: points"
    found = parse_object(where, b'{"points": ' + str(text).encode() + b"}", unique=True)["points"]
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise FormatError(f"{where} is {shown(found)}; a list of names was expected. Record it again.")
    return found


def _array(where: str, info: weights.TensorInfo, raw: np.ndarray) -> np.ndarray:
    if info.dtype == "bfloat16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(info.shape)
    try:
        return raw.view(np.dtype(info.dtype)).reshape(info.shape)
    except TypeError:
        raise FormatError(f"{where}: {info.name} is of {info.dtype}, which numpy does not have.") from None


def arguments(inputs: tuple, named: Mapping[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Arguments as a program gives them: one mapping is by name."""
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        return (), {key.removeprefix(CALL): value for key, value in inputs[0].items()} | dict(named)
    return inputs, dict(named)


def run(side: Side, inputs: tuple, named: dict[str, Any], other: Side) -> Generator[tuple, Any, None]:
    """Steps that run a side's model and keep what its modules get and return: all of them, or those that the
    other side has recorded if it names modules only."""
    model, wanted = side.model, set(other.values)
    paths = dict(model.named_modules())
    if not wanted or not wanted <= paths.keys():
        wanted = paths.keys() - {""}
    seen, got = Seen(), Seen()
    place = next((x.device for x in (*model.parameters(), *model.buffers())), None)
    with ExitStack() as stack:
        for path in [p for p in paths if p in wanted]:
            for tap in (Tap(seen, path), Tap(got, path, True)):
                stack.callback(tap.end)
                stack.callback(paths[path].register_forward_hook(tap).remove)
        args, kwargs = _fitting(model, inputs, named)
        moved = [_placed(x, place) for x in args], {k: _placed(x, place) for k, x in kwargs.items()}
        output = under(False, model, *moved[0], **moved[1])
    for tensors, values in ((seen, side.values), (got, side.inputs)):
        for path, value in tensors.items():
            if isinstance(value, Tensor) and not value.dtype.is_complex:
                values[path] = (yield _float(value), "numpy", (), {}).astype(np.float64)
    _module_values(side.values)
    for name, value in _outputs(output):
        side.values[f"output:{name}"] = (yield _float(value), "numpy", (), {}).astype(np.float64)


def _float(value: Tensor) -> Tensor:
    return value.detach().float()


def _placed(x: Any, place: Any) -> Any:
    return x if isinstance(x, Tensor) or not hasattr(x, "__array__") else tensor(np.asarray(x), device=place)


def _fitting(model: Any, inputs: tuple, named: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """One argument whose name the model does not have is its first."""
    if len(named) != 1 or inputs:
        return inputs, named
    names = [i.name for i in getattr(model, "inputs", ()) if hasattr(i, "name")]
    names = names or list(inspect.signature(model.forward).parameters)
    ((name, value),) = named.items()
    return ((), named) if name in names else ((value,), {})


def _module_values(values: dict[str, np.ndarray]) -> None:
    """Values of modules from nodes named ``/layers.0/mlp/MatMul``: what the last node of a module gives."""
    last: dict[str, str] = {}
    for name in values:
        parts = name.strip("/").split("/")
        for k in range(1, len(parts)):
            last["/".join(parts[:k])] = name
    inner: dict[str, list[str]] = {}
    for path, name in last.items():
        if path not in values:
            inner.setdefault(name, []).append(path)
    for name, value in [(n, values.pop(n)) for n in list(values)]:
        values[name] = value
        values.update(dict.fromkeys(sorted(inner.get(name, ()), key=len, reverse=True), value))


def _outputs(output: Any) -> list[tuple[str, Tensor]]:
    """What a model returned: tensors by name or number."""
    if isinstance(output, Tensor):
        return [("0", output)]
    if isinstance(output, Mapping):
        items: Any = output.items()
    elif isinstance(output, (tuple, list)):
        items = enumerate(output)
    else:
        items = getattr(output, "__dict__", {}).items()
    return [(str(k), v) for k, v in items if isinstance(v, Tensor) and not v.dtype.is_complex]
