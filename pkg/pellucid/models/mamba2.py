"""Mamba-2: selective state spaces whose channels lie in heads, one rate and one step a head.

Dao and Gu 2024, "Transformers are SSMs". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Self

from ..errors import FormatError
from ..nn import functional as F
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops.shape.creation import arange, ones
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import Field, check, listed, number, whole
from .state_space import GGUF_MIXER, Mixer, StateSpaceConfig, StateSpaceLM, rates_of, step_bias

# The largest float32 stands for no limit.
_MOST, _INFINITE = 3.4028234663852886e38, (inf, {"__float__": "Infinity"})


class GatedNorm(Module):
    """RMS norm of groups of channels, behind a gate: ``norm(x * silu(gate)) * weight``.

    Args:
        channels: of all groups.
        groups: that are normed each by itself.
        eps: added to the mean of squares.
    """

    def __init__(self, channels: int, groups: int, eps: float):
        super().__init__()
        self.groups, self.eps, self.weight = groups, eps, Parameter(ones(channels))

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        grouped = (x * F.silu(gate)).reshape(*x.shape[:-1], self.groups, -1)
        return F.rms_norm(grouped, (grouped.shape[-1],), None, self.eps).reshape(x.shape) * self.weight


class Mamba2Mixer(Mixer):
    """Mamba-2's mixer: B and C are convolved beside the channels, heads of which share a group."""

    def add_parameters(self, config: Any) -> None:
        heads = config.num_heads
        self.in_proj = Linear(config.hidden_size, config.inner + config.convolved + heads, config.use_bias)
        self.dt_bias = Parameter(step_bias(config, heads))
        self.A_log = Parameter(arange(1, heads + 1).float().log())
        self.D = Parameter(ones(heads))
        self.norm = GatedNorm(config.inner, config.n_groups, config.rms_norm_eps)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        c = self.config
        gate, x, steps = self.in_proj(x).split([c.inner, c.convolved, c.num_heads], -1)
        return gate, x, steps

    def scanned(self, x: Tensor, steps: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        c, low_high = self.config, self.config.time_step_limit
        along = c.n_groups * c.state_size
        u, B, C = x.split([c.inner, along, along], -1)
        B, C = (each.reshape(*x.shape[:2], c.n_groups, c.state_size) for each in (B, C))
        steps = F.softplus(steps + self.dt_bias)
        if tuple(low_high) != (0.0, _MOST):
            steps = steps.clamp(low_high[0], low_high[1])
        # All channels of a head have its step, rate and D.
        steps = steps.repeat_interleave(c.head_dim, -1)
        rates = rates_of(c, self.A_log).repeat_interleave(c.head_dim, 0)
        rates = rates.unsqueeze(-1).expand(c.inner, c.state_size)
        return (u, steps, B, C), (rates, self.D.repeat_interleave(c.head_dim, 0))

    def gated(self, x: Tensor, gate: Tensor) -> Tensor:
        return self.norm(x, gate)


@dataclass(frozen=True)
class Mamba2Config(StateSpaceConfig):
    """Fields are the keys of ``config.json``, but ``layer_norm_epsilon`` is ``rms_norm_eps``."""

    table: ClassVar[Mapping[str, Field]] = {
        **StateSpaceConfig.table, "num_heads": whole(1, 1 << 16), "head_dim": whole(1, 4096),
        "n_groups": whole(1, 1 << 16), "chunk_size": whole(1, 1 << 16), "time_step_rank": whole(1, 1 << 16),
        "time_step_limit": listed(number(0, _MOST), 2),
    }  # fmt: skip
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **StateSpaceConfig.gguf_keys, "num_heads": "ssm.time_step_rank", "n_groups": "ssm.group_count",
    }  # fmt: skip
    mixer_class: ClassVar[type[Mixer]] = Mamba2Mixer
    vocab_size: int = 32768
    hidden_size: int = 4096
    num_hidden_layers: int = 64
    tie_word_embeddings: bool = False
    state_size: int = 128
    num_heads: int = 128
    head_dim: int | None = 64
    n_groups: int = 8
    chunk_size: int = 256
    time_step_rank: int | None = None
    time_step_limit: tuple[float, float] | list[float] = (0.0, _MOST)

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]) -> Self:
        limit = keys.get("time_step_limit")
        if isinstance(limit, list | tuple):  # files have infinity as {"__float__": "Infinity"}
            keys = {**keys, "time_step_limit": [_MOST if v in _INFINITE else v for v in limit]}
        return super().from_dict(keys)

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        keys, inner = checkpoint.metadata, f"{prefix}ssm.inner_size"
        check(checkpoint.name, keys, {inner: whole(1, 1 << 24)}, inner)
        wide, heads = keys[f"{prefix}embedding_length"], keys[f"{prefix}ssm.time_step_rank"]
        if keys[inner] % wide or keys[inner] % heads:
            raise FormatError(
                f"{checkpoint.name}: {inner} {keys[inner]} is no multiple of {wide} columns and {heads} "
                "heads. The file is damaged."
            )
        more = {"expand": keys[inner] // wide, "head_dim": keys[inner] // heads}
        return super().gguf_more(checkpoint, prefix) | more

    def checked(self, where: str) -> Self:
        heads, columns, groups = self.num_heads, self.head_dim or 0, self.n_groups
        if heads * columns != self.inner or heads % groups:
            raise FormatError(
                f"{where}: {heads} heads of {columns} columns in {groups} groups are not possible for "
                f"{self.inner} channels. The file is damaged."
            )
        return super().checked(where)

    @property
    def convolved(self) -> int:
        return self.inner + 2 * self.n_groups * self.state_size


class Mamba2ForCausalLM(StateSpaceLM):
    """Mamba-2 with a head over the vocabulary.

    Args:
        config: a `Mamba2Config`.
    """

    config_class = Mamba2Config
    model_types = ("mamba2",)
    gguf_architectures = ("mamba2",)
    gguf_names = {**GGUF_MIXER, "blk.{}.ssm_dt.bias": "backbone.layers.{}.mixer.dt_bias"}

    def gguf_shape(self, path: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        if path.endswith(("A_log", ".D")):
            return *shape, 1
        if path.endswith("mixer.norm.weight"):
            return self.config.n_groups, shape[0] // self.config.n_groups
        return super().gguf_shape(path, shape)
