"""Which op of a window made the difference, or whether it was the window itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from ...device.storage import Storage
from ...device.stream import Stream
from ...errors import CheckError
from ...tensors.tensor import Tensor
from .accuracy import Difference, close, flushed
from .entry import Entry
from .reference import expected, on_cpu
from .shadow import Shadow, Snapshot, decode

# What the ops before leave within their bounds, the next may make larger: of the largest element.
_ADDED_UP = 3e-4


class Checked(Protocol):
    """What a second run needs of the journal."""

    stream: Stream
    is_aside: bool

    def read(self, storage: Storage) -> np.ndarray:
        """The bytes of a storage."""
        ...


def blame(
    journal: Checked,
    entries: list[Entry],
    found: dict[Shadow, np.ndarray],
    wanted: dict[Shadow, np.ndarray],
    differs: set[Shadow],
) -> None:
    """Name what is wrong, if something is: rounding may have added up.

    Args:
        journal: which the window is of.
        entries: its ops.
        found: what it left in memory.
        wanted: what it should have left.
        differs: where these are not the same bytes.

    Raises:
        CheckError: an op is wrong, or the window.
    """
    wrong = []
    for entry in entries:
        for made in entry.made:
            if made.shadow in differs:
                left, right = (decode(of[made.shadow], made.meta, made.offset) for of in (found, wanted))
                if close(entry, left, right, made.meta.dtype) is not None:
                    wrong.append(made.shadow)
    if not wrong:
        return
    led = _led_to(entries, set(wrong))
    with aside(journal):
        for entry in led:
            _check_alone(journal, entry)
        _check_together(journal, led, found)


def _led_to(entries: list[Entry], wrong: set[Shadow]) -> list[Entry]:
    """The ops that what is wrong was made by, in order."""
    led, sought = [], set(wrong)
    for entry in reversed(entries):
        if any(made.shadow in sought for made in entry.made):
            led.append(entry)
            sought.update(seen.shadow for seen in entry.seen)
    return led[::-1]


@contextmanager
def aside(journal: Checked) -> Iterator[None]:
    """What runs within is no part of the program: nobody listens to it, nothing of it is fused."""
    s, was_aside = journal.stream, journal.is_aside
    kept = s.rewrite, s.capturing, s.on_submit[:], s.after_op[:]
    s.rewrite = s.capturing = None
    s.on_submit.clear()
    s.after_op.clear()
    journal.is_aside = True
    try:
        yield
    finally:
        s.submit()
        s.rewrite, s.capturing, s.on_submit[:], s.after_op[:] = kept
        journal.is_aside = was_aside


class _Memory:
    """Storages of the device in the place of those that ops saw, for a second run."""

    def __init__(self, journal: Checked):
        self.journal = journal
        self.storages: dict[Shadow, Storage] = {}

    def given(self, value: Any) -> Any:
        """An argument for a second run."""
        if isinstance(value, list):
            return [self.given(v) for v in value]
        return value if not hasattr(value, "shadow") else self._tensor(value)

    def _tensor(self, seen: Snapshot) -> Tensor:
        storage = self.storages.get(seen.shadow)
        if storage is None:
            storage = self.storages[seen.shadow] = self.journal.stream.upload(seen.data)
        return Tensor(storage, seen.meta, seen.offset)

    def run(self, entry: Entry) -> None:
        """An op once more, on this memory."""
        result = entry.run(*map(self.given, entry.values))
        if not (entry.written or entry.op.mutates):
            tensors = result if entry.op.result else [result]
            for made, t in zip(entry.made, tensors, strict=True):
                self.storages[made.shadow] = t._storage

    def left(self, made: Snapshot) -> np.ndarray:
        """What is there now in the place of what an op made."""
        self.journal.stream.submit()
        return decode(self.journal.read(self.storages[made.shadow]), made.meta, made.offset)


def _check_alone(journal: Checked, entry: Entry) -> None:
    """Run an op by itself, on what the reference was given.

    Raises:
        CheckError: it makes something else.
    """
    memory = _Memory(journal)
    memory.run(entry)
    for k, made in enumerate(entry.made):
        left, d = memory.left(made), made.meta.dtype
        wrong = close(entry, left, made.values, d)
        if wrong is not None and close(entry, left, _or_of_flushed(entry, k, left), d) is not None:
            raise CheckError(
                f"{entry.name}: the result on webgpu differs from that of its reference {wrong}: "
                f"{wrong.found} instead of {wrong.wanted}. The call was {entry}, at {entry.line}. Its kernel "
                "is wrong, or its reference."
            )


def _or_of_flushed(entry: Entry, k: int, left: np.ndarray) -> np.ndarray:
    """The reference's result; where the device took subnormal inputs as zero, that of zeros."""
    wanted = entry.made[k].values
    if not any(seen.meta.dtype.is_floating_point for seen in entry.seen) or wanted.dtype.kind not in "fiub":
        return wanted
    of_zeros = expected(entry.op, tuple([_on_cpu_flushed(v) for v in entry.values]), entry.written)[k]
    is_theirs = np.isclose(left, of_zeros, rtol=1e-5, atol=0, equal_nan=left.dtype.kind == "f")
    return np.where(is_theirs, of_zeros, wanted)


def _on_cpu_flushed(value: Any) -> Any:
    if isinstance(value, list):
        return [_on_cpu_flushed(v) for v in value]
    if not isinstance(value, Snapshot):
        return value
    values = flushed(value.values) if value.meta.dtype.is_floating_point else value.values
    return on_cpu(values, value.meta.shape, value.meta.dtype)


def _check_together(journal: Checked, entries: Sequence[Entry], found: dict[Shadow, np.ndarray]) -> None:
    """Run ops of a window one after the other, each as its own kernel, and compare with what the window left.

    Raises:
        CheckError: that is something else.
    """
    memory = _Memory(journal)
    for entry in entries:
        memory.run(entry)
    open_results = _settled_by_rounding(entries)
    for entry in entries:
        for made in entry.made:
            if made.shadow not in found or made.shadow in open_results:
                continue
            left = decode(found[made.shadow], made.meta, made.offset)
            wrong = close(entry, left, memory.left(made), made.meta.dtype, _ADDED_UP)
            if wrong is not None:
                raise CheckError(_window_is_wrong(entry, entries, wrong))


def _settled_by_rounding(entries: Sequence[Entry]) -> set[Shadow]:
    """What hangs on whether floats that a window made are equal to the last bit: a fused kernel may round
    them otherwise than kernels one by one, and both are right."""
    made: set[Shadow] = set()
    hanging: set[Shadow] = set()
    for entry in entries:
        floats = {seen.shadow for seen in entry.seen if seen.meta.dtype.is_floating_point}
        compares = entry.op.public in ("eq", "ne") and not made.isdisjoint(floats)
        if compares or any(seen.shadow in hanging for seen in entry.seen):
            hanging.update(m.shadow for m in entry.made)
        made.update(m.shadow for m in entry.made)
    return hanging


def _window_is_wrong(entry: Entry, entries: Sequence[Entry], wrong: Difference) -> str:
    names = ", ".join(f"{e.name} ({e.line.short})" for e in entries[-12:])
    more = f"{len(entries) - 12} others and " if len(entries) > 12 else ""
    return (
        f"{entry.name}: what a window made differs from what its ops make one by one {wrong}: {wrong.found} "
        f"instead of {wrong.wanted}. The call was {entry}, at {entry.line}; it was made by {more}{names}. "
        "Each of them agrees with its reference, so the way is wrong in which they were fused, ordered, or "
        "given memory."
    )
