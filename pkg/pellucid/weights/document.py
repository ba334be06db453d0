"""JSON from strangers: of limited depth and number of values, so that no parser recurses or grows too far."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..errors import FormatError
from .kind import BYTES, refuse

_MOST_VALUES = 1 << 21  # a file of 200,000 tensors has a million
_BLOCK = 1 << 20  # bytes that are looked at together
_QUOTE, _COMMA = b'",'
_STEPS = np.zeros(256, np.int8)  # levels that a byte opens
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def parse_object(where: str, text: bytes, **options: Any) -> dict:
    """A JSON object.

    Args:
        where: the file's name, for messages.
        text: UTF-8.
        **options: of `parse_value`.

    Raises:
        FormatError: the text is not one.
    """
    document = parse_value(where, text, **options)
    if not isinstance(document, dict):
        raise FormatError(f"{where}: holds a JSON {type(document).__name__}; an object was expected.")
    return document


def parse_value(
    where: str,
    text: bytes,
    *,
    deepest: int = 64,
    most: int | None = _MOST_VALUES,
    unique: bool = False,
    advice: str = "The file is damaged or of another format.",
) -> Any:
    """Whatever a JSON text holds.

    Args:
        where: the file's name, for messages.
        text: UTF-8.
        deepest: levels of brackets that are allowed.
        most: values that are allowed; None for as many as there are.
        unique: whether a name that occurs twice in an object is an error (as JSON has it, the last one
        counts).
        advice: what to do where the text is no JSON.

    Raises:
        FormatError: the text is no JSON, is too deep, or has too many values.
    """
    # Short texts, such as lines of a file of a million, have too few brackets to be looked at closely.
    brackets = text.count(b"[") + text.count(b"{")
    if brackets > deepest or (most is not None and brackets + text.count(b",") >= most):
        depth, values = _extent(text)
        if most is not None and values > most:
            raise FormatError(
                f"{where}: has {values:,} values; {most:,} are allowed. The file is damaged or made to "
                "mislead."
            )
        if depth > deepest:
            raise FormatError(
                f"{where}: brackets nest deeper than {deepest} levels. The file is damaged or made to "
                "mislead."
            )

    def once(pairs: list) -> dict:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set = set()
            twice = next(k for k, _ in pairs if k in seen or seen.add(k))
            raise FormatError(f"{where}: the name {twice[:200]!r} occurs twice. The file is damaged.")
        return result

    try:
        return json.loads(text.decode(), object_pairs_hook=once if unique else None)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        refuse(where, text[:BYTES], "JSON")
        raise FormatError(f"{where}: not valid JSON ({str(error)[:200]}). {advice}") from None


def as_bytes(text: str | bytes | bytearray) -> bytes:
    """A text as `parse_object` takes it. What UTF-8 has not, halves of a pair, is no JSON there either."""
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if not isinstance(text, (bytes, bytearray)):
        raise TypeError(f"a {type(text).__name__} is no text")
    return bytes(text)


def _extent(text: bytes) -> tuple[int, int]:
    """The most levels of brackets and a bound of the number of values, in time and memory of the text's size.

    Up to where a parser would stop: behind a backslash outside a string anything may come out.
    """
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    depth, deepest, values, inside = 0, 0, 1, False
    for at in range(0, len(text), _BLOCK):
        block = np.frombuffer(text, np.uint8, min(_BLOCK, len(text) - at), at)
        quoted = np.logical_xor.accumulate(block == _QUOTE) ^ inside
        steps = np.where(quoted, np.int8(0), _STEPS[block])
        levels = np.cumsum(steps, dtype=np.int32) + depth
        depth, deepest, inside = int(levels[-1]), max(deepest, int(levels.max())), bool(quoted[-1])
        values += int(np.count_nonzero(steps > 0) + np.count_nonzero((block == _COMMA) & ~quoted))
    return deepest, values
