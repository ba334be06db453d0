"""The vocabulary inside a GGUF file, written as the ``tokenizer.json`` that Hugging Face's libraries read."""

from collections.abc import Mapping
from enum import IntEnum
from numbers import Real
from typing import Any

from pellucid.errors import FormatError
from pellucid.text import special
from pellucid.text.pretokenizers import PRE_TOKENIZERS
from pellucid.weights.fields import check, shown, whole

SPACE = "\u2581"  # SentencePiece writes a space as this character
_LONGEST_PIECE = 2048
_MOST_CHARACTERS = 1 << 23  # four times those of the largest vocabularies


class TokenType(IntEnum):
    """What ``tokenizer.ggml.token_type`` says of each token."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def tokenizer_json_from_gguf(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Build the content of a ``tokenizer.json`` from a GGUF file's metadata.

    Two kinds of vocabulary are understood: ``gpt2`` (byte-level BPE with written merges, cut as the file's
    ``tokenizer.ggml.pre`` names) and ``llama`` (SentencePiece BPE, whose merges follow from the scores, with
    byte fallback).

    Args:
        metadata: the file's key-value pairs as plain Python values (``tokenizer.ggml.tokens`` a list of str,
            ...).

    Returns:
        A dict that ``json.dumps`` turns into a valid ``tokenizer.json``.

    Raises:
        FormatError: a key is missing, has the wrong type or length, or names a kind of vocabulary that is
            not known.

    Source: the GGUF specification, section "Tokenizer".

    Example:
        >>> tokenizer_json_from_gguf(gguf.metadata)["model"]["type"]
        'BPE'
    """
    tokens = _strings(metadata, "tokenizer.ggml.tokens")
    types = _numbers(metadata, "tokenizer.ggml.token_type", len(tokens), default=TokenType.NORMAL)
    kind = metadata.get("tokenizer.ggml.model")
    if kind == "gpt2":
        return _byte_level(metadata, tokens, types)
    if kind == "llama":
        return _sentencepiece(metadata, tokens, types)
    raise FormatError(
        f"tokenizer_json_from_gguf: tokenizer.ggml.model is {shown(kind)}, but only 'gpt2' and 'llama' can "
        "be read from GGUF. "
        "Load the tokenizer from the model's own folder, one with a tokenizer.json."
    )


def tokenizer_config_from_gguf(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Build the content of a ``tokenizer_config.json``: special tokens by role, chat templates and the
    context length.

    Args:
        metadata: the file's key-value pairs as plain Python values.

    Returns:
        A dict with ``bos_token``, ``eos_token`` and so on, ``chat_template`` and ``model_max_length``, each
        only where the file has it.

    Raises:
        FormatError: an id is not a position in the vocabulary, or a key has the wrong type.

    Example:
        >>> tokenizer_config_from_gguf(gguf.metadata)["eos_token"]
        '<|im_end|>'
    """
    tokens = _strings(metadata, "tokenizer.ggml.tokens")
    config: dict[str, Any] = {}
    for role, key in ROLES.items():
        index = _token_id(metadata, f"tokenizer.ggml.{key}", len(tokens))
        if index is not None:
            config[role] = tokens[index]
    prefix = "tokenizer.chat_template."
    named = {key.removeprefix(prefix): text for key, text in metadata.items() if key.startswith(prefix)}
    main = metadata.get("tokenizer.chat_template")
    if named:
        config["chat_template"] = ({"default": main} if main is not None else {}) | named
    elif main is not None:
        config["chat_template"] = main
    key = f"{metadata.get('general.architecture')}.context_length"[:200]
    check("tokenizer_config_from_gguf", metadata, {key: whole(1, (1 << 63) - 1)})
    if metadata.get(key) is not None:
        config["model_max_length"] = int(metadata[key])
    check("tokenizer_config_from_gguf", config, special.TABLE)
    return config


ROLES = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "sep_token": "seperator_token_id",  # spelled so in the format
    "pad_token": "padding_token_id",
    "mask_token": "mask_token_id",
    "cls_token": "cls_token_id",
}


def _byte_level(metadata: Mapping[str, Any], tokens: list[str], types: list[int]) -> dict[str, Any]:
    name = metadata.get("tokenizer.ggml.pre", "default")
    family = PRE_TOKENIZERS.get(name) if isinstance(name, str) else None
    if family is None:
        raise FormatError(
            f"tokenizer_json_from_gguf: tokenizer.ggml.pre is {shown(name)}, which is not one of "
            f"{', '.join(sorted(PRE_TOKENIZERS))}. "
            "Load the tokenizer from the model's own folder, one with a tokenizer.json."
        )
    merges = []
    for position, merge in enumerate(_strings(metadata, "tokenizer.ggml.merges")):
        # A space never occurs in a byte-level token, except as the very first character in a few older files.
        left, separator, right = merge[1:].partition(" ")
        if not separator or not right:
            raise FormatError(
                f"tokenizer_json_from_gguf: tokenizer.ggml.merges[{position}] is {shown(merge)}, not two "
                "tokens separated by a space. "
                "The file is damaged."
            )
        merges.append([merge[0] + left, right])
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    splits = [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
        for regex in family.splits
    ]
    return _document(
        metadata,
        tokens,
        types,
        normalizer={"type": "NFC"} if family.compose else None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [*splits, byte_level]},
        decoder=byte_level,
        begins=family.begins,
        model={"vocab": _vocabulary(tokens), "merges": merges, "ignore_merges": family.whole_words},
    )


def _sentencepiece(metadata: Mapping[str, Any], tokens: list[str], types: list[int]) -> dict[str, Any]:
    scores = _numbers(metadata, "tokenizer.ggml.scores", len(tokens), default=None)
    unknown = _token_id(metadata, "tokenizer.ggml.unknown_token_id", len(tokens))
    # User-defined pieces are matched in the text itself, before spaces are rewritten.
    tokens = [
        token.replace(SPACE, " ") if kind == TokenType.USER_DEFINED else token
        for token, kind in zip(tokens, types, strict=True)
    ]
    prefixed = bool(metadata.get("tokenizer.ggml.add_space_prefix", True))
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prepend = {"type": "Prepend", "prepend": SPACE}
    decoders = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    return _document(
        metadata,
        tokens,
        types,
        normalizer={"type": "Sequence", "normalizers": [prepend, spaces] if prefixed else [spaces]},
        pre_tokenizer=None,
        decoder={
            "type": "Sequence",
            "decoders": decoders
            + ([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixed else []),
        },
        begins=True,
        model={
            "vocab": _vocabulary(tokens),
            "merges": _merges_from_scores(tokens, types, scores),
            "unk_token": None if unknown is None else tokens[unknown],
            "fuse_unk": True,
            "byte_fallback": TokenType.BYTE in types,
        },
    )


def _merges_from_scores(tokens: list[str], types: list[int], scores: list[float]) -> list[list[str]]:
    """Every way to cut a piece in two, best piece first, which is the order in which SentencePiece joins.

    Raises:
        FormatError: pieces are so long that looking at every way would take long.
    """
    pieces = {
        token: index
        for index, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (TokenType.NORMAL, TokenType.UNUSED)
    }
    longest, together = max(map(len, pieces), default=0), sum(map(len, pieces))
    if longest > _LONGEST_PIECE or together > _MOST_CHARACTERS:
        raise FormatError(
            f"tokenizer_json_from_gguf: tokenizer.ggml.tokens have up to {longest:,} characters and "
            f"{together:,} together; {_LONGEST_PIECE:,} and {_MOST_CHARACTERS:,} are allowed. The file is "
            "damaged or made to mislead."
        )
    merges = []
    for piece in sorted(pieces, key=lambda token: -scores[pieces[token]]):
        cuts = ((piece[:i], piece[i:]) for i in range(1, len(piece)))
        known = [cut for cut in cuts if cut[0] in pieces and cut[1] in pieces]
        merges += [list(cut) for cut in sorted(known, key=lambda cut: (pieces[cut[0]], pieces[cut[1]]))]
    return merges


def _document(
    metadata: Mapping[str, Any],
    tokens: list[str],
    types: list[int],
    *,
    normalizer: dict | None,
    pre_tokenizer: dict | None,
    decoder: dict,
    begins: bool,
    model: dict[str, Any],
) -> dict[str, Any]:
    added = [
        {
            "id": index, "content": tokens[index], "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": kind != TokenType.USER_DEFINED,
        }
        for index, kind in enumerate(types)
        if kind in (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN) and tokens[index]
    ]  # fmt: skip
    defaults = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
    }  # fmt: skip
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": _frame(metadata, tokens, begins),
        "decoder": decoder,
        "model": defaults | model,
    }


def _frame(metadata: Mapping[str, Any], tokens: list[str], begins: bool) -> dict[str, Any]:
    """The tokens added around a text, as ``add_bos_token`` and ``add_eos_token`` ask."""
    bos = _token_id(metadata, "tokenizer.ggml.bos_token_id", len(tokens))
    eos = _token_id(metadata, "tokenizer.ggml.eos_token_id", len(tokens))
    first = bos if metadata.get("tokenizer.ggml.add_bos_token", begins) else None
    last = eos if metadata.get("tokenizer.ggml.add_eos_token", False) else None

    def special(index: int | None, sequence: int) -> list[dict]:
        return [] if index is None else [{"SpecialToken": {"id": tokens[index], "type_id": sequence}}]

    def framed(name: str, sequence: int) -> list[dict]:
        return [
            *special(first, sequence),
            {"Sequence": {"id": name, "type_id": sequence}},
            *special(last, sequence),
        ]

    return {
        "type": "TemplateProcessing",
        "single": framed("A", 0),
        "pair": framed("A", 0) + framed("B", 1),
        "special_tokens": {
            tokens[index]: {"id": tokens[index], "ids": [index], "tokens": [tokens[index]]}
            for index in (first, last)
            if index is not None
        },
    }


def _vocabulary(tokens: list[str]) -> dict[str, int]:
    # The first of two equal tokens keeps its id, as in a lookup that scans the list.
    return {token: index for index, token in reversed(list(enumerate(tokens)))}


def _strings(metadata: Mapping[str, Any], key: str) -> list[str]:
    value = metadata.get(key)
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise FormatError(
            f"tokenizer_json_from_gguf: {key} is {_describe(value)}, not a list of strings. "
            "The file holds no readable vocabulary; load the tokenizer from a folder with a tokenizer.json."
        )
    return list(value)


def _numbers(metadata: Mapping[str, Any], key: str, count: int, default: Any) -> list:
    value = metadata.get(key)
    if value is None and default is not None:
        return [default] * count
    numbers: Any = value.tolist() if hasattr(value, "tolist") else value  # type: ignore[union-attr]
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


def _token_id(metadata: Mapping[str, Any], key: str, count: int) -> int | None:
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
