"""Reading an ONNX file without its weights: long arrays stay in the file, the message says where they are.

Protobuf is made to be parsed whole. So the file is walked by its lengths first; what is short is copied, and
``raw_data`` and packed floats of more than `LONG` bytes are replaced by their place (the field ``span``).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ....errors import FormatError
from ....weights.kind import BYTES, refuse
from ....weights.source import Source
from .schema import MESSAGES, fields, message_class

LONG = 1024  # bytes that are left in the file
_WINDOW = 1 << 18
_LARGEST_MESSAGE = 128 << 20  # of what is not left in the file
_DEEPEST = 32  # graphs within attributes of nodes within graphs
_LENGTH, _BYTES_OF_FIXED = 2, {1: 8, 5: 4}
_WIRES = {"string": 2, "bytes": 2, "float": 5, "double": 1}
# Messages that may hold tensors, and the arrays whose bytes are a tensor's.
_WALKED = {"Model", "Graph", "Node", "Attribute", "Tensor", "Function"}
_ARRAYS = {"raw_data", "float_data", "double_data"}


def read_model(source: Source) -> Generator[Any, Any, Any]:
    """Steps that read the model's message, as `Model` of `schema`.

    Raises:
        FormatError: it is no ONNX model; names the field and the byte.
    """
    parse = message_class("Model").FromString
    walk = _Walk(source)
    if source.size is None:
        yield from walk.look(0)
    if not source.size:
        raise FormatError(f"{source.name}: is empty. Give an ONNX file.")
    begin = yield from walk.look(0, BYTES)
    refuse(source.name, walk.data[begin : begin + BYTES], "an ONNX file")
    data = yield from walk.message("Model", 0, source.size, "model", 0)
    try:
        return parse(bytes(data))
    except Exception as error:  # DecodeError, whose class differs between protobuf's implementations
        raise FormatError(
            f"{source.name}: is no ONNX model: {error}. It is damaged; download it again."
        ) from None


class _Walk:
    """A window over the file that moves forward."""

    def __init__(self, source: Source):
        self.source = source
        self.start = 0
        self.data = b""
        self.kept = 0

    def refuse(self, field: str, at: int, what: str) -> FormatError:
        return FormatError(
            f"{self.source.name}: {field} at byte {at:,} {what}. It is damaged, or no ONNX file."
        )

    def look(self, at: int, nbytes: int = 20) -> Generator[Any, Any, int]:
        """Steps after which ``nbytes`` from ``at`` on, as far as the file goes, are in the window."""
        size = self.source.size
        stop = at + nbytes if size is None else min(at + nbytes, size)
        if at < self.start or stop > self.start + len(self.data):
            end = max(stop, at + _WINDOW)
            self.data = yield self.source, at, end if size is None else min(end, size)
            self.start = at
            if size is not None and len(self.data) < stop - at:
                raise self.refuse("the file", at, f"ends before byte {stop:,}")
        return at - self.start

    def varint(self, place: int, stop: int, field: str) -> tuple[int, int]:
        value = shift = 0
        for k in range(place, min(stop - self.start, place + 10, len(self.data))):
            byte = self.data[k]
            value |= (byte & 127) << shift
            if byte < 128:
                return value, k + 1
            shift += 7
        raise self.refuse(field, self.start + place, "has a number without an end")

    def message(
        self, kind: str, start: int, stop: int, path: str, depth: int
    ) -> Generator[Any, Any, bytearray]:
        """Steps that copy a message, without its long arrays."""
        if depth > _DEEPEST:
            raise self.refuse(path, start, f"lies deeper than {_DEEPEST} messages")
        known = {number: (name, inner) for number, name, inner in fields(kind) if number < 1000}
        out = bytearray()
        at = start
        while at < stop:
            place = yield from self.look(at)
            tag, after = self.varint(place, stop, path)
            number, wire = tag >> 3, tag & 7
            name, inner = known.get(number, (f"field {number}", ""))
            field, inner = f"{path}.{name}", inner.lstrip("*")
            if not number or wire not in (0, 1, 2, 5):
                raise self.refuse(path, at, f"has a field of number {number} and wire type {wire}")
            if inner and wire not in (_LENGTH, _WIRES.get(inner, _LENGTH if inner in MESSAGES else 0)):
                raise self.refuse(field, at, f"is of wire type {wire}, not a {inner}")
            scalar = inner and inner not in MESSAGES and inner not in ("string", "bytes")
            if scalar and wire == _LENGTH and known[number][1][0] != "*":
                raise self.refuse(field, at, f"is a list, not a {inner}")
            if wire == _LENGTH:
                length, after = self.varint(after, stop, field)
            elif wire:
                length = _BYTES_OF_FIXED[wire]
            else:
                length, after = 0, self.varint(after, stop, field)[1]
            begin = self.start + after
            end = begin + length
            if end > stop:
                raise self.refuse(field, at, f"has {length:,} bytes, of which {stop - begin:,} are there")
            if wire == _LENGTH and length > LONG and kind == "Tensor" and name in _ARRAYS:
                out += _field(1000, _numbers(begin, end))
            elif wire == _LENGTH and length > LONG and inner in _WALKED:
                out += _field(number, (yield from self.message(inner, begin, end, field, depth + 1)))
            elif inner:
                self.kept += end - at
                if self.kept > _LARGEST_MESSAGE:
                    raise self.refuse(
                        field, at, f"is more than {_LARGEST_MESSAGE:,} bytes beside the weights"
                    )
                place = yield from self.look(at, end - at)
                out += self.data[place : place + end - at]
            at = end
        return out


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _numbers(*values: int) -> bytes:
    return b"".join(map(_number, values))


def _field(number: int, content: bytes | bytearray) -> bytes:
    return _number(number << 3 | _LENGTH) + _number(len(content)) + bytes(content)
