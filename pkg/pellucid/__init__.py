"""PyTorch you can see through, in the browser: the PyTorch API on WebGPU.

The usual line is ``import pellucid as torch``. Importing this opens no GPU; the first op does.
"""

import gc as _gc
import math as _math
import os as _os
import sys as _sys

from . import autograd, errors
from .autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from .autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .device import get_default_device, set_default_device, webgpu
from .errors import OutOfMemoryError
from .op.kernel.autotune.deterministic import (
    are_deterministic_algorithms_enabled,
    use_deterministic_algorithms,
)
from .op.public import EXPORTS as _EXPORTS
from .ops.random.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .tensors import methods, overrides
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
from .tensors.formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from .tensors.limits import finfo, iinfo
from .tensors.printing import set_printoptions
from .tensors.queries import (
    can_cast,
    detach,
    get_device,
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    is_conj,
    is_floating_point,
    is_inference,
    is_neg,
    is_nonzero,
    is_same_size,
    is_signed,
    is_tensor,
    numel,
    result_type,
    set_float32_matmul_precision,
    set_num_interop_threads,
    set_num_threads,
    sym_float,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    typename,
)
from .tensors.shape import Size
from .tensors.tensor import Tensor
from .tensors.typed import TYPES as _TYPES
from .tensors.typed import set_default_tensor_type

__version__ = "0.1.0"

# Ops and what is written in terms of them; the stub beside this file names them for editors.
globals().update(methods.functions_in_place())
globals().update(_EXPORTS["torch"])
globals().update(_TYPES)

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None

bool = bool_
float = float32
double = float64
half = float16
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128

# The names of PyTorch's classes and functions win over modules of these names; inside the package the modules
# are imported by path.
from .device import device  # noqa: E402
from .tensors.construct import (  # noqa: E402
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    frombuffer,
    tensor,
    to_dlpack,
)
from .tensors.dtypes import DType as dtype  # noqa: E402

if _os.environ.get("PELLUCID_CHECK"):
    from .profiler import check

# Rooms that most programs open, but not all: imported at first use, so that a page is ready sooner.
_LAZY = {
    "AutoConfig": "models",
    "AutoModel": "models",
    "AutoModelForCausalLM": "models",
    "AutoModelForMaskedLM": "models",
    "AutoModelForQuestionAnswering": "models",
    "AutoModelForSeq2SeqLM": "models",
    "AutoModelForSequenceClassification": "models",
    "AutoModelForTokenClassification": "models",
    "AutoTokenizer": "text",
    "amp": "optim.amp",
    "ao": "nn.ao",
    "autocast": "optim.amp",
    "autocast_decrement_nesting": "optim.amp",
    "autocast_increment_nesting": "optim.amp",
    "celu_": "nn.functional",
    "GenerationConfig": "models.generate",
    "GradScaler": "optim.amp",
    "compat": "utils.compat",
    "compile": "op.jit",
    "convert": "utils.conversion",
    "cosine_similarity": "nn.functional",
    "debug": "profiler.debug",
    "distributions": "distributions",
    "export": "models.graph.export",
    "from_torch": "models.graph.desktop",
    "fft": "ops.namespaces.fft",
    "func": "nn.func",
    "get_autocast_cpu_dtype": "optim.amp",
    "get_autocast_dtype": "optim.amp",
    "get_autocast_gpu_dtype": "optim.amp",
    "is_autocast_cpu_enabled": "optim.amp",
    "is_autocast_enabled": "optim.amp",
    "inspect": "utils.inspection",
    "inspect_async": "utils.inspection",
    "jit": "op.jit",
    "kernels": "ops.namespaces.kernels",
    "grid": "grid",
    "lens": "lens",
    "load": "utils.serialization",
    "linalg": "ops.namespaces.linalg",
    "match": "utils.matching",
    "match_async": "utils.matching",
    "models": "models",
    "nn": "nn",
    "onnx": "models.graph.onnx",
    "optim": "optim",
    "pairwise_distance": "nn.functional",
    "physics": "physics",
    "pipeline": "models.pipelines",
    "pipeline_async": "models.pipelines",
    "profiler": "profiler",
    "quant": "quant",
    "record": "utils.matching",
    "rrelu_": "nn.functional",
    "save": "utils.serialization",
    "selu_": "nn.functional",
    "serialization": "utils.serialization",
    "set_autocast_dtype": "optim.amp",
    "set_autocast_enabled": "optim.amp",
    "settings": "weights.settings",
    "signal": "ops.namespaces.signal",
    "special": "ops.namespaces.special",
    "testing": "utils.testing",
    "text": "text",
    "tflite": "models.graph.tflite",
    "threshold_": "nn.functional",
    "train": "train",
    "utils": "utils",
    "vmap": "autograd.mapped",
    "weights": "weights",
}


def __getattr__(name: str):
    room = _LAZY.get(name)
    if room is None:
        # PyTorch's modules that only answer, and the error for what is missing.
        from .utils.compat.rooms import named

        return named(name)
    from importlib import import_module

    found = import_module(f".{room}", __name__)
    value = found if room.rpartition(".")[2] == name else getattr(found, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    # What programs use, also where it is not imported yet; not the package's inner rooms.
    names = {name for name, value in globals().items() if not isinstance(value, type(_math))}
    names |= {"autograd", "errors", "webgpu", *_LAZY}
    return sorted(name for name in names if name.startswith("__") or not name.startswith("_"))


if _sys.platform == "emscripten":
    from .device.stream import stream as _stream
    from .op.plan_text.warm_up import warm_up as _warm_up

    _stream().settings["meanwhile"] = _warm_up()
    # What import has made stays; of what else is alive by then only cycles are kept, if they die. A whole
    # collection goes over 65,000 objects in a page, for 60 ms and more, and a thousand ops ask for several.
    _gc.freeze()
