"""Pipelines from text to text, and to the numbers of its tokens."""

from __future__ import annotations

from typing import Any

from .base import Pipeline, Steps


class FeatureExtractionPipeline(Pipeline):
    """The hidden states of a text."""

    def one(self, given: Any, *, return_tensors: bool = False, **settings: Any) -> Steps:
        """Numbers (1, time, dim) as lists.

        Args:
            given: a text.
            return_tensors: whether they are a tensor instead.
            settings: of the tokenizer.
        """
        hidden = self.run(self.encoded(given, **settings)).last_hidden_state
        return hidden if return_tensors else (yield hidden, "tolist", (), {})


class TextGenerationPipeline(Pipeline):
    """Text that goes on."""

    def steps(self, inputs: Any, **settings: Any) -> Steps:
        is_chat = isinstance(inputs, list) and bool(inputs) and isinstance(inputs[0], dict)
        if not is_chat:
            return (yield from super().steps(inputs, **settings))
        return (yield from self.one(inputs, **settings))

    def one(self, given: Any, *, return_full_text: bool = True, **settings: Any) -> Steps:
        """``[{"generated_text": ...}]``: a text, or the messages of a chat with the answer behind them.

        Args:
            given: a text, or messages of ``role`` and ``content``.
            return_full_text: whether the text itself comes first.
            settings: as in `pellucid.models.generate.generate`.
        """
        if isinstance(given, str):
            ids = self.encoded(given)["input_ids"]
        else:
            ids = self.tokenizer.apply_chat_template(given, add_generation_prompt=True)
        out = yield self.model, "generate", ([ids],), settings
        ids = (yield out, "tolist", (), {})[0][len(ids) :]
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        if isinstance(given, str):
            return [{"generated_text": given + text if return_full_text else text}]
        answer = [*given, {"role": "assistant", "content": text}]
        return [{"generated_text": answer if return_full_text else text}]


class Text2TextGenerationPipeline(Pipeline):
    """A text about another."""

    key = "generated_text"

    def steps(self, inputs: Any, **settings: Any) -> Steps:
        found = yield from super().steps(inputs, **settings)
        return [found] if isinstance(inputs, str) else found

    def one(self, given: Any, *, truncation: bool = False, **settings: Any) -> Steps:
        """``{"generated_text": ...}``.

        Args:
            given: a text, with what the model wants before it, such as ``"summarize: "`` for T5.
            truncation: whether a text that is too long is cut.
            settings: as in `pellucid.models.generate.generate`.
        """
        encoded = self.encoded(given, truncation=truncation)
        out = yield self.model, "generate", ([encoded["input_ids"]],), settings
        ids = yield out[0], "tolist", (), {}
        return {self.key: self.tokenizer.decode(ids, skip_special_tokens=True)}


class SummarizationPipeline(Text2TextGenerationPipeline):
    """The short form of a text, as ``summary_text``."""

    key = "summary_text"


class TranslationPipeline(Text2TextGenerationPipeline):
    """A text in another language, as ``translation_text``."""

    key = "translation_text"
