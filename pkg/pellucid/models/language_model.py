"""What causal language models share: the head over the vocabulary, the loss, the cache, and `generate`."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ShapeError
from ..nn import functional as F
from ..nn.modules.linear import Linear
from ..ops.shape.creation import arange
from ..tensors.tensor import Tensor
from .cache import KVCache
from .output import CausalLMOutput
from .pretrained import REGISTRIES, PretrainedModel

# Classes by the model_type of a config.json, and by the general.architecture of a GGUF.
MODEL_TYPES = REGISTRIES["AutoModelForCausalLM"].model_types
GGUF_ARCHITECTURES = REGISTRIES["AutoModelForCausalLM"].gguf_architectures


def causal_mask(attention_mask: Tensor | None, ids: Tensor, cache: KVCache | None) -> Tensor | None:
    """Which keys each position sees, where padding is masked: (batch, 1, time, time) or None.

    Raises:
        ShapeError: the mask does not fit the ids, or comes with a cache.
    """
    if attention_mask is None:
        return None
    if cache is not None:
        raise ShapeError(
            "attention_mask cannot be used together with a cache. Give prompts of one length, or call "
            "without past_key_values."
        )
    if attention_mask.shape != ids.shape:
        raise ShapeError(
            f"attention_mask of shape {tuple(attention_mask.shape)} must have the shape of the ids "
            f"{tuple(ids.shape)}."
        )
    steps = arange(ids.shape[1], device=ids.device)
    return (steps <= steps.unsqueeze(1)) & attention_mask.bool()[:, None, None, :]


class CausalLM(PretrainedModel):
    """A model with a head over the vocabulary; `AutoModelForCausalLM` knows a subclass once it is defined.

    ``config_class`` and ``model_class``, the layers below the head, say what it is; see `PretrainedModel`.

    Args:
        config: of the class's ``config_class``.
    """

    auto = "AutoModelForCausalLM"
    model_class: ClassVar[type[Any]]
    tied = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = self.model_class(config)
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False)
        self.tie_weights()

    def new_cache(self, batch: int = 1, capacity: int | None = None) -> KVCache:
        """A cache for this model.

        Args:
            batch: sequences.
            capacity: positions; all that the model has if not given.
        """
        c = self.config
        return KVCache(
            c.num_hidden_layers,
            batch,
            c.kv_heads,
            capacity or c.max_position_embeddings,
            c.columns,
            device=self.device,
        )

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
        logits_to_keep: int = 0,
    ) -> CausalLMOutput:
        """Logits of the next id at every position.

        Args:
            input_ids: (batch, time), integers.
            attention_mask: (batch, time), 0 where padding is; only without a cache.
            past_key_values: a cache from `new_cache` or an earlier call; the ids continue it.
            labels: (batch, time); the loss is the mean cross entropy of predicting each from the ids
                before it; -100 is left out.
            use_cache: make a cache if none is given.
            output_hidden_states: also return the hidden states.
            logits_to_keep: logits of the last positions only; 0 for all.

        Returns:
            A `CausalLMOutput`.

        Raises:
            ShapeError: ids are not (batch, time).
            IndexOutOfRange: an id is not in the vocabulary; raised by the next read.
        """
        if input_ids.ndim != 2:
            raise ShapeError(
                f"forward: input_ids of shape {tuple(input_ids.shape)} must be (batch, time). Use "
                "ids.unsqueeze(0) for one sequence."
            )
        cache = past_key_values
        if cache is None and use_cache:
            cache = self.new_cache(input_ids.shape[0])
        keep: list[Tensor] | None = [] if output_hidden_states else None
        hidden = self.model(input_ids, cache, attention_mask, keep)
        if logits_to_keep:
            hidden = hidden[:, -logits_to_keep:]
        logits = self.lm_head(hidden)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(
                logits[:, :-1].reshape(-1, logits.shape[-1]).float(), labels[:, 1:].reshape(-1)
            )
        return CausalLMOutput(loss, logits, cache, tuple(keep) if keep is not None else None)

    def unembed(self, hidden: Tensor) -> Tensor:
        """What the model would say if a layer's output were its last: final norm, then the head."""
        return self.lm_head(self.model.norm(hidden))

    def generate(self, input_ids: Tensor, **settings) -> Tensor:
        """Continue sequences; see `pellucid.models.generate.generate`."""
        from .generate import generate

        return generate(self, input_ids, **settings)

    async def generate_async(self, input_ids: Tensor, **settings) -> Tensor:
        """The awaitable twin of `generate`."""
        from .generate import generate_async

        return await generate_async(self, input_ids, **settings)

    def stream(self, input_ids: Tensor, **settings):
        """The ids of one sequence as they come; see `pellucid.models.generate.stream`."""
        from .generate import stream

        return stream(self, input_ids, **settings)

    def stream_async(self, input_ids: Tensor, **settings):
        """The asynchronous twin of `stream`."""
        from .generate import stream_async

        return stream_async(self, input_ids, **settings)
