"""The files of an exported program: the archive's documents, checked, and where its weights lie."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from ...errors import DTypeError, FormatError, MissingError, SourceError
from ...weights.checkpoint import Checkpoint, TensorInfo, check_layout
from ...weights.document import parse_object
from ...weights.fields import check, shown
from ...weights.formats import archive
from ...weights.formats.archive import Archive
from ...weights.parsing import later, now
from ...weights.place import find
from ...weights.source import Source
from .schema import DTYPES, PAYLOADS, PROGRAM, VERSION

_LONGEST_PROGRAM = 100_000_000
_SHORT = 1 << 10
# Folders of weights; what stands in their documents is read alike.
_FOLDERS = ("weights", "constants")


@dataclass(frozen=True)
class StoredTensor:
    """How a tensor lies in the elements of its file.

    Attributes:
        file: the name of what the checkpoint holds.
        shape, strides, offset: in elements.
        requires_grad: as in the program.
    """

    file: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    requires_grad: bool


@dataclass(frozen=True)
class ProgramFile:
    """What an archive holds. Made by `open_program`.

    Attributes:
        name: where it came from.
        document: the program, as `schema.PROGRAM` has it.
        checkpoint: the files of weights and constants, each once.
        tensors: by the name in the program.
    """

    name: str
    document: dict[str, Any]
    checkpoint: Checkpoint
    tensors: dict[str, StoredTensor]


def open_program(source: Any, where: dict[str, Any]) -> ProgramFile:
    """Read all of a program but its weights.

    Args:
        source: as in `pellucid.weights.find`.
        where: further arguments of it.

    Raises:
        FormatError: the file is not what ``torch.export.save`` writes.
        SourceError: it cannot be had.
    """
    return now(_read(_file(source, where)))


async def open_program_async(source: Any, where: dict[str, Any]) -> ProgramFile:
    """`open_program` for a caller that must not block."""
    return await later(_read(_file(source, where)))


def _file(source: Any, where: dict[str, Any]) -> Source:
    found = find(source, **where)
    if not isinstance(found, Source):
        raise SourceError(f"{found.name}: is a folder. Say by filename= which .pt2 of it is meant.")
    return found


def _read(source: Source):
    packed = yield from archive.read(source)
    packed = Archive(packed.source, {name.partition("/")[2]: e for name, e in packed.entries.items()})
    where = source.name
    if "serialized_exported_program.json" in {e.name.rpartition("/")[2] for e in packed.entries.values()}:
        raise FormatError(
            f"{where}: is of the layout that PyTorch wrote before 2.8. Load it there and save it again."
        )
    if "archive_format" not in packed.entries:
        what = "torch.save wrote it, perhaps a state dict. " if "data.pkl" in packed.entries else ""
        raise FormatError(
            f"{where}: has no entry 'archive_format'. {what}Give what torch.export.save wrote of a program."
        )
    for name, known in (("archive_format", b"pt2"), ("archive_version", b"0"), ("byteorder", b"little")):
        text = yield from packed.document(name, _SHORT)
        if text.strip() != known:
            raise FormatError(f"{where}: its {name} is {text[:40]!r}; {known!r} was expected.")
    models = [n for n in packed.entries if n.startswith("models/") and n.endswith(".json")]
    if len(models) != 1:
        raise FormatError(
            f"{where}: holds {len(models)} programs; one was expected. Save each to its own file."
        )
    data = yield from packed.document(models[0], _LONGEST_PROGRAM)
    document = parse_object(f"{where}/{models[0]}", data)
    check(f"{where}/{models[0]}", document, PROGRAM, "graph_module", "range_constraints", "schema_version")
    major = document["schema_version"]["major"]
    if major != VERSION:
        raise FormatError(
            f"{where}: its schema has version {major}; {VERSION} is read here, which PyTorch 2.5 and later "
            "write."
        )
    model = models[0].removeprefix("models/").removesuffix(".json")
    files: dict[str, TensorInfo] = {}
    tensors: dict[str, StoredTensor] = {}
    for folder in _FOLDERS:
        path = f"data/{folder}/{model}_{folder}_config.json"
        if path in packed.entries:
            payloads = parse_object(f"{where}/{path}", (yield from packed.document(path, _LONGEST_PROGRAM)))
            check(f"{where}/{path}", payloads, PAYLOADS, "config")
            for name, payload in payloads["config"].items():
                place = f"{where}/{path}: {shown(name)}"
                file = f"data/{folder}/{payload['path_name']}"
                stored = _stored(place, name, payload, file)
                if file not in files:
                    files[file] = yield from _info(place, packed, file, payload["tensor_meta"]["dtype"])
                if DTYPES[payload["tensor_meta"]["dtype"]].name != files[file].dtype:
                    raise FormatError(f"{place} is of another dtype than what else lies in {shown(file)}.")
                _check_extent(place, stored, files[file])
                if name in tensors:
                    raise FormatError(f"{place} is there twice, as a weight and as a constant.")
                tensors[name] = stored
    assert packed.source.size is not None
    check_layout(where, list(files.values()), 0, packed.source.size, gaps=True)
    checkpoint = Checkpoint(where, "pt2", list(files.values()), {}, [packed.source])
    return ProgramFile(where, document, checkpoint, tensors)


def _stored(where: str, name: str, payload: dict[str, Any], file: str) -> StoredTensor:
    meta = payload.get("tensor_meta")
    if payload["use_pickle"] or meta is None:
        raise MissingError(
            f"{where} is stored by pickle: a class of the program and no plain tensor. Export the model "
            "with plain "
            "tensors."
        )
    if meta["dtype"] not in DTYPES:
        raise DTypeError(f"{where} has the element type number {meta['dtype']}, which is none of those here.")
    numbers = [n.get("as_int") for n in (*meta["sizes"], *meta["strides"], meta["storage_offset"])]
    if any(n is None or n < 0 for n in numbers) or len(meta["sizes"]) != len(meta["strides"]):
        raise FormatError(
            f"{where}: sizes, strides and offset must be plain numbers from 0, one for each axis."
        )
    axes = len(meta["sizes"])
    return StoredTensor(
        file, tuple(numbers[:axes]), tuple(numbers[axes:-1]), numbers[-1], meta["requires_grad"]
    )


def _info(where: str, packed: Archive, file: str, dtype: int):
    """Steps that find a file of elements."""
    entry = packed.entry(file)
    begin = yield from packed.locate(entry)
    d = DTYPES[dtype]
    if entry.size % d.itemsize:
        raise FormatError(f"{where}: {entry.size:,} bytes are no whole number of elements of {d.name}.")
    return TensorInfo(file, (entry.size // d.itemsize,), d.name, begin, begin + entry.size)


def _check_extent(where: str, stored: StoredTensor, info: TensorInfo) -> None:
    if not prod(stored.shape):
        return
    last = stored.offset + sum((n - 1) * s for n, s in zip(stored.shape, stored.strides, strict=True))
    if last >= info.numel:
        raise FormatError(
            f"{where}: shape {stored.shape} with strides {stored.strides} from {stored.offset} on reaches "
            "element "
            f"{last:,}, and its file has {info.numel:,}. The file is damaged."
        )
    if prod(stored.shape) > info.numel and 0 not in stored.strides:
        raise FormatError(f"{where}: shape {stored.shape} holds more elements than its file, {info.numel:,}.")
