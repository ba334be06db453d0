"""Small files of weights, made by the formats' own libraries and, for the malformed ones, byte by byte."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import gguf
import numpy as np
import safetensors.numpy


def arrays(seed: int = 0, scale: int = 1) -> dict[str, np.ndarray]:
    """Named arrays of several types, one of odd length so that later ones lie at odd addresses."""
    random = np.random.default_rng(seed)
    return {
        "a.weight": random.standard_normal((3 * scale, 5)).astype(np.float32),
        "b.half": random.standard_normal((7, scale)).astype(np.float16),
        "c.bytes": random.integers(0, 255, 13 * scale, dtype=np.uint8),
        "d.long": random.integers(-(1 << 60), 1 << 60, (2, scale)),
        "e.empty": np.zeros((0, 4), np.float32),
        "f.scalar": np.array(2.5, np.float64),
    }


def safetensors_file(tensors: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    """A file as the library writes it."""
    return safetensors.numpy.save(tensors, metadata)


def safetensors_raw(header: bytes | dict, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with any header and any claim about the header's length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: str = "F32", shape: list | None = None, offsets: list | None = None) -> dict:
    """A tensor's entry in a safetensors header: two float32 unless told otherwise."""
    return {"dtype": dtype, "shape": [2] if shape is None else shape, "data_offsets": offsets or [0, 8]}


def gguf_file(path: Path, quantized: bool = True) -> bytes:
    """A file as the library writes it: every metadata type, plain and quantized tensors."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("t.u8", 200)
    writer.add_int8("t.i8", -100)
    writer.add_uint16("t.u16", 60_000)
    writer.add_int16("t.i16", -30_000)
    writer.add_uint32("t.u32", 4_000_000_000)
    writer.add_int32("t.i32", -2_000_000_000)
    writer.add_float32("t.f32", 0.1)
    writer.add_bool("t.bool", True)
    writer.add_string("t.string", "é\n{%")
    writer.add_uint64("t.u64", 1 << 63)
    writer.add_int64("t.i64", -(1 << 62))
    writer.add_float64("t.f64", 0.1)
    writer.add_array("t.strings", ["a", "", "日本"])
    writer.add_array("t.ints", [1, -2, 3])
    writer.add_array("t.floats", [0.5, 0.25])
    writer.add_array("t.bools", [True, False, True])
    random = np.random.default_rng(0)
    writer.add_tensor("plain", random.standard_normal((3, 4, 5)).astype(np.float32))
    writer.add_tensor("half", random.standard_normal((2, 6)).astype(np.float16))
    writer.add_tensor("bytes", random.integers(-100, 100, 9).astype(np.int8))
    if quantized:
        for kind in (gguf.GGMLQuantizationType.Q4_1, gguf.GGMLQuantizationType.Q8_0):
            blocks = gguf.quants.quantize(random.standard_normal((4, 64)).astype(np.float32), kind)
            writer.add_tensor(f"quantized.{kind.name}", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def gguf_string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def gguf_pair(key: bytes, kind: int, value: bytes) -> bytes:
    return gguf_string(key) + struct.pack("<I", kind) + value


def gguf_tensor(
    name: bytes = b"x", dims: tuple[int, ...] = (8,), kind: int = 0, offset: int = 0, rank=None
) -> bytes:
    rank = len(dims) if rank is None else rank
    return gguf_string(name) + struct.pack(f"<I{len(dims)}QIQ", rank, *dims, kind, offset)


def gguf_raw(
    pairs: list[bytes] = (),  # type: ignore[assignment]
    tensors: list[bytes] = (),  # type: ignore[assignment]
    data: bytes = bytes(64),
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    tensor_count: int | None = None,
    pair_count: int | None = None,
    order: str = "<",
) -> bytes:
    """A file of any parts and any claims about their number."""
    counts = (
        len(tensors) if tensor_count is None else tensor_count,
        len(pairs) if pair_count is None else pair_count,
    )
    head = magic + struct.pack(f"{order}IQQ", version, *counts) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data
