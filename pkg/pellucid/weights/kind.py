"""What a file is that is no model, as far as its first bytes tell: for messages."""

from __future__ import annotations

from ..errors import FormatError

BYTES = 16  # of the beginning are enough
LONGEST_HEADER = 100_000_000  # of a safetensors file, in bytes

_MARKS = {
    b"GGUF": "is a GGUF file",
    b"PK\x03\x04": "is a zip archive, such as torch.save writes",
    b"\x1f\x8b": "is compressed by gzip",
    b"version https://": "is a pointer of Git LFS, not the file (git lfs pull fetches that)",
}


def describe(begin: bytes) -> str:
    """A clause about a file that begins so, such as ``"is a web page"``."""
    return known(begin) or f"is neither GGUF nor JSON: it begins with {begin[:8]!r}"


def known(begin: bytes) -> str:
    """The clause about a file of a kind that is known by its beginning; empty for another."""
    if not begin:
        return "is empty"
    for mark, clause in _MARKS.items():
        if begin.startswith(mark):
            return clause
    if is_safetensors(begin):
        return "is a safetensors file"
    if _text(begin).startswith(b"<"):
        return "is a web page (it begins with <)"
    return ""


def refuse(name: str, begin: bytes, wanted: str) -> None:
    """Raise where a file is known to be something else.

    Args:
        name: the file's.
        begin: its first `BYTES` bytes.
        wanted: what was expected, such as ``"an ONNX file"``.

    Raises:
        FormatError: it is known.
    """
    if clause := known(begin):
        raise FormatError(
            f"{name}: {clause}; {wanted} was expected. Give the address of the file itself, or download it "
            "again."
        )


def is_safetensors(begin: bytes) -> bool:
    """Whether it may be one: the length of a header, and then the header."""
    return begin[8:9] == b"{" and int.from_bytes(begin[:8], "little") <= LONGEST_HEADER


def may_be_json(begin: bytes) -> bool:
    """Whether an object may follow, as far as the first bytes go."""
    return bool(begin) and _text(begin)[:1] in (b"", b"{")


def _text(begin: bytes) -> bytes:
    return begin.removeprefix(b"\xef\xbb\xbf").lstrip()
