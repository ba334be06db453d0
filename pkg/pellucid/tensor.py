"""Tensor: shape, strides and offset over a storage. Its methods are ops, one line each; nothing is computed
here."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import autograd
from . import dtypes as dt
from .device import device as Device
from .device import get_default_device
from .device.cpu import CpuStorage, as_array, rounded
from .device.stream import Storage, stream
from .dtypes import DType, from_numpy_dtype
from .errors import DTypeError, GradientError, ShapeError
from .inplace import in_place
from .kernel import physical
from .meta import Meta, meta
from .ops import GROUPS, arithmetic, comparison, creation, functions, matmul, movement, random, slicing, views
from .shape import Size


class Tensor:
    """A tensor, with PyTorch's attributes and methods.

    Make one with `tensor`, `zeros`, `arange` and so on. Its memory is freed when the last reference to it
    goes.
    """

    _node: Any = None
    _index = 0
    _hooks: dict | None = None
    grad: Tensor | None = None
    _base: Tensor | None = None  # what it is a view of
    __array_priority__ = 1000

    if TYPE_CHECKING:
        # Methods and operators are the ops themselves, attached below; type checkers see that they are there.
        def __getattr__(self, name: str) -> Any: ...

        __add__: Any
        __radd__: Any
        __sub__: Any
        __rsub__: Any
        __mul__: Any
        __rmul__: Any
        __truediv__: Any
        __rtruediv__: Any
        __floordiv__: Any
        __rfloordiv__: Any
        __mod__: Any
        __rmod__: Any
        __pow__: Any
        __rpow__: Any
        __neg__: Any
        __matmul__: Any
        __rmatmul__: Any
        __pos__: Any
        __abs__: Any
        __invert__: Any
        __and__: Any
        __rand__: Any
        __or__: Any
        __ror__: Any
        __xor__: Any
        __rxor__: Any
        __lshift__: Any
        __rshift__: Any
        __lt__: Any
        __le__: Any
        __gt__: Any
        __ge__: Any
        __eq__: Any
        __ne__: Any

    def __init__(self, storage, m: Meta, offset: int):
        self._storage = storage
        self._meta = m
        self._offset = offset

    # What it is

    @property
    def shape(self) -> Size:
        return self._meta.shape

    @property
    def dtype(self) -> DType:
        return self._meta.dtype

    @property
    def device(self) -> Device:
        return self._meta.device

    @property
    def ndim(self) -> int:
        return len(self._meta.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether derivatives with respect to it, or through it, are recorded."""
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        return self._node is None or self._node is autograd.LEAF

    @property
    def grad_fn(self):
        """The node of the graph that computed it, or None for a leaf."""
        return None if self.is_leaf else self._node

    @property
    def itemsize(self) -> int:
        return self._meta.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._storage.nbytes if self._meta.dtype.is_quantized else self._meta.nbytes

    @property
    def is_webgpu(self) -> bool:
        return self._meta.device.type == "webgpu"

    @property
    def _version(self) -> int:
        return self._storage.version

    def dim(self) -> int:
        """Number of axes."""
        return len(self._meta.shape)

    def size(self, dim: int | None = None):
        """The shape, or the length of one axis."""
        return self._meta.shape if dim is None else self._meta.shape[dim]

    def numel(self) -> int:
        """Number of elements."""
        return self._meta.numel

    nelement = numel

    def stride(self, dim: int | None = None):
        """Strides in elements, or that of one axis."""
        return self._meta.strides if dim is None else self._meta.strides[dim]

    def storage_offset(self) -> int:
        """Where the first element lies in the storage, in elements."""
        return self._offset

    def data_ptr(self) -> int:
        """A number that is equal for tensors that begin at the same element of the same storage."""
        return id(self._storage) + self._offset * self.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._meta.dtype.itemsize

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self._meta.is_contiguous

    def is_floating_point(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self._meta.dtype.is_floating_point

    def __len__(self) -> int:
        if not self._meta.shape:
            raise TypeError("len() of a tensor without axes. Use numel().")
        return self._meta.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._meta.shape:
            raise TypeError("iteration over a tensor without axes. Use item().")
        return iter(slicing.unbind(self, 0))

    def __hash__(self) -> int:
        return id(self)

    # Values. Each waits for the device; each has a twin that is awaited.

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
        return x._decode(stream().read(x._storage, *x._extent()))

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

    def _packed(self) -> Tensor:
        """Contiguous and beginning at a word, so that a plain copy can read it."""
        x = self.detach()
        if not x._meta.is_contiguous or x._offset * x.itemsize % 4:
            x = movement.clone(x)
        return x

    def _extent(self) -> tuple[int, int]:
        return self._offset * self.itemsize, self._meta.nbytes

    def _decode(self, data) -> np.ndarray:
        m = self._meta
        if m.dtype is dt.bfloat16:
            words = np.frombuffer(data, np.uint16, m.numel).astype(np.uint32) << 16
            return words.view(np.float32).reshape(m.shape)
        return np.frombuffer(data, m.dtype.numpy, m.numel).reshape(m.shape).copy()

    def item(self):
        """The value of a tensor of one element, as a Python number. Waits for the device.

        Raises:
            ShapeError: there is not exactly one element.

        Source: https://pytorch.org/docs/stable/generated/torch.Tensor.item.html
        """
        self._check_single()
        return self.detach().numpy().reshape(()).item()

    async def item_async(self):
        """The awaitable twin of `item`."""
        self._check_single()
        return (await self.detach().numpy_async()).reshape(()).item()

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
        if not (self._meta.dtype.is_integer or self._meta.dtype is dt.bool_):
            raise TypeError(f"only integer tensors of one element can be an index, not {self._meta.dtype}.")
        return int(self.item())

    def __contains__(self, element) -> bool:
        return bool((self == element).any().item())

    def __repr__(self) -> str:
        from .printing import describe

        return describe(self)

    def __format__(self, spec: str) -> str:
        if self._meta.numel == 1 and (spec or not self._meta.shape):
            return format(self.item(), spec)
        return format(repr(self), spec)

    # The graph

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs=None,
    ) -> None:
        """Add to ``.grad`` of every leaf the derivative of this tensor; see `pellucid.autograd.backward`."""
        autograd.backward([self], [gradient], retain_graph, create_graph, inputs)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Switch recording for a leaf on or off, and return it.

        Raises:
            DTypeError: the dtype is not floating point.
            GradientError: it is not a leaf.
        """
        if requires_grad:
            if self._node is None:
                if not self._meta.dtype.is_floating_point:
                    raise DTypeError(
                        "requires_grad: only floating-point tensors have gradients, not "
                        f"{self._meta.dtype}. Convert with .float()."
                    )
                self._node = autograd.LEAF
        elif self._node is not None:
            if self._node is not autograd.LEAF:
                raise GradientError("requires_grad: only a leaf can be switched off. Use .detach().")
            self._node = None
        return self

    def detach(self) -> Tensor:
        """The same values outside the graph, sharing storage."""
        return Tensor(self._storage, self._meta, self._offset)

    def detach_(self) -> Tensor:
        """Take this tensor itself out of the graph."""
        self._node = None
        return self

    @property
    def data(self) -> Tensor:
        """The same values outside the graph, sharing storage; assigning replaces the values' storage."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        self._storage, self._meta, self._offset = value._storage, value._meta, value._offset

    def retain_grad(self) -> None:
        """Keep ``.grad`` of a tensor that is not a leaf."""
        if self._node is None:
            raise GradientError("retain_grad: the tensor does not require grad.")
        if self._node is not autograd.LEAF:
            if self._node.retained is None:
                self._node.retained = {}
            self._node.retained[self._index] = weakref.ref(self)

    def register_hook(self, hook):
        """Call ``hook(grad)`` when the gradient of this tensor is known; what it returns replaces the
        gradient.

        Returns:
            A handle with ``remove()``.

        Source: https://pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html
        """
        if self._node is None:
            raise GradientError("register_hook: the tensor does not require grad.")
        if self._node is autograd.LEAF:
            if self._hooks is None:
                self._hooks = {}
            hooks = self._hooks
        else:
            if self._node.hooks is None:
                self._node.hooks = {}
            hooks = self._node.hooks.setdefault(self._index, {})
        return Handle(hooks, hook)

    # Where and as what

    def to(
        self, *args, dtype: DType | None = None, device=None, non_blocking: bool = False, copy: bool = False
    ) -> Tensor:
        """The tensor with another dtype or on another device; itself if nothing changes.

        Args:
            args: a dtype, a device (or its name), another tensor, or a device and a dtype.
            dtype, device: the same by name.
            non_blocking: accepted; uploads never block, reads always do.
            copy: a copy even if nothing changes.

        Raises:
            DTypeError: the device has no such dtype (float64 on webgpu): ask for float32.

        Source: https://pytorch.org/docs/stable/generated/torch.Tensor.to.html
        """
        for a in args:
            if isinstance(a, DType):
                dtype = a
            elif isinstance(a, Tensor):
                dtype, device = a.dtype, a.device
            elif isinstance(a, (str, Device)):
                device = a
            elif a is not None and not isinstance(a, bool):
                raise TypeError(f"to(): takes a dtype, a device or a tensor, not {type(a).__name__} {a!r}")
        x = self
        target = self._meta.device if device is None else Device(device)
        if x._meta.dtype.is_quantized and dtype is not None and dtype is not x._meta.dtype:
            x = x.dequantize()
        if target is self._meta.device:
            if dtype is not None and dtype is not x._meta.dtype:
                return movement.cast(x, dtype)
            return movement.clone(x) if copy else x
        # Change the type on the device where both types exist.
        if dtype is not None and dtype is not x._meta.dtype and x._meta.device.type == "cpu":
            x = movement.cast(x, dtype)
        x = _moved(x, target)
        return x if dtype is None or dtype is x._meta.dtype else movement.cast(x, dtype)

    def cpu(self) -> Tensor:
        """The tensor on the cpu device."""
        return self.to("cpu")

    def webgpu(self) -> Tensor:
        """The tensor on the webgpu device."""
        return self.to("webgpu")

    def type(self, dtype: DType) -> Tensor:
        """``to(dtype)``."""
        return self.to(dtype)

    def type_as(self, other: Tensor) -> Tensor:
        """``to(other.dtype)``."""
        return self.to(other.dtype)

    def float(self) -> Tensor:
        """As float32."""
        return self.to(dt.float32)

    def double(self) -> Tensor:
        """As float64 (cpu only)."""
        return self.to(dt.float64)

    def half(self) -> Tensor:
        """As float16."""
        return self.to(dt.float16)

    def bfloat16(self) -> Tensor:
        """As bfloat16."""
        return self.to(dt.bfloat16)

    def int(self) -> Tensor:
        """As int32."""
        return self.to(dt.int32)

    def long(self) -> Tensor:
        """As int64."""
        return self.to(dt.int64)

    def bool(self) -> Tensor:
        """As bool: whether values are not zero."""
        return self.to(dt.bool_)

    # New tensors like this one

    def new_zeros(self, *size, dtype: DType | None = None, device=None) -> Tensor:
        """Zeros of another shape, same dtype and device."""
        return creation.zeros(*size, dtype=dtype or self.dtype, device=device or self.device)

    def new_ones(self, *size, dtype: DType | None = None, device=None) -> Tensor:
        """Ones of another shape, same dtype and device."""
        return creation.ones(*size, dtype=dtype or self.dtype, device=device or self.device)

    def new_empty(self, *size, dtype: DType | None = None, device=None) -> Tensor:
        """Memory of another shape, same dtype and device."""
        return creation.empty(*size, dtype=dtype or self.dtype, device=device or self.device)

    def new_full(self, size, fill_value, dtype: DType | None = None, device=None) -> Tensor:
        """One value in another shape, same dtype and device."""
        return creation.full(size, fill_value, dtype=dtype or self.dtype, device=device or self.device)

    def new_tensor(self, data, dtype: DType | None = None, device=None) -> Tensor:
        """Data as a tensor, same dtype and device."""
        return tensor(data, dtype=dtype or self.dtype, device=device or self.device)

    # Shape

    @property
    def T(self) -> Tensor:
        """All axes in reverse order."""
        return views.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return views.transpose(self, -2, -1)

    def __getitem__(self, key) -> Tensor:
        from .indexing import get

        return get(self, key)

    def __setitem__(self, key, value) -> None:
        from .indexing import put

        put(self, key, value)

    def where(self, condition: Tensor, other) -> Tensor:
        """The tensor's own values where the condition holds, else ``other``."""
        return comparison.where(condition, self, other)

    # In place, without a declaration of their own

    def zero_(self) -> Tensor:
        """Every element 0."""
        return self.fill_(0)

    def fill_(self, value) -> Tensor:
        """Every element ``value``."""
        return movement.fill_(self, value)

    def copy_(self, src: Tensor, non_blocking: bool = False) -> Tensor:
        """Overwrite with the values of ``src``, broadcast and converted; from any device."""
        return movement.copy_(
            self, src if src._meta.device is self._meta.device else src.to(self._meta.device)
        )

    def __reduce__(self):
        return _rebuild, (self.detach().numpy(), self.dtype.name, self.device.type, self.requires_grad)

    def __deepcopy__(self, memo) -> Tensor:
        if not self.is_leaf:
            raise GradientError("deepcopy: only leaves can be copied. Use .detach().clone().")
        out = movement.clone(self.detach())
        out._node = self._node
        memo[id(self)] = out
        return out


class ListRead:
    """Values on their way, begun by `Tensor.tolist_later`.

    Args:
        x: the tensor.
    """

    def __init__(self, x: Tensor):
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


class Handle:
    """What registering a hook returns.

    Args:
        hooks: the table that holds the hook.
        hook: the function.
    """

    _next = 0

    def __init__(self, hooks: dict, hook):
        Handle._next += 1
        self.id = Handle._next
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook out; a second time does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def _rebuild(array: np.ndarray, dtype: str, device: str, requires_grad: bool) -> Tensor:
    return tensor(array, dtype=dt.NAMES[dtype], device=device, requires_grad=requires_grad)


def _moved(x: Tensor, target: Device) -> Tensor:
    """The tensor on another device. The graph follows: gradients come back."""
    if x._meta.dtype.is_quantized:
        from .quant.weight import moved

        return moved(x, target)
    from .ops.transfer import transfer

    return transfer(x, target)


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


def _attach_methods() -> None:
    """Methods and operators are the ops themselves."""
    for group in GROUPS:
        for name in getattr(group, "METHODS", "").split():
            setattr(Tensor, name, getattr(group, name))
        for name in getattr(group, "IN_PLACE", "").split():
            setattr(Tensor, f"{name}_", in_place(getattr(group, name).op))
    Tensor.div_ = in_place(arithmetic.true_divide.op)  # type: ignore[attr-defined]
    Tensor.normal_ = random.normal_  # type: ignore[attr-defined]
    Tensor.uniform_ = random.uniform_  # type: ignore[attr-defined]
    for name, function in _OPERATORS.items():
        setattr(Tensor, name, function)


def _reflected(function):
    def operator(self, other):
        return function(other, self)

    return operator


def _or_not(function):
    """An operator that lets Python try the other operand when this one cannot take it."""

    def operator(self, other):
        if isinstance(other, (Tensor, int, float, bool, np.generic)):
            return function(self, other)
        return NotImplemented

    return operator


_OPERATORS = {
    "__add__": arithmetic.add,
    "__radd__": arithmetic.add,
    "__sub__": arithmetic.sub,
    "__rsub__": arithmetic.rsub,
    "__mul__": arithmetic.mul,
    "__rmul__": arithmetic.mul,
    "__truediv__": arithmetic.true_divide,
    "__rtruediv__": _reflected(arithmetic.true_divide),
    "__floordiv__": arithmetic.floor_divide,
    "__rfloordiv__": _reflected(arithmetic.floor_divide),
    "__mod__": arithmetic.remainder,
    "__rmod__": _reflected(arithmetic.remainder),
    "__pow__": arithmetic.pow,
    "__rpow__": _reflected(arithmetic.pow),
    "__neg__": arithmetic.neg,
    "__matmul__": matmul.matmul,
    "__rmatmul__": _reflected(matmul.matmul),
    "__pos__": arithmetic.positive,
    "__abs__": functions.abs,
    "__invert__": arithmetic.bitwise_not,
    "__and__": arithmetic.bitwise_and,
    "__rand__": arithmetic.bitwise_and,
    "__or__": arithmetic.bitwise_or,
    "__ror__": arithmetic.bitwise_or,
    "__xor__": arithmetic.bitwise_xor,
    "__rxor__": arithmetic.bitwise_xor,
    "__lshift__": arithmetic.bitwise_left_shift,
    "__rshift__": arithmetic.bitwise_right_shift,
    "__eq__": _or_not(comparison.eq),
    "__ne__": _or_not(comparison.ne),
    "__lt__": comparison.lt,
    "__le__": comparison.le,
    "__gt__": comparison.gt,
    "__ge__": comparison.ge,
    "__iadd__": in_place(arithmetic.add.op),
    "__isub__": in_place(arithmetic.sub.op),
    "__imul__": in_place(arithmetic.mul.op),
    "__itruediv__": in_place(arithmetic.true_divide.op),
    "__ifloordiv__": in_place(arithmetic.floor_divide.op),
    "__imod__": in_place(arithmetic.remainder.op),
    "__ipow__": in_place(arithmetic.pow.op),
    "__iand__": in_place(arithmetic.bitwise_and.op),
    "__ior__": in_place(arithmetic.bitwise_or.op),
    "__ixor__": in_place(arithmetic.bitwise_xor.op),
}

_attach_methods()

__all__ = ["Handle", "Tensor", "as_tensor", "from_numpy", "tensor", "upload"]
