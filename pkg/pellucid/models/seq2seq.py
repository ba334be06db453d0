"""Encoder and decoder: a text is encoded once, and the decoder looks at it while it writes another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError, ShapeError
from ..nn import functional as F
from ..ops.elementwise.comparison import where
from ..ops.shape.creation import arange, full
from ..ops.shape.joining import cat
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .cache import KVCache
from .encoder import key_mask
from .output import EncoderOutput, Seq2SeqOutput
from .pretrained import PretrainedModel

Heads = tuple[Tensor, Tensor]  # keys and values (batch, heads, time, head_dim)


class Seq2SeqCache(KVCache):
    """A `KVCache` of the decoder's own positions, beside the keys and values of the encoded text.

    Args:
        config: the model's.
        cross: keys and values of every layer.
        mask: (batch, 1, 1, time) which positions of the text are seen, or None for all.
        sizes, device: as in `KVCache`.
    """

    def __init__(self, config: Any, cross: list[Heads], mask: Tensor | None, *sizes: int, device: Any = None):
        super().__init__(*sizes, device=device)
        self.cross, self.mask = cross, mask

    @property
    def memory(self) -> list[Tensor]:
        mask = [] if self.mask is None else [self.mask]
        return [*super().memory, *(x for pair in self.cross for x in pair), *mask]


@dataclass
class EncodedText:
    """What a decoder looks at.

    Args:
        encoded: (batch, time, dim), or None where the cache has what was made of it.
        seen: (batch, 1, 1, time), or None for all.
        cache: of the decoder.
    """

    encoded: Tensor | None
    seen: Tensor | None
    cache: Seq2SeqCache | None = None


def causal(ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Which keys each position of a decoder sees: (batch or 1, 1, time, time)."""
    steps = arange(ids.shape[1], device=ids.device)
    before = (steps <= steps.unsqueeze(1))[None, None]
    seen = key_mask(attention_mask, ids)
    return before if seen is None else before & seen


class Seq2SeqLM(PretrainedModel):
    """An encoder and a decoder with a head over the vocabulary; `AutoModelForSeq2SeqLM` loads it.

    A subclass has `encode`, `decode`, `cross` and `head`.

    Args:
        config: of the class's ``config_class``.
    """

    auto = "AutoModelForSeq2SeqLM"
    cache_class: ClassVar[type[Seq2SeqCache]] = Seq2SeqCache

    def encode(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        keep: list[Tensor] | None = None,
    ) -> Tensor:
        """The hidden states of a text: (batch, time, dim)."""
        raise NotImplementedError

    def decode(
        self, ids: Tensor, source: EncodedText, mask: Tensor | None = None, keep: list[Tensor] | None = None
    ) -> Tensor:
        """The hidden states of what is written: (batch, time, dim)."""
        raise NotImplementedError

    def cross(self, encoded: Tensor) -> list[Heads]:
        """What every layer of the decoder makes of the encoded text."""
        raise NotImplementedError

    def head(self, hidden: Tensor) -> Tensor:
        """Logits of ids."""
        raise NotImplementedError

    def new_cache(self, encoded: Tensor, attention_mask: Tensor | None, capacity: int) -> Seq2SeqCache:
        """A cache for writing about an encoded text.

        Args:
            encoded: (batch, time, dim), from `encode`.
            attention_mask: (batch, time) of the text, or None.
            capacity: positions that can be written.
        """
        cross = self.cross(encoded)
        _, heads, _, columns = cross[0][0].shape
        sizes = (len(cross), encoded.shape[0], heads, capacity, columns)
        return self.cache_class(
            self.config, cross, key_mask(attention_mask, encoded), *sizes, device=encoded.device
        )

    def shifted(self, ids: Tensor) -> Tensor:
        """Ids one place to the right, behind the id with which decoders begin; -100 is padding."""
        c = self.config
        start = full((ids.shape[0], 1), c.decoder_start_token_id, dtype=ids.dtype, device=ids.device)
        ids = cat([start, ids[:, :-1]], 1)
        return where(ids == -100, c.pad_token_id or 0, ids)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        *,
        encoder_outputs: EncoderOutput | tuple[Tensor, ...] | None = None,
        past_key_values: Seq2SeqCache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> Seq2SeqOutput:
        """Logits of the next id at every position of the decoder.

        Args:
            input_ids: (batch, time), the text.
            attention_mask: (batch, time), 0 where its padding is.
            decoder_input_ids: (batch, time), what is written so far; the labels shifted if not given.
            decoder_attention_mask: (batch, time), 0 where padding of these is; only without a cache.
            encoder_outputs: the encoder's result, which is then not computed.
            past_key_values: a cache from `new_cache`, which knows the text; the decoder's ids continue it.
            inputs_embeds: (batch, time, dim), instead of the text's ids.
            labels: (batch, time) what is to be written; -100 is left out.
            output_hidden_states: also return the hidden states of both.

        Returns:
            A `Seq2SeqOutput`.

        Raises:
            ArgumentError: there is nothing to encode or to decode.
            ShapeError: a mask does not fit, or comes with a cache.
        """
        keep = ([], []) if output_hidden_states else (None, None)
        encoded, states = None, None
        if encoder_outputs is not None:
            encoded = encoder_outputs[0]
            states = getattr(encoder_outputs, "hidden_states", None)
        elif input_ids is not None or inputs_embeds is not None:
            encoded = self.encode(input_ids, attention_mask, inputs_embeds, keep[0])
            states = tuple(keep[0]) if keep[0] is not None else None
        elif past_key_values is None:
            raise ArgumentError("forward: give input_ids, encoder_outputs or past_key_values.")
        if decoder_input_ids is None:
            decoder_input_ids = self.written(input_ids, labels)
        if decoder_attention_mask is not None and past_key_values is not None:
            raise ShapeError("forward: decoder_attention_mask cannot be used together with a cache.")
        if past_key_values is not None:
            source = EncodedText(None, past_key_values.mask, past_key_values)
        else:
            assert encoded is not None
            source = EncodedText(encoded, key_mask(attention_mask, encoded))
        hidden = self.decode(decoder_input_ids, source, decoder_attention_mask, keep[1])
        logits = self.head(hidden)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        shown = tuple(keep[1]) if keep[1] is not None else None
        return Seq2SeqOutput(loss, logits, past_key_values, shown, encoded, states)

    def written(self, input_ids: Tensor | None, labels: Tensor | None) -> Tensor:
        """What the decoder is given where nothing is: the labels, shifted."""
        if labels is None:
            raise ArgumentError("forward: give decoder_input_ids or labels, or call generate.")
        return self.shifted(labels)

    def next_logits(self, ids: Tensor, cache: Seq2SeqCache) -> Tensor:
        """Logits (batch, vocab) of what follows ids that continue a cache."""
        return self.head(self.decode(ids, EncodedText(None, cache.mask, cache))[:, -1:])[:, -1]

    def _begin(self, inputs: Any, given: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        """The first ids of the decoder, and the settings with a cache that has the encoded text."""
        from .generate.config import settings_of
        from .generate.loop import rounded

        mask, started = given.pop("attention_mask", None), given.pop("decoder_input_ids", None)
        if isinstance(inputs, Mapping) or hasattr(inputs, "keys"):
            mask = inputs["attention_mask"] if mask is None and "attention_mask" in inputs else mask
            inputs = inputs["input_ids"]
        ids, mask = (
            x if x is None or isinstance(x, Tensor) else tensor(x, device=self.device) for x in (inputs, mask)
        )
        if ids is None or ids.ndim not in (1, 2) or not ids.shape[-1]:
            raise ShapeError(
                "generate: ids must be (batch, time) with at least one position. Give input_ids, or what a "
                "tokenizer returns."
            )
        ids = ids.reshape(-1, ids.shape[-1]).to(self.device)
        config = settings_of(self, dict(given))
        if mask is None and config.pad_token_id is not None and config.pad_token_id not in config.stops:
            mask = ids != config.pad_token_id
        if started is None:
            start = config.decoder_start_token_id
            start = self.config.decoder_start_token_id if start is None else start
            started = full((ids.shape[0], 1), start, dtype=ids.dtype, device=self.device)
        elif not isinstance(started, Tensor):
            started = tensor(started, device=self.device)
        needed = rounded(started.shape[-1] + config.max_new_tokens)
        mask = mask.reshape(ids.shape).to(self.device) if mask is not None else None
        with no_grad():
            encoded = self.encode(ids, mask)
            cache = self.new_cache(encoded, mask, min(needed, self.config.max_position_embeddings))
        return started, {**given, "past_key_values": cache}

    def generate(self, input_ids: Any = None, **settings: Any) -> Tensor:
        """Write a text about another: it is encoded once, then ids are chosen one by one.

        Args:
            input_ids: (batch, time) ids of the text, or what a tokenizer returns.
            settings: ``attention_mask=`` of the text; ``decoder_input_ids=`` to begin with, else the one id
                ``decoder_start_token_id``; others as in `pellucid.models.generate.generate`.

        Returns:
            The decoder's ids: (batch, 1 + new). Beams are not searched, also where a checkpoint's settings
            say so.
        """
        from .generate import generate

        start, settings = self._begin(input_ids, settings)
        return generate(self, start, **settings)

    async def generate_async(self, input_ids: Any = None, **settings: Any) -> Tensor:
        """The awaitable twin of `generate`."""
        from .generate import generate_async

        start, settings = self._begin(input_ids, settings)
        return await generate_async(self, start, **settings)

    def stream(self, input_ids: Any = None, **settings: Any):
        """The ids that are written about one text as they come; see `generate`."""
        from .generate import stream

        start, settings = self._begin(input_ids, settings)
        return stream(self, start, **settings)

    def stream_async(self, input_ids: Any = None, **settings: Any):
        """The asynchronous twin of `stream`."""
        from .generate import stream_async

        start, settings = self._begin(input_ids, settings)
        return stream_async(self, start, **settings)
