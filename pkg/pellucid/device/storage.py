"""Storages: buffers of the device, which are slots of the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .host import ALLOC, CODE_BITS, FREE

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


class Storage:
    """One buffer of the device: a slot of the stream, freed when nobody holds this object.

    Args:
        nbytes: its size.
        kind: what it is accounted as: activation, weight, parameter or cache.
        direct: the first bytes come by `Host.write`, which makes the slot, so no record announces it.
    """

    # Ops make storages without the constructor (`plan`): what is added here must be set there.
    __slots__ = ("__weakref__", "kind", "nbytes", "slot", "version")

    def __init__(self, nbytes: int, kind: str = "activation", direct: bool = False):
        stream = _stream
        if stream.window_bytes + nbytes > stream.bytes_limit or len(stream.words) > stream.full_at:
            stream.make_way(nbytes)
        free = stream.free
        self.slot = slot = free.pop() if free else stream.new_slot()
        self.version = 0
        self.kind = kind
        if not direct:
            # No call, where an interrupt could come: nbytes is set with the record or not at all.
            stream.words += (_EACH_SLOT * slot + ALLOC, nbytes)
        self.nbytes = nbytes
        stream.window_bytes += nbytes
        if kind != "activation":
            stream.by_kind[kind] += nbytes

    def set_kind(self, kind: str) -> None:
        """Account it as something else, such as a cache."""
        kinds = _stream.by_kind
        kinds[self.kind] -= self.nbytes
        kinds[kind] += self.nbytes
        self.kind = kind

    def __del__(self):
        stream = _stream
        # nbytes is set right after the record: what was interrupted before has no memory, but maybe a number.
        try:
            nbytes = self.nbytes
        except AttributeError:
            slot = getattr(self, "slot", -1)
            if slot >= stream.first_slot:
                stream.free.append(slot)
            return
        slot = self.slot
        if slot < stream.first_slot:
            return
        # The calls come last: where one is interrupted, the bytes are accounted for.
        stream.gone_bytes += nbytes
        if self.kind != "activation":
            stream.by_kind[self.kind] -= nbytes
        stream.words.append(_EACH_SLOT * slot + FREE)
        stream.dead.append(slot)
