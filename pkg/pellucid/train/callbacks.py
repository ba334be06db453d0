"""Callbacks of a training run: when it logs, evaluates, saves and ends, and what else is done on the way."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import ArgumentError, RangeError

EVENTS = (
    "on_init_end", "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_step_begin",
    "on_substep_end", "on_step_end", "on_evaluate", "on_predict", "on_save", "on_log",
)  # fmt: skip


class TrainerCallback:
    """Base of callbacks: a subclass defines the events that it wants.

    Each is called with the arguments, the `TrainerState`, the `TrainerControl`, which it may change, and
    keywords: ``model``, ``optimizer``, ``lr_scheduler``, ``trainer``; "on_log" has ``logs``, "on_evaluate"
    ``metrics``. Steps are submitted and not waited for, so a callback that reads a value of the model waits.

    Events: on_init_end, on_train_begin, on_train_end, on_epoch_begin, on_epoch_end, on_step_begin,
    on_substep_end, on_step_end, on_evaluate, on_predict, on_save, on_log.

    Source: https://huggingface.co/docs/transformers/main_classes/callback
    """

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The trainer is made."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Before the first step."""

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After the last step."""

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Before a pass over the data."""

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After a pass over the data."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Before the batches of a step."""

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After each batch of a step but the last."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After a step."""

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After an evaluation; ``metrics`` are its values."""

    def on_predict(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After a prediction; ``metrics`` are its values."""

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After a checkpoint is complete."""

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After an entry of the history; ``logs`` is the entry."""

    def tensors(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Mapping[str, Any]:
        """After a step: the tensors whose values it wants to see, by name."""
        return {}

    def on_tensors(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The arrays of what `tensors` gave, in ``values``."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: attributes by name. A resumed run sets them."""
        return {}


class CallbackHandler:
    """Several callbacks, told one after the other.

    Args:
        callbacks: instances or classes.
        trainer: whose.
    """

    def __init__(self, callbacks: Iterable[Any], trainer: Any):
        self.trainer, self.callbacks = trainer, []
        for callback in callbacks:
            self.add(callback)

    def add(self, callback: Any) -> None:
        """Tell another one, too.

        Raises:
            ArgumentError: it has none of the events.
        """
        made = callback() if isinstance(callback, type) else callback
        if not any(hasattr(made, event) for event in EVENTS):
            raise ArgumentError(
                f"callbacks: {made!r} has none of the events {', '.join(EVENTS)}. Derive it from "
                "TrainerCallback."
            )
        self.callbacks.append(made)

    def remove(self, callback: Any) -> Any:
        """Tell one no more; None if it was not there."""
        for found in self.callbacks:
            if found is callback or (isinstance(callback, type) and type(found) is callback):
                self.callbacks.remove(found)
                return found
        return None

    def tell(self, event: str, **more: Any) -> None:
        """Call an event of all callbacks."""
        for callback in list(self.callbacks):
            changed = self.ask(callback, event, **more)
            if changed is not None:
                self.trainer.control = changed

    def ask(self, callback: Any, event: str, **more: Any) -> Any:
        """What a callback answers to an event; None where it does not listen."""
        t, listen = self.trainer, getattr(callback, event, None)
        if listen is None:
            return None
        return listen(
            t.args,
            t.state,
            t.control,
            model=t.model,
            optimizer=t.optimizer,
            lr_scheduler=t.lr_scheduler,
            processing_class=t.processing_class,
            trainer=t,
            **more,
        )

    def states(self) -> dict[str, Any]:
        """What callbacks keep in a checkpoint."""
        kept = {type(c).__name__: c.state() for c in self.callbacks if hasattr(c, "state")}
        return {name: state for name, state in kept.items() if state}

    def load(self, states: dict[str, Any]) -> None:
        """Give callbacks what a checkpoint kept of them."""
        for callback in self.callbacks:
            for name, value in states.get(type(callback).__name__, {}).items():
                setattr(callback, name, value)


class DefaultFlowCallback(TrainerCallback):
    """Logs, evaluates and saves by the strategies of the arguments, and ends after the last step."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        step = state.global_step
        if (step == 1 and args.logging_first_step) or _is_due(
            args.logging_strategy, args.logging_steps, step
        ):
            control.should_log = True
        is_ready = step >= args.eval_delay
        if is_ready and _is_due(args.eval_strategy, args.eval_steps, step):
            control.should_evaluate = True
        if _is_due(args.save_strategy, args.save_steps, step):
            control.should_save = True
        if step >= state.max_steps:
            control.should_training_stop = True
            if is_ready and args.eval_strategy == "steps":
                control.should_evaluate = True
            if args.save_strategy == "steps":
                control.should_save = True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_log |= args.logging_strategy == "epoch"
        control.should_evaluate |= args.eval_strategy == "epoch" and args.eval_delay <= state.epoch
        control.should_save |= args.save_strategy == "epoch"


def _is_due(strategy: str, every: int, step: int) -> bool:
    return strategy == "steps" and step % every == 0


class EarlyStoppingCallback(TrainerCallback):
    """Ends a run whose metric stays as it is or gets worse.

    Args:
        early_stopping_patience: evaluations without a better value before the end.
        early_stopping_threshold: by how much a value must be better.

    Raises:
        RangeError: when training begins, without ``metric_for_best_model`` or evaluations.

    Source: https://huggingface.co/docs/transformers/main_classes/callback#transformers.EarlyStoppingCallback

    Example:
        >>> from pellucid.train import EarlyStoppingCallback
        >>> EarlyStoppingCallback(early_stopping_patience=3).state()
        {'early_stopping_patience_counter': 0}
    """

    def __init__(self, early_stopping_patience: int = 1, early_stopping_threshold: float = 0.0):
        self.early_stopping_patience = early_stopping_patience
        self.early_stopping_threshold = early_stopping_threshold
        self.early_stopping_patience_counter = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if args.metric_for_best_model is None or args.eval_strategy == "no":
            raise RangeError(
                "EarlyStoppingCallback: needs metric_for_best_model and an eval_strategy of 'steps' or "
                f"'epoch'; they are {args.metric_for_best_model!r} and {args.eval_strategy!r}."
            )

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        name = metric_name(args)
        value = kwargs["metrics"].get(name)
        if value is None:
            raise RangeError(
                f"EarlyStoppingCallback: the evaluation has no {name}; it has "
                f"{', '.join(kwargs['metrics'])}. Set metric_for_best_model to one of these."
            )
        # By how much it is better than the best one before; None where it is the first.
        gain = None if state.best_metric is None else value - state.best_metric
        gain = gain if gain is None or args.greater_is_better else -gain
        if gain is None or gain > self.early_stopping_threshold:
            self.early_stopping_patience_counter = 0
        else:
            self.early_stopping_patience_counter += 1
        if self.early_stopping_patience_counter >= self.early_stopping_patience:
            control.should_training_stop = True

    def state(self) -> dict[str, Any]:
        return {"early_stopping_patience_counter": self.early_stopping_patience_counter}


def metric_name(args: Any) -> str:
    """The metric that says which checkpoint is best, as evaluations name it."""
    name = args.metric_for_best_model
    return name if name.startswith("eval_") else f"eval_{name}"


class ProgressCallback(TrainerCallback):
    """Prints what is logged, with the step, the share that is done and how long the rest will take.

    Args:
        file: where to; the standard output if None.
    """

    def __init__(self, file: Any = None):
        self.file = file
        self._began, self._first = 0.0, 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._began, self._first = time.monotonic(), state.global_step

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs = {k: v for k, v in kwargs["logs"].items() if k not in ("step", "epoch")}
        text = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in logs.items())
        done = state.global_step - self._first
        left = (time.monotonic() - self._began) / done * (state.max_steps - state.global_step) if done else 0
        rest = f", {left:.0f} s left" if left else ""
        print(
            f"step {state.global_step}/{state.max_steps}, epoch {state.epoch:.2f}{rest}: {text}",
            file=self.file or sys.stdout,
        )


class ReportCallback(TrainerCallback):
    """Hands each entry of the history to functions.

    Args:
        functions: called with the entry, a dictionary.
    """

    def __init__(self, functions: Iterable[Any]):
        self.functions = list(functions)
        for function in self.functions:
            if not callable(function):
                raise ArgumentError(
                    f"report_to: takes functions of an entry of the history, not {function!r}."
                )

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for function in self.functions:
            function(dict(kwargs["logs"]))


__all__ = [
    "CallbackHandler", "DefaultFlowCallback", "EarlyStoppingCallback", "ProgressCallback", "ReportCallback",
    "TrainerCallback",
]  # fmt: skip
