"""From what a user writes (URL, path, hub id, File, bytes) to files, and from a folder to the model in it."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import settings
from ..errors import SourceError
from . import gguf, safetensors
from .checkpoint import Checkpoint
from .document import parse_object
from .header import LARGEST_READ, Header
from .source import IN_PAGE, LocalSource, MemorySource, MissingFile, Source, later, now

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_FILE_SUFFIXES = (".gguf", ".safetensors", ".json")
_LONGEST_FILE = 256_000_000  # of the small files that are read whole


@dataclass
class Place:
    """A folder of files: ``file(name)`` is one of them, contacted at its first read; ``list`` are steps that give their names, or None."""

    name: str
    file: Callable[[str], Source]
    list: Callable[[], Any] | None


class Folder:
    """A model's files. Made by `open_folder`.

    Attributes:
        checkpoint: the weights, from their headers.
        config: ``config.json`` as a dict; None where there is none (a GGUF has its own in ``checkpoint.metadata``).
    """

    def __init__(self, name: str, checkpoint: Checkpoint, config: dict | None, place: Place | None):
        self.name, self.checkpoint, self.config, self._place = name, checkpoint, config, place

    def __repr__(self) -> str:
        return f"<Folder {self.name}: {'config.json, ' if self.config is not None else ''}{self.checkpoint!r}>"

    def read(self, name: str) -> bytes | None:
        """A whole small file, such as ``"tokenizer.json"``.

        Args:
            name: of a file in the folder.

        Returns:
            Its bytes; None where the folder has no such file.

        Raises:
            SourceError: it cannot be read.
        """
        return now(self._whole(name))

    async def read_async(self, name: str) -> bytes | None:
        """`read` for a caller that must not block."""
        return await later(self._whole(name))

    def json(self, name: str) -> dict | None:
        """A JSON file, such as ``"generation_config.json"``; None where the folder has no such file.

        Raises:
            FormatError: it is not a JSON object.
        """
        data = self.read(name)
        return None if data is None else parse_object(f"{self.name}/{name}", data)

    async def json_async(self, name: str) -> dict | None:
        """`json` for a caller that must not block."""
        data = await self.read_async(name)
        return None if data is None else parse_object(f"{self.name}/{name}", data)

    def _whole(self, name: str):
        return (yield from _read_if_there(self._place, name)) if self._place else None


def find(
    source: Any,
    *,
    revision: str = "main",
    filename: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> Source | Place:
    """The file or folder that a ``source`` argument means. Contacts nothing.

    Args:
        source: a URL; a path (natively of a file or folder, in a page relative to the serving origin; a `pathlib.Path` is Pyodide's own
            file system there); a hub id ``"org/name"``; a browser's File or Blob; bytes; a `Source`.
        revision: branch, tag or commit of a hub id.
        filename: which file of a hub id or folder holds the weights.
        token: sent as a bearer token to the URL or hub, not to hosts that they redirect to.
        endpoint: address of the hub, instead of ``settings.hub_endpoint``.

    Raises:
        SourceError: it is none of these.
    """
    place = _find(source, revision, token, endpoint)
    if filename is None:
        return place
    if isinstance(place, Source):
        raise SourceError(f"{place.name}: is a file already, so filename={filename!r} has no meaning. Leave one of them out.")
    return place.file(filename)


def _find(source: Any, revision: str, token: str | None, endpoint: str | None) -> Source | Place:
    if isinstance(source, Source | Place):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return MemorySource(source)
    if isinstance(source, Path):
        return _local(source)
    if not isinstance(source, str):
        if IN_PAGE:
            from .source_browser import blob_source

            return blob_source(source)
        raise SourceError(f"source: a {type(source).__name__} is not a URL, path, hub id, File or bytes. Give one of these.")
    if re.match(r"(https?|blob):", source):
        return _web(source, token)
    if source.startswith("file:"):
        from urllib.request import url2pathname

        return _local(Path(url2pathname(urllib.parse.urlsplit(source).path)))
    if not IN_PAGE and Path(source).exists():
        return _local(Path(source))
    if _HUB_ID.fullmatch(source) and not source.endswith(_FILE_SUFFIXES):
        return _hub(source, revision, token, endpoint or settings.hub_endpoint)
    if IN_PAGE or settings.origin:
        return _web(urllib.parse.urljoin(_origin().rstrip("/") + "/", source), token)
    return _local(Path(source))


def _origin() -> str:
    if settings.origin or not IN_PAGE:
        return settings.origin or ""
    from .source_browser import origin

    return origin()


def _local(path: Path) -> Source | Place:
    if not path.is_dir():
        return LocalSource(path)

    def names():
        return sorted(p.name for p in path.iterdir() if p.is_file())
        yield  # makes this a generator of steps, of which a local listing needs none

    return Place(str(path), lambda name: LocalSource(path / name), names)


def _headers(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _remote(url: str, headers: dict[str, str]) -> Source:
    if IN_PAGE:
        from .source_browser import UrlSource

        return UrlSource(url, headers)
    from .source_http import HttpSource

    return HttpSource(url, headers)


def _web(url: str, token: str | None) -> Source | Place:
    headers = _headers(token)
    split = urllib.parse.urlsplit(url)
    if split.scheme == "blob" or split.path.endswith(_FILE_SUFFIXES):
        return _remote(url, headers)
    base = urllib.parse.urlunsplit(split._replace(path=split.path.rstrip("/") + "/", query="", fragment=""))
    return Place(base.rstrip("/"), lambda name: _remote(base + urllib.parse.quote(name), headers), None)


def _hub(name: str, revision: str, token: str | None, endpoint: str) -> Place:
    headers = _headers(token or (settings.hub_token if endpoint == settings.hub_endpoint else None))
    at = urllib.parse.quote(revision, safe="")

    def names():
        listing = _remote(f"{endpoint}/api/models/{name}/revision/{at}", headers)
        document = parse_object(listing.name, (yield from _whole(listing)))
        files = document.get("siblings")
        return [f["rfilename"] for f in files if isinstance(f, dict) and isinstance(f.get("rfilename"), str)] if isinstance(files, list) else []

    return Place(name, lambda file: _remote(f"{endpoint}/{name}/resolve/{at}/{urllib.parse.quote(file)}", headers), names)


def _whole(source: Source):
    data = bytearray()
    while source.size is None or len(data) < source.size:
        if (source.size or 0) > _LONGEST_FILE:
            raise SourceError(f"{source.name}: has {source.size:,} bytes, too many for a file that is read whole ({_LONGEST_FILE:,}). Check the address.")
        more = yield source, "read", len(data), len(data) + LARGEST_READ
        if not more:
            break
        data += more
    return bytes(data)


def _read_if_there(place: Place, name: str):
    try:
        return (yield from _whole(place.file(name)))
    except MissingFile:
        return None


def _open_file(source: Source):
    """Steps that open a file of weights of whatever format."""
    header = Header(source)
    if source.name.endswith(".json"):
        return (yield from safetensors.read_index(header))
    yield from header.need(4, "the format's mark")
    return (yield from (gguf if header.bytes[:4] == gguf.MAGIC else safetensors).read(header))


def _open_weights(place: Source | Place):
    """Steps that find and open a folder's weights: safetensors, else safetensors in shards, else the one GGUF."""
    if isinstance(place, Source):
        return (yield from _open_file(place))
    for name, read in (("model.safetensors", safetensors.read), ("model.safetensors.index.json", safetensors.read_index)):
        try:
            return (yield from read(Header(place.file(name))))
        except MissingFile as error:
            missing = error
    names = (yield from place.list()) if place.list else None
    if names is None:
        raise MissingFile(f"{place.name}: has neither model.safetensors nor model.safetensors.index.json. Give the file's own URL, or filename=.") from missing
    models = [n for n in names if n.endswith(".gguf") and not re.search(r"-\d{5}-of-\d{5}\.gguf$", n) or n.endswith(tuple(f"-00001-of-{k:05}.gguf" for k in range(2, 100)))]
    if len(models) == 1:
        return (yield from gguf.read(Header(place.file(models[0]))))
    if models:
        raise SourceError(f"{place.name}: has {len(models)} GGUF files ({', '.join(models[:12])}). Choose one by filename=.")
    raise MissingFile(f"{place.name}: has neither model.safetensors, model.safetensors.index.json nor a .gguf file. Check the address, or give filename=.")


def _open_folder(place: Source | Place, filename: str | None):
    if isinstance(place, Source):
        return Folder(place.name, (yield from _open_file(place)), None, None)
    config = yield from _read_if_there(place, "config.json")
    checkpoint = yield from _open_weights(place.file(filename) if filename else place)
    parsed = None if config is None else parse_object(f"{place.name}/config.json", config)
    return Folder(place.name, checkpoint, parsed, place)


def open(source: Any, *, revision: str = "main", filename: str | None = None, token: str | None = None, endpoint: str | None = None) -> Checkpoint:
    """The tensors of a model (names, shapes, dtypes, places of their bytes), from headers alone.

    Args:
        source, revision, filename, token, endpoint: as in `find`.

    Returns:
        A `Checkpoint`; ``print`` it for a table.

    Raises:
        FormatError: a header is malformed.
        SourceError: a file cannot be had.

    Example:
        >>> import json
        >>> from pellucid import weights
        >>> header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        >>> weights.open(len(header).to_bytes(8, "little") + header + bytes(8))["x"].shape
        (2,)
    """
    return now(_open_weights(find(source, revision=revision, filename=filename, token=token, endpoint=endpoint)))


async def open_async(
    source: Any, *, revision: str = "main", filename: str | None = None, token: str | None = None, endpoint: str | None = None
) -> Checkpoint:
    """`open` for a caller that must not block."""
    return await later(_open_weights(find(source, revision=revision, filename=filename, token=token, endpoint=endpoint)))


def open_folder(source: Any, *, revision: str = "main", filename: str | None = None, token: str | None = None, endpoint: str | None = None) -> Folder:
    """A model's folder: ``config.json`` and the weights' headers; other files on demand. A single file is a folder of its own.

    Args:
        source, revision, filename, token, endpoint: as in `find`.

    Returns:
        A `Folder`.

    Raises:
        FormatError: a header or ``config.json`` is malformed.
        SourceError: a file cannot be had.
    """
    return now(_open_folder(find(source, revision=revision, token=token, endpoint=endpoint), filename))


async def open_folder_async(
    source: Any, *, revision: str = "main", filename: str | None = None, token: str | None = None, endpoint: str | None = None
) -> Folder:
    """`open_folder` for a caller that must not block."""
    return await later(_open_folder(find(source, revision=revision, token=token, endpoint=endpoint), filename))
