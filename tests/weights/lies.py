"""Answers that no honest server gives, by name: what is read of them is right, or nothing is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

import numpy as np

from weights import samples
from weights.liar import Answer, Ask, chunked, head, honest, part

ARRAY = np.random.default_rng(5).integers(0, 255, 700_000, dtype=np.uint8)
FILE = samples.safetensors_file({"x": ARRAY})
CHUNKED, GZIPPED = "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"
IDENTITY = "Transfer-Encoding: identity"
ALL = Ask(1, 0, len(FILE) - 1, True)


def body(ask: Ask) -> bytes:
    return FILE[ask.first : ask.last + 1]


def _head(status: str, *lines: str) -> Answer:
    return lambda ask: [head(status, *lines)]


def _in_chunks(size: bytes, behind: bytes = b"") -> Answer:
    """One chunk whose size is said to be ``size``."""
    return lambda ask: [part(FILE, ask, CHUNKED), size + b"\r\n" + body(ask) + behind + b"\r\n0\r\n\r\n"]


def _later(first: Answer, then: Answer) -> Answer:
    """Honest (or ``first``) at the opening, another answer afterwards."""
    return lambda ask: first(ask) if ask.number == 1 else then(ask)


def _honest(ask: Ask) -> Iterable[bytes]:
    return honest(FILE, ask)


def _whole(ask: Ask) -> Iterable[bytes]:
    return [head("200 OK", f"Content-Length: {len(FILE)}"), FILE]


def _endless(begin: bytes, again: bytes) -> Answer:
    def answer(ask: Ask) -> Iterator[bytes]:
        yield begin
        yield from repeat(again * 512)

    return answer


def _shifted(ask: Ask) -> Iterable[bytes]:
    return [part(FILE, ask, first=ask.first + 1), FILE[ask.first + 1 : ask.last + 1]]


def _longer(ask: Ask) -> Iterable[bytes]:
    text = body(ask) + b"X" * 100_000
    return [part(FILE, ask, f"Content-Length: {len(text)}"), text]


def _past_the_end(ask: Ask) -> Iterable[bytes]:
    return [part(FILE, ask, total=len(FILE) // 2), body(ask)]


def _parts(ask: Ask) -> Iterable[bytes]:
    text = b"--B\r\nContent-Type: x\r\n\r\n" + body(ask)
    return [
        part(FILE, ask, "Content-Type: multipart/byteranges; boundary=B"),
        text[: ask.last + 1 - ask.first],
    ]


def _etag(ask: Ask) -> Iterable[bytes]:
    return [part(FILE, ask, f'ETag: "{ask.number}"'), body(ask)]


LIES: dict[str, Answer] = {
    "416 of */xyz": _head("416 X", "Content-Range: bytes */xyz", "Content-Length: 0"),
    "416 of */*": _head("416 X", "Content-Range: bytes */*", "Content-Length: 0"),
    "416 of everything": _head("416 X", f"Content-Range: bytes */{len(FILE)}", "Content-Length: 0"),
    "206 of 10**5000 bytes": lambda ask: [part(FILE, ask, total="9" * 5000)],
    "206 of 10**5000 bytes without range": _head("200 OK", "Content-Length: " + "9" * 5000),
    "503 and a superscript": _head("503 X", "Retry-After: \xb2", "Content-Length: 0"),
    "redirect to an address that does not end": _head("302 X", "Location: http://[::1"),
    "redirect to a name that IDNA refuses": _head("302 X", f"Location: http://\xe9..{'a' * 70}.com/"),
    "redirect to a port that is none": _head("302 X", "Location: http://127.0.0.1:99999/"),
    "redirect to a control character": _head("302 X", "Location: http://127.0.0.1/a\x01b"),
    "redirect to no host": _head("302 X", "Location: http:///x"),
    "redirect to ftp": _head("302 X", "Location: ftp://127.0.0.1:1/x"),
    "redirect to a file": _head("302 X", "Location: file:///etc/hostname"),
    "redirect to data": _head("302 X", "Location: data:text/plain,hello"),
    "redirect to itself": _head("302 X", "Location: /m.safetensors"),
    "redirect whose body has no end": _endless(head("302 X", "Location: ftp://127.0.0.1:1/x"), b"x"),
    "chunk of size -5": _in_chunks(b"-5", b"X" * 100_000),
    "chunk of size 0x10": _in_chunks(b"0x10"),
    "chunk of size +5": _in_chunks(b"+5"),
    "chunk of size 1_0": _in_chunks(b"1_0"),
    "chunk of 10**20 bytes": _in_chunks(b"f" * 20),
    "chunk without size": _in_chunks(b""),
    "trailers without end": _endless(part(FILE, ALL, CHUNKED) + b"0\r\n", b"a: b\r\n"),
    "interim answers without end": _endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "headers without end": _endless(b"HTTP/1.1 206 X\r\n", b"a: b\r\n"),
    "a header without end": _endless(b"HTTP/1.1 206 X\r\na: ", b"b"),
    "a header, drop by drop": lambda ask: (x for _ in range(1000) for x in (b"H", 0.05)),
    "early hints": _head("103 Early Hints"),
    "not modified": _head("304 Not Modified"),
    "no content": _head("204 No Content"),
    "a range of several parts": _parts,
    "another range": _shifted,
    "a longer range": _longer,
    "a range past the end": _past_the_end,
    "another ETag each time": _etag,
    "another total later": _later(_honest, lambda ask: [part(FILE, ask, total=len(FILE) + 1), body(ask)]),
    "another file later": _later(_honest, _whole),
    "a part for the whole": _later(
        lambda ask: [*_whole(ask)[:1], FILE[:400_000]],  # type: ignore[index]
        lambda ask: [part(FILE, ask, f"Content-Length: {len(FILE)}"), FILE[1:] + b"X"],
    ),
    "two lengths": _head("200 OK", "Content-Length: 5", "Content-Length: 6"),
    "a negative length": _head("200 OK", "Content-Length: -5"),
    "compressed": lambda ask: [part(FILE, ask, "Content-Encoding: gzip"), body(ask)],
    "compressed in transfer": lambda ask: [part(FILE, ask, GZIPPED), *chunked(body(ask))],
    "encoded twice": lambda ask: [part(FILE, ask, IDENTITY, CHUNKED), *chunked(body(ask))],
    "a malformed header": lambda ask: [part(FILE, ask, "Content Length: 5", CHUNKED), *chunked(body(ask))],
    "cut": lambda ask: [part(FILE, ask, "Content-Length: 700136"), body(ask)[:10]],
    "cookies": lambda ask: [part(FILE, ask, "Set-Cookie: a=b; Domain=com"), body(ask)],
    "in chunks, honestly": lambda ask: [part(FILE, ask, CHUNKED), *chunked(body(ask))],
    "whole, honestly": _whole,
    "nothing": lambda ask: [],
    "no HTTP": lambda ask: [b"\x00" * 100_000],
}  # fmt: skip
HONEST = {"cookies", "in chunks, honestly", "whole, honestly"}
