"""Making tensors from data: Python numbers and lists, numpy arrays, other tensors."""

from __future__ import annotations

import numpy as np

from . import dtypes as dt
from .device import device as Device
from .device import get_default_device
from .device.cpu import CpuStorage, rounded
from .device.stream import Storage, stream
from .dtypes import DType, from_numpy_dtype
from .errors import DTypeError, ShapeError
from .kernel import physical
from .meta import meta
from .ops import creation
from .tensor import Tensor


def upload(array: np.ndarray, d: DType, kind: str = "activation") -> Tensor:
    """A webgpu tensor with the values of an array that already has dtype ``d``."""
    physical(d)
    if d is dt.bfloat16:
        array = (np.asarray(array, np.float32, order="C").view(np.uint32) >> 16).astype(np.uint16)
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    storage = stream().upload(data, kind) if data.size else Storage(0, kind)
    return Tensor(storage, meta(array.shape, d, Device("webgpu")), 0)


def tensor(data, *, dtype: DType | None = None, device=None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of the data.

    Args:
        data: a number, nested lists, a numpy array or a tensor.
        dtype: inferred if not given: bool, int64 or the default float for Python data, else the array's own.
        device: where; the default device if not given.
        requires_grad: whether to record what is computed from it.

    Raises:
        DTypeError: the device has no such dtype (float64 on webgpu).
        ShapeError: nested lists are ragged.

    Source: https://pytorch.org/docs/stable/generated/torch.tensor.html

    Example:
        >>> import pellucid as torch
        >>> torch.tensor([[1, 2], [3, 4]], device="cpu").sum().item()
        10
    """
    if isinstance(data, Tensor):
        out = data.detach().to(device or data.device, dtype or data.dtype, copy=True)
        return out.requires_grad_(requires_grad)
    where = get_default_device() if device is None else Device(device)
    if isinstance(data, (list, tuple)) and _holds_tensors(data):
        data = _values(data)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        d = dtype or from_numpy_dtype(array.dtype)
    else:
        try:
            array = np.asarray(data)
        except ValueError as error:
            raise ShapeError(f"tensor: nested lists must have equal lengths ({error}).") from None
        if array.dtype.kind not in "biufc":
            raise TypeError(
                f"tensor: cannot make a tensor of {type(data).__name__}; give numbers, nested lists or an "
                "array."
            )
        if array.dtype == np.uint64:  # what numpy makes of Python integers past int64
            raise DTypeError(
                f"tensor: {array.max()} is larger than int64 holds. Give smaller integers, or floats."
            )
        d = dtype or dt.scalar_dtype(
            {"b": bool, "i": int, "u": int, "f": float, "c": complex}[array.dtype.kind]
            if array.size
            else float
        )
    if where.type == "meta":
        out = creation.empty(array.shape, dtype=d, device=where)
    elif where.type == "webgpu":
        physical(d)
        out = upload(rounded(array, d), d)
    else:
        out = Tensor(
            CpuStorage(np.array(rounded(array, d), order="C", copy=True)), meta(array.shape, d, where), 0
        )
    return out.requires_grad_() if requires_grad else out


def _holds_tensors(data) -> bool:
    return any(isinstance(v, Tensor) or (isinstance(v, (list, tuple)) and _holds_tensors(v)) for v in data)


def _values(data):
    return [
        v.tolist() if isinstance(v, Tensor) else _values(v) if isinstance(v, (list, tuple)) else v
        for v in data
    ]


def as_tensor(data, *, dtype: DType | None = None, device=None) -> Tensor:
    """`tensor`, but a tensor that already fits is returned as it is."""
    if isinstance(data, Tensor):
        return data.to(device or data.device, dtype or data.dtype)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray) -> Tensor:
    """A cpu tensor that shares memory with the array, whatever its strides.

    Raises:
        DTypeError: numpy's type has no counterpart.

    Source: https://pytorch.org/docs/stable/generated/torch.from_numpy.html
    """
    d = from_numpy_dtype(array.dtype)
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    size = array.itemsize
    begin = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    if not owner.flags.forc or begin % size or any(s % size for s in array.strides):
        # Fields of a record, say: no strides in elements lead there.
        owner = array = np.ascontiguousarray(array)
        begin = 0
    strides = tuple(s // size for s in array.strides)
    return Tensor(
        CpuStorage(owner.ravel(order="K")), meta(array.shape, d, Device("cpu"), strides), begin // size
    )


def rebuild(array: np.ndarray, dtype: str, device: str, requires_grad: bool) -> Tensor:
    """What a pickled tensor becomes."""
    return tensor(array, dtype=dt.NAMES[dtype], device=device, requires_grad=requires_grad)
