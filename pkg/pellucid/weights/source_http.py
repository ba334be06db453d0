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

from ..errors import SourceError
from . import settings
from .connection import Answer, opener
from .source import CHUNK, MissingFile, Source

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})  # statuses that a later attempt may not meet
_PROGRESS = 1 << 16  # bytes after which earlier failures no longer count
_LONGEST_PAUSE = 8.0
_LONGEST_ETAG = 200  # characters of it that are compared
_NUMBER = "[0-9]{1,15}"  # a count of bytes: in these digits, and not more than can exist


class _Interrupted(Exception):
    """An attempt failed in a way that another may not. ``pause``: what the server asked for, in seconds."""

    def __init__(self, reason: str, pause: float | None = None):
        super().__init__(reason)
        self.pause = pause


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
        self._opener = opener("Authorization" in self._headers)
        self._tape: Answer | None = None  # the one download of a server without Range
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
            left = last + 1 - first
            if first != start or last >= min(stop, total) or response.length not in (None, left):
                raise SourceError(
                    f"{self.url}: asked for bytes {start}-{stop - 1}, got {first}-{last} of {total} with a "
                    f"Content-Length of {response.length}. The server's Range support is broken; serve the "
                    "file otherwise."
                )
            while left > 0 and (data := response.piece(min(CHUNK, left))):
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
                    if response.status != 200:
                        response.close()
                        raise SourceError(
                            f"{self.url}: a request for the whole file was answered with status "
                            f"{response.status}. Serve the file otherwise."
                        )
                    self._note(response, _length(response))
                    self._tape, self._tape_at = response, 0
                tape = self._tape
                while self._tape_at < stop:
                    limit = start if self._tape_at < start else stop
                    data = tape.piece(min(CHUNK, limit - self._tape_at))
                    if not data:
                        self._tape = None
                        return
                    self._tape_at += len(data)
                    if self._tape_at > start:
                        yield data
            except (OSError, http.client.HTTPException):
                self._tape = None
                raise

    def _request(self, headers: dict[str, str]) -> Answer | None:
        try:
            request = urllib.request.Request(
                self.url, headers={"Accept-Encoding": "identity", **self._headers, **headers}
            )
            response = self._opener.open(request, timeout=settings.network_timeout)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:
                self._note(error, self._total_of_nothing(error))
                return None
            raise self._refusal(error) from None
        except SourceError:
            raise
        except urllib.error.URLError as error:
            raise _Interrupted(f"cannot be reached ({_reason(error.reason)})") from error
        except (ValueError, OverflowError, http.client.InvalidURL) as error:
            raise SourceError(
                f"{self.url}: this address, or the one that the server redirects to, is malformed "
                f"({str(error)[:200]}). Check the address."
            ) from None
        if response.headers.defects:  # the lines behind a malformed one were not read as headers
            response.close()
            raise SourceError(f"{self.url}: the server's headers are malformed. Serve the file otherwise.")
        for name, plain in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
            told = [value.strip().lower() for value in response.headers.get_all(name, [])]
            if told not in ([], ["identity"], [plain]):
                response.close()
                raise SourceError(
                    f"{self.url}: is served compressed, so byte positions mean nothing. Serve it without "
                    f"{name}."
                )
        return response

    def _total_of_nothing(self, error: urllib.error.HTTPError) -> int:
        """How long a file is of which no byte was asked for, by an answer 416."""
        text = error.headers.get("Content-Range")
        match = re.fullmatch(rf"bytes \*/({_NUMBER})", (text or "").strip())
        if match is None and text is not None:
            raise SourceError(
                f"{self.url}: a Range request was answered with status 416 and Content-Range {text[:80]!r}. "
                "Serve the file by a server with plain Range support."
            )
        return int(match[1]) if match else self.size or 0

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
                f"the server answered {error.code} {_reason(error.reason)}",
                float(after) if re.fullmatch(_NUMBER, after) else None,
            )
        return SourceError(
            f"{self.url}: the server answered {error.code} {_reason(error.reason)}. Check the address."
        )

    def _note(self, response, total: int) -> None:
        """The size and version that an answer tells; all answers must tell the same."""
        etag = (response.headers.get("ETag") or "")[:_LONGEST_ETAG] or None
        if (self.size is not None and total != self.size) or (self.etag and etag and etag != self.etag):
            raise SourceError(
                f"{self.url}: the file changed while it was being read "
                f"({self.size:,} bytes, ETag {self.etag}; now {total:,} bytes, ETag {etag}). Load it again."
            )
        self.size, self.etag = total, etag or self.etag


def _content_range(response: Answer) -> tuple[int, int, int]:
    text = response.headers.get("Content-Range") or ""
    match = re.fullmatch(rf"bytes ({_NUMBER})-({_NUMBER})/({_NUMBER})", text.strip())
    parts = response.headers.get_content_type() == "multipart/byteranges"
    if response.status != 206 or match is None or parts:
        raise SourceError(
            f"{response.url}: a Range request was answered with status {response.status}, Content-Range "
            f"{text[:80]!r}{' and several parts' if parts else ''}. Serve the file by a server with plain "
            "Range support."
        )
    first, last, total = map(int, match.groups())
    return first, last, total


def _length(response: Answer) -> int:
    told = set(response.headers.get_all("Content-Length") or [""])
    if response.length is None or len(told) != 1 or not re.fullmatch(_NUMBER, told.pop().strip()):
        raise SourceError(
            f"{response.url}: the server neither supports Range nor says how long the file is. Use a server "
            "that sends Content-Length."
        )
    return response.length


def _reason(error: object) -> str:
    """What went wrong, in one line of some words, whatever a server wrote there."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _pause(error: BaseException, failures: int) -> float:
    asked = getattr(error, "pause", None)
    return min(
        _LONGEST_PAUSE, asked if asked is not None else 0.25 * 2 ** (failures - 1) * random.uniform(0.5, 1.0)
    )
