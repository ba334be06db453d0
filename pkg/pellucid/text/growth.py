"""How much longer a ``tokenizer.json`` can make a text: a few lines of it could ask for all memory there is.

The libraries apply what the file says. Forty normalizers that write ``aa`` for ``a`` make a terabyte of one
character, so what grows is multiplied up before any text is given to them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from pellucid.errors import FormatError

_MOST_GROWTH = 4096.0  # a text's bytes after all steps of one kind, as a multiple of those before
_MOST_STEPS = 256
_MOST_ADDED = 1 << 16  # ids around a text
_MOST_REPEATS = 2  # of a text; where texts are cut, the library combines what is left of each with all others
_PARTS = ("normalizers", "pretokenizers", "decoders", "processors")  # where sequences have theirs


def check(where: str, parts: Mapping[str, Any]) -> None:
    """Refuse a tokenizer that makes texts much longer.

    Args:
        where: the file's name, for messages.
        parts: its ``normalizer``, ``pre_tokenizer``, ``decoder`` and ``post_processor``.

    Raises:
        FormatError: one does; names it.
    """
    for name in ("normalizer", "pre_tokenizer", "decoder"):
        growth, steps = 1.0, 0
        for step in _steps(parts.get(name)):
            growth, steps = growth * _growth(step), steps + 1
            if steps > _MOST_STEPS or growth > _MOST_GROWTH:
                raise FormatError(
                    f"{where}: {name} has more than {_MOST_STEPS} steps, or makes a text more than "
                    f"{_MOST_GROWTH:,.0f} times as long. The file is made to mislead."
                )
    added, repeats = 0, 1
    for step in _steps(parts.get("post_processor")):
        added, repeats = added + _added(step), repeats * _repeats(step)
        if added > _MOST_ADDED or repeats > _MOST_REPEATS:
            raise FormatError(
                f"{where}: post_processor adds more than {_MOST_ADDED:,} tokens to every text, or writes it "
                f"more than {_MOST_REPEATS} times. The file is made to mislead."
            )


def _steps(part: Any) -> Iterator[Mapping[str, Any]]:
    """The steps of a part, in order, however sequences of them nest."""
    waiting = [part]
    while waiting:
        step = waiting.pop()
        if not isinstance(step, Mapping):
            continue
        inner = [x for name in _PARTS if isinstance(step.get(name), list) for x in step[name]]
        if inner:
            waiting += reversed(inner)
        else:
            yield step


def _growth(step: Mapping[str, Any]) -> float:
    """The most by which a step multiplies a text's bytes. Unicode's forms do so once, however often used."""
    kind = step.get("type")
    if kind == "Replace":
        content, pattern = _bytes(step.get("content")), step.get("pattern")
        plain = _bytes(pattern.get("String")) if isinstance(pattern, Mapping) else 0
        return max(1.0, content / plain) if plain else 1.0 + content
    if kind == "Precompiled":
        return max(1.0, float(_longest_replacement(step.get("precompiled_charsmap"))))
    if kind == "ByteLevel":
        return 2.0
    added = max(map(_bytes, (step.get(name) for name in ("prepend", "replacement", "prefix", "suffix"))))
    return 1.0 + added / 64  # once for a text or a word, not for each character


def _bytes(value: Any) -> int:
    return len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 0


def _longest_replacement(charsmap: Any) -> int:
    """Of SentencePiece's table: a trie behind its length, then replacements that end in zeros."""
    try:
        data = base64.b64decode(charsmap)
    except (TypeError, ValueError):  # which the library refuses by itself
        return 1
    return max(map(len, data[4 + int.from_bytes(data[:4], "little") :].split(b"\0")), default=1)


def _pieces(step: Mapping[str, Any], form: str, kind: str) -> list[Any]:
    """The ids of the pieces of one kind that a template of a post processor has."""
    pieces = step.get(form)
    pieces = [piece.get(kind) for piece in (pieces if isinstance(pieces, list) else ()) if _is_object(piece)]
    return [piece.get("id") for piece in pieces if _is_object(piece)]


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _repeats(step: Mapping[str, Any]) -> int:
    """How often a template writes one text."""
    texts = [_pieces(step, form, "Sequence") for form in ("single", "pair")]
    return max((ids.count(name) for ids in texts for name in ("A", "B")), default=1) or 1


def _added(step: Mapping[str, Any]) -> int:
    """Ids that a template puts around a text, or around two."""
    ids = step.get("special_tokens")
    ids = ids if isinstance(ids, Mapping) else {}
    total = 0
    for form in ("single", "pair"):
        for name in _pieces(step, form, "SpecialToken"):
            entry = ids.get(name) if isinstance(name, str) else None
            found = entry.get("ids") if isinstance(entry, Mapping) else None
            total += len(found) if isinstance(found, list) else 1
    return total
