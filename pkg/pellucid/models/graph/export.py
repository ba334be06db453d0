"""``pellucid.export``: programs that ``torch.export.save`` wrote, run from the op table without PyTorch.

Source: https://pytorch.org/docs/stable/export.html
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from ... import weights
from ...device import resolved
from ...device.steps import later, now
from ...errors import FormatError
from ...tensors.tensor import Tensor
from ..loading import LoadOptions, load_tensors
from . import reader
from .exported import ExportedModule
from .reader import ProgramFile

__all__ = ["ExportedModule", "ExportedProgram", "load", "load_async"]


class ExportedProgram:
    """A program with its weights. Made by `load`.

    Attributes:
        name: where it came from.
        range_constraints: by symbol of a size, the least and the largest value that it may have; None where
            there is none.
        guards_code: conditions on the arguments, as the program has them.

    Source: https://pytorch.org/docs/stable/export.html#torch.export.ExportedProgram
    """

    def __init__(self, module: ExportedModule, document: dict[str, Any], name: str):
        self._module = module
        self.name = name
        self.range_constraints = {
            symbol: (bounds.get("min_val"), bounds.get("max_val"))
            for symbol, bounds in document["range_constraints"].items()
        }
        self.guards_code: list[str] = list(document.get("guards_code") or ())

    def module(self) -> ExportedModule:
        """The program as a module, whose submodules can be hooked by their paths."""
        return self._module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._module(*args, **kwargs)

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers by path."""
        return self._module.state_dict()

    @property
    def constants(self) -> dict[str, Tensor]:
        """Buffers that are not saved with a module, and tensors that the program holds besides, by path."""
        saved = self.state_dict
        return {path: b for path, b in self._module.named_buffers() if path not in saved}

    def parameters(self) -> Iterator[Tensor]:
        """The parameters, each once."""
        return self._module.parameters()

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters by path, each once."""
        return self._module.named_parameters()

    def buffers(self) -> Iterator[Tensor]:
        """The buffers, each once."""
        return self._module.buffers()

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers by path, each once."""
        return self._module.named_buffers()

    @property
    def graph(self) -> str:
        """The nodes in the order in which they run, a line each."""
        return "\n".join(map(str, self._module.nodes))

    def __repr__(self) -> str:
        count = sum(p.numel() for p in self.parameters())
        return f"<ExportedProgram {self.name}: {len(self._module.nodes)} nodes, {count:,} parameters>"


def load(
    source: Any,
    *,
    device: Any = None,
    on_progress: Callable[[weights.Progress], None] | None = None,
    cancel: weights.Cancel | None = None,
    connections: int = 6,
    **where: Any,
) -> ExportedProgram:
    """Load a program that ``torch.export.save`` wrote: the graph first, then weights streamed to the device.

    Nothing of the file is run but operators of the op table; no class of it is imported.

    Args:
        source: a path, a URL, bytes, a browser's File, or a folder or hub id with ``filename=``.
        device: where the program runs; the default device if None. Devices that the file names do not count.
        on_progress: called with a `pellucid.weights.Progress` about ten times a second.
        cancel: a `pellucid.weights.Cancel`, whose ``cancel()`` ends the load; nothing of it stays allocated.
        connections: requests in flight.
        where: ``revision=``, ``filename=``, ``token=``, ``endpoint=`` as in `pellucid.weights.find`.

    Returns:
        An `ExportedProgram`; ``.module()`` is called as the program was.

    Raises:
        FormatError: the file is not what ``torch.export.save`` writes, or damaged.
        MissingError: operators of the graph are not known here; all of them, with their places.
        DTypeError: the device has no such dtype as a weight has.
        SourceError: bytes cannot be had.
        OutOfMemoryError: the weights are larger than the memory limit.
        LoadCancelled: the token was used.

    Source: https://pytorch.org/docs/stable/export.html#torch.export.load

    Example:
        >>> from pellucid import export
        >>> model = export.load("model.pt2").module()  # doctest: +SKIP
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
) -> ExportedProgram:
    """The awaitable twin of `load`."""
    place = resolved(device)
    return await later(_load(source, LoadOptions(place, None, on_progress, cancel, connections), where))


def _load(source: Any, options: LoadOptions, where: dict[str, Any]) -> Generator[tuple, Any, ExportedProgram]:
    file: ProgramFile = yield reader, "open_program", (source, where), {}
    try:
        module = ExportedModule(file.name, file.document)
        missing = [path for path, _ in module.wanted.values() if path not in file.tensors]
        if missing:
            raise FormatError(
                f"{file.name}: holds no values of {', '.join(missing[:8])}"
                f"{f' and {len(missing) - 8} more' if len(missing) > 8 else ''}. The file is damaged."
            )
        files = {file.tensors[path].file for path, _ in module.wanted.values()}
        infos = [info for info in file.checkpoint.values() if info.name in files]
        elements = yield from load_tensors(file.checkpoint, infos, options)
        module.take(file.tensors, elements, options.device)
    finally:
        file.checkpoint.close()
    return ExportedProgram(module, file.document, file.name)
