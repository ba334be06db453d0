"""PyTorch you can see through, in the browser: the PyTorch API on WebGPU.

The usual line is ``import pellucid as torch``. Importing this opens no GPU; the first op does.
"""

import os as _os

from . import autograd, errors, webgpu
from .autograd.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .device import get_default_device, set_default_device
from .kernel.autotune.deterministic import are_deterministic_algorithms_enabled, use_deterministic_algorithms
from .ops.attention.scaled_dot_product import scaled_dot_product_attention
from .ops.conv.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from .ops.elementwise.arithmetic import (
    add,
    addcdiv,
    addcmul,
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    clamp,
    clip,
    div,
    floor_divide,
    fmod,
    lerp,
    maximum,
    minimum,
    mul,
    neg,
    positive,
    pow,
    remainder,
    rsub,
    sub,
    true_divide,
)
from .ops.elementwise.comparison import (
    allclose,
    eq,
    equal,
    ge,
    gt,
    isclose,
    isfinite,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    masked_fill,
    ne,
    where,
)
from .ops.elementwise.functions import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    frac,
    log,
    log1p,
    log2,
    log10,
    logit,
    reciprocal,
    relu,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from .ops.index.gather import gather, scatter, scatter_add, take_along_dim
from .ops.index.rows import embedding, index_add, index_select
from .ops.index.selection import masked_select, nonzero
from .ops.index.sort import argsort, sort, topk
from .ops.matmul.dense import addmm, baddbmm, bmm, dot, matmul, mm, mv, outer
from .ops.norm.normalization import layer_norm, norm, rms_norm
from .ops.norm.softmax import log_softmax, softmax
from .ops.random.distributions import (
    bernoulli,
    dropout,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
)
from .ops.random.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .ops.reduce.extremum import amax, amin, aminmax, argmax, argmin, max, min
from .ops.reduce.reductions import (
    all,
    any,
    count_nonzero,
    logsumexp,
    mean,
    prod,
    std,
    std_mean,
    sum,
    var,
    var_mean,
)
from .ops.reduce.scan import cumprod, cumsum
from .ops.shape.creation import (
    arange,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from .ops.shape.joining import (
    cat,
    column_stack,
    concat,
    concatenate,
    dstack,
    flip,
    hstack,
    repeat_interleave,
    roll,
    stack,
    tile,
    vstack,
)
from .ops.shape.movement import clone, tril, triu
from .ops.shape.slicing import diagonal, narrow, select
from .ops.shape.splitting import chunk, split, unbind
from .ops.shape.views import (
    as_strided,
    broadcast_tensors,
    broadcast_to,
    flatten,
    movedim,
    permute,
    reshape,
    squeeze,
    t,
    transpose,
    unflatten,
    unsqueeze,
)
from .tensors import methods
from .tensors.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
)
from .tensors.printing import set_printoptions
from .tensors.shape import Size
from .tensors.tensor import Tensor

__version__ = "0.1.0"

bool = bool_
float = float32
double = float64
half = float16
int = int32
long = int64

# The names of PyTorch's classes and functions win over modules of these names; inside the package the modules
# are imported by path.
from .device import device  # noqa: E402
from .tensors.construct import as_tensor, from_numpy, tensor  # noqa: E402
from .tensors.dtypes import DType as dtype  # noqa: E402

if _os.environ.get("PELLUCID_CHECK"):
    from . import check

# Rooms that most programs open, but not all: imported at first use, so that a page is ready sooner.
_LAZY = {
    "AutoModelForCausalLM": "models",
    "AutoTokenizer": "text",
    "GenerationConfig": "generate",
    "compile": "jit",
    "debug": "profiler.debug",
    "lens": "lens",
    "match": "lens",
    "models": "models",
    "nn": "nn",
    "optim": "optim",
    "profiler": "profiler",
    "quant": "quant",
    "settings": "weights.settings",
    "text": "text",
    "weights": "weights",
}


def __getattr__(name: str):
    room = _LAZY.get(name)
    if room is None:
        raise AttributeError(f"module 'pellucid' has no attribute {name!r}")
    from importlib import import_module

    found = import_module(f".{room}", __name__)
    value = found if room.rpartition(".")[2] == name else getattr(found, name)
    globals()[name] = value
    return value
