"""Tensor with the methods and operators that `methods` attaches.

Written by `scripts/reference`; do not edit.
"""

import weakref
from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..device import device as Device
from ..ops.index.histograms import Histogram
from ..ops.index.sort import ValuesAndIndices
from ..ops.linalg.lu import LUFactor, LUFactorEx
from ..ops.linalg.older import USV, Triangular
from ..ops.linalg.orthogonal import QR, Reflections
from ..ops.linalg.solvers import SignAndLog
from ..ops.random.generator import Generator
from .dtypes import DType
from .formats import layout as _Layout
from .formats import memory_format
from .formats import memory_format as _MemoryFormat
from .meta import Meta
from .portable import Portable
from .shape import Size

# pyright: reportIncompatibleMethodOverride=false
class Tensor(Portable):
    """A tensor, with PyTorch's attributes and methods.

    Make one with `tensor`, `zeros`, `arange` and so on. Its memory is freed when the last reference to it
    goes."""

    _node: Any
    _index: _int
    _hooks: dict | None
    _after: dict | None
    _grad: Tensor | None
    _base: Tensor | None
    _views: dict[weakref.ref, None] | None
    __array_priority__: _int
    _storage: Any
    _meta: Meta
    _offset: _int
    def __init__(self, storage: Any = None, m: Any = None, offset: Any = None, *more: _int, device=None):
        """As `torch.Tensor`: memory of a shape that is given as integers, or a copy of data as floats. The
        package itself gives storage, layout and offset."""
    @property
    def shape(self) -> Size: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def device(self) -> Device: ...
    @property
    def ndim(self) -> _int: ...
    @property
    def requires_grad(self) -> _bool:
        """Whether derivatives with respect to it, or through it, are recorded."""
    @requires_grad.setter
    def requires_grad(self, value: _bool) -> None: ...
    @property
    def is_leaf(self) -> _bool: ...
    @property
    def grad_fn(self):
        """The node of the graph that computed it, or None for a leaf."""
    @property
    def itemsize(self) -> _int: ...
    @property
    def nbytes(self) -> _int: ...
    @property
    def is_webgpu(self) -> _bool: ...
    @property
    def _version(self) -> _int: ...
    def dim(self) -> _int:
        """Number of axes."""
    def size(self, dim: _int | None = None):
        """The shape, or the length of one axis."""
    def numel(self) -> _int:
        """Number of elements."""
    nelement = numel
    def stride(self, dim: _int | None = None):
        """Strides in elements, or that of one axis."""
    def storage_offset(self) -> _int:
        """Where the first element lies in the storage, in elements."""
    def data_ptr(self) -> _int:
        """A number that is equal for tensors that begin at the same element of the same storage."""
    def element_size(self) -> _int:
        """Bytes of one element."""
    def is_floating_point(self) -> _bool:
        """Whether the elements are floating-point numbers."""
    def __len__(self) -> _int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __hash__(self) -> _int: ...
    def __contains__(self, element) -> _bool: ...
    def __format__(self, spec: str) -> str: ...
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor:
        """Switch recording for a leaf on or off, and return it."""
    def detach(self) -> Tensor:
        """The same values outside the graph, sharing storage."""
    def detach_(self) -> Tensor:
        """Take this tensor itself out of the graph."""
    @property
    def data(self) -> Tensor:
        """The same values outside the graph, sharing storage; assigning replaces the values' storage."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def _set_grad(self, value: Tensor | None) -> None: ...
    grad: Tensor | None
    def retain_grad(self) -> None:
        """Keep ``.grad`` of a tensor that is not a leaf."""
    @property
    def retains_grad(self) -> _bool:
        """Whether ``.grad`` of this tensor, which is no leaf, is kept."""
    def register_hook(self, hook):
        """Call ``hook(grad)`` when the gradient of this tensor is known; what it returns replaces the
        gradient."""
    def register_post_accumulate_grad_hook(self, hook):
        """Call ``hook(tensor)`` after a walk has added to ``.grad`` of this leaf, for example to take an
        optimizer's step there."""
    def cpu(self, memory_format: Any = None) -> Tensor:
        """The tensor on the cpu device; ``memory_format`` as of `to`."""
    def webgpu(self) -> Tensor:
        """The tensor on the webgpu device."""
    def type_as(self, other: Tensor) -> Tensor:
        """``to(other.dtype)``."""
    def float(self, memory_format=None) -> Tensor:
        """As float32."""
    def double(self, memory_format=None) -> Tensor:
        """As float64 (cpu only)."""
    def half(self, memory_format=None) -> Tensor:
        """As float16."""
    def bfloat16(self, memory_format=None) -> Tensor:
        """As bfloat16."""
    def cfloat(self, memory_format=None) -> Tensor:
        """As complex64."""
    def cdouble(self, memory_format=None) -> Tensor:
        """As complex128 (cpu only)."""
    def byte(self, memory_format=None) -> Tensor:
        """As uint8."""
    def char(self, memory_format=None) -> Tensor:
        """As int8."""
    def short(self, memory_format=None) -> Tensor:
        """As int16."""
    def int(self, memory_format=None) -> Tensor:
        """As int32."""
    def long(self, memory_format=None) -> Tensor:
        """As int64."""
    def bool(self, memory_format=None) -> Tensor:
        """As bool: whether values are not zero."""
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str | None: ...
    def apply_(self, callable: Callable) -> Tensor:
        """Write ``callable(value)`` over every element, on the cpu device."""
    def map_(self, tensor: Tensor, callable: Callable) -> Tensor:
        """Write ``callable(value, other)`` over every element, with those of a tensor that broadcasts, on
        the cpu device."""
    def to_dense(self, dtype: DType | None = None, *, masked_grad: _bool | None = None) -> Tensor:
        """The tensor itself, which is dense; with another dtype if one is given."""
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: _bool | None = None,
        create_graph: _bool = False,
        inputs=None,
    ) -> None:
        """Add to ``.grad`` of every leaf the derivative of this tensor; see `pellucid.autograd.backward`."""
    def to(
        self,
        *args,
        dtype: DType | None = None,
        device=None,
        non_blocking: _bool = False,
        copy: _bool = False,
        memory_format=None,
    ) -> Tensor:
        """The tensor with another dtype or on another device; itself if nothing changes."""
    def type(self, dtype=None, non_blocking: _bool = False):
        """``to(dtype)``, of a dtype, a tensor type or its name; the name of its type if None."""
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None): ...
    @staticmethod
    def _make_subclass(kind, data: Tensor, require_grad: _bool = False): ...
    def as_subclass(self, cls):
        """The same tensor as one of a subclass, in the same place of the graph."""
    def _construct(self, given: tuple, device) -> Tensor: ...
    @property
    def real(self) -> Tensor:
        """The real parts, which share memory; of real numbers the tensor itself."""
    @property
    def imag(self) -> Tensor:
        """The imaginary parts, which share memory."""
    def new(self, *given, device=None) -> Tensor:
        """As ``torch.Tensor(...)``, of the same dtype and device."""
    def new_zeros(self, *size, dtype: DType | None = None, device=None, **how) -> Tensor:
        """Zeros of another shape, same dtype and device; ``how`` as of `zeros`."""
    def new_ones(self, *size, dtype: DType | None = None, device=None, **how) -> Tensor:
        """Ones of another shape, same dtype and device; ``how`` as of `ones`."""
    def new_empty(self, *size, dtype: DType | None = None, device=None, **how) -> Tensor:
        """Memory of another shape, same dtype and device; ``how`` as of `empty`."""
    def new_full(self, size, fill_value, dtype: DType | None = None, device=None, **how) -> Tensor:
        """One value in another shape, same dtype and device; ``how`` as of `full`."""
    def new_tensor(self, data, dtype: DType | None = None, device=None, **how) -> Tensor:
        """Data as a tensor, same dtype and device; ``how`` as of `tensor`."""
    @property
    def T(self) -> Tensor:
        """All axes in reverse order."""
    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
    @property
    def mH(self) -> Tensor:
        """The last two axes exchanged, and the elements conjugated."""
    @property
    def H(self) -> Tensor:
        """A matrix transposed and conjugated."""
    def __getitem__(self, key) -> Tensor: ...
    def __setitem__(self, key, value) -> None: ...
    def where(self, condition: Tensor, other) -> Tensor:
        """The tensor's own values where the condition holds, else ``other``."""
    def zero_(self) -> Tensor:
        """Every element 0."""
    def fill_(self, value) -> Tensor:
        """Every element ``value``."""
    def copy_(self, src: Tensor, non_blocking: _bool = False) -> Tensor:
        """Overwrite with the values of ``src``, broadcast and converted; from any device. A number fills."""
    def __reduce__(self): ...
    def __deepcopy__(self, memo) -> Tensor: ...
    def abs(self, *, out: Tensor | None = None) -> Tensor:
        """Absolute value."""
    def absolute(self, *, out: Tensor | None = None) -> Tensor:
        """Absolute value."""
    def acos(self, *, out: Tensor | None = None) -> Tensor:
        """Angle in radians whose cosine is the value."""
    def acosh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic cosine."""
    def add(self, other: Tensor | _float, *, alpha: _float = 1, out: Tensor | None = None) -> Tensor:
        """Sum: ``out = input + alpha * other``."""
    def addbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: _float | _complex = 1, alpha: _float | _complex = 1
    ) -> Tensor:
        """``beta * input + alpha * sum(batch1[k] @ batch2[k])``; ``input`` is not read where beta is 0."""
    def addbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: _float | _complex = 1, alpha: _float | _complex = 1
    ) -> Tensor:
        """In-place form of `addbmm`: writes the result into this tensor and returns it."""
    def addcdiv(
        self, tensor1: Tensor, tensor2: Tensor, *, value: _float = 1, out: Tensor | None = None
    ) -> Tensor:
        """``out = input + value * tensor1 / tensor2``."""
    def addcmul(
        self, tensor1: Tensor, tensor2: Tensor, *, value: _float = 1, out: Tensor | None = None
    ) -> Tensor:
        """``out = input + value * tensor1 * tensor2``."""
    def addmm(
        self,
        mat1: Tensor,
        mat2: Tensor,
        out_dtype: DType | None = None,
        *,
        beta: _float | _complex = 1,
        alpha: _float | _complex = 1,
    ) -> Tensor:
        """``beta * input + alpha * (mat1 @ mat2)``; ``input`` broadcasts and is not read where beta is 0,
        nor the product where alpha is 0. ``out_dtype`` as of `mm`."""
    def addmm_(
        self,
        mat1: Tensor,
        mat2: Tensor,
        out_dtype: DType | None = None,
        *,
        beta: _float | _complex = 1,
        alpha: _float | _complex = 1,
    ) -> Tensor:
        """In-place form of `addmm`: writes the result into this tensor and returns it."""
    def addmv(
        self, mat: Tensor, vec: Tensor, *, beta: _float | _complex = 1, alpha: _float | _complex = 1
    ) -> Tensor:
        """``beta * input + alpha * (mat @ vec)``; ``input`` is not read where beta is 0."""
    def addmv_(
        self, mat: Tensor, vec: Tensor, *, beta: _float | _complex = 1, alpha: _float | _complex = 1
    ) -> Tensor:
        """In-place form of `addmv`: writes the result into this tensor and returns it."""
    def addr(
        self, vec1: Tensor, vec2: Tensor, *, beta: _float | _complex = 1, alpha: _float | _complex = 1
    ) -> Tensor:
        """``beta * input + alpha * outer(vec1, vec2)``; ``input`` is not read where beta is 0."""
    def addr_(
        self, vec1: Tensor, vec2: Tensor, *, beta: _float | _complex = 1, alpha: _float | _complex = 1
    ) -> Tensor:
        """In-place form of `addr`: writes the result into this tensor and returns it."""
    def adjoint(self) -> Tensor:
        """The matrices of the last two axes transposed, and conjugated if complex."""
    def all(
        self,
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        *,
        out: Tensor | None = None,
        axis: _int | Sequence[_int] | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Whether all elements along axes differ from zero; bool (uint8 for uint8 input)."""
    def allclose(
        self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> _bool:
        """Whether `isclose` holds everywhere. Reads the answer, and so waits."""
    def amax(
        self,
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        *,
        out: Tensor | None = None,
        axis: _int | Sequence[_int] | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Largest element over axes; equal ones share the gradient."""
    def amin(
        self,
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        *,
        out: Tensor | None = None,
        axis: _int | Sequence[_int] | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Smallest element over axes; equal ones share the gradient."""
    def aminmax(
        self,
        *,
        dim: _int | None = None,
        keepdim: _bool = False,
        axis: _int | None = ...,
        keepdims: _bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """``(amin(input, dim), amax(input, dim))``, as ``min`` and ``max`` of a named tuple."""
    def angle(self, *, out: Tensor | None = None) -> Tensor:
        """The angle in radians from 1 to the number: 0 or pi of real ones."""
    def any(
        self,
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        *,
        out: Tensor | None = None,
        axis: _int | Sequence[_int] | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Whether any element along axes differs from zero; bool (uint8 for uint8 input)."""
    def arccos(self, *, out: Tensor | None = None) -> Tensor:
        """Angle in radians whose cosine is the value."""
    def arccosh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic cosine."""
    def arcsin(self, *, out: Tensor | None = None) -> Tensor:
        """Angle in radians whose sine is the value."""
    def arcsinh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic sine."""
    def arctan(self, *, out: Tensor | None = None) -> Tensor:
        """Angle in radians whose tangent is the value."""
    def arctan2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Angle in radians of the point (``other``, ``input``)."""
    def arctanh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic tangent."""
    def argmax(
        self,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        out: Tensor | None = None,
        axis: _int | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Where the largest element along an axis is, int64; the first of equal ones."""
    def argmin(
        self,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        out: Tensor | None = None,
        axis: _int | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Where the smallest element along an axis is, int64; the first of equal ones."""
    def argsort(
        self, dim: _int = -1, descending: _bool = False, stable: _bool = True, *, axis: _int = ...
    ) -> Tensor:
        """The places of the elements in order along an axis, int64; arguments as `sort`."""
    def argwhere(self) -> Tensor:
        """The indices of all elements that are not zero, one in each row. Waits for the device."""
    def as_strided(self, size, stride, storage_offset: _int | None = None) -> Tensor:
        """A view of the storage with given shape, strides and offset, all in elements."""
    def as_strided_(self, size, stride, storage_offset: _int | None = None) -> Tensor:
        """In-place form of `as_strided`: this tensor itself becomes that view of its storage. Nothing
        moves."""
    def as_strided_scatter(self, src: Tensor, size, stride, storage_offset: _int | None = None) -> Tensor:
        """A copy of ``input`` with ``src`` in what `as_strided` would show."""
    def asin(self, *, out: Tensor | None = None) -> Tensor:
        """Angle in radians whose sine is the value."""
    def asinh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic sine."""
    def atan(self, *, out: Tensor | None = None) -> Tensor:
        """Angle in radians whose tangent is the value."""
    def atan2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Angle in radians of the point (``other``, ``input``)."""
    def atanh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic tangent."""
    def baddbmm(
        self,
        batch1: Tensor,
        batch2: Tensor,
        out_dtype: DType | None = None,
        *,
        beta: _float | _complex = 1,
        alpha: _float | _complex = 1,
    ) -> Tensor:
        """``beta * input + alpha * (batch1 @ batch2)`` for batches of matrices; ``out_dtype`` as of `mm`."""
    def baddbmm_(
        self,
        batch1: Tensor,
        batch2: Tensor,
        out_dtype: DType | None = None,
        *,
        beta: _float | _complex = 1,
        alpha: _float | _complex = 1,
    ) -> Tensor:
        """In-place form of `baddbmm`: writes the result into this tensor and returns it."""
    def bernoulli(self, p: _float | None = None, *, generator: Generator | None = None) -> Tensor:
        """1 with the probability that ``input`` gives, else 0."""
    def bernoulli_(self, p: Tensor | _float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill with 1 of probability ``p``, else 0."""
    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """How often each integer from 0 on occurs, or the sum of its weights. Waits for the largest."""
    def bitwise_and(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Bitwise and; logical for bools."""
    def bitwise_left_shift(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Bits moved up by ``other`` places."""
    def bitwise_not(self, *, out: Tensor | None = None) -> Tensor:
        """Every bit inverted; logical not for bools."""
    def bitwise_or(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Bitwise or; logical for bools."""
    def bitwise_right_shift(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Bits moved down by ``other`` places; signed numbers keep their sign."""
    def bitwise_xor(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Bitwise exclusive or; logical for bools."""
    def bmm(self, mat2: Tensor, out_dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
        """Products of two batches of matrices, (b, n, l) by (b, l, m); ``out_dtype`` as of `mm`."""
    def broadcast_to(self, *given, size=None) -> Tensor:
        """``input.expand(size)``."""
    def cauchy_(
        self, median: _float = 0.0, sigma: _float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with numbers of a Cauchy distribution."""
    def ceil(self, *, out: Tensor | None = None) -> Tensor:
        """Rounded up."""
    def cholesky(self, upper: _bool = False) -> Tensor:
        """Cholesky factorization; `linalg.cholesky`."""
    def cholesky_inverse(self, upper: _bool = False, *, input: Tensor = ...) -> Tensor:
        """The inverse of a matrix from its Cholesky factor; arguments as `cholesky_solve`."""
    def cholesky_solve(
        self, L: Tensor = ..., upper: _bool = False, *, input: Tensor = ..., input2: Tensor = ...
    ) -> Tensor:
        """The ``X`` of ``A X = B`` from the Cholesky factor of A."""
    def chunk(self, chunks: _int, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
        """At most ``chunks`` views of equal length (the last may be shorter)."""
    def clamp(
        self,
        min: Tensor | _float | None = None,
        max: Tensor | _float | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        """Values moved into ``[min, max]``."""
    def clamp_max(self, max: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """`clamp` with ``max`` alone."""
    def clamp_min(self, min: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """`clamp` with ``min`` alone."""
    def clip(
        self,
        min: Tensor | _float | None = None,
        max: Tensor | _float | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        """Values moved into ``[min, max]``."""
    def clone(self, *, memory_format: memory_format | None = None, out: Tensor | None = None) -> Tensor:
        """A copy, contiguous or in a memory format."""
    def conj(self) -> Tensor:
        """The conjugate; of real numbers the tensor itself. It is computed at once, and no view."""
    def conj_physical(self, *, out: Tensor | None = None) -> Tensor:
        """The conjugate: the imaginary part negated."""
    def contiguous(self, memory_format=...) -> Tensor:
        """The tensor itself if its elements lie in row-major order, or in that of ``memory_format``, else
        a copy that does."""
    def copysign(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``|input|`` with the sign of ``other``."""
    def corrcoef(self) -> Tensor:
        """Correlation coefficients of variables, which are rows; columns are observations."""
    def cos(self, *, out: Tensor | None = None) -> Tensor:
        """Cosine of an angle in radians."""
    def cosh(self, *, out: Tensor | None = None) -> Tensor:
        """Hyperbolic cosine."""
    def count_nonzero(
        self, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = ...
    ) -> Tensor:
        """Number of elements that differ from zero, int64."""
    def cov(
        self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """Covariances of variables, which are rows; columns are observations."""
    def cross(self, other: Tensor, dim: _int | None = None, *, axis: _int | None = ...) -> Tensor:
        """Cross product of vectors of three elements."""
    def cummax(self, dim: _int = ..., *, axis: _int = ...) -> ValuesAndIndices:
        """Running maximum along an axis, and where it stands: ``values[i] = max(input[0], ...,
        input[i])``."""
    def cummin(self, dim: _int = ..., *, axis: _int = ...) -> ValuesAndIndices:
        """Running minimum along an axis, and where it stands; as `cummax`."""
    def cumprod(
        self, dim: _int = ..., *, dtype: DType | None = None, out: Tensor | None = None, axis: _int = ...
    ) -> Tensor:
        """Running product along an axis: ``out[..., i] = input[..., 0] * ... * input[..., i]``."""
    def cumprod_(self, dim: _int = ..., *, dtype: DType | None = None, axis: _int = ...) -> Tensor:
        """In-place form of `cumprod`: writes the result into this tensor and returns it."""
    def cumsum(
        self, dim: _int = ..., *, dtype: DType | None = None, out: Tensor | None = None, axis: _int = ...
    ) -> Tensor:
        """Running sum along an axis: ``out[..., i] = input[..., 0] + ... + input[..., i]``."""
    def cumsum_(self, dim: _int = ..., *, dtype: DType | None = None, axis: _int = ...) -> Tensor:
        """In-place form of `cumsum`: writes the result into this tensor and returns it."""
    def deg2rad(self, *, out: Tensor | None = None) -> Tensor:
        """Degrees as radians."""
    def dequantize(self) -> Tensor:
        """The values of a quantized weight."""
    def det(self) -> Tensor:
        """The determinant of matrices, by LU factorization."""
    def diag(self, diagonal: _int = 0) -> Tensor:
        """A matrix with a vector on a diagonal, or the vector on a diagonal of a matrix."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """The last axis as a diagonal of two new axes, with zeros beside it."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """A matrix with all elements on a diagonal."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The diagonal of two axes as the last axis, sharing storage."""
    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A copy of ``input`` with ``src`` on a diagonal of two axes."""
    def diff(
        self,
        n: _int = 1,
        dim: _int = -1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
        *,
        axis: _int = ...,
    ) -> Tensor:
        """Differences of neighbours: ``out[i] = input[i + 1] - input[i]``; of bools whether they differ."""
    def digamma(self, *, out: Tensor | None = None) -> Tensor:
        """Derivative of `lgamma`."""
    def dist(self, other: Tensor, p: _float = 2) -> Tensor:
        """Norm of a difference: ``(input - other).norm(p)``."""
    def div(
        self, other: Tensor | _float, *, rounding_mode: str | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Quotient: ``out = input / other``, floating point for integers too."""
    def divide(
        self, other: Tensor | _float, *, rounding_mode: str | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Quotient: ``out = input / other``, floating point for integers too."""
    def dot(self, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Product of two vectors, (l,) by (l,): a tensor without axes."""
    def dsplit(
        self,
        indices_or_sections=None,
        *further: _int,
        indices: Sequence[_int] | None = None,
        sections: _int | None = None,
    ) -> tuple[Tensor, ...]:
        """`tensor_split` along axis 2 into parts of one length."""
    def eq(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input == other``."""
    def equal(self, other: Tensor) -> _bool:
        """Whether two tensors have the same shape and values. Reads the answer, and so waits."""
    def erf(self, *, out: Tensor | None = None) -> Tensor:
        """Error function: ``2 / sqrt(pi) * integral of exp(-t^2) from 0 to input``."""
    def erfc(self, *, out: Tensor | None = None) -> Tensor:
        """``1 - erf(input)``, accurate for large values."""
    def erfinv(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse of `erf`."""
    def exp(self, *, out: Tensor | None = None) -> Tensor:
        """``e ** input``."""
    def exp2(self, *, out: Tensor | None = None) -> Tensor:
        """``2 ** input``."""
    def expand(self, *given, size=None) -> Tensor:
        """Axes of length 1 repeated without a copy (their stride becomes 0)."""
    def expand_as(self, other: Tensor) -> Tensor:
        """``input.expand(other.shape)``."""
    def expm1(self, *, out: Tensor | None = None) -> Tensor:
        """``e ** input - 1``, accurate near zero."""
    def exponential_(self, lambd: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with exponentially distributed numbers of rate ``lambd``."""
    def fill_diagonal_(self, fill_value: _float, wrap: _bool = False) -> Tensor:
        """Overwrite the main diagonal with a number."""
    def fix(self, *, out: Tensor | None = None) -> Tensor:
        """Rounded toward zero."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Axes ``start_dim`` to ``end_dim`` as one."""
    def flip(self, *axes, dims=()) -> Tensor:
        """A copy with the order of some axes reversed, which are given by place or as ``dims``."""
    def fliplr(self) -> Tensor:
        """A copy with the order of axis 1 reversed."""
    def flipud(self) -> Tensor:
        """A copy with the order of axis 0 reversed."""
    def float_power(self, exponent: Tensor | _float) -> Tensor:
        """`pow` in float64, of complex numbers in complex128."""
    def float_power_(self, exponent: Tensor | _float) -> Tensor:
        """In-place form of `float_power`, of tensors that have its dtype."""
    def floor(self, *, out: Tensor | None = None) -> Tensor:
        """Rounded down."""
    def floor_divide(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Quotient rounded down: ``out = floor(input / other)``."""
    def fmax(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The larger of two; the other one where one is NaN."""
    def fmin(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The smaller of two; the other one where one is NaN."""
    def fmod(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Remainder with the sign of ``input``, as C's ``fmod``."""
    def frac(self, *, out: Tensor | None = None) -> Tensor:
        """The part after the point: ``input - trunc(input)``."""
    def frexp(self) -> tuple[Tensor, Tensor]:
        """(mantissa, exponent) with ``input == mantissa * 2 ** exponent`` and mantissas from 0.5 to 1."""
    def gather(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        *,
        sparse_grad: _bool = False,
        out: Tensor | None = None,
        axis: _int = ...,
    ) -> Tensor:
        """``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other axes."""
    def gcd(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The greatest divisor of both; of 0 and a number the number's size."""
    def ge(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input >= other``."""
    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers of trials up to the first success, of probability ``p`` each."""
    def geqrf(self, *, out: Tensor | None = None) -> Reflections:
        """QR factorization as LAPACK has it: ``(a, tau)``, from which `linalg.householder_product` makes
        Q."""
    def ger(self, vec2: Tensor) -> Tensor:
        """``out[i, j] = input[i] * vec2[j]``."""
    def greater(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input > other``."""
    def greater_equal(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input >= other``."""
    def gt(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input > other``."""
    def hardshrink(self, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
        """``input``, but 0 where it is at most ``lambd`` away from 0."""
    def heaviside(self, values: Tensor, *, out: Tensor | None = None) -> Tensor:
        """0 of negative numbers and NaN, 1 of positive ones, ``values`` at 0."""
    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        """How many elements lie in each of ``bins`` equal parts of ``[min, max]``; others do not count."""
    def histogram(
        self, bins=100, *, range=None, weight: Tensor | None = None, density: _bool = False
    ) -> Histogram:
        """How many elements lie in each bin, each of which has its left edge and the last one its right,
        too."""
    def hsplit(
        self,
        indices_or_sections=None,
        *further: _int,
        indices: Sequence[_int] | None = None,
        sections: _int | None = None,
    ) -> tuple[Tensor, ...]:
        """`tensor_split` along axis 1, or 0 of a vector, into parts of one length."""
    def hypot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``sqrt(input^2 + other^2)``, without overflow."""
    def i0(self, *, out: Tensor | None = None) -> Tensor:
        """Modified Bessel function of the first kind, of order 0."""
    def igamma(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The lower share of the gamma function of ``input``, up to ``other``."""
    def igammac(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The upper share of the gamma function of ``input``, from ``other`` on."""
    def index_add(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        source: Tensor = ...,
        *,
        alpha: _float | _complex = 1,
        axis: _int = ...,
    ) -> Tensor:
        """A copy of ``input`` with ``out[..., index[n], ...] += alpha * source[..., n, ...]``, in the
        order of n."""
    def index_add_(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        source: Tensor = ...,
        *,
        alpha: _float | _complex = 1,
        axis: _int = ...,
    ) -> Tensor:
        """In-place form of `index_add`: writes the result into this tensor and returns it."""
    def index_copy(
        self, dim: _int = ..., index: Tensor = ..., source: Tensor = ..., *, axis: _int = ...
    ) -> Tensor:
        """A copy with lines of an axis replaced: ``out[..., index[n], ...] = source[..., n, ...]``."""
    def index_copy_(
        self, dim: _int = ..., index: Tensor = ..., source: Tensor = ..., *, axis: _int = ...
    ) -> Tensor:
        """In-place form of `index_copy`: writes the result into this tensor and returns it."""
    def index_fill(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        value: Tensor | _float | _complex = ...,
        *,
        axis: _int = ...,
    ) -> Tensor:
        """A copy with lines of an axis filled: ``out[..., index[n], ...] = value``."""
    def index_fill_(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        value: Tensor | _float | _complex = ...,
        *,
        axis: _int = ...,
    ) -> Tensor:
        """In-place form of `index_fill`: writes the result into this tensor and returns it."""
    def index_put(self, indices, values: Tensor, accumulate: _bool = False) -> Tensor:
        """A copy of ``input`` with ``out[indices] = values``, or added with ``accumulate``."""
    def index_put_(self, indices, values: Tensor, accumulate: _bool = False) -> Tensor:
        """In-place form of `index_put`: writes the result into this tensor and returns it."""
    def index_reduce(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        source: Tensor = ...,
        reduce: str = ...,
        *,
        include_self: _bool = True,
        axis: _int = ...,
    ) -> Tensor:
        """A copy of ``input`` in which each line of an axis combines the lines of ``source`` that go
        there: ``out[index[n]] = reduce(out[index[n]], source[n])`` for dim 0, and so on."""
    def index_reduce_(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        source: Tensor = ...,
        reduce: str = ...,
        *,
        include_self: _bool = True,
        axis: _int = ...,
    ) -> Tensor:
        """In-place form of `index_reduce`: writes the result into this tensor and returns it."""
    def index_select(
        self, dim: _int = ..., index: Tensor = ..., *, out: Tensor | None = None, axis: _int = ...
    ) -> Tensor:
        """``out[..., j, ...] = input[..., index[j], ...]`` along one axis."""
    def inner(self, other: Tensor) -> Tensor:
        """Products of all vectors along the last axes: ``out[i, j] = sum(input[i] * other[j])``."""
    def inverse(self) -> Tensor:
        """The inverse of matrices, by LU factorization. To multiply with it, `linalg.solve` is quicker and
        more exact."""
    def is_complex(self) -> _bool:
        """Whether the elements are complex numbers."""
    def isclose(
        self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> Tensor:
        """``|input - other| <= atol + rtol * |other|``, element by element."""
    def isfinite(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the value is neither infinite nor NaN."""
    def isinf(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the value is infinite."""
    def isnan(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the value is NaN."""
    def isneginf(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the value is negative infinity."""
    def isposinf(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the value is positive infinity."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0."""
    def istft(
        self,
        n_fft: _int,
        hop_length: _int | None = None,
        win_length: _int | None = None,
        window: Tensor | None = None,
        center: _bool = True,
        normalized: _bool = False,
        onesided: _bool | None = None,
        length: _int | None = None,
        return_complex: _bool = False,
    ) -> Tensor:
        """The signal of which `stft` made ``input``: pieces are added where they overlap, and divided by
        what squared windows add up to. It reads whether that is 0 anywhere, and so waits."""
    def kron(self, other: Tensor) -> Tensor:
        """Kronecker product: every element of ``input`` times all of ``other``."""
    def kthvalue(
        self, k: _int, dim: _int = -1, keepdim: _bool = False, *, axis: _int = ..., keepdims: _bool = ...
    ) -> ValuesAndIndices:
        """The ``k``-th smallest value of each row, counted from 1, and its place."""
    def lcm(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The least multiple of both that is not negative; 0 where one is 0."""
    def ldexp(self, other: Tensor) -> Tensor:
        """``input * 2 ** other``."""
    def ldexp_(self, other: Tensor) -> Tensor:
        """In-place form of `ldexp`: writes the result into this tensor and returns it."""
    def le(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input <= other``."""
    def lerp(self, end: Tensor, weight: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Linear interpolation: ``out = input + weight * (end - input)``."""
    def less(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input < other``."""
    def less_equal(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input <= other``."""
    def lgamma(self, *, out: Tensor | None = None) -> Tensor:
        """Logarithm of the size of the gamma function."""
    def log(self, *, out: Tensor | None = None) -> Tensor:
        """Natural logarithm."""
    def log10(self, *, out: Tensor | None = None) -> Tensor:
        """Logarithm to base 10."""
    def log1p(self, *, out: Tensor | None = None) -> Tensor:
        """``log(1 + input)``, accurate near zero."""
    def log2(self, *, out: Tensor | None = None) -> Tensor:
        """Logarithm to base 2."""
    def log_normal_(
        self, mean: _float = 1.0, std: _float = 2.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with numbers whose logarithms are normal."""
    def log_softmax(
        self, dim: _int = ..., dtype: DType | None = None, *, out: Tensor | None = None, axis: _int = ...
    ) -> Tensor:
        """``out_i = x_i - log(sum_j exp(x_j))`` along an axis, without overflow."""
    def logaddexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``log(exp(input) + exp(other))``."""
    def logaddexp2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``log2(2^input + 2^other)``."""
    def logcumsumexp(self, dim: _int = ..., *, axis: _int = ...) -> Tensor:
        """Logarithm of the running sum of exponentials: ``out[i] = log(exp(input[0]) + ... +
        exp(input[i]))``."""
    def logdet(self) -> Tensor:
        """The logarithm of the determinant of matrices: -inf where it is 0, NaN where it is negative. That
        of complex matrices is complex."""
    def logical_and(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether both are not zero."""
    def logical_not(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the value is zero."""
    def logical_or(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether one is not zero."""
    def logical_xor(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether exactly one is not zero."""
    def logit(self, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
        """``log(input / (1 - input))``."""
    def logsumexp(
        self,
        dim: _int | Sequence[_int] = ...,
        keepdim: _bool = False,
        *,
        axis: _int | Sequence[_int] = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """``log(sum(exp(input), dim))`` without overflow."""
    def lt(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input < other``."""
    def lu(
        self, pivot: _bool = True, get_infos: _bool = False, *, input: Tensor = ...
    ) -> LUFactor | LUFactorEx:
        """LU factorization; `linalg.lu_factor`, or with get_infos `linalg.lu_factor_ex`. A matrix that is
        singular is no error."""
    def lu_solve(self, LU_data: Tensor = ..., LU_pivots: Tensor = ..., *, input: Tensor = ...) -> Tensor:
        """The ``X`` of ``A X = b`` from an LU factorization; `linalg.lu_solve`."""
    def masked_fill(self, mask: Tensor, value: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``value`` where the mask holds, else ``input``."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """A copy with the elements of ``source``, in order, where ``mask`` is true."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """In-place form of `masked_scatter`: writes the result into this tensor and returns it."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where ``mask`` is true, as one axis. Waits for the device: their number is data."""
    def matmul(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Matrix product over the last two axes: ``out[..., i, j] = sum_l input[..., i, l] * other[..., l,
        j]``."""
    def matrix_exp(self) -> Tensor:
        """The exponential of square matrices: ``I + A + A²/2 + A³/6 + ...``."""
    def matrix_power(self, n: _int) -> Tensor:
        """A power of square matrices, by squaring."""
    def max(
        self,
        dim: _int | Tensor | None = None,
        keepdim: _bool = False,
        *,
        other: Tensor | None = None,
        out: Tensor | None = None,
        axis: _int | Tensor | None = ...,
        keepdims: _bool = ...,
    ):
        """Largest element of all; with ``dim`` largest along it as (values, indices); with a tensor the
        larger of two, element by element."""
    def maximum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The larger of two, element by element; NaN if one is NaN."""
    def mean(
        self,
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        *,
        dtype: DType | None = None,
        out: Tensor | None = None,
        axis: _int | Sequence[_int] | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Mean over axes: ``sum(input, dim) / count``."""
    def median(
        self,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        axis: _int | None = ...,
        keepdims: _bool = ...,
    ):
        """The middle of the sorted values, the lower of two; NaN where there is one."""
    def min(
        self,
        dim: _int | Tensor | None = None,
        keepdim: _bool = False,
        *,
        other: Tensor | None = None,
        out: Tensor | None = None,
        axis: _int | Tensor | None = ...,
        keepdims: _bool = ...,
    ):
        """Smallest element of all; with ``dim`` smallest along it as (values, indices); with a tensor the
        smaller of two, element by element."""
    def minimum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The smaller of two, element by element; NaN if one is NaN."""
    def mm(self, mat2: Tensor, out_dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
        """Product of two matrices, (n, l) by (l, m)."""
    def mode(
        self, dim: _int = -1, keepdim: _bool = False, *, axis: _int = ..., keepdims: _bool = ...
    ) -> ValuesAndIndices:
        """The most frequent value of each row, the smallest of several, and the last place where it
        stands."""
    def moveaxis(self, source, destination) -> Tensor:
        """Axes moved to new places, the others keeping their order."""
    def movedim(self, source, destination) -> Tensor:
        """Axes moved to new places, the others keeping their order."""
    def msort(self) -> Tensor:
        """The values sorted along the first axis."""
    def mul(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Product: ``out = input * other``."""
    def multinomial(
        self, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Indices drawn in proportion to weights. Waits for the device, which looks at the weights."""
    def multiply(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Product: ``out = input * other``."""
    def mv(self, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Product of a matrix and a vector, (n, l) by (l,)."""
    def mvlgamma(self, p: _int) -> Tensor:
        """Logarithm of the gamma function of p dimensions."""
    def mvlgamma_(self, p: _int) -> Tensor:
        """In-place form of `mvlgamma`: writes the result into this tensor and returns it."""
    def nan_to_num(
        self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None
    ) -> Tensor:
        """The tensor with numbers in the place of NaN and infinity."""
    def nan_to_num_(
        self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None
    ) -> Tensor:
        """In-place form of `nan_to_num`: writes the result into this tensor and returns it."""
    def nanmean(
        self,
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        *,
        dtype: DType | None = None,
        axis: _int | Sequence[_int] | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Mean of what is not NaN."""
    def nanmedian(
        self,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        axis: _int | None = ...,
        keepdims: _bool = ...,
    ):
        """`median` of what is not NaN."""
    def nanquantile(
        self,
        q,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        interpolation: str = "linear",
        axis: _int | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """`quantile` of what is not NaN."""
    def nansum(
        self,
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        *,
        dtype: DType | None = None,
        axis: _int | Sequence[_int] | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Sum of what is not NaN."""
    def narrow(self, dim: _int = ..., start: _int = ..., length: _int = ..., *, axis: _int = ...) -> Tensor:
        """Part of one axis, sharing storage."""
    def narrow_copy(
        self, dim: _int = ..., start: _int = ..., length: _int = ..., *, axis: _int = ...
    ) -> Tensor:
        """A copy of what `narrow` shows."""
    def ne(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input != other``."""
    def neg(self, *, out: Tensor | None = None) -> Tensor:
        """Negative: ``out = -input``."""
    def negative(self, *, out: Tensor | None = None) -> Tensor:
        """Negative: ``out = -input``."""
    def new_empty_strided(
        self,
        size,
        stride,
        *,
        dtype: DType | None = None,
        device=None,
        requires_grad: _bool = False,
        layout: _Layout | None = None,
        memory_format: _MemoryFormat | None = None,
        pin_memory: _bool | None = None,
    ) -> Tensor:
        """`empty_strided` with the dtype and device of this tensor."""
    def nextafter(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The number next to ``input`` toward ``other``."""
    def nonzero(self, *, as_tuple: _bool = False) -> Any:
        """The indices of all elements that are not zero, in row-major order. Waits for the device: their
        number is data."""
    def nonzero_async(self, *, as_tuple: _bool = False) -> Any:
        """The awaitable twin of `nonzero`."""
    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor:
        """The first ``size`` indices of elements that are not zero, then rows of ``fill_value``. Does not
        wait."""
    def norm(
        self,
        p: _float | str | None = "fro",
        dim=None,
        keepdim: _bool = False,
        dtype: DType | None = None,
        *,
        axis=...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Vector norm of this tensor over axes; `pellucid.norm` explains the arguments."""
    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with normal random numbers."""
    def not_equal(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input != other``."""
    def orgqr(self, tau: Tensor) -> Tensor:
        """The first columns of a product of Householder reflections ``I - tau v vᴴ``; the Q of `geqrf`."""
    def ormqr(
        self,
        tau: Tensor = ...,
        other: Tensor = ...,
        left: _bool = True,
        transpose: _bool = False,
        *,
        input2: Tensor = ...,
        input3: Tensor = ...,
    ) -> Tensor:
        """The product of Q, as `geqrf` has it, with a matrix."""
    def outer(self, vec2: Tensor) -> Tensor:
        """``out[i, j] = input[i] * vec2[j]``."""
    def permute(self, *given, dims=None) -> Tensor:
        """Axes in another order, sharing storage."""
    def pinverse(self, rcond: _float = 1e-15) -> Tensor:
        """The pseudo-inverse of matrices; `linalg.pinv` with another tolerance."""
    def polygamma(self, n: _int) -> Tensor:
        """`polygamma` of order n."""
    def polygamma_(self, n: _int) -> Tensor:
        """In-place form of `polygamma`: writes the result into this tensor and returns it."""
    def positive(self) -> Tensor:
        """The tensor itself."""
    def pow(self, exponent: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Power: ``out = input ** exponent``."""
    def prelu(self, weight: Tensor) -> Tensor:
        """``input`` where positive, else ``weight * input``."""
    def prod(
        self,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        dtype: DType | None = None,
        out: Tensor | None = None,
        axis: _int | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Product over one axis, or of all elements: ``out = prod_r input[..., r, ...]``."""
    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """A copy with ``source`` at places of the flat tensor, or added there."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """In-place form of `put`: writes the result into this tensor and returns it."""
    def qr(self, some: _bool = True) -> QR:
        """QR factorization; `linalg.qr` with mode "reduced", or "complete" if not some."""
    def quantile(
        self,
        q,
        dim: _int | None = None,
        keepdim: _bool = False,
        *,
        interpolation: str = "linear",
        axis: _int | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Value below which a share ``q`` of the elements of each row lies; NaN where there is one."""
    def rad2deg(self, *, out: Tensor | None = None) -> Tensor:
        """Radians as degrees."""
    def random_(self, low: _int = 0, to: _int | None = None, *, generator: Generator | None = None) -> Tensor:
        """Fill with random integers from ``low`` to before ``to``; ``random_(to)`` begins at 0. Without
        bounds they go up to what the dtype holds exactly, at most 2^31 - 1."""
    def ravel(self) -> Tensor:
        """All elements along one axis."""
    def reciprocal(self, *, out: Tensor | None = None) -> Tensor:
        """``1 / input``."""
    def relu(self, *, out: Tensor | None = None) -> Tensor:
        """``max(input, 0)``."""
    def remainder(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Remainder with the sign of ``other``, as Python's ``%``."""
    def renorm(self, p: _float, dim: _int = ..., maxnorm: _float = ..., *, axis: _int = ...) -> Tensor:
        """Parts along an axis scaled down so that the norm of none is above ``maxnorm``."""
    def renorm_(self, p: _float, dim: _int = ..., maxnorm: _float = ..., *, axis: _int = ...) -> Tensor:
        """In-place form of `renorm`: writes the result into this tensor and returns it."""
    def repeat(self, *given, repeats=None) -> Tensor:
        """The tensor copied several times along each axis."""
    def repeat_interleave(
        self,
        repeats: _int | Tensor | None = None,
        dim: _int | None = None,
        *,
        output_size: _int | None = None,
        axis: _int | None = ...,
    ) -> Tensor:
        """Every element of an axis repeated in place."""
    def reshape(self, *given, shape=None) -> Tensor:
        """The same elements in another shape: a view where strides allow it, else a copy."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """``input.reshape(other.shape)``."""
    def resize_(self, *given, size=None, memory_format=None) -> Tensor:
        """Give the tensor itself another shape over its storage, which grows where it is too short."""
    def resize_as_(self, the_template: Tensor, *, memory_format=None) -> Tensor:
        """``input.resize_(the_template.shape)``."""
    def resolve_conj(self) -> Tensor:
        """The tensor itself: conjugates are computed at once."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself: negatives are computed at once."""
    def roll(self, shifts, dims=None) -> Tensor:
        """Elements moved along axes; those that leave at one end come in at the other."""
    def rot90(self, k: _int = 1, dims: Sequence[_int] = (0, 1)) -> Tensor:
        """A copy rotated by ``k`` times 90 degrees in the plane of two axes, from the first towards the
        second."""
    def round(self, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
        """Rounded to the nearest integer, halves to even."""
    def rsqrt(self, *, out: Tensor | None = None) -> Tensor:
        """``1 / sqrt(input)``."""
    def scatter(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        src=None,
        *,
        value: _float | None = None,
        reduce: str | None = None,
        axis: _int = ...,
    ) -> Tensor:
        """A copy of ``input`` with ``out[index[i][j]][j] = src[i][j]`` for dim 0, and so on; of equal
        places the last source stays."""
    def scatter_(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        src=None,
        *,
        value: _float | None = None,
        reduce: str | None = None,
        axis: _int = ...,
    ) -> Tensor:
        """In-place form of `scatter`: writes the result into this tensor and returns it."""
    def scatter_add(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        src: Tensor = ...,
        *,
        out: Tensor | None = None,
        axis: _int = ...,
    ) -> Tensor:
        """A copy of ``input`` with ``out[index[i][j]][j] += src[i][j]`` for dim 0, and so on, added in the
        order of the sources."""
    def scatter_add_(
        self, dim: _int = ..., index: Tensor = ..., src: Tensor = ..., *, axis: _int = ...
    ) -> Tensor:
        """In-place form of `scatter_add`: writes the result into this tensor and returns it."""
    def scatter_reduce(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        src: Tensor = ...,
        reduce: str = ...,
        *,
        include_self: _bool = True,
        axis: _int = ...,
    ) -> Tensor:
        """A copy of ``input`` in which each place along an axis combines the sources that go there:
        ``out[index[i][j]][j] = reduce(out[index[i][j]][j], src[i][j])`` for dim 0, and so on."""
    def scatter_reduce_(
        self,
        dim: _int = ...,
        index: Tensor = ...,
        src: Tensor = ...,
        reduce: str = ...,
        *,
        include_self: _bool = True,
        axis: _int = ...,
    ) -> Tensor:
        """In-place form of `scatter_reduce`: writes the result into this tensor and returns it."""
    def select(self, dim: _int = ..., index: _int = ..., *, axis: _int = ...) -> Tensor:
        """One position of an axis, which disappears; shares storage."""
    def select_scatter(self, src: Tensor, dim: _int = ..., index: _int = ..., *, axis: _int = ...) -> Tensor:
        """A copy of ``input`` with ``src`` at one position of an axis."""
    def set_(self, source=None, storage_offset: _int = 0, size=None, stride=None) -> Tensor:
        """Let the tensor itself be a view of other memory, which it shares from then on."""
    def sgn(self, *, out: Tensor | None = None) -> Tensor:
        """The number over its size, 0 at 0: of real ones the sign."""
    def sigmoid(self, *, out: Tensor | None = None) -> Tensor:
        """``1 / (1 + exp(-input))``."""
    def sign(self, *, out: Tensor | None = None) -> Tensor:
        """-1, 0 or 1 by the sign of the value; 0 for NaN."""
    def signbit(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the sign is that of a negative number, also of -0.0 and NaN."""
    def sin(self, *, out: Tensor | None = None) -> Tensor:
        """Sine of an angle in radians."""
    def sinc(self, *, out: Tensor | None = None) -> Tensor:
        """``sin(pi * input) / (pi * input)``, 1 at 0."""
    def sinh(self, *, out: Tensor | None = None) -> Tensor:
        """Hyperbolic sine."""
    def slice_scatter(
        self,
        src: Tensor,
        dim: _int = 0,
        start: _int | None = None,
        end: _int | None = None,
        step: _int = 1,
        *,
        axis: _int = ...,
    ) -> Tensor:
        """A copy of ``input`` with ``src`` in a slice of an axis."""
    def slogdet(self) -> SignAndLog:
        """The determinant of matrices as its sign and the logarithm of its size, which does not overflow."""
    def softmax(
        self, dim: _int = ..., dtype: DType | None = None, *, out: Tensor | None = None, axis: _int = ...
    ) -> Tensor:
        """``out_i = exp(x_i) / sum_j exp(x_j)`` along an axis; a row of only -inf gives NaN."""
    def sort(
        self,
        dim: _int = -1,
        descending: _bool = False,
        stable: _bool = True,
        *,
        out: Tensor | None = None,
        axis: _int = ...,
    ) -> ValuesAndIndices:
        """Elements in order along an axis, and where they were."""
    def split(
        self, split_size_or_sections=..., dim: _int = 0, *, axis: _int = ..., split_size=...
    ) -> tuple[Tensor, ...]:
        """Views of consecutive parts of an axis."""
    def split_with_sizes(self, split_sizes, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
        """`split` with a list of lengths."""
    def sqrt(self, *, out: Tensor | None = None) -> Tensor:
        """Square root."""
    def square(self, *, out: Tensor | None = None) -> Tensor:
        """``input * input``."""
    def squeeze(
        self, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = ...
    ) -> Tensor:
        """Without axes of length 1 (all, or those of ``dim``), sharing storage."""
    def squeeze_(
        self, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = ...
    ) -> Tensor:
        """In-place form of `squeeze`: this tensor itself becomes that view of its storage. Nothing moves."""
    def std(
        self,
        dim=None,
        unbiased: _bool | None = None,
        keepdim: _bool = False,
        *,
        correction: _float | None = None,
        axis=...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Standard deviation over axes: the square root of `var`, same arguments."""
    def stft(
        self,
        n_fft: _int,
        hop_length: _int | None = None,
        win_length: _int | None = None,
        window: Tensor | None = None,
        center: _bool = True,
        pad_mode: str = "reflect",
        normalized: _bool = False,
        onesided: _bool | None = None,
        return_complex: _bool | None = None,
        align_to_window: _bool | None = None,
    ) -> Tensor:
        """Short-time Fourier transform: ``out[..., m] = fft(window * input[m hop_length :][: n_fft])``."""
    def sub(self, other: Tensor | _float, *, alpha: _float = 1, out: Tensor | None = None) -> Tensor:
        """Difference: ``out = input - alpha * other``."""
    def subtract(self, other: Tensor | _float, *, alpha: _float = 1, out: Tensor | None = None) -> Tensor:
        """Difference: ``out = input - alpha * other``."""
    def sum(
        self,
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        *,
        dtype: DType | None = None,
        out: Tensor | None = None,
        axis: _int | Sequence[_int] | None = ...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Sum over axes: ``out = sum_r input[..., r, ...]``."""
    def sum_to_size(self, *given, size=None) -> Tensor:
        """The sum over axes that a broadcast from ``size`` would have made."""
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> USV:
        """Singular values ``A = U diag(S) Vᴴ``; `linalg.svd`, which gives Vᴴ."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """`transpose`, by numpy's names."""
    def swapaxes_(self, axis0: _int, axis1: _int) -> Tensor:
        """In-place form of `swapaxes`: this tensor itself becomes that view of its storage. Nothing moves."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """Two axes exchanged, sharing storage."""
    def swapdims_(self, dim0: _int, dim1: _int) -> Tensor:
        """In-place form of `transpose`: this tensor itself becomes that view of its storage. Nothing
        moves."""
    def t(self) -> Tensor:
        """The transpose of a matrix; tensors of fewer axes as they are."""
    def t_(self) -> Tensor:
        """In-place form of `t`: this tensor itself becomes that view of its storage. Nothing moves."""
    def take(self, index: Tensor) -> Tensor:
        """Elements by their places in the flat tensor, in the shape of ``index``."""
    def take_along_dim(self, indices: Tensor, dim: _int | None = None, *, axis: _int | None = ...) -> Tensor:
        """`gather` with broadcasting of the other axes; all elements are counted through if ``dim`` is
        None. Along an axis negative indices count from the end."""
    def tan(self, *, out: Tensor | None = None) -> Tensor:
        """Tangent of an angle in radians."""
    def tanh(self, *, out: Tensor | None = None) -> Tensor:
        """Hyperbolic tangent."""
    def tensor_split(
        self,
        indices_or_sections=None,
        dim: _int = 0,
        *,
        indices: Sequence[_int] | None = None,
        sections: _int | None = None,
        axis: _int = ...,
    ) -> tuple[Tensor, ...]:
        """Views of parts of an axis: so many, of lengths that differ by at most one, or cut at given
        positions."""
    def tile(self, *given, dims=None) -> Tensor:
        """`repeat` with missing leading counts taken as 1."""
    def topk(
        self,
        k: _int,
        dim: _int = -1,
        largest: _bool = True,
        sorted: _bool = True,
        *,
        out: Tensor | None = None,
        axis: _int = ...,
    ) -> ValuesAndIndices:
        """The ``k`` largest (or smallest) elements along an axis, in order, and where they were."""
    def trace(self) -> Tensor:
        """Sum of the main diagonal of a matrix."""
    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """Two axes exchanged, sharing storage."""
    def transpose_(self, dim0: _int, dim1: _int) -> Tensor:
        """In-place form of `transpose`: this tensor itself becomes that view of its storage. Nothing
        moves."""
    def triangular_solve(
        self,
        A: Tensor = ...,
        upper: _bool = True,
        transpose: _bool = False,
        unitriangular: _bool = False,
        *,
        input: Tensor = ...,
    ) -> Triangular:
        """The ``X`` of ``A X = b`` where A is triangular, and a copy of A; `linalg.solve_triangular`."""
    def tril(self, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """The lower triangle of the last two axes; zero above the diagonal."""
    def triu(self, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """The upper triangle of the last two axes; zero below the diagonal."""
    def true_divide(self, other: Tensor | _float) -> Tensor:
        """`div` without rounding."""
    def true_divide_(self, other: Tensor | _float) -> Tensor:
        """In-place form of `true_divide`: writes the result into this tensor and returns it."""
    def trunc(self, *, out: Tensor | None = None) -> Tensor:
        """Rounded toward zero."""
    def unbind(self, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
        """Every position of an axis, as views without it."""
    def unflatten(self, dim: _int = ..., sizes: Sequence[_int] = ..., *, axis: _int = ...) -> Tensor:
        """One axis as several."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """Windows of an axis that begin every ``step`` elements, along a new last axis, sharing storage."""
    def uniform_(self, a: _float = 0.0, to: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with uniform random numbers from ``a``, which PyTorch calls ``from``, to ``to``."""
    def unique(
        self,
        sorted: _bool = True,
        return_inverse: _bool = False,
        return_counts: _bool = False,
        dim: _int | None = None,
        *,
        axis: _int | None = ...,
    ) -> Any:
        """The different elements, or slices of an axis, in ascending order. Waits: their number is data."""
    def unique_consecutive(
        self,
        return_inverse: _bool = False,
        return_counts: _bool = False,
        dim: _int | None = None,
        *,
        axis: _int | None = ...,
    ) -> Any:
        """The elements, or slices of an axis, that differ from the one before. Waits: their number is
        data."""
    def unsafe_chunk(self, chunks: _int, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
        """At most ``chunks`` views of equal length (the last may be shorter)."""
    def unsafe_split(
        self, split_size: _int = ..., dim: _int = 0, *, axis: _int = ..., input: Tensor = ...
    ) -> tuple[Tensor, ...]:
        """`split` in parts of one length. PyTorch does not see writes into them; they are views here."""
    def unsafe_split_with_sizes(self, split_sizes, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
        """`split` with a list of lengths."""
    def unsqueeze(self, dim: _int = ..., *, axis: _int = ...) -> Tensor:
        """With a new axis of length 1 at ``dim``, sharing storage."""
    def unsqueeze_(self, dim: _int = ..., *, axis: _int = ...) -> Tensor:
        """In-place form of `unsqueeze`: this tensor itself becomes that view of its storage. Nothing
        moves."""
    def var(
        self,
        dim=None,
        unbiased: _bool | None = None,
        keepdim: _bool = False,
        *,
        correction: _float | None = None,
        axis=...,
        keepdims: _bool = ...,
    ) -> Tensor:
        """Variance over axes: ``sum((input - mean)^2) / max(count - correction, 0)``."""
    def vdot(self, other: Tensor) -> Tensor:
        """Product of two vectors, the first conjugated."""
    def view(self, *given, size=None, dtype: DType | None = None) -> Tensor:
        """The same elements in another shape, sharing storage."""
    def view_as(self, other: Tensor) -> Tensor:
        """``input.view(other.shape)``."""
    def vsplit(
        self,
        indices_or_sections=None,
        *further: _int,
        indices: Sequence[_int] | None = None,
        sections: _int | None = None,
    ) -> tuple[Tensor, ...]:
        """`tensor_split` along axis 0 of at least two into parts of one length."""
    def xlogy(self, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """``input * log(other)``, 0 where ``input`` is 0."""
    def abs_(self) -> Tensor:
        """Absolute value."""
    def absolute_(self) -> Tensor:
        """Absolute value."""
    def acos_(self) -> Tensor:
        """Angle in radians whose cosine is the value."""
    def acosh_(self) -> Tensor:
        """Inverse hyperbolic cosine."""
    def add_(self, other: Tensor | _float, *, alpha: _float = 1) -> Tensor:
        """Sum: ``out = input + alpha * other``."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: _float = 1) -> Tensor:
        """``out = input + value * tensor1 / tensor2``."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: _float = 1) -> Tensor:
        """``out = input + value * tensor1 * tensor2``."""
    def arccos_(self) -> Tensor:
        """Angle in radians whose cosine is the value."""
    def arccosh_(self) -> Tensor:
        """Inverse hyperbolic cosine."""
    def arcsin_(self) -> Tensor:
        """Angle in radians whose sine is the value."""
    def arcsinh_(self) -> Tensor:
        """Inverse hyperbolic sine."""
    def arctan2_(self, other: Tensor) -> Tensor:
        """Angle in radians of the point (``other``, ``input``)."""
    def arctan_(self) -> Tensor:
        """Angle in radians whose tangent is the value."""
    def arctanh_(self) -> Tensor:
        """Inverse hyperbolic tangent."""
    def asin_(self) -> Tensor:
        """Angle in radians whose sine is the value."""
    def asinh_(self) -> Tensor:
        """Inverse hyperbolic sine."""
    def atan2_(self, other: Tensor) -> Tensor:
        """Angle in radians of the point (``other``, ``input``)."""
    def atan_(self) -> Tensor:
        """Angle in radians whose tangent is the value."""
    def atanh_(self) -> Tensor:
        """Inverse hyperbolic tangent."""
    def bitwise_and_(self, other: Tensor | _float) -> Tensor:
        """Bitwise and; logical for bools."""
    def bitwise_left_shift_(self, other: Tensor | _float) -> Tensor:
        """Bits moved up by ``other`` places."""
    def bitwise_not_(self) -> Tensor:
        """Every bit inverted; logical not for bools."""
    def bitwise_or_(self, other: Tensor | _float) -> Tensor:
        """Bitwise or; logical for bools."""
    def bitwise_right_shift_(self, other: Tensor | _float) -> Tensor:
        """Bits moved down by ``other`` places; signed numbers keep their sign."""
    def bitwise_xor_(self, other: Tensor | _float) -> Tensor:
        """Bitwise exclusive or; logical for bools."""
    def ceil_(self) -> Tensor:
        """Rounded up."""
    def clamp_(self, min: Tensor | _float | None = None, max: Tensor | _float | None = None) -> Tensor:
        """Values moved into ``[min, max]``."""
    def clamp_max_(self, max: Tensor | _float) -> Tensor:
        """`clamp` with ``max`` alone."""
    def clamp_min_(self, min: Tensor | _float) -> Tensor:
        """`clamp` with ``min`` alone."""
    def clip_(self, min: Tensor | _float | None = None, max: Tensor | _float | None = None) -> Tensor:
        """Values moved into ``[min, max]``."""
    def conj_physical_(self) -> Tensor:
        """The conjugate: the imaginary part negated."""
    def copysign_(self, other: Tensor | _float) -> Tensor:
        """``|input|`` with the sign of ``other``."""
    def cos_(self) -> Tensor:
        """Cosine of an angle in radians."""
    def cosh_(self) -> Tensor:
        """Hyperbolic cosine."""
    def deg2rad_(self) -> Tensor:
        """Degrees as radians."""
    def digamma_(self) -> Tensor:
        """Derivative of `lgamma`."""
    def div_(self, other: Tensor | _float, *, rounding_mode: str | None = None) -> Tensor:
        """Quotient: ``out = input / other``, floating point for integers too."""
    def divide_(self, other: Tensor | _float, *, rounding_mode: str | None = None) -> Tensor:
        """Quotient: ``out = input / other``, floating point for integers too."""
    def eq_(self, other: Tensor | _float) -> Tensor:
        """``input == other``."""
    def erf_(self) -> Tensor:
        """Error function: ``2 / sqrt(pi) * integral of exp(-t^2) from 0 to input``."""
    def erfc_(self) -> Tensor:
        """``1 - erf(input)``, accurate for large values."""
    def erfinv_(self) -> Tensor:
        """The inverse of `erf`."""
    def exp2_(self) -> Tensor:
        """``2 ** input``."""
    def exp_(self) -> Tensor:
        """``e ** input``."""
    def expm1_(self) -> Tensor:
        """``e ** input - 1``, accurate near zero."""
    def fix_(self) -> Tensor:
        """Rounded toward zero."""
    def floor_(self) -> Tensor:
        """Rounded down."""
    def floor_divide_(self, other: Tensor | _float) -> Tensor:
        """Quotient rounded down: ``out = floor(input / other)``."""
    def fmod_(self, other: Tensor | _float) -> Tensor:
        """Remainder with the sign of ``input``, as C's ``fmod``."""
    def frac_(self) -> Tensor:
        """The part after the point: ``input - trunc(input)``."""
    def gcd_(self, other: Tensor) -> Tensor:
        """The greatest divisor of both; of 0 and a number the number's size."""
    def ge_(self, other: Tensor | _float) -> Tensor:
        """``input >= other``."""
    def greater_(self, other: Tensor | _float) -> Tensor:
        """``input > other``."""
    def greater_equal_(self, other: Tensor | _float) -> Tensor:
        """``input >= other``."""
    def gt_(self, other: Tensor | _float) -> Tensor:
        """``input > other``."""
    def heaviside_(self, values: Tensor) -> Tensor:
        """0 of negative numbers and NaN, 1 of positive ones, ``values`` at 0."""
    def hypot_(self, other: Tensor) -> Tensor:
        """``sqrt(input^2 + other^2)``, without overflow."""
    def i0_(self) -> Tensor:
        """Modified Bessel function of the first kind, of order 0."""
    def igamma_(self, other: Tensor) -> Tensor:
        """The lower share of the gamma function of ``input``, up to ``other``."""
    def igammac_(self, other: Tensor) -> Tensor:
        """The upper share of the gamma function of ``input``, from ``other`` on."""
    def lcm_(self, other: Tensor) -> Tensor:
        """The least multiple of both that is not negative; 0 where one is 0."""
    def le_(self, other: Tensor | _float) -> Tensor:
        """``input <= other``."""
    def lerp_(self, end: Tensor, weight: Tensor | _float) -> Tensor:
        """Linear interpolation: ``out = input + weight * (end - input)``."""
    def less_(self, other: Tensor | _float) -> Tensor:
        """``input < other``."""
    def less_equal_(self, other: Tensor | _float) -> Tensor:
        """``input <= other``."""
    def lgamma_(self) -> Tensor:
        """Logarithm of the size of the gamma function."""
    def log10_(self) -> Tensor:
        """Logarithm to base 10."""
    def log1p_(self) -> Tensor:
        """``log(1 + input)``, accurate near zero."""
    def log2_(self) -> Tensor:
        """Logarithm to base 2."""
    def log_(self) -> Tensor:
        """Natural logarithm."""
    def logical_and_(self, other: Tensor) -> Tensor:
        """Whether both are not zero."""
    def logical_not_(self) -> Tensor:
        """Whether the value is zero."""
    def logical_or_(self, other: Tensor) -> Tensor:
        """Whether one is not zero."""
    def logical_xor_(self, other: Tensor) -> Tensor:
        """Whether exactly one is not zero."""
    def logit_(self, eps: _float | None = None) -> Tensor:
        """``log(input / (1 - input))``."""
    def lt_(self, other: Tensor | _float) -> Tensor:
        """``input < other``."""
    def masked_fill_(self, mask: Tensor, value: Tensor | _float) -> Tensor:
        """``value`` where the mask holds, else ``input``."""
    def mul_(self, other: Tensor | _float) -> Tensor:
        """Product: ``out = input * other``."""
    def multiply_(self, other: Tensor | _float) -> Tensor:
        """Product: ``out = input * other``."""
    def ne_(self, other: Tensor | _float) -> Tensor:
        """``input != other``."""
    def neg_(self) -> Tensor:
        """Negative: ``out = -input``."""
    def negative_(self) -> Tensor:
        """Negative: ``out = -input``."""
    def nextafter_(self, other: Tensor) -> Tensor:
        """The number next to ``input`` toward ``other``."""
    def not_equal_(self, other: Tensor | _float) -> Tensor:
        """``input != other``."""
    def pow_(self, exponent: Tensor | _float) -> Tensor:
        """Power: ``out = input ** exponent``."""
    def rad2deg_(self) -> Tensor:
        """Radians as degrees."""
    def reciprocal_(self) -> Tensor:
        """``1 / input``."""
    def relu_(self) -> Tensor:
        """``max(input, 0)``."""
    def remainder_(self, other: Tensor | _float) -> Tensor:
        """Remainder with the sign of ``other``, as Python's ``%``."""
    def round_(self, *, decimals: _int = 0) -> Tensor:
        """Rounded to the nearest integer, halves to even."""
    def rsqrt_(self) -> Tensor:
        """``1 / sqrt(input)``."""
    def sgn_(self) -> Tensor:
        """The number over its size, 0 at 0: of real ones the sign."""
    def sigmoid_(self) -> Tensor:
        """``1 / (1 + exp(-input))``."""
    def sign_(self) -> Tensor:
        """-1, 0 or 1 by the sign of the value; 0 for NaN."""
    def sin_(self) -> Tensor:
        """Sine of an angle in radians."""
    def sinc_(self) -> Tensor:
        """``sin(pi * input) / (pi * input)``, 1 at 0."""
    def sinh_(self) -> Tensor:
        """Hyperbolic sine."""
    def sqrt_(self) -> Tensor:
        """Square root."""
    def square_(self) -> Tensor:
        """``input * input``."""
    def sub_(self, other: Tensor | _float, *, alpha: _float = 1) -> Tensor:
        """Difference: ``out = input - alpha * other``."""
    def subtract_(self, other: Tensor | _float, *, alpha: _float = 1) -> Tensor:
        """Difference: ``out = input - alpha * other``."""
    def tan_(self) -> Tensor:
        """Tangent of an angle in radians."""
    def tanh_(self) -> Tensor:
        """Hyperbolic tangent."""
    def tril_(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of the last two axes; zero above the diagonal."""
    def triu_(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of the last two axes; zero below the diagonal."""
    def trunc_(self) -> Tensor:
        """Rounded toward zero."""
    def xlogy_(self, other: Tensor | _float) -> Tensor:
        """``input * log(other)``, 0 where ``input`` is 0."""
    def __array_wrap__(self, other: Any) -> Tensor: ...
    def __add__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __rdiv__(self, other: Any) -> Tensor: ...
    def __floordiv__(self, other: Any) -> Tensor: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor: ...
    def __rpow__(self, other: Any) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __matmul__(self, other: Any) -> Tensor: ...
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: Any) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __ge__(self, other: Any) -> Tensor: ...
    def __iadd__(self, other: Any) -> Tensor: ...
    def __isub__(self, other: Any) -> Tensor: ...
    def __imul__(self, other: Any) -> Tensor: ...
    def __itruediv__(self, other: Any) -> Tensor: ...
    def __ifloordiv__(self, other: Any) -> Tensor: ...
    def __imod__(self, other: Any) -> Tensor: ...
    def __ipow__(self, other: Any) -> Tensor: ...
    def __iand__(self, other: Any) -> Tensor: ...
    def __ior__(self, other: Any) -> Tensor: ...
    def __ixor__(self, other: Any) -> Tensor: ...
    def __ilshift__(self, other: Any) -> Tensor: ...
    def __irshift__(self, other: Any) -> Tensor: ...
