"""Checkpoints of ``torch.save`` (``.bin``, ``.pt``, ``.pth``): their tensors, known from the pickle alone.

Storages lie in the file as they are, so tensors are streamed from it by Range, as those of safetensors.
Nothing in a file is executed.

Source: torch/serialization.py of PyTorch (`_save`, `_legacy_save`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...errors import FormatError
from ...tensors.dtypes import DType
from ..checkpoint import MOST_DIMENSIONS, Checkpoint, TensorInfo, check_layout, check_name
from ..derived import DerivedSource
from ..fields import shown
from ..header import Header
from ..source import Source
from .archive import Archive
from .unpickler import Unpickler, whole

# A pickle of the number that begins files of PyTorch before 1.6.
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LONGEST_PICKLE = 64 << 20
_FIRST_PICKLE = 1 << 20
_LONGEST_NAME = 1 << 16
_MOST_VALUES = 1 << 20  # containers may hold each other many times over
_MOST_METADATA = 1 << 12
_VERSION = 1001  # of the files before 1.6


class _Storage(NamedTuple):
    """A storage as a pickle names it: its elements' type and number, and which file or turn is its."""

    dtype: DType
    key: str
    numel: int


class _View(NamedTuple):
    """A tensor as a pickle names it: elements of a storage."""

    base: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read(packed: Archive):
    """Steps that open a zip of ``torch.save``.

    Args:
        packed: its directory, without the folder's name.

    Returns:
        A `Checkpoint`.

    Raises:
        FormatError: the pickle is broken or asks for more than tensors and containers, or what it says does
            not fit the file.
    """
    where = packed.source.name
    if "constants.pkl" in packed.entries:
        raise FormatError(f"{where}: is a TorchScript program, not weights. Save its state_dict().")
    if "byteorder" in packed.entries:
        order = yield from packed.document("byteorder", 16)
        if order != b"little":
            raise FormatError(f"{where}: its numbers are not little endian. Save it on another machine.")
    data = yield from packed.document("data.pkl", _LONGEST_PICKLE)
    views, metadata = _views(where, Unpickler(data, where, _view, _parameter, _storages(where)).load())
    places: dict[str, int] = {}
    for base in {view.base.key: view.base for view in views.values()}.values():
        entry = packed.entry(f"data/{base.key}")
        if entry.size != base.numel * base.dtype.itemsize:
            raise FormatError(
                f"{where}: storage {shown(base.key)} has {entry.size:,} bytes, not {base.numel:,} of "
                f"{base.dtype}."
            )
        places[base.key] = yield from packed.locate(entry)
    return _checkpoint(packed.source, views, places, metadata)


def read_legacy(header: Header):
    """Steps that open a file of PyTorch before 1.6: pickles one after another, then the storages.

    Returns:
        A `Checkpoint`.

    Raises:
        FormatError: as `read`.
    """
    source, wanted = header.source, _FIRST_PICKLE
    header.longest = _LONGEST_PICKLE
    assert source.size is not None
    while True:
        # How long the pickles are is known when they have been read.
        wanted = min(wanted, source.size, _LONGEST_PICKLE)
        yield from header.need(wanted, "the pickles")
        try:
            named = _view, _parameter, _storages(source.name)
            value, keys, end = legacy_pickles(source.name, bytes(header.bytes), *named)
            break
        except FormatError:
            if wanted == min(source.size, _LONGEST_PICKLE):
                raise
            wanted *= 4
    header.finish(end)
    views, metadata = _views(source.name, value)
    known = {view.base.key: view.base for view in views.values()}
    places: dict[str, int] = {}
    for key in keys:
        count = yield source, end, end + 8
        if len(count) < 8:
            raise FormatError(f"{source.name}: ends at byte {end:,}, before storage {shown(key)}.")
        numel = int.from_bytes(count, "little", signed=True)
        base = known.get(key)
        if base is None or numel != base.numel:
            raise FormatError(
                f"{source.name}: storage {shown(key)} has {numel:,} elements at byte {end:,}, and its pickle "
                f"says {'nothing of it' if base is None else f'{base.numel:,}'}. The file is damaged."
            )
        places[key] = end + 8
        end += 8 + numel * base.dtype.itemsize
    return _checkpoint(source, views, places, metadata)


def legacy_pickles(
    where: str, data: bytes, tensor: Callable, parameter: Callable, storage: Callable[[tuple], Any]
) -> tuple[Any, list[str], int]:
    """What was saved in a file of PyTorch before 1.6.

    Args:
        where: what errors call the file.
        data: its beginning at least.
        tensor, parameter, storage: as for `Unpickler`.

    Returns:
        The value, the keys of its storages in their order, and where they begin.

    Raises:
        FormatError: it is broken, or asks for more than tensors and containers.
    """
    values, at = [], 0
    for _ in range(5):
        unpickler = Unpickler(data[:_LONGEST_PICKLE], where, tensor, parameter, storage, at)
        values.append(unpickler.load())
        at = unpickler.end
    _, version, system, value, keys = values
    if version != _VERSION or not isinstance(system, dict) or system.get("little_endian") is not True:
        raise FormatError(f"{where}: version {shown(version)}, or big endian, is not read. Save it anew.")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise FormatError(f"{where}: the list of its storages is damaged.")
    return value, keys, at


def _storages(where: str) -> Callable[[tuple], _Storage]:
    """Makes storages of how a pickle names them."""

    def storage(named: tuple) -> _Storage:
        if len(named) not in (5, 6) or named[0] != "storage" or (len(named) == 6 and named[5] is not None):
            raise FormatError(f"{where}: a storage is named by {len(named)} values, not five.")
        _, d, key, _, numel = named[:5]
        if not (isinstance(d, DType) and isinstance(key, str) and type(numel) is int and numel >= 0):
            raise FormatError(f"{where}: a storage is named by values of other types.")
        made = storages.setdefault(key, _Storage(d, key, numel))
        if made != (d, key, numel):
            raise FormatError(f"{where}: storage {shown(key)} is named in two ways.")
        return made

    storages: dict[str, _Storage] = {}
    return storage


def _view(base: Any, offset: Any, size: Any, stride: Any, *more: Any) -> _View:
    if not isinstance(base, _Storage):
        raise FormatError("a tensor is made of something else than a storage")
    ((offset,), size, stride) = whole((offset,), "an offset"), whole(size, "a shape"), whole(stride, "steps")
    if len(size) != len(stride) or len(size) > MOST_DIMENSIONS:
        raise FormatError(f"a tensor has {len(size)} lengths and {len(stride)} steps")
    end = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if 0 not in size and end > base.numel:
        raise FormatError(f"a tensor ends at element {end} of a storage of {base.numel}")
    if prod(size) > base.numel:
        raise FormatError(f"a tensor of shape {size} is spread over {base.numel} elements. Save its clone()")
    return _View(base, offset, size, stride)


def _parameter(data: Any, *more: Any) -> _View:
    if not isinstance(data, _View):
        raise FormatError("a parameter is made of something else than a tensor")
    return data


def _views(where: str, value: Any) -> tuple[dict[str, _View], dict[str, Any]]:
    """Tensors by name, and numbers and texts: what lies in containers has their keys, joined by dots."""
    views: dict[str, _View] = {}
    metadata: dict[str, Any] = {}
    for name, inner in _walk(where, value):
        if isinstance(inner, _View):
            check_name(where, name, _LONGEST_NAME)
            if views.setdefault(name, inner) is not inner:
                raise FormatError(f"{where}: has two tensors {shown(name)}.")
        elif isinstance(inner, (str, int, float, bool)) and len(metadata) < _MOST_METADATA:
            metadata[name] = inner
    return views, metadata


def _walk(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of containers by name, in order."""
    waiting: list[tuple[str, Any]] = [("", value)]
    left = _MOST_VALUES
    while waiting:
        name, inner = waiting.pop()
        left -= 1
        inside: list[tuple[Any, Any]] = []
        if isinstance(inner, dict):
            inside = list(inner.items())
        elif isinstance(inner, (list, tuple)) and not isinstance(inner, (_View, _Storage)):
            inside = list(enumerate(inner))
        else:
            yield name, inner
        left -= len(inside)
        if left < 0 or len(name) > _LONGEST_NAME:
            raise FormatError(
                f"{where}: its containers hold each other too often. Save a plain state_dict()."
            )
        waiting += [(f"{name}.{key}" if name else str(key), v) for key, v in reversed(inside)]


def _checkpoint(
    source: Source, views: dict[str, _View], places: dict[str, int], metadata: dict[str, Any]
) -> Checkpoint:
    missing = next((v.base.key for v in views.values() if v.base.key not in places), None)
    if missing is not None:
        raise FormatError(f"{source.name}: storage {shown(missing)} is not in the file. It is damaged.")
    storages = {v.base.key: v.base for v in views.values()}
    extents = [
        TensorInfo(key, (b.numel,), b.dtype.name, places[key], places[key] + b.numel * b.dtype.itemsize)
        for key, b in storages.items()
    ]
    assert source.size is not None
    check_layout(source.name, extents, 0, source.size, gaps=True)
    shards, infos = [source], []
    for name, view in views.items():
        width = view.base.dtype.itemsize
        start, nbytes = places[view.base.key] + view.offset * width, prod(view.shape) * width
        shard = 0
        if not _is_contiguous(view):
            span = 1 + sum((n - 1) * step for n, step in zip(view.shape, view.strides, strict=True))
            shard = len(shards)
            shards.append(DerivedSource(source, start, start + span * width, nbytes, _in_order(view)))
            start = 0
        infos.append(TensorInfo(name, view.shape, view.base.dtype.name, start, start + nbytes, shard))
    return Checkpoint(source.name, "pytorch", infos, metadata, shards)


def _is_contiguous(view: _View) -> bool:
    expected = 1
    for n, step in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if n > 1 and step != expected:
            return 0 in view.shape
        expected *= n
    return True


def _in_order(view: _View) -> Callable[[bytes], bytes]:
    """What makes contiguous elements of a view's."""

    def make(data: bytes) -> bytes:
        width = view.base.dtype.itemsize
        elements = np.frombuffer(data, np.dtype(f"V{width}"))
        strides = [step * width for step in view.strides]
        return np.lib.stride_tricks.as_strided(elements, view.shape, strides, writeable=False).tobytes()

    return make
