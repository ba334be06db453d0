"""Requests to servers that nobody vouches for: http and https only, waits bounded, redirects looked at."""

from __future__ import annotations

import http.client
import io
import re
import socket
import time
import urllib.parse
import urllib.request
from typing import cast

from ..errors import SourceError
from . import settings

_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_LONGEST_LINE = 1 << 16


class _Patient(io.RawIOBase):
    """What arrives at a socket, until a moment is over: single bytes, one now and then, do not stretch it."""

    def __init__(self, sock: socket.socket):
        self._sock = sock
        self._raw = cast(io.RawIOBase, sock.makefile("rb", buffering=0))
        self.wait_anew()

    def wait_anew(self) -> None:
        self._until = time.monotonic() + settings.network_timeout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class Answer(http.client.HTTPResponse):
    """An answer whose head, and then each piece of whose body, comes within ``settings.network_timeout``."""

    def __init__(self, sock: socket.socket, *args, **kwargs):
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self._patient = _Patient(sock)
        self.fp = io.BufferedReader(self._patient)

    def piece(self, most: int) -> bytes:
        """Up to ``most`` bytes of the body; none at its end."""
        self._patient.wait_anew()
        return self.read1(most)

    def _read_next_chunk_size(self) -> int:
        # http.client's own takes whatever int() takes: negative numbers, signs, underscores, "0x".
        line = self.fp.readline(_LONGEST_LINE)
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise http.client.HTTPException(f"a chunk's size is malformed: {line[:40]!r}")
        return int(match[1], 16)


class _Connection(http.client.HTTPConnection):
    response_class = Answer


class _SecureConnection(http.client.HTTPSConnection):
    response_class = Answer


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req):
        return self.do_open(_Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req):
        return self.do_open(_SecureConnection, req)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects without taking the token to another host: a hub's file store is not the hub."""

    def __init__(self, private: bool):
        self._private = private

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        fp.close()  # the handler would read the body, which may have no end
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if new.scheme not in ("http", "https"):
            raise SourceError(
                f"{req.full_url}: the server redirects to {newurl[:200]!r}; only http and https are taken. "
                "Check the address."
            )
        if self._private and old.scheme == "https" and new.scheme == "http":
            raise SourceError(
                f"{req.full_url}: the server redirects to {newurl[:200]!r}, which is not encrypted, and a "
                "token was given: what it protects would be readable on the way. Check the address."
            )
        if request is not None and old[:2] != new[:2]:
            request.headers.pop("Authorization", None)
        return request


def opener(private: bool) -> urllib.request.OpenerDirector:
    """What opens addresses of http and https, and no others: urllib's own also knows files, ftp and data.

    Args:
        private: whether a token is sent, so that no redirect may leave encryption.
    """
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        _Http(),
        _Https(),
        urllib.request.HTTPDefaultErrorHandler(),
        _Redirects(private),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made
