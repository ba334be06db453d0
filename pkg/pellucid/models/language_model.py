"""What causal language models share: the head over the vocabulary, the loss, the cache, and `generate`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from ..errors import ShapeError
from ..nn import functional as F
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..tensors.tensor import Tensor
from .cache import KVCache
from .decoder import Decoder, part
from .output import CausalLMOutput
from .pretrained import REGISTRIES, PretrainedModel

# Classes by the model_type of a config.json, and by the general.architecture of a GGUF.
MODEL_TYPES = REGISTRIES["AutoModelForCausalLM"].model_types
GGUF_ARCHITECTURES = REGISTRIES["AutoModelForCausalLM"].gguf_architectures


class CausalLM(PretrainedModel):
    """A model with a head over the vocabulary; `AutoModelForCausalLM` knows a subclass once it is defined.

    ``config_class`` and ``model_class``, the layers below the head, say what it is; see `PretrainedModel`.
    Names in a GGUF and points of the lens follow from the configuration's names, but for those that
    ``gguf_names`` and ``points`` say.

    Args:
        config: of the class's ``config_class``.
    """

    auto = "AutoModelForCausalLM"
    model_class: ClassVar[type[Any]] = Decoder

    def __init__(self, config):
        super().__init__()
        self.config, self._names = config, config.module_names
        owner: Module = self
        *outer, name = self._names.decoder.split(".")
        for attribute in outer:
            setattr(owner, attribute, Module())
            owner = getattr(owner, attribute)
        setattr(owner, name, self.model_class(config))
        head = Linear(config.embedding_columns, config.vocab_size, bias=config.head_bias)
        setattr(self, self._names.head, head)
        self.__dict__["points"] = {**self._names.points(config), **type(self).points}
        self.tie_weights()

    def ties(self) -> dict[str, str]:
        if not self.config.tie_word_embeddings:
            return {}
        names = self._names
        return {f"{names.head}.weight": f"{names.decoder}.{names.embedding}.weight"}

    def paths(self, names: Iterable[str]) -> dict[str, str]:
        given, base, own = list(names), self._names.decoder.split(".")[0], set(self.state_dict())
        if any(name.startswith(f"{base}.") for name in given):
            return super().paths(given)
        # Files of the layers alone, as some models have them, leave the first name out.
        full = {f"{base}.{name}" if f"{base}.{name}" in own else name: name for name in given}
        return {full[name]: path for name, path in super().paths(full).items()}

    @property
    def decoder(self) -> Any:
        """The layers below the head."""
        return self.get_submodule(self._names.decoder)

    @property
    def layers_path(self) -> str:
        """Where the layers lie, as the lens names them: their numbers follow."""
        return f"{self._names.decoder}.{self._names.layers}"

    def gguf_paths(self) -> dict[str, str]:
        """Attribute paths by name in a GGUF, both without ``.weight``."""
        return {**self._names.gguf(), **self.gguf_names}

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
            value_dim=c.value_columns,
            windows=[c.window(k) for k in range(c.num_hidden_layers)],
            states=[c.state(k) for k in range(c.num_hidden_layers)],
            original_positions=self.original_positions,
            device=self.device,
        )

    @property
    def original_positions(self) -> int | None:
        """Positions after which all of a text are turned otherwise, as LongRoPE does; None where none are."""
        turnings = (getattr(self.decoder, name) for name in filter(None, {*self.decoder.turnings}))
        return min((t.original for t in turnings if t.original is not None), default=None)

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
        hidden = self.decoder(input_ids, cache, attention_mask, keep)
        if logits_to_keep:
            hidden = hidden[:, -logits_to_keep:]
        logits = self.logits(hidden)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(
                logits[:, :-1].reshape(-1, logits.shape[-1]).float(), labels[:, 1:].reshape(-1)
            )
        return CausalLMOutput(loss, logits, cache, tuple(keep) if keep is not None else None)

    def next_logits(self, ids: Tensor, cache: KVCache) -> Tensor:
        """Logits (batch, vocab) of what follows ids that continue a cache."""
        logits = self(ids, past_key_values=cache, logits_to_keep=1).logits
        return logits[:, -1]

    def unembed(self, hidden: Tensor) -> Tensor:
        """What the model would say if a layer's output were its last: final norm, then the head."""
        return self.logits(part(self.decoder, self._names.norm, hidden))

    def logits(self, hidden: Tensor) -> Tensor:
        """What the head says of normed hidden states."""
        c, logits = self.config, getattr(self, self._names.head)(hidden)
        if c.logit_factor != 1:
            logits = logits * c.logit_factor
        return (logits / c.head_soft_cap).tanh() * c.head_soft_cap if c.head_soft_cap else logits

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
