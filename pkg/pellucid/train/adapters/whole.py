"""Modules that an adapter trains whole, such as a head: a copy by name beside the frozen one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ...errors import ArgumentError
from ...nn.modules.container import ModuleDict
from ...nn.modules.module import Module
from ...tensors.tensor import Tensor


class Whole(Module):
    """A module that an adapter trains whole: a copy of it by name, beside the original.

    Args:
        original_module: the frozen one.

    Attributes:
        modules_to_save: the copies.
        active: the name of the copy that counts, or None.
    """

    def __init__(self, original_module: Module):
        super().__init__()
        self.original_module = original_module
        self.modules_to_save = ModuleDict()
        self.active: str | None = None

    def add(self, name: str) -> None:
        """Make a copy.

        Raises:
            ArgumentError: the module's weight is quantized.
        """
        if any(p.dtype.is_quantized for p in self.original_module.parameters()):
            raise ArgumentError(
                "modules_to_save: names a module whose weight is quantized, which has no gradients. Leave it "
                "out, or load the model with dtype=torch.float32."
            )
        made = deepcopy(self.original_module)
        made.requires_grad_(True)
        self.modules_to_save[name] = made

    @property
    def weight(self) -> Tensor:
        """The weight that counts."""
        return self._chosen().weight

    def _chosen(self) -> Any:
        return self.original_module if self.active is None else self.modules_to_save[self.active]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._chosen()(*args, **kwargs)


__all__ = ["Whole"]
