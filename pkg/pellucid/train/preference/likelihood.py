"""Log-likelihoods of answers, and batches of prompts with answers of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...nn import functional as F
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor


def answers_of(
    rows: Sequence[tuple[Sequence[int], Sequence[int]]], fill: int, multiple: int
) -> dict[str, Tensor]:
    """Prompts and answers as rows of one length.

    Args:
        rows: (ids of the prompt, ids of the answer).
        fill: the id that rows are filled up with at their end.
        multiple: the length is a multiple of this.

    Returns:
        ``input_ids``, ``attention_mask`` and ``labels`` (-100 but for answers), each (rows, time).

    Raises:
        ShapeError: a prompt or an answer is empty.
    """
    if any(not len(p) or not len(a) for p, a in rows):
        raise ShapeError("a prompt or an answer is empty. Leave the example out.")
    size = max(len(p) + len(a) for p, a in rows)
    size += -size % multiple
    ids = np.full((len(rows), size), fill, np.int64)
    labels = np.full((len(rows), size), -100, np.int64)
    mask = np.zeros((len(rows), size), np.int64)
    for k, (prompt, answer) in enumerate(rows):
        end = len(prompt) + len(answer)
        ids[k, :end], mask[k, :end] = [*prompt, *answer], 1
        labels[k, len(prompt) : end] = answer
    return {"input_ids": tensor(ids), "attention_mask": tensor(mask), "labels": tensor(labels)}


def token_log_probs(model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """How likely a model finds each id of the answers, as logarithms, and where these are.

    Args:
        model: a causal language model.
        batch: of `answers_of`.

    Returns:
        (rows, time - 1) logarithms, 0 elsewhere, and 1.0 where an id of an answer is.
    """
    logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1].float()
    labels = batch["labels"][:, 1:]
    there = labels != -100
    losses = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), reduction="none")
    return -losses.reshape(labels.shape), there.float()


__all__ = ["answers_of", "token_log_probs"]
