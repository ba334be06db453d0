"""The Trainer: training runs in the shape of transformers' Trainer, captured and resumable."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from ..device.steps import later, now
from ..errors import ArgumentError, RangeError
from ..models.language_model import CausalLM
from ..nn.modules.module import Module
from ..op.jit import compile
from ..ops.random.generator import manual_seed
from ..ops.shape.joining import stack
from ..tensors.tensor import Tensor
from ..utils.data.loader import DataLoader
from .arguments import TrainingArguments
from .callbacks import CallbackHandler, DefaultFlowCallback, ProgressCallback, ReportCallback
from .checkpoints import contents
from .checkpoints.folders import folder_of
from .data.collators import DataCollatorWithPadding, default_data_collator
from .data.loader import as_dataset, training_loader, used
from .evaluation import evaluation, predicted
from .optimizers import create_optimizer
from .run import TrainingRun
from .schedules import get_scheduler
from .state import PredictionOutput, TrainerControl, TrainerState, TrainOutput

Steps = Generator[tuple, Any, Any]


class Trainer:
    """Trains a model: batches, steps, logs, evaluations, checkpoints, by transformers' names.

    A step is captured by itself and goes to the device as one submission; losses are read while later steps
    run. A run that ends anywhere goes on from its last checkpoint, or with `resume`, to the same bits. Ctrl-C
    lets the step end first. Blocking calls have twins with ``_async``.

    Args:
        model: gives a result with ``loss``, or anything with ``compute_loss_func``.
        args: the settings; defaults if None.
        data_collator: makes a batch of examples: a dictionary of tensors, or a pair (input, labels).
        train_dataset, eval_dataset: examples by number, or what gives them in turn, such as a stream of
            ``datasets``; for evaluation also a dictionary of several.
        processing_class: a tokenizer, which pads by default.
        compute_loss_func: ``(outputs, labels, num_items_in_batch=None)`` gives the loss.
        compute_metrics: of an `EvalPrediction`, gives a dictionary.
        callbacks: more of them, instances or classes.
        optimizers: an optimizer and a schedule, in place of those of the arguments; either may be None.

    Attributes:
        state: where the run stands; ``state.log_history`` is what was logged.
        control: what happens next.

    Raises:
        ArgumentError: something is not what it must be.

    Source: https://huggingface.co/docs/transformers/main_classes/trainer

    Example:
        >>> import pellucid as torch
        >>> from pellucid.train import Trainer, TrainingArguments
        >>> with torch.device("cpu"):
        ...     model = torch.nn.Linear(1, 1)
        ...     x = torch.linspace(-1, 1, 16).unsqueeze(1)
        ...     data = torch.utils.data.TensorDataset(x, 2 * x + 1)
        ...     args = TrainingArguments(
        ...         num_train_epochs=60, learning_rate=0.1, disable_tqdm=True, weight_decay=0.0
        ...     )
        ...     loss = lambda outputs, labels, **_: ((outputs - labels) ** 2).mean()
        ...     result = Trainer(model, args, train_dataset=data, compute_loss_func=loss).train()
        >>> result.global_step, abs(model.weight.item() - 2) < 0.2
        (120, True)
    """

    def __init__(
        self,
        model: Module,
        args: TrainingArguments | None = None,
        data_collator: Callable[[list], Any] | None = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        compute_loss_func: Callable[..., Any] | None = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: Iterable[Any] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
    ):
        if not isinstance(model, Module):
            raise ArgumentError(f"Trainer: model must be a module, not {type(model).__name__}.")
        self.model, self.args = model, args or TrainingArguments()
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset
        self.processing_class = processing_class
        pads = processing_class is not None and hasattr(processing_class, "pad")
        default = DataCollatorWithPadding(processing_class) if pads else default_data_collator
        self.data_collator = data_collator or default
        self.compute_loss_func, self.compute_metrics = compute_loss_func, compute_metrics
        self.optimizer, self.lr_scheduler = optimizers
        self._given = optimizers
        self.state, self.control = TrainerState(), TrainerControl()
        self._run: TrainingRun | None = None
        self._evaluating: Callable | None = None
        flow = [DefaultFlowCallback, *([] if self.args.disable_tqdm else [ProgressCallback])]
        reports = [ReportCallback(self.args.report_to)] if self.args.report_to else []
        self.callback_handler = CallbackHandler([*flow, *reports, *(callbacks or ())], self)
        self.callback_handler.tell("on_init_end")

    # What subclasses change

    @property
    def device(self) -> Any:
        """Where the model is."""
        return next(self.model.parameters()).device

    def compute_loss(
        self, model: Module, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of a batch, and with ``return_outputs`` also what the model gave.

        Args:
            model: called with the batch: as keywords, or with the first of a pair.
            inputs: the batch.
            return_outputs: see above.
            num_items_in_batch: labels that count, of all batches of the step.

        Raises:
            ArgumentError: there is no loss.
        """
        is_named = isinstance(inputs, Mapping)
        labels = self.labels_of(inputs)
        if is_named:
            outputs = model(**inputs)
        else:
            outputs = model(inputs[0] if isinstance(inputs, (list, tuple)) else inputs)
        if self.compute_loss_func is not None:
            loss = self.compute_loss_func(outputs, labels, num_items_in_batch=num_items_in_batch)
        else:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else getattr(outputs, "loss", None)
        if loss is None:
            has = ", ".join(inputs) if is_named else "a pair"
            raise ArgumentError(
                f"compute_loss: {type(model).__name__} gave no loss for a batch of {has}. Give labels in the "
                "batch, or compute_loss_func."
            )
        return (loss, outputs) if return_outputs else loss

    def uses(self, collate: Callable) -> Callable:
        """A collate function that leaves out what the model's forward has no name for."""
        return used(self.model, self.args.label_names, collate)

    # How many steps `prepare` makes of what it is given.
    steps_of_a_group = 1

    def prepare(self, batches: list[Any]) -> list[list[Any]]:
        """The batches of each step that follows from some of the loader's batches: one step for all.

        Args:
            batches: ``gradient_accumulation_steps`` of them, fewer at the end of an epoch.
        """
        return [batches]

    def get_train_dataloader(self) -> DataLoader:
        """The batches of training."""
        if self.train_dataset is None:
            raise ArgumentError("train: needs a train_dataset.")
        return training_loader(self.train_dataset, self.args, self.uses(self.data_collator))

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader:
        """The batches of an evaluation, in their order."""
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        if dataset is None:
            raise ArgumentError("evaluate: needs an eval_dataset.")
        collate = self.uses(self.data_collator)
        return DataLoader(as_dataset(dataset), self.args.per_device_eval_batch_size, collate_fn=collate)

    def create_optimizer(self) -> Any:
        """The optimizer of the arguments, unless one was given."""
        if self.optimizer is None:
            self.optimizer = create_optimizer(self.model, self.args)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int) -> Any:
        """The schedule of the arguments, unless one was given."""
        if self.lr_scheduler is None:
            a = self.args
            warmup = a.warmup(num_training_steps)
            settings = a.lr_scheduler_kwargs
            self.lr_scheduler = get_scheduler(
                a.lr_scheduler_type, self.optimizer, warmup, num_training_steps, settings
            )
        return self.lr_scheduler

    def log(self, logs: dict[str, Any]) -> None:
        """Add an entry to the history and tell callbacks."""
        entry = {"epoch": self.state.epoch, "step": self.state.global_step, **logs}
        self.state.log_history.append(entry)
        self.callback_handler.tell("on_log", logs=entry)

    def add_callback(self, callback: Any) -> None:
        """Tell another callback, too."""
        self.callback_handler.add(callback)

    def remove_callback(self, callback: Any) -> None:
        """Tell a callback no more; an instance or a class."""
        self.callback_handler.remove(callback)

    # Training

    def train(self, resume_from_checkpoint: bool | str | None = None) -> TrainOutput:
        """Train to the end, or until a callback, `pause` or `stop` ends it.

        Args:
            resume_from_checkpoint: True goes on from the newest complete checkpoint of ``output_dir``; a path
                from that one. The run ends in the bits that it would have had without the break.

        Returns:
            A `TrainOutput`.

        Raises:
            NonFiniteError: the loss or its gradients are NaN or infinite; names the op and its line.
            SourceError: there is no checkpoint, or a checkpoint at the end could not be written.
            FormatError: the checkpoint that was named is not complete, or a file of it is damaged.
        """
        return now(self._train(resume_from_checkpoint))

    async def train_async(self, resume_from_checkpoint: bool | str | None = None) -> TrainOutput:
        """The awaitable twin of `train`: the page stays usable while the device works."""
        return await later(self._train(resume_from_checkpoint))

    def resume(self) -> TrainOutput:
        """Go on where the run stands in memory: after `pause`, Ctrl-C, or an error of a callback.

        Raises:
            RangeError: nothing was begun.
        """
        return now(self._begun("resume").resume())

    async def resume_async(self) -> TrainOutput:
        """The awaitable twin of `resume`."""
        return await later(self._begun("resume").resume())

    def pause(self) -> None:
        """End after the step that is under way; `resume` goes on. From a callback, a task or a thread."""
        self._begun("pause").is_paused = True

    def stop(self) -> None:
        """End the run after the step that is under way, as if it were the last."""
        self.control.should_training_stop = True

    def _train(self, source: bool | str | None) -> Steps:
        self.optimizer, self.lr_scheduler = self._given
        self.state, self.control = TrainerState(), TrainerControl()
        manual_seed(self.args.seed)
        self._run = run = TrainingRun(self)
        if source:
            yield from run.load(source)
        return (yield from run.take())

    def _begun(self, name: str) -> TrainingRun:
        if self._run is None:
            raise RangeError(f"{name}: nothing was begun. Call train().")
        return self._run

    def explain(self) -> str:
        """What became of the captured steps: how often they were replayed, or why they run eagerly."""
        return self._begun("explain").step.explain()

    # What a run asks for

    def loss_of(self, model: Module, batch: Any, items: Any) -> Any:
        """The loss of a batch of a step."""
        return self.compute_loss(model, batch, num_items_in_batch=items)

    def items(self, batch: Any) -> Tensor | None:
        """How many labels of a batch count, where batches of a step are averaged by them."""
        if not isinstance(batch, Mapping) or not isinstance(batch.get("labels"), Tensor):
            return None
        labels, inner = batch["labels"], getattr(self.model, "base_model", self.model)
        if isinstance(inner, CausalLM):
            return (labels[..., 1:] != -100).sum().float()
        return (labels != -100).sum().float() if self.compute_loss_func is not None else None

    def step_items(self, group: list[Any]) -> Any:
        """How many labels of a step's batches count."""
        counts = [self.items(batch) for batch in group]
        found = [count for count in counts if count is not None]
        return stack(found).sum() if found else None

    def labels_of(self, inputs: Any) -> Any:
        """The labels of a batch: a tensor, a tuple of several, or None."""
        if isinstance(inputs, Mapping):
            found = tuple(inputs[name] for name in self.args.label_names if name in inputs)
            return found[0] if len(found) == 1 else found or None
        return inputs[1] if isinstance(inputs, (list, tuple)) and len(inputs) > 1 else None

    def evaluate_batch(self, inputs: Any, keep: bool) -> tuple[Tensor | None, Any]:
        """Loss and result of a batch of an evaluation; the loss is None where it has no labels.

        Args:
            inputs: on the model's device.
            keep: whether the result is asked for.
        """
        if self._evaluating is None:
            is_captured = self.args.torch_compile and self.device.type == "webgpu"
            take = compile if is_captured else lambda function: function
            self._evaluating = take(self._evaluated)
        evaluating: Any = self._evaluating
        return evaluating(inputs, keep)

    def _evaluated(self, inputs: Any, keep: bool) -> tuple[Tensor | None, Any]:
        if self.labels_of(inputs) is None:
            return None, predicted(
                self.model(**inputs) if isinstance(inputs, Mapping) else self.model(inputs)
            )
        loss, outputs = self.compute_loss(self.model, inputs, return_outputs=True)
        return loss.detach().float(), predicted(outputs) if keep else None

    # Checkpoints

    def save_model(self, output_dir: str | None = None) -> None:
        """Write the model: its adapter if it has one, else ``model.safetensors`` and ``config.json``.

        Args:
            output_dir: where to; that of the arguments if None.
        """
        now(self._save_model(output_dir))

    async def save_model_async(self, output_dir: str | None = None) -> None:
        """The awaitable twin of `save_model`."""
        await later(self._save_model(output_dir))

    def _save_model(self, place: Any) -> Steps:
        place = self.args.output_dir if place is None else place
        if place is None:
            raise ArgumentError("save_model: needs an output_dir.")
        folder = folder_of(place)
        for name, data in (yield from contents.model_files(self.model)).items():
            yield (folder, "write", (name, data), {})

    def save_checkpoint(self, output_dir: str | None = None) -> str:
        """Write a checkpoint of now, for example elsewhere when a disk is full; returns its name.

        Args:
            output_dir: where to; that of the arguments if None.

        Raises:
            SourceError: it could not be written.
            RangeError: no run was begun.
        """
        return now(self._begun("save_checkpoint").write(output_dir))

    async def save_checkpoint_async(self, output_dir: str | None = None) -> str:
        """The awaitable twin of `save_checkpoint`."""
        return await later(self._begun("save_checkpoint").write(output_dir))

    # Evaluation

    def evaluate(self, eval_dataset: Any = None, metric_key_prefix: str = "eval") -> dict[str, float]:
        """Loss and metrics of a dataset.

        Args:
            eval_dataset: in place of the trainer's; a dictionary of several gives all their metrics.
            metric_key_prefix: before the names of metrics.
        """
        return now(self.evaluation(eval_dataset, metric_key_prefix))

    async def evaluate_async(
        self, eval_dataset: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """The awaitable twin of `evaluate`."""
        return await later(self.evaluation(eval_dataset, metric_key_prefix))

    def evaluation(self, dataset: Any, prefix: str) -> Steps:
        dataset = self.eval_dataset if dataset is None else dataset
        several = dataset if isinstance(dataset, dict) else {None: dataset}
        metrics: dict[str, float] = {}
        for name, one in several.items():
            loader = self.get_eval_dataloader(one)
            whole = f"{prefix}_{name}" if name is not None else prefix
            metrics |= (yield from evaluation(self, loader, whole, self.compute_metrics is not None)).metrics
        self.log(metrics)
        self.callback_handler.tell("on_evaluate", metrics=metrics)
        return metrics

    def predict(self, test_dataset: Any, metric_key_prefix: str = "test") -> PredictionOutput:
        """Predictions of a dataset, with its labels and metrics where it has labels."""
        return now(self._predict(test_dataset, metric_key_prefix))

    async def predict_async(self, test_dataset: Any, metric_key_prefix: str = "test") -> PredictionOutput:
        """The awaitable twin of `predict`."""
        return await later(self._predict(test_dataset, metric_key_prefix))

    def _predict(self, dataset: Any, prefix: str) -> Steps:
        result = yield from evaluation(self, self.get_eval_dataloader(dataset), prefix, True)
        self.callback_handler.tell("on_predict", metrics=result.metrics)
        return result


__all__ = ["Trainer"]
