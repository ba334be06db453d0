"""Gradients of a metric at points: attribution patching, saliency of tokens, integrated gradients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from ...autograd.derivatives import grad
from ...autograd.grad_mode import under
from ...errors import ArgumentError
from ...ops.shape.creation import arange
from ...tensors.tensor import Tensor
from ..plan import Plan
from ..points import BESIDE, pick_points
from ..probe import hook
from ..run import ids_of, logits_of, run
from ..seen import Seen
from .metrics import Metric, measured
from .patching import pair_of


def states(
    model: Any,
    ids: Tensor,
    points: str | list[str],
    embed: Callable[[Tensor], Tensor] | None = None,
) -> Seen:
    """Values at points with the graph that leads from the embedding to them and to ``output``.

    Args:
        model: a causal language model; its parameters may be frozen or quantized.
        ids: (batch, time).
        points: addresses, names or patterns.
        embed: what becomes of the embedding first.

    Raises:
        ArgumentError: the model has no such points.
    """
    found = pick_points(model, points)
    start = pick_points(model, "embed")
    if not found or not start:
        raise ArgumentError(f"lens: {type(model).__name__} has no points {points!r} behind an embedding.")

    def begin(x: Tensor) -> Tensor:
        x = x.detach() if embed is None else embed(x.detach())
        return x.requires_grad_(True)

    # What is computed beside the kernel is put in its place, so that gradients reach it.
    changes = {a: [lambda x: x + 0] for a, p in found.items() if p.kind.form in BESIDE}
    seen = Seen()
    with ExitStack() as stack:
        changes["embed"] = [begin]
        hook(stack, model, seen, {**start, **found}, changes, {*start, *found}, plain=True)
        seen.output = under(True, model, ids)
    return seen


def gradients(
    model: Any,
    ids: Any,
    metric: Metric,
    points: str | list[str] = "resid_post",
    *,
    embed: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Seen, dict[str, Tensor]]:
    """Values at points and the gradients of a metric's sum there.

    The graph begins at the embedding, so that quantized and frozen models have gradients, too.

    Args:
        model: a causal language model.
        ids: (batch, time).
        metric: of logits.
        points: addresses, names or patterns.
        embed: what becomes of the embedding first.

    Returns:
        A `Seen` with ``output``, and address -> gradient of the value's shape.

    Raises:
        ArgumentError: the model has no such points, or the metric is no number a row.
    """
    seen = states(model, ids_of(model, ids), points, embed)
    value = under(True, measured, "gradients", metric, logits_of(seen.output))
    wanted = list(pick_points(model, points))
    made = grad(under(True, value.sum), [seen[a] for a in wanted], allow_unused=True)
    given = {a: seen[a] * 0 if g is None else g for a, g in zip(wanted, made, strict=True)}
    return seen, given


def attribution_patching(
    model: Any,
    clean: Any,
    corrupted: Any,
    metric: Metric,
    points: str | list[str] = "resid_pre",
) -> dict[str, Tensor]:
    """Activation patching of everything at once, to first order: ``(clean - corrupted) * gradient``.

    Args:
        model: a causal language model.
        clean, corrupted: ids (1, time) of equal length.
        metric: of logits; its gradient is taken in the corrupted run.
        points: addresses, names or patterns.

    Returns:
        address -> what putting the clean value there would change of the metric, by every entry. Sum over the
        last axis for positions or heads.

    Source: Nanda 2023, "Attribution patching: activation patching at industrial scale"; Syed et al. 2023,
        "Attribution patching outperforms automated circuit discovery"
    """
    clean, corrupted = pair_of("attribution_patching", model, clean, corrupted)
    seen, found = gradients(model, corrupted, metric, points)
    good = run(model, clean, Plan(capture=list(found)))
    return {a: (good[a] - seen[a].detach()) * g for a, g in found.items()}


def saliency(model: Any, ids: Any, metric: Metric) -> tuple[Tensor, Tensor]:
    """How much each token's embedding matters, to first order.

    Args:
        model: a causal language model.
        ids: (batch, time).
        metric: of logits.

    Returns:
        The gradient's length at each token, and embedding times gradient summed over columns: (batch, time)
        each.

    Source: Simonyan et al. 2013, "Deep inside convolutional networks", section 3; Shrikumar et al. 2016, "Not
        just a black box"
    """
    seen, found = gradients(model, ids, metric, "embed")
    g = found["embed"]
    return (g * g).sum(-1).sqrt(), (g * seen["embed"].detach()).sum(-1)


def integrated_gradients(
    model: Any, ids: Any, metric: Metric, *, steps: int = 32, baseline: Tensor | None = None, rows: int = 8
) -> Tensor:
    """What each token adds to the metric on the way from a baseline of embeddings to these.

    ``(x - baseline) * mean of gradients along the straight line``; over tokens they add up to the metric's
    change.

    Args:
        model: a causal language model.
        ids: (1, time).
        metric: of logits.
        steps: points on the line, in the middle of equal parts.
        baseline: embeddings (time, dim); zeros if None.
        rows: steps that are run together.

    Returns:
        (time,).

    Source: Sundararajan et al. 2017, "Axiomatic attribution for deep networks", equation 3
    """
    ids = ids_of(model, ids)
    if not isinstance(steps, int) or steps < 1 or ids.shape[0] != 1:
        raise ArgumentError(
            f"integrated_gradients: {steps} steps of {ids.shape[0]} sequences. Give at least one step of one "
            "sequence."
        )
    embedded = run(model, ids, Plan(capture=["embed"]))["embed"][0]
    start = embedded * 0 if baseline is None else baseline.to(embedded.device)
    total = embedded * 0
    for first in range(0, steps, rows):
        some = min(rows, steps - first)
        shares = ((arange(some, device=ids.device) + (first + 0.5)) / steps).reshape(-1, 1, 1)
        line = start + shares * (embedded - start)
        _, found = gradients(model, ids.expand(some, -1), metric, "embed", embed=lambda _, line=line: line)
        total = total + found["embed"].sum(0)
    return ((embedded - start) * total / steps).sum(-1)
