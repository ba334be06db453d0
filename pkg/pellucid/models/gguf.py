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
SHORT, LONG = "rope_factors_short.weight", "rope_factors_long.weight"
FACTORS = (FREQUENCIES, LONG, SHORT)
"""Tensors that are no weights: by how much positions turn slower, in texts of all lengths, or by length."""
_NUMBER = re.compile(r"\.([0-9]{1,6})\.", re.ASCII)
_BLOCK = re.compile(r"((?:enc\.|dec\.)?blk)\.([0-9]{1,6})\.([\w.]+)", re.ASCII)


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
    return (f"{found[1]}.{{}}.{found[3]}", found[2]) if found else (stem, "")


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
    passed = FACTORS if _turns(model) else ()
    return {name: attribute_path(name, names) for name in checkpoint if name not in passed}


def _turns(model: Any) -> bool:
    """Whether a model has rotary positions that a file's factors are for."""
    return getattr(getattr(model, "decoder", None), "rotary_emb", None) is not None


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
    """Steps that give a model's rotary positions the factors of a file, if it has some.

    Raises:
        WeightError: they are of another shape or type, or one of two is missing.
        FormatError: one is not above 0 and finite.
    """
    named = [name for name in FACTORS if name in checkpoint and _turns(model)]
    if not named:
        return
    infos = [_check_factors(checkpoint, name, model.config.turned) for name in named]
    raws = yield weights, "read", (checkpoint, infos), {}
    factors = {info.name: np.frombuffer(raw, np.float32) for info, raw in zip(infos, raws, strict=True)}
    for name, values in factors.items():
        if not np.all((values > 0) & np.isfinite(values)):
            raise FormatError(
                f"{checkpoint.name}: {name} has factors that are not above 0 and finite. The file is damaged."
            )
    turn_by(model, checkpoint, factors)


def turn_by(model: Any, checkpoint: Checkpoint, factors: Mapping[str, np.ndarray]) -> None:
    """Give a model's rotary positions the factors of a file, by names of tensors.

    Raises:
        WeightError: those of long texts are there without those of short ones, or the other way round.
        FormatError: the length from which on they count is missing.
    """
    rotary, metadata = model.decoder.rotary_emb, checkpoint.metadata
    if FREQUENCIES in factors:
        rotary.divide_frequencies(factors[FREQUENCIES])
    if not {LONG, SHORT} & factors.keys():
        return
    prefix = f"{metadata['general.architecture']}.rope.scaling."
    original = metadata.get(f"{prefix}original_context_length")
    if not {LONG, SHORT} <= factors.keys():
        raise WeightError(f"{checkpoint.name}: of {SHORT} and {LONG} one is missing. The file is damaged.")
    if original is None:
        raise FormatError(
            f"{checkpoint.name}: {prefix}original_context_length is missing, from which on {LONG} counts. "
            "The file is damaged."
        )
    rotary.lengthen(factors[SHORT], factors[LONG], original, metadata.get(f"{prefix}attn_factor") or 1.0)


def _check_factors(checkpoint: Checkpoint, name: str, columns: int) -> TensorInfo:
    info = checkpoint[name]
    if info.shape != (columns // 2,) or info.dtype != "float32":
        raise WeightError(
            f"{checkpoint.name}: {name} is {info.dtype} of shape {info.shape}; for heads of "
            f"{columns} columns float32 of shape ({columns // 2},) was expected. The file is damaged."
        )
    return info
