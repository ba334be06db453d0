"""Where a training run stands (TrainerState), what it does next (TrainerControl), and its results."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ..weights.document import as_bytes, parse_object


@dataclass
class TrainerState:
    """Where a run stands; ``trainer_state.json`` of a checkpoint, in transformers' layout.

    Args:
        epoch: passes over the data, a fraction within one.
        global_step: optimizer steps that are finished.
        max_steps: steps of the whole run.
        num_train_epochs: passes of the whole run.
        train_batch_size: examples of a batch.
        logging_steps, eval_steps, save_steps: after how many steps.
        log_history: what was logged: dictionaries with "step", "epoch" and values.
        best_metric: the best value of the metric that counts, so far.
        best_global_step: at which step.
        best_model_checkpoint: and where it lies.
        batches: of the epoch that is under way, those that finished steps took.
        total_loss: the losses of all finished steps, added.
        stateful_callbacks: what callbacks keep in a checkpoint, by class.
    """

    epoch: float = 0.0
    global_step: int = 0
    max_steps: int = 0
    num_train_epochs: int = 0
    train_batch_size: int = 0
    logging_steps: int = 500
    eval_steps: int = 500
    save_steps: int = 500
    log_history: list[dict[str, Any]] = field(default_factory=list)
    best_metric: float | None = None
    best_global_step: int | None = None
    best_model_checkpoint: str | None = None
    batches: int = 0
    total_loss: float = 0.0
    stateful_callbacks: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The state as JSON."""
        return json.dumps(asdict(self), indent=2, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> TrainerState:
        """The state that `to_json` wrote; names of transformers that are not here are left out.

        Raises:
            FormatError: the text is no JSON object, or its brackets nest too deep.
        """
        # A run may log each of a million steps, so values are not counted.
        found = parse_object("trainer_state.json", as_bytes(text), most=None)
        return cls(**{name: found[name] for name in cls.__dataclass_fields__ if name in found})


@dataclass
class TrainerControl:
    """What the loop does next; callbacks set it.

    Args:
        should_training_stop: end after this step.
        should_epoch_stop: end the epoch after this step.
        should_save, should_evaluate, should_log: do that after this step.
    """

    should_training_stop: bool = False
    should_epoch_stop: bool = False
    should_save: bool = False
    should_evaluate: bool = False
    should_log: bool = False


class TrainOutput(NamedTuple):
    """What a run came to.

    Args:
        global_step: finished steps.
        training_loss: their mean loss.
        metrics: further figures, such as "train_runtime" in seconds.
    """

    global_step: int
    training_loss: float
    metrics: dict[str, Any]


class EvalPrediction(NamedTuple):
    """What ``compute_metrics`` is given.

    Args:
        predictions: an array, or a tuple of them.
        label_ids: an array, or a tuple of them.
    """

    predictions: Any
    label_ids: Any


class PredictionOutput(NamedTuple):
    """What `Trainer.predict` returns.

    Args:
        predictions: an array, or a tuple of them.
        label_ids: an array, a tuple of them, or None.
        metrics: by name.
    """

    predictions: Any
    label_ids: Any
    metrics: dict[str, float]


__all__ = ["EvalPrediction", "PredictionOutput", "TrainOutput", "TrainerControl", "TrainerState"]
