"""What attention heads do: scores of induction, of the previous and of the same token; attention rollout."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError
from ...ops.random.distributions import randint
from ...ops.shape.creation import eye
from ...ops.shape.joining import cat, stack
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..plan import Plan
from ..run import device_of, ids_of, run

# Where each position of the second half of a repeated text looks: so far back, in lengths and steps.
PATTERNS = {"induction": (1, -1), "duplicate": (1, 0), "previous": (0, 1)}


def head_scores(
    model: Any,
    kind: str = "induction",
    *,
    length: int = 25,
    batch: int = 4,
    prefix: int | None = None,
    generator: Any = None,
) -> Tensor:
    """How far each head is of a kind: its mean attention to where such a head looks, on repeated random ids.

    An induction head looks behind the earlier copy of its token, a duplicate-token head at that copy, a
    previous-token head one back.

    Args:
        model: a causal language model.
        kind: ``induction``, ``duplicate`` or ``previous``.
        length: random ids, which come twice.
        batch: sequences.
        prefix: an id before them, such as that of the beginning.
        generator: of the ids.

    Returns:
        (layers, heads), from 0 to 1.

    Raises:
        ArgumentError: there is no such kind.

    Source: Olsson et al. 2022, "In-context learning and induction heads", section "Mechanistic definition";
        Elhage et al. 2021, "A mathematical framework for transformer circuits"
    """
    if kind not in PATTERNS:
        raise ArgumentError(f"head_scores: kind must be one of {', '.join(PATTERNS)}, not {kind!r}.")
    device, vocab = device_of(model), model.config.vocab_size
    half = randint(0, vocab, (batch, length), device=device, generator=generator)
    ids = cat([half, half], 1)
    first = 0
    if prefix is not None:
        first = 1
        ids = cat([tensor([[prefix]] * batch, device=device), ids], 1)
    return pattern_scores(model, ids, kind, length, first)


def pattern_scores(model: Any, ids: Any, kind: str, length: int, first: int = 0) -> Tensor:
    """The same of ids that repeat after ``length``, from position ``first`` on: (layers, heads)."""
    ids = ids_of(model, ids)
    periods, steps = PATTERNS[kind]
    back = periods * length + steps
    time = ids.shape[1]
    seen = run(model, ids, Plan(capture=["attn_probs"]))
    # What lies on a diagonal; of two copies only the second has something to look back at.
    begin = first + length if periods else back
    made = []
    for probs in seen.values():
        diagonal = probs.diagonal(-back, 2, 3)[..., begin - back : time - back]
        made.append(diagonal.mean((0, 2)))
    return stack(made)


def attention_rollout(model: Any, ids: Any, *, residual: float = 0.5) -> Tensor:
    """How much of each token reaches each position through all layers, if heads only moved what they look at.

    ``rollout_l = (residual * I + (1 - residual) * mean of heads) @ rollout_(l-1)``

    Args:
        model: a causal language model.
        ids: (batch, time).
        residual: the share that goes past attention.

    Returns:
        (layers, batch, time, time); rows sum to one.

    Source: Abnar and Zuidema 2020, "Quantifying attention flow in transformers", section 3
    """
    ids = ids_of(model, ids)
    seen = run(model, ids, Plan(capture=["attn_probs"]))
    same = eye(ids.shape[1], device=ids.device)
    made: list[Tensor] = []
    for probs in seen.values():
        step = residual * same + (1 - residual) * probs.mean(1)
        made.append(step @ made[-1] if made else step)
    return stack(made)
