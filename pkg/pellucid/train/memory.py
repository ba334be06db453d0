"""Gradient checkpointing: layers of a model that compute their activations again in the backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ..errors import RangeError
from ..nn.modules.container import ModuleList
from ..nn.modules.module import Module
from ..utils.checkpoint import checkpoint


def repeated_layers(model: Module) -> list[Module]:
    """The layers of a model: what its outermost lists of modules hold."""
    found: list[Module] = []
    inside: tuple[str, ...] = ()
    for path, module in model.named_modules():
        if isinstance(module, ModuleList) and not path.startswith(inside or ("\0",)):
            found += list(module)
            inside = (*inside, f"{path}.")
    return found


@contextmanager
def checkpointed_layers(model: Module) -> Iterator[None]:
    """Within it, the layers of a model keep nothing for their backward but their inputs.

    Args:
        model: whose lists of layers.

    Raises:
        RangeError: it has no list of layers.
    """
    layers = repeated_layers(model)
    if not layers:
        raise RangeError(
            f"gradient_checkpointing: {type(model).__name__} has no list of layers. Use "
            "torch.utils.checkpoint.checkpoint in its forward."
        )

    def again(forward: Callable) -> Callable:
        @wraps(forward)
        def run(*args: Any, **kwargs: Any) -> Any:
            return checkpoint(forward, *args, **kwargs)

        return run

    for layer in layers:
        layer.__dict__["forward"] = again(layer.forward)
    try:
        yield
    finally:
        for layer in layers:
            del layer.__dict__["forward"]


__all__ = ["checkpointed_layers", "repeated_layers"]
