"""Files of `torch.save`: written as PyTorch writes them, and read without executing anything."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from ..device import device as Device
from ..device import get_default_device, resolved
from ..device.cpu import CpuStorage
from ..errors import ArgumentError, DeviceError, FormatError, PellucidError
from ..nn.parameter import Parameter
from ..tensors.construct import tensor
from ..tensors.dtypes import DType, bfloat16
from ..tensors.meta import meta
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from ..weights.formats.unpickler import Unpickler, names, whole
from ..weights.kind import BYTES, refuse
from ..weights.saving import element_bytes, replacing
from .compat import module_of
from .pickler import Pickler

__all__ = ["load", "save"]

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
        map_location: the device of the tensors, or a dict from places that files name to devices. If None,
            what the file places on "cpu", PyTorch's default device, comes to the default device here.
        pickle_module: not taken.
        weights_only: True, or None for the same: tensors and containers. False reads whole modules and other
            objects, too, by Python's pickle, which executes whatever the file says: only for files of those
            whom you trust. Their classes must be importable; PyTorch's become Pellucid's.
        mmap: accepted; bytes are read when a tensor is made.

    Raises:
        ArgumentError: ``pickle_module`` is given, or ``map_location`` is a function.
        DeviceError: the file places tensors on a device that is not here; give ``map_location``.
        FormatError: it is no such file, is broken, or asks for more than tensors and containers, with
            ``weights_only=False`` for a class that is not here.

    Source: https://pytorch.org/docs/stable/generated/torch.load.html
    """
    if pickle_module is not None:
        raise ArgumentError("load: reads with an unpickler of its own. Leave pickle_module out.")
    name = os.fspath(f) if isinstance(f, (str, os.PathLike)) else getattr(f, "name", "file")
    try:
        with zipfile.ZipFile(f) as archive:
            return _Archive(archive, str(name), map_location).load(weights_only is not False)
    except PellucidError:
        raise
    except pickle.UnpicklingError as error:
        raise FormatError(f"{name}: its pickle is broken ({error!s:.100}).") from None
    except (zipfile.BadZipFile, EOFError, ValueError, RuntimeError, LookupError, struct.error) as error:
        if not zipfile.is_zipfile(f):
            refuse(str(name), _begin(f), "a zip archive, such as torch.save writes,")
        raise FormatError(
            f"{name}: is no zip file as torch.save writes it ({error!s:.100}). Save it anew with PyTorch 1.6 "
            "or newer."
        ) from None


def _begin(f: Any) -> bytes:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return file.read(BYTES)
    f.seek(0)
    return f.read(BYTES)


class _Archive:
    """A file of `torch.save`: a pickle, and the bytes of storages beside it."""

    def __init__(self, archive: zipfile.ZipFile, name: str, map_location: Any):
        self._zip, self._name, self._to = archive, name, map_location
        self._records = {i.filename.partition("/")[2]: i for i in archive.infolist()}
        self._left = sum(i.file_size for i in archive.infolist() if i.compress_type == zipfile.ZIP_STORED)
        self._bases: dict[str, Tensor] = {}

    def load(self, weights_only: bool) -> Any:
        if "data.pkl" not in self._records:
            raise FormatError(f"{self._name}: holds no data.pkl, so torch.save did not write it.")
        if "byteorder" in self._records and self._read("byteorder") != b"little":
            raise FormatError(f"{self._name}: its numbers are not little endian. Save it on another machine.")
        if "constants.pkl" in self._records:
            raise FormatError(f"{self._name}: is a TorchScript program, not weights. Save its state_dict().")
        data = self._read("data.pkl")
        given = data, self._name, self._tensor, self._parameter, self._storage
        return (Unpickler(*given) if weights_only else _Trusted(*given, self._device)).load()

    def _read(self, record: str) -> bytes:
        info = self._records[record]
        # What is stored as it is cannot be larger than the file; records may not lie over each other either.
        if (
            info.compress_type != zipfile.ZIP_STORED
            or info.file_size != info.compress_size
            or info.flag_bits & 1
        ):
            raise FormatError(f"{self._name}: record {record!r} is compressed, which torch.save does not do.")
        self._left -= info.file_size
        if self._left < -(1 << 20) or info.file_size > _size_of(self._zip):
            raise FormatError(f"{self._name}: records are longer than the file.")
        return self._zip.read(info)

    def _storage(self, named: tuple) -> Tensor:
        """All elements of a storage, as one tensor."""
        if len(named) != 5 or named[0] != "storage":
            raise FormatError(f"{self._name}: a storage is named by {len(named)} values, not five.")
        _, d, key, place, numel = named
        if not (
            isinstance(d, DType) and isinstance(key, str) and isinstance(place, str) and type(numel) is int
        ):
            raise FormatError(f"{self._name}: a storage is named by values of other types.")
        base = self._bases.get(key)
        if base is None:
            if f"data/{key}" not in self._records:
                raise FormatError(f"{self._name}: there is no record of storage {key[:40]!r}.")
            data = self._read(f"data/{key}")
            if numel < 0 or len(data) != numel * d.itemsize:
                raise FormatError(
                    f"{self._name}: storage {key[:40]!r} has {len(data)} bytes, not {numel} elements of {d}."
                )
            base = self._bases[key] = _elements(data, d, self._device(place))
        if base.dtype is not d or base.numel() != numel:
            raise FormatError(f"{self._name}: storage {key[:40]!r} is named in two ways.")
        return base

    def _device(self, place: str) -> Device:
        if callable(self._to):
            raise ArgumentError("load: map_location is a device or a dict of devices here, no function.")
        to = self._to.get(place) if isinstance(self._to, dict) else self._to
        if to is not None:
            return resolved(to)
        if place in ("cpu", "webgpu"):
            return get_default_device()
        raise DeviceError(f"load: a tensor was on {place!r}, which is not here. Give map_location='webgpu'.")

    def _tensor(
        self, base: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, *more: Any
    ) -> Tensor:
        if not isinstance(base, Tensor) or type(requires_grad) is not bool:
            raise FormatError("a tensor is made of something else than a storage")
        (offset,), size, stride = (
            whole((offset,), "an offset"),
            whole(size, "a shape"),
            whole(stride, "steps"),
        )
        if len(size) != len(stride) or len(size) > 64:
            raise FormatError(f"a tensor has {len(size)} lengths and {len(stride)} steps")
        end = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
        if 0 not in size and end > base.numel():
            raise FormatError(f"a tensor ends at element {end} of a storage of {base.numel()}")
        out = Tensor(base._storage, meta(Size(size), base.dtype, base.device, stride), offset)
        return out.requires_grad_(requires_grad)

    @staticmethod
    def _parameter(data: Any, requires_grad: Any, hooks: Any) -> Parameter:
        if not isinstance(data, Tensor):
            raise FormatError("a parameter is made of something else than a tensor")
        return Parameter(data, requires_grad)


class _Trusted(pickle.Unpickler):
    """Python's own unpickler, which executes what a pickle says. PyTorch's names are found here."""

    def __init__(
        self,
        data: bytes,
        name: str,
        tensor: Callable,
        parameter: Callable,
        storage: Callable[[tuple], Any],
        device: Callable[[str], Device],
    ):
        super().__init__(io.BytesIO(data))
        self._name, self.persistent_load = name, storage
        # The device of a module's tensors is also the one that its attributes name.
        self._made = {
            **names(tensor, parameter), "collections OrderedDict": OrderedDict,
            "torch device": lambda place, index=None: device(place),
        }  # fmt: skip

    def find_class(self, module: str, name: str) -> Any:
        found = self._made.get(f"{module} {name}")
        if found is not None:
            return found
        head, _, path = module.partition(".")
        try:
            if head != "torch":
                return super().find_class(module, name)
            place = module_of(_PLACES.get(path, path)) if path else import_module("pellucid")
            layers = import_module("pellucid.nn") if path.startswith("nn.modules.") else place
            return getattr(layers, name, None) or getattr(place, name)
        except (AttributeError, ImportError) as error:
            raise FormatError(
                f"{self._name}: {module}.{name} is asked for, which is not here ({error!s:.200}). Define or "
                "import it before you load the file, under the name by which it was saved."
            ) from None


# Where PyTorch's compiled functions are, which say other modules of themselves.
_PLACES = {"_C._nn": "nn.functional"}


def _size_of(archive: zipfile.ZipFile) -> int:
    """The length of an archive's file in bytes."""
    assert archive.fp is not None
    at = archive.fp.tell()
    archive.fp.seek(0, os.SEEK_END)
    size = archive.fp.tell()
    archive.fp.seek(at)
    return size


def _elements(data: bytes, d: DType, where: Device) -> Tensor:
    if d is bfloat16:
        array = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        array = np.frombuffer(data, d.numpy)
    return tensor(array, dtype=d, device=where)
