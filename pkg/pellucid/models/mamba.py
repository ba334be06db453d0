"""Mamba: selective state spaces, a state for each channel.

Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces". Attribute paths are the
tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

from ..errors import FormatError
from ..nn import functional as F
from ..nn.modules.linear import Linear
from ..nn.parameter import Parameter
from ..ops.shape.creation import arange, ones, zeros_like
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import Field, number, one_of, whole
from .state_space import GGUF_MIXER, Mixer, StateSpaceConfig, StateSpaceLM, rates_of, step_bias


class MambaMixer(Mixer):
    """Mamba's mixer: steps, B and C are products of what was convolved."""

    def add_parameters(self, config: Any) -> None:
        inner, states, rank = config.inner, config.state_size, config.rank
        self.in_proj = Linear(config.hidden_size, 2 * inner, bias=config.use_bias)
        self.x_proj = Linear(inner, rank + 2 * states, bias=False)
        self.dt_proj = Linear(rank, inner)
        self.dt_proj.bias = Parameter(step_bias(config, inner))
        # S4D-Real: the rates are -1, -2, ... -N, as logarithms.
        self.A_log = Parameter(arange(1, states + 1).float().log().expand(inner, states).contiguous())
        self.D = Parameter(ones(inner))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, gate = self.in_proj(x).chunk(2, -1)
        return gate, x, x

    def scanned(self, x: Tensor, steps: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        c = self.config
        steps, B, C = self.x_proj(x).split([c.rank, c.state_size, c.state_size], -1)
        return (x, F.softplus(self.dt_proj(steps)), B, C), (rates_of(c, self.A_log), self.D)


@dataclass(frozen=True)
class MambaConfig(StateSpaceConfig):
    """Fields are the keys of ``config.json``, but ``layer_norm_epsilon`` is ``rms_norm_eps``."""

    table: ClassVar[Mapping[str, Field]] = {
        **StateSpaceConfig.table, "time_step_rank": whole(1, 1 << 16),
        "time_step_scale": number(0, 1e3, above=True), "time_step_init_scheme": one_of("random", "constant"),
        "intermediate_size": whole(0, 1 << 24),
    }  # fmt: skip
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **StateSpaceConfig.gguf_keys, "intermediate_size": "ssm.inner_size",
        "time_step_rank": "ssm.time_step_rank",
    }  # fmt: skip
    mixer_class: ClassVar[type[Mixer]] = MambaMixer
    vocab_size: int = 50280
    intermediate_size: int = 0
    time_step_rank: int | None = None
    time_step_scale: float = 1.0
    time_step_init_scheme: str = "random"

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        if checkpoint.metadata.get(f"{prefix}ssm.dt_b_c_rms"):
            raise FormatError(
                f"{checkpoint.name}: {prefix}ssm.dt_b_c_rms is set: steps, B and C are normed, as in Falcon "
                "Mamba, which is not computed here. Load a Mamba without these norms."
            )
        return super().gguf_more(checkpoint, prefix)

    def to_gguf(self) -> dict[str, Any]:
        return super().to_gguf() | {"ssm.time_step_rank": self.rank}

    @property
    def inner(self) -> int:
        return self.intermediate_size or super().inner

    @property
    def rank(self) -> int:
        """Columns that steps are made of."""
        return self.time_step_rank or ceil(self.hidden_size / 16)


class MambaForCausalLM(StateSpaceLM):
    """Mamba with a head over the vocabulary.

    Args:
        config: a `MambaConfig`.
    """

    config_class = MambaConfig
    model_types = ("mamba",)
    gguf_architectures = ("mamba",)
    gguf_names = {**GGUF_MIXER, "blk.{}.ssm_dt": "backbone.layers.{}.mixer.dt_proj"}

    def select_local(self) -> list[Parameter]:
        """Weight-selective local adaptation (WSLA): train nothing but what makes B and C of every layer.

        B and C are rows of ``x_proj``. Other parameters need no gradient from here on; the gradient of the
        rows that make the steps is 0, so give the optimizer no weight decay, which would shrink them.

        Returns:
            The parameters for an optimizer, one a layer.

        Example:
            >>> import pellucid as torch
            >>> from pellucid.models import MambaConfig, MambaForCausalLM
            >>> with torch.device("cpu"):
            ...     model = MambaForCausalLM(MambaConfig(vocab_size=8, hidden_size=16, num_hidden_layers=2))
            >>> optimizer = torch.optim.AdamW(model.select_local(), weight_decay=0.0)
            >>> [tuple(p.shape) for p in model.parameters() if p.requires_grad]
            [(33, 32), (33, 32)]
        """
        self.requires_grad_(False)
        found = []
        for layer in self.decoder.layers:
            weight, rank = layer.mixer.x_proj.weight.requires_grad_(), self.config.rank
            weight.register_hook(lambda g, rank=rank: cat([zeros_like(g[:rank]), g[rank:]]))
            found.append(weight)
        return found
