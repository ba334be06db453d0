"""Files of `torch.save`: written as PyTorch writes them, and read without executing anything."""

from __future__ import annotations

import os
import pickle
import struct
import zipfile
from contextlib import nullcontext
from typing import Any

from ..device.cpu import CpuStorage
from ..errors import ArgumentError, FormatError, PellucidError
from ..tensors.meta import meta
from ..tensors.tensor import Tensor
from ..weights.formats.pytorch import LEGACY
from ..weights.kind import BYTES, refuse
from ..weights.saving import element_bytes, replacing
from .pickler import Pickler
from .safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    safe_globals,
)
from .unpickling import LegacyFile, ZipArchive

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]

_ALIGNMENT = 64


def save(obj: Any, f: Any, **more: Any) -> None:
    """Write tensors and containers of them to a file, which PyTorch reads as well. Waits for the device.

    Tensors that share memory share it again when they are read. Files say "cpu" of every tensor, wherever it
    was. A file is replaced when the new one is whole, so it can be one that is mapped into memory.

    Args:
        obj: tensors, numbers, texts, lists, tuples, dicts and sets, such as a ``state_dict()``. Modules and
            other objects are written by the names of their classes: `load` needs ``weights_only=False`` for
            them. PyTorch reads modules of its own layers, too, but for recurrent ones, transformers,
            ``ReLU6`` and ``ParameterList``, which have other attributes there.
        f: a path, or a file that is open for writing.
        more: ``pickle_module``, ``pickle_protocol`` and ``_use_new_zipfile_serialization`` of PyTorch, which
            may have their defaults only.

    Raises:
        ArgumentError: something in it has no name by which pickle could find it, such as a lambda.

    Source: https://pytorch.org/docs/stable/generated/torch.save.html

    Example:
        >>> import io
        >>> import pellucid as torch
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2, device="cpu")}, file)
        >>> torch.load(file, map_location="cpu")["weight"].tolist()
        [1.0, 1.0]
    """
    if more.get("pickle_module") is not None or not more.get("_use_new_zipfile_serialization", True):
        raise ArgumentError("save: writes PyTorch's zip files with its own pickler. Leave other forms out.")
    bases: dict[Any, tuple[str, Tensor]] = {}

    def place(t: Tensor) -> tuple[str, int]:
        key, base = bases.setdefault(t._storage, (str(len(bases)), _whole_of(t)))
        if base.dtype is not t.dtype:
            raise ArgumentError(
                f"save: tensors of {base.dtype} and {t.dtype} share memory. Save a clone() of one of them."
            )
        return key, base.numel()

    data = Pickler(place).pickled(obj)
    is_path = isinstance(f, (str, os.PathLike))
    name = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path else ""
    with (
        replacing(f) if is_path else nullcontext(f) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        for record, content in (
            ("data.pkl", data),
            (".format_version", b"1"),
            (".storage_alignment", b"%d" % _ALIGNMENT),
            ("byteorder", b"little"),
            *((f"data/{key}", base) for key, base in bases.values()),
            ("version", b"3\n"),
        ):
            _write(archive, f"{name or 'archive'}/{record}", content)


def _write(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    """Add a record whose bytes begin at a multiple of the alignment, as PyTorch maps them into memory."""
    info = zipfile.ZipInfo(name)
    assert archive.fp is not None
    begin = archive.fp.tell() + 30 + len(name.encode()) + 4
    padding = -begin % _ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    archive.writestr(info, element_bytes(content) if isinstance(content, Tensor) else content)


def _whole_of(t: Tensor) -> Tensor:
    """All elements of a tensor's storage."""
    size = t.dtype.numpy.itemsize if isinstance(t._storage, CpuStorage) else t.itemsize  # type: ignore[union-attr]
    if t.device.type == "meta":
        raise ArgumentError("save: a tensor on the meta device has no values to write.")
    return Tensor(t._storage, meta((t._storage.nbytes // size,), t.dtype, t.device), 0)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    **more: Any,
) -> Any:
    """What `save`, or PyTorch's `torch.save`, wrote to a file. By default nothing in the file is executed.

    Args:
        f: a path, or a file that is open for reading.
        map_location: the device of the tensors, a dict from places that files name to devices, or a function
            that is given each storage, on the cpu, and its place, and gives it back, moved or not. If that is
            None, what the file places on "cpu", PyTorch's default device, comes to the
            default device here.
        pickle_module: not taken.
        weights_only: True, or None for the same: tensors and containers, and what `add_safe_globals` allows.
            False reads whole modules and other
            objects, too, by Python's pickle, which executes whatever the file says: only for files of those
            whom you trust. Their classes must be importable; PyTorch's become Pellucid's. Files of PyTorch
            before 1.6 hold tensors and containers.
        mmap: accepted; bytes are read when a tensor is made.

    Raises:
        ArgumentError: ``pickle_module`` is given, or ``map_location`` gives something else.
        DeviceError: the file places tensors on a device that is not here; give ``map_location``.
        FormatError: it is no such file, is broken, or asks for more than tensors and containers, with
            ``weights_only=False`` for a class that is not here.

    Source: https://pytorch.org/docs/stable/generated/torch.load.html
    """
    if pickle_module is not None:
        raise ArgumentError("load: reads with an unpickler of its own. Leave pickle_module out.")
    is_path = isinstance(f, (str, os.PathLike))
    name = str(os.fspath(f) if is_path else getattr(f, "name", "file"))
    with open(f, "rb") if is_path else nullcontext(f) as file:
        begin = file.read(max(BYTES, len(LEGACY)))
        file.seek(-len(begin), os.SEEK_CUR)
        legacy = begin.startswith(LEGACY)
        try:
            reader = LegacyFile(file, name, map_location) if legacy else ZipArchive(file, name, map_location)
            return reader.load(weights_only is not False)
        except PellucidError:
            raise
        except pickle.UnpicklingError as error:
            raise FormatError(f"{name}: its pickle is broken ({error!s:.100}).") from None
        except (zipfile.BadZipFile, EOFError, ValueError, RuntimeError, LookupError, struct.error) as error:
            if not legacy and not zipfile.is_zipfile(file):
                refuse(name, begin, "a zip archive, such as torch.save writes,")
            raise FormatError(
                f"{name}: is no file as torch.save writes it ({error!s:.100}). Download or save it anew."
            ) from None
