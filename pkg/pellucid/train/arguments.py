"""TrainingArguments: the settings of a training run, by transformers' names and defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import ArgumentError, RangeError
from .optimizers import OPTIMIZERS
from .schedules import SCHEDULES

STRATEGIES = ("no", "steps", "epoch")
_COUNTS = (
    "per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps",
    "logging_steps", "save_steps",
)  # fmt: skip


@dataclass
class TrainingArguments:
    """The settings of a `Trainer`.

    Names, defaults and meanings are those of transformers; what a page has no use for (several devices, hubs,
    workers) is not there. ``torch_compile`` is on: a step is captured once and replayed as one submission.

    Args:
        output_dir: where checkpoints go: a folder, in a page also ``"opfs:NAME"``, a folder of the origin's
            private file system, which stays when the page is closed. None keeps nothing.
        per_device_train_batch_size, per_device_eval_batch_size: examples of a batch.
        num_train_epochs: passes over the data; a fraction ends within one.
        max_steps: optimizer steps, in place of epochs where it is positive.
        learning_rate: the highest one.
        weight_decay: of all parameters but biases and those of norms.
        optim: a name of `OPTIMIZERS`; ``optim_args`` are further settings of it.
        adam_beta1, adam_beta2, adam_epsilon: of Adam and AdamW.
        max_grad_norm: to which gradients are scaled down together; 0 leaves them.
        lr_scheduler_type: a name of `SCHEDULES`; ``lr_scheduler_kwargs`` are further settings of it.
        warmup_steps: steps of rising rates; below 1 it is a share of all steps.
        warmup_ratio: that share, where ``warmup_steps`` is 0.
        gradient_accumulation_steps: batches of a step.
        gradient_checkpointing: compute the activations of layers again in the backward. Runs eagerly.
        bf16, fp16: compute products in a half type; fp16 scales losses, so that gradients do not vanish.
        torch_compile: capture the step; False runs it eagerly.
        seed: of what the run draws. ``data_seed`` is that of the data's order, ``seed`` if None.
        logging_strategy, eval_strategy, save_strategy: "no", "steps" or "epoch"; ``logging_steps``,
            ``eval_steps`` and ``save_steps`` say after how many steps.
        logging_first_step: log after the first one, too.
        eval_delay: steps or epochs before the first evaluation.
        save_total_limit: checkpoints that stay, the best one among them.
        load_best_model_at_end: after training, give the model the weights of the best checkpoint.
        metric_for_best_model: "loss" or a metric of ``compute_metrics``.
        greater_is_better: None for what the metric's name says: losses fall.
        dataloader_drop_last: leave out a last batch that is smaller.
        label_names: inputs that are labels.
        ignore_data_skip: a resumed run begins its epoch's data anew.
        disable_tqdm: print no progress.
        report_to: functions of the log entries, such as `pellucid.train.plots.report`.

    Raises:
        RangeError: a number or name is out of range, or two settings exclude each other.

    Source: https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments

    Example:
        >>> from pellucid.train import TrainingArguments
        >>> TrainingArguments("run", max_steps=10, eval_strategy="steps").eval_steps
        500
    """

    output_dir: str | None = None
    per_device_train_batch_size: int = 8
    per_device_eval_batch_size: int = 8
    num_train_epochs: float = 3.0
    max_steps: int = -1
    learning_rate: float = 5e-5
    weight_decay: float = 0.0
    optim: str = "adamw"
    optim_args: dict[str, Any] = field(default_factory=dict)
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_epsilon: float = 1e-8
    max_grad_norm: float = 1.0
    lr_scheduler_type: str = "linear"
    lr_scheduler_kwargs: dict[str, Any] = field(default_factory=dict)
    warmup_steps: float = 0
    warmup_ratio: float = 0.0
    gradient_accumulation_steps: int = 1
    gradient_checkpointing: bool = False
    bf16: bool = False
    fp16: bool = False
    torch_compile: bool = True
    seed: int = 42
    data_seed: int | None = None
    logging_strategy: str = "steps"
    logging_steps: int = 500
    logging_first_step: bool = False
    eval_strategy: str = "no"
    eval_steps: int | None = None
    eval_delay: float = 0
    save_strategy: str = "steps"
    save_steps: int = 500
    save_total_limit: int | None = None
    load_best_model_at_end: bool = False
    metric_for_best_model: str | None = None
    greater_is_better: bool | None = None
    dataloader_drop_last: bool = False
    label_names: tuple[str, ...] = ("labels",)
    ignore_data_skip: bool = False
    disable_tqdm: bool = False
    report_to: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.output_dir is not None:
            self.output_dir = str(self.output_dir)
        for name in _COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise RangeError(f"TrainingArguments: {name} must be a whole number from 1, not {value!r}.")
        for name in ("logging_strategy", "eval_strategy", "save_strategy"):
            self._one_of(name, STRATEGIES)
        self._one_of("optim", OPTIMIZERS)
        self._one_of("lr_scheduler_type", SCHEDULES)
        for name in ("learning_rate", "weight_decay", "max_grad_norm", "warmup_steps", "num_train_epochs"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
                raise RangeError(f"TrainingArguments: {name} must be a number from 0, not {value!r}.")
        if not 0 <= self.warmup_ratio <= 1:
            raise RangeError(
                f"TrainingArguments: warmup_ratio is a share, from 0 to 1, not {self.warmup_ratio!r}."
            )
        if self.bf16 and self.fp16:
            raise RangeError("TrainingArguments: bf16 and fp16 exclude each other. Set one.")
        if self.eval_steps is None:
            self.eval_steps = self.logging_steps
        elif not isinstance(self.eval_steps, int) or self.eval_steps < 1:
            raise RangeError(
                f"TrainingArguments: eval_steps must be a whole number from 1, not {self.eval_steps!r}."
            )
        if self.save_total_limit is not None and self.save_total_limit < 1:
            raise RangeError(
                f"TrainingArguments: save_total_limit must be at least 1, not {self.save_total_limit}. None "
                "keeps all checkpoints."
            )
        self.label_names = tuple(self.label_names)
        self.report_to = (self.report_to,) if callable(self.report_to) else tuple(self.report_to)
        self._prepare_best()

    def _one_of(self, name: str, known: Any) -> None:
        if getattr(self, name) not in known:
            raise RangeError(
                f"TrainingArguments: {name} must be one of {', '.join(known)}, not {getattr(self, name)!r}."
            )

    def _prepare_best(self) -> None:
        if self.load_best_model_at_end:
            self.metric_for_best_model = self.metric_for_best_model or "loss"
            if self.eval_strategy == "no" or self.save_strategy != self.eval_strategy:
                raise RangeError(
                    "TrainingArguments: load_best_model_at_end needs checkpoints of what is evaluated. Set "
                    f"save_strategy and eval_strategy alike; they are {self.save_strategy!r} and "
                    f"{self.eval_strategy!r}."
                )
            if self.eval_strategy == "steps" and self.save_steps % (self.eval_steps or 1):
                raise RangeError(
                    f"TrainingArguments: load_best_model_at_end needs save_steps to be a multiple of "
                    f"eval_steps; they are {self.save_steps} and {self.eval_steps}."
                )
            if self.output_dir is None:
                raise RangeError("TrainingArguments: load_best_model_at_end needs an output_dir.")
        if self.metric_for_best_model is not None and self.greater_is_better is None:
            self.greater_is_better = not self.metric_for_best_model.endswith("loss")

    def warmup(self, steps: int) -> int:
        """How many of so many steps have rising rates."""
        if self.warmup_steps >= 1:
            return int(self.warmup_steps)
        share = self.warmup_steps or self.warmup_ratio
        return -int(-steps * share // 1)

    def to_dict(self) -> dict[str, Any]:
        """The settings that JSON can hold."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "report_to"}

    def to_json_string(self) -> str:
        """The settings as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> TrainingArguments:
        """Settings from a dictionary, such as ``training_args.json`` of a checkpoint holds.

        Raises:
            ArgumentError: it has names that are no settings.
        """
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(settings) - known):
            raise ArgumentError(f"TrainingArguments: there is no setting {', '.join(unknown)}.")
        return cls(**settings)


__all__ = ["TrainingArguments"]
