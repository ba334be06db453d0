"""Translates calls of PyTorch to calls of ours: tensors, dtypes, functions and what Python wraps them in."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np
import torch

import pellucid


class MissingName(Exception):
    """A public name of PyTorch that is not there."""


def _seeded(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """The test suite's call of what draws random numbers."""
    pellucid.manual_seed(42)
    return op(*args, **kwargs)


# Functions of the test suite that would reach into PyTorch's own state.
OWN = {"wrapper_set_seed": _seeded}


def dtype_of(d: torch.dtype) -> Any:
    """Our dtype of that name."""
    name = str(d).removeprefix("torch.")
    found = getattr(pellucid, "bool_" if name == "bool" else name, None)
    if found is None:
        raise MissingName(f"dtype {name}")
    return found


def tensor(t: torch.Tensor) -> pellucid.Tensor:
    """The tensor with its strides; it requires grad where PyTorch's does."""
    plain = t.detach().resolve_conj().resolve_neg()
    if t.layout is not torch.strided or plain.is_quantized:
        raise MissingName(f"tensors of layout {t.layout}")
    if t.device.type == "meta":
        made = pellucid.empty(tuple(t.shape), dtype=dtype_of(t.dtype), device="meta")
        return made.requires_grad_() if t.requires_grad else made
    if t.dim() > 64:  # more axes than numpy has
        made = tensor(plain.reshape(-1)).reshape(tuple(t.shape))
        return made.requires_grad_() if t.requires_grad else made
    held, stored = plain, plain.untyped_storage().nbytes() // plain.itemsize
    if plain.numel() and (stored > plain.numel() or not plain.is_contiguous()):
        held = plain.as_strided((stored,), (1,), 0)
    wide = held.float() if held.dtype is torch.bfloat16 else held
    made = pellucid.tensor(np.array(wide.numpy()), dtype=dtype_of(wide.dtype)).to(dtype_of(held.dtype))
    if held is not plain:
        made = made.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
    return made.requires_grad_() if t.requires_grad else made


def array(t: Any) -> np.ndarray:
    """The elements of a tensor of either library; bfloat16 as float32."""
    t = t.detach()
    if isinstance(t, torch.Tensor):
        t = (t.clone() if t._is_zerotensor() else t).resolve_conj().resolve_neg()
    return (t.float() if str(t.dtype).endswith("bfloat16") else t).numpy()


def value(v: Any) -> Any:
    """An argument."""
    if isinstance(v, torch.nn.Parameter):
        return pellucid.nn.Parameter(tensor(v.detach()), v.requires_grad)
    if isinstance(v, torch.Tensor):
        return tensor(v)
    if isinstance(v, torch.dtype):
        return dtype_of(v)
    if isinstance(v, torch.device):
        return pellucid.get_default_device()
    if isinstance(v, torch.Size):
        return tuple(v)
    if isinstance(v, (torch.memory_format, torch.layout)):
        return named(str(v).removeprefix("torch."))
    if isinstance(v, (list, tuple)):
        once = {id(x): value(x) for x in v}  # one tensor in two places is one tensor
        made = [once[id(x)] for x in v]
        return type(v)(*made) if hasattr(v, "_fields") else type(v)(made)
    if isinstance(v, dict):
        return {k: value(x) for k, x in v.items()}
    if isinstance(v, torch.nn.LinearCrossEntropyOptions):
        return pellucid.nn.LinearCrossEntropyOptions(**value(dataclasses.asdict(v)))
    if isinstance(v, torch.nn.TransformerEncoderLayer):
        return _encoder_layer(v)
    if isinstance(v, torch.nn.PairwiseDistance):
        return pellucid.nn.PairwiseDistance(v.norm, v.eps, v.keepdim)
    return function(v) if callable(v) else v


def _encoder_layer(v: torch.nn.TransformerEncoderLayer) -> Any:
    """A layer that is an argument of a stack."""
    heads = v.self_attn
    made = pellucid.nn.TransformerEncoderLayer(
        heads.embed_dim,
        heads.num_heads,
        v.linear1.out_features,
        v.dropout.p,
        function(v.activation),
        v.norm1.eps,
        heads.batch_first,
        v.norm_first,
        v.linear1.bias is not None,
    )
    made.load_state_dict(value(dict(v.state_dict())))
    return made.train(v.training)


def named(path: str) -> Any:
    """What we have under a name below `torch`."""
    found: Any = pellucid
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise MissingName(path) from None
    return found


@functools.cache
def _paths() -> dict[int, str]:
    """The public paths of PyTorch's functions, by identity."""
    places = {"": torch, "Tensor.": torch.Tensor}
    names = "nn.functional linalg fft special signal.windows nn.utils.rnn"
    places |= {f"{n}.": functools.reduce(getattr, n.split("."), torch) for n in names.split()}
    return {id(f): p + n for p, place in places.items() for n, f in vars(place).items() if callable(f)}


def path_of(f: Any) -> str | None:
    """The public name below `torch` of one of its functions or methods; None for others."""
    if isinstance(f, (MethodDescriptorType, WrapperDescriptorType)) and f.__objclass__ is not object:
        return f"Tensor.{f.__name__}"
    if isinstance(f, (BuiltinFunctionType, FunctionType)) and (f.__module__ or "") in ("torch", "torch._C"):
        return _paths().get(id(f), f.__name__)
    return _paths().get(id(f))


def function(f: Any) -> Any:
    """Our function of that name; one of PyTorch's test suite becomes the same text over our names."""
    if isinstance(f, functools.partial):
        return functools.partial(function(f.func), *value(f.args), **value(f.keywords))
    if f is torch:
        return pellucid
    if isinstance(f, ModuleType):
        return named(f.__name__.removeprefix("torch.")) if f.__name__.startswith("torch.") else f
    if getattr(f, "__name__", "") in OWN:
        return OWN[f.__name__]
    path = path_of(f)
    if path is not None:
        return named(path)
    if isinstance(f, FunctionType) and (f.__module__ or "").startswith("torch."):
        return _rebuilt(f)
    return f


def _rebuilt(f: FunctionType) -> Callable:
    """A Python function whose globals and closure name ours."""
    names = set(f.__code__.co_names)
    for constant in f.__code__.co_consts:  # functions within it
        names |= set(getattr(constant, "co_names", ()))
    scope = {"__builtins__": __builtins__, "__name__": f.__module__}
    for name in names & f.__globals__.keys():
        found = f.__globals__[name]
        scope[name] = function(found) if callable(found) or isinstance(found, ModuleType) else value(found)
    closure = f.__closure__ and tuple(CellType(value(cell.cell_contents)) for cell in f.__closure__)
    made = FunctionType(f.__code__, scope, f.__name__, value(f.__defaults__), closure)
    made.__kwdefaults__ = value(f.__kwdefaults__)
    return made
