"""The logit lens: what each layer would have said, had it been the last."""

from __future__ import annotations

from typing import Any
from weakref import ref

from ..autograd.grad_mode import under
from ..errors import ShapeError, WeightError
from ..tensors.meta import Meta
from ..tensors.tensor import Tensor
from .capture import Seen, capture
from .looks import LogitLens, Request


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

    What is asked of a `Seen` at every step of ``model.stream`` is begun with the step, and hardly delays the
    next one.

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
    if not isinstance(source, Seen):
        with capture(model, pattern) as seen:
            under(False, model, source, **forward)
    else:
        seen = source
    if isinstance(positions, int):
        positions = slice(positions, positions + 1 or None)
    chosen = positions or slice(None)
    request = Request(ref(model), pattern, top_k, chosen.start, chosen.stop, chosen.step)
    layers = request.layers(seen)
    if not layers:
        raise WeightError(
            f"logit_lens: nothing of what was seen fits {pattern!r}. Capture the layers, or give their "
            "pattern."
        )
    # What layers return is of one kind, or of few: each is checked once.
    kinds: dict[Meta, str] = {}
    for path, hidden in layers.items():
        kinds.setdefault(hidden._meta, path)
    for m, path in kinds.items():
        if m.rank != 3 or m.shape[0] != 1:
            raise ShapeError(
                f"logit_lens: {path} returned shape {tuple(m.shape)}, not (1, time, dim). "
                "Run one sequence, and give a pattern of layers."
            )
    time = min([m.shape[1] for m in kinds])
    if not len(range(time)[chosen]):
        raise ShapeError(
            f"logit_lens: positions {chosen} are none of the {time} that were seen. Give some of these."
        )
    # Every new token is looked at alike. A user's own head may read what no capture watches.
    if isinstance(source, Seen) and type(model).unembed.__module__.startswith("pellucid."):
        return under(False, source.ahead.ask, request, layers)
    return under(False, request.look, layers, again=False)
