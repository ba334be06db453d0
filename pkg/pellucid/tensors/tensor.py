"""Tensor: shape, strides and offset over a storage, and its place in the graph. Methods that are made of ops
are attached in `methods`."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..autograd.edges import LEAF, note_change
from ..autograd.handle import Handle
from ..device import device as Device
from ..device.stream import stream
from ..errors import ArgumentError, DimensionError, DTypeError, GradientError
from . import dtypes as dt
from .dtypes import DType
from .meta import Meta, differences
from .portable import Portable
from .shape import Size, axis


class Tensor(Portable):
    """A tensor, with PyTorch's attributes and methods.

    Make one with `tensor`, `zeros`, `arange` and so on. Its memory is freed when the last reference to it
    goes.
    """

    _node: Any = None
    _index = 0
    _hooks: dict | None = None
    _after: dict | None = None
    _grad: Tensor | None = None
    _base: Tensor | None = None  # what it is a view of
    _views: dict[weakref.ref, None] | None = None  # in the order in which they were taken
    __array_priority__ = 1000

    _storage: Any
    _meta: Meta
    _offset: int

    if TYPE_CHECKING:
        # Of what `methods` attaches, what this class itself calls; the stub has all of it.
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def _construct(self, given: tuple, device: Any) -> Tensor: ...
        def any(self) -> Tensor: ...
        def to(self, other: Any, *, memory_format: Any = None) -> Tensor: ...
        def unbind(self, dim: int) -> tuple[Tensor, ...]: ...

    def __init__(self, storage: Any = None, m: Any = None, offset: Any = None, *more: int, device=None):
        """As `torch.Tensor`: memory of a shape that is given as integers, or a copy of data as floats. The
        package itself gives storage, layout and offset."""
        if m.__class__ is not Meta:
            if isinstance(m, Meta):  # as a subclass shows it, see `dispatch`
                m = vars(m)["of"]
            else:
                given = (storage, m, offset, *more)
                made = self._construct(tuple(g for g in given if g is not None), device)
                storage, m, offset = made._storage, made._meta, made._offset
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
        return self._node is None or self._node is LEAF

    @property
    def grad_fn(self):
        """The node of the graph that computed it, or None for a leaf."""
        return None if self.is_leaf else self._node.shown()

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
        return self._meta.shape if dim is None else _along(self._meta.shape, dim)

    def numel(self) -> int:
        """Number of elements."""
        return self._meta.numel

    nelement = numel

    def stride(self, dim: int | None = None):
        """Strides in elements, or that of one axis."""
        return self._meta.strides if dim is None else _along(self._meta.strides, dim)

    def storage_offset(self) -> int:
        """Where the first element lies in the storage, in elements."""
        _note_place()
        return self._offset

    def data_ptr(self) -> int:
        """A number that is equal for tensors that begin at the same element of the same storage."""
        _note_place()
        return id(self._storage) + self._offset * self.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._meta.dtype.itemsize

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
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)

    # In Python's own syntax

    def __contains__(self, element) -> bool:
        return bool((self == element).any().item())

    def __format__(self, spec: str) -> str:
        if self._meta.numel == 1 and (spec or not self._meta.shape):
            return format(self.item(), spec)
        return object.__format__(self, spec)

    # The graph

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Switch recording for a leaf on or off, and return it.

        Raises:
            DTypeError: the dtype is not floating point.
            GradientError: it is not a leaf.
        """
        if requires_grad is not True and requires_grad is not False:
            raise ArgumentError(f"requires_grad: must be True or False, not {requires_grad!r}.")
        if requires_grad:
            if self._node is None:
                if self._meta.dtype.kind not in "fc":
                    raise DTypeError(
                        "requires_grad: only floating-point and complex tensors have gradients, not "
                        f"{self._meta.dtype}. Convert with .float()."
                    )
                note_change()
                self._node = LEAF
        elif self._node is not None:
            if self._node is not LEAF:
                raise GradientError("requires_grad: only a leaf can be switched off. Use .detach().")
            note_change()
            self._node = None
        return self

    def detach(self) -> Tensor:
        """The same values outside the graph, sharing storage."""
        return Tensor(self._storage, self._meta, self._offset)

    def detach_(self) -> Tensor:
        """Take this tensor itself out of the graph."""
        note_change()
        self._node = None
        return self

    @property
    def data(self) -> Tensor:
        """The same values outside the graph, sharing storage; assigning replaces the values' storage."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(f"data: must be a Tensor, not {type(value).__name__} {value!r}.")
        note_change()
        self._storage, self._meta, self._offset = value._storage, value._meta, value._offset

    def _set_grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise ArgumentError(f"grad: must be a Tensor or None, not {type(value).__name__} {value!r}")
            if value is self:
                raise GradientError("grad: a tensor cannot be its own gradient. Give another tensor.")
            if different := differences(value._meta, self._meta):
                raise GradientError(
                    f"grad: a gradient of {different}. Give one like the tensor, for example by .to() or "
                    ".reshape()."
                )
        self._grad = value

    # The gradient that walks added up here, or None; assigning replaces it, ``del`` forgets it.
    grad = property(attrgetter("_grad"), _set_grad, lambda self: self._set_grad(None))

    def retain_grad(self) -> None:
        """Keep ``.grad`` of a tensor that is not a leaf."""
        if self._node is None:
            raise GradientError("retain_grad: the tensor does not require grad.")
        if self._node is not LEAF:
            if self._node.retained is None:
                self._node.retained = {}
            self._node.retained[self._index] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether ``.grad`` of this tensor, which is no leaf, is kept."""
        return not self.is_leaf and self._index in (self._node.retained or ())

    def register_hook(self, hook):
        """Call ``hook(grad)`` when the gradient of this tensor is known; what it returns replaces the
        gradient.

        Returns:
            A handle with ``remove()``.

        Source: https://pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html
        """
        if self._node is None:
            raise GradientError("register_hook: the tensor does not require grad.")
        if self._node is LEAF:
            if self._hooks is None:
                self._hooks = {}
            hooks = self._hooks
            note_change()
        else:
            if self._node.hooks is None:
                self._node.hooks = {}
            hooks = self._node.hooks.setdefault(self._index, {})
        return Handle(hooks, hook)

    def register_post_accumulate_grad_hook(self, hook):
        """Call ``hook(tensor)`` after a walk has added to ``.grad`` of this leaf, for example to take an
        optimizer's step there.

        Returns:
            A handle with ``remove()``.

        Raises:
            GradientError: it does not require grad, or is not a leaf.

        Source: https://pytorch.org/docs/stable/generated/torch.Tensor.register_post_accumulate_grad_hook.html
        """
        if self._node is not LEAF:
            what = "does not require grad" if self._node is None else "is not a leaf. Use register_hook()"
            raise GradientError(f"register_post_accumulate_grad_hook: the tensor {what}.")
        if self._after is None:
            self._after = {}
        note_change()
        return Handle(self._after, hook)

    # Where and as what

    def cpu(self, memory_format: Any = None) -> Tensor:
        """The tensor on the cpu device; ``memory_format`` as of `to`."""
        return self.to("cpu", memory_format=memory_format)

    def webgpu(self) -> Tensor:
        """The tensor on the webgpu device."""
        return self.to("webgpu")

    def type_as(self, other: Tensor) -> Tensor:
        """``to(other.dtype)``."""
        if not isinstance(other, Tensor):
            raise ArgumentError(f"type_as: takes a Tensor, not {type(other).__name__} {other!r}.")
        return self.to(other.dtype)

    def float(self, memory_format=None) -> Tensor:
        """As float32."""
        return self.to(dt.float32, memory_format=memory_format)

    def double(self, memory_format=None) -> Tensor:
        """As float64 (cpu only)."""
        return self.to(dt.float64, memory_format=memory_format)

    def half(self, memory_format=None) -> Tensor:
        """As float16."""
        return self.to(dt.float16, memory_format=memory_format)

    def bfloat16(self, memory_format=None) -> Tensor:
        """As bfloat16."""
        return self.to(dt.bfloat16, memory_format=memory_format)

    def cfloat(self, memory_format=None) -> Tensor:
        """As complex64."""
        return self.to(dt.complex64, memory_format=memory_format)

    def cdouble(self, memory_format=None) -> Tensor:
        """As complex128 (cpu only)."""
        return self.to(dt.complex128, memory_format=memory_format)

    def byte(self, memory_format=None) -> Tensor:
        """As uint8."""
        return self.to(dt.uint8, memory_format=memory_format)

    def char(self, memory_format=None) -> Tensor:
        """As int8."""
        return self.to(dt.int8, memory_format=memory_format)

    def short(self, memory_format=None) -> Tensor:
        """As int16."""
        return self.to(dt.int16, memory_format=memory_format)

    def int(self, memory_format=None) -> Tensor:
        """As int32."""
        return self.to(dt.int32, memory_format=memory_format)

    def long(self, memory_format=None) -> Tensor:
        """As int64."""
        return self.to(dt.int64, memory_format=memory_format)

    def bool(self, memory_format=None) -> Tensor:
        """As bool: whether values are not zero."""
        return self.to(dt.bool_, memory_format=memory_format)


def _note_place() -> None:
    """Python asks where a tensor lies, which the next call of a captured function may change."""
    if (capturing := stream().capturing) is not None:
        capturing.refuse("it asks where a tensor lies in memory")


def _along(values: tuple[int, ...], dim: int) -> int:
    """What a tensor has along an axis."""
    if type(dim) is int and -len(values) <= dim < len(values):
        return tuple.__getitem__(values, dim)
    if not values:
        raise DimensionError(f"dimension {dim} is out of range: a tensor without axes has none.")
    return values[axis(dim, len(values))]
