"""From what a user writes (URL, path, hub id, File, bytes) to a file or a folder. Contacts nothing."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SourceError
from . import settings
from .document import parse_object
from .header import LARGEST_READ
from .source import IN_PAGE, LocalSource, MemorySource, MissingFile, Source

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_FILE_SUFFIXES = (
    ".gguf", ".safetensors", ".json", ".onnx", ".pt2", ".tflite", ".bin", ".pt", ".pth", ".npz", ".npy",
)  # fmt: skip
LONGEST_FILE = 256_000_000  # of the files that are read whole
LONGEST_DOCUMENT = 16_000_000  # of those among them that Python parses: configurations, listings


@dataclass
class Place:
    """A folder of files.

    Attributes:
        name: for messages.
        file: the source of a name; contacted at its first read.
        list: steps whose result are the names of the files; None where a place cannot be listed.
    """

    name: str
    file: Callable[[str], Source]
    list: Callable[[], Any] | None


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
        source: a URL; a path (natively of a file or folder, in a page relative to the serving origin; a
        `pathlib.Path` is Pyodide's own
            file system there); a hub id ``"org/name"``; a browser's File or Blob; bytes; a `Source`.
        revision: branch, tag or commit of a hub id.
        filename: which file of a hub id or folder holds the weights.
        token: sent as a bearer token to the URL or hub, not to hosts that they redirect to.
        endpoint: address of the hub, instead of ``settings.hub_endpoint``.

    Raises:
        SourceError: it is none of these.
    """
    try:
        place = _find(source, revision, token, endpoint)
        if filename is None:
            return place
        if isinstance(place, Place):
            return place.file(filename)
    except ValueError as error:  # urllib's, of what is no address
        raise SourceError(
            f"source: {str(source)[:200]!r} with filename={filename!r} and revision={revision!r} makes no "
            f"address ({error}). Check its characters."
        ) from None
    raise SourceError(
        f"{place.name}: is a file already, so filename={filename!r} has no meaning. Leave one of them out."
    )


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
        raise SourceError(
            f"source: a {type(source).__name__} is not a URL, path, hub id, File or bytes. Give one of these."
        )
    if re.match(r"(https?|blob):", source):
        return _hub_page(source, revision, token, endpoint or settings.hub_endpoint) or _web(source, token)
    if source.startswith("file:"):
        from urllib.request import url2pathname

        return _local(Path(url2pathname(urllib.parse.urlsplit(source).path)))
    if not IN_PAGE and os.path.exists(source):  # which says no where a Path raises: a NUL, too long a name
        return _local(Path(source))
    if IN_PAGE and re.match(r"[A-Za-z]:[\\/]|~/", source):
        raise SourceError(
            f"source: {source[:200]!r} is a path of your computer, which a page cannot open. Drop the file "
            "on the page."
        )
    if scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", source):
        raise SourceError(
            f"source: {source[:200]!r} begins with {scheme[0]}, which is not read. An address begins with "
            "http:// or https://."
        )
    if _HUB_ID.fullmatch(source) and not source.endswith(_FILE_SUFFIXES):
        return _hub(source, revision, token, endpoint or settings.hub_endpoint)
    if IN_PAGE or settings.origin:
        return _web(urllib.parse.urljoin(_origin().rstrip("/") + "/", source), token)
    if re.fullmatch(r"[\w.-]+", source) and not source.endswith(_FILE_SUFFIXES):
        raise MissingFile(
            f"{source}: there is no such file or folder, and a hub name has its owner, as "
            "openai-community/gpt2."
        )
    return _local(Path(source))


def _origin() -> str:
    if settings.origin or not IN_PAGE:
        return settings.origin or ""
    from .source_browser import origin

    return origin()


def _local(path: Path) -> Source | Place:
    if not os.path.isdir(path):
        return LocalSource(path)

    def names():
        try:
            return sorted(entry.name for entry in os.scandir(path) if entry.is_file())
        except OSError as error:
            raise SourceError(
                f"{path}: cannot be listed ({error.strerror or error}). Check the folder's permissions, or "
                "give filename=."
            ) from error
        yield  # makes this a generator of steps, of which a local listing needs none

    return Place(str(path), lambda name: LocalSource(path / name), names)


def _headers(token: str | None) -> dict[str, str]:
    if not token:
        return {}
    if not re.fullmatch(r"[!-~]+", token):  # the text itself is a secret, and is not shown
        raise SourceError("token: has characters that no token has, such as spaces. Copy it once more.")
    return {"Authorization": f"Bearer {token}"}


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


def _hub_page(url: str, revision: str, token: str | None, endpoint: str) -> Source | Place | None:
    """What an address of the hub's own pages means: of a model, its folder, or one file."""
    if not url.startswith(f"{endpoint}/"):
        return None
    match urllib.parse.urlsplit(url[len(endpoint) + 1 :]).path.strip("/").split("/"):
        case [owner, name] if not name.endswith(_FILE_SUFFIXES):
            return _hub(f"{owner}/{name}", revision, token, endpoint)
        case [owner, name, "tree", branch]:
            return _hub(f"{owner}/{name}", urllib.parse.unquote(branch), token, endpoint)
        case [owner, name, "blob", branch, *file] if file:
            return _web("/".join((endpoint, owner, name, "resolve", branch, *file)), token)
    return None


def _hub(name: str, revision: str, token: str | None, endpoint: str) -> Place:
    headers = _headers(token or (settings.hub_token if endpoint == settings.hub_endpoint else None))
    at = urllib.parse.quote(revision, safe="")

    def names():
        listing = _remote(f"{endpoint}/api/models/{name}/revision/{at}", headers)
        document = parse_object(listing.name, (yield from whole(listing, LONGEST_DOCUMENT)))
        files = document.get("siblings")
        told = [f.get("rfilename") for f in files if isinstance(f, dict)] if isinstance(files, list) else []
        return [name for name in told if isinstance(name, str) and name.isprintable()]

    return Place(
        name,
        lambda file: _remote(f"{endpoint}/{name}/resolve/{at}/{urllib.parse.quote(file)}", headers),
        names,
    )


def whole(source: Source, longest: int = LONGEST_FILE):
    """Steps that read all bytes of a small file.

    Raises:
        SourceError: it has more than ``longest`` bytes, or cannot be read.
    """
    data = bytearray()
    while source.size is None or len(data) < source.size:
        if (source.size or 0) > longest:
            raise SourceError(
                f"{source.name}: has {source.size:,} bytes, too many for a file that is read whole "
                f"({longest:,}). Check the address."
            )
        more = yield source, len(data), len(data) + LARGEST_READ
        if not more:
            break
        data += more
    return bytes(data)
