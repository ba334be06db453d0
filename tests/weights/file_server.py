"""An HTTP server on 127.0.0.1 that serves bytes from memory, logs requests, and misbehaves when told to."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_BLOCK = 1 << 16
_DRAIN = 0.3


@dataclass
class Request:
    """One request as the server saw it. ``sent`` are the body's bytes that were written to the socket."""

    path: str
    start: int
    stop: int
    status: int = 0
    sent: int = 0
    began: float = 0.0
    ended: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)


class FileServer(ThreadingHTTPServer):
    """Serves ``files`` (path to bytes).

    Faults, most of them by path: ``unranged`` are served without Range, ``hidden`` with headers that other
    origins may not see, ``pace`` (else ``delay``) is the pause in seconds after each 64 KB, ``redirects``
    lead to a URL. Called with each request, ``etag`` gives its version, ``answer`` a status to refuse with,
    ``allow`` the bytes after which the connection is cut (None: never).
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.log: list[Request] = []
        self.lock = threading.Lock()
        self.unranged: set[str] = set()
        self.hidden: set[str] = set()
        self.etag: Callable[[Request], str | None] = lambda request: '"v1"'
        self.delay = 0.0
        self.pace: dict[str, float] = {}
        self.allow: Callable[[Request], int | None] = lambda request: None
        self.answer: Callable[[Request], int | None] = lambda request: None
        self.redirects: dict[str, str] = {}
        self.reset = False  # cut by RST instead of FIN
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def settle(self) -> None:
        """Wait until every request that began has ended, so that the log is whole."""
        until = time.monotonic() + 5
        while any(not r.ended for r in self.log) and time.monotonic() < until:
            time.sleep(0.005)

    def sent(self, path: str | None = None) -> int:
        """Bytes of bodies that were sent, of one path or of all."""
        self.settle()
        return sum(r.sent for r in self.log if path in (None, r.path))

    def sent_twice(self) -> int:
        """Bytes of one file that the log shows in more than one answer."""
        self.settle()
        end, twice = 0, 0
        for start, stop in sorted((r.start, r.start + r.sent) for r in self.log):
            twice += max(0, min(end, stop) - start)
            end = max(end, stop)
        return twice

    def most_in_flight(self, path: str | None = None) -> int:
        """The largest number of requests that were being answered at one time, of one path or of all."""
        self.settle()
        mine = [r for r in self.log if path in (None, r.path)]
        events = sorted([(r.began, 1) for r in mine] + [(r.ended, -1) for r in mine])
        most = now = 0
        for _, change in events:
            now += change
            most = max(most, now)
        return most

    def handle_error(self, request, client_address):
        """A client that hangs up is part of the tests."""

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FileServer

    def log_message(self, format, *args):
        pass

    def do_OPTIONS(self):
        """A preflight of another origin."""
        self.send_response(204)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "Range, Authorization")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self):
        """What a page asks where it may not see Content-Range."""
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Cross-Origin-Resource-Policy", "cross-origin")
        self.send_header("Content-Length", str(len(self.server.files[self.path])))
        self.end_headers()

    def do_GET(self):
        server = self.server
        path = self.path.split("?")[0]
        data = server.files.get(path)
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        size = len(data or b"")
        ranged = match is not None and path not in server.unranged
        start, stop = (int(match[1]), min(int(match[2]) + 1, size)) if match and ranged else (0, size)
        request = Request(path, start, stop, began=time.monotonic(), headers=dict(self.headers))
        with server.lock:
            server.log.append(request)
        try:
            self._serve(server, request, data, ranged)
        finally:
            request.ended = time.monotonic()

    def _serve(self, server: FileServer, request: Request, data: bytes | None, ranged: bool) -> None:
        status = server.answer(request)
        if request.path in server.redirects:
            status = 302
        elif status is None:
            status = 404 if data is None else 200 if not ranged else 206 if request.start < len(data) else 416
        request.status = status
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "Range, Authorization")
        if request.path not in server.hidden:
            self.send_header("Access-Control-Expose-Headers", "Content-Range, ETag, Content-Length")
        self.send_header("Cross-Origin-Resource-Policy", "cross-origin")
        if status == 302:
            self.send_header("Location", server.redirects[request.path])
        if data is None or status not in (200, 206):
            self.send_header("Content-Length", "0")
            if status == 416:
                self.send_header("Content-Range", f"bytes */{len(data or b'')}")
            self.end_headers()
            return
        if etag := server.etag(request):
            self.send_header("ETag", etag)
        if status == 206:
            self.send_header("Content-Range", f"bytes {request.start}-{request.stop - 1}/{len(data)}")
        self.send_header("Content-Length", str(request.stop - request.start))
        self.end_headers()
        allowed = server.allow(request)
        end = request.stop if allowed is None else min(request.stop, request.start + allowed)
        for at in range(request.start, end, _BLOCK):
            block = memoryview(data)[at : min(at + _BLOCK, end)]
            self.wfile.write(block)
            request.sent += len(block)
            if pause := server.pace.get(request.path, server.delay):
                time.sleep(pause)
        if end < request.stop:
            self.wfile.flush()
            if server.reset:
                time.sleep(_DRAIN)  # a reset throws away what the client has not yet taken from its socket
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
