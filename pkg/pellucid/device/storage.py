"""Storages: buffers of the device, which are slots of the stream."""

from __future__ import annotations

from array import array
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from .commands import ALLOC, CODE_BITS, FREE, LARGEST_SIZE

if TYPE_CHECKING:
    from .stream import Stream

KINDS = ("activation", "weight", "parameter", "cache")

# What a slot is multiplied by before its code is added: that is quicker than to shift it.
_EACH_SLOT = 1 << CODE_BITS

_stream: Stream


def slots_of(stream: Stream) -> None:
    """Say, once, whose slots storages are: the stream makes some itself, so it cannot be imported here."""
    global _stream
    _stream = stream


class End(int):
    """The word of a FREE record. Its class tells it from all other words, whatever their values."""

    __slots__ = ()


class AccountedBytes(int):
    """The bytes of a storage that is accounted as something else than an activation."""

    kind: str


@lru_cache(1024)
def _sized(nbytes: int, kind: str) -> AccountedBytes:
    size = AccountedBytes(nbytes)
    size.kind = kind
    return size


class Storage:
    """One buffer of the device: a slot of the stream, freed when nobody holds this object.

    Args:
        nbytes: its size.
        kind: what it is accounted as: activation, weight, parameter or cache.
        direct: the first bytes come by `Host.write`, which makes the slot, so no record announces it.

    Raises:
        TypeError, ValueError: what is given is no size or no kind.
    """

    # Ops make storages without the constructor (`plan`): what is added here must be set there.
    #
    # The finalizer is a function written in C that belongs to the slot (`finalizer`). Where a function of
    # Python begins, also a finalizer, Python looks for Ctrl-C and lets other threads run; what a finalizer
    # raises is lost, and so would be the memory. Here nothing comes between a storage's end and its record.
    __slots__ = ("__del__", "__weakref__", "kind", "nbytes", "slot", "version")

    def __init__(self, nbytes: int, kind: str = "activation", direct: bool = False):
        stream = _stream
        if type(nbytes) is not int or not 0 <= nbytes <= LARGEST_SIZE:
            raise TypeError(f"Storage(): nbytes must be an int from 0 to {LARGEST_SIZE}, not {nbytes!r}")
        if kind == "activation":
            size = nbytes
        elif kind in stream.made_by_kind:
            size = _sized(nbytes, kind)
        else:
            raise ValueError(f"Storage(): kind must be one of {', '.join(KINDS)}, not {kind!r}")
        if stream.window_bytes + nbytes > stream.bytes_limit or len(stream.words) > stream.full_at:
            stream.make_way(nbytes)
        self.version = 0
        self.kind = kind
        try:
            slot = stream.free.pop()
        except IndexError:
            slot = stream.new_slot()
        self.slot = slot
        # No call from here on, where an interrupt or another thread could come.
        if not direct:
            stream.words += (_EACH_SLOT * slot + ALLOC, nbytes)
        self.nbytes = nbytes
        stream.sizes[slot] = size
        self.__del__ = stream.ends[slot]
        stream.window_bytes += nbytes
        if kind != "activation":
            stream.kinds_given += 1
            stream.made_by_kind[kind] += nbytes

    @staticmethod
    def made_by_window(sizes: list[int]) -> list[Storage]:
        """Activations of so many bytes, which a window that is about to be handed over makes.

        Equal to ``[Storage(nbytes, direct=True) for nbytes in sizes]``, in half the time.
        """
        stream = _stream
        nbytes = sum(sizes)
        if stream.window_bytes + nbytes > stream.bytes_limit or len(stream.words) > stream.full_at:
            stream.make_way(nbytes)
        made, blank, free = [], object.__new__, stream.free
        for nbytes in sizes:
            storage: Storage = blank(Storage)
            storage.version = 0
            storage.kind = "activation"
            try:
                slot = free.pop()
            except IndexError:
                slot = stream.new_slot()
            storage.slot = slot
            # No call from here on, as above.
            storage.nbytes = nbytes
            stream.sizes[slot] = nbytes
            storage.__del__ = stream.ends[slot]
            stream.window_bytes += nbytes
            made.append(storage)
        return made

    def set_kind(self, kind: str) -> None:
        """Account it as something else, such as a cache."""
        if self.slot >= _stream.first_slot:  # else its device was closed
            kinds, size = (
                _stream.made_by_kind,
                self.nbytes if kind == "activation" else _sized(self.nbytes, kind),
            )
            # No call from here on, as above.
            _stream.kinds_given += 1
            _stream.sizes[self.slot] = size
            kinds[kind] += size
            kinds[self.kind] -= size
        self.kind = kind

    def grow(self, nbytes: int) -> None:
        """Make it longer; its bytes stay."""
        longer = Storage(nbytes, self.kind)
        if self.nbytes:
            _stream.copy(self, longer, 0, 0, self.nbytes + 3 & ~3)
        # The slots change owners, so that whoever holds this storage sees the longer one. No call between, as
        # above.
        self.slot, longer.slot = longer.slot, self.slot
        self.nbytes, longer.nbytes = longer.nbytes, self.nbytes
        self.__del__, longer.__del__ = longer.__del__, self.__del__

    def __deepcopy__(self, memo) -> Storage:
        out = Storage(self.nbytes, self.kind)
        if self.nbytes:
            _stream.copy(self, out, 0, 0, self.nbytes + 3 & ~3)
        return out

    def __reduce__(self):
        data = bytes(_stream.read(self, 0, self.nbytes)) if self.nbytes else b""
        return _stored, (data, self.kind)


def _stored(data: bytes, kind: str) -> Storage:
    """What a pickled storage becomes."""
    return _stream.upload(data, kind)


class LateStorages:
    """Memory of activations that a window makes, held as one until somebody needs their storages.

    Args:
        sizes: their bytes.

    Attributes:
        slots: where they lie.
    """

    __slots__ = ("__del__", "_ends", "_sizes", "slots")

    def __init__(self, sizes: list[int]):
        stream, count = _stream, len(sizes)
        nbytes = sum(sizes)
        if stream.window_bytes + nbytes > stream.bytes_limit or len(stream.words) > stream.full_at:
            stream.make_way(nbytes)
        free = stream.free
        # No call between the next two lines, so no thread comes between; there may be fewer than were asked
        # for. An interrupt later on loses numbers, and no memory: there is none yet.
        slots = free[-count:]
        del free[-count:]
        while len(slots) < count:
            try:
                slots.append(free.pop())
            except IndexError:
                slots.append(stream.new_slot())
        known = stream.sizes
        for slot, nbytes_each in zip(slots, sizes, strict=True):
            known[slot] = nbytes_each
        # What the finalizers of storages would add, one by one.
        self._ends = [stream.ends[slot].args[0] for slot in slots]
        self.slots, self._sizes = slots, sizes
        end = partial(stream.words.extend, self._ends)
        # No call from here on, as in `Storage`.
        self.__del__ = end
        stream.window_bytes += nbytes

    def apart(self) -> list[Storage]:
        """The storages, which own the memory from here on."""
        made, blank, ends = [], object.__new__, _stream.ends
        for slot, nbytes in zip(reversed(self.slots), reversed(self._sizes), strict=True):
            storage: Storage = blank(Storage)
            storage.version = 0
            storage.kind = "activation"
            storage.slot = slot
            storage.nbytes = nbytes
            made.append(storage)
            # The one becomes the owner as the other ceases to be: no call between.
            storage.__del__ = ends[slot]
            del self._ends[-1]
        made.reverse()
        return made


def finalizer(slot: int, words: list[int]) -> partial:
    """What is called when the storage of a slot goes: it adds a FREE record.

    Args:
        slot: its number.
        words: of the window.
    """
    return partial(words.append, End(_EACH_SLOT * slot + FREE))


def ended(words: list[int], window: array) -> list[int]:
    """The slots that end within some words, in order.

    Args:
        words: the words.
        window: the same as the host reads them.
    """
    packed = np.frombuffer(window, np.uint32)
    places = np.flatnonzero((packed & _EACH_SLOT - 1) == FREE).tolist()
    return [word >> CODE_BITS for word in map(words.__getitem__, places) if type(word) is End]
