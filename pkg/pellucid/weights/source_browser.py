"""Files behind a page: URLs and Files, read by JavaScript. Only this file of the room imports js and pyodide.

The work is done by web/runtime/fetch.js and load.js; here are their handles. Headers come to Python as bytes,
tensors never do.
"""

from __future__ import annotations

import urllib.parse
from array import array
from collections.abc import Awaitable, Iterator
from typing import Any

import js
from pyodide.ffi import JsException, can_run_sync, create_proxy, run_sync, to_js

from ..device import javascript as runtime
from ..errors import DeviceError, LoadCancelled, OutOfMemoryError, SourceError
from . import settings
from .plan import LoadPlan
from .pump import Tick
from .source import MissingFile, Source

_ERRORS = {"MissingFile": MissingFile, "SourceError": SourceError, "LoadCancelled": LoadCancelled}


def wait(awaitable: Awaitable, what: str) -> Any:
    """Wait where Python can be suspended.

    Raises:
        SourceError: it cannot: in a synchronous JavaScript callback, or in a browser without JSPI.
    """
    if not can_run_sync():
        close = getattr(awaitable, "close", None)
        if close is not None:
            close()  # a coroutine that never runs would warn
        raise SourceError(
            f"{what}: cannot wait here: this is a synchronous JavaScript callback into Python, or a browser "
            "without JSPI. Await the same call with the suffix _async."
        )
    return run_sync(awaitable)


def origin() -> str:
    """The serving origin, which paths are relative to."""
    return js.location.origin


def in_javascript(source: Source) -> bool:
    """Whether JavaScript reads this source by itself."""
    return isinstance(source, _ScriptSource)


def blob_source(blob: Any) -> Source:
    """The source of a browser's File or Blob.

    Raises:
        SourceError: it is none.
    """
    if not (hasattr(blob, "slice") and hasattr(blob, "size") and hasattr(blob, "stream")):
        raise SourceError(
            f"source: a {type(blob).__name__} is not a URL, path, hub id, File or bytes. Give one of these."
        )
    return BlobSource(blob)


class _ScriptSource(Source):
    """A source whose bytes JavaScript reads; its handle is made at the first read."""

    def __init__(self):
        self._handle: Any = None

    async def handle(self) -> Any:
        if self._handle is None:
            self._handle = self._make(await runtime.module("fetch.js"))
        return self._handle

    def _make(self, fetch: Any) -> Any:
        raise NotImplementedError

    def read(self, start: int, stop: int) -> bytes:
        return wait(self.read_async(start, stop), self.name)

    async def read_async(self, start: int, stop: int) -> bytes:
        handle = await self.handle()
        try:
            data = await handle.read(start, stop)
        except JsException as error:
            raise typed(error) from None
        self.size, self.etag, self.ordered = handle.size, handle.etag, handle.ordered
        return data.to_bytes()

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        yield self.read(start, stop)

    def keep(self, start: int, data: bytes) -> None:
        if self._handle is not None:
            self._handle.keep(start, to_js(data))

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()

    def __del__(self):
        self.close()


class UrlSource(_ScriptSource):
    """A file at a URL."""

    remote = True

    def __init__(self, url: str, headers: dict[str, str] | None = None):
        super().__init__()
        self.name = self.url = url
        self._headers = headers or {}

    def _make(self, fetch: Any) -> Any:
        headers = to_js(self._headers, dict_converter=js.Object.fromEntries)
        keeps = settings.keep_copies and not self._headers  # what needs a token is not for who comes next
        return fetch.Remote.new(
            self.url, headers, settings.network_timeout * 1000, settings.network_retries, keeps
        )

    def sibling(self, name: str) -> Source:
        return UrlSource(urllib.parse.urljoin(self.url, urllib.parse.quote(name)), self._headers)


class BlobSource(_ScriptSource):
    """A browser's File or Blob: a file that the user chose or dropped."""

    def __init__(self, blob: Any):
        super().__init__()
        self._blob = blob
        self.name = getattr(blob, "name", "blob")
        self.size = blob.size

    def _make(self, fetch: Any) -> Any:
        return fetch.Local.new(self._blob)


class BrowserPump:
    """Drives a `Load` of web/runtime/load.js: it works while Python is suspended, and tells how far it is."""

    def __init__(self, plan: LoadPlan, host: Any, connections: int):
        self._plan, self._host, self._connections = plan, host, connections
        self._load: Any = None
        self._proxy: Any = None
        self._closed = False

    async def step_async(self, seconds: float) -> Tick:
        """The state after about ``seconds``, or at the end."""
        try:
            if self._load is None:
                self._load = await self._begin()
            done, item, finished = await self._load.next(seconds * 1000)
        except JsException as error:
            raise typed(error) from None
        return Tick(int(done), int(item), bool(finished))

    async def _begin(self) -> Any:
        handles = [await shard.handle() for shard in self._plan.shards]  # pyright: ignore[reportAttributeAccessIssue]
        load = (await runtime.module("load.js")).Load
        if self._closed:
            raise LoadCancelled("load: stopped before it began.")
        return load.new(self._stream(), to_js(handles), *_tables(self._plan), self._connections)

    def _stream(self) -> Any:
        """The JavaScript object that gets the writes: the host's own, or one that hands them to Python."""
        stream = getattr(self._host, "stream", None)
        if stream is not None:
            return stream
        self._proxy = create_proxy(self._write)
        return to_js({"write": self._proxy}, dict_converter=js.Object.fromEntries)

    def _write(self, slot: int, nbytes: int, offset: int, data: Any) -> None:
        self._host.write(slot, nbytes, offset, data.to_bytes())

    def close(self) -> None:
        """Write nothing more."""
        self._closed = True
        if self._load is not None:
            self._load.close()
        if self._proxy is not None:
            self._proxy.destroy()
            self._proxy = None


def _tables(plan: LoadPlan) -> list[Any]:
    """A plan as the flat tables of load.js: lanes and parts with the index of their first child, and rows."""
    lanes, parts, rows = array("d"), array("d"), array("d")
    for lane in plan.lanes:
        lanes.extend((len(parts) // 5, len(lane)))
        for part in lane:
            parts.extend((part.shard, part.start, part.stop, len(rows) // 6, len(part.rows)))
            for row in part.rows:
                rows.extend(row)
    return [to_js(table) for table in (lanes, parts, rows)]


def typed(error: JsException) -> Exception:
    """The Python exception for an error of fetch.js, load.js or the stream that they write to."""
    if error.name in _ERRORS:
        return _ERRORS[error.name](error.message)
    text = f"device webgpu: {error.message}"
    return OutOfMemoryError(text) if error.message.startswith("out of memory") else DeviceError(text)
