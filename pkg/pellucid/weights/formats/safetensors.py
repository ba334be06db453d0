"""The safetensors format: a length, a JSON header, tensors without gaps.

Source: https://huggingface.co/docs/safetensors/index (Format), github.com/huggingface/safetensors (what its
reader refuses).
"""

from __future__ import annotations

from math import prod

from ...errors import FormatError
from ..checkpoint import MOST_DIMENSIONS, Checkpoint, TensorInfo, check_layout, check_name
from ..document import parse_object
from ..fields import shown
from ..header import Header
from ..kind import BYTES, LONGEST_HEADER, describe, is_safetensors, refuse

LONGEST_NAME = 1 << 16
_DEEPEST = 4  # levels of brackets in a header

# The format's name -> (ours, bits per element)
DTYPES = {
    "BOOL": ("bool", 8),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "U16": ("uint16", 16),
    "I16": ("int16", 16),
    "U32": ("uint32", 32),
    "I32": ("int32", 32),
    "U64": ("uint64", 64),
    "I64": ("int64", 64),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "F32": ("float32", 32),
    "F64": ("float64", 64),
    "C64": ("complex64", 64),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "F6_E2M3": ("float6_e2m3fn", 6),
    "F6_E3M2": ("float6_e3m2fn", 6),
    "F4": ("float4_e2m1fn", 4),
}


def read(header: Header):
    """Steps that open one file.

    Returns:
        A `Checkpoint`, with its tensors in the order of their bytes.

    Raises:
        FormatError: the header is not a safetensors header, or does not fit the file.
    """
    source = header.source
    header.longest = 8 + LONGEST_HEADER
    assert source.size is not None
    if source.size < 8:
        clause = describe(bytes(header.bytes[:BYTES]))
        raise FormatError(
            f"{source.name}: {clause}, and its {source.size} bytes are not even a header's length. "
            "It is of another format, or it is cut short; download it again."
        )
    yield from header.need(8, "the header's length")
    length = int.from_bytes(header.bytes[:8], "little")
    begin = bytes(header.bytes[:BYTES])
    if 8 + length > source.size and is_safetensors(begin):
        raise FormatError(
            f"{source.name}: the file is cut short: its header has {length:,} bytes, but the file only "
            f"{source.size:,}. Download it again."
        )
    if 8 + length > min(header.longest, source.size):
        refuse(source.name, begin, "a file of weights")
        raise FormatError(
            f"{source.name}: {describe(begin)}, so it is of another format or damaged: as a safetensors "
            f"header's length it begins with {length:,} bytes, but the file has {source.size:,} and a header "
            f"at most {LONGEST_HEADER:,}. Give the address of the weights themselves, or download them again."
        )
    yield from header.need(8 + length, "the header")
    text = bytes(header.bytes[8 : 8 + length])
    if text[:1] != b"{":
        raise FormatError(
            f"{source.name}: the header begins with {text[:8]!r} instead of "
            f"'{{'. This is not a safetensors file."
        )
    entries = parse_object(source.name, text, deepest=_DEEPEST, unique=True)
    header.finish(8 + length)
    metadata = entries.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FormatError(f"{source.name}: __metadata__ must map names to strings. The file is damaged.")
    tensors = [_tensor(source.name, name, entry, 8 + length) for name, entry in entries.items()]
    check_layout(source.name, tensors, 8 + length, source.size, gaps=False)
    tensors.sort(key=lambda t: (t.start, t.stop))
    return Checkpoint(source.name, "safetensors", tensors, metadata, [source])


def _tensor(where: str, name: str, entry, begin: int) -> TensorInfo:
    check_name(where, name, LONGEST_NAME)
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise FormatError(
            f"{where}: tensor {shown(name)} must have exactly dtype, shape and data_offsets. The file is "
            "damaged."
        )
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FormatError(
            f"{where}: tensor {shown(name)} has the unknown dtype {shown(dtype)}. Known are "
            f"{', '.join(DTYPES)}."
        )
    if not _counts(shape) or len(shape) > MOST_DIMENSIONS:
        raise FormatError(
            f"{where}: tensor {shown(name)} has the shape {str(shape)[:80]}; up to {MOST_DIMENSIONS} "
            "non-negative "
            "integers were expected."
        )
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise FormatError(
            f"{where}: tensor {shown(name)} has the data_offsets {str(offsets)[:80]}; two ascending "
            "non-negative "
            "integers were expected."
        )
    ours, bits = DTYPES[dtype]
    nbits, nbytes = prod(shape) * bits, offsets[1] - offsets[0]
    if nbits >= 1 << 66:
        raise FormatError(
            f"{where}: tensor {shown(name)} claims the shape {str(shape)[:80]}, more bytes than 64 bits can "
            "count. The file is damaged."
        )
    if nbits != 8 * nbytes:
        raise FormatError(
            f"{where}: tensor {shown(name)} of shape {str(shape)[:80]} and dtype {dtype} needs "
            f"{-(-nbits // 8):,} "
            "bytes "
            f"but its data_offsets give {nbytes:,}. The file is damaged."
        )
    return TensorInfo(name, tuple(shape), ours, begin + offsets[0], begin + offsets[1])


def _counts(values) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 1 << 63 for v in values)
