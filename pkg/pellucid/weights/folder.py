"""Opens files of weights and models' folders: whichever format, headers only."""

from __future__ import annotations

import re
from copy import copy
from typing import Any

from ..errors import FormatError, SourceError
from .checkpoint import Checkpoint
from .document import parse_object
from .formats import archive, gguf, numpy_files, pytorch, safetensors
from .formats.archive import Archive
from .formats.shards import read_index
from .header import Header
from .parsing import later, now
from .place import LONGEST_DOCUMENT, LONGEST_FILE, Place, find, whole
from .source import MissingFile, Source

_SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")
_PYTORCH = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_OTHERS = (".safetensors", ".npz", ".pt", ".pth")
_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$")  # of a split GGUF; its first part opens all


class Folder:
    """A model's files. Made by `open_folder`; a ``with`` closes it.

    It is a source, too: what is loaded from it reads no header again.

    Attributes:
        checkpoint: the weights, from their headers.
        config: ``config.json`` as a dict; None where there is none (a GGUF has its own in
        ``checkpoint.metadata``).
        place: where the other files lie; None of a lone file.
    """

    def __init__(self, name: str, checkpoint: Checkpoint, config: dict | None, place: Place | None):
        self.name, self.checkpoint, self.config, self.place = name, checkpoint, config, place
        self._is_lent = False

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up connections that are still open."""
        if not self._is_lent:
            self.checkpoint.close()

    def lent(self) -> Folder:
        """The same files for someone who closes what he opens: these stay open."""
        other = copy(self)
        other._is_lent = True
        return other

    def __repr__(self) -> str:
        return (
            f"<Folder {self.name}: {'config.json, ' if self.config is not None else ''}{self.checkpoint!r}>"
        )

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
        data = now(self._whole(name, LONGEST_DOCUMENT))
        return None if data is None else parse_object(f"{self.name}/{name}", data)

    async def json_async(self, name: str) -> dict | None:
        """`json` for a caller that must not block."""
        data = await later(self._whole(name, LONGEST_DOCUMENT))
        return None if data is None else parse_object(f"{self.name}/{name}", data)

    def _whole(self, name: str, longest: int = LONGEST_FILE):
        return (yield from _read_if_there(self.place, name, longest)) if self.place else None


def _read_if_there(place: Place, name: str, longest: int):
    try:
        return (yield from whole(place.file(name), longest))
    except MissingFile:
        return None


def _open_file(source: Source):
    """Steps that open a file of weights of whatever format."""
    header = Header(source)
    if source.name.endswith(".json"):
        return (yield from read_index(header, _open_file))
    yield from header.need(4, "the format's mark")
    begin = bytes(header.bytes[: len(pytorch.LEGACY)])
    if begin.startswith(gguf.MAGIC):
        return (yield from gguf.read(header))
    if begin.startswith(archive.MAGIC):
        header.finish(0)
        return (yield from _open_archive(source))
    if begin.startswith(numpy_files.MAGIC):
        return (yield from numpy_files.read_npy(header))
    if begin == pytorch.LEGACY:
        return (yield from pytorch.read_legacy(header))
    return (yield from safetensors.read(header))


def _open_archive(source: Source):
    """Steps that open a zip, of PyTorch or of numpy."""
    packed = yield from archive.read(source, deflated=True)
    inner = {name.partition("/")[2]: entry for name, entry in packed.entries.items()}
    if packed.entries and all(name.endswith(".npy") for name in packed.entries):
        return (yield from numpy_files.read_npz(packed))
    if "data.pkl" in inner:
        return (yield from pytorch.read(Archive(packed.source, inner)))
    hint = " torch.export wrote it: pellucid.export.load opens it." if "archive_format" in inner else ""
    raise FormatError(
        f"{source.name}: is a zip archive without weights: neither of torch.save (data.pkl) nor of numpy "
        f"(.npy).{hint}"
    )


def _open_weights(place: Source | Place):
    """Steps that open a folder's weights: of safetensors, else of PyTorch, in shards or not; else the one
    GGUF."""
    if isinstance(place, Source):
        return (yield from _open_file(place))
    missing: MissingFile | None = None
    for name in _SAFETENSORS:
        try:
            return (yield from _open_file(place.file(name)))
        except MissingFile as error:
            missing = error
    names = (yield from place.list()) if place.list else None
    for name in _PYTORCH if names is None else [name for name in _PYTORCH if name in names]:
        try:
            return (yield from _open_file(place.file(name)))
        except MissingFile as error:
            missing = error
    if names is None:
        raise MissingFile(
            f"{place.name}: has none of {', '.join(_SAFETENSORS + _PYTORCH)}. Give the address "
            "of the weights' own file, or a hub name with its owner, as openai-community/gpt2. (From Python, "
            "filename= names another file of a folder.)"
        ) from missing
    models = [
        n for n in names if n.endswith(".gguf") and ((part := _PART.search(n)) is None or int(part[1]) == 1)
    ]
    models = models or [n for n in names if n.endswith(_OTHERS)]
    if len(models) == 1:
        return (yield from _open_file(place.file(models[0])))
    if models:
        raise SourceError(
            f"{place.name}: has {len(models)} files of weights ({', '.join(models[:12])}). Choose one by "
            "filename=."
        )
    raise MissingFile(
        f"{place.name}: has neither model.safetensors, pytorch_model.bin, an index of their shards, a .gguf "
        "nor another file of weights. Check the address, or give filename=."
    )


def _open_folder(source: Any, filename: str | None, **where: Any):
    if isinstance(source, Folder):
        if filename is not None:
            raise SourceError(
                f"{source.name}: is open already, so filename={filename!r} has no meaning. Leave one of them "
                "out."
            )
        return source.lent()
    place = find(source, **where)
    if isinstance(place, Source):
        return Folder(place.name, (yield from _open_file(place)), None, None)
    config = yield from _read_if_there(place, "config.json", LONGEST_DOCUMENT)
    checkpoint = yield from _open_weights(place.file(filename) if filename else place)
    parsed = None if config is None else parse_object(f"{place.name}/config.json", config)
    return Folder(place.name, checkpoint, parsed, place)


def open(
    source: Any,
    *,
    revision: str = "main",
    filename: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> Checkpoint:
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
    return now(
        _open_weights(find(source, revision=revision, filename=filename, token=token, endpoint=endpoint))
    )


async def open_async(
    source: Any,
    *,
    revision: str = "main",
    filename: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> Checkpoint:
    """`open` for a caller that must not block."""
    return await later(
        _open_weights(find(source, revision=revision, filename=filename, token=token, endpoint=endpoint))
    )


def open_folder(
    source: Any,
    *,
    revision: str = "main",
    filename: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> Folder:
    """A model's folder: ``config.json`` and the weights' headers; other files on demand. Also of a lone file.

    A model and its tokenizer that are loaded from it share what was read.

    Args:
        source: as in `find`, or an open `Folder`, whose files are lent.
        revision, filename, token, endpoint: as in `find`.

    Returns:
        A `Folder`.

    Raises:
        FormatError: a header or ``config.json`` is malformed.
        SourceError: a file cannot be had.
    """
    return now(_open_folder(source, filename, revision=revision, token=token, endpoint=endpoint))


async def open_folder_async(
    source: Any,
    *,
    revision: str = "main",
    filename: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> Folder:
    """`open_folder` for a caller that must not block."""
    return await later(_open_folder(source, filename, revision=revision, token=token, endpoint=endpoint))
