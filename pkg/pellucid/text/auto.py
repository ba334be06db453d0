"""``AutoTokenizer``: a tokenizer from a model's folder, wherever it is, or from a GGUF file."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from typing import Any

from pellucid import weights
from pellucid.device.steps import later, now
from pellucid.errors import FormatError, SourceError
from pellucid.text import libraries, special
from pellucid.text.backend import AddedToken
from pellucid.text.byte_pairs import tokenizer_json_from_vocabulary
from pellucid.text.gguf import tokenizer_config_from_gguf, tokenizer_json_from_gguf
from pellucid.text.tokenizer import Tokenizer
from pellucid.weights import Checkpoint, Folder, MissingFile, Source, kind
from pellucid.weights.document import parse_object
from pellucid.weights.fields import check
from pellucid.weights.place import LONGEST_DOCUMENT, LONGEST_FILE, Place, whole

_LONGEST_TEMPLATE = 4 << 20  # bytes of a chat_template.jinja


class AutoTokenizer:
    """Makes the tokenizer that belongs to a model. Only its two class methods are used."""

    def __init__(self) -> None:
        raise TypeError("AutoTokenizer: is not made directly. Call AutoTokenizer.from_pretrained(source).")

    @classmethod
    def from_pretrained(
        cls,
        source: Any,
        *,
        filename: str | None = None,
        revision: str = "main",
        token: str | None = None,
        **config: Any,
    ) -> Tokenizer:
        """Load a tokenizer.

        Args:
            source: a folder with a ``tokenizer.json``, with ``vocab.json`` and ``merges.txt``, or a GGUF
                file, as a path, URL or hub id (``"org/name"``); the bytes of a ``tokenizer.json`` or GGUF; a
                folder from ``pellucid.weights.open_folder`` or a checkpoint from ``open``, whose header is
                then not read again; or a mapping of GGUF metadata.
            filename: the file to take from the folder or hub id, such as ``"model-Q4_K_M.gguf"``.
            revision: a branch, tag or commit of the hub.
            token: for models that need permission.
            **config: replaces entries of ``tokenizer_config.json``, such as ``padding_side="left"``.

        Returns:
            A ``Tokenizer``.

        Raises:
            ImportError: the tokenizer library is not installed, or cannot be loaded by the page.
            SourceError: a file cannot be read.
            FormatError: a file is not what it should be.

        Example:
            >>> tokenizer = AutoTokenizer.from_pretrained("SmolLM2-135M-Instruct.Q4_1.gguf")
            >>> tokenizer.encode("The capital of France is")
            [504, 3575, 282, 4649, 314]
        """
        if libraries.IN_PAGE:
            from pellucid.text.page import wait

            twin = cls.from_pretrained_async(
                source, filename=filename, revision=revision, token=token, **config
            )
            return wait(twin, "AutoTokenizer.from_pretrained")
        where = {"filename": filename, "revision": revision, "token": token}
        return now(_load(source, where, config))

    @classmethod
    async def from_pretrained_async(
        cls,
        source: Any,
        *,
        filename: str | None = None,
        revision: str = "main",
        token: str | None = None,
        **config: Any,
    ) -> Tokenizer:
        """Load a tokenizer without blocking; see ``from_pretrained``."""
        await libraries.load()
        where = {"filename": filename, "revision": revision, "token": token}
        return await later(_load(source, where, config))


def _load(source: Any, where: dict[str, Any], config: dict[str, Any]) -> Generator[Any, Any, Tokenizer]:
    """Steps that read what is needed and make the tokenizer."""
    check("AutoTokenizer.from_pretrained", config, special.TABLE)
    if isinstance(source, Mapping):
        return _from_gguf(source.metadata if isinstance(source, Checkpoint) else source, config)
    checkpoint: Checkpoint | None = None
    if isinstance(source, Folder):
        opened: Folder = yield weights, "open_folder", (source,), where
        place, checkpoint = opened.place, opened.checkpoint
        if place is None:
            if checkpoint.format != "gguf":
                raise _without_tokenizer(checkpoint.name, f"is a {checkpoint.format} file")
            return _from_checkpoint(checkpoint, config)
    else:
        place = weights.find(source, **where)
    if isinstance(place, Source):
        beside = place.sibling
        begin = yield place, "read", (0, kind.BYTES), {}
        if begin.startswith(b"GGUF"):
            return (yield from _from_file(place, config))
        if not kind.may_be_json(begin):
            raise _without_tokenizer(place.name, kind.describe(begin))
        document = yield from _read(place)
        if document is None:
            raise MissingFile(
                f"{place.name}: there is no such file. Give a folder with a tokenizer.json, or a GGUF file."
            )
    else:
        beside = place.file
        document = yield from _read(beside("tokenizer.json"))
        if document is None:
            vocabulary = yield from _read(beside("vocab.json"), LONGEST_DOCUMENT)
            merges = vocabulary and (yield from _read(beside("merges.txt"), LONGEST_DOCUMENT))
            if vocabulary is not None and merges is not None:
                found = yield from _configuration(beside)
                return _from_pairs(vocabulary, merges, found, config)
            if checkpoint is not None:
                return _from_checkpoint(checkpoint, config)
            return (yield from _from_file(place, config))
        kind.refuse(f"{place.name}/tokenizer.json", document[: kind.BYTES], "a tokenizer")
    found = yield from _configuration(beside)
    return Tokenizer(libraries.backend(document, _extra_tokens(found)), found | config, document)


def _without_tokenizer(name: str, clause: str) -> FormatError:
    return FormatError(
        f"{name}: {clause}, which holds no tokenizer. Give a GGUF file, or the folder in which "
        "tokenizer.json, config.json and the weights lie."
    )


def _from_gguf(metadata: Mapping[str, Any], config: dict[str, Any]) -> Tokenizer:
    document = json.dumps(tokenizer_json_from_gguf(metadata), ensure_ascii=False).encode()
    return Tokenizer(libraries.backend(document), tokenizer_config_from_gguf(metadata) | config, document)


def _from_pairs(vocabulary: bytes, merges: bytes, found: Mapping[str, Any], config: dict) -> Tokenizer:
    made, found = tokenizer_json_from_vocabulary(vocabulary, merges, found)
    document = json.dumps(made, ensure_ascii=False).encode()
    return Tokenizer(libraries.backend(document, _extra_tokens(found)), found | config, document)


def _from_file(place: Source | Place, config: dict[str, Any]) -> Generator[Any, Any, Tokenizer]:
    checkpoint: Checkpoint = yield weights, "open", (place,), {}
    checkpoint.close()
    return _from_checkpoint(checkpoint, config)


def _from_checkpoint(checkpoint: Checkpoint, config: dict[str, Any]) -> Tokenizer:
    if checkpoint.format != "gguf":
        raise MissingFile(
            f"{checkpoint.name}: has weights but no tokenizer.json. Give a folder with one, or a GGUF file."
        )
    return _from_gguf(checkpoint.metadata, config)


def _configuration(beside: Callable[[str], Source]) -> Generator[Any, Any, dict[str, Any]]:
    """Steps that join the files beside ``tokenizer.json``; each may be missing."""
    config = yield from _read_json(beside, "tokenizer_config.json")
    # Older models have some of their special tokens only here.
    roles = (
        {}
        if set(special.ROLES) <= set(config)
        else (yield from _read_json(beside, "special_tokens_map.json"))
    )
    config = {role: roles[role] for role in special.ROLES if role in roles} | config
    templates = config.get("chat_template")
    if isinstance(templates, list):
        config["chat_template"] = {entry["name"]: entry["template"] for entry in templates}
    elif templates is None:
        name = "chat_template.jinja"
        template = yield from _read_beside(beside, name, _LONGEST_TEMPLATE)
        if template is not None:
            try:
                config["chat_template"] = template.decode()
            except UnicodeDecodeError as error:
                raise FormatError(f"{name}: is not UTF-8 ({error.reason}). Download it again.") from None
    return config


def _extra_tokens(config: Mapping[str, Any]) -> list[AddedToken]:
    """Tokens that ``tokenizer_config.json`` adds to ``tokenizer.json`` or marks as special there."""
    flags = ("special", "single_word", "lstrip", "rstrip", "normalized")
    extra = {
        entry["content"]: AddedToken(
            int(index),
            entry["content"],
            **{flag: entry[flag] for flag in flags if entry.get(flag) is not None},
        )
        for index, entry in sorted(
            (config.get("added_tokens_decoder") or {}).items(), key=lambda item: int(item[0])
        )
    }
    more = [config.get(role) for role in special.ROLES] + list(config.get("additional_special_tokens") or ())
    for token in more:
        content = special.content(token)
        if content is not None and content not in extra:
            extra[content] = AddedToken(None, content)
    return list(extra.values())


def _read(source: Source, longest: int = LONGEST_FILE) -> Generator[Any, Any, bytes | None]:
    """Steps that read a whole file; None where there is none."""
    reads, data = whole(source, longest), None
    try:
        while True:
            place, start, stop = reads.send(data)
            data = yield place, "read", (start, stop), {}
    except StopIteration as end:
        return end.value
    except MissingFile:
        return None


def _read_beside(
    beside: Callable[[str], Source], name: str, longest: int
) -> Generator[Any, Any, bytes | None]:
    try:
        source = beside(name)
    except SourceError:  # bytes lie in no folder
        return None
    return (yield from _read(source, longest))


def _read_json(beside: Callable[[str], Source], name: str) -> Generator[Any, Any, dict[str, Any]]:
    data = yield from _read_beside(beside, name, LONGEST_DOCUMENT)
    if data is None:
        return {}
    document = parse_object(name, data)
    check(name, document, special.TABLE)
    return document
