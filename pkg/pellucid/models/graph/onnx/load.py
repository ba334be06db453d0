"""`load` opens an ONNX file: the graph first, then the weights by ranges, into a module."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from .... import weights
from ....device import device as Device
from ....device import get_default_device
from ....device.steps import later, now
from ....errors import SourceError
from ....tensors.construct import tensor
from ....tensors.tensor import Tensor
from ....weights import parsing
from ....weights.checkpoint import Checkpoint, TensorInfo
from ....weights.place import Place, find
from ....weights.source import Source
from ...loading import LoadOptions, load_tensors
from .constants import Constants
from .graph import build
from .model import OnnxModel
from .skim import read_model


def load(
    source: Any,
    *,
    device: Any = None,
    on_progress: Callable[[weights.Progress], None] | None = None,
    cancel: weights.Cancel | None = None,
    connections: int = 6,
    **where: Any,
) -> OnnxModel:
    """An ONNX model (opset 1 to 23) as a module that runs on a device.

    The graph is read first, without the weights; then these are streamed to the device, in the types that the
    file has them in. External data lies beside the file.

    Args:
        source: a URL, a path, a File, bytes, or a `weights.Source`; a hub id with ``filename=``.
        device: where the model runs; the default device if not given.
        on_progress: called about ten times a second with a `weights.Progress`.
        cancel: token that stops the load.
        connections: requests in flight.
        where: ``revision=``, ``filename=``, ``token=``, ``endpoint=`` as in `pellucid.weights.find`.

    Returns:
        An `OnnxModel`: ``model(x)`` or ``model(name=x)`` gives the output, or a tuple of several.

    Raises:
        FormatError: the file is no ONNX model, or damaged; names the field or node.
        MissingError: it has operators that are not computed; lists all with the nodes' names. Or the package
            protobuf is not installed.
        SourceError: bytes cannot be had.
        OutOfMemoryError: the weights are larger than the memory limit.
        LoadCancelled: the token was used.

    Source: https://onnx.ai/onnx/repo-docs/IR.html

    Example:
        >>> import pellucid as torch
        >>> model = torch.onnx.load("mnist-12.onnx")  # doctest: +SKIP
        >>> model(torch.zeros(1, 1, 28, 28)).shape  # doctest: +SKIP
        Size([1, 10])
    """
    place = get_default_device() if device is None else Device(device)
    return now(_load(source, LoadOptions(place, None, on_progress, cancel, connections), where))


async def load_async(
    source: Any,
    *,
    device: Any = None,
    on_progress: Callable[[weights.Progress], None] | None = None,
    cancel: weights.Cancel | None = None,
    connections: int = 6,
    **where: Any,
) -> OnnxModel:
    """The awaitable twin of `load`."""
    place = get_default_device() if device is None else Device(device)
    return await later(_load(source, LoadOptions(place, None, on_progress, cancel, connections), where))


class _Reading:
    """The model's message, read by blocking or by awaiting."""

    def message(self, source: Source) -> Any:
        return parsing.now(read_model(source))

    async def message_async(self, source: Source) -> Any:
        return await parsing.later(read_model(source))


def _load(source: Any, options: LoadOptions, where: dict[str, Any]) -> Generator[tuple, Any, OnnxModel]:
    file = find(source, **where)
    if isinstance(file, Place):
        raise SourceError(f"{file.name}: is a folder. Give the .onnx file's own address, or filename=.")
    constants = Constants(file)
    try:
        graph = build((yield _Reading(), "message", (file,), {}), constants)
        used = {n for step in graph.steps for n in step.inputs} | {o.name for o in graph.outputs}
        here: dict[str, Tensor] = {}
        away: list[TensorInfo] = []
        for name, value in graph.constants.items():
            if name not in used:
                continue
            if isinstance(value, TensorInfo):
                away.append(value._replace(name=name))
            else:
                here[name] = tensor(value, device="cpu" if name in graph.early else options.device)
        checkpoint = Checkpoint(file.name, "onnx", away, {}, constants.shards)
        loaded = yield from load_tensors(checkpoint, away, options)
    finally:
        for shard in constants.shards:
            shard.close()
    return OnnxModel(graph, here | loaded, options.device)
