"""The logit lens: what each layer would have said, had it been the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..autograd import no_grad
from ..errors import ShapeError, WeightError
from ..ops.joining import cat
from ..ops.softmax import log_softmax
from ..ops.sort import topk
from ..tensor import Tensor
from .capture import Seen, capture
from .paths import matches

# Hidden states that go through the head at once; more would hold more logits than that gains.
_ROWS = 64


@dataclass
class LogitLens:
    """The most likely next ids after every layer and position.

    Args:
        paths: the layers' paths, in order.
        ids: (layers, positions, k) int64.
        probabilities: (layers, positions, k) float32, largest first.
    """

    paths: list[str]
    ids: Tensor
    probabilities: Tensor

    def table(self, tokenizer: Any = None) -> list[list[list[tuple[Any, float]]]]:
        """Values as Python lists: [layer][position] -> [(token, probability), ...]. Waits for the device.

        Args:
            tokenizer: turns ids into text; without one ids stay numbers.
        """
        return self._rows(self.ids.tolist(), self.probabilities.tolist(), tokenizer)

    async def table_async(self, tokenizer: Any = None) -> list[list[list[tuple[Any, float]]]]:
        """The awaitable twin of `table`."""
        return self._rows(await self.ids.tolist_async(), await self.probabilities.tolist_async(), tokenizer)

    def _rows(self, ids, probabilities, tokenizer):
        name = (lambda i: i) if tokenizer is None else (lambda i: tokenizer.decode([i]))
        return [
            [[(name(i), p) for i, p in zip(*cell, strict=True)] for cell in zip(*layer, strict=True)]
            for layer in zip(ids, probabilities, strict=True)
        ]


def logit_lens(
    model: Any,
    source: Tensor | Seen,
    pattern: str = "model.layers.*",
    *,
    top_k: int = 5,
    positions: slice | int | None = None,
    **forward,
) -> LogitLens:
    """What each layer would have said: final norm, unembedding, softmax, top k of its output.

    Args:
        model: a causal language model with ``unembed(hidden)``.
        source: ids (1, time) to run, or what `capture` saw of a run.
        pattern: paths of the layers.
        top_k: candidates per cell.
        positions: which positions; all if not given.
        forward: further arguments of the model's call, such as ``past_key_values``.

    Returns:
        A `LogitLens`; its last row is the model's own prediction.

    Raises:
        WeightError: no module fits, or nothing that was captured does.
        ShapeError: several sequences, or outputs that are not hidden states.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens"
    """
    with no_grad():
        if not isinstance(source, Seen):
            with capture(model, pattern) as seen:
                model(source, **forward)
        else:
            seen = source
        layers = {path: hidden for path, hidden in seen.items() if matches(path, pattern)}
        if not layers:
            raise WeightError(
                f"logit_lens: nothing of what was seen fits {pattern!r}. Capture the layers, or give their "
                "pattern."
            )
        parts = []
        for path, hidden in layers.items():
            if hidden.ndim != 3 or hidden.shape[0] != 1:
                raise ShapeError(
                    f"logit_lens: {path} returned shape {tuple(hidden.shape)}, not (1, time, dim). "
                    "Run one sequence, and give a pattern of layers."
                )
            parts.append(hidden[0] if positions is None else hidden[0, _as_slice(positions)])
        # The head is large and is read once for many rows: layers and positions go through it together.
        rows = cat(parts)
        found = [_best(model, rows[k : k + _ROWS], top_k) for k in range(0, rows.shape[0], _ROWS)]
        probabilities, ids = (
            cat(values).reshape(len(parts), parts[0].shape[0], top_k) for values in zip(*found, strict=True)
        )
        return LogitLens(list(layers), ids, probabilities)


def _as_slice(positions: slice | int) -> slice:
    return slice(positions, positions + 1 or None) if isinstance(positions, int) else positions


def _best(model: Any, rows: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Probabilities and ids of the most likely next ids after some hidden states."""
    values, indices = topk(log_softmax(model.unembed(rows), -1), top_k, -1)
    return values.exp(), indices
