"""What a checkpoint holds of a training run, as files: the model or its adapter, the optimizer, the schedule,
random numbers, and where the run stands."""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Mapping
from typing import Any

from ... import weights
from ...errors import WeightError
from ...models.pretrained import PretrainedModel
from ...models.saving import config_keys
from ...tensors.tensor import Tensor
from ...utils.serialization import load
from ...weights.document import parse_object
from ..state import TrainerState
from .complete import on_cpu, packed, random_state, set_random_state, tensors_of

MODEL = "model.safetensors"


def model_files(model: Any) -> Generator[tuple, Any, dict[str, bytes]]:
    """The files of a model: its adapter if it has one, else its float weights and ``config.json``.

    Quantized weights are as they were loaded, since nothing trains them, and are left out.
    """
    if hasattr(model, "adapter_files"):
        return (yield from model.adapter_files())
    ties = model.ties() if hasattr(model, "ties") else {}
    state = {
        name: t
        for name, t in model.state_dict().items()
        if name not in ties and isinstance(t, Tensor) and not t.dtype.is_quantized
    }
    files = {MODEL: weights.save((yield from on_cpu(state)), {"format": "pt"})}
    if isinstance(model, PretrainedModel):
        files["config.json"] = json.dumps(config_keys(model), indent=2).encode()
    return files


def load_model(model: Any, files: Mapping[str, bytes]) -> None:
    """Give a model the weights of a checkpoint.

    Raises:
        WeightError: they are those of another model.
    """
    if hasattr(model, "load_adapter_files"):
        model.load_adapter_files(files)
        return
    if MODEL not in files:
        raise WeightError(
            f"resume_from_checkpoint: the checkpoint has no {MODEL}; it has {', '.join(files)}. Give the "
            "model the adapter that it was trained with."
        )
    given, own = tensors_of(files[MODEL]), model.state_dict()
    ties = model.ties() if hasattr(model, "ties") else {}
    needed = {name for name, t in own.items() if isinstance(t, Tensor) and not t.dtype.is_quantized} - set(
        ties
    )
    if missing := sorted(needed - set(given)):
        raise WeightError(
            f"resume_from_checkpoint: the checkpoint lacks {', '.join(missing[:4])} and has "
            f"{', '.join(sorted(set(given) - needed)[:4]) or 'nothing else'}. It is of another model."
        )
    model.load_state_dict(given, strict=False)


def run_files(trainer: Any, scaler: Any) -> Generator[tuple, Any, dict[str, bytes]]:
    """The files of a checkpoint."""
    files = yield from model_files(trainer.model)
    files["optimizer.pt"] = yield from packed(trainer.optimizer.state_dict())
    files["scheduler.pt"] = yield from packed(trainer.lr_scheduler.state_dict())
    if scaler.is_enabled():
        files["scaler.pt"] = yield from packed(scaler.state_dict())
    trainer.state.stateful_callbacks = trainer.callback_handler.states()
    files["trainer_state.json"] = trainer.state.to_json().encode()
    files["training_args.json"] = trainer.args.to_json_string().encode()
    files["rng_state.json"] = json.dumps(random_state()).encode()
    return files


def load_run(trainer: Any, scaler: Any, files: Mapping[str, bytes]) -> None:
    """Let a trainer stand where it stood when a checkpoint was written.

    Args:
        trainer: with its optimizer and schedule made.
        scaler: of its losses.
        files: by name.

    Raises:
        WeightError: the checkpoint is of another model, or of other parameters.
        FormatError: what it tells of the run, or of random numbers, is no JSON object.
    """
    load_model(trainer.model, files)
    trainer.optimizer.load_state_dict(_unpacked(files["optimizer.pt"]))
    trainer.lr_scheduler.load_state_dict(_unpacked(files["scheduler.pt"]))
    if "scaler.pt" in files and scaler.is_enabled():
        scaler.load_state_dict(_unpacked(files["scaler.pt"]))
    plan = trainer.state
    trainer.state = state = TrainerState.from_json(files["trainer_state.json"])
    for name in (
        "max_steps",
        "num_train_epochs",
        "train_batch_size",
        "logging_steps",
        "eval_steps",
        "save_steps",
    ):
        setattr(state, name, getattr(plan, name))
    trainer.callback_handler.load(state.stateful_callbacks)
    set_random_state(parse_object("rng_state.json", files["rng_state.json"]))


def _unpacked(data: bytes) -> Any:
    return load(io.BytesIO(data), map_location="cpu")


__all__ = ["load_model", "load_run", "model_files", "run_files"]
