"""Replays of captured functions against eager calls: the function runs first, what it changed is put back,
and the replay must make the same of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...device.storage import Storage
from ...errors import CheckError
from ...nn.observers import Observers
from ...op.jit.compiled import Compiled
from ...op.jit.race import Race
from ...ops.random.generator import Draw, Generator
from ...optim.optimizer import Optimizer
from ...tensors.tensor import Tensor
from ..lines import caller
from ..living import LiveTensors, alive
from .accuracy import difference, peak
from .journal import Journal
from .shadow import Snapshot, decode

# Windows of a replay are cut and fused in other places than those of an eager call, and rounding adds up.
_RELATIVE = 1e-3


class Rehearsal:
    """An eager call and what it changes, so that it can be put back. It stands where a recording would.

    Args:
        journal: which sees what ops write.
    """

    def __init__(self, journal: Journal):
        self._journal = journal
        # No argument of a call, and nothing that replays bring.
        self.generators, self.brought = [], []
        self.is_whole = False
        self._before = LiveTensors()
        self._storages = set(self._before.storages.values())
        self._versions = [(storage, storage.version) for storage in self._storages]
        self._generators: dict[int, tuple[Generator, int]] = {}
        self._states = [(state, dict(state)) for o in alive(Optimizer) for state in o.state.values()]
        # Of each storage that is written: its bytes before, and the tensors in it that were written.
        self.written: dict[Storage, tuple[np.ndarray, list[Snapshot]]] = {}

    def run(self, function: Callable, *args: Any) -> Any:
        """The result of a call."""
        journal, s = self._journal, self._journal.stream
        journal.note_write, s.capturing = self.note_write, self
        try:
            result = function(*args)
        finally:
            journal.note_write = s.capturing = None
        s.flush()
        return result

    def changed(self, result: Any) -> dict[str, Any]:
        """What a call gave and left behind: values by where they are."""
        found = dict(_walk("the result", result, self._values))
        for k, leaf in enumerate(self._before.grads):
            if leaf.grad is not None:
                name = f"the gradient of leaf {k}, of shape {tuple(leaf.shape)},"
                found |= _walk(name, leaf.grad, self._values)
        for k, (storage, (_, tensors)) in enumerate(self.written.items()):
            data = self._journal.read(storage)
            for seen in tensors:
                name = f"tensor {k}, {seen}, which the call writes into,"
                found[name] = seen.meta.dtype, decode(data, seen.meta, seen.offset)
        return found

    def _values(self, x: Tensor) -> Any:
        if x.device.type != "webgpu" or x.dtype.is_quantized or not isinstance(x._storage, Storage):
            return None
        return x.dtype, decode(self._journal.read(x._storage), x._meta, x._offset)

    def put_back(self) -> None:
        """Make memory, versions, gradients, generators and optimizers what they were before the call."""
        host = self._journal.stream.open()
        for storage, (data, _) in self.written.items():
            host.write(storage.slot, storage.nbytes, 0, data[: storage.nbytes + 3 & ~3])
            self._journal.shadows[storage].data = data
        for storage, version in self._versions:
            storage.version = version
        for leaf, grad in self._before.grads.items():
            if leaf.grad is not grad:
                leaf.grad = grad
        for generator, offset in self._generators.values():
            generator.offset = offset
        for state, kept in self._states:
            state.clear()
            state.update(kept)

    # What the function's ops tell

    def note_write(self, storage: Storage, before: np.ndarray, seen: Snapshot) -> None:
        """An op writes into memory."""
        if storage in self._storages:
            self.written.setdefault(storage, (before, []))[1].append(seen)

    def bring(self, parameter: Any, numbers: tuple, reason: str) -> tuple:
        """A generator gives words, or an optimizer is about to change a parameter by these numbers."""
        if isinstance(parameter, Draw):
            generator = parameter.of(self.generators)
            self._generators.setdefault(id(generator), (generator, numbers[2] | numbers[3] << 32))
        return numbers

    def read(self, x: Tensor) -> Any:
        """The bytes of a tensor, for Python."""
        return self._journal.stream.read(x._storage, *x._extent())

    def note_read(self) -> None:
        """A value is read: replays may be split."""

    def note_upload(self, nbytes: int) -> None:
        """Data is uploaded: a recording would have refused it."""

    def refuse(self, reason: str, final: bool = True) -> None:
        """What keeps a call from being captured did not keep this one."""


def _walk(where: str, thing: Any, values: Callable[[Tensor], Any]) -> Iterator[tuple[str, Any]]:
    """Tensors and numbers in what a function returns."""
    if isinstance(thing, Tensor):
        if (found := values(thing)) is not None:
            yield where, found
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from _walk(f"{where}[{key!r}]", value, values)
    elif isinstance(thing, (list, tuple)):
        for k, value in enumerate(thing):
            yield from _walk(f"{where}[{k}]", value, values)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            yield from _walk(f"{where}.{field.name}", getattr(thing, field.name), values)
    elif isinstance(thing, (bool, int, float, str)):
        yield where, thing


def check_replays(journal: Journal) -> None:
    """Let each replay of a captured function be compared with an eager call from now on."""

    def serve(self: Compiled, trace: Any, call: Any, own: Any, kind: Any) -> Any:
        journal.stream.flush()
        rehearsal = Rehearsal(journal)
        wanted = rehearsal.changed(rehearsal.run(self._observers.run, self._function, call.args, call.kwargs))
        rehearsal.put_back()
        result = trace.serve(call, own, kind.traces)
        journal.stream.flush()
        found = rehearsal.changed(_as_seen(self._observers, result))
        _compare(f"compile: {self._title}: a replay at {caller()}", found, wanted)
        return result

    Compiled._serve = serve
    Race.may_be_run = False


def _as_seen(observers: Observers, result: Any) -> Any:
    """A replay's result with what taps keep as who looks finds it, which is what an eager call keeps."""
    if not observers.taps:
        return result
    out, values = result
    observers.show(out, values)
    return out, {k: observers.taps[k].seen[observers.taps[k].path] for k in values}


def _compare(where: str, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """What a replay gave and left, and an eager call.

    Raises:
        CheckError: they differ.
    """
    if wanted.keys() != found.keys():
        names = sorted(wanted.keys() ^ found.keys())
        raise CheckError(f"{where} gives or leaves other things than an eager call: {', '.join(names)}.")
    for name, value in wanted.items():
        if (wrong := _differs(found[name], value)) is not None:
            raise CheckError(f"{where} differs from an eager call: {name} {wrong}.")


def _differs(found: Any, wanted: Any) -> str | None:
    if not isinstance(wanted, tuple):
        same = found == wanted or (found != found and wanted != wanted)
        return None if same else f"is {found!r} instead of {wanted!r}"
    (found_type, a), (wanted_type, b) = found, wanted
    if found_type is not wanted_type or a.shape != b.shape:
        return f"is {found_type.name}{list(a.shape)} instead of {wanted_type.name}{list(b.shape)}"
    absolute = _RELATIVE * peak(b) if wanted_type.is_floating_point else 0.0
    wrong = difference(a, b, wanted_type, _RELATIVE, absolute)
    return None if wrong is None else f"has {wrong.found} instead of {wrong.wanted} {wrong}"
