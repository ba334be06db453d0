"""The journal: what ops were recorded, what they should make, and whether the device made it."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...device.storage import Storage
from ...device.stream import Stream
from ...errors import DeviceError, LinAlgError, RangeError
from ...op.call import Call
from ...op.fusion.commands import read
from ...op.plan import run_followed
from ...op.planning import Op
from ...tensors.tensor import Tensor
from ..lines import caller
from .blame import blame
from .entry import Entry
from .reference import expected, on_cpu
from .shadow import Shadow, Snapshot, blank, encode, padded


class Journal:
    """Beside the stream: runs references, and compares when a window has gone to the host.

    Args:
        stream: whose ops are checked.
    """

    def __init__(self, stream: Stream):
        self.stream = stream
        self.shadows: weakref.WeakKeyDictionary[Storage, Shadow] = weakref.WeakKeyDictionary()
        self.entries: list[Entry] = []
        # While an op records, or ops run once more, what runs is no op of the program.
        self.is_aside = False
        # While an op of the program records; and whether a window went to the host meanwhile.
        self._is_recording = self._is_late = False
        # Told of every write of the eager call that stands before a replay.
        self.note_write: Callable[[Storage, np.ndarray, Snapshot], None] | None = None
        # The status that a read of the journal's own took from the program's next read.
        self._status: tuple[int, ...] | None = None
        self._before = {name: getattr(stream, name) for name in ("submit", "upload", "copy", "after_read")}
        self._submit_window = stream.submit_window
        stream.submit = self._submit
        stream.upload = self._upload
        stream.copy = self._copy
        stream.after_read = self._after_read
        stream.submit_window = self._replayed
        stream.on_close.append(self._forget)

    def _forget(self) -> None:
        self.shadows.clear()
        self.entries.clear()
        self._status = None

    # Ops

    def observe(self, o: Op, call: Call, run: Callable, written: str | None) -> Callable:
        """A plan that is checked: called where plans are made."""

        def checked(*values):
            with self.stream.lock:
                return run(*values) if self.is_aside else self._run(o, run, written, values)

        numbers: Any = getattr(run, "numbers", None)

        def followed(values, plain):
            with self.stream.lock:
                return self._run(o, run, written, plain, lambda: run_followed(run, numbers, values, plain))

        if numbers is not None:
            checked.followed = followed  # type: ignore[attr-defined]
        return checked

    def _run(
        self, o: Op, run: Callable, written: str | None, values: tuple, record: Callable | None = None
    ) -> Any:
        try:
            given = [self._see(v) for v in values]
        except DeviceError:  # Python cannot wait for what is not known
            given = None
        was_recording = self._is_recording
        self.is_aside = self._is_recording = True
        try:
            result = run(*values) if record is None else record()
        except BaseException:
            self._is_recording = was_recording
            self._lose_late()
            raise
        finally:
            self.is_aside = False
        # What goes to the host until the entry is there has this op, too.
        try:
            if written or o.mutates:
                names = [written] if written else o.mutated
                pairs = zip(o.arguments, values, strict=True)
                targets = [v for a, v in pairs if a.name in names and v is not None]
            else:
                targets = list(result) if o.result else [result]
            if self._is_late and not was_recording and self._is_to_come(targets):
                self._is_recording = False
                self._settle_late()
                self._is_recording = True
                given = given and _anew(given)
            self._expect(o, run, written, given, targets)
        finally:
            self._is_recording = was_recording
        self._settle_late()
        return result

    def _expect(
        self, o: Op, run: Callable, written: str | None, given: list | None, targets: list[Tensor]
    ) -> None:
        """Note what an op that is recorded should make."""
        wanted = None
        try:
            wanted = None if given is None else expected(o, tuple([_on_cpu(v) for v in given]), written)
        except (IndexError, LinAlgError, RangeError, DeviceError):
            # The device tells of an index at the next read, makes NaN of NaN and of what is out of range; a
            # shader may have none.
            pass
        finally:
            if wanted is None:  # also where an interrupt came
                for target in targets:
                    self.shadows.pop(target._storage, None)
        if given is not None and wanted is not None:
            made = [self._write(target, value) for target, value in zip(targets, wanted, strict=True)]
            self.entries.append(Entry(o, run, written, given, made, caller()))

    def _is_to_come(self, targets: list[Tensor]) -> bool:
        """Whether the op has still to go to the host, where something went while it recorded."""
        slots = _written_slots(self.stream.words)
        return slots is None or any(t._storage.slot in slots for t in targets)

    def _see(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
            return [self._see(v) for v in value]
        if not isinstance(value, Tensor):
            return value
        shadow = self._shadow(value._storage)
        return Snapshot(shadow, shadow.data, value._meta, value._offset)

    def _write(self, target: Tensor, values: np.ndarray) -> Snapshot:
        storage, m = target._storage, target._meta
        shadow = self.shadows.get(storage)
        data = blank(storage.nbytes) if shadow is None else shadow.data.copy()
        if m.dtype.is_quantized:
            data[: values.size] = values
        else:
            encode(data, m, target._offset, values)
        if shadow is None:
            shadow = self.shadows[storage] = Shadow(storage, data)
        seen = Snapshot(shadow, data, m, target._offset)
        if self.note_write is not None:
            self.note_write(storage, shadow.data, seen)
        shadow.data = data
        return seen

    def _shadow(self, storage: Storage) -> Shadow:
        """What is known of a storage; of one that no op wrote what the device has."""
        shadow = self.shadows.get(storage)
        if shadow is None:
            self._submit()
            data = self.read(storage)
            shadow = self.shadows[storage] = Shadow(storage, data)
        return shadow

    def read(self, storage: Storage) -> np.ndarray:
        """The bytes of a storage on the device; they take no part in the program's windows and reads."""
        if not storage.nbytes:
            return blank(0)
        host = self.stream.open()
        data, status = host.read(host.begin_read(storage.slot, 0, storage.nbytes))
        if status[0] and self._status is None:
            self._status = status
        return padded(data)

    # What writes without an op

    def _upload(self, data, kind: str = "activation") -> Storage:
        storage = self._before["upload"](data, kind)
        if not self.is_aside:
            self.shadows[storage] = Shadow(storage, padded(data))
        return storage

    def _copy(
        self, source: Storage, target: Storage, source_offset: int, target_offset: int, nbytes: int
    ) -> None:
        self._before["copy"](source, target, source_offset, target_offset, nbytes)
        self.shadows.pop(target, None)

    def _replayed(self, window: array, holder: object = None) -> None:
        slots = _written_slots(window)
        for storage in [s for s in self.shadows if slots is None or s.slot in slots]:
            del self.shadows[storage]
        self._submit_window(window, holder)

    # Comparing

    def _after_read(self, status: tuple[int, ...]) -> None:
        mine, self._status = self._status, None
        self._before["after_read"](mine if mine is not None and not status[0] else status)

    def _submit(self, held: bool = False) -> None:
        with self.stream.lock:
            if self._is_recording:  # what listens to ops submits before this one is known
                self._is_late = True
                self._before["submit"](held)
                return
            entries, self.entries = self.entries, []
            try:
                self._before["submit"](held)
            except BaseException:
                self._lose(entries)
                raise
            if entries:
                self._settle(entries)

    def _settle_late(self) -> None:
        """What went to the host while an op recorded; within another one that waits until that is known."""
        if self._is_late and not self._is_recording:
            self._is_late = False
            entries, self.entries = self.entries, []
            self._settle(entries)

    def _lose_late(self) -> None:
        if self._is_late and not self._is_recording:
            self._is_late = False
            entries, self.entries = self.entries, []
            self._lose(entries)

    def _lose(self, entries: list[Entry]) -> None:
        """Nothing is known of what these made: the window did not run, or not all of it."""
        for shadow in {id(m.shadow): m.shadow for e in entries for m in e.made}.values():
            if (storage := shadow.storage()) is not None:
                self.shadows.pop(storage, None)

    def _settle(self, entries: list[Entry]) -> None:
        """Compare what is there after a window with what should be, and go on from what is there."""
        found: dict[Shadow, np.ndarray] = {}
        try:
            for shadow in {id(m.shadow): m.shadow for e in entries for m in e.made}.values():
                storage = shadow.storage()
                if storage is not None and self.shadows.get(storage) is shadow and storage.nbytes:
                    found[shadow] = self.read(storage)
        except DeviceError:
            self._lose(entries)
            return
        wanted = {shadow: shadow.data for shadow in found}
        for shadow, data in found.items():
            shadow.data = data
        differs = {s for s, data in found.items() if not np.array_equal(data, wanted[s])}
        if differs:
            blame(self, entries, found, wanted, differs)


def _anew(value: Any) -> Any:
    """The same tensors with what is known of their memory now."""
    if isinstance(value, Snapshot):
        return Snapshot(value.shadow, value.shadow.data, value.meta, value.offset)
    return [_anew(v) for v in value] if isinstance(value, list) else value


def _on_cpu(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], Snapshot):
        return [_on_cpu(v) for v in value]
    return on_cpu(value.values, value.meta.shape, value.meta.dtype) if isinstance(value, Snapshot) else value


def _written_slots(window: Iterable[int]) -> set[int] | None:
    """The slots that the records of a window write; None where launches are none of ops."""
    try:
        return {slot for record in read(list(window)) for slot in record.writes}
    except KeyError:
        return None
