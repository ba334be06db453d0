"""Prompt tuning: an embedding with rows of its own for virtual ids, which stand before every text."""

from __future__ import annotations

from typing import Any

from ...autograd.grad_mode import no_grad
from ...nn import functional as F
from ...nn.modules.module import Module
from ...nn.modules.parameters import ParameterDict
from ...nn.parameter import Parameter
from ...ops.elementwise.comparison import where
from ...ops.random.distributions import randn
from ...ops.shape.creation import arange, full
from ...ops.shape.joining import cat
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor


class PromptEmbedding(Module):
    """An embedding whose ids from ``first`` on are rows of a prompt.

    Args:
        base_layer: the embedding.
        first: the number of ids that it has.

    Attributes:
        prompts: (virtual tokens, columns) by name.
        active: the name of the prompt that counts, or None.
    """

    def __init__(self, base_layer: Any, first: int):
        super().__init__()
        self.base_layer, self.first = base_layer, first
        self.prompts = ParameterDict()
        self.active: str | None = None

    @property
    def weight(self) -> Tensor:
        """The frozen embedding's weight."""
        return self.base_layer.weight

    def add(self, name: str, config: Any, tokenizer: Any) -> None:
        """Make a prompt.

        Args:
            name: of it.
            config: the `PromptTuningConfig`.
            tokenizer: for a text.
        """
        count, place = config.num_virtual_tokens, self.base_layer.weight.device
        if config.prompt_tuning_init == "TEXT":
            ids = tokenizer(config.prompt_tuning_init_text).input_ids
            ids = (ids * -(-count // len(ids)))[:count]
            with no_grad():
                rows = self.base_layer(tensor(ids, device=place)).float().clone()
        else:
            rows = randn(count, config.token_dim, device=place, dtype=dt.float32)
        self.prompts[name] = Parameter(rows.detach())

    def forward(self, ids: Tensor) -> Tensor:
        if self.active is None:
            return self.base_layer(ids)
        prompt = self.prompts[self.active]
        virtual = ids >= self.first
        plain = self.base_layer(where(virtual, 0, ids))
        rows = F.embedding((ids - self.first).clamp(min=0), prompt).to(plain.dtype)
        return where(virtual.unsqueeze(-1), rows, plain)

    def before(self, ids: Tensor) -> Tensor:
        """Ids with the virtual ones before them.

        Args:
            ids: (batch, time).
        """
        count = self.prompts[self.active or ""].shape[0]
        virtual = arange(self.first, self.first + count, device=ids.device).to(ids.dtype)
        return cat([virtual.expand(ids.shape[0], count), ids], 1)

    def filled(self, values: Tensor, value: int) -> Tensor:
        """Values (batch, time) with one of their own before them for each virtual id."""
        count = self.prompts[self.active or ""].shape[0]
        before = full((values.shape[0], count), value, dtype=values.dtype, device=values.device)
        return cat([before, values], 1)


__all__ = ["PromptEmbedding"]
