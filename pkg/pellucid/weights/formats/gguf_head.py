"""Writing GGUF files, version 3: metadata and descriptions of tensors, before their aligned bytes.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, BinaryIO

import numpy as np

from ...errors import ArgumentError
from ...quant.formats.blocks import GGUF_TYPES

GGUF_NUMBERS = {name: number for number, (name, _, _) in GGUF_TYPES.items()} | {"f16": 1, "bf16": 30}
"""Numbers of the types of tensors, by dtype."""
_ALIGNMENT = 32
# What general.file_type says of a file, by the type that most of its elements have.
_FILE_TYPES = {
    0: 0, 1: 1, 2: 2, 3: 3, 6: 8, 7: 9, 8: 7, 10: 10, 11: 12, 12: 15, 13: 17, 14: 18, 16: 19, 17: 20, 18: 23,
    19: 24, 20: 25, 21: 26, 22: 28, 23: 30, 29: 31, 30: 32, 34: 36, 35: 37, 39: 38, 40: 39, 41: 40,
}  # fmt: skip
# Keys that are about the file that was, which may have been one of several.
_REWRITTEN = {
    "general.alignment", "general.file_type", "general.quantization_version", "split.count", "split.no",
    "split.tensors.count",
}  # fmt: skip


def begin_gguf(
    file: BinaryIO, metadata: Mapping[str, Any], tensors: Iterable[tuple[str, tuple[int, ...], int]]
) -> None:
    """Write all that comes before the bytes of tensors.

    Args:
        file: at its beginning.
        metadata: values by key; those about the file itself are written anew.
        tensors: name, shape as PyTorch has it, and number of the type, in the order of their bytes.

    Raises:
        ArgumentError: a value has no type in the format.
    """
    rows = list(tensors)
    sizes: Counter[int] = Counter()
    for _, shape, kind in rows:
        sizes[kind] += prod(shape)
    own = {"general.alignment": _ALIGNMENT, "general.quantization_version": 2}
    if sizes and (most := sizes.most_common(1)[0][0]) in _FILE_TYPES:
        own["general.file_type"] = _FILE_TYPES[most]
    metadata = {k: v for k, v in metadata.items() if k not in _REWRITTEN} | own
    text = [b"GGUF", struct.pack("<IQQ", 3, len(rows), len(metadata))]
    text += [_string(key) + _value(value) for key, value in metadata.items()]
    at = 0
    for name, shape, kind in rows:
        _, block, block_bytes = GGUF_TYPES[kind]
        text.append(_string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1]))
        text.append(struct.pack("<IQ", kind, at))
        nbytes = prod(shape) // block * block_bytes
        at += nbytes + -nbytes % _ALIGNMENT
    pad_gguf(file, b"".join(text))


def pad_gguf(file: BinaryIO, data: Any, written: int = 0) -> None:
    """Write the last bytes of a tensor, and what fills up to where the next one begins.

    Args:
        file: after what was written before.
        data: bytes, or an array.
        written: bytes of the tensor that are in the file already.
    """
    view = np.ascontiguousarray(data).data if isinstance(data, np.ndarray) else memoryview(data)
    file.write(view)
    file.write(bytes(-(written + view.nbytes) % _ALIGNMENT))


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    """A value of a key with its type; whole numbers have 32 bits where they fit, as llama.cpp has them."""
    if isinstance(value, bytes):
        return struct.pack("<IIQ", 9, 0, len(value)) + value
    if isinstance(value, list):
        kinds = [_typed(v) for v in value]
        kind, letter = max(kinds, default=(5, "i"))
        if any(k[0] == 6 for k in kinds):
            kind, letter = 6, "f"
        elif kind == 4 and all(v < 1 << 31 for v in value):
            kind, letter = 5, "i"
        head = struct.pack("<IIQ", 9, kind, len(value))
        if kind == 8:
            return head + b"".join(map(_string, value))
        return head + struct.pack(f"<{len(value)}{letter}", *value)
    kind, letter = _typed(value)
    return struct.pack("<I", kind) + (_string(value) if kind == 8 else struct.pack(f"<{letter}", value))


def _typed(value: Any) -> tuple[int, str]:
    """The number and the struct letter of a type."""
    if isinstance(value, bool):
        return 7, "?"
    if isinstance(value, str):
        return 8, ""
    if isinstance(value, float):
        return (6, "f") if value == np.float32(value) or value != value else (12, "d")
    if isinstance(value, int):
        for kind, letter, low, high in ((4, "I", 0, 1 << 32), (5, "i", -1 << 31, 0), (10, "Q", 0, 1 << 64)):
            if low <= value < high:
                return kind, letter
        return 11, "q"
    raise ArgumentError(f"GGUF: arrays within arrays, such as {str(value)[:80]}, are not written.")
