"""The PyTorch API on WebGPU.

Written by `scripts/reference`; do not edit.
"""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Sequence
from typing import Any

from . import autograd as autograd
from . import distributions as distributions
from . import errors as errors
from . import grid as grid
from . import lens as lens
from . import models as models
from . import nn as nn
from . import optim as optim
from . import physics as physics
from . import profiler as profiler
from . import quant as quant
from . import text as text
from . import train as train
from . import utils as utils
from . import weights as weights
from .autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from .autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from .autograd.anomaly import set_anomaly_enabled as set_anomaly_enabled
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import is_grad_enabled as is_grad_enabled
from .autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
from .autograd.mapped import vmap as vmap
from .device import device as device
from .device import get_default_device as get_default_device
from .device import set_default_device as set_default_device
from .device import webgpu as webgpu
from .errors import OutOfMemoryError as OutOfMemoryError
from .models import AutoConfig as AutoConfig
from .models import AutoModel as AutoModel
from .models import AutoModelForCausalLM as AutoModelForCausalLM
from .models import AutoModelForMaskedLM as AutoModelForMaskedLM
from .models import AutoModelForQuestionAnswering as AutoModelForQuestionAnswering
from .models import AutoModelForSeq2SeqLM as AutoModelForSeq2SeqLM
from .models import AutoModelForSequenceClassification as AutoModelForSequenceClassification
from .models import AutoModelForTokenClassification as AutoModelForTokenClassification
from .models.generate import GenerationConfig as GenerationConfig
from .models.graph import export as export
from .models.graph import onnx as onnx
from .models.graph import tflite as tflite
from .models.graph.desktop import from_torch as from_torch
from .models.pipelines import pipeline as pipeline
from .models.pipelines import pipeline_async as pipeline_async
from .nn import ao as ao
from .nn import func as func
from .nn.functional import celu_ as celu_
from .nn.functional import cosine_similarity as cosine_similarity
from .nn.functional import pairwise_distance as pairwise_distance
from .nn.functional import rrelu_ as rrelu_
from .nn.functional import selu_ as selu_
from .nn.functional import threshold_ as threshold_
from .op import jit as jit
from .op.jit import compile as compile
from .op.kernel.autotune.deterministic import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from .op.kernel.autotune.deterministic import use_deterministic_algorithms as use_deterministic_algorithms
from .ops.index.histograms import Histogram, Histograms
from .ops.index.sort import ValuesAndIndices
from .ops.linalg.lu import PLU, LUFactor, LUFactorEx
from .ops.linalg.older import USV, Triangular
from .ops.linalg.orthogonal import QR, Reflections
from .ops.linalg.solvers import SignAndLog
from .ops.namespaces import fft as fft
from .ops.namespaces import kernels as kernels
from .ops.namespaces import linalg as linalg
from .ops.namespaces import signal as signal
from .ops.namespaces import special as special
from .ops.random.generator import Generator as Generator
from .ops.random.generator import default_generator as default_generator
from .ops.random.generator import get_rng_state as get_rng_state
from .ops.random.generator import initial_seed as initial_seed
from .ops.random.generator import manual_seed as manual_seed
from .ops.random.generator import seed as seed
from .ops.random.generator import set_rng_state as set_rng_state
from .optim import amp as amp
from .optim.amp import GradScaler as GradScaler
from .optim.amp import autocast as autocast
from .optim.amp import autocast_decrement_nesting as autocast_decrement_nesting
from .optim.amp import autocast_increment_nesting as autocast_increment_nesting
from .optim.amp import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from .optim.amp import get_autocast_dtype as get_autocast_dtype
from .optim.amp import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from .optim.amp import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from .optim.amp import is_autocast_enabled as is_autocast_enabled
from .optim.amp import set_autocast_dtype as set_autocast_dtype
from .optim.amp import set_autocast_enabled as set_autocast_enabled
from .profiler import debug as debug
from .tensors import methods as methods
from .tensors import overrides as overrides
from .tensors.construct import as_tensor as as_tensor
from .tensors.construct import asarray as asarray
from .tensors.construct import from_dlpack as from_dlpack
from .tensors.construct import from_numpy as from_numpy
from .tensors.construct import frombuffer as frombuffer
from .tensors.construct import tensor as tensor
from .tensors.construct import to_dlpack as to_dlpack
from .tensors.dtypes import DType
from .tensors.dtypes import bfloat16 as bfloat16
from .tensors.dtypes import bool_ as bool_
from .tensors.dtypes import complex64 as complex64
from .tensors.dtypes import complex128 as complex128
from .tensors.dtypes import float16 as float16
from .tensors.dtypes import float32 as float32
from .tensors.dtypes import float64 as float64
from .tensors.dtypes import get_default_dtype as get_default_dtype
from .tensors.dtypes import int8 as int8
from .tensors.dtypes import int16 as int16
from .tensors.dtypes import int32 as int32
from .tensors.dtypes import int64 as int64
from .tensors.dtypes import promote_types as promote_types
from .tensors.dtypes import set_default_dtype as set_default_dtype
from .tensors.dtypes import uint8 as uint8
from .tensors.dtypes import uint16 as uint16
from .tensors.dtypes import uint32 as uint32
from .tensors.formats import channels_last as channels_last
from .tensors.formats import channels_last_3d as channels_last_3d
from .tensors.formats import contiguous_format as contiguous_format
from .tensors.formats import layout as _Layout
from .tensors.formats import layout as layout
from .tensors.formats import memory_format as _MemoryFormat
from .tensors.formats import memory_format as memory_format
from .tensors.formats import preserve_format as preserve_format
from .tensors.formats import sparse_bsc as sparse_bsc
from .tensors.formats import sparse_bsr as sparse_bsr
from .tensors.formats import sparse_coo as sparse_coo
from .tensors.formats import sparse_csc as sparse_csc
from .tensors.formats import sparse_csr as sparse_csr
from .tensors.formats import strided as strided
from .tensors.limits import finfo as finfo
from .tensors.limits import iinfo as iinfo
from .tensors.printing import set_printoptions as set_printoptions
from .tensors.queries import can_cast as can_cast
from .tensors.queries import detach as detach
from .tensors.queries import get_device as get_device
from .tensors.queries import get_float32_matmul_precision as get_float32_matmul_precision
from .tensors.queries import get_num_interop_threads as get_num_interop_threads
from .tensors.queries import get_num_threads as get_num_threads
from .tensors.queries import is_conj as is_conj
from .tensors.queries import is_floating_point as is_floating_point
from .tensors.queries import is_inference as is_inference
from .tensors.queries import is_neg as is_neg
from .tensors.queries import is_nonzero as is_nonzero
from .tensors.queries import is_same_size as is_same_size
from .tensors.queries import is_signed as is_signed
from .tensors.queries import is_tensor as is_tensor
from .tensors.queries import numel as numel
from .tensors.queries import result_type as result_type
from .tensors.queries import set_float32_matmul_precision as set_float32_matmul_precision
from .tensors.queries import set_num_interop_threads as set_num_interop_threads
from .tensors.queries import set_num_threads as set_num_threads
from .tensors.queries import sym_float as sym_float
from .tensors.queries import sym_int as sym_int
from .tensors.queries import sym_ite as sym_ite
from .tensors.queries import sym_max as sym_max
from .tensors.queries import sym_min as sym_min
from .tensors.queries import sym_not as sym_not
from .tensors.queries import typename as typename
from .tensors.shape import Size as Size
from .tensors.tensor import Tensor as Tensor
from .tensors.typed import set_default_tensor_type as set_default_tensor_type
from .text import AutoTokenizer as AutoTokenizer
from .utils import compat as compat
from .utils import serialization as serialization
from .utils import testing as testing
from .utils.conversion import convert as convert
from .utils.inspection import inspect as inspect
from .utils.inspection import inspect_async as inspect_async
from .utils.matching import match as match
from .utils.matching import match_async as match_async
from .utils.matching import record as record
from .utils.serialization import load as load
from .utils.serialization import save as save
from .weights import settings as settings

__version__: str
inf: _float
nan: _float
pi: _float
e: _float
newaxis: None
bool: DType
float: DType
double: DType
half: DType
short: DType
int: DType
long: DType
cfloat: DType
cdouble: DType
dtype = DType
FloatTensor = Tensor
DoubleTensor = Tensor
HalfTensor = Tensor
BFloat16Tensor = Tensor
ByteTensor = Tensor
CharTensor = Tensor
ShortTensor = Tensor
IntTensor = Tensor
LongTensor = Tensor
BoolTensor = Tensor
ComplexFloatTensor = Tensor
ComplexDoubleTensor = Tensor

def _standard_gamma(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma variates of these shapes and scale 1, with the derivative by the shape."""

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Absolute value."""

def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Absolute value."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle in radians whose cosine is the value."""

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic cosine."""

def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int | None]) -> Tensor:
    """Means of so many windows, as equal as they can be, which cover the image."""

def adaptive_max_pool1d(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False
) -> Any:
    """Maxima of so many windows, as equal as they can be, which cover the image."""

def add(
    input: Tensor | _float, other: Tensor | _float, *, alpha: _float = 1, out: Tensor | None = None
) -> Tensor:
    """Sum: ``out = input + alpha * other``."""

def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: _float | _complex = 1,
    alpha: _float | _complex = 1,
    out: Tensor | None = None,
) -> Tensor:
    """``beta * input + alpha * sum(batch1[k] @ batch2[k])``; ``input`` is not read where beta is 0."""

def addcdiv(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _float = 1, out: Tensor | None = None
) -> Tensor:
    """``out = input + value * tensor1 / tensor2``."""

def addcmul(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _float = 1, out: Tensor | None = None
) -> Tensor:
    """``out = input + value * tensor1 * tensor2``."""

def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    out_dtype: DType | None = None,
    *,
    beta: _float | _complex = 1,
    alpha: _float | _complex = 1,
    out: Tensor | None = None,
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``; ``input`` broadcasts and is not read where beta is 0,
    nor the product where alpha is 0. ``out_dtype`` as of `mm`."""

def addmv(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: _float | _complex = 1,
    alpha: _float | _complex = 1,
    out: Tensor | None = None,
) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``; ``input`` is not read where beta is 0."""

def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: _float | _complex = 1,
    alpha: _float | _complex = 1,
    out: Tensor | None = None,
) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; ``input`` is not read where beta is 0."""

def adjoint(input: Tensor) -> Tensor:
    """The matrices of the last two axes transposed, and conjugated if complex."""

def affine_grid_generator(theta: Tensor, size: Sequence[_int], align_corners: _bool) -> Tensor:
    """`nn.functional.affine_grid`, whose arguments it has."""

def alias_copy(input, *, out: Tensor | None = None):
    """A copy."""

def all(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Whether all elements along axes differ from zero; bool (uint8 for uint8 input)."""

def allclose(
    input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
) -> _bool:
    """Whether `isclose` holds everywhere. Reads the answer, and so waits."""

def alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Elements replaced with probability ``p`` by the end of SELU, so that mean 0 and variance 1 stay."""

def amax(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Largest element over axes; equal ones share the gradient."""

def amin(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Smallest element over axes; equal ones share the gradient."""

def aminmax(
    input: Tensor,
    *,
    dim: _int | None = None,
    keepdim: _bool = False,
    out: Tensor | None = None,
    axis: _int | None = ...,
    keepdims: _bool = ...,
) -> tuple[Tensor, Tensor]:
    """``(amin(input, dim), amax(input, dim))``, as ``min`` and ``max`` of a named tuple."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle in radians from 1 to the number: 0 or pi of real ones."""

def any(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Whether any element along axes differs from zero; bool (uint8 for uint8 input)."""

def arange(
    start=None,
    end=None,
    step=None,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Numbers from ``start`` to before ``end``: ``out[i] = start + i * step``."""

def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle in radians whose cosine is the value."""

def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic cosine."""

def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle in radians whose sine is the value."""

def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic sine."""

def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle in radians whose tangent is the value."""

def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle in radians of the point (``other``, ``input``)."""

def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic tangent."""

def argmax(
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Where the largest element along an axis is, int64; the first of equal ones."""

def argmin(
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Where the smallest element along an axis is, int64; the first of equal ones."""

def argsort(
    input: Tensor,
    dim: _int = -1,
    descending: _bool = False,
    stable: _bool = True,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """The places of the elements in order along an axis, int64; arguments as `sort`."""

def argwhere(input: Tensor) -> Tensor:
    """The indices of all elements that are not zero, one in each row. Waits for the device."""

def as_strided(input: Tensor, size, stride, storage_offset: _int | None = None) -> Tensor:
    """A view of the storage with given shape, strides and offset, all in elements."""

def as_strided_copy(
    input: Tensor, size, stride, storage_offset: _int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A copy of what `as_strided` shows."""

def as_strided_scatter(
    input: Tensor, src: Tensor, size, stride, storage_offset: _int | None = None
) -> Tensor:
    """A copy of ``input`` with ``src`` in what `as_strided` would show."""

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle in radians whose sine is the value."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic sine."""

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle in radians whose tangent is the value."""

def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angle in radians of the point (``other``, ``input``)."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic tangent."""

def atleast_1d(*tensors) -> Tensor | tuple[Tensor, ...]:
    """Tensors without axes as ones of one element, others as they are."""

def atleast_2d(*tensors) -> Tensor | tuple[Tensor, ...]:
    """Tensors of fewer than two axes as rows, others as they are."""

def atleast_3d(*tensors) -> Tensor | tuple[Tensor, ...]:
    """Tensors of fewer than three axes with axes of length 1 around theirs, others as they are."""

def avg_pool1d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
) -> Tensor:
    """The mean of each window; of int64, the quotient towards 0."""

def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    out_dtype: DType | None = None,
    *,
    beta: _float | _complex = 1,
    alpha: _float | _complex = 1,
    out: Tensor | None = None,
) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` for batches of matrices; ``out_dtype`` as of `mm`."""

def bartlett_window(
    window_length: _int,
    periodic: _bool = True,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`signal.windows.bartlett`."""

def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: _bool,
    momentum: _float,
    eps: _float,
    cudnn_enabled: _bool,
) -> Tensor:
    """`nn.functional.batch_norm` with the arguments in ATen's order."""

def bernoulli(
    input: Tensor, p: _float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """1 with the probability that ``input`` gives, else 0."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``out[..., k] = input1[..., :] @ weight[k] @ input2[..., :] + bias[k]``."""

def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
    """How often each integer from 0 on occurs, or the sum of its weights. Waits for the largest."""

def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of ``count`` trials succeed, each with probability ``prob``."""

def bitwise_and(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Bitwise and; logical for bools."""

def bitwise_left_shift(
    input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None
) -> Tensor:
    """Bits moved up by ``other`` places."""

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every bit inverted; logical not for bools."""

def bitwise_or(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Bitwise or; logical for bools."""

def bitwise_right_shift(
    input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None
) -> Tensor:
    """Bits moved down by ``other`` places; signed numbers keep their sign."""

def bitwise_xor(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Bitwise exclusive or; logical for bools."""

def blackman_window(
    window_length: _int,
    periodic: _bool = True,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`signal.windows.blackman`."""

def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one, with zeros beside them."""

def bmm(input: Tensor, mat2: Tensor, out_dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """Products of two batches of matrices, (b, n, l) by (b, l, m); ``out_dtype`` as of `mm`."""

def broadcast_shapes(*shapes) -> Size:
    """The shape that all shapes broadcast to."""

def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""

def broadcast_to(input: Tensor, *given, size=None) -> Tensor:
    """``input.expand(size)``."""

def bucketize(
    input: Tensor | _float,
    boundaries: Tensor,
    *,
    out_int32: _bool = False,
    right: _bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The bucket of each value, between sorted boundaries: `searchsorted` with its arguments
    exchanged."""

def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of elements, one of each vector, as rows."""

def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None, axis: _int = ...) -> Tensor:
    """Tensors one after the other along an axis."""

def cdist(
    x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Distances of all pairs of rows: ``out[i, j] = norm(x1[i] - x2[j], p)``."""

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Rounded up."""

def celu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input`` where positive, else ``alpha * (exp(input / alpha) - 1)``."""

def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices; `linalg.multi_dot` of them."""

def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Channels in another order: of each group the first, then of each the second, and so on."""

def cholesky(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Cholesky factorization; `linalg.cholesky`."""

def cholesky_inverse(
    L: Tensor = ..., upper: _bool = False, *, out: Tensor | None = None, input: Tensor = ...
) -> Tensor:
    """The inverse of a matrix from its Cholesky factor; arguments as `cholesky_solve`."""

def cholesky_solve(
    B: Tensor = ...,
    L: Tensor = ...,
    upper: _bool = False,
    *,
    out: Tensor | None = None,
    input: Tensor = ...,
    input2: Tensor = ...,
) -> Tensor:
    """The ``X`` of ``A X = B`` from the Cholesky factor of A."""

def chunk(input: Tensor, chunks: _int, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal length (the last may be shorter)."""

def clamp(
    input: Tensor,
    min: Tensor | _float | None = None,
    max: Tensor | _float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Values moved into ``[min, max]``."""

def clamp_max(input: Tensor, max: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """`clamp` with ``max`` alone."""

def clamp_min(input: Tensor, min: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """`clamp` with ``min`` alone."""

def clip(
    input: Tensor,
    min: Tensor | _float | None = None,
    max: Tensor | _float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Values moved into ``[min, max]``."""

def clone(input: Tensor, *, memory_format: memory_format | None = None, out: Tensor | None = None) -> Tensor:
    """A copy, contiguous or in a memory format."""

def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors side by side: along axis 1, each of fewer than two axes as a column."""

def combinations(input: Tensor, r: _int = 2, with_replacement: _bool = False) -> Tensor:
    """All sets of ``r`` elements of a vector as rows, in the order of `itertools.combinations`."""

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex number of two parts."""

def concat(
    tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """Tensors one after the other along an axis."""

def concatenate(
    tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """Tensors one after the other along an axis."""

def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """What one of two functions returns: ``true_fn(*operands)`` if ``pred`` holds, else
    ``false_fn(*operands)``."""

def conj(input: Tensor) -> Tensor:
    """The conjugate; of real numbers the tensor itself. It is computed at once, and no view."""

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The conjugate: the imaginary part negated."""

def constant_pad_nd(input: Tensor, pad: Sequence[_int], value: _float | _complex = 0) -> Tensor:
    """A constant at the ends of the last axes, or fewer elements where negative; see
    `nn.functional.pad`."""

def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | str = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor:
    """``out[n, o, p] = bias[o] + sum(weight[o, c, t] * input[n, c, p * stride + t * dilation -
    padding] for c, t)``."""

def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | str = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor:
    """`conv1d` over height and width."""

def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | str = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor:
    """`conv1d` over depth, height and width. Holds the input once for each place of the kernel's
    depth."""

def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """The transpose of `conv1d` as a linear map: ``out[n, c, p * stride + t * dilation - padding] +=
    weight[o, c, t] * input[n, o, p]``, plus the bias."""

def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """`conv_transpose1d` over height and width."""

def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """`conv_transpose1d` over depth, height and width. Holds the output once for each place of the
    kernel's depth that a stride leaves."""

def copysign(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``|input|`` with the sign of ``other``."""

def corrcoef(input: Tensor) -> Tensor:
    """Correlation coefficients of variables, which are rows; columns are observations."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Cosine of an angle in radians."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic cosine."""

def count_nonzero(
    input: Tensor, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = ...
) -> Tensor:
    """Number of elements that differ from zero, int64."""

def cov(
    input: Tensor, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Covariances of variables, which are rows; columns are observations."""

def cross(
    input: Tensor,
    other: Tensor,
    dim: _int | None = None,
    *,
    out: Tensor | None = None,
    axis: _int | None = ...,
) -> Tensor:
    """Cross product of vectors of three elements."""

def cummax(
    input: Tensor, dim: _int = ..., *, out: Tensor | None = None, axis: _int = ...
) -> ValuesAndIndices:
    """Running maximum along an axis, and where it stands: ``values[i] = max(input[0], ...,
    input[i])``."""

def cummin(
    input: Tensor, dim: _int = ..., *, out: Tensor | None = None, axis: _int = ...
) -> ValuesAndIndices:
    """Running minimum along an axis, and where it stands; as `cummax`."""

def cumprod(
    input: Tensor, dim: _int = ..., *, dtype: DType | None = None, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """Running product along an axis: ``out[..., i] = input[..., 0] * ... * input[..., i]``."""

def cumsum(
    input: Tensor, dim: _int = ..., *, dtype: DType | None = None, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """Running sum along an axis: ``out[..., i] = input[..., 0] + ... + input[..., i]``."""

def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: _float = 1, dim: _int = -1, axis: _int = ...
) -> Tensor:
    """Integrals from the first element to each other, by the trapezoidal rule."""

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees as radians."""

def det(input: Tensor) -> Tensor:
    """The determinant of matrices, by LU factorization."""

def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """A matrix with a vector on a diagonal, or the vector on a diagonal of a matrix."""

def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """The last axis as a diagonal of two new axes, with zeros beside it."""

def diagflat(input: Tensor, offset: _int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""

def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """The diagonal of two axes as the last axis, sharing storage."""

def diagonal_copy(
    input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None
) -> Tensor:
    """A copy of what `diagonal` shows."""

def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """A copy of ``input`` with ``src`` on a diagonal of two axes."""

def diff(
    input: Tensor,
    n: _int = 1,
    dim: _int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """Differences of neighbours: ``out[i] = input[i + 1] - input[i]``; of bools whether they differ."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Derivative of `lgamma`."""

def dist(input: Tensor, other: Tensor, p: _float = 2) -> Tensor:
    """Norm of a difference: ``(input - other).norm(p)``."""

def div(
    input: Tensor | _float,
    other: Tensor | _float,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Quotient: ``out = input / other``, floating point for integers too."""

def divide(
    input: Tensor | _float,
    other: Tensor | _float,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Quotient: ``out = input / other``, floating point for integers too."""

def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two vectors, (l,) by (l,): a tensor without axes."""

def dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Elements zeroed with probability ``p``, the others divided by ``1 - p``."""

def dsplit(
    input: Tensor,
    indices_or_sections=None,
    *further: _int,
    indices: Sequence[_int] | None = None,
    sections: _int | None = None,
) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 2 into parts of one length."""

def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors behind one another: along axis 2, each of one axis as a row, of two as they are."""

def einsum(equation, *operands) -> Tensor:
    """Sum of products by subscripts: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``."""

def embedding(weight: Tensor, indices: Tensor, padding_idx: _int = -1) -> Tensor:
    """Rows of a table: ``out[..., :] = weight[indices[...], :]``."""

def empty(
    *given,
    size=None,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """A tensor whose values are whatever the memory holds."""

def empty_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`empty` with the shape, dtype and device of ``input``."""

def empty_permuted(
    size,
    physical_layout,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`empty` whose axes lie in memory in the given order, the slowest first."""

def empty_strided(
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
    """`empty` with given strides."""

def eq(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input == other``."""

def equal(input: Tensor, other: Tensor) -> _bool:
    """Whether two tensors have the same shape and values. Reads the answer, and so waits."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Error function: ``2 / sqrt(pi) * integral of exp(-t^2) from 0 to input``."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 - erf(input)``, accurate for large values."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `erf`."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``e ** input``."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``2 ** input``."""

def expand_copy(input: Tensor, *size, out: Tensor | None = None) -> Tensor:
    """A copy of what `expand` shows."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``e ** input - 1``, accurate near zero."""

def eye(
    n: _int,
    m: _int | None = None,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """A matrix of ones on the diagonal and zeros elsewhere."""

def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each place along an axis."""

def fake_quantize_per_tensor_affine(
    input: Tensor,
    scale: Tensor | _float,
    zero_point: Tensor | _float,
    quant_min: _int,
    quant_max: _int,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Each number as the nearest one that an integer from ``quant_min`` to ``quant_max`` stands for."""

def feature_alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """`alpha_dropout` of whole channels."""

def fill(input: Tensor, value: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """One value in the shape and dtype of ``input``, whose gradient is zero."""

def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Rounded toward zero."""

def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """Axes ``start_dim`` to ``end_dim`` as one."""

def flip(input: Tensor, *axes, dims=()) -> Tensor:
    """A copy with the order of some axes reversed, which are given by place or as ``dims``."""

def fliplr(input: Tensor) -> Tensor:
    """A copy with the order of axis 1 reversed."""

def flipud(input: Tensor) -> Tensor:
    """A copy with the order of axis 0 reversed."""

def float_power(input: Tensor | _float, exponent: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """`pow` in float64, of complex numbers in complex128."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Rounded down."""

def floor_divide(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Quotient rounded down: ``out = floor(input / other)``."""

def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two; the other one where one is NaN."""

def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two; the other one where one is NaN."""

def fmod(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the sign of ``input``, as C's ``fmod``."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The part after the point: ``input - trunc(input)``."""

def frexp(input: Tensor, *, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(mantissa, exponent) with ``input == mantissa * 2 ** exponent`` and mantissas from 0.5 to 1."""

def frobenius_norm(
    input: Tensor,
    dim: Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """The square root of the sum of squares over axes, all if dim is None."""

def full(
    size,
    fill_value,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """A tensor of one value."""

def full_like(
    input: Tensor,
    fill_value,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`full` with the shape, dtype and device of ``input``."""

def gather(
    input: Tensor,
    dim: _int = ...,
    index: Tensor = ...,
    *,
    sparse_grad: _bool = False,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other axes."""

def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest divisor of both; of 0 and a number the number's size."""

def ge(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input >= other``."""

def geqrf(input: Tensor, *, out: Tensor | None = None) -> Reflections:
    """QR factorization as LAPACK has it: ``(a, tau)``, from which `linalg.householder_product` makes
    Q."""

def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]``."""

def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: _int = 1, axis: Any = ...
) -> tuple[Tensor, ...]:
    """Derivatives along axes by differences, second order exact inside."""

def greater(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input > other``."""

def greater_equal(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input >= other``."""

def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool
) -> Tensor:
    """`nn.functional.grid_sample` with numbers for its modes, in its order."""

def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool
) -> Tensor:
    """`nn.functional.grid_sample` with numbers for its modes, in its order."""

def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool
) -> Tensor:
    """`nn.functional.grid_sample` with numbers for its modes, in its order."""

def group_norm(
    input: Tensor,
    num_groups: _int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _float = 1e-05,
    cudnn_enabled: _bool = True,
) -> Tensor:
    """`layer_norm` over the channels of a group and all axes behind them, with a weight and bias by
    channel."""

def gru(*args, **kwargs) -> tuple[Tensor, Tensor]:
    """A gated recurrent unit of given weights: what `nn.GRU` computes; arguments as `lstm`, with one
    tensor of first states."""

def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of `gru`: the next state, from one of shape (batch, hidden); weights as those of
    `lstm_cell`, of three gates."""

def gt(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input > other``."""

def hamming_window(
    window_length: _int,
    periodic: _bool = True,
    alpha: _float = 0.54,
    beta: _float = 0.46,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`signal.windows.hamming`."""

def hann_window(
    window_length: _int,
    periodic: _bool = True,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`signal.windows.hann`."""

def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``input``, but 0 where it is at most ``lambd`` away from 0."""

def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 of negative numbers and NaN, 1 of positive ones, ``values`` at 0."""

def histc(
    input: Tensor, bins: _int = 100, min: _float = 0, max: _float = 0, *, out: Tensor | None = None
) -> Tensor:
    """How many elements lie in each of ``bins`` equal parts of ``[min, max]``; others do not count."""

def histogram(
    input: Tensor,
    bins=100,
    *,
    range=None,
    weight: Tensor | None = None,
    density: _bool = False,
    out: Tensor | None = None,
) -> Histogram:
    """How many elements lie in each bin, each of which has its left edge and the last one its right,
    too."""

def histogramdd(
    input: Tensor,
    bins,
    range=None,
    weight: Tensor | None = None,
    density: _bool = False,
    *,
    out: Tensor | None = None,
) -> Histograms:
    """`histogram` of points with several coordinates, which are the last axis."""

def hsplit(
    input: Tensor,
    indices_or_sections=None,
    *further: _int,
    indices: Sequence[_int] | None = None,
    sections: _int | None = None,
) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 1, or 0 of a vector, into parts of one length."""

def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors side by side: along axis 1, or 0 for tensors of one axis."""

def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sqrt(input^2 + other^2)``, without overflow."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind, of order 0."""

def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The lower share of the gamma function of ``input``, up to ``other``."""

def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The upper share of the gamma function of ``input``, from ``other`` on."""

def imag(input: Tensor) -> Tensor:
    """The imaginary parts, which share memory with the tensor."""

def index_add(
    input: Tensor,
    dim: _int = ...,
    index: Tensor = ...,
    source: Tensor = ...,
    *,
    alpha: _float | _complex = 1,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """A copy of ``input`` with ``out[..., index[n], ...] += alpha * source[..., n, ...]``, in the
    order of n."""

def index_copy(
    input: Tensor,
    dim: _int = ...,
    index: Tensor = ...,
    source: Tensor = ...,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """A copy with lines of an axis replaced: ``out[..., index[n], ...] = source[..., n, ...]``."""

def index_fill(
    input: Tensor,
    dim: _int = ...,
    index: Tensor = ...,
    value: Tensor | _float | _complex = ...,
    *,
    axis: _int = ...,
) -> Tensor:
    """A copy with lines of an axis filled: ``out[..., index[n], ...] = value``."""

def index_put(input: Tensor, indices, values: Tensor, accumulate: _bool = False) -> Tensor:
    """A copy of ``input`` with ``out[indices] = values``, or added with ``accumulate``."""

def index_reduce(
    input: Tensor,
    dim: _int = ...,
    index: Tensor = ...,
    source: Tensor = ...,
    reduce: str = ...,
    *,
    include_self: _bool = True,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """A copy of ``input`` in which each line of an axis combines the lines of ``source`` that go
    there: ``out[index[n]] = reduce(out[index[n]], source[n])`` for dim 0, and so on."""

def index_select(
    input: Tensor, dim: _int = ..., index: Tensor = ..., *, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """``out[..., j, ...] = input[..., index[j], ...]`` along one axis."""

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of all vectors along the last axes: ``out[i, j] = sum(input[i] * other[j])``."""

def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: _bool,
    momentum: _float,
    eps: _float,
    cudnn_enabled: _bool,
) -> Tensor:
    """Every channel of every member of the batch with its own mean and variance."""

def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of matrices, by LU factorization. To multiply with it, `linalg.solve` is quicker and
    more exact."""

def is_complex(input: Tensor) -> _bool:
    """Whether the elements are complex numbers."""

def isclose(
    input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
) -> Tensor:
    """``|input - other| <= atol + rtol * |other|``, element by element."""

def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the value is neither infinite nor NaN."""

def isin(
    elements: Tensor | _float = ...,
    test_elements: Tensor | _float = ...,
    *,
    assume_unique: _bool = False,
    invert: _bool = False,
    out: Tensor | None = None,
    element: Tensor | _float = ...,
    test_element: Tensor | _float = ...,
) -> Tensor:
    """Whether each element is one of others; ``invert`` whether it is none."""

def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the value is infinite."""

def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the value is NaN."""

def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the value is negative infinity."""

def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the value is positive infinity."""

def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0."""

def istft(
    input: Tensor,
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

def kaiser_window(
    window_length: _int,
    periodic: _bool = True,
    beta: _float = 12.0,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`signal.windows.kaiser`."""

def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Kronecker product: every element of ``input`` times all of ``other``."""

def kthvalue(
    input: Tensor,
    k: _int,
    dim: _int = -1,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
    keepdims: _bool = ...,
) -> ValuesAndIndices:
    """The ``k``-th smallest value of each row, counted from 1, and its place."""

def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[_int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _float | _int = 1e-05,
) -> Tensor:
    """``out = (input - mean) / sqrt(variance + eps) * weight + bias`` over the last axes; NaN where
    the squares of a row add up past float32."""

def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least multiple of both that is not negative; 0 where one is 0."""

def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * 2 ** other``."""

def le(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input <= other``."""

def lerp(input: Tensor, end: Tensor, weight: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Linear interpolation: ``out = input + weight * (end - input)``."""

def less(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input < other``."""

def less_equal(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input <= other``."""

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the size of the gamma function."""

def linspace(
    start,
    end,
    steps: _int,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, equally far apart."""

def lobpcg(
    A: Tensor = ...,
    k: _int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: _int | None = None,
    iK: Tensor | None = None,
    niter: _int | None = None,
    tol: _float | None = None,
    largest: _bool | None = None,
    method: str | None = None,
    tracker: Callable | None = None,
    ortho_iparams: dict | None = None,
    ortho_fparams: dict | None = None,
    ortho_bparams: dict | None = None,
    *,
    input: Tensor = ...,
) -> tuple[Tensor, Tensor]:
    """Some eigenvalues and eigenvectors of symmetric matrices, ``A X = B X diag(E)``, by products with
    them."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Natural logarithm."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm to base 10."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + input)``, accurate near zero."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm to base 2."""

def log_softmax(
    input: Tensor, dim: _int = ..., dtype: DType | None = None, *, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """``out_i = x_i - log(sum_j exp(x_j))`` along an axis, without overflow."""

def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(exp(input) + exp(other))``."""

def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log2(2^input + 2^other)``."""

def logcumsumexp(input: Tensor, dim: _int = ..., *, out: Tensor | None = None, axis: _int = ...) -> Tensor:
    """Logarithm of the running sum of exponentials: ``out[i] = log(exp(input[0]) + ... +
    exp(input[i]))``."""

def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant of matrices: -inf where it is 0, NaN where it is negative. That
    of complex matrices is complex."""

def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether both are not zero."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the value is zero."""

def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether one is not zero."""

def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one is not zero."""

def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(input / (1 - input))``."""

def logspace(
    start,
    end,
    steps: _int,
    base: _float = 10.0,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """``steps`` powers of ``base``, whose exponents are equally far apart from ``start`` to ``end``."""

def logsumexp(
    input: Tensor,
    dim: _int | Sequence[_int] = ...,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """``log(sum(exp(input), dim))`` without overflow."""

def lstm(*args, **kwargs) -> tuple[Tensor, Tensor, Tensor]:
    """A long short-term memory of given weights: what `nn.LSTM` computes."""

def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of `lstm`: the next hidden and cell state."""

def lt(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input < other``."""

def lu(
    A: Tensor = ..., pivot: _bool = True, get_infos: _bool = False, *, input: Tensor = ...
) -> LUFactor | LUFactorEx:
    """LU factorization; `linalg.lu_factor`, or with get_infos `linalg.lu_factor_ex`. A matrix that is
    singular is no error."""

def lu_solve(
    b: Tensor = ...,
    LU_data: Tensor = ...,
    LU_pivots: Tensor = ...,
    *,
    out: Tensor | None = None,
    input: Tensor = ...,
) -> Tensor:
    """The ``X`` of ``A X = b`` from an LU factorization; `linalg.lu_solve`."""

def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: _bool = True,
    unpack_pivots: _bool = True,
    *,
    out: Tensor | None = None,
) -> PLU:
    """The factors of ``A = P L U`` from `linalg.lu_factor`."""

def masked_fill(input: Tensor, mask: Tensor, value: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``value`` where the mask holds, else ``input``."""

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the elements of ``source``, in order, where ``mask`` is true."""

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where ``mask`` is true, as one axis. Waits for the device: their number is data."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product over the last two axes: ``out[..., i, j] = sum_l input[..., i, l] * other[..., l,
    j]``."""

def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices: ``I + A + A²/2 + A³/6 + ...``."""

def matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """A power of square matrices, by squaring."""

def max(
    input: Tensor,
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

def max_pool1d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_pool2d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def max_pool3d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number."""

def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two, element by element; NaN if one is NaN."""

def mean(
    input: Tensor,
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
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | None = ...,
    keepdims: _bool = ...,
):
    """The middle of the sorted values, the lower of two; NaN where there is one."""

def meshgrid(*tensors, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Grids of coordinates: result ``k`` has the value of tensor ``k`` at every point of the grid."""

def min(
    input: Tensor,
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

def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two, element by element; NaN if one is NaN."""

def mm(input: Tensor, mat2: Tensor, out_dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices, (n, l) by (l, m)."""

def mode(
    input: Tensor,
    dim: _int = -1,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
    keepdims: _bool = ...,
) -> ValuesAndIndices:
    """The most frequent value of each row, the smallest of several, and the last place where it
    stands."""

def moveaxis(input: Tensor, source, destination) -> Tensor:
    """Axes moved to new places, the others keeping their order."""

def movedim(input: Tensor, source, destination) -> Tensor:
    """Axes moved to new places, the others keeping their order."""

def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The values sorted along the first axis."""

def mul(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Product: ``out = input * other``."""

def multinomial(
    input: Tensor,
    num_samples: _int,
    replacement: _bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices drawn in proportion to weights. Waits for the device, which looks at the weights."""

def multiply(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Product: ``out = input * other``."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of a matrix and a vector, (n, l) by (l,)."""

def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the gamma function of p dimensions."""

def nan_to_num(
    input: Tensor,
    nan: _float | None = None,
    posinf: _float | None = None,
    neginf: _float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The tensor with numbers in the place of NaN and infinity."""

def nanmean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Mean of what is not NaN."""

def nanmedian(
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | None = ...,
    keepdims: _bool = ...,
):
    """`median` of what is not NaN."""

def nanquantile(
    input: Tensor,
    q,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
    axis: _int | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """`quantile` of what is not NaN."""

def nansum(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Sum of what is not NaN."""

def narrow(
    input: Tensor, dim: _int = ..., start: _int = ..., length: _int = ..., *, axis: _int = ...
) -> Tensor:
    """Part of one axis, sharing storage."""

def narrow_copy(
    input: Tensor,
    dim: _int = ...,
    start: _int = ...,
    length: _int = ...,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """A copy of what `narrow` shows."""

def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: _bool,
    momentum: _float,
    eps: _float,
    *,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm, with the means and inverse deviations of the channels; without training these are
    empty."""

def native_channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Channels in another order: of each group the first, then of each the second, and so on."""

def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: _int,
    C: _int,
    HxW: _int,
    group: _int,
    eps: _float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm, with the means and inverse deviations of the groups."""

def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None, bias: Tensor | None, eps: _float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, with the means and inverse deviations of the rows."""

def ne(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input != other``."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Negative: ``out = -input``."""

def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Negative: ``out = -input``."""

def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The number next to ``input`` toward ``other``."""

def nonzero(input: Tensor, *, as_tuple: _bool = False, out: Tensor | None = None) -> Any:
    """The indices of all elements that are not zero, in row-major order. Waits for the device: their
    number is data."""

def nonzero_static(input: Tensor, *, size: _int, fill_value: _int = -1) -> Tensor:
    """The first ``size`` indices of elements that are not zero, then rows of ``fill_value``. Does not
    wait."""

def norm(
    input: Tensor,
    p: _float | str | None = "fro",
    dim=None,
    keepdim: _bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
    *,
    axis=...,
    keepdims: _bool = ...,
) -> Tensor:
    """Vector norm over axes: ``(sum |x|^p)^(1/p)``; p = inf largest, -inf smallest, 0 the number of
    nonzero elements; or the nuclear norm of matrices."""

def normal(
    mean: Tensor | _float,
    std: Tensor | _float = 1.0,
    size=None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Normal random numbers, each with its own mean and standard deviation: ``mean + std * randn``."""

def not_equal(input: Tensor, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input != other``."""

def nuclear_norm(
    input: Tensor,
    dim: Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """The sum of the singular values of matrices."""

def ones(
    *given,
    size=None,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """A tensor of ones."""

def ones_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`ones` with the shape, dtype and device of ``input``."""

def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of Householder reflections ``I - tau v vᴴ``; the Q of `geqrf`."""

def ormqr(
    input: Tensor,
    tau: Tensor = ...,
    other: Tensor = ...,
    left: _bool = True,
    transpose: _bool = False,
    *,
    out: Tensor | None = None,
    input2: Tensor = ...,
    input3: Tensor = ...,
) -> Tensor:
    """The product of Q, as `geqrf` has it, with a matrix."""

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]``."""

def pca_lowrank(
    A: Tensor = ..., q: _int | None = None, center: _bool = True, niter: _int = 2, *, input: Tensor = ...
) -> USV:
    """Principal components of rows, nearly: the first singular values and vectors of A without its
    mean."""

def pdist(input: Tensor, p: _float = 2.0) -> Tensor:
    """The distances of all pairs of rows: ``norm(input[i] - input[j], p)`` for i < j."""

def permute(input: Tensor, *given, dims=None) -> Tensor:
    """Axes in another order, sharing storage."""

def permute_copy(input: Tensor, *dims, out: Tensor | None = None) -> Tensor:
    """A copy of what `permute` shows."""

def pinverse(input: Tensor, rcond: _float = 1e-15) -> Tensor:
    """The pseudo-inverse of matrices; `linalg.pinv` with another tolerance."""

def pixel_shuffle(input: Tensor, upscale_factor: _int) -> Tensor:
    """Channels become pixels: (..., c * r * r, height, width) to (..., c, height * r, width * r)."""

def pixel_unshuffle(input: Tensor, downscale_factor: _int) -> Tensor:
    """Pixels become channels: the inverse of `pixel_shuffle`."""

def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson variates of these rates; NaN where a rate is negative, infinite or NaN, of which PyTorch
    raises an error."""

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex number of a size and an angle in radians."""

def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `digamma` of order n."""

def positive(input: Tensor) -> Tensor:
    """The tensor itself."""

def pow(input: Tensor | _float, exponent: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Power: ``out = input ** exponent``."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where positive, else ``weight * input``."""

def prod(
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
    axis: _int | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Product over one axis, or of all elements: ``out = prod_r input[..., r, ...]``."""

def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
    """A copy with ``source`` at places of the flat tensor, or added there."""

def qr(input: Tensor, some: _bool = True, *, out: Tensor | None = None) -> QR:
    """QR factorization; `linalg.qr` with mode "reduced", or "complete" if not some."""

def quantile(
    input: Tensor,
    q,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
    axis: _int | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Value below which a share ``q`` of the elements of each row lies; NaN where there is one."""

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians as degrees."""

def rand(
    *given,
    size=None,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Uniform random numbers in [0, 1), 24 bits each; the same on every device; both parts of complex
    ones."""

def rand_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`rand` with the shape, dtype and device of ``input``."""

def randint(
    low: _int = 0,
    high=None,
    size=None,
    *,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Random integers from ``low`` to before ``high``."""

def randint_like(
    input: Tensor,
    low: _int = 0,
    high: _int | None = None,
    *,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`randint` with the shape, dtype and device of ``input``; ``randint_like(input, high)`` begins at
    0."""

def randn(
    *given,
    size=None,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Standard normal random numbers; equal on every device within 1e-5. The parts of complex ones
    have the variance 1/2 each."""

def randn_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`randn` with the shape, dtype and device of ``input``."""

def randperm(
    n: _int,
    *,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """The integers from 0 to before ``n`` in random order."""

def range(
    start=0,
    end=None,
    step=1,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Numbers from ``start`` to ``end``, which is one of them where a step ends there; deprecated."""

def ravel(input: Tensor) -> Tensor:
    """All elements along one axis."""

def real(input: Tensor) -> Tensor:
    """The real parts, which share memory with the tensor; of real numbers the tensor itself."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / input``."""

def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``max(input, 0)``."""

def remainder(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the sign of ``other``, as Python's ``%``."""

def renorm(
    input: Tensor,
    p: _float,
    dim: _int = ...,
    maxnorm: _float = ...,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """Parts along an axis scaled down so that the norm of none is above ``maxnorm``."""

def repeat_interleave(
    input: Tensor,
    repeats: _int | Tensor | None = None,
    dim: _int | None = None,
    *,
    output_size: _int | None = None,
    axis: _int | None = ...,
) -> Tensor:
    """Every element of an axis repeated in place."""

def reshape(input: Tensor, *given, shape=None) -> Tensor:
    """The same elements in another shape: a view where strides allow it, else a copy."""

def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once."""

def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negatives are computed at once."""

def rms_norm(
    input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, eps: _float | None = None
) -> Tensor:
    """``out = input / sqrt(mean(input^2) + eps) * weight`` over the last axes; 0 where the squares of
    a row add up past float32, as in PyTorch."""

def rnn_relu(*args, **kwargs) -> tuple[Tensor, Tensor]:
    """`rnn_tanh` with relu in the place of tanh."""

def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of `rnn_relu`: ``relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``."""

def rnn_tanh(*args, **kwargs) -> tuple[Tensor, Tensor]:
    """A recurrent layer of given weights: what `nn.RNN` computes; arguments as `lstm`, with one tensor
    of first states."""

def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of `rnn_tanh`: ``tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``."""

def roll(input: Tensor, shifts, dims=None) -> Tensor:
    """Elements moved along axes; those that leave at one end come in at the other."""

def rot90(input: Tensor, k: _int = 1, dims: Sequence[_int] = (0, 1)) -> Tensor:
    """A copy rotated by ``k`` times 90 degrees in the plane of two axes, from the first towards the
    second."""

def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """Rounded to the nearest integer, halves to even."""

def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors below one another: along axis 0, each of fewer than two axes as a row."""

def rrelu(
    input: Tensor,
    lower: _float = 0.125,
    upper: _float = 0.3333333333333333,
    training: _bool = False,
    inplace: _bool = False,
) -> Tensor:
    """``input`` where positive, else ``input`` times a random slope; without training times the middle
    one."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / sqrt(input)``."""

def rsub(input: Tensor, other: Tensor | _float, *, alpha: _float = 1) -> Tensor:
    """``other - alpha * input``."""

def scalar_tensor(
    s,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """A tensor without axes, of the default float unless a dtype is given."""

def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: _float | _int = 0.0,
    is_causal: _bool = False,
    scale: _float | _int | None = None,
    enable_gqa: _bool = False,
) -> Tensor:
    """``softmax(scale * query @ key.T + attn_mask) @ value``, without the scores ever lying in memory."""

def scatter(
    input: Tensor,
    dim: _int = ...,
    index: Tensor = ...,
    src=None,
    *,
    value: _float | None = None,
    reduce: str | None = None,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """A copy of ``input`` with ``out[index[i][j]][j] = src[i][j]`` for dim 0, and so on; of equal
    places the last source stays."""

def scatter_add(
    input: Tensor,
    dim: _int = ...,
    index: Tensor = ...,
    src: Tensor = ...,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """A copy of ``input`` with ``out[index[i][j]][j] += src[i][j]`` for dim 0, and so on, added in the
    order of the sources."""

def scatter_reduce(
    input: Tensor,
    dim: _int = ...,
    index: Tensor = ...,
    src: Tensor = ...,
    reduce: str = ...,
    *,
    include_self: _bool = True,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """A copy of ``input`` in which each place along an axis combines the sources that go there:
    ``out[index[i][j]][j] = reduce(out[index[i][j]][j], src[i][j])`` for dim 0, and so on."""

def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | _float,
    *,
    out_int32: _bool = False,
    right: _bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Places where values would be inserted into sorted rows so that these stay sorted."""

def select(input: Tensor, dim: _int = ..., index: _int = ..., *, axis: _int = ...) -> Tensor:
    """One position of an axis, which disappears; shares storage."""

def select_copy(
    input: Tensor, dim: _int = ..., index: _int = ..., *, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """A copy of what `select` shows."""

def select_scatter(
    input: Tensor, src: Tensor, dim: _int = ..., index: _int = ..., *, axis: _int = ...
) -> Tensor:
    """A copy of ``input`` with ``src`` at one position of an axis."""

def selu(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``elu(input, 1.67326)`` times 1.0507."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The number over its size, 0 at 0: of real ones the sign."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-input))``."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1 by the sign of the value; 0 for NaN."""

def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign is that of a negative number, also of -0.0 and NaN."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sine of an angle in radians."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi * input) / (pi * input)``, 1 at 0."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic sine."""

def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: _int = 0,
    start: _int | None = None,
    end: _int | None = None,
    step: _int = 1,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """A copy of ``input`` with ``src`` in a slice of an axis."""

def slogdet(input: Tensor, *, out: Tensor | None = None) -> SignAndLog:
    """The determinant of matrices as its sign and the logarithm of its size, which does not overflow."""

def softmax(
    input: Tensor, dim: _int = ..., dtype: DType | None = None, *, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """``out_i = exp(x_i) / sum_j exp(x_j)`` along an axis; a row of only -inf gives NaN."""

def sort(
    input: Tensor,
    dim: _int = -1,
    descending: _bool = False,
    stable: _bool = True,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> ValuesAndIndices:
    """Elements in order along an axis, and where they were."""

def split(
    tensor: Tensor, split_size_or_sections=..., dim: _int = 0, *, axis: _int = ..., split_size=...
) -> tuple[Tensor, ...]:
    """Views of consecutive parts of an axis."""

def split_with_sizes(input: Tensor, split_sizes, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
    """`split` with a list of lengths."""

def split_with_sizes_copy(
    input: Tensor, split_sizes, dim: _int = 0, *, out: Tensor | None = None, axis: _int = ...
) -> tuple[Tensor, ...]:
    """A copy of what `split_with_sizes` shows."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Square root."""

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * input``."""

def squeeze(
    input: Tensor, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = ...
) -> Tensor:
    """Without axes of length 1 (all, or those of ``dim``), sharing storage."""

def squeeze_copy(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] | None = ...,
) -> Tensor:
    """A copy of what `squeeze` shows."""

def stack(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None, axis: _int = ...) -> Tensor:
    """Tensors of one shape along a new axis."""

def std(
    input: Tensor,
    dim=None,
    unbiased: _bool | None = None,
    keepdim: _bool = False,
    *,
    correction: _float | None = None,
    out: Tensor | None = None,
    axis=...,
    keepdims: _bool = ...,
) -> Tensor:
    """Standard deviation over axes: the square root of `var`, same arguments."""

def std_mean(
    input: Tensor,
    dim=None,
    unbiased: _bool | None = None,
    keepdim: _bool = False,
    *,
    correction: _float | None = None,
    out: Tensor | None = None,
    axis=...,
    keepdims: _bool = ...,
) -> tuple[Tensor, Tensor]:
    """``(std(input, ...), mean(input, ...))``."""

def stft(
    input: Tensor,
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

def sub(
    input: Tensor | _float, other: Tensor | _float, *, alpha: _float = 1, out: Tensor | None = None
) -> Tensor:
    """Difference: ``out = input - alpha * other``."""

def subtract(
    input: Tensor | _float, other: Tensor | _float, *, alpha: _float = 1, out: Tensor | None = None
) -> Tensor:
    """Difference: ``out = input - alpha * other``."""

def sum(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] | None = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """Sum over axes: ``out = sum_r input[..., r, ...]``."""

def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Tensor | None = None) -> USV:
    """Singular values ``A = U diag(S) Vᴴ``; `linalg.svd`, which gives Vᴴ."""

def svd_lowrank(
    A: Tensor = ...,
    q: _int | None = 6,
    niter: _int | None = 2,
    M: Tensor | None = None,
    *,
    input: Tensor = ...,
) -> USV:
    """The first q singular values and vectors of matrices, nearly, by random vectors."""

def swapaxes(input: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """`transpose`, by numpy's names."""

def swapdims(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """Two axes exchanged, sharing storage."""

def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of fewer axes as they are."""

def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `t` shows."""

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements by their places in the flat tensor, in the shape of ``index``."""

def take_along_dim(
    input: Tensor,
    indices: Tensor,
    dim: _int | None = None,
    *,
    out: Tensor | None = None,
    axis: _int | None = ...,
) -> Tensor:
    """`gather` with broadcasting of the other axes; all elements are counted through if ``dim`` is
    None. Along an axis negative indices count from the end."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tangent of an angle in radians."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic tangent."""

def tensor_split(
    input: Tensor,
    indices_or_sections=None,
    dim: _int = 0,
    *,
    indices: Sequence[_int] | None = None,
    sections: _int | None = None,
    axis: _int = ...,
) -> tuple[Tensor, ...]:
    """Views of parts of an axis: so many, of lengths that differ by at most one, or cut at given
    positions."""

def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sum of products over several axes of both."""

def threshold(
    input: Tensor, threshold: _float, value: _float, inplace: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """``input`` where it is above ``threshold``, else ``value``."""

def tile(input: Tensor, *given, dims=None) -> Tensor:
    """`repeat` with missing leading counts taken as 1."""

def topk(
    input: Tensor,
    k: _int,
    dim: _int = -1,
    largest: _bool = True,
    sorted: _bool = True,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> ValuesAndIndices:
    """The ``k`` largest (or smallest) elements along an axis, in order, and where they were."""

def trace(input: Tensor) -> Tensor:
    """Sum of the main diagonal of a matrix."""

def transpose(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """Two axes exchanged, sharing storage."""

def transpose_copy(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `transpose` shows."""

def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: _float = 1, dim: _int = -1, axis: _int = ...
) -> Tensor:
    """Integral along an axis by the trapezoidal rule."""

def trapz(y: Tensor, x: Tensor | None = None, *, dx: _float = 1, dim: _int = -1, axis: _int = ...) -> Tensor:
    """Integral along an axis by the trapezoidal rule."""

def triangular_solve(
    b: Tensor = ...,
    A: Tensor = ...,
    upper: _bool = True,
    transpose: _bool = False,
    unitriangular: _bool = False,
    *,
    out: Tensor | None = None,
    input: Tensor = ...,
) -> Triangular:
    """The ``X`` of ``A X = b`` where A is triangular, and a copy of A; `linalg.solve_triangular`."""

def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of the last two axes; zero above the diagonal."""

def tril_indices(
    row: _int,
    col: _int,
    offset: _int = 0,
    *,
    dtype: DType = ...,
    device=None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Rows and columns of the lower triangle of a matrix, as two rows, by rows."""

def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of the last two axes; zero below the diagonal."""

def triu_indices(
    row: _int,
    col: _int,
    offset: _int = 0,
    *,
    dtype: DType = ...,
    device=None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Rows and columns of the upper triangle of a matrix, as two rows, by rows."""

def true_divide(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """`div` without rounding."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Rounded toward zero."""

def unbind(input: Tensor, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
    """Every position of an axis, as views without it."""

def unbind_copy(
    input: Tensor, dim: _int = 0, *, out: Tensor | None = None, axis: _int = ...
) -> tuple[Tensor, ...]:
    """A copy of what `unbind` shows."""

def unflatten(input: Tensor, dim: _int = ..., sizes: Sequence[_int] = ..., *, axis: _int = ...) -> Tensor:
    """One axis as several."""

def unfold_copy(
    input: Tensor, dimension: _int, size: _int, step: _int, *, out: Tensor | None = None
) -> Tensor:
    """A copy of what `unfold` shows."""

def unique(
    input: Tensor,
    sorted: _bool = True,
    return_inverse: _bool = False,
    return_counts: _bool = False,
    dim: _int | None = None,
    *,
    axis: _int | None = ...,
) -> Any:
    """The different elements, or slices of an axis, in ascending order. Waits: their number is data."""

def unique_consecutive(
    input: Tensor,
    return_inverse: _bool = False,
    return_counts: _bool = False,
    dim: _int | None = None,
    *,
    axis: _int | None = ...,
) -> Any:
    """The elements, or slices of an axis, that differ from the one before. Waits: their number is
    data."""

def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """Flat places as places along each axis of a shape."""

def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0, *, axis: _int = ...) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal length (the last may be shorter)."""

def unsafe_split(
    tensor: Tensor = ..., split_size: _int = ..., dim: _int = 0, *, axis: _int = ..., input: Tensor = ...
) -> tuple[Tensor, ...]:
    """`split` in parts of one length. PyTorch does not see writes into them; they are views here."""

def unsafe_split_with_sizes(
    input: Tensor, split_sizes, dim: _int = 0, *, axis: _int = ...
) -> tuple[Tensor, ...]:
    """`split` with a list of lengths."""

def unsqueeze(input: Tensor, dim: _int = ..., *, axis: _int = ...) -> Tensor:
    """With a new axis of length 1 at ``dim``, sharing storage."""

def unsqueeze_copy(input: Tensor, dim: _int = ..., *, out: Tensor | None = None, axis: _int = ...) -> Tensor:
    """A copy of what `unsqueeze` shows."""

def vander(
    x: Tensor = ..., N: _int | None = None, increasing: _bool = False, *, input: Tensor = ...
) -> Tensor:
    """Vandermonde matrix: column ``j`` is ``x ** (N - 1 - j)``, or ``x ** j`` if increasing."""

def var(
    input: Tensor,
    dim=None,
    unbiased: _bool | None = None,
    keepdim: _bool = False,
    *,
    correction: _float | None = None,
    out: Tensor | None = None,
    axis=...,
    keepdims: _bool = ...,
) -> Tensor:
    """Variance over axes: ``sum((input - mean)^2) / max(count - correction, 0)``."""

def var_mean(
    input: Tensor,
    dim=None,
    unbiased: _bool | None = None,
    keepdim: _bool = False,
    *,
    correction: _float | None = None,
    out: Tensor | None = None,
    axis=...,
    keepdims: _bool = ...,
) -> tuple[Tensor, Tensor]:
    """``(var(input, ...), mean(input, ...))``."""

def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two vectors, the first conjugated."""

def view_as_complex(input: Tensor) -> Tensor:
    """Floats as complex numbers, which share memory: the last axis, of length 2, has both parts."""

def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor as one of floats in the same memory: a last axis has the parts, the real one
    first."""

def view_copy(input: Tensor, *size, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """A copy of what `view` shows."""

def vsplit(
    input: Tensor,
    indices_or_sections=None,
    *further: _int,
    indices: Sequence[_int] | None = None,
    sections: _int | None = None,
) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 0 of at least two into parts of one length."""

def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors below one another: along axis 0, each of fewer than two axes as a row."""

def where(
    condition: Tensor, input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None
) -> Tensor:
    """``input`` where the condition holds, else ``other``; of a condition alone the places where it
    holds, as ``nonzero(as_tuple=True)`` has them."""

def xlogy(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input * log(other)``, 0 where ``input`` is 0."""

def zero_(input: Tensor) -> Tensor:
    """Write 0 over every element; the tensor itself is returned."""

def zeros(
    *given,
    size=None,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """A tensor of zeros."""

def zeros_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """`zeros` with the shape, dtype and device of ``input``."""

abs_ = Tensor.abs_
acos_ = Tensor.acos_
acosh_ = Tensor.acosh_
addmv_ = Tensor.addmv_
arccos_ = Tensor.arccos_
arccosh_ = Tensor.arccosh_
arcsin_ = Tensor.arcsin_
arcsinh_ = Tensor.arcsinh_
arctan_ = Tensor.arctan_
arctanh_ = Tensor.arctanh_
as_strided_ = Tensor.as_strided_
asin_ = Tensor.asin_
asinh_ = Tensor.asinh_
atan_ = Tensor.atan_
atanh_ = Tensor.atanh_
ceil_ = Tensor.ceil_
clamp_ = Tensor.clamp_
clamp_max_ = Tensor.clamp_max_
clamp_min_ = Tensor.clamp_min_
clip_ = Tensor.clip_
conj_physical_ = Tensor.conj_physical_
cos_ = Tensor.cos_
cosh_ = Tensor.cosh_
deg2rad_ = Tensor.deg2rad_
detach_ = Tensor.detach_
erf_ = Tensor.erf_
erfc_ = Tensor.erfc_
exp2_ = Tensor.exp2_
exp_ = Tensor.exp_
expm1_ = Tensor.expm1_
fill_ = Tensor.fill_
fix_ = Tensor.fix_
floor_ = Tensor.floor_
frac_ = Tensor.frac_
gcd_ = Tensor.gcd_
i0_ = Tensor.i0_
index_put_ = Tensor.index_put_
lcm_ = Tensor.lcm_
ldexp_ = Tensor.ldexp_
log10_ = Tensor.log10_
log1p_ = Tensor.log1p_
log2_ = Tensor.log2_
log_ = Tensor.log_
logit_ = Tensor.logit_
nan_to_num_ = Tensor.nan_to_num_
neg_ = Tensor.neg_
negative_ = Tensor.negative_
rad2deg_ = Tensor.rad2deg_
reciprocal_ = Tensor.reciprocal_
relu_ = Tensor.relu_
resize_as_ = Tensor.resize_as_
round_ = Tensor.round_
rsqrt_ = Tensor.rsqrt_
sigmoid_ = Tensor.sigmoid_
sin_ = Tensor.sin_
sinc_ = Tensor.sinc_
sinh_ = Tensor.sinh_
sqrt_ = Tensor.sqrt_
square_ = Tensor.square_
tan_ = Tensor.tan_
tanh_ = Tensor.tanh_
trunc_ = Tensor.trunc_
xlogy_ = Tensor.xlogy_
