"""A server on 127.0.0.1 that answers with whatever bytes it is told to: right, wrong, endless, or none."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

LONGEST_ANSWER = 8.0  # seconds after which an endless answer ends all the same


class Ask(NamedTuple):
    """One request: which it is, and the bytes that it asks for (the whole file without Range)."""

    number: int
    first: int
    last: int
    ranged: bool


Answer = Callable[[Ask], Iterable[bytes | float]]


class Liar:
    """Sends what ``answer`` gives, pieces of bytes and pauses in seconds, and closes the connection.

    Args:
        answer: from a request to the whole answer, status line and headers included.
        size: bytes of the file that is asked for.
    """

    def __init__(self, answer: Answer, size: int):
        self._answer, self._size = answer, size
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._asked = 0
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/m.safetensors"

    def __enter__(self) -> Liar:
        return self

    def __exit__(self, *_) -> None:
        for sock in (self._listener, *self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                asked = b""
                while b"\r\n\r\n" not in asked:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    asked += piece
                self._asked += 1
                until = time.monotonic() + LONGEST_ANSWER
                for piece in self._answer(self._read(asked.decode("latin1"))):
                    if isinstance(piece, float):
                        time.sleep(piece)
                    else:
                        connection.sendall(piece)
                    if time.monotonic() > until:
                        return
        except OSError:
            pass
        finally:
            self._open.discard(connection)

    def _read(self, asked: str) -> Ask:
        match = re.search(r"(?i)\r\nrange: bytes=(\d+)-(\d+)", asked)
        if match is None:
            return Ask(self._asked, 0, self._size - 1, False)
        return Ask(self._asked, int(match[1]), min(int(match[2]), self._size - 1), True)


def head(status: str, *lines: str) -> bytes:
    """A status line and headers; the connection ends with the answer."""
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "Connection: close", "", ""]).encode(
        "latin1", "replace"
    )


def part(data: bytes, ask: Ask, *lines: str, total: object = None, first: object = None) -> bytes:
    """The headers of an honest answer 206, or of one with another total or first byte."""
    total, first = len(data) if total is None else total, ask.first if first is None else first
    return head("206 Partial Content", f"Content-Range: bytes {first}-{ask.last}/{total}", *lines)


def honest(data: bytes, ask: Ask) -> list[bytes]:
    """What a good server answers."""
    body = data[ask.first : ask.last + 1]
    return [part(data, ask, f"Content-Length: {len(body)}"), body]


def chunked(body: bytes, size: int = 10_000) -> list[bytes]:
    """A body in chunks."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return [*(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"]
