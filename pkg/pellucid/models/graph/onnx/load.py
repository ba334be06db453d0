"""`load` opens an ONNX file: the graph first, then the weights by ranges, into a module."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from .... import weights
from ....device import resolved
from ....device.steps import later, now
from ....weights.source import Source
from ...loading import LoadOptions
from ..file_model import load_graph
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
    place = resolved(device)
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
    place = resolved(device)
    return await later(_load(source, LoadOptions(place, None, on_progress, cancel, connections), where))


def read_graph(file: Source) -> Generator[Any, Any, Any]:
    """Steps that give a file's graph, and the sources in which its weights lie."""
    message = yield from read_model(file)
    constants = Constants(file)
    return build(message, constants), constants.shards


def _load(source: Any, options: LoadOptions, where: dict[str, Any]) -> Generator[tuple, Any, OnnxModel]:
    graph, tensors = yield from load_graph(source, "onnx", read_graph, options, where)
    return OnnxModel(graph, tensors, options.device)
