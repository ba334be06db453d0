"""Names that PyTorch has and Pellucid has not: an error that says so, at the attribute."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

# What to use instead, by PyTorch's name or by the module that it is in; the longest beginning counts.
INSTEAD = {
    "torch": "the ops of docs/reference.md",
    "torch.Tensor": "the methods of docs/reference.md",
    "torch.Tensor.storage": "untyped_storage()",
    "torch.Tensor.to_sparse": "dense tensors",
    "torch.eig": "torch.linalg.eig",
    "torch.lstsq": "torch.linalg.lstsq",
    "torch.masked": "torch.where, and reductions of what masked_fill gives",
    "torch.matrix_rank": "torch.linalg.matrix_rank",
    "torch.solve": "torch.linalg.solve",
    "torch.symeig": "torch.linalg.eigh",
    "torch.accelerator": "the device 'webgpu'",
    "torch.autograd.profiler": "torch.profiler",
    "torch.backends": "the device 'webgpu', whose settings are those of pellucid.webgpu",
    "torch.compiler": "torch.compile",
    "torch.cuda": "the device 'webgpu'; torch.cuda.is_available() is False",
    "torch.hub": "torch.hub.load_state_dict_from_url, and classes of models that are installed",
    "torch.library": "torch.library.custom_op",
    "torch.monitor": "torch.profiler",
    "torch.mps": "the device 'webgpu'; torch.backends.mps.is_available() is False",
    "torch.mtia": "the device 'webgpu'; torch.mtia.is_available() is False",
    "torch.multiprocessing": "one process",
    "torch.nn.attention": "torch.nn.functional.scaled_dot_product_attention",
    "torch.optim": "the classes of torch.optim",
    "torch.package": "torch.save, and packages of Python",
    "torch.profiler": "torch.profiler.profile",
    "torch.quantization": "weights of pellucid.quant",
    "torch.serialization": "torch.save and torch.load",
    "torch.utils": "what docs/compat.md says",
    "torch.utils.benchmark": "torch.utils.benchmark.Timer",
    "torch.utils.data": "torch.utils.data.Dataset and DataLoader",
    "torch.utils.flop_counter": "torch.profiler.profile, which counts the work of kernels",
    "torch.xpu": "the device 'webgpu'; torch.xpu.is_available() is False",
    "torch.sparse": "dense tensors",
    "torch.sparse_coo_tensor": "dense tensors",
    "torch.quantize": "weights of pellucid.quant",
    "torch.quantized": "weights of pellucid.quant",
    "torch.jit": "torch.compile, which replays what it has seen",
    "torch.fx": "pellucid.ops.aten, which runs a graph of ATen's operators",
    "torch.onnx": "torch.onnx.load for files that PyTorch wrote, and safetensors to write",
    "torch._dynamo.explain": "explain() of what torch.compile returns",
    "torch.distributed": "one process",
    "torch.nn.parallel": "the module itself, on one device",
    "torch.nested": "padded tensors with a mask",
    "torch.export": "torch.export.load for programs that PyTorch exported",
}


@cache
def public() -> dict[str, frozenset[str]]:
    """PyTorch's public names by place, such as "torch.linalg"; `scripts/pytorch_names` writes the list."""
    text = Path(__file__).with_name("pytorch_names.txt").read_text(encoding="utf-8")
    rows = (line.split(": ") for line in text.splitlines())
    return {place: frozenset(names.split(" ")) for place, names in rows}


def advice(name: str) -> str:
    """What to use instead of a name of PyTorch, as a sentence."""
    module, _, last = name.rpartition(".")
    if module == "torch" and last in public()["torch.nn.functional"]:
        return f"Use torch.nn.functional.{last}."
    known = [place for place in INSTEAD if name == place or name.startswith((f"{place}.", f"{place}_"))]
    return f"Use {INSTEAD[max(known, key=len)]}." if known else ""


def message(name: str) -> str:
    """What errors say of a name of PyTorch that is missing here."""
    return f"{name}: PyTorch has this, Pellucid does not yet. {advice(name)}".rstrip()


def refuse(place: str, name: str, have: Iterable[str]) -> NoReturn:
    """Raise the error for an attribute that is not there.

    Args:
        place: PyTorch's name of the module or class, such as "torch.linalg".
        name: the attribute.
        have: what exists, for a guess at what was meant.

    Raises:
        AttributeError: always.
    """
    if not name.startswith("_"):
        package, _, last = place.rpartition(".")
        # Modules with a function of their name, such as torch.optim.adamw, are known by it.
        is_own = name == last and name in public().get(f"modules of {package}", ())
        if is_own or name in public().get(place, ()):
            raise AttributeError(message(f"{place}.{name}"), name=name)
        if near := get_close_matches(name, [n for n in have if not n.startswith("_")], 1, 0.8):
            raise AttributeError(f"{place} has no attribute {name!r}. Did you mean {near[0]!r}?", name=name)
    raise AttributeError(f"{place} has no attribute {name!r}", name=name)


def refuse_others(place: str, names: dict[str, Any]) -> None:
    """Let a module refuse what it lacks.

    Args:
        place: PyTorch's name of the module.
        names: the module's ``globals()``.
    """
    names["__getattr__"] = lambda name: refuse(place, name, names)


class Absent:
    """A method of PyTorch's Tensor that is missing here: to read it is the error.

    The class holds one for each such name. A ``__getattr__`` of the class would say the same, and make every
    attribute of every tensor slower to read: CPython does not specialize the reads of such a class.
    """

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(message(f"torch.Tensor.{self.name}"), name=self.name, obj=instance)


def refuse_methods(cls: type) -> None:
    """Let Tensor refuse the methods of PyTorch that it lacks."""
    for name in public()["torch.Tensor"]:
        if not hasattr(cls, name):
            setattr(cls, name, Absent(name))
