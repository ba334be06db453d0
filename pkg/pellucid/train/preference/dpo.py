"""Direct preference optimization: of two answers, the preferred one becomes more likely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentError, RangeError
from ...nn import functional as F
from ...nn.modules.module import Module
from ...tensors.tensor import Tensor
from ..arguments import TrainingArguments
from ..trainer import Trainer
from .likelihood import answers_of, token_log_probs

# The loss by how much more the preferred answer gained than the other one, times beta.
_LOSSES: dict[str, Callable[[Tensor, float, float], Tensor]] = {
    "sigmoid": lambda gain, beta, e: -F.logsigmoid(beta * gain) * (1 - e) - F.logsigmoid(-beta * gain) * e,
    "hinge": lambda gain, beta, e: (1 - beta * gain).relu(),
    "ipo": lambda gain, beta, e: (gain - 1 / (2 * beta)) ** 2,
}


@dataclass
class DPOConfig(TrainingArguments):
    """The settings of a `DPOTrainer`: those of `TrainingArguments`, and

    Args:
        beta: how much a departure from the reference costs.
        loss_type: "sigmoid", "hinge" or "ipo".
        label_smoothing: the share of pairs that are thought to be the wrong way round.
        pad_to_multiple_of: lengths are a multiple of this: a captured step serves all batches of one shape.

    Raises:
        RangeError: a setting is out of range.

    Source: Rafailov et al. 2023, "Direct Preference Optimization"; https://huggingface.co/docs/trl/dpo_trainer
    """

    learning_rate: float = 1e-6
    beta: float = 0.1
    loss_type: str = "sigmoid"
    label_smoothing: float = 0.0
    pad_to_multiple_of: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss_type not in _LOSSES:
            raise RangeError(
                f"DPOConfig: loss_type must be one of {', '.join(_LOSSES)}, not {self.loss_type!r}."
            )
        if not self.beta > 0 or not 0 <= self.label_smoothing < 0.5:
            raise RangeError(
                f"DPOConfig: beta must be above 0 and label_smoothing from 0 to below 0.5; they are "
                f"{self.beta!r} and {self.label_smoothing!r}."
            )


def dpo_loss(
    chosen: Tensor, rejected: Tensor, ref_chosen: Tensor, ref_rejected: Tensor, args: DPOConfig
) -> Tensor:
    """The mean loss of pairs.

    Args:
        chosen, rejected: (pairs,) log-likelihoods of answers by the model.
        ref_chosen, ref_rejected: those by the reference.
        args: with ``beta`` and ``loss_type``.
    """
    gain = (chosen - rejected) - (ref_chosen - ref_rejected)
    return _LOSSES[args.loss_type](gain, args.beta, args.label_smoothing).mean()


class DPOTrainer(Trainer):
    """Trains a causal language model on pairs of answers.

    The reference is the model as it was: with an adapter, the model without it; else ``ref_model``.

    Args:
        model: a `CausalLM`, or a `PeftModel` of one.
        ref_model: the reference; needed where the model is no `PeftModel`.
        args: a `DPOConfig`.
        train_dataset, eval_dataset: examples with ``prompt``, ``chosen`` and ``rejected``: ids, or texts
            for the tokenizer.
        processing_class: the tokenizer.
        more: further arguments of `Trainer`.

    Raises:
        ArgumentError: there is no reference.

    Source: https://huggingface.co/docs/trl/dpo_trainer
    """

    def __init__(
        self,
        model: Module,
        ref_model: Module | None = None,
        args: DPOConfig | None = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        **more: Any,
    ):
        if ref_model is None and not hasattr(model, "disable_adapter"):
            raise ArgumentError(
                "DPOTrainer: needs ref_model, the model as it is now (load it again), or a PeftModel, whose "
                "reference is the model without its adapter."
            )
        self.ref_model = ref_model
        if ref_model is not None:
            ref_model.requires_grad_(False)
            ref_model.eval()
        super().__init__(
            model, args or DPOConfig(), self._collate, train_dataset, eval_dataset, processing_class, **more
        )

    args: DPOConfig

    def _collate(self, examples: list[Any]) -> dict[str, Tensor]:
        t = self.processing_class
        pairs = [
            tuple(_ids(example, name, t) for name in ("prompt", "chosen", "rejected")) for example in examples
        ]
        # The chosen answers first, then the others.
        rows = [(p, c) for p, c, _ in pairs] + [(p, r) for p, _, r in pairs]
        fill = getattr(t, "pad_token_id", None) or getattr(t, "eos_token_id", None) or 0
        return answers_of(rows, fill, self.args.pad_to_multiple_of)

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        own = self._sums(model, inputs)
        with no_grad():
            if self.ref_model is not None:
                reference = self._sums(self.ref_model, inputs)
            else:
                with model.disable_adapter():
                    reference = self._sums(model, inputs)
        half = own.shape[0] // 2
        loss = dpo_loss(own[:half], own[half:], reference[:half], reference[half:], self.args)
        if not return_outputs:
            return loss
        rewards = (own - reference).detach() * self.args.beta
        return loss, {"rewards_chosen": rewards[:half], "rewards_rejected": rewards[half:]}

    def _sums(self, model: Any, inputs: dict[str, Tensor]) -> Tensor:
        """(rows,) log-likelihoods of answers; means with "ipo"."""
        each, there = token_log_probs(model, inputs)
        total = (each * there).sum(1)
        return total / there.sum(1) if self.args.loss_type == "ipo" else total

    def items(self, batch: Any) -> None:
        """None: pairs count alike, whatever their lengths."""
        return None

    def uses(self, collate: Callable) -> Callable:
        """The collate function as it is: it takes texts."""
        return collate


def _ids(example: Mapping[str, Any], name: str, tokenizer: Any) -> list[int]:
    if name not in example:
        raise ArgumentError(f"train_dataset: an example has {', '.join(example)} and no {name}.")
    value = example[name]
    if not isinstance(value, str):
        return list(value)
    if tokenizer is None:
        raise ArgumentError(f"train_dataset: {name} is a text, which needs processing_class, a tokenizer.")
    ids = list(tokenizer(value, add_special_tokens=name == "prompt").input_ids)
    end = tokenizer.eos_token_id
    return ids if name == "prompt" or end is None else [*ids, end]


__all__ = ["DPOConfig", "DPOTrainer", "dpo_loss"]
