"""What a read gives while its bytes are on their way."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .host import Host

if TYPE_CHECKING:
    from .stream import Stream


class Read:
    """A read under way: work that is recorded after it began does not delay it."""

    # Like that of a storage, the finalizer is written in C, so no interrupt stops it. The stream ends the
    # read later.
    __slots__ = ("__del__", "__weakref__", "_host", "_stream", "_ticket")

    def __init__(self, stream: Stream, host: Host, ticket):
        self.__del__ = partial(stream.given_up.append, (host, ticket))
        self._stream, self._host, self._ticket = stream, host, ticket

    def _claim(self):
        ticket, self._ticket = self._ticket, None
        if ticket is None:
            raise RuntimeError("a read gives its values once. Keep what the first call returned.")
        return ticket

    def result(self):
        """The bytes, waiting for them; once."""
        data, status = self._host.read(self._claim())
        del self.__del__
        self._stream.after_read(status)
        return data

    async def result_async(self):
        """The awaitable twin of `result`."""
        data, status = await self._host.read_async(self._claim())
        del self.__del__
        self._stream.after_read(status)
        return data
