"""gpt-oss: experts with a clamped SwiGLU, attention with sinks, and a window in every other layer.

OpenAI 2025, "gpt-oss-120b & gpt-oss-20b model card"; Xiao et al. 2023, "Efficient streaming language models
with attention sinks". Attribute paths are the tensor names of its checkpoints, with ``.weight`` and ``.bias``
at the ends of those of experts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..errors import ArgumentError
from ..nn.modules.module import Module
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, number, whole
from .decoder import Decoder
from .decoder_config import LAYER_KINDS, WINDOW, DecoderConfig
from .experts import (
    ExpertConv1D,
    ExpertLinear,
    Experts,
    Router,
    SparseCausalLM,
    SparseDecoderLayer,
    check_experts,
)
from .names import Names

_PRODUCT = re.compile(r"(.*\.experts\.(?:gate_up|down)_proj)(_bias)?")


@dataclass(frozen=True)
class GptOssConfig(DecoderConfig):
    """Fields are the keys of ``config.json``, but ``num_local_experts`` is ``num_experts``.

    Without ``layer_types`` every other layer has a window, from the first one. A GGUF decides
    ``gates_apart``: it has gates and ups in two weights, where a folder has them in turn in one.
    """

    table: ClassVar[Mapping[str, Field]] = {
        **DecoderConfig.table, **WINDOW, **LAYER_KINDS, "attention_bias": FLAG,
        "num_experts": whole(1, 65536), "num_experts_per_tok": whole(1, 65536),
        "swiglu_alpha": number(0, 1e3), "swiglu_limit": number(0, 1e6, above=True), "gates_apart": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {
        "num_local_experts": "num_experts", "experts_per_token": "num_experts_per_tok",
    }  # fmt: skip
    neutral: ClassVar[Mapping[str, Any]] = {"initial_context_length": 4096}
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **{key: value for key, value in DecoderConfig.gguf_keys.items() if key != "intermediate_size"},
        "num_experts": "expert_count",
        "num_experts_per_tok": "expert_used_count",
        "intermediate_size": "expert_feed_forward_length",
        "sliding_window": "attention.sliding_window",
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {"gates_apart": True}
    names: ClassVar[Names] = replace(DecoderConfig.names, sinks="sinks")
    norm_topk_prob: ClassVar[bool] = True
    head_dim: int | None = 64
    intermediate_size: int = 2880
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 150000.0
    attention_bias: bool = True
    sliding_window: int | None = 128
    num_experts: int = 128
    num_experts_per_tok: int = 4
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0
    gates_apart: bool = False

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        config = super().from_gguf(checkpoint)
        # The range of columns that are slowed down in part is not rounded.
        scaling = config.rope_scaling and {**config.rope_scaling, "truncate": False}
        return replace(config, rope_scaling=scaling)

    def checked(self, where: str) -> Self:
        config = super().checked(where)
        check_experts(where, self.num_experts_per_tok, self.num_experts)
        return config

    def window(self, layer: int) -> int | None:
        if self.layer_types is None and layer % 2:
            return None
        return super().window(layer)

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer has experts: all have."""
        return True


class GptOssExperts(Experts):
    """Feed-forwards ``down((up(x) + 1) * g * sigmoid(alpha * g))``, where ``g`` is ``gate(x)``.

    Both are clamped: the gate from above, the up from both sides.

    Args:
        config: the model's.
    """

    def __init__(self, config: GptOssConfig):
        first, second = ("gate_proj", "up_proj") if config.gates_apart else ("gate_up_proj",) * 2
        super().__init__(config, config.num_experts, config.intermediate_size, (first, second, "down_proj"))
        self.alpha, self.limit = config.swiglu_alpha, config.swiglu_limit

    def add_products(self, config: Any, columns: int, kind: type[ExpertLinear] = ExpertLinear) -> None:
        count, dim = self.count, config.hidden_size
        for name in set(self.names[:2]):
            setattr(self, name, kind(count, dim, columns if config.gates_apart else 2 * columns, True))
        self.down_proj = kind(count, columns, dim, True)

    def mixed(self, x: Tensor, chosen: Tensor) -> Tensor:
        gate = getattr(self, self.names[0])(x, chosen)
        if self.names[0] == self.names[1]:
            gate, up = gate[..., ::2], gate[..., 1::2]
        else:
            up = getattr(self, self.names[1])(x, chosen)
        gate, up = gate.clamp(max=self.limit), up.clamp(-self.limit, self.limit)
        return (up + 1) * gate * (gate * self.alpha).sigmoid()


class GptOssFeedForward(Module):
    """A router with a bias and its experts: each token takes the most likely ones.

    Args:
        config: the model's.
    """

    def __init__(self, config: GptOssConfig):
        super().__init__()
        self.router, self.experts = Router(config, bias=True), GptOssExperts(config)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        shares, chosen = self.router(flat)
        return self.experts(flat, chosen, shares).reshape(x.shape)


class GptOssDecoderLayer(SparseDecoderLayer):
    """A layer with such experts."""

    sparse_class = GptOssFeedForward


class GptOssModel(Decoder):
    """A decoder with such layers."""

    layer_class = GptOssDecoderLayer


class GptOssForCausalLM(SparseCausalLM):
    """gpt-oss with a head over the vocabulary.

    Args:
        config: a `GptOssConfig`.
    """

    config_class = GptOssConfig
    model_class = GptOssModel
    model_types = ("gpt_oss",)
    gguf_architectures = ("gpt-oss",)
    gguf_names = {
        "blk.{}.post_attention_norm": "model.layers.{}.post_attention_layernorm",
        "blk.{}.attn_sinks.weight": "model.layers.{}.self_attn.sinks",
    }
    gguf_experts = {**SparseCausalLM.gguf_experts, "ffn_gate_inp": "router"}

    def fit(self, names: Iterable[str]) -> None:
        # Floats lie transposed, blocks of MXFP4 do not.
        if any(name.endswith("experts.down_proj") for name in names):
            self.lay_out_floats()

    def lay_out_floats(self) -> None:
        for layer in self.decoder.layers:
            layer.mlp.experts.add_products(self.config, self.config.intermediate_size, ExpertConv1D)

    def folder_names(self, path: str, shape: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
        stem, is_expert, name = path.partition(".experts.")
        if not is_expert:
            return super().folder_names(path, shape)
        product, _, kind = name.rpartition(".")
        if kind == "bias":
            return [(f"{stem}.experts.{product}_bias", shape)]
        experts: Any = self.get_submodule(f"{stem}.experts")
        if not hasattr(getattr(experts, product), "transposed_parts"):
            raise ArgumentError(
                "save_pretrained: a folder has the experts of gpt-oss transposed, as floats. Load such a "
                "folder, and give it these weights by load_state_dict()."
            )
        return [(f"{stem}.experts.{product}", (experts.count, shape[0] // experts.count, shape[1]))]

    def paths(self, names: Iterable[str]) -> dict[str, str]:
        def path(name: str) -> str:
            found = _PRODUCT.fullmatch(name)
            return f"{found[1]}.{'bias' if found[2] else 'weight'}" if found else name

        given = {path(name): name for name in names}
        return {given[name]: target for name, target in super().paths(given).items()}
