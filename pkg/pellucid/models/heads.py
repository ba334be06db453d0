"""Heads of encoders: ids behind masks, labels of texts and of tokens, answers to questions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..nn import functional as F
from ..nn.modules.dropout import Dropout
from ..nn.modules.linear import Linear
from ..tensors.tensor import Tensor
from .encoder import Encoder
from .output import AnswerOutput, EncoderOutput, HeadOutput
from .pretrained import PretrainedModel


class Head(PretrainedModel):
    """An encoder with a head. A subclass says which encoder by ``model_class``.

    Args:
        config: of the encoder.
    """

    model_class: ClassVar[type[Encoder]]
    pooled: ClassVar[bool] = False  # whether the head takes the encoder's pooler

    def __init_subclass__(cls, **settings: Any):
        if "model_class" in vars(cls):
            below = cls.model_class
            cls.config_class, cls.prefix = below.config_class, below.prefix
            cls.model_types, cls.passed = below.model_types, () if cls.pooled else below.passed
        super().__init_subclass__(**settings)

    def __init__(self, config: Any):
        super().__init__()
        self.config = config
        setattr(self, self.prefix, self.model_class(config, add_pooling_layer=self.pooled))
        self.build(config)
        self.tie_weights()

    def build(self, config: Any) -> None:
        """Make the parts of the head."""

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        """What the head makes of the encoder's result."""
        raise NotImplementedError

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean cross entropy of the labels; -100 is left out."""
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        labels: Tensor | None = None,
        **inputs: Any,
    ) -> HeadOutput | AnswerOutput:
        """Logits of the head.

        Args:
            input_ids, attention_mask, inputs: as in `Encoder.forward`.
            labels: the numbers of the right labels; the loss is about these.
        """
        out = getattr(self, self.prefix)(input_ids, attention_mask, **inputs)
        logits = self.logits(out, attention_mask)
        loss = None if labels is None else self.loss(logits, labels)
        return HeadOutput(loss, logits, out.hidden_states)


class MaskedLM(Head):
    """An encoder that says which ids are behind masks."""

    auto = "AutoModelForMaskedLM"


class SequenceClassifier(Head):
    """An encoder that gives a text a label, by its pooler."""

    auto = "AutoModelForSequenceClassification"
    pooled = True

    def build(self, config: Any) -> None:
        self.dropout = Dropout(config.head_dropout)
        self.classifier = Linear(config.hidden_size, config.num_labels)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.classifier(self.dropout(out.pooler_output))

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross entropy of labels that are numbers, mean squared error of a single float, or of several
        floats the cross entropies of yes and no; ``problem_type`` of the configuration may say so, too."""
        kind = self.config.problem_type
        if kind is None and logits.shape[-1] == 1:
            kind = "regression"
        if kind is None and labels.is_floating_point():
            kind = "multi_label_classification"
        if kind == "regression":
            return F.mse_loss(logits.reshape(labels.shape), labels)
        if kind == "multi_label_classification":
            return F.binary_cross_entropy_with_logits(logits, labels)
        return super().loss(logits, labels)


class TokenClassifier(Head):
    """An encoder that gives every token a label."""

    auto = "AutoModelForTokenClassification"

    def build(self, config: Any) -> None:
        self.dropout = Dropout(config.head_dropout)
        self.classifier = Linear(config.hidden_size, config.num_labels)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        assert out.last_hidden_state is not None
        return self.classifier(self.dropout(out.last_hidden_state))


class QuestionAnswerer(Head):
    """An encoder that finds where the answer to a question begins and ends."""

    auto = "AutoModelForQuestionAnswering"

    def build(self, config: Any) -> None:
        self.qa_outputs = Linear(config.hidden_size, 2)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        assert out.last_hidden_state is not None
        return self.qa_outputs(out.last_hidden_state)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **inputs: Any,
    ) -> AnswerOutput:
        """How likely an answer begins and ends at each position.

        Args:
            input_ids, attention_mask, inputs: as in `Encoder.forward`.
            start_positions, end_positions: (batch,) the right positions; those behind the text are left out.
        """
        out = getattr(self, self.prefix)(input_ids, attention_mask, **inputs)
        ends = tuple(x.squeeze(-1) for x in self.logits(out, attention_mask).split(1, -1))
        loss = None
        if start_positions is not None and end_positions is not None:
            time = ends[0].shape[1]
            losses = [
                F.cross_entropy(x, y.reshape(-1).clamp(0, time), ignore_index=time)
                for x, y in zip(ends, (start_positions, end_positions), strict=True)
            ]
            loss = (losses[0] + losses[1]) / 2
        return AnswerOutput(loss, ends[0], ends[1], out.hidden_states)
