"""Where the tokens of a text lie in it, and which of them make a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...text.tokenizer import Tokenizer


class Words:
    """The tokens of one encoding.

    Args:
        tokenizer: by which it was made.
        text: the text, or the second of two.
        ids: of the encoding.
        pair: the first text, where there are two.
    """

    def __init__(self, tokenizer: Tokenizer, text: str, ids: Sequence[int], pair: str | None = None):
        self._tokenizer, self._text, self._ids = tokenizer, text, list(ids)
        first, second = (text, None) if pair is None else (pair, text)
        found = tokenizer.offsets(first, second)
        self._offsets = None if found is None else found[: len(self._ids)]
        self._has_prefix = any(token.startswith("##") for token in tokenizer.get_vocab())

    def token(self, place: int) -> str:
        """A token as the vocabulary has it; of an unknown one its text."""
        index = self._ids[place]
        if index == self._tokenizer.unk_token_id and self._offsets is not None:
            start, end = self._offsets[place]
            return self._text[start:end]
        return self._tokenizer.convert_ids_to_tokens(index)

    def place(self, tokens: Sequence[int]) -> tuple[int | None, int | None]:
        """Where tokens begin and end in the text; None where the library does not tell."""
        if self._offsets is None:
            return None, None
        return self._offsets[tokens[0]][0], self._offsets[tokens[-1]][1]

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens as the tokenizer writes them, unknown ones as the text has them."""
        ids = [self._ids[k] for k in tokens]
        text = self._tokenizer.backend.decode(ids, skip_special_tokens=False)
        unknown = self._tokenizer.unk_token
        for k in tokens:
            if unknown is not None and self._ids[k] == self._tokenizer.unk_token_id:
                text = text.replace(unknown, str(self.token(k)), 1)
        return text

    def continues(self, place: int) -> bool:
        """Whether a token goes on with the word before it."""
        token: Any = self._tokenizer.convert_ids_to_tokens(self._ids[place])
        if self._has_prefix or self._offsets is None:
            return token.startswith("##") if self._has_prefix else not token.startswith(("▁", "Ġ"))
        start = self._offsets[place][0]
        return start > 0 and " " not in self._text[start - 1 : start + 1]

    def grouped(self, tokens: Sequence[int]) -> list[list[int]]:
        """Tokens by word."""
        groups: list[list[int]] = []
        for k in tokens:
            if groups and self.continues(k):
                groups[-1].append(k)
            else:
                groups.append([k])
        return groups
