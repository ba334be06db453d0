"""GGUF: names of tensors as attribute paths, and the factors of rotary frequencies."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from .. import weights
from ..errors import FormatError, WeightError
from ..weights.checkpoint import Checkpoint, TensorInfo

_FREQUENCIES = "rope_freqs.weight"
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
    stem, _, kind = name.rpartition(".")
    found = _BLOCK.fullmatch(stem)
    number, pattern = (found[1], f"blk.{{}}.{found[2]}") if found else ("", stem)
    return f"{names[pattern].format(number)}.{kind}" if pattern in names else name


def paths(checkpoint: Checkpoint, model: Any) -> dict[str, str]:
    """The attribute path of every tensor that is a parameter, by its name in the file."""
    names = model.gguf_paths()
    return {name: attribute_path(name, names) for name in checkpoint if name != _FREQUENCIES}


def read_factors(model: Any, checkpoint: Checkpoint) -> Generator[tuple, Any, None]:
    """Steps that divide a model's rotary frequencies by the factors of a file, if it has some.

    Raises:
        WeightError: they are of another shape or type.
        FormatError: one is not above 0 and finite.
    """
    if _FREQUENCIES not in checkpoint:
        return
    info = _check_factors(checkpoint, model.config.turned)
    (raw,) = yield weights, "read", (checkpoint, [info]), {}
    factors = np.frombuffer(raw, np.float32)
    if not np.all((factors > 0) & np.isfinite(factors)):
        raise FormatError(
            f"{checkpoint.name}: {_FREQUENCIES} has factors that are not above 0 and finite. The file is "
            "damaged."
        )
    model.decoder.rotary_emb.divide_frequencies(factors)


def _check_factors(checkpoint: Checkpoint, columns: int) -> TensorInfo:
    info = checkpoint[_FREQUENCIES]
    if info.shape != (columns // 2,) or info.dtype != "float32":
        raise WeightError(
            f"{checkpoint.name}: {_FREQUENCIES} is {info.dtype} of shape {info.shape}; for heads of "
            f"{columns} columns float32 of shape ({columns // 2},) was expected. The file is damaged."
        )
    return info
