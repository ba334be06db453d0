"""Making tensors from data: Python numbers and lists, numpy arrays, other tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..device import device as Device
from ..device import resolved
from ..device.cpu import CpuStorage, rounded
from ..device.stream import stream
from ..errors import ArgumentError, DTypeError, RangeError, ShapeError
from ..op.arguments import describe, element_type
from ..op.kernel.element_types import physical
from ..op.plan import NoStorage
from . import dtypes as dt
from .dtypes import DType, from_numpy_dtype
from .meta import Meta, meta
from .tensor import Tensor


def upload(array: np.ndarray, d: DType, kind: str = "activation") -> Tensor:
    """A webgpu tensor with the values of an array that already has dtype ``d``."""
    physical(d)
    if d is dt.bfloat16:
        array = (np.asarray(array, np.float32, order="C").view(np.uint32) >> 16).astype(np.uint16)
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return Tensor(stream().upload(data, kind), meta(array.shape, d, Device("webgpu")), 0)


def tensor(
    data, *, dtype: DType | None = None, device=None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of the data.

    Args:
        data: a number, nested lists (also of tensors of one element), a numpy array or a tensor.
        dtype: inferred if not given: bool, int64 or the default float for Python data, else the array's own;
            of a list the common one of what it holds.
        device: where; the default device if not given.
        requires_grad: whether to record what is computed from it.
        pin_memory: accepted for PyTorch's sake; no memory is pinned.

    Raises:
        DTypeError: the device has no such dtype (float64 on webgpu).
        ShapeError: nested lists are ragged, or hold a tensor of several elements.

    Source: https://pytorch.org/docs/stable/generated/torch.tensor.html

    Example:
        >>> import pellucid as torch
        >>> torch.tensor([[1, 2], [3, 4]], device="cpu").sum().item()
        10
    """
    dtype = None if dtype is None else element_type(dtype)
    if isinstance(data, Tensor):
        out = data.detach().to(
            data.device if device is None else device, data.dtype if dtype is None else dtype, copy=True
        )
        return out.requires_grad_(requires_grad)
    where = resolved(device)
    if isinstance(data, (list, tuple)) and _holds_tensors(data):
        kinds: set[DType] = set()
        data = _values(data, kinds)
        dtype = dtype or reduce(dt.promote_types, kinds)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        d = dtype or from_numpy_dtype(array.dtype)
    else:
        try:
            array = np.asarray(data)
        except ValueError as error:
            raise ShapeError(f"tensor: nested lists must have equal lengths ({error}).") from None
        if array.dtype.kind == "O" or (array.dtype.kind == "f" and array.ndim and dtype and dtype.is_integer):
            array = _of_each(np.asarray(data, object), array, dtype)
        if array.dtype.kind == "O" and array.size and all(isinstance(v, int) for v in array.flat):
            raise RangeError("tensor: an integer does not fit int64. Give smaller integers, or floats.")
        if array.dtype.kind not in "biufc":
            raise ArgumentError(
                f"tensor: cannot make a tensor of {type(data).__name__}; give numbers, nested lists or an "
                "array."
            )
        if array.dtype == np.uint64 and (
            dtype is None or dtype.is_integer
        ):  # what numpy makes of Python integers past int64
            raise RangeError(
                f"tensor: {array.max()} is larger than int64 holds. Give smaller integers, or floats."
            )
        kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[array.dtype.kind]
        if dtype is not None:
            d = dtype
        elif array.dtype.itemsize < np.dtype(kind).itemsize:  # of numpy's own numbers
            d = from_numpy_dtype(array.dtype)
        else:
            d = dt.scalar_dtype(kind if array.size else float)
        if array.size and d.is_integer and array.dtype.kind in "iuf":
            # Its least and its largest say so of all, and NaN is both.
            _check_fit((array.min().item(), array.max().item()), d)
    if array.dtype.kind not in "biufc":
        raise DTypeError(f"tensor: numpy dtype {array.dtype} has no numbers. Convert the array first.")
    if array.dtype.kind == "c" and not (d.is_complex or d.kind == "b"):
        raise DTypeError(f"tensor: {d} does not hold complex numbers. Take the real part first.")
    if where.type == "meta":
        out = Tensor(NoStorage(), meta(array.shape, d, where), 0)
    elif where.type == "webgpu":
        physical(d)
        out = upload(rounded(array, d), d)
    else:
        out = Tensor(
            CpuStorage(np.array(rounded(array, d), order="C", copy=True)), meta(array.shape, d, where), 0
        )
    return out if requires_grad is False or requires_grad is None else out.requires_grad_(requires_grad)


def _of_each(values: np.ndarray, array: np.ndarray, dtype: DType | None) -> np.ndarray:
    """The array of numbers of which some are floats or past 64 bits, where numpy's own does not do.

    Args:
        values: the numbers as Python has them. As floats, integers past 2**53 would be others.
        array: what numpy makes of them.
        dtype: what is asked for.

    Raises:
        RangeError: the integer dtype does not hold one of them.
    """
    if not all(isinstance(value, (int, float, np.number)) for value in values.flat):
        return array
    if dtype is None:
        return array if all(isinstance(value, int) for value in values.flat) else array.astype(np.float64)
    if not dtype.is_integer:
        return array.astype(np.float64)  # integers past 64 bits are as good as floats here
    _check_fit(values.flat, dtype)
    return values.astype(np.int64)


def _check_fit(values: Iterable[float], d: DType) -> None:
    """Refuse numbers that a dtype does not hold.

    Raises:
        RangeError: there are such.
    """
    for value in values:
        if not dt.holds(d, value):
            raise RangeError(f"tensor: {value} does not fit {d}. Give other numbers, or another dtype.")


def _holds_tensors(data) -> bool:
    return any(isinstance(v, Tensor) or (isinstance(v, (list, tuple)) and _holds_tensors(v)) for v in data)


def _values(data, kinds: set[DType]):
    """Nested lists with numbers in place of tensors, and the dtypes of all that they hold.

    Raises:
        ShapeError: a tensor has not one element.
    """
    values = []
    for v in data:
        if isinstance(v, (list, tuple)):
            values.append(_values(v, kinds))
            continue
        if isinstance(v, Tensor):
            if v.numel() != 1:
                raise ShapeError(
                    f"tensor: a list holds a tensor of shape {tuple(v.shape)}; a number is made of one of "
                    "one element. Use stack or cat."
                )
            kinds.add(v.dtype)
            v = v.item()
        elif isinstance(v, (np.ndarray, np.generic)) and not isinstance(v, float):
            kinds.add(from_numpy_dtype(v.dtype))
        elif isinstance(v, (bool, int, float, complex)):
            kinds.add(dt.scalar_dtype(type(v)))
        values.append(v)
    return values


def as_tensor(data, *, dtype: DType | None = None, device=None) -> Tensor:
    """`tensor`, but a tensor that already fits is returned as it is, and on ``cpu`` an array's memory is
    shared as by `from_numpy`."""
    if isinstance(data, Tensor):
        return data.to(data.device if device is None else device, data.dtype if dtype is None else dtype)
    where = resolved(device)
    if isinstance(data, np.ndarray) and where.type == "cpu":
        shared = from_numpy(data)
        return shared if dtype is None else shared.to(dtype)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray) -> Tensor:
    """A cpu tensor that shares memory with the array, also with negative strides.

    Raises:
        ArgumentError: it is no array.
        DTypeError: numpy's type has no counterpart.
        ShapeError: its elements do not lie a whole number of elements apart, as the fields of a record.

    Source: https://pytorch.org/docs/stable/generated/torch.from_numpy.html
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"from_numpy: takes a numpy array, not {describe(array)}. Use tensor.")
    d = from_numpy_dtype(array.dtype)
    owner, size = array, array.itemsize
    while isinstance(owner.base, np.ndarray) and not array.flags.c_contiguous:
        owner = owner.base
    if not owner.flags.forc and array.size and all(n >= 0 and n % size == 0 for n in array.strides):
        # Steps of another library's: the memory from the first element to the last one.
        reach = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
        owner = as_strided(array, (reach // size + 1,), (size,), writeable=array.flags.writeable)
    begin = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    if not owner.flags.forc or begin % size or any(s % size for s in array.strides):
        raise ShapeError(
            f"from_numpy: strides of {array.strides} bytes lead to elements of {size} bytes in memory that "
            "has no strides of its own. Copy the array first, with .copy()."
        )
    strides = tuple(s // size for s in array.strides)
    return Tensor(
        CpuStorage(owner.ravel(order="K")), meta(array.shape, d, Device("cpu"), strides), begin // size
    )


def from_ufunc(self: Tensor, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What a function of numpy's makes of a tensor: a tensor, as in PyTorch."""
    return from_numpy(np.asarray(array))


def asarray(
    obj,
    *,
    dtype: DType | None = None,
    device=None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """A tensor of anything that holds numbers, which shares the memory of tensors, and on ``cpu`` of arrays.

    Args:
        obj: a tensor, an array, what offers DLPack or a buffer, a number or nested lists.
        dtype, device: of the result; the object's own if not given, the default device for what is no tensor.
        copy: True for memory of its own, False to refuse a copy; None for one where it is needed.
        requires_grad: whether to record what is computed from it; None for what the object does.

    Raises:
        ArgumentError: ``copy`` is False, and the memory cannot be shared.

    Source: https://pytorch.org/docs/stable/generated/torch.asarray.html
    """
    if not isinstance(obj, (Tensor, np.ndarray, np.generic)):
        if hasattr(obj, "__dlpack__"):
            obj = np.from_dlpack(obj)
        elif isinstance(obj, (bytes, bytearray, memoryview)):
            obj = np.frombuffer(obj, dt.get_default_dtype().numpy if dtype is None else dtype.numpy)
    shared = as_tensor(obj, dtype=dtype, device=device)
    given = obj._storage if isinstance(obj, Tensor) else None
    memory = getattr(shared._storage, "data", None)
    is_shared = (
        shared._storage is given
        if given is not None
        else isinstance(obj, np.ndarray) and memory is not None and np.shares_memory(memory, obj)
    )
    if copy is False and not is_shared:
        raise ArgumentError(
            f"asarray: copy is False, and a tensor of {shared.dtype} on {shared.device} cannot share the "
            f"memory of {describe(obj)}. Leave copy out."
        )
    out = shared.clone() if copy and is_shared else shared
    if requires_grad is None or bool(requires_grad) is out.requires_grad:
        return out
    return out.detach().requires_grad_(requires_grad)


def from_dlpack(ext_tensor, *, device=None, copy: bool | None = None) -> Tensor:
    """A tensor that shares memory with what another library offers by DLPack, which is on the cpu.

    Args:
        ext_tensor: what offers it, or the capsule of `to_dlpack`; a tensor is taken as it is.
        device: of the result; that of ``ext_tensor`` if not given.
        copy: True copies always, False never; None where the device wants it.

    Raises:
        ArgumentError: it offers none, or a copy is needed and not wanted.

    Source: https://pytorch.org/docs/stable/generated/torch.from_dlpack.html
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise ArgumentError(f"from_dlpack: {describe(ext_tensor)} has no __dlpack__. Use asarray.")
    if isinstance(ext_tensor, Tensor):
        shared = ext_tensor
    else:
        try:
            found = np.from_dlpack(ext_tensor)
            shared = from_numpy(_writable(found) if isinstance(ext_tensor, _Capsule) else found)
        except (ValueError, BufferError) as error:
            raise ArgumentError(
                f"from_dlpack: {error}. A capsule is taken once, and its memory lies on the CPU."
            ) from None
    wanted = shared.device if device is None else resolved(device)
    if wanted is shared.device:
        return shared.clone() if copy else shared
    if copy is not None and not copy:
        raise ArgumentError(
            f"from_dlpack: memory on {shared.device} cannot be shared with {wanted}. Leave copy out."
        )
    return shared.to(wanted)


def _writable(array: np.ndarray) -> np.ndarray:
    """The memory of a capsule, which says nothing of writing: numpy takes it for what is only read."""
    low, high = np.lib.array_utils.byte_bounds(array)
    memory: Any = (ctypes.c_char * (high - low)).from_address(low)
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory, array.ctypes.data - low, array.strides)


class _Capsule:
    """A capsule of DLPack as what offers it."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **asked: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule of DLPack with a cpu tensor's memory, which another library or `from_dlpack` takes once.

    Args:
        tensor: on the cpu device.

    Raises:
        DeviceError: it lies elsewhere.
        GradientError: it requires grad.

    Source: https://pytorch.org/docs/stable/dlpack.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.ones(2, device="cpu")
        >>> torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)).mul_(3)
        tensor([3., 3.], device='cpu')
        >>> x
        tensor([3., 3.], device='cpu')
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"to_dlpack: takes a tensor, not {describe(tensor)}.")
    return tensor.__dlpack__()


def frombuffer(
    buffer, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A cpu vector that shares memory with a buffer of Python, such as bytes.

    Args:
        buffer: the bytes.
        dtype: of its elements.
        count: how many; all if -1.
        offset: how many bytes come before them.
        requires_grad: whether to record what is computed from it.

    Raises:
        DTypeError: numpy has no such dtype.
        RangeError: the bytes are no such elements.

    Source: https://pytorch.org/docs/stable/generated/torch.frombuffer.html
    """
    kind = element_type(dtype).numpy
    if kind is None or dtype is dt.bfloat16:
        raise DTypeError(f"frombuffer: buffers hold no {dtype}. Read uint8 or int16, and use view(dtype).")
    try:
        array = np.frombuffer(buffer, kind, count, offset)
    except ValueError as error:
        raise RangeError(f"frombuffer: {error}.") from None
    return from_numpy(array).requires_grad_(requires_grad)


def rebuild(kind: type[Tensor], storage, m: Meta, offset: int, requires_grad: bool) -> Tensor:
    """What a copied or pickled tensor becomes."""
    out = kind.__new__(kind)
    Tensor.__init__(out, storage, m, offset)
    return out.requires_grad_(requires_grad)
