"""Reading files of `torch.save`, without executing anything unless asked to."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

from ..device import CPU, get_default_device, resolved
from ..device import device as Device
from ..errors import ArgumentError, DeviceError, FormatError
from ..nn.parameter import Parameter
from ..tensors.construct import tensor
from ..tensors.dtypes import DType, bfloat16
from ..tensors.meta import meta
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from ..weights.fields import shown
from ..weights.formats.pytorch import legacy_pickles
from ..weights.formats.unpickler import Unpickler, names, whole
from .compat import module_of
from .safe_globals import allowed


class _Reader(ABC):
    """Makes tensors of what a pickle says of them, and of bytes elsewhere in the file."""

    def __init__(self, file: BinaryIO, name: str, map_location: Any):
        self._file, self._name = file, name
        gives = callable(map_location) and not isinstance(map_location, Device)
        self._function: Any = map_location if gives else None
        self._to: Any = None if gives else map_location
        self._bases: dict[str, Tensor] = {}

    @abstractmethod
    def load(self, weights_only: bool) -> Any:
        """The value that was saved."""

    @abstractmethod
    def _bytes(self, key: str) -> bytes:
        """What lies in the file of a storage."""

    def _checked(self, named: tuple) -> tuple[DType, str, str, int]:
        """The dtype, key, place and number of elements of a storage, as a pickle names it."""
        # Files before PyTorch 1.6 have a sixth for a view of another storage, which PyTorch left empty.
        if len(named) not in (5, 6) or named[0] != "storage" or (len(named) == 6 and named[5] is not None):
            raise FormatError(f"{self._name}: a storage is named by {len(named)} values, not five.")
        _, d, key, place, numel = named[:5]
        if not (
            isinstance(d, DType) and isinstance(key, str) and isinstance(place, str) and type(numel) is int
        ):
            raise FormatError(f"{self._name}: a storage is named by values of other types.")
        return d, key, place, numel

    def _storage(self, named: tuple) -> Tensor:
        """All elements of a storage, as one tensor."""
        d, key, place, numel = self._checked(named)
        base = self._bases.get(key)
        if base is None:
            data = self._bytes(key)
            if numel < 0 or len(data) != numel * d.itemsize:
                raise FormatError(
                    f"{self._name}: storage {key[:40]!r} has {len(data)} bytes, not {numel} elements of {d}."
                )
            base = self._bases[key] = self._placed(data, d, place)
        if base.dtype is not d or base.numel() != numel:
            raise FormatError(f"{self._name}: storage {key[:40]!r} is named in two ways.")
        return base

    def _placed(self, data: bytes, d: DType, place: str) -> Tensor:
        """A storage's elements where `map_location` wants them."""
        if self._function is None:
            return _elements(data, d, self._device(place))
        base = _elements(data, d, CPU)
        moved = self._function(base, place)
        if moved is None:
            return base.to(self._device(place))
        if not isinstance(moved, Tensor):
            raise ArgumentError(
                f"load: map_location gives a {type(moved).__name__}. Let it give the storage, moved or not."
            )
        return moved

    def _device(self, place: str) -> Device:
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


class ZipArchive(_Reader):
    """A zip file: a pickle, and a record for each storage."""

    def __init__(self, file: BinaryIO, name: str, map_location: Any):
        super().__init__(file, name, map_location)
        self._zip = zipfile.ZipFile(file)
        self._records = {i.filename.partition("/")[2]: i for i in self._zip.infolist()}
        self._left = sum(i.file_size for i in self._zip.infolist() if i.compress_type == zipfile.ZIP_STORED)

    def load(self, weights_only: bool) -> Any:
        if "data.pkl" not in self._records:
            raise FormatError(f"{self._name}: holds no data.pkl, so torch.save did not write it.")
        if "byteorder" in self._records and self._read("byteorder") != b"little":
            raise FormatError(f"{self._name}: its numbers are not little endian. Save it on another machine.")
        if "constants.pkl" in self._records:
            raise FormatError(f"{self._name}: is a TorchScript program, not weights. Save its state_dict().")
        data = self._read("data.pkl")
        given = data, self._name, self._tensor, self._parameter, self._storage
        if weights_only:
            return Unpickler(*given, allowed=allowed()).load()
        return _Trusted(*given, self._device).load()

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

    def _bytes(self, key: str) -> bytes:
        if f"data/{key}" not in self._records:
            raise FormatError(f"{self._name}: there is no record of storage {key[:40]!r}.")
        return self._read(f"data/{key}")


class LegacyFile(_Reader):
    """A file of PyTorch before 1.6: pickles one after another, then the storages.

    Holds tensors and containers only. Whole modules of that time are of classes that have changed since, in
    PyTorch as well.
    """

    def load(self, weights_only: bool) -> Any:
        self._data = self._file.read()
        widths: dict[str, int] = {}

        def seen(named: tuple) -> None:
            d, key, *_ = self._checked(named)
            widths[key] = d.itemsize

        def nothing(*parts: Any) -> None:
            """A tensor, while only the storages are asked for."""

        try:
            _, keys, at = legacy_pickles(self._name, self._data, nothing, nothing, seen)
        except FormatError as error:
            if weights_only:
                raise
            raise FormatError(
                f"{self._name}: holds more than tensors and containers, and PyTorch before 1.6 wrote it. "
                "Load it there and save its state_dict()."
            ) from error
        self._places: dict[str, tuple[int, int]] = {}
        for key in keys:
            numel = int.from_bytes(self._data[at : at + 8], "little", signed=True)
            begin, at = at + 8, at + 8 + numel * widths.get(key, 0)
            if key not in widths or numel < 0 or at > len(self._data):
                raise FormatError(
                    f"{self._name}: storage {shown(key)} would end at byte {at:,} of {len(self._data):,}. "
                    "It is cut short; download it again."
                )
            self._places[key] = begin, at
        value, *_ = legacy_pickles(self._name, self._data, self._tensor, self._parameter, self._storage)
        return value

    def _bytes(self, key: str) -> bytes:
        if key not in self._places:
            raise FormatError(f"{self._name}: storage {shown(key)} is not in the file. It is damaged.")
        begin, end = self._places[key]
        return self._data[begin:end]


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
