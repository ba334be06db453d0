"""The vocabulary inside a GGUF file, written as the ``tokenizer.json`` that Hugging Face's libraries read."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from pellucid.errors import FormatError
from pellucid.text import special
from pellucid.text.gguf_document import (
    TokenType,
    document,
    numbers,
    strings,
    template,
    token_id,
    vocabulary,
)
from pellucid.text.pretokenizers import PRE_TOKENIZERS
from pellucid.weights.fields import check, shown, whole

LONGEST_WORD = 100  # characters of a word that WordPiece cuts
BERT_NORMALIZER = {
    "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
    "lowercase": True,
}  # fmt: skip
SPACE = "\u2581"  # SentencePiece writes a space as this character
_LONGEST_PIECE = 2048
_BPE = {
    "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
    "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
}  # fmt: skip
_MOST_CHARACTERS = 1 << 23  # four times those of the largest vocabularies


def tokenizer_json_from_gguf(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Build the content of a ``tokenizer.json`` from a GGUF file's metadata.

    Four kinds of vocabulary are understood: ``gpt2`` (byte-level BPE with written merges, cut as the file's
    ``tokenizer.ggml.pre`` names), ``llama`` (SentencePiece BPE, whose merges follow from the scores, with
    byte fallback), ``bert`` (WordPiece of small letters) and ``t5`` (SentencePiece Unigram).

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
    tokens = strings(metadata, "tokenizer.ggml.tokens")
    types = numbers(metadata, "tokenizer.ggml.token_type", len(tokens), default=TokenType.NORMAL)
    kind = metadata.get("tokenizer.ggml.model")
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind](metadata, tokens, types)
    raise FormatError(
        f"tokenizer_json_from_gguf: tokenizer.ggml.model is {shown(kind)}, but only {', '.join(KINDS)} can "
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
    tokens = strings(metadata, "tokenizer.ggml.tokens")
    config: dict[str, Any] = {}
    for role, key in ROLES.items():
        index = token_id(metadata, f"tokenizer.ggml.{key}", len(tokens))
        if index is not None:
            config[role] = tokens[index]
    if metadata.get("tokenizer.ggml.model") == "bert":
        # What begins and ends a text has names of its own there.
        for role, other in (("cls_token", "bos_token"), ("sep_token", "eos_token")):
            token = config.pop(other, None)
            if token is not None:
                config.setdefault(role, token)
        config["tokenizer_class"] = "BertTokenizer"
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
    for position, merge in enumerate(strings(metadata, "tokenizer.ggml.merges")):
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
    return document(
        tokens,
        types,
        normalizer={"type": "NFC"} if family.compose else None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [*splits, byte_level]},
        decoder=byte_level,
        frame=_frame(metadata, tokens, family.begins),
        model=_BPE | {"vocab": vocabulary(tokens), "merges": merges, "ignore_merges": family.whole_words},
    )


def _sentencepiece(metadata: Mapping[str, Any], tokens: list[str], types: list[int]) -> dict[str, Any]:
    scores = numbers(metadata, "tokenizer.ggml.scores", len(tokens), default=None)
    unknown = token_id(metadata, "tokenizer.ggml.unknown_token_id", len(tokens))
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
    return document(
        tokens,
        types,
        normalizer={"type": "Sequence", "normalizers": [prepend, spaces] if prefixed else [spaces]},
        pre_tokenizer=None,
        decoder={
            "type": "Sequence",
            "decoders": decoders
            + ([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixed else []),
        },
        frame=_frame(metadata, tokens, True),
        model=_BPE
        | {
            "vocab": vocabulary(tokens),
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


def _frame(metadata: Mapping[str, Any], tokens: list[str], begins: bool) -> dict[str, Any]:
    """The tokens around a text, as ``add_bos_token`` and ``add_eos_token`` ask."""
    bos = token_id(metadata, "tokenizer.ggml.bos_token_id", len(tokens))
    eos = token_id(metadata, "tokenizer.ggml.eos_token_id", len(tokens))
    first = bos if metadata.get("tokenizer.ggml.add_bos_token", begins) else None
    last = eos if metadata.get("tokenizer.ggml.add_eos_token", False) else None
    return template(tokens, first, last, first)


def _wordpiece(metadata: Mapping[str, Any], tokens: list[str], types: list[int]) -> dict[str, Any]:
    """Words whose pieces behind the first begin with ``##``; the file marks beginnings of words instead."""
    names = [
        token if kind == TokenType.CONTROL else token[1:] if token.startswith(SPACE) else f"##{token}"
        for token, kind in zip(tokens, types, strict=True)
    ]
    unknown = _role(metadata, names, "[UNK]", "unknown_token_id")
    if unknown is None:
        raise FormatError(
            "tokenizer_json_from_gguf: tokenizer.ggml.unknown_token_id is missing, and no token is [UNK]. "
            "The file is damaged; load the tokenizer from a folder with a tokenizer.json."
        )
    begins, ends = (metadata.get(f"tokenizer.ggml.add_{name}_token", True) for name in ("bos", "eos"))
    return document(
        names,
        types,
        normalizer=BERT_NORMALIZER,
        pre_tokenizer={"type": "BertPreTokenizer"},
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
        frame=template(
            names,
            _role(metadata, names, "[CLS]", "cls_token_id", "bos_token_id") if begins else None,
            _role(metadata, names, "[SEP]", "seperator_token_id", "eos_token_id") if ends else None,
            None,
        ),
        model={
            "type": "WordPiece", "unk_token": names[unknown], "continuing_subword_prefix": "##",
            "max_input_chars_per_word": LONGEST_WORD, "vocab": vocabulary(names),
        },
    )  # fmt: skip


def _unigram(metadata: Mapping[str, Any], tokens: list[str], types: list[int]) -> dict[str, Any]:
    """Pieces with the logarithms of how likely they are: of all ways to cut a text the likeliest counts."""
    scores = numbers(metadata, "tokenizer.ggml.scores", len(tokens), default=None)
    unknown = token_id(metadata, "tokenizer.ggml.unknown_token_id", len(tokens))
    if unknown is None or not all(map(isfinite, scores)):
        raise FormatError(
            "tokenizer_json_from_gguf: tokenizer.ggml.unknown_token_id is missing, or tokenizer.ggml.scores "
            "are not finite. The file is damaged; load the tokenizer from a folder with a tokenizer.json."
        )
    charsmap = metadata.get("tokenizer.ggml.precompiled_charsmap") or b""
    if not isinstance(charsmap, bytes):
        raise FormatError(
            "tokenizer_json_from_gguf: tokenizer.ggml.precompiled_charsmap is no list of bytes. The file is "
            "damaged; load the tokenizer from a folder with a tokenizer.json."
        )
    precompiled = {"type": "Precompiled", "precompiled_charsmap": b64encode(charsmap).decode()}
    single = [
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    ]
    steps = [
        *([precompiled] if charsmap else []),
        *(single if metadata.get("tokenizer.ggml.remove_extra_whitespaces", True) else []),
    ]
    prefixed = metadata.get("tokenizer.ggml.add_space_prefix", True)
    scheme = "always" if prefixed else "never"
    spaces = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": True}
    bos = token_id(metadata, "tokenizer.ggml.bos_token_id", len(tokens))
    eos = token_id(metadata, "tokenizer.ggml.eos_token_id", len(tokens))
    first = bos if metadata.get("tokenizer.ggml.add_bos_token", False) else None
    last = eos if metadata.get("tokenizer.ggml.add_eos_token", True) else None
    pieces = [list(pair) for pair in zip(tokens, scores, strict=True)]
    return document(
        tokens,
        types,
        normalizer={"type": "Sequence", "normalizers": steps} if steps else None,
        pre_tokenizer=spaces,
        decoder=spaces,
        frame=template(tokens, first, last, None if first is None else last),
        model={"type": "Unigram", "unk_id": unknown, "vocab": pieces, "byte_fallback": False},
    )


def _role(metadata: Mapping[str, Any], tokens: list[str], name: str, *keys: str) -> int | None:
    """The token of the first key that is there, else the one of a name."""
    found = (token_id(metadata, f"tokenizer.ggml.{key}", len(tokens)) for key in keys)
    usual = tokens.index(name) if name in tokens else None
    return next((index for index in found if index is not None), usual)


KINDS: dict[str, Callable[[Mapping[str, Any], list[str], list[int]], dict[str, Any]]] = {
    "gpt2": _byte_level,
    "llama": _sentencepiece,
    "bert": _wordpiece,
    "t5": _unigram,
}
"""What reads a vocabulary, by ``tokenizer.ggml.model``."""
