"""A tokenizer as the keys of a GGUF file: the reverse of `pellucid.text.gguf`."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from pellucid.errors import FormatError
from pellucid.text.gguf import BERT_NORMALIZER, LONGEST_WORD, ROLES, SPACE, tokenizer_json_from_gguf
from pellucid.text.gguf_document import TokenType
from pellucid.text.pretokenizers import GPT2, PRE_TOKENIZERS
from pellucid.weights.fields import shown

_ELSEWHERE = "Save the tokenizer as a folder by its save_pretrained()."


def tokenizer_to_gguf(tokenizer: Any, rows: int) -> dict[str, Any]:
    """The keys of a GGUF from which the same tokenizer is read.

    Args:
        tokenizer: of `AutoTokenizer`: byte-level BPE, SentencePiece (BPE or Unigram), or BERT's WordPiece of
            small letters.
        rows: of the model's embedding; llama.cpp wants a token for each.

    Raises:
        FormatError: it is of another kind, changes or cuts text as no GGUF says, has more tokens than rows,
            or adds other tokens around a text than those that begin and end it.

    Example:
        >>> tokenizer_to_gguf(tokenizer, 49152)["tokenizer.ggml.pre"]
        'smollm'
    """
    try:
        document = json.loads(tokenizer._document)
        kind = document["model"].get("type", "BPE")
        write = _KINDS.get(kind) if document["model"]["vocab"] else None
    except (ValueError, KeyError, TypeError, AttributeError):
        document, write = {}, None
    if write is None:
        raise FormatError(
            f"save_gguf: the tokenizer is no BPE, WordPiece or Unigram with a tokenizer.json. {_ELSEWHERE}"
        )
    tokens, types = _tokens(tokenizer, document, rows)
    keys = write(document, tokens, types)
    keys |= {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [int(t) for t in types]}
    for role, key in ROLES.items():
        if (index := getattr(tokenizer, f"{role}_id")) is not None:
            keys[f"tokenizer.ggml.{key}"] = index
    ends = _ends(tokenizer, document["model"].get("type", "BPE"))
    keys |= _frame(tokenizer, *ends)
    for key, index in zip(("bos_token_id", "eos_token_id"), ends, strict=True):
        if index is not None:  # by which llama.cpp knows them
            keys[f"tokenizer.ggml.{key}"] = index
    _check(keys, document["model"])
    template = tokenizer.chat_template
    for name, text in (template if isinstance(template, Mapping) else {"default": template}).items():
        if text is not None:
            keys["tokenizer.chat_template" + ("" if name == "default" else f".{name}")] = text
    return keys


def _bpe(document: Mapping[str, Any], tokens: list[str], types: list[TokenType]) -> dict[str, Any]:
    model, cut = document["model"], document.get("pre_tokenizer")
    merges = _merges(model)
    spaces = _spaces(document)
    if cut and spaces is None and not model.get("byte_fallback"):
        return {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": _family(document),
            "tokenizer.ggml.merges": [f"{left} {right}" for left, right in merges],
        }
    return {"tokenizer.ggml.model": "llama"} | _scores(document, tokens, types, merges, spaces)


def _merges(model: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [tuple(m.split(" ", 1)) if isinstance(m, str) else tuple(m) for m in model["merges"]]


def _wordpiece(document: Mapping[str, Any], tokens: list[str], types: list[TokenType]) -> dict[str, Any]:
    """Beginnings of words are marked, instead of pieces behind them."""
    model, normalizer = document["model"], dict(document.get("normalizer") or {})
    if normalizer.get("strip_accents") is True:  # which small letters have anyway
        normalizer["strip_accents"] = None
    wanted = [BERT_NORMALIZER, {"type": "BertPreTokenizer"}, "##", LONGEST_WORD]
    found = [normalizer, document.get("pre_tokenizer")]
    found += [model.get(key) for key in ("continuing_subword_prefix", "max_input_chars_per_word")]
    if found != wanted:
        raise FormatError(
            f"save_gguf: text is changed by {shown(normalizer)} and cut by {shown(found[1:])}; a GGUF's "
            f"WordPiece is that of uncased BERT. {_ELSEWHERE}"
        )
    for k, kind in enumerate(types):
        if kind != TokenType.CONTROL:
            tokens[k] = tokens[k][2:] if tokens[k].startswith("##") else SPACE + tokens[k]
    return {"tokenizer.ggml.model": "bert"}


def _unigram(document: Mapping[str, Any], tokens: list[str], types: list[TokenType]) -> dict[str, Any]:
    model, spaces = document["model"], _spaces(document)
    normalizer = document.get("normalizer") or {}
    steps = normalizer.get("normalizers", [normalizer] if normalizer else [])
    charsmap, rest = b"", steps
    if steps and steps[0].get("type") == "Precompiled":
        charsmap, rest = b64decode(steps[0].get("precompiled_charsmap") or ""), steps[1:]
    is_cut = (document.get("pre_tokenizer") or {}).get("type") == "Sequence"
    joins = {s.get("type") for s in rest}
    if spaces is None or model.get("byte_fallback") or joins not in (set(), {"Strip", "Replace"}):
        raise FormatError(
            f"save_gguf: text is changed by {shown(normalizer)} and cut by "
            f"{shown(document.get('pre_tokenizer'))}, which a GGUF of this kind has no key for. {_ELSEWHERE}"
        )
    scores = [0.0] * len(tokens)
    for k, (_, score) in enumerate(model["vocab"]):
        scores[k] = _single(score)
    unknown = model.get("unk_id")
    if unknown is not None and types[unknown] == TokenType.NORMAL:
        types[unknown] = TokenType.UNKNOWN
    keys: dict[str, Any] = {"tokenizer.ggml.precompiled_charsmap": charsmap} if charsmap else {}
    return {
        "tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default", "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": spaces,
        "tokenizer.ggml.remove_extra_whitespaces": is_cut or bool(joins), **keys,
    }  # fmt: skip


def _single(x: float) -> float:
    """As 32 bits have it, which llama.cpp asks for."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def _spaces(document: Mapping[str, Any]) -> bool | None:
    """Whether SentencePiece's space is put before a text; None where it stands for none.

    A text behind a special token has one as well, as llama.cpp has it, where a file says the first one alone.
    """
    cut = document.get("pre_tokenizer") or {}
    steps = cut.get("pretokenizers", [cut])
    if len(steps) == 2 and steps[0] == {"type": "WhitespaceSplit"}:
        steps = steps[1:]
    if len(steps) != 1 or steps[0].get("type") != "Metaspace" or steps[0].get("replacement") != SPACE:
        return None
    scheme = "always" if steps[0].get("add_prefix_space", True) else "never"
    return steps[0].get("prepend_scheme", scheme) != "never"


def _tokens(tokenizer: Any, document: Mapping[str, Any], rows: int) -> tuple[list[str], list[TokenType]]:
    """A token and its type for every row."""
    vocabulary, added = tokenizer.get_vocab(), tokenizer.backend.added
    count = max(vocabulary.values(), default=-1) + 1
    if count > rows:
        raise FormatError(
            f"save_gguf: the tokenizer has {count:,} tokens and the model {rows:,} rows. Give the "
            "model's own."
        )
    tokens = [f"[PAD{k}]" for k in range(rows)]
    types = [TokenType.UNUSED] * rows
    unknown, falls = document["model"].get("unk_token"), document["model"].get("byte_fallback")
    for token, index in vocabulary.items():
        kind = TokenType.NORMAL
        if index in added:
            kind = TokenType.CONTROL if added[index].special else TokenType.USER_DEFINED
        elif falls and len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            kind = TokenType.BYTE
        tokens[index], types[index] = token, TokenType.UNKNOWN if token == unknown and falls else kind
    return tokens, types


def _family(document: Mapping[str, Any]) -> str:
    """The name of how text is cut."""
    whole, normalizer = bool(document["model"].get("ignore_merges")), document.get("normalizer")
    splits = _splits(document["pre_tokenizer"])
    composes = {"None": False, "NFC": True}.get((normalizer or {}).get("type", "None"))
    for name, family in PRE_TOKENIZERS.items():
        if (family.splits, family.whole_words, family.compose) == (splits, whole, composes):
            return name
    raise FormatError(
        f"save_gguf: text is cut by {shown(document['pre_tokenizer'])} after {shown(normalizer)}, which no "
        f"tokenizer.ggml.pre names. {_ELSEWHERE}"
    )


def _splits(pre_tokenizer: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The regular expressions that cut text; None where it is cut otherwise."""
    steps = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    found: list[str] = []
    for k, step in enumerate(steps):
        kind, is_last = step.get("type"), k == len(steps) - 1
        if kind == "Split" and step.get("behavior") == "Isolated" and not step.get("invert"):
            found.append(step.get("pattern", {}).get("Regex", ""))
        elif kind == "Digits" and step.get("individual_digits"):
            found.append(r"\p{N}")
        elif kind == "ByteLevel" and is_last and not step.get("add_prefix_space"):
            found += [GPT2] if step.get("use_regex", True) else []
        else:
            return None
    return tuple(found)


def _scores(
    document: Mapping[str, Any],
    tokens: list[str],
    types: list[TokenType],
    merges: list[tuple[str, ...]],
    prepends: bool | None,
) -> dict[str, Any]:
    """Scores from which SentencePiece's merges follow: the first merge that makes a piece ranks it."""
    ranks: dict[str, int] = {}
    for left, right in merges:
        ranks.setdefault(left + right, len(ranks))
    scores = [float(-ranks.get(token, len(ranks) + k)) for k, token in enumerate(tokens)]
    normalizer, cut = document.get("normalizer") or {}, document.get("pre_tokenizer") or {}
    steps = normalizer.get("normalizers", [normalizer] if normalizer else [])
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prepend = {"type": "Prepend", "prepend": SPACE}
    if steps in ([spaces], [prepend, spaces]) and (
        not cut or (cut.get("type") == "Split" and cut.get("pattern") == {"String": " "})
    ):
        prepends = len(steps) == 2  # where no space is left, none is cut at
    elif prepends is None or steps or cut.get("split", True):
        raise FormatError(
            f"save_gguf: text is changed by {shown(normalizer)} and cut by "
            f"{shown(document.get('pre_tokenizer'))}, which a GGUF of this kind has no key for. {_ELSEWHERE}"
        )
    for k, kind in enumerate(types):
        if kind == TokenType.USER_DEFINED:
            tokens[k] = tokens[k].replace(" ", SPACE)
    return {"tokenizer.ggml.scores": scores, "tokenizer.ggml.add_space_prefix": prepends}


def _ends(tokenizer: Any, kind: str) -> tuple[int | None, int | None]:
    """The tokens that begin and end a text, where there are some."""
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    if kind == "BPE":
        return (cls if bos is None else bos), (sep if eos is None else eos)
    return (cls if cls is not None else bos), (sep if sep is not None else eos)


def _frame(tokenizer: Any, first: int | None, last: int | None) -> dict[str, bool]:
    """Whether a token begins and ends a text."""
    inner = tokenizer.encode("a", add_special_tokens=False)
    whole = tokenizer.encode("a")
    at = next((k for k in range(len(whole)) if whole[k : k + len(inner)] == inner), 0)
    before, after = whole[:at], whole[at + len(inner) :]
    if before not in ([], [first]) or after not in ([], [last]):
        names = tokenizer.convert_ids_to_tokens(before), tokenizer.convert_ids_to_tokens(after)
        raise FormatError(
            f"save_gguf: the tokenizer puts {names[0]} and {names[1]} around a text; a GGUF has keys for the "
            f"tokens that begin and end it. {_ELSEWHERE}"
        )
    return {"tokenizer.ggml.add_bos_token": bool(before), "tokenizer.ggml.add_eos_token": bool(after)}


def _check(keys: Mapping[str, Any], model: Mapping[str, Any]) -> None:
    """Refuse a vocabulary that would be read as another one."""
    read, vocabulary = tokenizer_json_from_gguf(keys)["model"], model["vocab"]
    if isinstance(vocabulary, list):
        known = {token: k for k, (token, _) in enumerate(read["vocab"])}
        vocabulary = {token: k for k, (token, _) in enumerate(vocabulary)}
    else:
        known = read["vocab"]
    merges = [tuple(m) for m in read.get("merges", ())] == (_merges(model) if "merges" in model else [])
    if not merges or any(known.get(token) != index for token, index in vocabulary.items()):
        raise FormatError(
            f"save_gguf: the vocabulary's merges do not follow from scores of its tokens. {_ELSEWHERE}"
        )


_KINDS: dict[str, Callable[[Mapping[str, Any], list[str], list[TokenType]], dict[str, Any]]] = {
    "BPE": _bpe,
    "WordPiece": _wordpiece,
    "Unigram": _unigram,
}
