"""The JavaScript libraries ``@huggingface/tokenizers`` and ``@huggingface/jinja``, for Python in a page."""

import json
from collections.abc import Coroutine, Iterable
from typing import Any

from pellucid.errors import DeviceError, FormatError
from pellucid.text import growth
from pellucid.text.backend import AddedToken, Limit, too_short

_libraries: dict[str, Any] = {}

# Runs once. Ids and text cross into Python; tokens and vocabularies stay on the JavaScript side.
_ADAPTER = """
(library) => class {
    constructor(bytes, extra, check) {
        const document = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
        document.added_tokens ??= [];
        const known = new Map(document.added_tokens.map((token) => [token.content, token]));
        for (const token of JSON.parse(extra)) {
            const same = known.get(token.content);
            if (same) { same.special ||= token.special; continue; }
            known.set(token.content, token);
            document.added_tokens.push(token);
        }
        const { normalizer, pre_tokenizer, decoder, post_processor } = document;
        check(JSON.stringify({ normalizer, pre_tokenizer, decoder, post_processor }));
        const vocabulary = document.model.vocab;
        const scored = Array.isArray(vocabulary); // Unigram: pairs of a piece and its score
        const entries = scored ? vocabulary.map(([piece], id) => [piece, id]) : Object.entries(vocabulary);
        const inVocabulary = new Map(entries);
        let next = inVocabulary.size;
        for (const token of document.added_tokens) {
            token.id ??= inVocabulary.get(token.content) ?? next;
            if (token.id >= next) next = token.id + 1;
        }
        this.modelSize = inVocabulary.size;
        this.inVocabulary = inVocabulary;
        this.added = document.added_tokens;
        this.tokenizer = new library.Tokenizer(document, { clean_up_tokenization_spaces: false });
        this.size = this.modelSize + this.added.filter((token) => !inVocabulary.has(token.content)).length;
    }
    listAdded() { return JSON.stringify(this.added); }
    frame(tokens, pair, special) {
        const processor = this.tokenizer.post_processor;
        const processed = processor ? processor(tokens, pair, special) : { tokens, tokens_pair: pair };
        if (processed.token_type_ids) return { framed: processed.tokens, types: processed.token_type_ids };
        const second = processed.tokens_pair ?? []; // processors that only touch offsets leave the two apart
        const types = [...processed.tokens.map(() => 0), ...second.map(() => 1)];
        return { framed: processed.tokens.concat(second), types };
    }
    encode(text, pair, special, limit, side) {
        const { tokenizer } = this;
        let first = tokenizer.encode_text(text);
        let second = pair === undefined ? null : tokenizer.encode_text(pair);
        if (limit !== undefined) {
            const room = limit - this.frame([], second && [], special).framed.length;
            if (room < 0) return limit - room;
            let over = first.length + (second?.length ?? 0) - room, fromFirst = 0, fromSecond = 0;
            for (; over > 0; over--) {
                if (second && second.length - fromSecond > first.length - fromFirst) fromSecond++;
                else fromFirst++;
            }
            const cut = (tokens, count) =>
                side === "left" ? tokens.slice(count) : tokens.slice(0, tokens.length - count);
            first = cut(first, fromFirst);
            second = second && cut(second, fromSecond);
        }
        const { framed, types } = this.frame(first, second, special);
        const ids = framed.map((token) => tokenizer.token_to_id(token) ?? tokenizer.model.unk_token_id);
        const missing = ids.indexOf(undefined);
        if (missing >= 0) {
            const piece = JSON.stringify(framed[missing]);
            throw new Error(`the piece ${piece} is not in the vocabulary, which has no unknown token`);
        }
        return [ids, types];
    }
    decode(ids, skip) {
        const known = Array.from(ids).filter((id) => this.tokenizer.id_to_token(id) !== undefined);
        const options = { skip_special_tokens: skip, clean_up_tokenization_spaces: false };
        return known.length ? this.tokenizer.decode(known, options) : "";
    }
    vocabulary(withAdded) {
        return JSON.stringify(Object.fromEntries(withAdded ? this.tokenizer.get_vocab() : this.inVocabulary));
    }
}
"""


# Runs once. Every node of a template passes through `evaluate`: there the clock is asked, and results are
# measured. What one step of the library makes is bounded by the engine alone, whose strings end at half a
# gigabyte.
_RENDERER = """
({ Interpreter }, longest, most, milliseconds) => {
    const { evaluate } = Interpreter.prototype;
    let until = Infinity;
    const bounded = (range) => (args, scope) => {
        if (args.some(({ value }) => Math.abs(value) > most)) throw new Error(`range takes at most ${most}`);
        return range(args, scope);
    };
    Interpreter.prototype.evaluate = function (statement, environment) {
        if (performance.now() > until) throw new Error(`it takes more than ${milliseconds / 1000} s`);
        const result = evaluate.call(this, statement, environment);
        const held = result?.value;
        if ((typeof held === "string" || Array.isArray(held)) && held.length > longest)
            throw new Error(`a text or list has ${held.length} elements; ${longest} are allowed`);
        const isRange = statement?.type === "Identifier" && statement.value === "range";
        return isRange && typeof held === "function" ? new result.constructor(bounded(held)) : result;
    };
    return (template, values) => {
        until = performance.now() + milliseconds;
        try { return template.render(JSON.parse(values)); } finally { until = Infinity; }
    };
}
"""
_LONGEST_TEXT = 1 << 24  # characters, or elements of a list
_LONGEST_RANGE = 100_000
_MILLISECONDS = 5000


async def load_libraries() -> None:
    """Fetch and import both JavaScript modules, once.

    Raises:
        ImportError: a module is not at the address that ``pellucid.text.libraries`` names.
    """
    from pyodide.code import run_js
    from pyodide.ffi import JsException

    from pellucid.text.libraries import url

    for name in ("tokenizers", "jinja"):
        if name in _libraries:
            continue
        address = url(name)
        try:
            _libraries[name] = await run_js("(address) => import(address)")(address)
        except JsException as error:
            raise ImportError(
                f"AutoTokenizer: the JavaScript library @huggingface/{name} could not be imported from "
                f"{address}: {error}. "
                f"Serve it there (npm pack @huggingface/{name}), or set "
                f"pellucid.text.libraries.URLS[{name!r}]."
            ) from error
    if "adapter" not in _libraries:
        _libraries["adapter"] = run_js(_ADAPTER)(_libraries["tokenizers"])
        bounds = (_LONGEST_TEXT, _LONGEST_RANGE, _MILLISECONDS)
        _libraries["renderer"] = run_js(_RENDERER)(_libraries["jinja"], *bounds)


def _library(name: str) -> Any:
    if name not in _libraries:
        raise ImportError(
            f"tokenizer: the JavaScript library {name!r} is not loaded yet. Await "
            "AutoTokenizer.from_pretrained_async first."
        )
    return _libraries[name]


def wait(coroutine: Coroutine[Any, Any, Any], name: str) -> Any:
    """Block until a coroutine is done, where the browser can suspend Python.

    Raises:
        DeviceError: it cannot; names the twin to await instead.
    """
    from pyodide.ffi import can_run_sync, run_sync

    if can_run_sync():
        return run_sync(coroutine)
    coroutine.close()
    raise DeviceError(
        f"{name}: this place cannot wait (no JSPI, or called from a JavaScript callback). Await "
        f"{name}_async instead."
    )


class PageBackend:
    """A ``tokenizer.json`` in ``@huggingface/tokenizers``.

    Args:
        document: the bytes of the ``tokenizer.json``.
        extra: tokens that the model's other files add to it.

    Raises:
        ImportError: ``load_libraries`` was not awaited before.
        FormatError: the library rejects the document.
    """

    def __init__(self, document: bytes, extra: Iterable[AddedToken] = ()):
        from pyodide.ffi import JsException, create_proxy, to_js

        self._to_js = to_js
        self._failure = JsException
        tokens = json.dumps(
            [{key: value for key, value in vars(token).items() if value is not None} for token in extra]
        )
        misled: list[FormatError] = []

        def check(parts: str) -> None:
            try:
                growth.check("tokenizer.json", json.loads(parts))
            except FormatError as error:
                misled.append(error)
                raise

        proxy = create_proxy(check)
        try:
            self._tokenizer = _library("adapter").new(to_js(document), tokens, proxy)
        except JsException as error:
            if misled:
                raise misled[0] from None
            raise FormatError(
                f"tokenizer.json: the library @huggingface/tokenizers rejects it: {error}. Check that the "
                "file is complete."
            ) from error
        finally:
            proxy.destroy()
        self.added = {
            token["id"]: AddedToken(token["id"], token["content"], token.get("special", False))
            for token in json.loads(self._tokenizer.listAdded())
        }

    def encode(
        self, text: str, pair: str | None, *, add_special_tokens: bool, limit: Limit | None
    ) -> tuple[list[int], list[int]]:
        tokens, side = (None, None) if limit is None else (limit.tokens, limit.side)
        try:
            result = self._tokenizer.encode(text, pair, add_special_tokens, tokens, side)
        except self._failure as error:
            raise ValueError(f"tokenizer: {error}. Use the tokenizer that belongs to the model.") from error
        if isinstance(result, int):
            assert limit is not None
            raise too_short(limit, result)
        ids, types = result.to_py()
        return ids, types

    def offsets(self, text: str, pair: str | None) -> list[tuple[int, int]] | None:
        return None

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        return self._tokenizer.decode(self._to_js(ids), skip_special_tokens)

    def token_to_id(self, token: str) -> int | None:
        return self._tokenizer.tokenizer.token_to_id(token)

    def id_to_token(self, index: int) -> str | None:
        return self._tokenizer.tokenizer.id_to_token(index)

    def vocabulary(self, *, with_added_tokens: bool) -> dict[str, int]:
        return json.loads(self._tokenizer.vocabulary(with_added_tokens))

    def size(self, *, with_added_tokens: bool) -> int:
        return self._tokenizer.size if with_added_tokens else self._tokenizer.modelSize


class PageTemplate:
    """A chat template in ``@huggingface/jinja``.

    Args:
        source: the template's text.

    Raises:
        ImportError: ``load_libraries`` was not awaited before.
        ValueError: the text is not a valid template.
    """

    def __init__(self, source: str):
        from pyodide.ffi import JsException

        self._failure = JsException
        try:
            self._template = _library("jinja").Template.new(source)
        except JsException as error:
            raise ValueError(f"chat template: {error}. Correct the template.") from error

    def render(self, values: dict[str, Any]) -> str:
        """Text of the template with these names filled in."""
        try:
            return _library("renderer")(self._template, json.dumps(values))
        except self._failure as error:
            raise ValueError(
                f"chat template: {error}. Change the messages to what the template accepts."
            ) from error
