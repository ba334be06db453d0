"""The Rust library ``tokenizers``, for CPython."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pellucid.errors import FormatError
from pellucid.text import growth
from pellucid.text.backend import AddedToken, Limit, too_short


class NativeBackend:
    """A ``tokenizer.json`` in the ``tokenizers`` package.

    Args:
        document: the bytes of the ``tokenizer.json``.
        extra: tokens that the model's other files add to it.

    Raises:
        ImportError: the package is not installed.
        FormatError: the package rejects the document.
    """

    def __init__(self, document: bytes, extra: Iterable[AddedToken] = ()):
        try:
            import tokenizers
        except ImportError as error:
            raise ImportError(
                "AutoTokenizer: the package `tokenizers` is not installed. Run `pip install tokenizers`."
            ) from error
        self._rejects = f"tokenizer.json: the tokenizers library {tokenizers.__version__} rejects"
        with self._typed("it", "that the file is complete, or update the library"):
            self._tokenizer = tokenizers.Tokenizer.from_buffer(document)
            names = ("normalizer", "pre_tokenizer", "decoder", "post_processor")
            parts = {name: getattr(self._tokenizer, name) for name in names}
            written = {name: json.loads(part.__getstate__()) for name, part in parts.items() if part}
        growth.check("tokenizer.json", written)
        with self._typed("the tokens of tokenizer_config.json", "that file"):
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            # All at once: each call looks at all tokens.
            self._tokenizer.add_tokens(
                [
                    tokenizers.AddedToken(
                        token.content,
                        single_word=token.single_word,
                        lstrip=token.lstrip,
                        rstrip=token.rstrip,
                        normalized=token.normalized,
                        special=token.special,
                    )
                    for token in extra
                ]
            )
            self.added = {
                index: AddedToken(index, token.content, token.special)
                for index, token in self._tokenizer.get_added_tokens_decoder().items()
            }

    @contextmanager
    def _typed(self, what: str, check: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if not _of_the_library(error):
                raise
            raise self._refused(error, what, check) from error

    def _refused(self, error: BaseException, what: str, check: str) -> FormatError:
        return FormatError(f"{self._rejects} {what}: {str(error)[:500]}. Check {check}.")

    def encode(
        self, text: str, pair: str | None, *, add_special_tokens: bool, limit: Limit | None
    ) -> tuple[list[int], list[int]]:
        if limit is None:
            self._tokenizer.no_truncation()
        else:
            special = self._tokenizer.num_special_tokens_to_add(pair is not None) if add_special_tokens else 0
            if limit.tokens < special:
                raise too_short(limit, special)
            with self._typed("this limit", "max_length"):
                self._tokenizer.enable_truncation(
                    limit.tokens, strategy="longest_first", direction=limit.side
                )
        try:  # written out: for a short text a context manager takes half as long as the library
            encoding = self._tokenizer.encode(text, pair, add_special_tokens=add_special_tokens)
        except TypeError as error:  # of texts, what is refused is half a character
            raise ValueError(
                "tokenizer: the text has lone surrogates, which are no characters. Leave them out."
            ) from error
        except BaseException as error:
            if not _of_the_library(error):
                raise
            raise self._refused(error, "to encode this text", "that it belongs to the model") from error
        return encoding.ids, encoding.type_ids

    def offsets(self, text: str, pair: str | None) -> list[tuple[int, int]] | None:
        self.encode(text, pair, add_special_tokens=True, limit=None)  # refuses what is no text
        return self._tokenizer.encode(text, pair).offsets

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        try:
            return self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        except OverflowError:  # ids that no vocabulary has, and that have no text
            known = [index for index in ids if 0 <= index < 1 << 32]
            return self._tokenizer.decode(known, skip_special_tokens=skip_special_tokens)
        except BaseException as error:
            if not _of_the_library(error):
                raise
            raise self._refused(error, "to decode these ids", "that it belongs to the model") from error

    def token_to_id(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)

    def id_to_token(self, index: int) -> str | None:
        return self._tokenizer.id_to_token(index) if 0 <= index < 1 << 32 else None

    def vocabulary(self, *, with_added_tokens: bool) -> dict[str, int]:
        return self._tokenizer.get_vocab(with_added_tokens)

    def size(self, *, with_added_tokens: bool) -> int:
        return self._tokenizer.get_vocab_size(with_added_tokens)


def _of_the_library(error: BaseException) -> bool:
    """Whether tokenizers raised it: a bare exception or, where its Rust panics, a BaseException."""
    return type(error) in (Exception, ValueError) or type(error).__name__ == "PanicException"


class NativeTemplate:
    """A chat template in ``jinja2``, in the sandbox and with the names that Hugging Face's templates rely on.

    Args:
        source: the template's text.

    Raises:
        ImportError: ``jinja2`` is not installed.
        ValueError: the text is not a valid template.
    """

    def __init__(self, source: str):
        try:
            import jinja2
        except ImportError as error:
            raise ImportError(
                "apply_chat_template: the package `jinja2` is not installed. Run `pip install jinja2`."
            ) from error
        from pellucid.text.sandbox import LONGEST_TEXT, Environment

        if len(source) > LONGEST_TEXT:
            raise ValueError(
                f"chat template: has {len(source):,} characters; {LONGEST_TEXT:,} are allowed. Correct the "
                "template."
            )
        # What a template raises is its own affair: any of the errors that a program of Python can have.
        self._errors = (
            jinja2.TemplateError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError,
            RuntimeError, SyntaxError, TypeError, ValueError,
        )  # fmt: skip
        self._environment = Environment()
        try:
            self._template = self._environment.compiled(source)
        except jinja2.TemplateSyntaxError as error:
            raise ValueError(
                f"chat template: line {error.lineno}: {error.message}. Correct the template."
            ) from error
        except self._errors as error:
            raise ValueError(f"chat template: {_said(error)}. Correct the template.") from error

    def render(self, values: dict[str, Any]) -> str:
        """Text of the template with these names filled in."""
        try:
            return self._environment.rendered(self._template, values)
        except self._errors as error:
            raise ValueError(
                f"chat template: {_said(error)}. Change the messages to what the template accepts."
            ) from error


def _said(error: BaseException) -> str:
    return str(error)[:1000] or type(error).__name__
