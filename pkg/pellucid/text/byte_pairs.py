"""The vocabulary of older folders, ``vocab.json`` and ``merges.txt``, written as the ``tokenizer.json`` that
Hugging Face's libraries read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pellucid.errors import FormatError
from pellucid.text.gguf import tokenizer_json_from_gguf
from pellucid.weights.document import parse_object

END = "<|endoftext|>"
"""What the classes below take for the tokens that a folder does not name."""
# tokenizer_class -> how text is cut into words, by its name in a GGUF; and the roles that END has.
CLASSES = {
    "GPT2Tokenizer": ("gpt-2", ("bos_token", "eos_token", "unk_token")),
    "Qwen2Tokenizer": ("qwen2", ("eos_token", "pad_token")),
}


def tokenizer_json_from_vocabulary(
    vocabulary: bytes, merges: bytes, config: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Build the content of a ``tokenizer.json`` from byte pairs.

    Args:
        vocabulary: of ``vocab.json``, an object of ids by token.
        merges: of ``merges.txt``, two tokens a line.
        config: what ``tokenizer_config.json`` says.

    Returns:
        The content, and ``config`` with the tokens that its class has by itself.

    Raises:
        FormatError: a file is not that, or the class of the tokenizer cuts text otherwise.

    Source: transformers, models/gpt2/tokenization_gpt2.py and models/qwen2/tokenization_qwen2.py

    Example:
        >>> from pellucid.text.byte_pairs import tokenizer_json_from_vocabulary
        >>> vocabulary = b'{"a": 0, "b": 1, "ab": 2}'
        >>> made, _ = tokenizer_json_from_vocabulary(vocabulary, b"a b", {})
        >>> made["model"]["merges"]
        [['a', 'b']]
    """
    name = str(config.get("tokenizer_class", "GPT2Tokenizer")).removesuffix("Fast")
    if name not in CLASSES:
        raise FormatError(
            f"vocab.json: tokenizer_class is {name!r}; folders without a tokenizer.json are read of "
            f"{', '.join(CLASSES)}. Save the tokenizer again with transformers, which writes one."
        )
    cut, roles = CLASSES[name]
    ids = parse_object("vocab.json", vocabulary)
    tokens: list[str | None] = [None] * len(ids)
    for token, place in ids.items():
        if type(place) is not int or not 0 <= place < len(ids) or tokens[place] is not None:
            raise FormatError(
                f"vocab.json: the id of {token!r} is {place!r}, no place of its own among {len(ids)} tokens. "
                "Download it again."
            )
        tokens[place] = token
    try:
        lines = merges.decode().split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"merges.txt: is not UTF-8 ({error.reason}). Download it again.") from None
    lines = [line.removesuffix("\r") for line in lines[lines[0].startswith("#version") :]]
    metadata = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": cut, "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": [line for line in lines if line],
    }  # fmt: skip
    usual = dict.fromkeys(roles, END) if END in ids or "added_tokens_decoder" in config else {}
    return tokenizer_json_from_gguf(metadata), usual | dict(config)
