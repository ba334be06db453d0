"""The logit lens: what each layer would have said, had it been the last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

from ..autograd import no_grad
from ..capture import Compiled
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
        ids, probabilities = self.ids.tolist_later(), self.probabilities.tolist_later()
        return self._rows(ids.result(), probabilities.result(), tokenizer)

    async def table_async(self, tokenizer: Any = None) -> list[list[list[tuple[Any, float]]]]:
        """The awaitable twin of `table`."""
        ids, probabilities = self.ids.tolist_later(), self.probabilities.tolist_later()
        return self._rows(await ids.result_async(), await probabilities.result_async(), tokenizer)

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
        for path, hidden in layers.items():
            if hidden.ndim != 3 or hidden.shape[0] != 1:
                raise ShapeError(
                    f"logit_lens: {path} returned shape {tuple(hidden.shape)}, not (1, time, dim). "
                    "Run one sequence, and give a pattern of layers."
                )
        if isinstance(positions, int):
            positions = slice(positions, positions + 1 or None)
        chosen = positions or slice(None)
        time = min(hidden.shape[1] for hidden in layers.values())
        if not len(range(time)[chosen]):
            raise ShapeError(
                f"logit_lens: positions {chosen} are none of the {time} that were seen. Give some of these."
            )
        # Every new token is looked at alike. A user's own head may read what no capture watches.
        again = isinstance(source, Seen) and type(model).unembed.__module__.startswith("pellucid.")
        look = _captured_look(model) if again else partial(_look, model)
        ids, probabilities = look(list(layers.values()), chosen.start, chosen.stop, chosen.step, top_k)
        return LogitLens(list(layers), ids, probabilities)


_looks: WeakKeyDictionary[Any, Compiled] = WeakKeyDictionary()


def _captured_look(model: Any) -> Compiled:
    """`_look` through a model's head, captured; the model is not kept alive."""
    if model not in _looks:
        get: Any = ref(model)

        def look(layers: list[Tensor], start: int | None, stop: int | None, step: int | None, top_k: int):
            return _look(get(), layers, start, stop, step, top_k)

        _looks[model] = Compiled(look, tree=lambda: get().modules(), quiet=True)
    return _looks[model]


def _look(
    model: Any, layers: list[Tensor], start: int | None, stop: int | None, step: int | None, top_k: int
) -> tuple[Tensor, ...]:
    """Ids and probabilities, (layers, positions, top_k) each, of what hidden states say."""
    parts = [hidden[0, start:stop:step] for hidden in layers]
    # The head is large and is read once for many rows: layers and positions go through it together.
    rows = cat(parts)
    found = [_best(model, rows[k : k + _ROWS], top_k) for k in range(0, rows.shape[0], _ROWS)]
    shape = (len(parts), parts[0].shape[0], top_k)
    return tuple(cat(values).reshape(shape) for values in zip(*found, strict=True))


def _best(model: Any, rows: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """The most likely next ids after some hidden states, and their probabilities."""
    values, indices = topk(log_softmax(model.unembed(rows), -1), top_k, -1)
    return indices, values.exp()
