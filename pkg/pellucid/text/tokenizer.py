"""The tokenizer: text to ids and back, with Hugging Face's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from pellucid.text import chat, special
from pellucid.text.backend import Backend, Limit
from pellucid.text.batch import UNLIMITED, BatchEncoding, convert, fill_up, texts_and_pairs, to_list
from pellucid.text.saving import save
from pellucid.text.stream import TextStream

_SPACED = (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're")


class Tokenizer:
    """A tokenizer, as ``AutoTokenizer.from_pretrained`` returns it.

    Args:
        backend: the loaded ``tokenizer.json``.
        config: the content of ``tokenizer_config.json``, joined with ``special_tokens_map.json`` and the
            chat template.
        document: the bytes of the ``tokenizer.json``, which `save_pretrained` writes.

    Example:
        >>> tokenizer("The capital of France is").input_ids
        [504, 3575, 282, 4649, 314]
    """

    bos_token, eos_token, unk_token = special.Token(), special.Token(), special.Token()
    sep_token, pad_token, cls_token, mask_token = (
        special.Token(),
        special.Token(),
        special.Token(),
        special.Token(),
    )
    bos_token_id, eos_token_id, unk_token_id = special.TokenId(), special.TokenId(), special.TokenId()
    sep_token_id, pad_token_id, cls_token_id = special.TokenId(), special.TokenId(), special.TokenId()
    mask_token_id = special.TokenId()

    def __init__(self, backend: Backend, config: Mapping[str, Any], document: bytes = b""):
        self.backend = backend
        self._document = document
        self.config = dict(config)
        named = {role: special.content(config.get(role)) for role in special.ROLES}
        self._roles: dict[str, str] = {role: token for role, token in named.items() if token is not None}
        self.chat_template: str | dict[str, str] | None = config.get("chat_template")
        self.padding_side: str = config.get("padding_side") or "right"
        self.truncation_side: str = config.get("truncation_side") or "right"
        self.model_max_length: int = int(config.get("model_max_length") or UNLIMITED)
        self.clean_up_tokenization_spaces = bool(config.get("clean_up_tokenization_spaces", False))
        self.model_input_names = special.input_names(config)

    def __repr__(self) -> str:
        roles = ", ".join(f"{role}={token!r}" for role, token in self._roles.items())
        return f"Tokenizer(vocab_size={self.vocab_size}, {roles})"

    # The vocabulary

    @property
    def vocab_size(self) -> int:
        """Size of the vocabulary without added tokens."""
        return self.backend.size(with_added_tokens=False)

    def __len__(self) -> int:
        """Size of the vocabulary with added tokens."""
        return self.backend.size(with_added_tokens=True)

    def get_vocab(self) -> dict[str, int]:
        """Every token with its id, added tokens too."""
        return self.backend.vocabulary(with_added_tokens=True)

    @property
    def special_tokens_map(self) -> dict[str, str]:
        """The tokens that have a role, by role."""
        return dict(self._roles)

    @property
    def all_special_tokens(self) -> list[str]:
        """Tokens with a role, then every other token that the vocabulary marks as special."""
        marked = [token.content for token in self.backend.added.values() if token.special]
        return list(dict.fromkeys([*self._roles.values(), *marked]))

    @property
    def all_special_ids(self) -> list[int]:
        """Ids of ``all_special_tokens``."""
        ids = (self.backend.token_to_id(token) for token in self.all_special_tokens)
        return [index for index in ids if index is not None]

    @property
    def added_tokens_decoder(self) -> dict[int, str]:
        """Text of the tokens that are matched before the vocabulary's own rules, by id."""
        return {index: token.content for index, token in sorted(self.backend.added.items())}

    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> Any:
        """Id of a token, or ids of several; for one that is not there, the unknown token's id (or None)."""
        if not isinstance(tokens, str):
            return [self.convert_tokens_to_ids(token) for token in tokens]
        index = self.backend.token_to_id(tokens)
        return self.unk_token_id if index is None else index

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Token of an id, or tokens of several, as the vocabulary writes them (a space may be ``Ġ``)."""
        ids = to_list(ids)
        if isinstance(ids, int):
            return self.backend.id_to_token(ids)
        hidden = set(self.all_special_ids) if skip_special_tokens else ()
        return [self.backend.id_to_token(index) for index in ids if index not in hidden]

    def tokenize(self, text: str, add_special_tokens: bool = False) -> list[str | None]:
        """Cut text into tokens, as the vocabulary writes them."""
        return self.convert_ids_to_tokens(self.encode(text, add_special_tokens=add_special_tokens))

    # Text to ids

    def __call__(
        self,
        text: str | Sequence[str],
        text_pair: str | Sequence[str] | None = None,
        *,
        add_special_tokens: bool = True,
        padding: bool | str = False,
        truncation: bool | None = None,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | None = None,
        return_attention_mask: bool = True,
        return_token_type_ids: bool | None = None,
    ) -> BatchEncoding:
        """Turn text into ids.

        Args:
            text: one text, or several.
            text_pair: a second text for each (a question and its passage, say).
            add_special_tokens: add what the model expects around a text, such as a token that begins it.
            padding: True or ``"longest"`` fills up to the longest row, ``"max_length"`` up to ``max_length``.
            truncation: cut at ``max_length`` (or at the model's own limit); ``max_length`` alone also cuts.
            max_length: a number of tokens, special tokens included.
            pad_to_multiple_of: round the padded length up.
            padding_side: ``"right"`` or ``"left"``; the tokenizer's own by default.
            return_tensors: ``"pt"`` for int64 tensors [rows, tokens], ``"np"`` for arrays, None for lists.
            return_attention_mask: also return 1 for tokens and 0 for filling.
            return_token_type_ids: also return which text a token came from; by default if the model asks.

        Returns:
            A dict of ``input_ids`` and the other fields; for one text without ``return_tensors``, flat lists.

        Raises:
            TypeError: ``text`` is not text.
            ValueError: rows of different lengths cannot become a tensor, or there is no token to fill with.

        Example:
            >>> tokenizer(["Hi", "Hello there"], padding=True, return_tensors="pt").input_ids.shape
        """
        single = isinstance(text, str)
        texts, pairs = texts_and_pairs(text, text_pair)
        if truncation is None:
            truncation = max_length is not None and padding != "max_length"
        limit = self.model_max_length if max_length is None else max_length
        cut = Limit(limit, self.truncation_side) if truncation and limit < UNLIMITED else None
        encoded = [
            self.backend.encode(one, pair, add_special_tokens=add_special_tokens, limit=cut)
            for one, pair in zip(texts, pairs)
        ]
        rows = {"input_ids": [ids for ids, _ in encoded]}
        if return_token_type_ids or (
            return_token_type_ids is None and "token_type_ids" in self.model_input_names
        ):
            rows["token_type_ids"] = [types for _, types in encoded]
        if return_attention_mask:
            rows["attention_mask"] = [[1] * len(ids) for ids, _ in encoded]
        if padding not in (False, "do_not_pad"):
            fill_up(self, rows, padding, limit, pad_to_multiple_of, padding_side)
        fields = {
            name: rows_[0] if single and return_tensors is None else rows_ for name, rows_ in rows.items()
        }
        return BatchEncoding(convert(fields, return_tensors))

    def encode(
        self,
        text: str,
        text_pair: str | None = None,
        add_special_tokens: bool = True,
        *,
        truncation: bool | None = None,
        max_length: int | None = None,
        return_tensors: str | None = None,
    ) -> Any:
        """Turn one text into its ids: a list, or a tensor [1, tokens] with ``return_tensors="pt"``.

        Example:
            >>> tokenizer.encode("The capital of France is")
            [504, 3575, 282, 4649, 314]
        """
        if not isinstance(text, str):
            raise TypeError(
                f"tokenizer.encode: text is a {type(text).__name__}, not a str. Call the tokenizer for lists."
            )
        return self(
            text,
            text_pair,
            add_special_tokens=add_special_tokens,
            truncation=truncation,
            max_length=max_length,
            return_tensors=return_tensors,
        )["input_ids"]

    def offsets(self, text: str, text_pair: str | None = None) -> list[tuple[int, int]] | None:
        """Where each token begins and ends in its text, special tokens included; None in pages, whose library
        does not tell."""
        return self.backend.offsets(text, text_pair)

    def pad(
        self,
        encoded: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        padding: bool | str = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | None = None,
    ) -> BatchEncoding:
        """Fill up rows that were tokenized before, as ``__call__`` with ``padding`` does."""
        if not isinstance(encoded, Mapping):
            encoded = {name: [row[name] for row in encoded] for name in (encoded[0] if encoded else ())}
        rows = {name: [list(row) for row in field] for name, field in encoded.items()}
        rows.setdefault("attention_mask", [[1] * len(row) for row in rows["input_ids"]])
        limit = self.model_max_length if max_length is None else max_length
        fill_up(self, rows, padding, limit, pad_to_multiple_of, padding_side)
        return BatchEncoding(convert(rows, return_tensors))

    # Ids to text

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> Any:
        """Turn ids into text.

        Args:
            token_ids: an id, a list of ids, or a tensor [tokens]; several rows give a list of texts.
            skip_special_tokens: special tokens give no text.
            clean_up_tokenization_spaces: remove the spaces that word-based tokenizers leave before
                punctuation; by default as the tokenizer's files say.

        Example:
            >>> tokenizer.decode([504, 3575])
            'The capital'
        """
        ids = to_list(token_ids)
        if isinstance(ids, int):
            ids = [ids]
        if ids and not isinstance(ids[0], int):
            return self.batch_decode(ids, skip_special_tokens, clean_up_tokenization_spaces)
        text = self.backend.decode(ids, skip_special_tokens=skip_special_tokens)
        if clean_up_tokenization_spaces is None:
            clean_up_tokenization_spaces = self.clean_up_tokenization_spaces
        if clean_up_tokenization_spaces:
            for spaced in _SPACED:
                text = text.replace(spaced, spaced.strip())
        return text

    def batch_decode(
        self,
        sequences: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> list[str]:
        """Turn rows of ids (lists, or a tensor [rows, tokens]) into a list of texts."""
        return [
            self.decode(row, skip_special_tokens, clean_up_tokenization_spaces) for row in to_list(sequences)
        ]

    def stream(self, skip_special_tokens: bool = False) -> TextStream:
        """Decode ids as they arrive, only ever complete characters; see ``TextStream``."""
        return TextStream(self, skip_special_tokens)

    def save_pretrained(self, save_directory: str | PathLike) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``, with the chat template and the sides that
        count now: a folder that `AutoTokenizer.from_pretrained`, here and in transformers, loads.

        Args:
            save_directory: a folder; it is made, and files of the same names are replaced.

        Raises:
            ArgumentError: it is a file, or the tokenizer was made without its document.

        Source: https://huggingface.co/docs/transformers/main_classes/tokenizer, "save_pretrained"

        Example:
            >>> tokenizer.save_pretrained("tuned")  # doctest: +SKIP
        """
        save(self, self._document, save_directory)

    # Chats

    def apply_chat_template(
        self,
        conversation: Sequence[dict[str, Any]] | Sequence[Sequence[dict[str, Any]]],
        tools: Sequence[dict[str, Any]] | None = None,
        documents: Sequence[dict[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tokenize: bool = True,
        padding: bool | str = False,
        truncation: bool | None = None,
        max_length: int | None = None,
        return_tensors: str | None = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Turn messages into the text, or the ids, that the chat model expects.

        Args:
            conversation: messages, each ``{"role": ..., "content": ...}``; or several conversations.
            tools: JSON schemas of the functions that the model may call.
            documents: dicts with ``title`` and ``text`` for models that cite.
            chat_template: a Jinja template, or the name of one of the tokenizer's; its own by default.
            add_generation_prompt: end with what opens the assistant's answer.
            continue_final_message: end inside the last message, for the model to continue it.
            tokenize: return ids rather than text.
            padding: as in ``__call__``.
            truncation: as in ``__call__``.
            max_length: as in ``__call__``.
            return_tensors: ``"pt"`` for an int64 tensor [rows, tokens].
            return_dict: return the whole ``BatchEncoding`` rather than its ``input_ids``.
            **kwargs: further names that the template reads, such as ``enable_thinking``.

        Returns:
            A list of ids (a tensor with ``return_tensors``, a text without ``tokenize``), or one per
            conversation.

        Raises:
            ValueError: there is no template, or the template refuses the messages.

        Example:
            >>> tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
        """
        if continue_final_message and add_generation_prompt:
            raise ValueError(
                "apply_chat_template: continue_final_message and add_generation_prompt exclude each other. "
                "Pass one of them."
            )
        for tool in tools or ():
            if not isinstance(tool, dict):
                raise TypeError(
                    f"apply_chat_template: a tool is a {type(tool).__name__}, not a dict. Pass the JSON "
                    "schema of the function."
                )
        several = (
            bool(conversation)
            and not isinstance(conversation[0], dict)
            and hasattr(conversation[0], "__iter__")
        )
        conversations: Any = conversation if several else [conversation]
        source = chat.select(self.chat_template, chat_template, tools is not None)
        values = {
            "tools": None if tools is None else list(tools),
            "documents": None if documents is None else list(documents),
            "add_generation_prompt": add_generation_prompt,
            **self.special_tokens_map,
            **kwargs,
        }
        texts = [
            chat.render(source, list(messages), continue_final_message=continue_final_message, values=values)
            for messages in conversations
        ]
        if not tokenize:
            return texts if several else texts[0]
        batch = self(
            texts if several else texts[0],
            add_special_tokens=False,  # the template wrote them
            padding=padding,
            truncation=truncation,
            max_length=max_length,
            return_tensors=return_tensors,
        )
        return batch if return_dict else batch["input_ids"]
