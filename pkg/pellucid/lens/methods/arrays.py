"""Matrices of published lenses and autoencoders: of safetensors, ``.npz``, or given by name."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ...errors import FormatError
from ...tensors.tensor import Tensor
from ...weights import open as open_weights
from ...weights import read as read_weights


def read_arrays(who: str, source: str | PathLike | Mapping[str, Any]) -> dict[str, np.ndarray]:
    """name -> float32 array.

    Args:
        who: reads, for messages.
        source: path of an ``.npz``, a path or an address of safetensors, or name -> array or tensor.

    Raises:
        FormatError: the file is damaged, or something in it is no array of floating-point numbers.
    """
    if isinstance(source, Mapping):
        given = {k: v.detach().cpu().numpy() if isinstance(v, Tensor) else v for k, v in source.items()}
        try:
            return {k: np.asarray(v, np.float32) for k, v in given.items()}
        except (ValueError, TypeError) as error:
            raise FormatError(f"{who}: what is given holds no numbers: {error}.") from None
    if str(source).endswith(".npz"):
        try:
            with np.load(BytesIO(Path(source).read_bytes()), allow_pickle=False) as file:
                return {k: np.asarray(v, np.float32) for k, v in file.items()}
        except (ValueError, OSError, KeyError, EOFError, BadZipFile, zlib.error) as error:
            raise FormatError(f"{who}: {source} is no .npz of numbers: {error}.") from None
    checkpoint = open_weights(str(source))
    infos = list(checkpoint.values())
    found: dict[str, np.ndarray] = {}
    for info, raw in zip(infos, read_weights(checkpoint, infos), strict=True):
        if info.dtype == "bfloat16":
            values = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif info.dtype in ("float32", "float16", "float64"):
            values = raw.view(info.dtype).astype(np.float32)
        else:
            raise FormatError(f"{who}: {info.name} is of {info.dtype}, and no floating-point numbers.")
        found[info.name] = values.reshape(info.shape)
    return found
