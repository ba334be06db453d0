"""Methods and operators of Tensor: the ops themselves and what is made of them, attached when this is
imported."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from types import FunctionType

import numpy as np

from ..autograd import backward
from ..autograd.edges import labelled
from ..device import device as Device
from ..device import resolved
from ..errors import ArgumentError, DeviceError, GradientError, ShapeError
from ..op.arguments import element_type, number
from ..op.declaration import operator_of
from ..op.inplace import in_place
from ..op.public import EXPORTS, IN_PLACE, METHODS, attach
from ..ops.elementwise import arithmetic, bitwise, comparison, division, functions
from ..ops.elementwise import complex as complex_numbers
from ..ops.matmul import dense as matmul
from ..ops.shape import movement, views
from ..ops.shape.transfer import transfer
from ..quant.rows import moved
from . import dispatch, formats, indexing, queries
from .absent import public, refuse_methods
from .construct import from_ufunc, rebuild, tensor
from .dtypes import LARGEST_HALF, DType
from .html import picture
from .printing import describe
from .tensor import Tensor
from .typed import construct, dtype_of, new, type_name

# What each has of its own, and no attribute that a program gave it.
_FIELDS = frozenset({*Tensor.__annotations__, "_index"})


def _each(target: Tensor, name: str, function: Callable, *others: Tensor) -> Tensor:
    """Write a Python function of the elements over them."""
    if target.requires_grad:
        raise GradientError(f"{name}: the tensor requires grad, and a Python function has no derivative.")
    if target.device.type != "cpu":
        raise DeviceError(f"{name}: is for tensors on the cpu device, this one is on {target.device}.")
    lines = [t.expand(target.shape).contiguous().flatten().tolist() for t in (target, *others)]
    made = [function(*values) for values in zip(*lines, strict=True)]
    return target.copy_(tensor(made, dtype=target.dtype, device="cpu").reshape(target.shape))


class _Methods(Tensor):
    """Methods of Tensor that are made of ops and are no ops. They are attached to Tensor itself."""

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str | None:
        return picture(self)

    def apply_(self, callable: Callable) -> Tensor:
        """Write ``callable(value)`` over every element, on the cpu device."""
        return _each(self, "apply_", callable)

    def map_(self, tensor: Tensor, callable: Callable) -> Tensor:
        """Write ``callable(value, other)`` over every element, with those of a tensor that broadcasts, on the
        cpu device."""
        return _each(self, "map_", callable, tensor)

    def to_dense(self, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
        """The tensor itself, which is dense; with another dtype if one is given."""
        return self if dtype is None else self.to(dtype)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs=None,
    ) -> None:
        """Add to ``.grad`` of every leaf the derivative of this tensor; see `pellucid.autograd.backward`."""
        backward([self], [gradient], retain_graph, create_graph, inputs)

    def to(
        self,
        *args,
        dtype: DType | None = None,
        device=None,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format=None,
    ) -> Tensor:
        """The tensor with another dtype or on another device; itself if nothing changes.

        Args:
            args: a dtype, a device (or its name), another tensor, or a device and a dtype.
            dtype, device: the same by name.
            non_blocking: accepted; uploads never block, reads always do.
            copy: a copy even if nothing changes.
            memory_format: the order of axes in memory, such as `channels_last`.

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
            elif isinstance(a, type) and a in (float, int, complex, bool):
                dtype = element_type(a)
            elif a is not None and not isinstance(a, bool):
                raise ArgumentError(
                    f"to(): takes a dtype, a device or a tensor, not {type(a).__name__} {a!r}"
                )
        if dtype is not None and type(dtype) is not DType:
            dtype = element_type(dtype)
        if memory_format is not None and memory_format is not formats.preserve_format:
            x = self.to(dtype=dtype, device=device, copy=copy)
            return movement.contiguous(x, memory_format=memory_format)
        x = self
        target = self._meta.device if device is None else resolved(device)
        if x._meta.dtype.is_quantized and dtype is not None and dtype is not x._meta.dtype:
            x = x.dequantize()
        if dtype is not None and x._meta.dtype.is_complex:
            movement.warn_of_lost_parts(x._meta.dtype, dtype)
        if target is self._meta.device:
            if dtype is not None and dtype is not x._meta.dtype:
                return movement.cast(x, dtype)
            return movement.clone(x) if copy else x
        # Change the type on the device where both types exist.
        if dtype is not None and dtype is not x._meta.dtype and x._meta.device.type == "cpu":
            x = movement.cast(x, dtype)
        x = moved(x, target) if x._meta.dtype.is_quantized else transfer(x, target)
        return x if dtype is None or dtype is x._meta.dtype else movement.cast(x, dtype)

    def type(self, dtype=None, non_blocking: bool = False):
        """``to(dtype)``, of a dtype, a tensor type or its name; the name of its type if None."""
        return type_name(self.dtype) if dtype is None else self.to(dtype_of(dtype))

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return dispatch.torch_function(cls, func, types, args, kwargs)

    @staticmethod
    def _make_subclass(kind, data: Tensor, require_grad: bool = False):
        return dispatch.make_subclass(kind, data, require_grad)

    def as_subclass(self, cls):
        """The same tensor as one of a subclass, in the same place of the graph."""
        return dispatch.as_subclass(self, cls)

    def _construct(self, given: tuple, device) -> Tensor:
        return construct(given, None, device)

    @property
    def real(self) -> Tensor:
        """The real parts, which share memory; of real numbers the tensor itself."""
        return complex_numbers.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, which share memory."""
        return complex_numbers.imag(self)

    # New tensors like this one

    def new(self, *given, device=None) -> Tensor:
        """As ``torch.Tensor(...)``, of the same dtype and device."""
        return new(self, *given, device=device)

    def new_zeros(self, *size, dtype: DType | None = None, device=None, **how) -> Tensor:
        """Zeros of another shape, same dtype and device; ``how`` as of `zeros`."""
        return EXPORTS["torch"]["zeros"](
            *size, dtype=dtype or self.dtype, device=device or self.device, **how
        )

    def new_ones(self, *size, dtype: DType | None = None, device=None, **how) -> Tensor:
        """Ones of another shape, same dtype and device; ``how`` as of `ones`."""
        return EXPORTS["torch"]["ones"](*size, dtype=dtype or self.dtype, device=device or self.device, **how)

    def new_empty(self, *size, dtype: DType | None = None, device=None, **how) -> Tensor:
        """Memory of another shape, same dtype and device; ``how`` as of `empty`."""
        return EXPORTS["torch"]["empty"](
            *size, dtype=dtype or self.dtype, device=device or self.device, **how
        )

    def new_full(self, size, fill_value, dtype: DType | None = None, device=None, **how) -> Tensor:
        """One value in another shape, same dtype and device; ``how`` as of `full`."""
        return EXPORTS["torch"]["full"](
            size, fill_value, dtype=dtype or self.dtype, device=device or self.device, **how
        )

    def new_tensor(self, data, dtype: DType | None = None, device=None, **how) -> Tensor:
        """Data as a tensor, same dtype and device; ``how`` as of `tensor`."""
        return tensor(data, dtype=dtype or self.dtype, device=device or self.device, **how)

    # Shape

    @property
    def T(self) -> Tensor:
        """All axes in reverse order."""
        return views.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return views.transpose(self, -2, -1)

    @property
    def mH(self) -> Tensor:
        """The last two axes exchanged, and the elements conjugated."""
        return self.mT.conj()

    @property
    def H(self) -> Tensor:
        """A matrix transposed and conjugated."""
        if self.ndim not in (0, 2):
            raise ShapeError(f"H: takes a matrix, not {self.ndim} axes. Use mH.")
        return self.mT.conj() if self.ndim else self

    def __getitem__(self, key) -> Tensor:
        return indexing.get(self, key)

    def __setitem__(self, key, value) -> None:
        indexing.put(self, key, value)

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
        """Overwrite with the values of ``src``, broadcast and converted; from any device. A number fills."""
        target = self._meta.device
        try:
            device = src._meta.device
        except AttributeError:
            src, device = tensor(number(src, "copy_: src"), device=target), target
        return movement.copy_(self, src if device is target else src.to(target))

    # Copies: Python copies or pickles a storage once, so what shared memory shares it again.

    def __reduce__(self):
        own = {name: value for name, value in vars(self).items() if name not in _FIELDS}
        return rebuild, (type(self), self._storage, self._meta, self._offset, self.requires_grad), own or None

    def __deepcopy__(self, memo) -> Tensor:
        if not self.is_leaf:
            raise GradientError("deepcopy: only leaves can be copied. Use .detach().clone().")
        make, arguments, own = self.__reduce__()
        out = memo[id(self)] = make(*deepcopy(arguments, memo))
        out._grad = deepcopy(self._grad, memo)
        vars(out).update(deepcopy(own or {}, memo))
        return out


def _reflected(function):
    forward = operator_of(function.op)
    return lambda self, other: forward(other, self)


_divided, _less = operator_of(division.div.op), operator_of(arithmetic.sub.op)


def _number_over(self, other):
    """``other / self`` of a number. The reciprocal of a half is rounded first, as in PyTorch."""
    if self._meta.dtype in LARGEST_HALF:
        return functions.reciprocal(self) * other
    out = _divided(other, self)
    return out if isinstance(other, Tensor) else labelled("MulBackward0", out)


def _from(self, other):
    """``other - self``, whose node has the name of `rsub`'s beside a number."""
    out = _less(other, self)
    return out if isinstance(other, Tensor) else labelled("RsubBackward1", out)


def _or_not(function):
    """An operator that lets Python try the other operand when this one cannot take it."""
    compare = operator_of(function.op)

    def operator(self, other):
        if isinstance(other, (Tensor, int, float, complex, np.generic, np.ndarray)):
            return compare(self, other)
        return NotImplemented

    return operator


QUERIES = (
    queries.is_conj, queries.is_inference, queries.is_neg, queries.is_nonzero, queries.is_same_size,
    queries.is_signed,
)  # fmt: skip

OPERATORS = {
    "__array_wrap__": from_ufunc,
    "__add__": arithmetic.add,
    "__radd__": arithmetic.add,
    "__sub__": arithmetic.sub,
    "__rsub__": _from,
    "__mul__": arithmetic.mul,
    "__rmul__": arithmetic.mul,
    "__truediv__": division.div,
    "__rtruediv__": _number_over,
    "__rdiv__": _number_over,
    "__floordiv__": division.floor_divide,
    "__rfloordiv__": _reflected(division.floor_divide),
    "__mod__": division.remainder,
    "__rmod__": _reflected(division.remainder),
    "__pow__": arithmetic.pow,
    "__rpow__": _reflected(arithmetic.pow),
    "__neg__": arithmetic.neg,
    "__matmul__": matmul.matmul,
    "__rmatmul__": _reflected(matmul.matmul),
    "__pos__": arithmetic.positive,
    "__abs__": functions.abs,
    "__invert__": bitwise.bitwise_not,
    "__and__": bitwise.bitwise_and,
    "__rand__": bitwise.bitwise_and,
    "__or__": bitwise.bitwise_or,
    "__ror__": bitwise.bitwise_or,
    "__xor__": bitwise.bitwise_xor,
    "__rxor__": bitwise.bitwise_xor,
    "__lshift__": bitwise.bitwise_left_shift,
    "__rshift__": bitwise.bitwise_right_shift,
    "__rlshift__": _reflected(bitwise.bitwise_left_shift),
    "__rrshift__": _reflected(bitwise.bitwise_right_shift),
    "__eq__": _or_not(comparison.eq),
    "__ne__": _or_not(comparison.ne),
    "__lt__": comparison.lt,
    "__le__": comparison.le,
    "__gt__": comparison.gt,
    "__ge__": comparison.ge,
    "__iadd__": in_place(arithmetic.add.op, operator=True),
    "__isub__": in_place(arithmetic.sub.op, operator=True),
    "__imul__": in_place(arithmetic.mul.op, operator=True),
    "__itruediv__": in_place(division.div.op, operator=True),
    "__ifloordiv__": in_place(division.floor_divide.op, operator=True),
    "__imod__": in_place(division.remainder.op, operator=True),
    "__ipow__": in_place(arithmetic.pow.op, operator=True),
    "__iand__": in_place(bitwise.bitwise_and.op, operator=True),
    "__ior__": in_place(bitwise.bitwise_or.op, operator=True),
    "__ixor__": in_place(bitwise.bitwise_xor.op, operator=True),
    "__ilshift__": in_place(bitwise.bitwise_left_shift.op, operator=True),
    "__irshift__": in_place(bitwise.bitwise_right_shift.op, operator=True),
}


def _attach() -> None:
    for name, method in vars(_Methods).items():
        if isinstance(method, FunctionType):
            method.__qualname__ = f"Tensor.{name}"
        if isinstance(method, (FunctionType, property, classmethod, staticmethod)):
            setattr(Tensor, name, method)
    for function in QUERIES:
        setattr(Tensor, function.__name__, function)
    for name, function in OPERATORS.items():
        setattr(Tensor, name, operator_of(function.op) if hasattr(function, "op") else function)


_forms: dict[str, Callable] = {}


def _attach_declared() -> None:
    """Give Tensor the methods and in-place forms of declarations that it does not have yet."""
    for name, method in METHODS.items():
        if vars(Tensor).get(name) is not method:
            setattr(Tensor, name, method)
    for name, op in IN_PLACE.items():
        if op.name not in _forms:
            _forms[op.name] = in_place(op)
        if vars(Tensor).get(name) is not _forms[op.name]:
            setattr(Tensor, name, _forms[op.name])


def functions_in_place() -> dict[str, Callable]:
    """What ``torch`` itself has of the in-place forms: ``torch.exp_(x)`` is ``x.exp_()``."""
    names = [name for name in public()["torch"] if name.endswith("_")]
    return {name: getattr(Tensor, name) for name in sorted(names) if hasattr(Tensor, name)}


_attach()
_attach_declared()
attach.append(_attach_declared)
refuse_methods(Tensor)
