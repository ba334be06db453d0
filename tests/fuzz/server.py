"""A server that lies in random ways: what is read of it is right, or a typed error, in bounded time.

It never sends wrong bytes under headers that fit them: that, nobody could tell.
"""

from __future__ import annotations

import random
import resource
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import repeat

import numpy as np

from pellucid import weights
from pellucid.errors import FormatError, SourceError
from pellucid.weights import settings, source_http
from weights.liar import Ask, Liar, chunked, head

COUNT = 40
SECONDS = 15.0
KILOBYTES = 200_000

settings.network_timeout, settings.network_retries = 0.3, 1
source_http._LONGEST_PAUSE = 0.01

ARRAY = np.random.default_rng(5).integers(0, 255, 600_000, dtype=np.uint8)
_TEXT = b'{"x":{"dtype":"U8","shape":[600000],"data_offsets":[0,600000]}}'
FILE = len(_TEXT).to_bytes(8, "little") + _TEXT + ARRAY.tobytes()

STATUSES = [
    "200 OK", "206 Partial Content", "206", "416 X", "503 X", "429 Slow", "500 X", "404 X", "401 X",
    "304 X", "204 X", "100 Continue", "101 X", "103 X", "301 X", "302 X", "307 X", "308 X", "999 X", "-5 X",
    "99999 X", "2\xb2 X", "", "206 " + "x" * 60_000,
]  # fmt: skip
NUMBERS = [
    "",
    "0",
    "-1",
    "+5",
    "5_0",
    "0x10",
    " 7 ",
    "\xb2",
    "1.5",
    "*",
    "xyz",
    "9" * 15,
    "9" * 20,
    "9" * 5000,
    "\u0663",
]
HEADERS = [
    "Content-Length", "Content-Range", "Content-Encoding", "Transfer-Encoding", "Content-Type", "ETag",
    "Location", "Retry-After", "Set-Cookie", "Connection", "Accept-Ranges", "Vary", "Trailer", "X" * 300,
    "", "Content Length",
]  # fmt: skip
VALUES = [
    "gzip", "identity", "chunked", "gzip, chunked", "multipart/byteranges; boundary=x", "text/html", '"v1"',
    '"v2"', "W/\"v1\"", "http://[::1", "http://127.0.0.1:1/", "http://127.0.0.1:99999/x",
    "ftp://127.0.0.1:1/x", "file:///etc/hosts", "data:,x", "http:///", "//", "/m.safetensors", "?a",
    "http://\xe9..com/", "javascript:1", "close", "x" * 70_000, "a\tb", "\x00", "a\r b", "bytes",
]  # fmt: skip
SIZES = [b"-5", b"", b"+5", b"0x5", b"1_0", b"zz", b"f" * 20, b"5 5", b"\xb2", b" 5", b"9" * 70_000, b"-0"]


def numbers(rng: random.Random, ask: Ask) -> tuple[object, object, object]:
    """First byte, last byte and total of a Content-Range, each honest or not."""
    first = rng.choice([ask.first, ask.first, ask.first + 1, 0, *NUMBERS])
    last = rng.choice(
        [ask.last, ask.last, ask.last - 1, ask.last + 1, len(FILE) - 1, len(FILE) * 2, *NUMBERS]
    )
    total = rng.choice([len(FILE), len(FILE), len(FILE) + 1, 5, "*", *NUMBERS])
    return first, last, total


def answer(rng: random.Random, ask: Ask) -> Iterator[bytes | float]:
    """One answer, with none to three lies."""
    body = FILE[ask.first : ask.last + 1]
    status = "206 Partial Content" if ask.ranged else "200 OK"
    lines = [f"Content-Range: bytes {ask.first}-{ask.last}/{len(FILE)}"] if ask.ranged else []
    length: list[str] = [f"Content-Length: {len(body)}"]
    pieces: Iterable[bytes | float] = [body]
    if rng.random() < 0.15:  # no Range here
        status, lines, body = "200 OK", [], FILE
        length, pieces = [f"Content-Length: {len(body)}"], [body]
    if rng.random() < 0.3:
        length, pieces = ["Transfer-Encoding: chunked"], chunked(body, rng.choice((1000, 70_000, 10**6)))
    cut = False
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        match rng.randrange(12):
            case 0:
                status = rng.choice(STATUSES)
            case 1:
                lines = [
                    "Content-Range: {}{} {}-{}/{}".format(rng.choice(("", " ")), "bytes", *numbers(rng, ask))
                ]
            case 2:
                lines = rng.choice(([], lines * 2, [f"Content-Range: bytes */{rng.choice(NUMBERS)}"]))
            case 3:  # with a body that is not in chunks: else these would be wrong bytes that nobody can tell
                pieces, cut = [body], False
                length = rng.choice(([], length * 2, [f"Content-Length: {rng.choice(NUMBERS)}"]))
            case 4:
                lines = [*lines, f"{rng.choice(HEADERS)}: {rng.choice(VALUES + NUMBERS)}"]
            case 5:  # cut
                cut = True
                whole = b"".join(p for p in pieces if isinstance(p, bytes))
                pieces = [whole[: rng.randrange(len(whole) + 1)]]
            case 6 if not cut:  # more than asked
                pieces = [*pieces, b"X" * rng.choice((1, 1000, 500_000))]
            case 7:
                size = rng.choice(SIZES)
                length, pieces = ["Transfer-Encoding: chunked"], [size + b"\r\n", body, b"\r\n0\r\n\r\n"]
            case 8:
                lines = [*lines, f'ETag: "{rng.choice((1, 1, ask.number))}"']
            case 9:
                pieces = [0.4, *pieces] if rng.random() < 0.3 else [*pieces, 0.4]
            case 10:
                lines = [*lines, *[f"X-{k}: y" for k in range(rng.choice((20, 98, 300)))]]
            case 11 if rng.random() < 0.3:
                again = rng.choice((b"HTTP/1.1 100 Continue\r\n\r\n", b"a: b\r\n", b"x", b"\r\n", b"\0"))
                trailers = head(status, *lines, "Transfer-Encoding: chunked") + b"0\r\n"
                yield rng.choice((b"", b"HTTP/1.1 206 X\r\n", trailers))
                yield from repeat(again * 2000)
    yield head(status, *lines, *length)
    yield from pieces


def run(seed: int) -> None:
    """Open and read the file of one server."""
    lock, chances = threading.Lock(), random.Random(seed)
    honest = chances.random() * 0.8

    def told(ask: Ask) -> list[bytes | float] | Iterator[bytes | float]:
        with lock:  # one request after the other, so that a seed is always the same
            rng = random.Random(f"{seed} {ask.number}")
        if rng.random() < honest:
            body = FILE[ask.first : ask.last + 1]
            status = "206 Partial Content" if ask.ranged else "200 OK"
            ranges = [f"Content-Range: bytes {ask.first}-{ask.last}/{len(FILE)}"] if ask.ranged else []
            return [head(status, *ranges, f"Content-Length: {len(body)}"), body]
        return answer(rng, ask)

    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    got, said = None, ""
    with Liar(told, len(FILE)) as liar:
        try:
            checkpoint = weights.open(liar.url)
            (got,) = weights.read(checkpoint, list(checkpoint.values()), connections=1)
        except (SourceError, FormatError) as error:
            said = str(error)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error!s:.300}") from error
    if got is not None:
        assert got.tobytes() == ARRAY.tobytes(), "the bytes are not those of the file"
    assert len(said) < 2000, f"a message of {len(said):,} characters: {said[:300]}"
    seconds = time.monotonic() - began
    assert seconds < SECONDS, f"{seconds:.1f} s"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < KILOBYTES, f"{grown:,} kB more"
