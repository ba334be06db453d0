"""Matrices of published lenses and autoencoders: of safetensors, ``.npz``, or given by name."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from ... import weights
from ...errors import FormatError
from ...tensors.tensor import Tensor


def read_arrays(who: str, source: Any) -> Generator[tuple, Any, dict[str, np.ndarray]]:
    """Steps of reading name -> float32 array.

    Args:
        who: reads, for messages.
        source: path or address of an ``.npz`` or of safetensors, a File, or name -> array or tensor.

    Raises:
        FormatError: the file is damaged, or something in it is no array of floating-point numbers.
    """
    if isinstance(source, Mapping):
        given = {k: v.detach().cpu().numpy() if isinstance(v, Tensor) else v for k, v in source.items()}
        try:
            return {k: np.asarray(v, np.float32) for k, v in given.items()}
        except (ValueError, TypeError) as error:
            raise FormatError(f"{who}: what is given holds no numbers: {error}.") from None
    checkpoint = yield weights, "open", (source,), {}
    try:
        infos = list(checkpoint.values())
        for info in infos:
            if info.dtype not in ("bfloat16", "float32", "float16", "float64"):
                raise FormatError(f"{who}: {info.name} is of {info.dtype}, and no floating-point numbers.")
        raws = yield weights, "read", (checkpoint, infos), {}
    finally:
        checkpoint.close()
    return {info.name: _float32(raw, info) for info, raw in zip(infos, raws, strict=True)}


def _float32(raw: np.ndarray, info: weights.TensorInfo) -> np.ndarray:
    if info.dtype == "bfloat16":
        values = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        values = raw.view(info.dtype).astype(np.float32)
    return values.reshape(info.shape)
