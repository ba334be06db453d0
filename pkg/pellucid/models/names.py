"""Names of a decoder's modules: those of its checkpoints, and what llama.cpp calls them in a GGUF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Name in a GGUF -> where it lies, and the fields of `Names` that make the rest of its path.
_PLACES = {
    "token_embd": ("decoder", "embedding"),
    "token_embd_norm": ("decoder", "embedding_norm"),
    "position_embd": ("decoder", "positions"),
    "output_norm": ("decoder", "norm"),
    "output": ("", "head"),
    "attn_norm": ("layer", "before_attention"),
    "post_attention_norm": ("layer", "after_attention"),
    "ffn_norm": ("layer", "before_mlp"),
    "post_ffw_norm": ("layer", "after_mlp"),
    "attn_q": ("attention", "query"),
    "attn_k": ("attention", "key"),
    "attn_v": ("attention", "value"),
    "attn_qkv": ("attention", "joined"),
    "attn_output": ("attention", "output"),
    "attn_q_norm": ("attention", "query_norm"),
    "attn_k_norm": ("attention", "key_norm"),
    "ffn_gate": ("mlp", "gate"),
    "ffn_up": ("mlp", "up"),
    "ffn_down": ("mlp", "down"),
}


@dataclass(frozen=True)
class Names:
    """Attributes of a decoder's modules; where one is empty, there is no such module.

    Args:
        decoder: path of the layers below the head; head: attribute of the head.
        embedding, positions, embedding_norm, layers, norm: of the decoder.
        attention, mlp, before_attention, after_attention, before_mlp, after_mlp: of a layer; the last four
            are norms. Without ``mlp`` a layer itself holds the feed-forward.
        query, key, value, output, query_norm, key_norm: of attention; ``joined`` is one product for query,
            key and value, ``sinks`` has scores of a key that is always there.
        gate, up, down: of a feed-forward; ``up`` makes the gate, too, where ``gate`` is empty.
    """

    decoder: str = "model"
    head: str = "lm_head"
    embedding: str = "embed_tokens"
    positions: str = ""
    embedding_norm: str = ""
    layers: str = "layers"
    norm: str = "norm"
    attention: str = "self_attn"
    mlp: str = "mlp"
    before_attention: str = "input_layernorm"
    after_attention: str = ""
    before_mlp: str = "post_attention_layernorm"
    after_mlp: str = ""
    query: str = "q_proj"
    key: str = "k_proj"
    value: str = "v_proj"
    joined: str = ""
    output: str = "o_proj"
    query_norm: str = ""
    key_norm: str = ""
    sinks: str = ""
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"

    def gguf(self) -> dict[str, str]:
        """Attribute paths by name in a GGUF, both without ``.weight``; ``{}`` is the number of a layer."""
        layer = f"{self.decoder}.{self.layers}.{{}}"
        bases = {
            "": "",
            "decoder": f"{self.decoder}.",
            "layer": f"{layer}.",
            "attention": f"{layer}.{self.attention}.",
            "mlp": f"{layer}.{self.mlp}." if self.mlp else f"{layer}.",
        }
        return {
            (f"blk.{{}}.{name}" if place in ("layer", "attention", "mlp") else name): bases[place] + own
            for name, (place, field) in _PLACES.items()
            if (own := getattr(self, field))
        }

    def points(self, config: Any) -> dict[str, str | None]:
        """What `pellucid.lens.points` finds under other names than Llama's.

        Args:
            config: the model's, which says what else differs.
        """
        found: dict[str, str | None] = {
            "layer": f"{self.decoder}.{self.layers}.{{}}",
            "attention": self.attention,
            "attention_norm": self.before_attention,
            "attention_end": self.output,
            "mlp": self.mlp,
            "mlp_norm": self.before_mlp,
            "mlp_gate": self.gate or self.up,
            "mlp_end": self.down,
            "embedding": f"{self.decoder}.{self.embedding}",
            "norm": f"{self.decoder}.{self.norm}",
            "head": self.head,
        }
        for name, own, k in (("q", self.query, 0), ("k", self.key, 1)):
            place = f"{{attention}}.{self.joined}:{k}" if self.joined else f"{{attention}}.{own}"
            found[name] = None if getattr(config, "joined_by_head", False) else place
        is_gated = getattr(config, "is_gated", True)
        if is_gated and not self.gate:
            found["mlp_pre"] = None
        if not self.mlp:
            found |= {"mlp_out": self.down, "mlp_mid": f"{self.down}<", "mlp_pre": self.up}
        # What is added to the residual is what the norms behind give.
        for name, norm in (("attn_out", self.after_attention), ("mlp_out", self.after_mlp)):
            if norm:
                found[name] = norm
        if getattr(config, "is_parallel", False):
            found["resid_mid"] = None
        return found
