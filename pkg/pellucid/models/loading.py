"""Weights from a checkpoint into a model: streamed to the device, repacked there, each byte fetched once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import prod
from typing import Any

from .. import weights
from ..device import device as Device
from ..device.stream import Storage, stream
from ..errors import DeviceError, DTypeError, OutOfMemoryError, WeightError
from ..nn.ao.quantization import quantize_input
from ..nn.parameter import Parameter
from ..op.kernel.element_types import physical
from ..quant.format import FORMATS
from ..quant.rows import RowStorage
from ..quant.weight import dequantize, largest_buffer
from ..tensors import dtypes as dt
from ..tensors.dtypes import DType
from ..tensors.meta import meta
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint, TensorInfo
from .parameters import as_matrix, elements, joined, kept_format, packed, plain_tensors, unpacked
from .stored import StoredWeight

# Raw bytes that are on the device at once, beside the weights made of them.
_BATCH = 96 << 20


@dataclass(frozen=True)
class LoadOptions:
    """How a model is loaded.

    Args:
        device: where the weights go.
        dtype: float32 to dequantize everything; None to keep what the file holds.
        on_progress, cancel, connections: as in `pellucid.weights.stream`.
    """

    device: Device
    dtype: DType | None
    on_progress: Callable[[weights.Progress], None] | None
    cancel: weights.Cancel | None
    connections: int


def load_weights(
    model: Any,
    checkpoint: Checkpoint,
    names: dict[str, str],
    stored: dict[str, StoredWeight],
    options: LoadOptions,
) -> Generator[tuple, None, None]:
    """Fill a model that was built on the meta device.

    Gives the steps that wait, as (owner, name of its function, arguments): the caller runs it, or awaits its
    ``_async`` twin.

    Args:
        model: its parameters say the names and shapes.
        checkpoint: where the bytes are.
        names: name in the checkpoint -> name in the model.
        stored: by name in the model, quantized weights of several tensors.
        options: where to, and how.

    Raises:
        WeightError: names or shapes do not match; all mismatches at once.
        OutOfMemoryError: the weights are larger than the memory limit.
        DeviceError: a float32 matrix is larger than a buffer may be.
        DTypeError: a tensor is in a format without kernels.
        LoadCancelled: the token was used.
    """
    device, dtype, cancel = options.device, options.dtype, options.cancel
    wanted = dict(model.named_parameters())
    saved = model.state_dict()
    buffers = {path: b for path, b in model.named_buffers() if path in saved}
    wanted |= buffers
    check_names(wanted, checkpoint, names, stored)
    plain = plain_tensors(wanted, checkpoint, names, stored)
    _check_types(checkpoint.name, plain)
    _check_room(checkpoint.name, plain, stored, device, dtype)
    pieces = [p for info in plain for p in _pieces(info, names[info.name], device)]
    pieces += [(info, target) for target, weight in stored.items() for info in weight.infos.values()]
    left = Counter(target for _, target in pieces)
    parts: dict[str, list[Tensor]] = {target: [] for target in left}
    report = _Report(options, sum(info.nbytes for info, _ in pieces))
    exact = True
    for batch in _batches(pieces):
        raws = yield from fetch(checkpoint, [info for info, _ in batch], options, report)
        if cancel is not None:
            cancel.check()
        while raws:
            info, target = batch[len(batch) - len(raws)]
            make = elements if target in stored else unpacked if target in buffers else packed
            parts[target].append(make(info, raws.pop(0), device))
            report.begun += info.nbytes
            if len(parts[target]) < left[target]:
                continue
            tensors = parts.pop(target)
            if target in stored:
                w = stored[target].weight(tensors)
                del tensors
            else:
                w = joined(tensors, wanted[target].shape)
            if w.dtype.is_quantized and dtype is dt.float32:
                w = dequantize(w)
            exact = exact and not w.dtype.is_quantized
            if not isinstance(w._storage, RowStorage):
                w._storage.set_kind("weight")
            owner, _, name = target.rpartition(".")
            w = w if target in buffers else Parameter(w, requires_grad=False)
            setattr(model.get_submodule(owner), name, w)
    if device.type == "webgpu":  # the raw bytes came in blocks that nothing else needs
        stream().flush()
        stream().open().trim()
    model.requires_grad_(exact)
    if dtype is not dt.float32:
        for target, weight in stored.items():
            if weight.activations is not None:
                quantize_input(model.get_submodule(target.rpartition(".")[0]), weight.activations)


def load_tensors(
    checkpoint: Checkpoint, infos: list[TensorInfo], options: LoadOptions
) -> Generator[tuple, Any, dict[str, Tensor]]:
    """Tensors of a checkpoint as the file has them, by name: for graphs, which say themselves what is cast.

    Gives the steps that wait, as `load_weights` does.

    Args:
        checkpoint: where the bytes are.
        infos: which tensors; those of the same bytes share memory.
        options: where to, and how.

    Raises:
        DTypeError: the device has no such dtype.
        OutOfMemoryError, DeviceError, LoadCancelled: as `load_weights`.
    """
    for info in infos:
        if info.dtype not in dt.NAMES:
            raise DTypeError(f"{checkpoint.name}: {info.name} is of {info.dtype}, which is no dtype here.")
        if options.device.type == "webgpu":
            physical(dt.NAMES[info.dtype])
    pieces = list({(info.shard, info.start, info.stop): (info, info.name) for info in infos}.values())
    _check_room(checkpoint.name, [info for info, _ in pieces], {}, options.device, None, packed=False)
    report = _Report(options, sum(info.nbytes for info, _ in pieces))
    found: dict[tuple, Any] = {}
    for batch in _batches(pieces):
        raws = yield from fetch(checkpoint, [info for info, _ in batch], options, report)
        if options.cancel is not None:
            options.cancel.check()
        for (info, _), raw in zip(batch, raws, strict=True):
            found[info.shard, info.start, info.stop] = elements(info, raw, options.device)
            report.begun += info.nbytes
    out = {}
    for info in infos:
        t = found[info.shard, info.start, info.stop]
        out[info.name] = Tensor(t._storage, meta(info.shape, dt.NAMES[info.dtype], options.device), 0)
    return out


def _check_types(name: str, infos: list[TensorInfo]) -> None:
    """Refuse formats that no kernel reads, all of them at once."""
    unknown: dict[str, list[str]] = {}
    for info in infos:
        if info.dtype not in dt.NAMES or (info.dtype in FORMATS and len(info.shape) != 2):
            unknown.setdefault(f"{info.dtype} of {len(info.shape)} axes", []).append(info.name)
    if unknown:
        found = "; ".join(f"{kind}: {_some(names)}" for kind, names in unknown.items())
        raise DTypeError(
            f"{name}: there are no kernels for {found}. "
            f"Quantized weights are matrices in {', '.join(FORMATS)}."
        )


def _check_room(
    name: str,
    infos: list[TensorInfo],
    stored: dict[str, StoredWeight],
    device: Device,
    dtype: DType | None,
    packed: bool = True,
) -> None:
    """Refuse what cannot fit, before any byte of it is fetched."""
    if device.type != "webgpu":
        return
    widened = dtype is dt.float32
    needed = sum(4 * info.numel if widened else info.nbytes for info in infos)
    for weight in stored.values():
        needed += 4 * prod(weight.shape) if widened else weight.format.layout(*weight.shape).nbytes
    if stream().allocated + needed > stream().limit:
        raise OutOfMemoryError(
            f"{name}: weights of {needed} bytes do not fit beside the {stream().allocated} in use under the "
            f"limit of {stream().limit}. Use a smaller or quantized model, or raise the limit with "
            "pellucid.webgpu.set_memory_limit."
        )
    limit = largest_buffer()
    for target, weight in stored.items():
        nbytes = 4 * prod(weight.shape) if widened else weight.format.layout(*weight.shape).nbytes
        if nbytes > limit:
            raise DeviceError(
                f"{name}: {target} of shape {weight.shape} takes {nbytes} bytes, and a buffer of this device "
                f"may have {limit}. Use a GGUF, whose rows are spread over several buffers; or load it on "
                "the device 'cpu'."
            )
    for info in infos:
        nbytes = 4 * info.numel if widened else info.nbytes
        if nbytes > limit and (widened or not packed or kept_format(info) is None):
            raise DeviceError(
                f"{name}: {info.name} of shape {info.shape} takes {nbytes} bytes in float32, and a buffer of "
                f"this device may have {limit}. Use a checkpoint in half precision or a quantized one, whose "
                "rows are spread over several buffers; or load it on the device 'cpu'."
            )


def check_names(
    wanted: dict[str, Any], checkpoint: Checkpoint, names: dict[str, str], stored: dict[str, StoredWeight]
) -> None:
    problems = []
    given = set(names.values())
    missing = sorted(set(wanted) - given)
    extra = sorted(source for source, target in names.items() if target not in wanted)
    if missing:
        problems.append(f"missing in the file: {_some(missing)}")
    if extra:
        problems.append(f"not in the model: {_some(extra)}")
    rows: Counter[str] = Counter()
    several = {target for target, count in Counter(names.values()).items() if count > 1}
    for source, target in names.items():
        if target not in wanted:
            continue
        shape = stored[target].shape if target in stored else checkpoint[source].shape
        if target not in stored:
            shape = as_matrix(checkpoint[source], wanted[target].shape).shape
        if target in several and target not in stored:
            # The rows of several tensors, one after another.
            rows[target] += shape[0]
            if len(shape) == 2 and shape[1:] == wanted[target].shape[1:]:
                continue
        if tuple(wanted[target].shape) != tuple(shape):
            problems.append(
                f"{source} has shape {tuple(shape)} in the file and "
                f"{tuple(wanted[target].shape)} in the model"
            )
    problems += [
        f"{target} has {rows[target]} rows in the file and {wanted[target].shape[0]} in the model"
        for target in sorted(several & set(rows))
        if rows[target] != wanted[target].shape[0]
    ]
    if problems:
        advice = (
            "The file is damaged, or gguf_names of the model's class lacks a name."
            if checkpoint.format == "gguf"
            else "Check that config.json belongs to these weights."
        )
        raise WeightError(
            f"{checkpoint.name}: {len(problems)} mismatches: {'; '.join(problems[:20])}. {advice}"
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


class _Report:
    """Progress of the whole out of progress of the parts, which ends where the device had no room for one."""

    def __init__(self, options: LoadOptions, total: int):
        self._tell = options.on_progress
        self._is_on_gpu = options.device.type == "webgpu"
        self._meter = weights.progress.Meter(total)
        self.begun = 0

    def __call__(self, progress: weights.Progress) -> None:
        if self._is_on_gpu:
            stream().check()
        if self._tell is not None:
            self._tell(self._meter.at(self.begun + progress.bytes_done, progress.name))


def _pieces(info: TensorInfo, target: str, device: Device) -> list[tuple[TensorInfo, str]]:
    """A tensor as one piece, or as ranges of rows where it is larger than a buffer may be."""
    format = kept_format(info)
    if device.type != "webgpu" or format is None:
        return [(info, target)]
    limit = min(largest_buffer(), 1 << 30)
    rows = info.shape[0]
    row = info.nbytes // rows
    # Ranges start at words, whatever the bytes of a row.
    step = max(limit // row // 16 * 16, 16)
    if rows <= step:
        return [(info, target)]
    return [
        (
            info._replace(
                shape=(min(step, rows - at), info.shape[1]),
                start=info.start + at * row,
                stop=info.start + min(at + step, rows) * row,
            ),
            target,
        )
        for at in range(0, rows, step)
    ]


def _batches(pieces: list[tuple[TensorInfo, str]]) -> list[list[tuple[TensorInfo, str]]]:
    batches: list[list[tuple[TensorInfo, str]]] = []
    size = _BATCH
    for piece in pieces:
        if size + piece[0].nbytes > _BATCH:
            batches.append([])
            size = 0
        batches[-1].append(piece)
        size += piece[0].nbytes
    return batches


def fetch(checkpoint, infos, options: LoadOptions, report) -> Generator[tuple, Any, list]:
    """The raw bytes of tensors: storages on webgpu, numpy arrays on cpu."""
    settings = {"on_progress": report, "cancel": options.cancel, "connections": options.connections}
    if options.device.type == "cpu":
        return (yield weights, "read", (checkpoint, infos), settings)
    host = stream().open()
    raws = [Storage(-(-info.nbytes // 4) * 4, "weight", direct=True) for info in infos]
    items = [(info, weights.Target(raw.slot, raw.nbytes)) for info, raw in zip(infos, raws, strict=True)]
    # Slots that are free for us must be free at the host before bytes come past the stream.
    stream().flush()
    yield weights, "stream", (checkpoint, items, host), settings
    return raws
