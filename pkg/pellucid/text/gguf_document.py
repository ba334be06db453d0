"""What vocabularies of a GGUF share: keys that are checked, and the ``tokenizer.json`` around them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from numbers import Real
from typing import Any

from pellucid.errors import FormatError
from pellucid.weights.fields import shown


class TokenType(IntEnum):
    """What ``tokenizer.ggml.token_type`` says of each token."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def document(
    tokens: list[str],
    types: list[int],
    *,
    normalizer: dict | None,
    pre_tokenizer: dict | None,
    decoder: dict,
    frame: dict[str, Any],
    model: dict[str, Any],
) -> dict[str, Any]:
    """The content of a ``tokenizer.json``.

    Args:
        tokens, types: of the vocabulary; those that are no text of their own become added ones.
        normalizer, pre_tokenizer, decoder, model: its parts.
        frame: what `template` gives.
    """
    added = [
        {
            "id": index, "content": tokens[index], "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": kind != TokenType.USER_DEFINED,
        }
        for index, kind in enumerate(types)
        if kind in (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN) and tokens[index]
    ]  # fmt: skip
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": frame,
        "decoder": decoder,
        "model": model,
    }


def template(tokens: list[str], first: int | None, last: int | None, second: int | None) -> dict[str, Any]:
    """The tokens added around a text, or two.

    Args:
        tokens: of the vocabulary.
        first, last: that begins and that ends a text.
        second: that begins a second text.
    """

    def special(index: int | None, sequence: int) -> list[dict]:
        return [] if index is None else [{"SpecialToken": {"id": tokens[index], "type_id": sequence}}]

    def framed(begin: int | None, name: str, sequence: int) -> list[dict]:
        text = {"Sequence": {"id": name, "type_id": sequence}}
        return [*special(begin, sequence), text, *special(last, sequence)]

    return {
        "type": "TemplateProcessing",
        "single": framed(first, "A", 0),
        "pair": framed(first, "A", 0) + framed(second, "B", 1),
        "special_tokens": {
            tokens[index]: {"id": tokens[index], "ids": [index], "tokens": [tokens[index]]}
            for index in (first, last, second)
            if index is not None
        },
    }


def vocabulary(tokens: list[str]) -> dict[str, int]:
    """Numbers of tokens."""
    # The first of two equal tokens keeps its id, as in a lookup that scans the list.
    return {token: index for index, token in reversed(list(enumerate(tokens)))}


def strings(metadata: Mapping[str, Any], key: str) -> list[str]:
    """A key's texts.

    Raises:
        FormatError: it is missing, or something else.
    """
    value = metadata.get(key)
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise FormatError(
            f"tokenizer_json_from_gguf: {key} is {_describe(value)}, not a list of strings. "
            "The file holds no readable vocabulary; load the tokenizer from a folder with a tokenizer.json."
        )
    return list(value)


def numbers(metadata: Mapping[str, Any], key: str, count: int, default: Any) -> list:
    """A key's numbers, one for each token; where it is missing, the default if there is one.

    Raises:
        FormatError: it is something else.
    """
    value = metadata.get(key)
    if value is None and default is not None:
        return [default] * count
    numbers = getattr(value, "tolist", lambda: value)()
    if not isinstance(numbers, list | tuple) or not all(
        isinstance(item, Real) and item == item for item in numbers
    ):  # NaN has no order
        numbers = ()
    if len(numbers) != count:
        raise FormatError(
            f"tokenizer_json_from_gguf: {key} is {_describe(value)}, not a number for each of the {count} "
            "tokens. "
            "The file is damaged; load the tokenizer from a folder with a tokenizer.json."
        )
    return list(numbers)


def token_id(metadata: Mapping[str, Any], key: str, count: int) -> int | None:
    """A key's token, as its number; None where it is missing.

    Raises:
        FormatError: it is no position in the vocabulary.
    """
    value = metadata.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
        raise FormatError(
            f"tokenizer_json_from_gguf: {key} is {shown(value)}, outside the vocabulary of {count} tokens. "
            "The file is damaged."
        )
    return value


def _describe(value: Any) -> str:
    return (
        "missing"
        if value is None
        else f"a {type(value).__name__} of length {len(value)}"
        if hasattr(value, "__len__")
        else repr(value)
    )
