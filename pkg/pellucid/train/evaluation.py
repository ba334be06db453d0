"""Evaluation: loss, predictions and metrics of a dataset, without gradients."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError
from ..tensors.tensor import Tensor
from .data.loader import batches
from .state import EvalPrediction, PredictionOutput
from .step import placed


def _first_length(batch: Any) -> int:
    """Examples of a batch: the first axis of its first tensor."""
    values = (
        batch.values()
        if isinstance(batch, Mapping)
        else batch
        if isinstance(batch, (list, tuple))
        else [batch]
    )
    return next((v.shape[0] for v in values if isinstance(v, Tensor) and v.ndim), 1)


def joined(parts: list[Any]) -> Any:
    """Arrays of batches as one; where batches differ in length, they are filled up with -100."""
    if not parts:
        return None
    if isinstance(parts[0], tuple):
        return tuple(joined([p[k] for p in parts]) for k in range(len(parts[0])))
    if parts[0].ndim > 1:
        longest = max(p.shape[1] for p in parts)
        parts = [
            np.pad(p, [(0, 0), (0, longest - p.shape[1]), *[(0, 0)] * (p.ndim - 2)], constant_values=-100)
            for p in parts
        ]
    return np.concatenate(parts)


def predicted(outputs: Any) -> Any:
    """What a model's result says besides its loss: a tensor, or a tuple of them."""
    if isinstance(outputs, Tensor):
        return outputs
    if hasattr(outputs, "logits"):
        return outputs.logits
    values = outputs.to_tuple() if hasattr(outputs, "to_tuple") else outputs
    if isinstance(values, Mapping):
        values = tuple(v for name, v in values.items() if name != "loss")
    found = tuple(v for v in values if isinstance(v, Tensor) and v.ndim)
    return found[0] if len(found) == 1 else found


def evaluation(trainer: Any, loader: Any, prefix: str, keep: bool) -> Generator[tuple, Any, PredictionOutput]:
    """Run a model over a loader.

    Args:
        trainer: whose model, ``compute_loss`` and ``compute_metrics``.
        loader: gives batches.
        prefix: before the names of metrics.
        keep: whether predictions are kept, for metrics or the caller.

    Raises:
        ArgumentError: there is no example.
    """
    began, model = time.monotonic(), trainer.model
    was_training = model.training
    model.eval()
    losses: list[Any] = []
    sizes: list[int] = []
    predictions: list[Any] = []
    labels: list[Any] = []
    try:
        for batch in batches(loader, 0, 0):
            sizes.append(_first_length(batch))
            batch = placed(batch, trainer.device)
            with no_grad():
                loss, outputs = trainer.evaluate_batch(batch, keep)
            losses.append(loss.reshape(1).tolist_later() if loss is not None else None)
            if keep:
                predictions.append((yield from _arrays(predicted(outputs))))
                if (given := trainer.labels_of(batch)) is not None:
                    labels.append((yield from _arrays(given)))
    finally:
        model.train(was_training)
    if not sizes:
        raise ArgumentError("evaluate: the dataset has no examples.")
    metrics: dict[str, float] = {}
    if losses[0] is not None:
        total = 0.0
        for read, size in zip(losses, sizes, strict=True):
            total += (yield (read, "result", (), {}))[0] * size
        metrics["loss"] = total / sum(sizes)
    result = PredictionOutput(joined(predictions), joined(labels), {})
    if trainer.compute_metrics is not None and labels:
        metrics |= trainer.compute_metrics(EvalPrediction(result.predictions, result.label_ids))
    seconds = time.monotonic() - began
    metrics |= {
        "runtime": seconds,
        "samples_per_second": sum(sizes) / seconds if seconds else 0.0,
        "steps_per_second": len(sizes) / seconds if seconds else 0.0,
    }
    named = {k if k.startswith(f"{prefix}_") else f"{prefix}_{k}": v for k, v in metrics.items()}
    return result._replace(metrics=named)


def _arrays(value: Any) -> Generator[tuple, Any, Any]:
    if isinstance(value, tuple):
        found = []
        for t in value:
            found.append((yield (t.detach(), "numpy", (), {})))
        return tuple(found)
    return (yield (value.detach(), "numpy", (), {}))


__all__ = ["evaluation", "joined", "predicted"]
