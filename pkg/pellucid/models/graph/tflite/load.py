"""`load` opens a TensorFlow Lite file: the graph first, then the weights by ranges, into a module."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from .... import weights
from ....device import resolved
from ....device.steps import later, now
from ....weights.source import Source
from ...loading import LoadOptions
from ..file_model import load_graph
from .constants import TensorTables
from .flat import read_flatbuffer
from .graph import build
from .layout import held
from .model import TfliteModel


def load(
    source: Any,
    *,
    device: Any = None,
    on_progress: Callable[[weights.Progress], None] | None = None,
    cancel: weights.Cancel | None = None,
    connections: int = 6,
    **where: Any,
) -> TfliteModel:
    """A TensorFlow Lite model (LiteRT, ``.tflite``) as a module that runs on a device.

    The graph is read first, without the weights; then these are streamed to the device, in the types that the
    file has them in. Nothing else needs to be installed.

    Args:
        source: a URL, a path, a File, bytes, or a `weights.Source`; a hub id with ``filename=``.
        device: where the model runs; the default device if not given.
        on_progress: called about ten times a second with a `weights.Progress`.
        cancel: token that stops the load.
        connections: requests in flight.
        where: ``revision=``, ``filename=``, ``token=``, ``endpoint=`` as in `pellucid.weights.find`.

    Returns:
        A `TfliteModel`: ``model(x)`` or ``model(name=x)`` gives the output, or a tuple of several. Images are
        (batch, height, width, channels), as the file has them.

    Raises:
        FormatError: the file is no TensorFlow Lite model, or damaged; names the field or node.
        MissingError: it has operators that are not computed; lists all with the nodes' names.
        SourceError: bytes cannot be had.
        OutOfMemoryError: the weights are larger than the memory limit.
        LoadCancelled: the token was used.

    Source: https://ai.google.dev/edge/litert

    Example:
        >>> import pellucid as torch
        >>> model = torch.tflite.load("face_landmark.tflite")  # doctest: +SKIP
        >>> model(torch.zeros(1, 192, 192, 3))[0].shape  # doctest: +SKIP
        Size([1, 1, 1, 1404])
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
) -> TfliteModel:
    """The awaitable twin of `load`."""
    place = resolved(device)
    return await later(_load(source, LoadOptions(place, None, on_progress, cancel, connections), where))


def read_graph(file: Source) -> Generator[Any, Any, Any]:
    """Steps that give a file's graph, and the sources in which its weights lie."""
    source, model = yield from read_flatbuffer(file, b"TFL3", "Model")
    graph = yield from build(model, TensorTables(source, model.buffers))
    return graph, [source]


def _load(source: Any, options: LoadOptions, where: dict[str, Any]) -> Generator[tuple, Any, TfliteModel]:
    graph, tensors = yield from load_graph(source, "tflite", read_graph, options, where)
    kept = {n: held(x) if len(x.shape) == 4 and n not in graph.early else x for n, x in tensors.items()}
    return TfliteModel(graph, kept, options.device)
