"""What state-space models (Mamba, Mamba-2) share: configuration, the mixer around the selective scan, layers.

A mixer is a causal convolution of a few positions and a recurrence. In generation both go on with a state
whose size does not depend on the number of positions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log, prod
from typing import Any, ClassVar, Self

from ..nn import functional as F
from ..nn.modules.conv import Conv1d
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..ops.recurrence.selective_scan import selective_scan
from ..ops.shape.creation import empty
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, check, number, text, whole
from .activations import activation
from .decoder import Decoder
from .decoder_config import EPSILON, DecoderConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class StateSpaceConfig(DecoderConfig):
    """Fields are the keys of ``config.json``, but ``layer_norm_epsilon`` is ``rms_norm_eps``."""

    table: ClassVar[Mapping[str, Field]] = {
        "vocab_size": whole(1, 1 << 24), "hidden_size": whole(1, 1 << 20),
        "num_hidden_layers": whole(1, 4096), "tie_word_embeddings": FLAG, "hidden_act": text(100),
        "rms_norm_eps": EPSILON, "state_size": whole(1, 4096), "expand": whole(1, 64),
        "conv_kernel": whole(2, 64), "use_bias": FLAG, "use_conv_bias": FLAG,
        "time_step_min": number(0, 1e3, above=True), "time_step_max": number(0, 1e3, above=True),
        "time_step_floor": number(0, 1e3, above=True), "rates_are_logs": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {"layer_norm_epsilon": "rms_norm_eps"}
    neutral: ClassVar[Mapping[str, Any]] = {
        "residual_in_fp32": True, "use_associative_scan": True, "use_mambapy": True,
        "rescale_prenorm_residual": True,
    }  # fmt: skip
    names: ClassVar[Names] = replace(
        DecoderConfig.names, decoder="backbone", embedding="embeddings", norm="norm_f", attention="mixer",
        mlp="", before_attention="norm", before_mlp="", query="", key="", value="", joined="in_proj",
        output="out_proj", gate="", up="", down="",
    )  # fmt: skip
    gguf_keys: ClassVar[Mapping[str, str]] = {
        "hidden_size": "embedding_length", "num_hidden_layers": "block_count",
        "rms_norm_eps": "attention.layer_norm_rms_epsilon", "state_size": "ssm.state_size",
        "conv_kernel": "ssm.conv_kernel",
    }  # fmt: skip
    gguf_optional: ClassVar[Mapping[str, str]] = {}
    gguf_settings: ClassVar[Mapping[str, Any]] = {"rates_are_logs": False}
    hidden_size: int = 768
    max_position_embeddings: int = 1 << 20
    rms_norm_eps: float = 1e-5
    tie_word_embeddings: bool = True
    state_size: int = 16
    expand: int = 2
    conv_kernel: int = 4
    use_bias: bool = False
    use_conv_bias: bool = True
    time_step_min: float = 0.001
    time_step_max: float = 0.1
    time_step_floor: float = 1e-4
    rates_are_logs: bool = True

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        return {
            "use_bias": "blk.0.ssm_in.bias" in checkpoint,
            "use_conv_bias": "blk.0.ssm_conv1d.bias" in checkpoint,
        }

    def to_gguf(self) -> dict[str, Any]:
        # llama.cpp asks each model for heads and the feed-forward.
        absent = {"feed_forward_length": 0, "attention.head_count": 0, "attention.head_count_kv": 0}
        sizes = {"context_length": self.max_position_embeddings, "ssm.inner_size": self.inner}
        return super().to_gguf() | absent | sizes

    def checked(self, where: str) -> Self:
        check(where, vars(self), self.table)
        return self

    @property
    def inner(self) -> int:
        """Channels of the recurrence."""
        return self.expand * self.hidden_size

    @property
    def convolved(self) -> int:
        """Channels of the convolution."""
        return self.inner

    @property
    def kv_heads(self) -> int:
        return 1

    @property
    def columns(self) -> int:
        return self.inner

    def window(self, layer: int) -> int | None:
        return None

    def turning(self, layer: int) -> str:
        return ""

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Axes of a recurrence's state."""
        return self.inner, self.state_size

    def state(self, layer: int) -> tuple[int, int] | None:
        return held(self)


def rates_of(config: Any, parameter: Tensor) -> Tensor:
    """Rates of a recurrence, below 0: folders have logarithms of their negatives, GGUF files themselves."""
    return -parameter.float().exp() if config.rates_are_logs else parameter.float()


def held(config: Any) -> tuple[int, int]:
    """What a mixer keeps of past positions: what was convolved, and the state of its recurrence."""
    return 1, config.convolved * (config.conv_kernel - 1) + prod(config.state_shape)


def step_bias(config: StateSpaceConfig, count: int) -> Tensor:
    """What softplus makes steps of, between ``time_step_min`` and ``time_step_max``, evenly in logarithms."""
    low, high = log(config.time_step_min), log(config.time_step_max)
    steps = empty(count).uniform_(low, high).exp().clamp(min=config.time_step_floor)
    return steps + (-(-steps).expm1()).log()


class Mixer(Module, ABC):
    """A causal convolution and a selective scan, gated.

    Args:
        config: the model's.
        layer: which layer of the cache is its own.
    """

    def __init__(self, config: Any, layer: int):
        super().__init__()
        self.layer, self.config, self.activation = layer, config, activation(config.hidden_act)
        wide = config.convolved
        self.conv1d = Conv1d(wide, wide, config.conv_kernel, groups=wide, bias=config.use_conv_bias)
        self.add_parameters(config)
        self.out_proj = Linear(config.inner, config.hidden_size, bias=config.use_bias)

    @abstractmethod
    def add_parameters(self, config: Any) -> None:
        """Make what the scan is given."""

    @abstractmethod
    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gate, what is convolved, and what steps are made of: (batch, time, channels) each."""

    @abstractmethod
    def scanned(self, x: Tensor, steps: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Arguments of the scan: those with an axis of time, and the others."""

    def scan(self, timed: Any, fixed: Any, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output of a scan, (batch, time, channels), and its last state."""
        (u, delta, B, C), (A, D) = timed, fixed
        return selective_scan(u, delta, A, B, C, D, initial_state=state)

    def scan_on(self, timed: Any, fixed: Any, state: Any) -> tuple[Tensor, Tensor, Tensor]:
        """A scan that goes on with a state: also gives that of the position before the last."""
        if timed[0].shape[1] == 1:
            return *self.scan(timed, fixed, state), state
        first, earlier = self.scan([x[:, :-1] for x in timed], fixed, state)
        end, last = self.scan([x[:, -1:] for x in timed], fixed, earlier)
        return cat([first, end], 1), last, earlier

    def gated(self, x: Tensor, gate: Tensor) -> Tensor:
        """What goes into the last product."""
        return x * F.silu(gate)

    def forward(self, x: Tensor, rotary: Any, cache: Any = None, mask: Tensor | None = None) -> Tensor:
        c, past = self.config, self.config.conv_kernel - 1
        seen = None if mask is None else mask.diagonal(0, 2, 3).transpose(1, 2)
        gate, x, steps = self.project(x if seen is None else x * seen)
        x, state = x.transpose(1, 2), None
        if cache is None:
            x = F.pad(x, (past, 0))
        else:
            kept = cache.past(self.layer).view(x.shape[0], -1)
            columns = c.convolved * past
            state = kept[:, columns:].reshape(-1, *c.state_shape)
            x = cat([kept[:, :columns].reshape(-1, c.convolved, past), x], 2)
        convolved = self.activation(self.conv1d(x)).transpose(1, 2)
        given = self.scanned(convolved if seen is None else convolved * seen, steps)
        if cache is None:
            out, _ = self.scan(*given)
        else:
            out, last, earlier = self.scan_on(*given, state)
            cache.keep(self.layer, _packed(x[:, :, -past:], last), _packed(x[:, :, -past - 1 : -1], earlier))
        return self.out_proj(self.gated(out, gate))


def _packed(*parts: Tensor) -> Tensor:
    """States of the convolution and the recurrence as one: (batch, 1, columns)."""
    return cat([part.reshape(part.shape[0], 1, -1) for part in parts], 2)


class StateSpaceLayer(Module):
    """A norm and a mixer, beside a residual.

    Args:
        config: the model's, whose ``mixer_class`` is the mixer.
        layer: its number.
    """

    def __init__(self, config: Any, layer: int):
        super().__init__()
        self.norm, self.mixer = config.norm(), config.mixer_class(config, layer)

    def forward(self, x: Tensor, rotary: Any, cache: Any = None, mask: Tensor | None = None) -> Tensor:
        return x + self.mixer(self.norm(x), rotary, cache, mask)


class StateSpaceModel(Decoder):
    """Embedding, layers with mixers, final norm."""

    layer_class = StateSpaceLayer
    keeps_embedding = False


GGUF_MIXER = {
    name: f"backbone.layers.{{}}.mixer.{path}"
    for name, path in {
        "blk.{}.ssm_in": "in_proj", "blk.{}.ssm_conv1d": "conv1d", "blk.{}.ssm_x": "x_proj",
        "blk.{}.ssm_a": "A_log", "blk.{}.ssm_d": "D", "blk.{}.ssm_norm": "norm", "blk.{}.ssm_out": "out_proj",
    }.items()
}  # fmt: skip


class StateSpaceLM(CausalLM):
    """A state-space model with a head over the vocabulary; the lens calls its mixers attention.

    Args:
        config: a `StateSpaceConfig`.
    """

    model_class = StateSpaceModel
    points: ClassVar[Mapping[str, str | None]] = dict.fromkeys(("q", "k", "z", "head_out"))
