"""Writing safetensors files, which every library of the field reads.

Source: https://huggingface.co/docs/safetensors/index (Format)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError
from .safetensors import DTYPES

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_NAMES = {ours: name for name, (ours, _) in DTYPES.items()}


def element_bytes(t: Tensor) -> bytes:
    """The elements of a tensor in row-major order, as files have them. Waits for the device."""
    array = t.detach().numpy()
    if t.dtype.name == "bfloat16":  # numpy has it as float32
        array = (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16)
    return array.tobytes()


def save_file(
    tensors: Mapping[str, Tensor], filename: str | PathLike, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors by name to a safetensors file. Waits for the device.

    Args:
        tensors: such as a ``state_dict()``. Tensors that share memory are written once each.
        filename: where to.
        metadata: texts by name, kept in the file's header.

    Raises:
        ArgumentError: it holds something else than tensors, or a dtype that the format has no name for.

    Source: https://huggingface.co/docs/safetensors/api/torch#safetensors.torch.save_file

    Example:
        >>> import os, tempfile
        >>> import pellucid as torch
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> torch.weights.save_file({"weight": torch.ones(2, device="cpu")}, path)
        >>> list(torch.weights.open(path))
        ['weight']
    """
    header: dict[str, object] = {}
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ArgumentError("save_file: metadata must be texts by name.")
        header["__metadata__"] = dict(metadata)
    for name, t in tensors.items():
        if not isinstance(name, str) or not hasattr(t, "_meta") or t.dtype.name not in _NAMES:
            what = getattr(t, "dtype", type(t).__name__)
            raise ArgumentError(
                f"save_file: {name!r} is {what}. Give tensors by name; .dequantize() quantized ones."
            )
    # The widest elements first, so that all lie at multiples of their size.
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    end = 0
    for name in order:
        t = tensors[name]
        begin, end = end, end + t.numel() * t.itemsize
        header[name] = {"dtype": _NAMES[t.dtype.name], "shape": list(t.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with Path(filename).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(element_bytes(tensors[name]))
