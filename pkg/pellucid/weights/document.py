"""JSON from strangers: of limited depth, so that no parser recurses too far, and an object."""

from __future__ import annotations

import json
import re

from ..errors import FormatError

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def parse_object(where: str, text: bytes, *, deepest: int = 64, unique: bool = False) -> dict:
    """A JSON object.

    Args:
        where: the file's name, for messages.
        text: UTF-8.
        deepest: levels of brackets that are allowed.
        unique: whether a name that occurs twice in an object is an error (as JSON has it, the last one
        counts).

    Raises:
        FormatError: the text is not one.
    """
    depth = 0
    for bracket in re.findall(rb"[][{}]", _STRING.sub(b"", text)):
        depth += 1 if bracket in b"[{" else -1
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
            raise FormatError(f"{where}: the name {twice!r} occurs twice. The file is damaged.")
        return result

    try:
        document = json.loads(text.decode(), object_pairs_hook=once if unique else None)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{where}: not valid JSON ({error}). The file is damaged or of another format."
        ) from None
    if not isinstance(document, dict):
        raise FormatError(f"{where}: holds a JSON {type(document).__name__}; an object was expected.")
    return document
