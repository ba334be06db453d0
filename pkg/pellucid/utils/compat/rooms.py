"""PyTorch's modules that have no counterpart here, in one table: what they answer, and what they refuse."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from enum import Flag, IntEnum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NoReturn

from ...device import device as Device
from ...device import get_default_device
from ...errors import DeviceError, OutOfMemoryError, SourceError
from ...tensors import dtypes
from ...tensors.absent import public, refuse
from ...tensors.dispatch import DisableTorchFunction, DisableTorchFunctionSubclass
from ...tensors.portable import TypedStorage, UntypedStorage
from . import foreach
from .library import Namespace
from .row import Room


class _Built(ModuleType):
    """A module of the table."""

    def __init__(self, path: str, row: Room):
        place = f"torch.{path}".rstrip(".")
        super().__init__(place)
        self.__path__ = []
        self.__dict__.update(row.names(place))
        self._path, self._at = path, row.at.split()

    def __getattr__(self, name: str) -> Any:
        if f"{self._path}.{name}" in ROOMS:
            return room(f"{self._path}.{name}")
        if not (name.startswith("__") and name.endswith("__")):
            for place in self._at:
                is_room = place in ROOMS and place != self._path
                found = room(place) if is_room else import_module(f"pellucid.{place}".rstrip("."))
                value = getattr(found, name, None)
                # A module is no function of its name within it.
                itself = isinstance(value, ModuleType) and self._path.endswith(f".{name}")
                if value is not None and not itself:
                    return value
        if self._path == "ops":
            return Namespace(name)
        refuse(self.__name__, name, vars(self))


@cache
def room(path: str, at: str = "") -> Any:
    """The module that stands for ``torch.<path>``.

    Args:
        path: such as "cuda.amp".
        at: the module of the package that has its names, where the table says nothing.
    """
    return _Built(path, ROOMS.get(path) or Room(at))


def named(name: str) -> Any:
    """What ``torch`` itself has besides what Pellucid declares.

    Raises:
        AttributeError: there is no such name.
    """
    return room(name) if name in ROOMS and name else getattr(room(""), name)


# Questions about a kind of accelerator that is not here.
_NONE: dict[str, Any] = {"is_available": False, "device_count": 0}
_NOT_ONE = _NONE | {
    "is_initialized": False,
    "is_bf16_supported": False,
    "memory_allocated": 0,
    "max_memory_allocated": 0,
}
_OF_A_DEVICE = (
    "current_device set_device get_device_properties get_device_capability current_stream stream synchronize "
    "memory_stats get_rng_state set_rng_state is_current_stream_capturing"
)
_RELEASE = next(iter(public()["version"]))

# Sets of keys that a program only names: nothing here is dispatched by them.
_Keys = Flag("DispatchKey", "AutocastCPU AutocastCUDA AutocastXPU")

# DLPack's numbers of devices.
_DLPACK = IntEnum(
    "DLDeviceType",
    [
        *(("kDLCPU", 1), ("kDLCUDA", 2), ("kDLCUDAHost", 3), ("kDLOpenCL", 4), ("kDLVulkan", 7)),
        *(("kDLMetal", 8), ("kDLVPI", 9), ("kDLROCM", 10), ("kDLROCMHost", 11), ("kDLExtDev", 12)),
        *(("kDLCUDAManaged", 13), ("kDLOneAPI", 14), ("kDLWebGPU", 15), ("kDLHexagon", 16)),
        ("kDLMAIA", 17),
    ],
)


def _module_of_device(device: Any = None) -> Any:
    """``torch.cpu``, ``torch.cuda`` and so on, by a device or its type."""
    where = (Device(device) if isinstance(device, str) else device or get_default_device()).type
    package = sys.modules["pellucid"]
    return package.webgpu if where == "webgpu" else room(where)


def _not_loaded(path: Any) -> NoReturn:
    raise SourceError(f"torch.ops.load_library: {path} is compiled against PyTorch, which is not here.")


_NUMBERS = ["single", "pair", "triple", "quadruple"]


def _several(count: int) -> Callable[[Any], tuple]:
    return lambda x: tuple(x) if isinstance(x, Iterable) else (x,) * count


ROOMS: dict[str, Room] = {
    "": Room(
        values={d.name: d for d in dtypes.NAMED}
        | foreach.FUNCTIONS
        | {"has_lapack": True, "has_spectral": True, "has_mkl": False, "has_openmp": False}
        | {
            "AcceleratorError": DeviceError,
            "DisableTorchFunction": DisableTorchFunction,
            "DisableTorchFunctionSubclass": DisableTorchFunctionSubclass,
            "TypedStorage": TypedStorage,
            "UntypedStorage": UntypedStorage,
            "get_device_module": _module_of_device,
            "is_storage": lambda obj: isinstance(obj, (TypedStorage, UntypedStorage)),
        },
        answers={
            "compiled_with_cxx11_abi": True,
            "is_deterministic_algorithms_warn_only_enabled": False,
            "is_distributed": False,
            "is_vulkan_available": False,
            "is_warn_always_enabled": False,
            "get_deterministic_debug_mode": 0,
            "is_autocast_cache_enabled": True,
        },
        idle="set_warn_always set_flush_denormal clear_autocast_cache set_autocast_cache_enabled",
        kinds="ScriptModule Stream Event SymInt SymFloat SymBool Storage Future FloatStorage DoubleStorage "
        "HalfStorage BFloat16Storage LongStorage IntStorage ShortStorage CharStorage ByteStorage BoolStorage "
        "ComplexFloatStorage ComplexDoubleStorage",
    ),
    "version": Room(
        values={
            "__version__": f"{_RELEASE}+pellucid",
            "cuda": None,
            "hip": None,
            "xpu": None,
            "debug": False,
            "git_version": "pellucid",
        }
    ),
    "torch_version": Room(values={"TorchVersion": str}),
    # Devices
    "cuda": Room(
        values={"OutOfMemoryError": OutOfMemoryError},
        answers=_NOT_ONE
        | {"get_arch_list": [], "memory_reserved": 0, "max_memory_reserved": 0, "get_rng_state_all": []},
        idle="empty_cache manual_seed manual_seed_all seed seed_all set_rng_state_all ipc_collect "
        "reset_peak_memory_stats",
        kinds="Stream Event CUDAGraph FloatTensor HalfTensor LongTensor BFloat16Tensor BoolTensor ByteTensor "
        "CharTensor DoubleTensor IntTensor ShortTensor device device_of StreamContext",
        refused=f"{_OF_A_DEVICE} get_device_name mem_get_info default_stream memory_summary graph",
    ),
    "amp.autocast_mode": Room(at="optim.amp"),
    "amp.grad_scaler": Room(at="optim.amp"),
    "cuda.amp": Room(at="utils.compat.amp_of_cuda"),
    "cuda.amp.autocast_mode": Room(at="utils.compat.amp_of_cuda"),
    "cuda.amp.grad_scaler": Room(at="utils.compat.amp_of_cuda"),
    "cpu": Room(
        answers={"is_available": True, "device_count": 1, "current_device": "cpu", "is_initialized": True},
        idle="synchronize set_device",
        contexts="stream",
        kinds="Stream Event StreamContext",
        refused="current_stream get_capabilities",
    ),
    "cpu.amp": Room(at="utils.compat.amp_of_cpu"),
    "cpu.amp.autocast_mode": Room(at="utils.compat.amp_of_cpu"),
    "cpu.amp.grad_scaler": Room(at="utils.compat.amp_of_cpu"),
    "cuda.nvtx": Room(idle="range_push range_pop mark", contexts="range"),
    "xpu": Room(
        answers=_NOT_ONE,
        idle="empty_cache manual_seed manual_seed_all reset_peak_memory_stats",
        refused=f"{_OF_A_DEVICE} get_device_name mem_get_info",
    ),
    "mps": Room(
        answers=_NONE, idle="empty_cache manual_seed", refused="synchronize get_rng_state set_rng_state"
    ),
    "mtia": Room(answers=_NONE, idle="empty_cache manual_seed manual_seed_all", refused="synchronize"),
    "accelerator": Room(
        answers=_NONE | {"current_accelerator": None},
        refused="current_device_index set_device_index current_stream synchronize memory_stats empty_cache",
    ),
    "backends": Room(),
    "backends.cpu": Room(answers={"get_cpu_capability": "DEFAULT"}),
    "backends.cuda": Room(
        answers={
            "is_built": False,
            "flash_sdp_enabled": False,
            "mem_efficient_sdp_enabled": False,
            "cudnn_sdp_enabled": False,
            "math_sdp_enabled": True,
        },
        idle="enable_flash_sdp enable_mem_efficient_sdp enable_math_sdp enable_cudnn_sdp",
        contexts="sdp_kernel",
        kinds="SDPAParams",
    ),
    "backends.cuda.matmul": Room(values={"allow_tf32": False}),
    "backends.cudnn": Room(
        answers={"is_available": False, "version": None},
        values={"enabled": False, "benchmark": False, "deterministic": True, "allow_tf32": False},
        contexts="flags",
    ),
    "backends.mps": Room(answers={"is_available": False, "is_built": False}),
    "backends.mkl": Room(answers={"is_available": False}),
    "backends.mkldnn": Room(answers={"is_available": False}, values={"enabled": False}, contexts="flags"),
    "backends.openmp": Room(answers={"is_available": False}),
    "backends.opt_einsum": Room(answers={"is_available": False}, values={"enabled": False}),
    # Programs as graphs
    "jit": Room(
        answers={"is_scripting": False, "is_tracing": False, "isinstance": False},
        idle="set_fusion_strategy enable_onednn_fusion",
        same="ignore unused export interface script script_if_tracing script_method _script_if_tracing "
        "_overload _overload_method",
        contexts="fuser optimized_execution strict_fusion",
        kinds="ScriptModule ScriptFunction RecursiveScriptModule Attribute Error Future",
        refused="trace trace_module load save freeze optimize_for_inference fork wait",
        values={"Final": Final, "annotate": lambda kind, value: value},
    ),
    "jit.annotations": Room(
        values={"List": list}, kinds="BroadcastingList1 BroadcastingList2 BroadcastingList3"
    ),
    "compiler": Room(
        answers={"is_compiling": False, "is_dynamo_compiling": False, "is_exporting": False},
        idle="reset cudagraph_mark_step_begin",
        same="allow_in_graph assume_constant_result nested_compile_region wrap_numpy",
        contexts="set_stance",
        at="op.jit op.jit.compiler",
    ),
    "_dynamo": Room(
        at="op.jit op.jit.compiler",
        answers={"is_compiling": False},
        idle="reset mark_dynamic maybe_mark_dynamic mark_static mark_static_address graph_break",
        same="allow_in_graph disallow_in_graph forbid_in_graph assume_constant_result",
        refused="explain export",
    ),
    "_dynamo.config": Room(values={"suppress_errors": False, "verbose": False, "cache_size_limit": 8}),
    "_dynamo.utils": Room(answers={"is_compile_supported": False}),
    "_dynamo.eval_frame": Room(at="op.jit"),
    "_dynamo._trace_wrapped_higher_order_op": Room(kinds="TransformGetItemToIndex"),
    "_higher_order_ops": Room(),
    "_higher_order_ops.associative_scan": Room(refused="associative_scan"),
    "_inductor": Room(),
    "_inductor.config": Room(),
    "fx": Room(
        same="wrap", kinds="Graph GraphModule Interpreter Node Proxy Tracer", refused="symbolic_trace"
    ),
    "fx.proxy": Room(kinds="Proxy"),
    "fx.node": Room(kinds="Node", values={"Target": Any, "Argument": Any}),
    "fx.graph_module": Room(
        kinds="GraphModule _CodeOnlyModule",
        refused="_copy_attr",
        values={"_USER_PRESERVED_ATTRIBUTES_KEY": "_user_preserved_attributes"},
    ),
    "fx._compatibility": Room(same="compatibility"),
    "fx.experimental": Room(),
    "fx.experimental.symbolic_shapes": Room(answers={"is_concrete_int": True, "guard_or_false": False}),
    "export": Room(at="models.graph.export", kinds="Dim", refused="export save register_dataclass"),
    "onnx": Room(
        at="models.graph.onnx",
        answers={"is_in_onnx_export": False},
        idle="register_custom_op_symbolic unregister_custom_op_symbolic",
        refused="export",
    ),
    "onnx.symbolic_helper": Room(same="parse_args"),
    "onnx.symbolic_opset11": Room(),
    "func": Room(at="nn.func"),
    "library": Room(at="utils.compat.library", refused="triton_op wrap_triton opcheck"),
    "ops": Room(values={"load_library": _not_loaded}),
    "_custom_ops": Room(),
    # Several processes
    "distributed": Room(
        answers={
            "is_available": False,
            "is_initialized": False,
            "is_torchelastic_launched": False,
            "is_nccl_available": False,
            "is_gloo_available": False,
            "is_mpi_available": False,
        },
        kinds="ProcessGroup ReduceOp Work Store TCPStore FileStore P2POp",
        refused="init_process_group destroy_process_group get_rank get_world_size all_reduce all_gather "
        "all_gather_object all_gather_into_tensor reduce reduce_scatter reduce_scatter_tensor broadcast "
        "broadcast_object_list barrier gather gather_object scatter scatter_object_list new_group send recv "
        "isend irecv all_to_all all_to_all_single get_backend batch_isend_irecv monitored_barrier",
    ),
    "distributed.tensor": Room(
        kinds="DTensor DeviceMesh Placement Replicate Shard Partial",
        refused="distribute_tensor distribute_module init_device_mesh",
    ),
    "distributed.tensor.parallel": Room(
        kinds="ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput ParallelStyle",
        refused="parallelize_module",
    ),
    "distributed.device_mesh": Room(kinds="DeviceMesh", refused="init_device_mesh"),
    "distributed.fsdp": Room(
        kinds="FullyShardedDataParallel ShardingStrategy FSDPModule CPUOffload MixedPrecision",
        refused="fully_shard",
    ),
    "distributed.algorithms": Room(),
    "distributed.algorithms.join": Room(kinds="Join Joinable JoinHook"),
    "distributed.checkpoint": Room(refused="save load"),
    "distributed.distributed_c10d": Room(kinds="ProcessGroup ReduceOp Work"),
    "distributed.nn": Room(refused="all_reduce all_gather"),
    "distributed.utils": Room(),
    "distributed.elastic": Room(),
    "distributed.rpc": Room(answers={"is_available": False}),
    "nn.parallel": Room(
        kinds="DataParallel DistributedDataParallel",
        refused="data_parallel parallel_apply replicate scatter gather",
    ),
    "nn.parallel.distributed": Room(kinds="DistributedDataParallel"),
    "autograd.profiler": Room(at="profiler", contexts="emit_nvtx emit_itt"),
    "nn.parallel.scatter_gather": Room(refused="gather scatter scatter_kwargs"),
    "futures": Room(at="utils.compat.futures"),
    "multiprocessing": Room(
        kinds="Process Queue Pool",
        refused="spawn get_context set_start_method start_processes set_sharing_strategy",
    ),
    "nn.modules.utils": Room(
        at="nn.state",
        values={
            "_ntuple": lambda n, name="parse": _several(n),
            **{f"_{name}": _several(n) for n, name in enumerate(_NUMBERS, 1)},
        },
    ),
    # Attention that is given as a function
    "nn.attention": Room(at="nn.attention"),
    "nn.attention.flex_attention": Room(at="nn.flex_attention", values={"_DEFAULT_SPARSE_BLOCK_SIZE": 128}),
    "nn.attention.bias": Room(at="nn.attention", kinds="CausalBias CausalVariant"),
    # Types by their other paths
    "types": Room(
        at=".",
        values={
            "Device": Any,
            "Number": int | float | bool,
            "_dtype": dtypes.DType,
            "_device": Device,
            "_size": Sequence[int],
        },
    ),
    "_C": Room(
        values={"DispatchKey": _Keys, "DispatchKeySet": _Keys},
        idle="_log_api_usage_once",
        at="tensors.dispatch .",
    ),
    "_tensor": Room(at="tensors.tensor"),
    "_utils": Room(at="utils.compat.flat", kinds="ExceptionWrapper"),
    "_jit_internal": Room(
        same="_copy_to_script_wrapper export ignore unused _overload _overload_method",
        values={"Final": Final},
        answers={"is_scripting": False},
    ),
    "_ops": Room(kinds="OpOverload OpOverloadPacket HigherOrderOperator"),
    "storage": Room(at="tensors.portable"),
    "random": Room(at="ops.random.generator"),
    "functional": Room(at="."),
    "serialization": Room(at="utils.serialization"),
    "testing": Room(at="utils.testing"),
    "hub": Room(
        at="utils.compat.hub",
        kinds="tqdm",
        refused="load list help",
    ),
    "utils.cpp_extension": Room(
        kinds="BuildExtension CppExtension CUDAExtension", refused="load load_inline include_paths"
    ),
    "utils.data.distributed": Room(at="utils.data"),
    "utils.dlpack": Room(at=".", values={"DLDeviceType": _DLPACK}),
    "utils.model_zoo": Room(at="utils.compat.hub"),
    "utils._python_dispatch": Room(kinds="TorchDispatchMode"),
    "quantization": Room(refused="quantize_dynamic prepare convert"),
    "ao": Room(),
    "ao.quantization": Room(kinds="QuantStub DeQuantStub", refused="quantize_dynamic prepare convert"),
    "sparse": Room(refused="mm addmm softmax"),
    "nested": Room(refused="nested_tensor as_nested_tensor"),
    "package": Room(kinds="PackageImporter PackageExporter"),
    "monitor": Room(),
}
