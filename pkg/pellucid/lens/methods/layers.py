"""Predictions through the layers: rank and probability of a token, entropy, distance to the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...autograd.grad_mode import under
from ...errors import ArgumentError
from ...ops.shape.joining import cat, stack
from ...tensors.tensor import Tensor
from ..looks import as_slice
from ..plan import Plan
from ..points import pick_points
from ..run import ids_of, logits_of, run
from ..seen import Seen

# Hidden states that go through the head at once.
_ROWS = 64


@dataclass
class LayerCurves:
    """Numbers of the logit lens at every point and position; see `layer_curves`.

    Args:
        points: addresses, in order.
        rank: (points, positions) int64; 0 is the most likely.
        probability: (points, positions) of the token.
        entropy: (points, positions) in nats.
        kl: (points, positions), from the model's own prediction to the lens's, in nats.
    """

    points: list[str]
    rank: Tensor
    probability: Tensor
    entropy: Tensor
    kl: Tensor


def layer_curves(
    model: Any,
    source: Any,
    tokens: Any = None,
    *,
    points: str = "resid_post",
    positions: slice | int | None = None,
    lens: Any = None,
) -> LayerCurves:
    """How a token's rank and probability, the entropy and the distance to the end go through the layers.

    ``kl = sum p_end (log p_end - log p_layer)``

    Args:
        model: a causal language model.
        source: ids (1, time) to run, or what `run` saw of a plan that captures the points.
        tokens: the id that is followed at each position; that which the model predicts there if None.
        points: of the hidden states; of any name whose axes end in ``dim``.
        positions: which positions; all if not given.
        lens: what says which logits a hidden state has, such as a `TunedLens`; the logit lens if None.

    Returns:
        A `LayerCurves`.

    Raises:
        ArgumentError: the model has no such points.
        WeightError: what was seen lacks one of them.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens"; Belrose et al. 2023, "Eliciting latent
        predictions from transformers with the tuned lens", figure 5
    """
    found = pick_points(model, points)
    if not found:
        raise ArgumentError(f"layer_curves: {type(model).__name__} has no points {points!r}.")
    if isinstance(source, Seen):
        seen = source
    else:
        seen = run(model, ids_of(model, source), Plan(capture=list(found)))
    chosen = as_slice(positions)
    end = logits_of(seen.output)[0, chosen].float().log_softmax(-1)
    wanted = end.argmax(-1) if tokens is None else ids_of(model, tokens).reshape(-1).expand(end.shape[0])
    rows = [_curves(model, seen[a][0, chosen], a, end, wanted.unsqueeze(1), lens) for a in found]
    return LayerCurves(list(found), *(stack(list(column)) for column in zip(*rows, strict=True)))


def _curves(
    model: Any, hidden: Tensor, address: str, end: Tensor, wanted: Tensor, lens: Any
) -> tuple[Tensor, ...]:
    """Rank, probability, entropy and distance of the states of one point: (positions,) each."""
    made = []
    for k in range(0, hidden.shape[0], _ROWS):
        some = hidden[k : k + _ROWS]
        logits = under(False, model.unembed, some) if lens is None else lens.logits(some, address)
        said = logits.float().log_softmax(-1)
        own = said.gather(1, wanted[k : k + _ROWS])
        last = end[k : k + _ROWS]
        made.append(
            (
                (said > own).sum(-1),
                own.exp().squeeze(1),
                -(said.exp() * said).sum(-1),
                (last.exp() * (last - said)).sum(-1),
            )
        )
    return tuple(cat(list(parts)) for parts in zip(*made, strict=True))
