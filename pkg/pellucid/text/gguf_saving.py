"""A tokenizer as the keys of a GGUF file: the reverse of `pellucid.text.gguf`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pellucid.errors import FormatError
from pellucid.text.gguf import ROLES, SPACE, TokenType, tokenizer_json_from_gguf
from pellucid.text.pretokenizers import GPT2, PRE_TOKENIZERS
from pellucid.weights.fields import shown

_ELSEWHERE = "Save the tokenizer as a folder by its save_pretrained()."


def tokenizer_to_gguf(tokenizer: Any, rows: int) -> dict[str, Any]:
    """The keys of a GGUF from which the same tokenizer is read.

    Args:
        tokenizer: of `AutoTokenizer`, byte-level BPE or SentencePiece BPE.
        rows: of the model's embedding; llama.cpp wants a token for each.

    Raises:
        FormatError: it is of another kind, cuts text as no ``tokenizer.ggml.pre`` does, has more tokens than
            rows, or adds other tokens around a text than those that begin and end it.

    Example:
        >>> tokenizer_to_gguf(tokenizer, 49152)["tokenizer.ggml.pre"]
        'smollm'
    """
    try:
        document = json.loads(tokenizer._document)
        model = document["model"]
        is_bpe = model.get("type", "BPE") == "BPE" and bool(model["merges"])
    except (ValueError, KeyError, TypeError, AttributeError):
        document, model, is_bpe = {}, {}, False
    if not is_bpe:
        raise FormatError(f"save_gguf: the tokenizer is no BPE with a tokenizer.json. {_ELSEWHERE}")
    merges = [tuple(m.split(" ", 1)) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    tokens, types = _tokens(tokenizer, document, rows)
    if document.get("pre_tokenizer") and not model.get("byte_fallback"):
        keys: dict[str, Any] = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": _family(document)}
        more = {"tokenizer.ggml.merges": [f"{left} {right}" for left, right in merges]}
    else:
        keys, more = {"tokenizer.ggml.model": "llama"}, _scores(document, tokens, types, merges)
    keys |= {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [int(t) for t in types]} | more
    for role, key in ROLES.items():
        if (index := getattr(tokenizer, f"{role}_id")) is not None:
            keys[f"tokenizer.ggml.{key}"] = index
    keys |= _frame(tokenizer)
    _check(keys, model, merges)
    template = tokenizer.chat_template
    for name, text in (template if isinstance(template, Mapping) else {"default": template}).items():
        if text is not None:
            keys["tokenizer.chat_template" + ("" if name == "default" else f".{name}")] = text
    return keys


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
    document: Mapping[str, Any], tokens: list[str], types: list[TokenType], merges: list[tuple[str, ...]]
) -> dict[str, Any]:
    """Scores from which SentencePiece's merges follow: the first merge that makes a piece ranks it."""
    ranks: dict[str, int] = {}
    for left, right in merges:
        ranks.setdefault(left + right, len(ranks))
    scores = [float(-ranks.get(token, len(ranks) + k)) for k, token in enumerate(tokens)]
    normalizer = document.get("normalizer") or {}
    steps = normalizer.get("normalizers", [normalizer])
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prepend = {"type": "Prepend", "prepend": SPACE}
    if document.get("pre_tokenizer") or steps not in ([spaces], [prepend, spaces]):
        raise FormatError(
            f"save_gguf: text is changed by {shown(normalizer)} and cut by "
            f"{shown(document.get('pre_tokenizer'))}, which a GGUF of this kind has no key for. {_ELSEWHERE}"
        )
    for k, kind in enumerate(types):
        if kind == TokenType.USER_DEFINED:
            tokens[k] = tokens[k].replace(" ", SPACE)
    return {"tokenizer.ggml.scores": scores, "tokenizer.ggml.add_space_prefix": len(steps) == 2}


def _frame(tokenizer: Any) -> dict[str, bool]:
    """Whether a token begins and ends a text."""
    inner = tokenizer.encode("a", add_special_tokens=False)
    whole = tokenizer.encode("a")
    at = next((k for k in range(len(whole)) if whole[k : k + len(inner)] == inner), 0)
    before, after = whole[:at], whole[at + len(inner) :]
    if before not in ([], [tokenizer.bos_token_id]) or after not in ([], [tokenizer.eos_token_id]):
        names = tokenizer.convert_ids_to_tokens(before), tokenizer.convert_ids_to_tokens(after)
        raise FormatError(
            f"save_gguf: the tokenizer puts {names[0]} and {names[1]} around a text; a GGUF has keys for the "
            f"tokens that begin and end it. {_ELSEWHERE}"
        )
    return {"tokenizer.ggml.add_bos_token": bool(before), "tokenizer.ggml.add_eos_token": bool(after)}


def _check(keys: Mapping[str, Any], model: Mapping[str, Any], merges: list[tuple[str, ...]]) -> None:
    """Refuse a vocabulary that would be read as another one."""
    read = tokenizer_json_from_gguf(keys)["model"]
    vocabulary = read["vocab"]
    if [tuple(m) for m in read["merges"]] != merges or any(
        vocabulary.get(token) != index for token, index in model["vocab"].items()
    ):
        raise FormatError(
            f"save_gguf: the vocabulary's merges do not follow from scores of its tokens. {_ELSEWHERE}"
        )
