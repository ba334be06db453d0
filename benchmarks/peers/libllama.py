"""The C interface of llama.cpp, as far as the rows of the language model need it.

Its structures change with its releases, so others than those below are refused.
"""

import ctypes
import re
from collections.abc import Callable
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int, c_int32, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .ours.forms import Unavailable

# What llama.cpp calls the backends.
BACKENDS = {"cpu": "CPU", "vulkan": "Vulkan", "cuda": "CUDA"}
# What its CUDA backend links to, each after what it needs itself.
CUDA_LIBRARIES = ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13")

# More layers than a model has.
ALL_LAYERS = 999
# Of ggml_log_level.
DEBUG = 1

LogCallback = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)


def structure(*groups: tuple[Any, str]) -> type[ctypes.Structure]:
    """A structure of C: the types of its fields in their order, each with the names of those that follow."""
    fields = [(name, kind) for kind, names in groups for name in names.split()]
    return type("Structure", (ctypes.Structure,), {"_fields_": fields})


@dataclass(frozen=True)
class Release:
    """What differs between releases of llama.cpp.

    Attributes:
        model: ``llama_model_params``.
        context: ``llama_context_params``.
    """

    model: type[ctypes.Structure]
    context: type[ctypes.Structure]


POINTERS = (c_void_p, "tensor_split progress_callback progress_callback_user_data kv_overrides")
# Of the context's, what the releases have alike.
SHARED: tuple[tuple[Any, str], ...] = (
    (c_int, "rope_scaling_type pooling_type attention_type flash_attn_type"),
    (c_float, "rope_freq_base rope_freq_scale"),
    (c_float, "yarn_ext_factor yarn_attn_factor yarn_beta_fast yarn_beta_slow"),
    (c_uint32, "yarn_orig_ctx"),
    (c_float, "defrag_thold"),
    (c_void_p, "cb_eval cb_eval_user_data"),
    (c_int, "type_k type_v"),
    (c_void_p, "abort_callback abort_callback_data"),
    (c_bool, "embeddings offload_kqv no_perf op_offload swa_full kv_unified"),
)
# By what stands in the name of the library's file.
RELEASES = {
    "b7347": Release(
        structure(
            (c_void_p, "devices tensor_buft_overrides"),
            (c_int32, "n_gpu_layers split_mode main_gpu"),
            POINTERS,
            (c_bool, "vocab_only use_mmap use_mlock check_tensors use_extra_bufts no_host"),
        ),
        structure(
            (c_uint32, "n_ctx n_batch n_ubatch n_seq_max"), (c_int32, "n_threads n_threads_batch"), *SHARED
        ),
    ),
    "v0.5.0": Release(
        structure(
            (c_void_p, "devices tensor_buft_overrides"),
            (c_int32, "n_gpu_layers split_mode load_mode lazy_mode main_gpu"),
            POINTERS,
            (c_bool, "vocab_only check_tensors use_extra_bufts no_host no_alloc load_mtp"),
        ),
        structure(
            (c_uint32, "n_ctx n_batch n_ubatch n_seq_max n_rs_seq n_outputs_max n_outputs_max_per_seq"),
            (c_int32, "n_threads n_threads_batch ctx_type"),
            *SHARED,
            (c_void_p, "samplers"),
            (c_size_t, "n_samplers"),
            (c_void_p, "ctx_other"),
        ),
    ),
}


# ``llama_batch``.
Batch = structure(
    (c_int32, "n_tokens"),
    (POINTER(c_int32), "token"),
    (c_void_p, "embd pos n_seq_id seq_id logits"),
)

# What each function returns and takes, by the library that has it; names are those of a release's structures.
LLAMA: dict[str, tuple[Any, ...]] = {
    "llama_log_set": (None, LogCallback, c_void_p),
    "llama_backend_init": (None,),
    "llama_model_default_params": ("model",),
    "llama_model_load_from_file": (c_void_p, c_char_p, "model"),
    "llama_model_free": (None, c_void_p),
    "llama_model_get_vocab": (c_void_p, c_void_p),
    "llama_vocab_n_tokens": (c_int32, c_void_p),
    "llama_context_default_params": ("context",),
    "llama_init_from_model": (c_void_p, c_void_p, "context"),
    "llama_free": (None, c_void_p),
    "llama_get_memory": (c_void_p, c_void_p),
    "llama_memory_clear": (None, c_void_p, c_bool),
    "llama_batch_get_one": (Batch, POINTER(c_int32), c_int32),
    "llama_decode": (c_int32, c_void_p, Batch),
    "llama_get_logits_ith": (c_void_p, c_void_p, c_int32),
    "llama_synchronize": (None, c_void_p),
}
GGML: dict[str, tuple[Any, ...]] = {
    "ggml_backend_load_all_from_path": (None, c_char_p),
    "ggml_backend_dev_count": (c_size_t,),
    "ggml_backend_dev_get": (c_void_p, c_size_t),
}
BASE: dict[str, tuple[Any, ...]] = {
    "ggml_backend_dev_description": (c_char_p, c_void_p),
    "ggml_backend_dev_backend_reg": (c_void_p, c_void_p),
    "ggml_backend_reg_name": (c_char_p, c_void_p),
}


def cuda_libraries() -> None:
    """Load CUDA's own libraries: those of the system, or those that came with PyTorch.

    Raises: Unavailable when neither has them.
    """
    found = find_spec("nvidia")
    places = [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    for name in CUDA_LIBRARIES:
        for path in [name, *(str(file) for place in places for file in place.glob(f"*/lib/{name}"))]:
            try:
                ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
                break
            except OSError:
                continue
        else:
            raise Unavailable(
                f"{name} is neither with the system's libraries nor in Python's package nvidia; install a "
                "PyTorch for CUDA 13, or name the folder that has it in LD_LIBRARY_PATH"
            )


@dataclass(frozen=True)
class Library:
    """llama.cpp, loaded.

    Attributes:
        release: a key of RELEASES.
        backend: a key of BACKENDS.
        folder: where its files are.
        call: its functions by name.
    """

    release: str
    backend: str
    folder: Path
    call: dict[str, Callable[..., Any]]


def load(package: Path, backend: str) -> Library:
    """Load llama.cpp and the backend.

    Args:
        package: an unpacked package with a build of llama.cpp.
        backend: a key of BACKENDS.

    Raises: Unavailable when something cannot be loaded, or the release is another one.
    """
    if backend == "cuda":
        cuda_libraries()
    found = sorted(package.glob("bins/*/libllama.*.so"))
    # libllama.BACKEND.RELEASE.so; that of the CPU alone has no name for its backend
    release = next((name for name in RELEASES if found and found[0].name.endswith(f".{name}.so")), None)
    if release is None:
        known = " and ".join(RELEASES)
        raise Unavailable(
            f"{package} has no llama.cpp of the releases {known}; remove it, to have it fetched"
        )
    folder, llama = found[0].parent, found[0].name
    try:
        # Each before those that need it, for not all say where to look.
        base, ggml, top = (
            ctypes.CDLL(str(folder / name))
            for name in ("libggml-base.so", llama.replace("libllama", "libggml"), llama)
        )
        if backend != "cpu":  # llama.cpp itself passes over a backend that cannot be loaded
            ctypes.CDLL(str(folder / f"libggml-{backend}.so"))
    except OSError as error:
        raise Unavailable(f"llama.cpp's {BACKENDS[backend]} backend cannot be loaded: {error}") from None
    structures = {"model": RELEASES[release].model, "context": RELEASES[release].context}
    call = {}
    for source, signatures in ((top, LLAMA), (ggml, GGML), (base, BASE)):
        for name, signature in signatures.items():
            returned, *taken = (structures[t] if isinstance(t, str) else t for t in signature)
            call[name] = function = getattr(source, name)
            function.restype, function.argtypes = returned, taken
    return Library(release, backend, folder, call)


def layers(log: str) -> tuple[int, int]:
    """How many of a model's layers were given to the device, and how many there are, by llama.cpp's log."""
    told = re.findall(r"offloaded (\d+)/(\d+) layers", log)
    return (int(told[-1][0]), int(told[-1][1])) if told else (0, 0)


class Model:
    """A GGUF file opened by llama.cpp on one device, with a cache of its own.

    Args:
        library: of `load`.
        file: the GGUF file.
        context: how many ids the cache holds.
        threads: of the CPU.

    Attributes:
        device: what llama.cpp says of the device.
        offloaded: how many layers it has, and how many there are.
        log: what llama.cpp said, without what is for its own developers.

    Raises: Unavailable when there is no such device, or the device did not get the whole model.
    """

    def __init__(self, library: Library, file: Path, context: int, threads: int) -> None:
        self.library, self._call = library, library.call
        self._said: list[str] = []
        self._listener = LogCallback(self._hear)  # must live as long as llama.cpp speaks
        self._call["llama_log_set"](self._listener, None)
        self._call["llama_backend_init"]()
        self._call["ggml_backend_load_all_from_path"](str(library.folder).encode())
        on_cpu = library.backend == "cpu"
        device, self.device = self._find()
        self._model = self._open(file, None if on_cpu else device)
        self.offloaded = layers(self.log)
        given, there = self.offloaded
        if not on_cpu and not 0 < there == given:
            raise Unavailable(
                f"{self.device} got {given} of {there} layers, so these would not be its times; llama.cpp "
                f"said:\n{self.log}"
            )
        self.vocabulary = self._call["llama_vocab_n_tokens"](self._call["llama_model_get_vocab"](self._model))
        self._context = self._start(context, threads)

    def _hear(self, level: int, text: bytes, _: Any) -> None:
        line = text.decode(errors="replace")
        if level != DEBUG or line.startswith("ggml_"):  # backends tell at that level what the device can do
            self._said.append(line)

    @property
    def log(self) -> str:
        return "".join(self._said)

    def _find(self) -> tuple[int, str]:
        call, backend, others = self._call, self.library.backend, []
        for i in range(call["ggml_backend_dev_count"]()):
            device = call["ggml_backend_dev_get"](i)
            name = call["ggml_backend_reg_name"](call["ggml_backend_dev_backend_reg"](device)).decode()
            description = call["ggml_backend_dev_description"](device).decode()
            if name == BACKENDS[backend]:
                return device, description
            others.append(f"{name} ({description})")
        hint = "; a software adapter needs GGML_VK_VISIBLE_DEVICES=0" if backend == "vulkan" else ""
        raise Unavailable(
            f"llama.cpp's {BACKENDS[backend]} backend found no device{hint}. It has: {', '.join(others)}"
        )

    def _open(self, file: Path, device: int | None) -> int:
        params = self._call["llama_model_default_params"]()
        # The list ends with a null; an empty one leaves all to the CPU.
        devices = (c_void_p * 2)(device, None)
        params.devices = ctypes.addressof(devices)
        params.n_gpu_layers = 0 if device is None else ALL_LAYERS
        model = self._call["llama_model_load_from_file"](str(file).encode(), params)
        if not model:
            raise Unavailable(f"llama.cpp does not open {file}; it said:\n{self.log}")
        return model

    def _start(self, context: int, threads: int) -> int:
        params = self._call["llama_context_default_params"]()
        params.n_ctx, params.n_threads, params.n_threads_batch = context, threads, threads
        started = self._call["llama_init_from_model"](self._model, params)
        if not started:
            raise Unavailable(f"llama.cpp made no context of {context} ids; it said:\n{self.log}")
        return started

    def forget(self) -> None:
        """Empty the cache."""
        self._call["llama_memory_clear"](self._call["llama_get_memory"](self._context), False)

    def next(self, ids: list[int]) -> int:
        """Put these ids behind those in the cache, in one batch, and read the logits of the last.

        Returns: the likeliest id after them.

        Raises: RuntimeError when llama.cpp fails.
        """
        held = (c_int32 * len(ids))(*ids)  # the batch has but its address
        batch = self._call["llama_batch_get_one"](held, len(ids))
        if status := self._call["llama_decode"](self._context, batch):
            raise RuntimeError(
                f"llama_decode of {len(ids)} ids returned {status}; llama.cpp said:\n{self.log}"
            )
        logits = self._call["llama_get_logits_ith"](self._context, -1)  # waits
        return int(np.frombuffer((c_float * self.vocabulary).from_address(logits), np.float32).argmax())

    def wait(self) -> None:
        """Until everything queued is done."""
        self._call["llama_synchronize"](self._context)

    def close(self) -> None:
        """Give back the memory."""
        self._call["llama_free"](self._context)
        self._call["llama_model_free"](self._model)
