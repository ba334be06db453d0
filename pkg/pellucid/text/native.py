"""The Rust library ``tokenizers``, for CPython."""

import json
from collections.abc import Iterable
from typing import Any

from pellucid.errors import FormatError
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
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(document)
        except Exception as error:  # the library raises bare Exception
            raise FormatError(
                f"tokenizer.json: the tokenizers library {tokenizers.__version__} rejects it: {error}. "
                "Check that the file is complete, or update the library with `pip install -U tokenizers`."
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        for token in extra:
            content = tokenizers.AddedToken(
                token.content,
                single_word=token.single_word,
                lstrip=token.lstrip,
                rstrip=token.rstrip,
                normalized=token.normalized,
                special=token.special,
            )
            if token.special:
                self._tokenizer.add_special_tokens([content])
            else:
                self._tokenizer.add_tokens([content])
        self.added = {
            index: AddedToken(index, token.content, token.special)
            for index, token in self._tokenizer.get_added_tokens_decoder().items()
        }

    def encode(
        self, text: str, pair: str | None, *, add_special_tokens: bool, limit: Limit | None
    ) -> tuple[list[int], list[int]]:
        if limit is None:
            self._tokenizer.no_truncation()
        else:
            special = self._tokenizer.num_special_tokens_to_add(pair is not None) if add_special_tokens else 0
            if limit.tokens < special:
                raise too_short(limit, special)
            self._tokenizer.enable_truncation(limit.tokens, strategy="longest_first", direction=limit.side)
        encoding = self._tokenizer.encode(text, pair, add_special_tokens=add_special_tokens)
        return encoding.ids, encoding.type_ids

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)

    def token_to_id(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)

    def id_to_token(self, index: int) -> str | None:
        return self._tokenizer.id_to_token(index)

    def vocabulary(self, *, with_added_tokens: bool) -> dict[str, int]:
        return self._tokenizer.get_vocab(with_added_tokens)

    def size(self, *, with_added_tokens: bool) -> int:
        return self._tokenizer.get_vocab_size(with_added_tokens)


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
            from jinja2.ext import Extension, loopcontrols
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as error:
            raise ImportError(
                "apply_chat_template: the package `jinja2` is not installed. Run `pip install jinja2`."
            ) from error

        class Generation(Extension):
            """``{% generation %}`` marks what the assistant wrote; for rendering it is only its content."""

            tags = {"generation"}

            def parse(self, parser: Any) -> Any:
                next(parser.stream)
                return parser.parse_statements(("name:endgeneration",), drop_needle=True)

        def raise_exception(message: str) -> None:
            raise jinja2.TemplateError(message)

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = raise_exception
        environment.globals["strftime_now"] = _now
        self._error = jinja2.TemplateError
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise ValueError(
                f"chat template: line {error.lineno}: {error.message}. Correct the template."
            ) from error

    def render(self, values: dict[str, Any]) -> str:
        """Text of the template with these names filled in."""
        try:
            return self._template.render(**values)
        except self._error as error:
            raise ValueError(
                f"chat template: {error}. Change the messages to what the template accepts."
            ) from error


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes HTML, which would change what the model reads.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _now(form: str) -> str:
    from datetime import datetime

    return datetime.now().strftime(form)
