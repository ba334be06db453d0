"""A file behind HTTP, for desktop Python: Range requests, and retries that go on where the last ended.

The page's twin is web/runtime/fetch.js; both follow the same rules. Only `place` imports this file, and only
outside a page.
"""

from __future__ import annotations

import http.client
import random
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

from .. import settings
from ..errors import SourceError
from .source import CHUNK, MissingFile, Source

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})  # statuses that a later attempt may not meet
_PROGRESS = 1 << 16  # bytes after which earlier failures no longer count
_LONGEST_PAUSE = 8.0


class _Interrupted(Exception):
    """An attempt failed in a way that another may not. ``pause``: what the server asked for, in seconds."""

    def __init__(self, reason: str, pause: float | None = None):
        super().__init__(reason)
        self.pause = pause


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects without taking the token to another host: a hub's file store is not the hub."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if (
            request is not None
            and urllib.parse.urlsplit(newurl)[:2] != urllib.parse.urlsplit(req.full_url)[:2]
        ):
            request.headers.pop("Authorization", None)
        return request


_opener = urllib.request.build_opener(_Redirects)


class HttpSource(Source):
    """A file at a URL.

    Args:
        url: http or https.
        headers: sent with each request; ``Authorization`` is not passed on to another host.
    """

    remote = True

    def __init__(self, url: str, headers: dict[str, str] | None = None):
        self.name = self.url = url
        self._headers = headers or {}
        self._kept = (0, b"")
        self._closed = threading.Event()
        self._tape: http.client.HTTPResponse | None = None  # the one download of a server without Range
        self._tape_at = 0
        self._tape_lock = threading.Lock()

    def keep(self, start: int, data: bytes) -> None:
        self._kept = (start, data)

    def sibling(self, name: str) -> Source:
        return HttpSource(urllib.parse.urljoin(self.url, urllib.parse.quote(name)), self._headers)

    def close(self) -> None:
        self._closed.set()
        tape, self._tape = self._tape, None
        if tape is not None:
            tape.close()

    def __del__(self):
        tape = self._tape
        if tape is not None:
            tape.close()

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        kept_start, kept = self._kept
        if kept_start <= start < kept_start + len(kept):
            piece = kept[start - kept_start : stop - kept_start]
            start += len(piece)
            yield piece
        failures, mark = 0, start
        while start < stop and (self.size is None or start < self.size):
            try:
                for data in self._attempt(start, stop):
                    start += len(data)
                    yield data
                if start < min(stop, self.size or 0):
                    raise _Interrupted(f"the answer ended at byte {start:,}")
            except (_Interrupted, OSError, http.client.HTTPException) as error:
                if isinstance(error, SourceError):
                    raise
                failures = 1 if start - mark >= _PROGRESS else failures + 1
                mark = start
                if failures > settings.network_retries or self._closed.is_set():
                    raise SourceError(
                        f"{self.url}: {_reason(error)}; gave up at byte {start:,} of {stop:,} after "
                        f"{failures} attempts. "
                        "Check the connection and the server, then load again."
                    ) from error
                self._closed.wait(_pause(error, failures))

    def _attempt(self, start: int, stop: int) -> Iterator[bytes]:
        if self.ordered:
            yield from self._play(start, stop)
            return
        response = self._request({"Range": f"bytes={start}-{stop - 1}"})
        if response is None:  # 416: nothing there
            return
        if response.status == 200:
            if self.size is not None:
                response.close()
                raise _Interrupted(
                    "the server answered a Range request with the whole file, though not before"
                )
            self.ordered = True
            self._note(response, _length(response))
            self._tape, self._tape_at = response, 0
            yield from self._play(start, stop)
            return
        with response:
            first, last, total = _content_range(response)
            self._note(response, total)
            if first != start or last >= stop:
                raise SourceError(
                    f"{self.url}: asked for bytes {start}-{stop - 1}, got {first}-{last}. The server's Range "
                    "support is broken; serve the file otherwise."
                )
            left = last + 1 - first
            while left and (data := response.read1(min(CHUNK, left))):
                left -= len(data)
                yield data

    def _play(self, start: int, stop: int) -> Iterator[bytes]:
        """Bytes from the one sequential download; begun anew only to go back."""
        with self._tape_lock:
            try:
                if self._tape is None or self._tape_at > start:
                    self._tape = None
                    response = self._request({})
                    if response is None:
                        return
                    self._note(response, _length(response))
                    self._tape, self._tape_at = response, 0
                tape = self._tape
                while self._tape_at < stop:
                    limit = start if self._tape_at < start else stop
                    data = tape.read1(min(CHUNK, limit - self._tape_at))
                    if not data:
                        self._tape = None
                        return
                    self._tape_at += len(data)
                    if self._tape_at > start:
                        yield data
            except (OSError, http.client.HTTPException):
                self._tape = None
                raise

    def _request(self, headers: dict[str, str]) -> http.client.HTTPResponse | None:
        request = urllib.request.Request(
            self.url, headers={"Accept-Encoding": "identity", **self._headers, **headers}
        )
        try:
            response = _opener.open(request, timeout=settings.network_timeout)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416:
                    self._note(
                        error, int(re.sub(r".*/", "", error.headers.get("Content-Range") or "*/0") or 0)
                    )
                    return None
                raise self._refusal(error) from None
        except urllib.error.URLError as error:
            raise _Interrupted(f"cannot be reached ({error.reason})") from error
        if (response.headers.get("Content-Encoding") or "identity") != "identity":
            response.close()
            raise SourceError(
                f"{self.url}: is served compressed, so byte positions mean nothing. Serve it without "
                "Content-Encoding."
            )
        return response

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        if error.code in (404, 410):
            return MissingFile(
                f"{self.url}: there is no such file (status {error.code}). Check the address, the file's "
                "name and the revision."
            )
        if error.code in (401, 403):
            return SourceError(
                f"{self.url}: access refused (status {error.code}). Check the name; give token= for a "
                "private file, and accept the model's licence on its page if it has one."
            )
        if error.code in _PASSING:
            after = error.headers.get("Retry-After", "")
            return _Interrupted(
                f"the server answered {error.code} {error.reason}", float(after) if after.isdigit() else None
            )
        return SourceError(f"{self.url}: the server answered {error.code} {error.reason}. Check the address.")

    def _note(self, response, total: int) -> None:
        """The size and version that an answer tells; all answers must tell the same."""
        etag = response.headers.get("ETag")
        if (self.size is not None and total != self.size) or (self.etag and etag and etag != self.etag):
            raise SourceError(
                f"{self.url}: the file changed while it was being read "
                f"({self.size:,} bytes, ETag {self.etag}; now {total:,} bytes, ETag {etag}). Load it again."
            )
        self.size, self.etag = total, etag or self.etag


def _content_range(response: http.client.HTTPResponse) -> tuple[int, int, int]:
    text = response.headers.get("Content-Range") or ""
    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", text.strip())
    if response.status != 206 or match is None:
        raise SourceError(
            f"{response.url}: a Range request was answered with status {response.status} and Content-Range "
            f"{text!r}. Serve the file by a server with plain Range support."
        )
    first, last, total = map(int, match.groups())
    return first, last, total


def _length(response: http.client.HTTPResponse) -> int:
    if response.length is None:
        raise SourceError(
            f"{response.url}: the server neither supports Range nor says how long the file is. Use a server "
            "that sends Content-Length."
        )
    return response.length


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _pause(error: BaseException, failures: int) -> float:
    asked = getattr(error, "pause", None)
    return min(
        _LONGEST_PAUSE, asked if asked is not None else 0.25 * 2 ** (failures - 1) * random.uniform(0.5, 1.0)
    )
