"""What a read gives while its bytes are on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .host import Host

if TYPE_CHECKING:
    from .stream import Stream


class Read:
    """A read under way: work that is recorded after it began does not delay it."""

    def __init__(self, stream: Stream, host: Host, ticket):
        self._stream, self._host, self._ticket = stream, host, ticket

    def _claim(self):
        ticket, self._ticket = self._ticket, None
        if ticket is None:
            raise RuntimeError("a read gives its values once. Keep what the first call returned.")
        return ticket

    def result(self):
        """The bytes, waiting for them; once."""
        ticket = self._claim()
        data, status = self._host.read(ticket)
        self._stream.after_read(status)
        return data

    async def result_async(self):
        """The awaitable twin of `result`."""
        ticket = self._claim()
        data, status = await self._host.read_async(ticket)
        self._stream.after_read(status)
        return data

    def __del__(self):
        if self._ticket is not None and self._stream.host is self._host:
            self._host.drop_read(self._ticket)
