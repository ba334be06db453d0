"""Writing safetensors files, which every library reads, and quantizing a checkpoint into a new one.

Source: https://huggingface.co/docs/safetensors/index (Format), and the package ``gguf``
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import count
from os import PathLike, getpid
from pathlib import Path
from stat import S_IMODE
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ..device.steps import later, now
from ..errors import ArgumentError, DTypeError
from ..quant.encoding import ENCODERS, encode_blocks
from ..quant.format import BLOCK_FORMATS, BlockFormat
from . import folder, load
from .checkpoint import Checkpoint, TensorInfo
from .folder import Folder
from .formats.gguf_head import GGUF_NUMBERS, begin_gguf, pad_gguf
from .formats.safetensors import DTYPES

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_NAMES = {ours: name for name, (ours, _) in DTYPES.items()}
_FLOATS = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}
_TEXTS = (
    "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "tokenizer.model", "chat_template.jinja",
)  # fmt: skip

_Steps = Generator[tuple, Any, None]


def element_bytes(t: Tensor) -> bytes:
    """The elements of a tensor in row-major order, as files have them. Waits for the device."""
    array = t.detach().numpy()
    if t.dtype.name == "bfloat16":  # numpy has it as float32
        array = (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16)
    return array.tobytes()


@contextmanager
def replacing(filename: str | PathLike) -> Iterator[BinaryIO]:
    """A file to write beside its place, which goes there when it is whole.

    What was there stays what it was for those who read it or have it in memory (mmap), and stays there if
    writing fails. A link goes on to lead to the file; a pipe or a device is written as it is.

    Args:
        filename: where to.
    """
    path = Path(filename).resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    part = path.with_name(f"{path.name}.{getpid()}-{next(_turns)}.part")
    try:
        with part.open("xb") as file:
            yield file
        if path.exists():
            part.chmod(S_IMODE(path.stat().st_mode))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


_turns = count()


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
    save_tensors(tensors, filename, tensors.__getitem__, metadata)


def save_tensors(
    kinds: Mapping[str, Tensor],
    filename: str | PathLike,
    read: Callable[[str], Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a safetensors file whose tensors are asked for one at a time.

    Args:
        kinds: tensors of the same names, shapes and dtypes, of any device.
        filename: where to.
        read: gives a tensor.
        metadata: as in `save_file`.
    """
    head, order = _header("save_file", kinds, metadata)
    with replacing(filename) as file:
        file.write(head)
        for name in order:
            file.write(element_bytes(read(name)))


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with tensors by name. Waits for the device.

    Args:
        tensors: as in `save_file`.
        metadata: texts by name, kept in the file's header.

    Raises:
        ArgumentError: as in `save_file`.

    Source: https://huggingface.co/docs/safetensors/api/torch#safetensors.torch.save

    Example:
        >>> import pellucid as torch
        >>> len(torch.weights.save({"weight": torch.ones(2, device="cpu")}))
        80
    """
    head, order = _header("save", tensors, metadata)
    return b"".join([head, *(element_bytes(tensors[name]) for name in order)])


def _header(
    where: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None
) -> tuple[bytes, list[str]]:
    """The beginning of a file, and in which order tensors follow."""
    header: dict[str, object] = {}
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ArgumentError(f"{where}: metadata must be texts by name.")
        header["__metadata__"] = dict(metadata)
    for name, t in tensors.items():
        if not isinstance(name, str) or not hasattr(t, "_meta") or t.dtype.name not in _NAMES:
            what = getattr(t, "dtype", type(t).__name__)
            raise ArgumentError(
                f"{where}: {name!r} is {what}. Give tensors by name; .dequantize() quantized ones."
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
    return len(text).to_bytes(8, "little") + text, order


# Quantizing


def quantize(
    source: Any, target: str | PathLike, format: str | Mapping[str, str | None], **where: Any
) -> dict[str, str]:
    """Encode the float matrices of a checkpoint and write a new one, one tensor in memory at a time.

    A GGUF becomes a GGUF with the same keys, but for ``general.file_type``. Safetensors become safetensors,
    and ``config.json`` says ``"quant_method": "pellucid"``: each weight is the planes of its format. Tensors
    that are no matrix called ``weight``, are no floats, or have columns that are no whole blocks stay.

    The target is complete or not there: a source that ends early, or a full disk, leaves what was there.

    Args:
        source: as in `find`.
        target: a file that ends in ``.gguf`` or ``.safetensors``, or a folder, into which the texts of the
            source's go, too.
        format: a name of `pellucid.quant.ENCODERS`, or names by patterns such as ``"*embed*"``, of which the
            first that matches a tensor's name counts; None keeps what it has.
        where: ``revision``, ``filename``, ``token``, ``endpoint``, as in `open`.

    Returns:
        The format of each tensor that was encoded, by name.

    Raises:
        ArgumentError: no tensor is to be encoded, the target is of another kind than the source or a folder
            that is not empty, the source is quantized by a method of its own, or a value is not finite.
        DTypeError: there is no encoder of that name.
        FormatError, SourceError: the source cannot be read.

    Example:
        >>> import os, tempfile
        >>> import pellucid as torch
        >>> folder = tempfile.mkdtemp()
        >>> path, small = os.path.join(folder, "a.safetensors"), os.path.join(folder, "b.safetensors")
        >>> torch.weights.save_file({"up.weight": torch.ones(2, 64, device="cpu")}, path)
        >>> torch.weights.quantize(path, small, "q4_0")
        {'up.weight': 'q4_0'}
        >>> list(torch.weights.open(small))
        ['up.q4_0_quants', 'up.q4_0_scales']
    """
    return now(_quantized(source, Path(target), format, where))


async def quantize_async(
    source: Any, target: str | PathLike, format: str | Mapping[str, str | None], **where: Any
) -> dict[str, str]:
    """`quantize` for a caller that must not block."""
    return await later(_quantized(source, Path(target), format, where))


def _quantized(
    source: Any, target: Path, format: str | Mapping[str, str | None], where: dict[str, Any]
) -> Generator[tuple, Any, dict[str, str]]:
    opened: Folder = yield folder, "open_folder", (source,), where
    checkpoint, config = opened.checkpoint, opened.config
    try:
        is_gguf, is_folder = checkpoint.format == "gguf", target.suffix not in (".gguf", ".safetensors")
        if is_gguf != (target.suffix == ".gguf"):
            raise ArgumentError(
                f"quantize: {opened.name} is {checkpoint.format}, and {target.name} would be something else. "
                "A GGUF becomes a file that ends in .gguf, safetensors one in .safetensors or a folder."
            )
        if config is not None and config.get("quantization_config"):
            raise ArgumentError(
                f"quantize: {opened.name} is quantized already. Give the checkpoint in floats."
            )
        if is_folder and target.exists() and any(target.iterdir()):
            raise ArgumentError(f"quantize: {target} is there, and not empty. Give another folder.")
        chosen = _chosen(checkpoint, {"*": format} if isinstance(format, str) else format)
        if is_folder:
            target.mkdir(parents=True, exist_ok=True)
        write = _write_gguf if is_gguf else _write_safetensors
        with replacing(target / "model.safetensors" if is_folder else target) as file:
            yield from write(file, checkpoint, chosen)
        if is_folder and config is not None:
            written = {**config, "quantization_config": {"quant_method": "pellucid"}}
            (target / "config.json").write_text(json.dumps(written, indent=2))
            for name in _TEXTS:
                text = yield opened, "read", (name,), {}
                if text is not None:
                    (target / name).write_bytes(text)
        return {name: fmt.name for name, fmt in chosen.items()}
    finally:
        checkpoint.close()


def _tensor(checkpoint: Checkpoint, info: TensorInfo) -> Generator[tuple, Any, np.ndarray]:
    """Steps that give the bytes of one tensor."""
    return (yield load, "read", (checkpoint, [info]), {})[0]


def _chosen(checkpoint: Checkpoint, formats: Mapping[str, str | None]) -> dict[str, BlockFormat]:
    """The format of each tensor that is encoded."""
    for name in formats.values():
        if name is not None and name not in ENCODERS:
            raise DTypeError(f"floats are not encoded to {name!r}. There are {', '.join(ENCODERS)}.")
    found = {}
    for name, info in checkpoint.items():
        format = next((f for pattern, f in formats.items() if fnmatchcase(name, pattern)), None)
        if format is None or info.dtype not in _FLOATS or len(info.shape) != 2:
            continue
        fmt = BLOCK_FORMATS[format]
        if name.endswith(".weight") and info.shape[1] % fmt.block == 0 and info.numel:
            found[name] = fmt
    if not found:
        raise ArgumentError(
            f"quantize: {checkpoint.name} has no matrix of floats whose name and columns fit {dict(formats)}."
        )
    return found


def _encoded(info: TensorInfo, raw: np.ndarray, fmt: BlockFormat) -> np.ndarray:
    values = raw.view(_FLOATS[info.dtype])
    if info.dtype == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return encode_blocks(values.reshape(info.shape).astype(np.float32, copy=False), fmt.name)


# Safetensors


def _parts(info: TensorInfo, fmt: BlockFormat | None) -> list[tuple[str, str, list[int], int]]:
    """What a tensor is in the new file: names, dtypes, shapes, bytes."""
    if fmt is None or fmt.block == 1:
        dtype = info.dtype if fmt is None else {"f16": "float16", "bf16": "bfloat16"}[fmt.name]
        nbytes = info.nbytes if fmt is None else 2 * info.numel
        return [(info.name, _NAMES[dtype], list(info.shape), nbytes)]
    rows, units = info.shape[0], fmt.units(info.shape[1])
    layer = info.name.removesuffix(".weight")
    sizes = [(plane.name, plane.row_bytes(units)) for plane in fmt.planes]
    return [(f"{layer}.{fmt.name}_{name}", "U8", [rows, size], rows * size) for name, size in sizes]


def _write_safetensors(file: BinaryIO, checkpoint: Checkpoint, chosen: Mapping[str, BlockFormat]) -> _Steps:
    metadata = {k: v for k, v in checkpoint.metadata.items() if isinstance(v, str)}
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    # The widest elements first, so that all lie at multiples of their size.
    order = sorted(checkpoint.values(), key=lambda t: (t.name in chosen, -t.nbytes // max(t.numel, 1)))
    for info in order:
        for name, dtype, shape, nbytes in _parts(info, chosen.get(info.name)):
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + nbytes]}
            at += nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for info in order:
        raw, fmt = (yield from _tensor(checkpoint, info)), chosen.get(info.name)
        if fmt is None:
            file.write(raw.data)
        else:
            blocks = _encoded(info, raw, fmt)
            for plane in [blocks] if fmt.block == 1 else fmt.split(blocks.reshape(-1, fmt.block_bytes)):
                file.write(np.ascontiguousarray(plane).data)


# GGUF


def _write_gguf(file: BinaryIO, checkpoint: Checkpoint, chosen: Mapping[str, BlockFormat]) -> _Steps:
    kinds = {t.name: chosen[t.name].name if t.name in chosen else t.dtype for t in checkpoint.values()}
    rows = [(t.name, t.shape, GGUF_NUMBERS[kinds[t.name]]) for t in checkpoint.values()]
    begin_gguf(file, checkpoint.metadata, rows)
    for info in checkpoint.values():
        raw, fmt = (yield from _tensor(checkpoint, info)), chosen.get(info.name)
        pad_gguf(file, raw if fmt is None else _encoded(info, raw, fmt))
