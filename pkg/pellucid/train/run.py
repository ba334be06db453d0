"""A training run under way: epochs, steps, losses that are on their way, logs, checkpoints."""

from __future__ import annotations

import time
import warnings
from asyncio import CancelledError
from collections import deque
from collections.abc import Generator
from contextlib import nullcontext
from math import ceil, isfinite
from pathlib import PurePath
from typing import Any

import numpy as np

from ..errors import ArgumentError, DeviceError, RangeError, SourceError
from ..ops.random.generator import default_generator
from ..ops.shape.joining import stack
from ..optim.lr_scheduler import ReduceLROnPlateau
from ..tensors.tensor import Tensor
from .anomalies import NonFiniteError, diagnosis
from .callbacks import metric_name
from .checkpoints import complete, contents
from .checkpoints.folders import folder_of
from .data.loader import batches, length
from .interrupts import StepInterrupts
from .memory import checkpointed_layers
from .state import TrainOutput
from .step import TrainingStep, placed

# Steps whose losses may be on their way: Python runs ahead of the device by as many.
_AHEAD = 4
Steps = Generator[tuple, Any, Any]


class TrainingRun:
    """A run of a trainer; it stands between two steps whenever it is not within one.

    Args:
        trainer: a `Trainer`, whose optimizer and schedule it makes.

    Attributes:
        is_paused: end after the step that is under way.
    """

    def __init__(self, trainer: Any):
        self.trainer, self.args = trainer, trainer.args
        self.loader = trainer.get_train_dataloader()
        self.count = length(self.loader)
        self._plan()
        trainer.create_optimizer()
        trainer.create_scheduler(trainer.state.max_steps)
        self.step = TrainingStep(trainer.model, trainer.optimizer, self.args, trainer.loss_of, trainer.items)
        self.is_paused = False
        self._standing: dict[str, Any] | None = None  # random numbers, while it does not run
        self._reports: deque[tuple[int, list, Tensor, Any, dict]] = deque()
        self._due: deque[str] = deque()  # events that callbacks have still to hear of
        self._log: dict[str, float] = {}

    def _plan(self) -> None:
        """How many steps and epochs there are."""
        a, s, count = self.args, self.trainer.state, self.count
        per_epoch = None if count is None else max(1, ceil(count / a.gradient_accumulation_steps))
        per_epoch = per_epoch and per_epoch * self.trainer.steps_of_a_group
        if count == 0:
            raise ArgumentError(
                "train: the dataset has no batch. Give examples, or dataloader_drop_last=False."
            )
        if a.max_steps > 0:
            s.max_steps = a.max_steps
            s.num_train_epochs = ceil(a.max_steps / per_epoch) if per_epoch else 1 << 31
        elif per_epoch is None:
            raise RangeError("train: the dataset has no length. Set max_steps.")
        else:
            s.max_steps = ceil(a.num_train_epochs * per_epoch)
            s.num_train_epochs = ceil(a.num_train_epochs)
        s.train_batch_size, s.logging_steps = a.per_device_train_batch_size, a.logging_steps
        s.eval_steps, s.save_steps = a.eval_steps or a.logging_steps, a.save_steps

    def resume(self) -> Steps:
        """Go on where it stands."""
        if self._standing is not None:
            complete.set_random_state(self._standing)
        self.trainer.control.should_training_stop = self.trainer.control.should_epoch_stop = False
        return (yield from self.take())

    def take(self) -> Steps:
        """Steps up to the end, or to a pause."""
        s, began, first = self.trainer.state, time.monotonic(), self.trainer.state.global_step
        layers = (
            checkpointed_layers(self.trainer.model) if self.args.gradient_checkpointing else nullcontext()
        )
        self.is_paused, self._standing = False, None
        self.trainer.model.train()
        self.trainer.callback_handler.tell("on_train_begin")
        try:
            with StepInterrupts().listening() as interrupts, layers:
                yield from self._settle()
                while s.global_step < s.max_steps and not self.trainer.control.should_training_stop:
                    yield from self._epoch(interrupts)
                    if self.is_paused:
                        break
                yield from self._drain()
        except BaseException as error:
            self._standing = complete.random_state()
            if isinstance(error, DeviceError) and ": lost: " in str(error):
                raise DeviceError(
                    f"{error} Then make the model and the trainer anew: train(resume_from_checkpoint=True) "
                    "goes on from the last checkpoint."
                ) from None
            raise
        if self.is_paused:
            self._standing = complete.random_state()
            return TrainOutput(s.global_step, s.total_loss / max(s.global_step, 1), {})
        seconds, steps = time.monotonic() - began, s.global_step - first
        loss = s.total_loss / max(s.global_step, 1)
        rates = {
            "train_runtime": seconds,
            "train_samples_per_second": steps * s.train_batch_size / seconds,
            "train_steps_per_second": steps / seconds,
            "train_loss": loss,
        }
        self.trainer.log(rates)
        if self.args.load_best_model_at_end and s.best_model_checkpoint is not None:
            name = s.best_model_checkpoint.rpartition("/")[2]
            contents.load_model(
                self.trainer.model, (yield from complete.read(folder_of(self.args.output_dir), name))
            )
        self.trainer.callback_handler.tell("on_train_end")
        return TrainOutput(s.global_step, loss, rates)

    def _epoch(self, interrupts: StepInterrupts) -> Steps:
        """What is left of an epoch: steps up to its end, a pause or the end of the run."""
        a, s, t = self.args, self.trainer.state, self.trainer
        epoch, skip = int(s.epoch + 1e-9), 0 if a.ignore_data_skip else s.batches
        if not s.batches:
            t.callback_handler.tell("on_epoch_begin")
        t.control.should_epoch_stop = False
        standing = complete.random_state() if skip else None
        group: list[Any] = []
        is_over, has_any = False, s.batches > 0
        for batch in batches(self.loader, epoch, skip):
            if standing is not None:  # reading past what was seen counts as no draw
                complete.set_random_state(standing)
                standing = None
            group.append(batch)
            has_any = True
            is_over = self.count is not None and s.batches + len(group) >= self.count
            if len(group) < a.gradient_accumulation_steps and not is_over:
                continue
            yield from self._steps_of(group, epoch, is_over, interrupts)
            group = []
            if self.is_paused or interrupts.is_waiting or t.control.should_training_stop:
                break
            if t.control.should_epoch_stop:
                is_over = True
                break
        else:
            if group:
                yield from self._steps_of(group, epoch, True, interrupts)
            elif not has_any:
                raise ArgumentError(f"train: epoch {epoch} of the dataset has no examples.")
            is_over = True
        is_told = s.batches == 0 and s.epoch == epoch + 1.0  # by the step that ended it
        if is_over:
            s.batches, s.epoch = 0, epoch + 1.0
        if (is_over or t.control.should_training_stop) and not is_told:
            self._due.append("on_epoch_end")
            yield from self._settle()
        interrupts.check()

    def _steps_of(self, group: list[Any], epoch: int, is_last: bool, interrupts: StepInterrupts) -> Steps:
        """The step of some batches, or the steps that the trainer makes of them; the last one may end the
        epoch."""
        several = self.trainer.prepare(group)
        for k, batches_of_step in enumerate(several, 1):
            is_whole = k == len(several)
            taken = len(group) if is_whole else 0
            yield from self._step(batches_of_step, taken, epoch, is_last and is_whole, interrupts)
            if self.is_paused or interrupts.is_waiting or self.trainer.control.should_training_stop:
                return

    def _step(
        self, group: list[Any], taken: int, epoch: int, is_last: bool, interrupts: StepInterrupts
    ) -> Steps:
        """One step, after which so many batches of the epoch are taken, and what is due after it."""
        t, s = self.trainer, self.trainer.state
        t.callback_handler.tell("on_step_begin")
        group = [placed(batch, t.device) for batch in group]
        before = {"state": default_generator.get_state(), "rate": t.lr_scheduler.get_last_lr()[0]}
        with interrupts:
            made = self.step(group)
            if not (self.step.was_skipped or isinstance(t.lr_scheduler, ReduceLROnPlateau)):
                t.lr_scheduler.step()
            s.global_step += 1
            s.batches += taken
            # Where nobody knows the length, the share that is done is that of the steps.
            share = s.batches / self.count if self.count else s.global_step / s.max_steps
            s.epoch = epoch + min(share, 1.0)
            if is_last:
                s.batches, s.epoch = 0, epoch + 1.0
            self._reports.append((s.global_step, group, made, made.tolist_later(), before))
            self._due.extend(["on_step_end", "on_epoch_end"] if is_last else ["on_step_end"])
        yield from self._settle()
        yield from self._show()

    def _settle(self) -> Steps:
        """What is due after a step: old reports, callbacks, and what these ask for. An interrupt leaves it to
        `resume`."""
        while len(self._reports) > _AHEAD:
            yield from self._arrive()
        yield from self._flow()
        while self._due:
            self.trainer.callback_handler.tell(self._due.popleft())
            yield from self._flow()

    def _arrive(self) -> Steps:
        """Wait for the oldest report that is on its way."""
        step, group, made, report, before = self._reports.popleft()
        try:
            loss, norm = yield (report, "result", (), {})
        except (KeyboardInterrupt, CancelledError):  # a read gives its values once
            self._reports.appendleft((step, group, made, made.tolist_later(), before))
            raise
        if not (isfinite(loss) and (isfinite(norm) or self.step.scaler.is_enabled())):
            self._reports.clear()
            raise NonFiniteError(self._blame(step, loss, norm, group, before))
        self.trainer.state.total_loss += loss
        self._log["loss"] = self._log.get("loss", 0.0) + loss
        self._log["steps"] = self._log.get("steps", 0) + 1
        self._log |= {"grad_norm": norm, "learning_rate": before["rate"]}

    def _drain(self) -> Steps:
        while self._reports:
            yield from self._arrive()

    def _blame(self, step: int, loss: float, norm: float, group: list, before: dict) -> str:
        what = f"the loss is {loss}" if not isfinite(loss) else f"the norm of the gradients is {norm}"
        items = self.trainer.step_items(group)
        default_generator.set_state(before["state"])

        def again() -> Tensor:
            parts = [self.trainer.loss_of(self.trainer.model, batch, items) for batch in group]
            return stack(parts).sum()

        finished = "that step changed the parameters by momentum and decay alone, so that they are finite"
        return (
            f"train: {what} at step {step}. {diagnosis(again, group)}. What to do: a lower learning_rate, a "
            f"smaller max_grad_norm, other data; {finished}, and train(resume_from_checkpoint=True) goes on "
            "from the last checkpoint."
        )

    # Between steps

    def _flow(self) -> Steps:
        """Log, evaluate and save as the control says."""
        c = self.trainer.control
        if c.should_log or c.should_evaluate or c.should_save:
            yield from self._drain()
        if c.should_log:
            if steps := self._log.pop("steps", 0):
                self._log["loss"] /= steps
                entry, self._log = self._log, {}
                self.trainer.log(entry)
            c.should_log = False
        if c.should_evaluate:
            metrics = yield from self.trainer.evaluation(None, "eval")
            self._note_best(metrics)
            c.should_evaluate = False
        if c.should_save:
            yield from self._save()
            c.should_save = False

    def _show(self) -> Steps:
        """Read the tensors that callbacks ask for, and hand them over."""
        handler = self.trainer.callback_handler
        for callback in list(handler.callbacks):
            values = {}
            for name, asked in (handler.ask(callback, "tensors") or {}).items():
                # A copy: on cpu the array would be the parameter itself.
                values[name] = np.array((yield (asked.detach(), "numpy", (), {})))
            if values:
                handler.ask(callback, "on_tensors", values=values)

    def _note_best(self, metrics: dict[str, float]) -> None:
        a, s = self.args, self.trainer.state
        plateau = self.trainer.lr_scheduler
        if isinstance(plateau, ReduceLROnPlateau):
            plateau.step(metrics[metric_name(a)] if a.metric_for_best_model else metrics["eval_loss"])
        if a.metric_for_best_model is None:
            return
        value = metrics.get(metric_name(a))
        if value is None:
            raise ArgumentError(
                f"metric_for_best_model: the evaluation has no {metric_name(a)}; it has {', '.join(metrics)}."
            )
        if s.best_metric is None or (value > s.best_metric if a.greater_is_better else value < s.best_metric):
            s.best_metric, s.best_global_step = value, s.global_step

    def _save(self) -> Steps:
        """Write a checkpoint where the arguments say so; a failure ends no run that has steps left."""
        s = self.trainer.state
        if self.args.output_dir is None:
            return
        try:
            yield from self.write(None)
        except SourceError as error:
            if s.global_step >= s.max_steps:
                raise SourceError(
                    f"{error} The run is finished and the model is in memory: free some room and call "
                    "trainer.save_checkpoint(), or give that another folder."
                ) from None
            warnings.warn(
                f"train: {error} No checkpoint of step {s.global_step}; the run goes on.", stacklevel=2
            )
            self.trainer.log({"save_error": str(error)})
        else:
            self.trainer.callback_handler.tell("on_save")

    def write(self, place: Any) -> Steps:
        """Write a checkpoint and remove the oldest beyond the limit; returns its name.

        Raises:
            SourceError: it could not be written; those before it stay.
        """
        s, place = self.trainer.state, self.args.output_dir if place is None else place
        if place is None:
            raise ArgumentError("save_checkpoint: needs an output_dir.")
        folder, best = folder_of(place), s.best_model_checkpoint
        if s.best_global_step == s.global_step:
            s.best_model_checkpoint = f"{folder}/checkpoint-{s.global_step}"
        try:
            files = yield from contents.run_files(self.trainer, self.step.scaler)
            name = yield from complete.write(folder, s.global_step, files)
        except BaseException:
            s.best_model_checkpoint = best
            raise
        keep = [name, *([PurePath(s.best_model_checkpoint).name] if s.best_model_checkpoint else [])]
        yield from complete.rotate(folder, self.args.save_total_limit, keep)
        return name

    def load(self, source: bool | str) -> Steps:
        """Stand where a checkpoint stands.

        Args:
            source: True for the newest complete one of the output folder, or the path of one.
        """
        if source is True:
            if self.args.output_dir is None:
                raise RangeError("train: resume_from_checkpoint=True needs an output_dir.")
            _, files = yield from complete.newest(folder_of(self.args.output_dir))
        else:
            files = yield from complete.read(folder_of(source), "")
        contents.load_run(self.trainer, self.step.scaler, files)
        self._standing = complete.random_state()


__all__ = ["TrainingRun"]
