"""SmolLM3: Llama with some layers whose queries and keys have no positions (NoPE).

Hugging Face 2025, "SmolLM3: smol, multilingual, long-context reasoner". Attribute paths are the tensor names
of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import FormatError
from ..weights.fields import FLAG, Field, listed, whole
from .decoder_config import LAYER_KINDS, WINDOW, DecoderConfig
from .language_model import CausalLM


@dataclass(frozen=True)
class SmolLM3Config(DecoderConfig):
    """Fields are the keys of ``config.json``; without ``no_rope_layers`` each fourth has no positions."""

    table: ClassVar[Mapping[str, Field]] = {
        **DecoderConfig.table, **WINDOW, **LAYER_KINDS, "attention_bias": FLAG, "mlp_bias": FLAG,
        "no_rope_layers": listed(whole(0, 1), 4096), "no_rope_layer_interval": whole(1, 4096),
        "use_sliding_window": FLAG,
    }  # fmt: skip
    gguf_settings: ClassVar[Mapping[str, Any]] = {"rope_interleaved": True}
    max_position_embeddings: int = 32768
    rope_theta: float = 2e6
    tie_word_embeddings: bool = True
    no_rope_layers: list[int] | None = None
    no_rope_layer_interval: int = 4
    use_sliding_window: bool = False

    def checked(self, where: str):
        if self.no_rope_layers is not None and len(self.no_rope_layers) != self.num_hidden_layers:
            raise FormatError(
                f"{where}: no_rope_layers has {len(self.no_rope_layers)} entries for "
                f"{self.num_hidden_layers} layers. The file is damaged."
            )
        return super().checked(where)

    def turning(self, layer: int) -> str:
        if self.no_rope_layers is None:
            return "rotary_emb" if (layer + 1) % self.no_rope_layer_interval else ""
        return "rotary_emb" if self.no_rope_layers[layer] else ""

    def window(self, layer: int) -> int | None:
        return super().window(layer) if self.use_sliding_window else None


class SmolLM3ForCausalLM(CausalLM):
    """SmolLM3 with a head over the vocabulary.

    Args:
        config: a `SmolLM3Config`.
    """

    config_class = SmolLM3Config
    model_types = ("smollm3",)
    gguf_architectures = ("smollm3",)
