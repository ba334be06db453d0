"""What a tensor looks like, apart from where it starts: interned, so that a plan is found by identity."""

from __future__ import annotations

from functools import cached_property
from sys import getrefcount
from typing import TYPE_CHECKING

from .dtypes import DType
from .shape import Size, contiguous_strides, index, is_contiguous

if TYPE_CHECKING:
    from ..device import device as Device

_interned: dict[tuple, Meta] = {}
# A program that meets ever new shapes must not keep them all: past so many, those that nobody else holds go.
MOST_METAS = 6144
# After how many: more where more are held.
_most = [MOST_METAS]


class Meta:
    """Shape, strides (in elements), dtype and device of a tensor. Make one with `meta`; equal ones are the
    same object."""

    def __init__(self, shape: Size, strides: tuple[int, ...], dtype: DType, device: Device):
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.numel = shape.numel()
        self.is_contiguous = is_contiguous(shape, strides)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of a contiguous tensor of this kind on its device."""
        size = (
            self.dtype.itemsize
            if self.device.type == "webgpu" or self.dtype.numpy is None
            else self.dtype.numpy.itemsize
        )
        return self.numel * size

    def like(self, shape=None, dtype: DType | None = None) -> Meta:
        """A contiguous meta on the same device."""
        return meta(self.shape if shape is None else shape, dtype or self.dtype, self.device)

    def __reduce__(self):
        return meta, (tuple(self.shape), self.dtype, self.device, self.strides)

    def __repr__(self) -> str:
        return f"Meta({tuple(self.shape)}, strides={self.strides}, {self.dtype}, {self.device})"


def meta(shape, dtype: DType, device: Device, strides: tuple[int, ...] | None = None) -> Meta:
    """The interned meta; contiguous unless ``strides`` are given."""
    shape = tuple(shape)
    if strides is None:
        strides = contiguous_strides(shape)
    key = (shape, strides, dtype, device)
    found = _interned.get(key)
    if found is None:
        # Whatever a caller did not look at: nothing but Python's integers becomes a byte count or an offset.
        shape = tuple([index(n, "a length") for n in shape])
        strides = tuple([index(n, "a stride") for n in strides])
        key = (shape, strides, dtype, device)
        if len(_interned) >= _most[0]:
            _thin()
        # Another thread may have been quicker.
        found = _interned.setdefault(key, Meta(Size(shape), strides, dtype, device))
    return found


def differences(have: Meta, wanted: Meta) -> str:
    """In what a gradient differs from what it must be like; nothing if it fits."""
    if have is wanted:
        return ""
    pairs = (
        ("shape", tuple(have.shape), tuple(wanted.shape)),
        ("dtype", have.dtype, wanted.dtype),
        ("device", have.device, wanted.device),
    )
    return " and ".join(f"{what} {a}, where {b} is needed" for what, a, b in pairs if a != b)


def _thin() -> None:
    for key in list(_interned):
        found = _interned.get(key)
        # By the table, this name, and the question itself.
        if getrefcount(found) <= 3:
            _interned.pop(key, None)
    _most[0] = max(MOST_METAS, 2 * len(_interned))
