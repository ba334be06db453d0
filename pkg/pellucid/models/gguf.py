"""GGUF: names of tensors as attribute paths, and the factors of rotary frequencies."""

from __future__ import annotations

import re
import struct
from collections.abc import Generator, Mapping
from math import prod
from typing import Any

import numpy as np

from .. import weights
from ..errors import FormatError, WeightError
from ..weights.checkpoint import Checkpoint, TensorInfo

_PLAIN = ("float32", "float16", "bfloat16")
FREQUENCIES = "rope_freqs.weight"
_NUMBER = re.compile(r"\.([0-9]{1,6})\.", re.ASCII)
_BLOCK = re.compile(r"blk\.([0-9]{1,6})\.([\w.]+)", re.ASCII)


def attribute_path(name: str, names: Mapping[str, str]) -> str:
    """The attribute path of a tensor; a name that ``names`` does not have stays as it is, to be reported.

    Args:
        name: in the file.
        names: a model's ``gguf_paths()``.

    Example:
        >>> attribute_path("blk.3.attn_q.weight", {"blk.{}.attn_q": "model.layers.{}.self_attn.q_proj"})
        'model.layers.3.self_attn.q_proj.weight'
    """
    # Some are called by their whole names: a rate has no .weight.
    whole, number = _pattern(name)
    if whole in names:
        return names[whole].format(number)
    stem, _, kind = name.rpartition(".")
    pattern, number = _pattern(stem)
    return f"{names[pattern].format(number)}.{kind}" if pattern in names else name


def _pattern(stem: str) -> tuple[str, str]:
    """A name with ``{}`` in the place of its layer's number, and the number."""
    found = _BLOCK.fullmatch(stem)
    return (f"blk.{{}}.{found[2]}", found[1]) if found else (stem, "")


def gguf_name(path: str, names: Mapping[str, str]) -> str | None:
    """The name in a GGUF of an attribute path, which `attribute_path` reads; None where there is none.

    Args:
        path: of a parameter.
        names: a model's ``gguf_paths()``.

    Example:
        >>> names = {"blk.{}.attn_q": "model.layers.{}.self_attn.q_proj"}
        >>> gguf_name("model.layers.3.self_attn.q_proj.bias", names)
        'blk.3.attn_q.bias'
    """
    found = _NUMBER.search(path)
    number = found[1] if found else ""
    pattern = _NUMBER.sub(".{}.", path, count=1)
    known = {place: name for name, place in names.items()}
    if pattern in known:
        return known[pattern].format(number)
    stem, _, kind = pattern.rpartition(".")
    return f"{known[stem].format(number)}.{kind}" if stem in known else None


def kind(checkpoint: Checkpoint) -> Any:
    """As what a GGUF's model is registered: its architecture, of Llama also whether it has experts.

    Args:
        checkpoint: a GGUF.
    """
    name, count = (checkpoint.metadata.get(k) for k in ("general.architecture", "llama.expert_count"))
    return f"{name} with experts" if name == "llama" and isinstance(count, int) and count > 0 else name


def head(checkpoint: Checkpoint) -> bytes:
    """A GGUF with a checkpoint's keys and no tensor."""
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(checkpoint.metadata)) + checkpoint.pairs


def paths(checkpoint: Checkpoint, model: Any) -> dict[str, str]:
    """The attribute path of every tensor that is a parameter, by its name in the file."""
    names = model.gguf_paths()
    return {name: attribute_path(name, names) for name in checkpoint if name != FREQUENCIES}


def reshaped(checkpoint: Checkpoint, names: Mapping[str, str], model: Any) -> Checkpoint:
    """The checkpoint with the shapes of the model's tensors: a GGUF leaves out axes of one element, or adds
    them, and has vectors by groups.

    Args:
        checkpoint: a GGUF.
        names: attribute paths by its names.
        model: whose parameters these are.
    """
    wanted = {path: tuple(p.shape) for path, p in model.named_parameters()}

    def fitted(info: TensorInfo) -> TensorInfo:
        shape = wanted.get(names.get(info.name, ""), info.shape)
        same = [n for n in shape if n != 1] == [n for n in info.shape if n != 1]
        if info.dtype not in _PLAIN or not (same or (len(shape) == 1 and prod(info.shape) == shape[0])):
            return info
        return info._replace(shape=shape)

    tensors = [fitted(info) for info in checkpoint.values()]
    name, form, metadata = checkpoint.name, checkpoint.format, checkpoint.metadata
    return Checkpoint(name, form, tensors, metadata, checkpoint.shards, checkpoint.pairs)


def read_factors(model: Any, checkpoint: Checkpoint) -> Generator[tuple, Any, None]:
    """Steps that divide a model's rotary frequencies by the factors of a file, if it has some.

    Raises:
        WeightError: they are of another shape or type.
        FormatError: one is not above 0 and finite.
    """
    if FREQUENCIES not in checkpoint:
        return
    info = _check_factors(checkpoint, model.config.turned)
    (raw,) = yield weights, "read", (checkpoint, [info]), {}
    factors = np.frombuffer(raw, np.float32)
    if not np.all((factors > 0) & np.isfinite(factors)):
        raise FormatError(
            f"{checkpoint.name}: {FREQUENCIES} has factors that are not above 0 and finite. The file is "
            "damaged."
        )
    model.decoder.rotary_emb.divide_frequencies(factors)


def _check_factors(checkpoint: Checkpoint, columns: int) -> TensorInfo:
    info = checkpoint[FREQUENCIES]
    if info.shape != (columns // 2,) or info.dtype != "float32":
        raise WeightError(
            f"{checkpoint.name}: {FREQUENCIES} is {info.dtype} of shape {info.shape}; for heads of "
            f"{columns} columns float32 of shape ({columns // 2},) was expected. The file is damaged."
        )
    return info
