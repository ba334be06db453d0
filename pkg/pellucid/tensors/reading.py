"""Reading values: what waits for the device, and its awaitable twins."""

from __future__ import annotations

from struct import unpack_from
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..device.cpu import CpuStorage, as_array
from ..device.stream import stream
from ..errors import ArgumentError, DeviceError, DTypeError, GradientError, ShapeError
from . import dtypes as dt
from .meta import Meta


class Readable:
    """The methods of Tensor that read its values: each waits for the device, each has an awaitable twin."""

    if TYPE_CHECKING:
        _storage: Any
        _meta: Meta
        _offset: int
        _node: Any

        def clone(self) -> Self: ...
        def detach(self) -> Self: ...

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The values as a numpy array. Waits for the device.

        Args:
            force: also for tensors that require grad, as ``detach().numpy()``.

        Returns:
            An array of the same shape and dtype (bfloat16 as float32). On ``cpu`` it shares memory with the
            tensor.

        Raises:
            GradientError: the tensor requires grad and ``force`` is not given.
            IndexOutOfRange: an op before this read met an index outside its table.

        Source: https://pytorch.org/docs/stable/generated/torch.Tensor.numpy.html
        """
        self._check_readable(force)
        if isinstance(self._storage, CpuStorage):
            m = self._meta
            return as_array(self._storage, m.dtype, m.shape, m.strides, self._offset)
        x = self._packed()
        return x._decode(x._bytes())

    async def numpy_async(self, *, force: bool = False) -> np.ndarray:
        """The awaitable twin of `numpy`, for places where Python cannot block."""
        self._check_readable(force)
        if isinstance(self._storage, CpuStorage):
            return self.numpy(force=force)
        x = self._packed()
        return x._decode(await stream().read_async(x._storage, *x._extent()))

    def _check_readable(self, force: bool) -> None:
        if self._node is not None and not force:
            raise GradientError("numpy: the tensor requires grad. Use x.detach().numpy().")
        if self._meta.dtype.is_quantized:
            raise DTypeError(
                f"numpy: a weight of {self._meta.dtype} has no elements to read. Call .dequantize() first."
            )
        if self._meta.device.type == "meta":
            raise DeviceError(
                "numpy: a tensor on the meta device has a shape and no values. Make it on 'webgpu' or 'cpu' "
                "to read it."
            )

    def _packed(self) -> Readable:
        """Contiguous and beginning at a word, so that a plain copy can read it."""
        x = self.detach()
        if not x._meta.is_contiguous or x._offset * x._meta.dtype.itemsize % 4:
            x = x.clone()
        return x

    def _extent(self) -> tuple[int, int]:
        return self._offset * self._meta.dtype.itemsize, self._meta.nbytes

    def _bytes(self):
        """The bytes of what is packed. A function that is captured is split here."""
        s = stream()
        return s.read(self._storage, *self._extent()) if s.capturing is None else s.capturing.read(self)

    def _decode(self, data) -> np.ndarray:
        m = self._meta
        if m.dtype is dt.bfloat16:
            words = np.frombuffer(data, np.uint16, m.numel).astype(np.uint32) << 16
            return words.view(np.float32).reshape(m.shape)
        return np.frombuffer(data, m.dtype.numpy, m.numel).reshape(m.shape).copy()

    def _number(self, data):
        """The only element. An array for it takes longer to make than its bytes to travel."""
        element = self._meta.dtype.numpy
        if element is None or self._meta.dtype is dt.bfloat16 or self._meta.dtype.is_complex:
            return self._decode(data).item()
        return unpack_from(element.char, data)[0]

    def item(self):
        """The value of a tensor of one element, as a Python number. Waits for the device.

        Raises:
            ShapeError: there is not exactly one element.

        Source: https://pytorch.org/docs/stable/generated/torch.Tensor.item.html
        """
        self._check_single()
        self._check_readable(force=True)
        if isinstance(self._storage, CpuStorage):
            return self.numpy(force=True).item()
        x = self._packed()
        return x._number(x._bytes())

    async def item_async(self):
        """The awaitable twin of `item`."""
        self._check_single()
        self._check_readable(force=True)
        if isinstance(self._storage, CpuStorage):
            return self.numpy(force=True).item()
        x = self._packed()
        return x._number(await stream().read_async(x._storage, *x._extent()))

    def _check_single(self) -> None:
        if self._meta.numel != 1:
            raise ShapeError(
                f"item: a tensor of shape {tuple(self._meta.shape)} has {self._meta.numel} elements, not "
                "one. Use tolist() or reduce it first."
            )

    def tolist(self):
        """The values as nested lists of Python numbers. Waits for the device."""
        return self.detach().numpy().tolist()

    async def tolist_async(self):
        """The awaitable twin of `tolist`."""
        return (await self.detach().numpy_async()).tolist()

    def tolist_later(self) -> ListRead:
        """Begin to read the values and go on; work that is asked for from here on does not delay them.

        Returns:
            An object with ``result()``, which waits, and ``result_async()``, which is awaited; both give what
            `tolist` gives.

        Example:
            >>> import pellucid as torch
            >>> torch.arange(3, device="cpu").tolist_later().result()
            [0, 1, 2]
        """
        return ListRead(self)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        a = self.numpy()
        return a if dtype is None else a.astype(dtype)

    def __bool__(self) -> bool:
        if self._meta.numel != 1:
            raise ShapeError(
                f"bool: a tensor of {self._meta.numel} elements is neither true nor false. Use .any() or "
                ".all()."
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        m = self._meta
        if m.numel != 1 or not (m.dtype.is_integer or m.dtype is dt.bool_):
            raise ArgumentError(
                f"only integer tensors of one element can be an index, not {m.dtype} of shape "
                f"{tuple(m.shape)}."
            )
        return int(self.item())


class ListRead:
    """Values on their way, begun by `Tensor.tolist_later`.

    Args:
        x: the tensor.
    """

    def __init__(self, x: Readable):
        x._check_readable(force=True)
        self._here = x.detach() if isinstance(x._storage, CpuStorage) else None
        if self._here is None:
            self._packed = x._packed()
            self._read = stream().begin_read(self._packed._storage, *self._packed._extent())

    def result(self):
        """The values as nested lists, waiting for them."""
        return (
            self._here.tolist()
            if self._here is not None
            else self._packed._decode(self._read.result()).tolist()
        )

    async def result_async(self):
        """The awaitable twin of `result`."""
        if self._here is not None:
            return self._here.tolist()
        return self._packed._decode(await self._read.result_async()).tolist()
