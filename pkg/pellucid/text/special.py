"""The tokens that have a role, as attributes: ``tokenizer.eos_token`` and ``tokenizer.eos_token_id``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pellucid.weights.fields import FLAG, Field, either, listed, named, number, one_of, record, text

if TYPE_CHECKING:
    from pellucid.text.tokenizer import Tokenizer

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

_DIGITS = re.compile("[0-9]{1,9}")
_FLAGS = dict.fromkeys(("special", "single_word", "lstrip", "rstrip", "normalized"), FLAG)
_ADDED = record({"content": text(), **_FLAGS}, "content")
_TOKEN = either(text(), record({"content": text()}, "content"))
_TEMPLATE = text(1 << 20)
_INDEX = Field("a number of at most nine digits", lambda v: isinstance(v, str) and bool(_DIGITS.fullmatch(v)))
# What is read of a tokenizer_config.json, of its special_tokens_map.json, and of keyword arguments.
TABLE = {
    **dict.fromkeys(ROLES, _TOKEN),
    "added_tokens_decoder": named(_INDEX, _ADDED, 1 << 18),
    "additional_special_tokens": listed(_TOKEN, 1 << 18),
    "chat_template": either(
        _TEMPLATE,
        listed(record({"name": text(), "template": _TEMPLATE}, "name", "template"), 64),
        named(text(), _TEMPLATE, 64),
    ),
    "clean_up_tokenization_spaces": FLAG,
    "model_input_names": listed(text(), 64),
    "model_max_length": number(0, 1e100),
    "padding_side": one_of("left", "right"),
    "truncation_side": one_of("left", "right"),
}


class Token:
    """A role's token, as text; None where the tokenizer has none. Only known tokens can be set."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.role = name

    def __get__(self, tokenizer: Tokenizer, owner: type | None = None) -> str | None:
        return tokenizer._roles.get(self.role)

    def __set__(self, tokenizer: Tokenizer, token: str | None) -> None:
        if token is None:
            tokenizer._roles.pop(self.role, None)
        elif tokenizer.backend.token_to_id(token) is None:
            raise ValueError(
                f"tokenizer.{self.role}: {token!r} is not in the vocabulary. Choose a token that is, such "
                "as eos_token."
            )
        else:
            tokenizer._roles[self.role] = token


class TokenId:
    """A role's token, as an id; None where the tokenizer has none."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.role = name.removesuffix("_id")

    def __get__(self, tokenizer: Tokenizer, owner: type | None = None) -> int | None:
        token = tokenizer._roles.get(self.role)
        return None if token is None else tokenizer.backend.token_to_id(token)

    def __set__(self, tokenizer: Tokenizer, index: int | None) -> None:
        setattr(tokenizer, self.role, None if index is None else tokenizer.convert_ids_to_tokens(index))


def content(token: Any) -> str | None:
    """Text of a token as configuration files write it: a string, or an object with ``content``."""
    return token.get("content") if isinstance(token, dict) else token


# Whose models tell two texts apart by token types, where no file says so.
_TYPED = ("Bert", "Albert", "Electra", "MobileBert", "ConvBert", "Funnel", "Deberta")


def input_names(config: Mapping[str, Any]) -> list[str]:
    """What a model takes of an encoding: as its files say, else by the class of its tokenizer."""
    names = config.get("model_input_names")
    if names is not None:
        return list(names)
    typed = str(config.get("tokenizer_class")).startswith(_TYPED)
    return ["input_ids", *(["token_type_ids"] if typed else []), "attention_mask"]
