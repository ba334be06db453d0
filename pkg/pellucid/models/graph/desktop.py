"""``pellucid.from_torch``: a module of PyTorch as a module here, where both are installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from ...errors import MissingError
from .export import load
from .exported import ExportedModule

__all__ = ["from_torch"]


def from_torch(
    module: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    device: Any = None,
) -> ExportedModule:
    """A module of PyTorch as one that runs here: it is exported, and the program is loaded.

    Args:
        module: a ``torch.nn.Module``, in the mode in which it is to run.
        args, kwargs: example arguments of PyTorch's tensors, as ``torch.export.export`` takes them.
        dynamic_shapes: sizes that stay open; all others are those of the examples.
        device: where it runs; the default device if None.

    Returns:
        The module, with a copy of the weights; see `pellucid.export.load`.

    Raises:
        MissingError: PyTorch is not installed, or operators of the module are not known here.

    Example:
        >>> import pellucid
        >>> model = pellucid.from_torch(torch_model, (example,))  # doctest: +SKIP
    """
    try:
        import torch
    except ImportError:
        raise MissingError("from_torch: PyTorch is not installed. Install it, or load a .pt2 file.") from None
    program = torch.export.export(
        module, tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False
    )
    file = BytesIO()
    torch.export.save(program, file)
    return load(file.getvalue(), device=device).module()
