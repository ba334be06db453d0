"""Text out of tokens that arrive one at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from pellucid.text.tokenizer import Tokenizer

_PARTIAL = "\ufffd"  # what a decoder writes for bytes that are not a character, or not yet
_PATIENCE = 32  # tokens after which bytes are taken to be no character at all


class TextStream:
    """Decode tokens as they arrive, never in the middle of a character.

    A character may be spread over several tokens, and a token's text may depend on the one before it
    (SentencePiece drops the space at the very beginning). So a few earlier tokens are decoded again with the
    new one, and text that still ends in an unfinished character is held back. The pieces joined are the text
    of all tokens.

    Args:
        tokenizer: the tokenizer whose ids arrive.
        skip_special_tokens: special tokens give no text.

    Example:
        >>> stream = TextStream(tokenizer)
        >>> for id in ids:
        ...     print(stream.push(id), end="")
        >>> print(stream.end())
    """

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool = False):
        self.tokenizer = tokenizer
        self.skip_special_tokens = skip_special_tokens
        self._restart()

    def push(self, ids: int | Iterable[int]) -> str:
        """Take one id or several; return the text that is complete with them: a word, or nothing yet."""
        self._window += [ids] if isinstance(ids, int) else ids
        text = self._decode(self._window)
        complete = text.rstrip(_PARTIAL)
        if complete != text and len(self._window) - self._context <= _PATIENCE:
            piece = complete[self._sent :]
            self._sent = max(self._sent, len(complete))
            return piece
        piece = text[self._sent :]
        if piece:  # the tokens of the latest piece stay as context; everything before them is settled
            self._window = self._window[self._context :]
            self._context = len(self._window)
            self._sent = len(self._decode(self._window))
        return piece

    def end(self) -> str:
        """Return what was held back, and begin anew."""
        piece = self._decode(self._window)[self._sent :]
        self._restart()
        return piece

    def _restart(self) -> None:
        self._window: list[int] = []  # context, then the tokens that arrived after it
        self._context = 0  # how many tokens of the window are context
        self._sent = 0  # how many characters of the window's text were returned already

    def _decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(
            ids, skip_special_tokens=self.skip_special_tokens, clean_up_tokenization_spaces=False
        )


class TextStreamer:
    """Print text while it is generated, as transformers' class of this name does.

    Args:
        tokenizer: the tokenizer whose ids arrive.
        skip_prompt: do not print the first batch of ids, which is the prompt.
        skip_special_tokens: special tokens are not printed.
        file: where to print; ``sys.stdout`` at the time of printing if None.

    Example:
        >>> model.generate(ids, streamer=TextStreamer(tokenizer, skip_prompt=True))
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        skip_prompt: bool = False,
        *,
        skip_special_tokens: bool = False,
        file: TextIO | None = None,
    ):
        self.skip_prompt = skip_prompt
        self._stream = TextStream(tokenizer, skip_special_tokens)
        self._file = file
        self._first = True

    def put(self, value: Any) -> None:
        """Take ids: an int, a list, or a tensor of one sequence."""
        ids = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(ids, list) and ids and isinstance(ids[0], list):
            if len(ids) > 1:
                raise ValueError(
                    f"TextStreamer.put: got {len(ids)} sequences, can print one. Generate one sequence, or "
                    "stream without it."
                )
            ids = ids[0]
        skipped, self._first = self._first and self.skip_prompt, False
        if not skipped:
            self.on_finalized_text(self._stream.push(ids))

    def end(self) -> None:
        """Print what was held back and end the line."""
        self._first = True
        self.on_finalized_text(self._stream.end(), stream_end=True)

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Receive a piece of text; override it to show text elsewhere."""
        print(text, end="\n" if stream_end else "", file=self._file or sys.stdout, flush=True)
