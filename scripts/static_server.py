"""A threaded static file server with byte ranges, entity tags, gzip files, isolation and a request log.

It serves built sites to people and pages to headless browsers, and misbehaves on demand for tests: a `faults`
callable may answer any request with a `Fault` that cuts the connection, slows the body down, ignores `Range`
or returns a status.

    with StaticServer("dist/site", mounts={"weights": "cache/weights"}) as server:
        print(server.url)            # http://127.0.0.1:PORT/
        print(server.requests[-1])   # what was asked, what was answered, how many bytes went out

Only the standard library is used, so a machine with nothing but Python 3.11 can serve.
"""

import http.server
import socket
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

CHUNK = 1 << 18
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".py": "text/x-python; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".wgsl": "text/plain; charset=utf-8",
    ".whl": "application/zip",
    ".zip": "application/zip",
}


@dataclass
class Request:
    """One request as it was answered: `start` to `stop` were promised, `sent` bytes handed to the network."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    status: int = 0
    start: int = 0
    stop: int = 0
    sent: int = 0
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0


@dataclass(frozen=True)
class Fault:
    """How to misbehave: cut after some body bytes, answer a status, ignore ranges, or hold the rate down."""

    drop_after: int | None = None
    status: int | None = None
    ranges: bool = True
    bytes_per_second: float | None = None


@dataclass(frozen=True)
class Response:
    """A computed answer of a route."""

    body: bytes = b""
    type: str = "text/plain; charset=utf-8"
    status: int = 200


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """Read one `Range` header against a body of `size` bytes.

    Returns: `(start, stop)`, or `None` where the header is to be ignored (another unit, several ranges, bad
        syntax).
    Raises: ValueError when the range is well formed but lies outside the body.
    """
    unit, _, ranges = header.partition("=")
    first, dash, last = ranges.strip().partition("-")
    if unit.strip() != "bytes" or not dash or "," in ranges:
        return None
    if not (first or last) or (first and not first.isdecimal()) or (last and not last.isdecimal()):
        return None
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(size, int(last) + 1 if last else size)
        if last and int(last) < start:
            return None
    if start >= stop:
        raise ValueError(f"range {header!r} lies outside a body of {size} bytes")
    return start, stop


def packed_beside(file: Path) -> Path | None:
    """The same packed by gzip, `NAME.gz` beside it, unless it is older: then it is of something else."""
    packed = file.with_name(f"{file.name}.gz")
    try:
        return packed if packed.stat().st_mtime_ns >= file.stat().st_mtime_ns else None
    except OSError:  # there is none, or its name is longer than the file system has any
        return None


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120

    @property
    def owner(self) -> "StaticServer":
        assert isinstance(self.server, _ThreadedServer)
        return self.server.owner

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Requests are kept in `StaticServer.requests`; nothing is printed."""

    def _serve(self) -> None:
        owner = self.owner
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        request = Request(self.command, path, {name.lower(): value for name, value in self.headers.items()})
        request.body = self.rfile.read(int(request.headers.get("content-length", 0)))
        owner._record(request)
        fault = owner.faults(request) if owner.faults else None
        try:
            self._answer(request, fault or Fault())
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        finally:
            request.ended = time.monotonic()

    def _answer(self, request: Request, fault: Fault) -> None:
        owner = self.owner
        if fault.status is not None:
            return self._text(request, fault.status, f"{fault.status} on request\n")
        route = owner.routes.get(request.path)
        if route is not None:
            reply = route(request)
            return self._body(request, reply.status, reply.type, reply.body)
        if request.method == "POST":
            return self._text(request, 405, "this address only reads\n")
        file = owner.find(request.path)
        if file is None:
            return self._text(request, 404, f"no such file: {request.path}\n")
        if file.is_dir():
            if not request.path.endswith("/"):
                return self._body(request, 301, TYPES[".txt"], b"", {"Location": request.path + "/"})
            file = file / "index.html"
            if not file.is_file():
                return self._text(request, 404, f"no such file: {request.path}index.html\n")
        self._file(request, fault, file)

    def _file(self, request: Request, fault: Fault, file: Path) -> None:
        headers = {"Content-Type": TYPES.get(file.suffix, "application/octet-stream")}
        facts = file.stat()
        if packed := packed_beside(file):
            headers["Vary"] = "Accept-Encoding"
            if "gzip" in request.headers.get("accept-encoding", "") and "range" not in request.headers:
                file, facts = packed, packed.stat()
                headers["Content-Encoding"] = "gzip"
        tag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
        headers |= {"ETag": tag, "Last-Modified": self.date_time_string(int(facts.st_mtime))}
        if fault.ranges and "Content-Encoding" not in headers:
            headers["Accept-Ranges"] = "bytes"
        if request.headers.get("if-none-match") == tag:
            return self._headers(request, 304, None, headers)
        status, start, stop = 200, 0, facts.st_size
        asked = request.headers.get("range")
        if asked and fault.ranges and request.headers.get("if-range", tag) in (tag, headers["Last-Modified"]):
            try:
                part = parse_range(asked, facts.st_size)
            except ValueError as error:
                headers |= {"Content-Range": f"bytes */{facts.st_size}", "Content-Type": TYPES[".txt"]}
                return self._body(request, 416, TYPES[".txt"], f"{error}\n".encode(), headers)
            if part:
                status, (start, stop) = 206, part
                headers["Content-Range"] = f"bytes {start}-{stop - 1}/{facts.st_size}"
        request.start, request.stop = start, stop
        self._headers(request, status, stop - start, headers)
        if request.method != "HEAD":
            self._stream(request, fault, file, start, stop)

    def _stream(self, request: Request, fault: Fault, file: Path, start: int, stop: int) -> None:
        began = time.monotonic()
        rate = fault.bytes_per_second
        chunk = CHUNK if rate is None else max(1, min(CHUNK, int(rate / 20)))
        with file.open("rb") as source:
            source.seek(start)
            while request.sent < stop - start:
                want = min(chunk, stop - start - request.sent)
                if fault.drop_after is not None:
                    want = min(want, fault.drop_after - request.sent)
                    if want <= 0:
                        self.close_connection = True
                        self.connection.shutdown(socket.SHUT_RDWR)
                        return
                data = source.read(want)
                if not data:  # the file shrank: the promise of Content-Length cannot be kept
                    self.close_connection = True
                    return
                request.sent += len(data)
                self.wfile.write(data)
                if rate is not None:
                    time.sleep(max(0.0, began + request.sent / rate - time.monotonic()))

    def _text(self, request: Request, status: int, text: str) -> None:
        self._body(request, status, TYPES[".txt"], text.encode())

    def _body(
        self, request: Request, status: int, type: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self._headers(request, status, len(body), {"Content-Type": type, **(headers or {})})
        if request.method != "HEAD":
            request.sent = len(body)
            self.wfile.write(body)

    def _headers(self, request: Request, status: int, length: int | None, headers: Mapping[str, str]) -> None:
        owner = self.owner
        request.status = status
        self.send_response(status)
        everything = {"Cache-Control": "no-cache", "Cross-Origin-Resource-Policy": "cross-origin", **headers}
        if length is not None:
            everything["Content-Length"] = str(length)
        if owner.isolation:
            everything["Cross-Origin-Opener-Policy"] = "same-origin"
            everything["Cross-Origin-Embedder-Policy"] = "require-corp"
        if owner.cors:
            everything["Access-Control-Allow-Origin"] = "*"
            everything["Access-Control-Expose-Headers"] = "Accept-Ranges, Content-Length, Content-Range, ETag"
        for name, value in everything.items():
            self.send_header(name, value)
        self.end_headers()


class _ThreadedServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    owner: "StaticServer"

    def handle_error(self, request, client_address) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that leaves is no error of ours
            super().handle_error(request, client_address)


class StaticServer:
    """Serves `root` at `/` and each mount at `/NAME/`.

    Args:
        root: the folder behind `/`.
        mounts: more folders by name, as in `{"weights": "cache/weights"}`.
        host, port: where to listen; port 0 takes a free one.
        isolation: send COOP and COEP, so that pages have `SharedArrayBuffer`.
        cors: let pages of other origins read, ranges and entity tags included.
        routes: computed answers by exact path, GET and POST alike.
        faults: called with each request before it is answered; a `Fault` makes the server misbehave.
    """

    def __init__(
        self,
        root: str | Path,
        mounts: Mapping[str, str | Path] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        isolation: bool = True,
        cors: bool = False,
        routes: Mapping[str, Callable[[Request], Response]] | None = None,
        faults: Callable[[Request], Fault | None] | None = None,
    ) -> None:
        self.root = Path(root).resolve()
        self.mounts = {name: Path(folder).resolve() for name, folder in (mounts or {}).items()}
        for folder in (self.root, *self.mounts.values()):
            if not folder.is_dir():
                raise FileNotFoundError(f"serve: {folder} is not a folder. Build it first or name another.")
        self.isolation, self.cors, self.faults = isolation, cors, faults
        self.routes = dict(routes or {})
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        try:
            self._http = _ThreadedServer((host, port), _Handler)
        except OSError as error:
            advice = "Choose another port; 0 takes a free one."
            raise OSError(
                error.errno, f"serve: {host}:{port} cannot be listened on: {error.strerror}. {advice}"
            ) from error
        self._http.owner = self
        self.host, self.port = host, self._http.server_address[1]
        self.url = f"http://{host}:{self.port}/"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def find(self, path: str) -> Path | None:
        """The file or folder behind a decoded URL path, or `None`; never one outside the served folders."""
        parts = [part for part in path.split("/") if part]
        if ".." in parts or "\0" in path:
            return None
        base = self.root
        if parts and parts[0] in self.mounts:
            base = self.mounts[parts.pop(0)]
        found = base.joinpath(*parts)
        try:
            return found if found.exists() else None
        except OSError:  # a name that is longer than the file system has any
            return None

    def _record(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)

    def start(self) -> "StaticServer":
        """Begin to answer, in a thread of its own."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> "StaticServer":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()
