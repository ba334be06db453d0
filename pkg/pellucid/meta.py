"""What a tensor looks like, apart from where it starts: interned, so that a plan is found by identity."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from .dtypes import DType
from .shape import Size, contiguous_strides, is_contiguous

if TYPE_CHECKING:
    from .device import device as Device

_interned: dict[tuple, Meta] = {}
# A program that meets ever new shapes must not keep them all; after this many the table starts anew (old
# metas stay valid).
_LIMIT = 1 << 16


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
        if len(_interned) >= _LIMIT:
            _interned.clear()
        found = _interned[key] = Meta(Size(shape), strides, dtype, device)
    return found
