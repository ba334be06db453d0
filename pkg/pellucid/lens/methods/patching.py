"""Activation patching: which state of a clean run, put into a corrupted one, brings its answer back.

Also causal tracing, where the corrupted run has noise in its embeddings, and path patching, where only what
goes from senders to receivers changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.grad_mode import under
from ...errors import ArgumentError, ShapeError
from ...ops.elementwise.comparison import where
from ...ops.random.distributions import randn
from ...ops.shape.creation import eye
from ...ops.shape.joining import stack
from ...tensors.tensor import Tensor
from ..changes import Change
from ..plan import Plan
from ..points import pick_points
from ..run import ids_of, logits_of, run
from .metrics import Metric, measured


def activation_patching(
    model: Any,
    clean: Any,
    corrupted: Any,
    metric: Metric,
    *,
    point: str = "resid_pre",
    by: str = "position",
) -> Tensor:
    """The metric where one state of the corrupted run is that of the clean one, for each state in turn.

    All positions or heads of a layer are one run with a row for each.

    Args:
        model: a causal language model.
        clean, corrupted: ids (1, time) of equal length.
        metric: of logits, such as `logit_difference`.
        point: name of the points, such as ``resid_pre``, ``attn_out``, ``mlp_out``, ``z``; of all layers.
        by: ``position``, ``head`` (all positions at once), or ``both``.

    Returns:
        (layers, positions), (layers, heads) or (layers, positions, heads). To have shares of what was lost,
        subtract the metric of the corrupted run and divide by the distance to the clean one.

    Raises:
        ShapeError: the ids differ in length, or are several sequences.
        ArgumentError: the points have no heads.

    Source: Vig et al. 2020, "Investigating gender bias in language models using causal mediation analysis";
        Heimersheim and Nanda 2024, "How to use and interpret activation patching"
    """
    clean, corrupted = pair_of("activation_patching", model, clean, corrupted)
    found = list(pick_points(model, point).values())
    if by not in ("position", "head", "both"):
        raise ArgumentError(f"activation_patching: by must be position, head or both, not {by!r}.")
    if not found or (by != "position" and "head" not in found[0].axes):
        raise ArgumentError(
            f"activation_patching: there are no {by}s at {point!r} of {type(model).__name__}."
        )
    plan = Plan(capture=[p.address for p in found])
    good, bad = (run(model, ids, plan) for ids in (clean, corrupted))
    made = []
    for p in found:
        old, new = bad[p.address], good[p.address]
        mask = _one_each(old, p.axes, by)
        rows = mask.shape[0]
        patched = where(mask, new, old)
        made.append(_measured(model, corrupted.expand(rows, -1), {p.address: patched}, metric))
    result = stack(made)
    return result.unflatten(1, (clean.shape[1], -1)) if by == "both" else result


def pair_of(who: str, model: Any, clean: Any, corrupted: Any) -> tuple[Tensor, Tensor]:
    first, second = ids_of(model, clean), ids_of(model, corrupted)
    if first.shape != second.shape or first.shape[0] != 1:
        raise ShapeError(
            f"{who}: clean ids of shape {tuple(first.shape)} and corrupted ones of {tuple(second.shape)} "
            "must both be (1, time). Choose prompts of equal length."
        )
    return first, second


def _one_each(value: Tensor, axes: tuple[str, ...], by: str) -> Tensor:
    """Masks (rows, ...) over a value, each of which is true at one position, head or both."""
    sizes = {name: int(n) for name, n in zip(axes, value.shape, strict=True)}
    names = [n for n in ("position", "head") if by in (n, "both")]
    rows = 1
    for name in names:
        rows *= sizes[name]
    shape = [rows, *(sizes[a] if a in names else 1 for a in axes[1:])]
    # Positions and heads lie in the order of the axes: positions first.
    in_order = [a for a in axes[1:] if a in names]
    mask = eye(rows, device=value.device) > 0
    if in_order != names:
        mask = mask.unflatten(1, tuple(sizes[n] for n in names)).transpose(1, 2).flatten(1)
    return mask.reshape(shape)


def _measured(model: Any, ids: Tensor, patches: dict[str, Tensor], metric: Metric, **more: Any) -> Tensor:
    output = run(model, ids, Plan(patch=patches, **more)).output
    return measured("activation_patching", metric, logits_of(output))


def causal_tracing(
    model: Any,
    ids: Any,
    subject: Sequence[int],
    token: int,
    *,
    noise: float = 3.0,
    samples: int = 4,
    point: str = "resid_post",
    window: int = 1,
    generator: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Where a fact is: the answer's probability when the subject is noise but for one state.

    Args:
        model: a causal language model.
        ids: (1, time).
        subject: positions whose embeddings get noise.
        token: the answer's id.
        noise: standard deviation, in those of the embeddings of the subject.
        samples: draws of noise; the same ones in all runs.
        point: whose states are put back, one position at a time.
        window: so many layers around each are put back together.
        generator: of the noise.

    Returns:
        Probabilities of the answer: of the clean run (), of the corrupted one (), and (layers, positions)
        with a state put back, averaged over the draws.

    Source: Meng et al. 2022, "Locating and editing factual associations in GPT", section 2.1
    """
    ids = ids_of(model, ids)
    if ids.shape[0] != 1:
        raise ShapeError(f"causal_tracing: takes one sequence, not {ids.shape[0]}.")
    found = list(pick_points(model, point).values())
    plain = run(model, ids, Plan(capture=["embed", *(p.address for p in found)]))
    embedded = plain["embed"]
    chosen = embedded[:, list(subject)]
    draws = randn(samples, *chosen.shape[1:], device=ids.device, generator=generator)
    noisy = embedded.expand(samples, -1, -1).clone()
    noisy[:, list(subject)] = chosen + draws * (noise * chosen.std())
    time = ids.shape[1]

    def answer(output: Any) -> Tensor:
        return logits_of(output)[:, -1].float().softmax(-1)[:, token]

    corrupted = run(model, ids.expand(samples, -1), Plan(patch={"embed": noisy}))
    clean, low = answer(plain.output).mean(), answer(corrupted.output).mean()
    made = []
    for k in range(len(found)):
        near = found[max(0, k - (window - 1) // 2) : k + window // 2 + 1]
        rows = [
            run(
                model,
                ids.expand(samples, -1),
                Plan(
                    patch=[
                        Change("embed", "replace", noisy),
                        *(Change(p.address, "replace", plain[p.address], positions=(t,)) for p in near),
                    ]
                ),
            )
            for t in range(time)
        ]
        made.append(stack([answer(r.output).mean() for r in rows]))
    return clean, low, stack(made)


def path_patching(
    model: Any,
    clean: Any,
    corrupted: Any,
    metric: Metric,
    *,
    senders: str | Sequence[tuple[str, int]] = "z",
    receivers: Sequence[str] = (),
    heads: Sequence[int] | None = None,
    freeze: Sequence[str] = ("z",),
) -> Tensor:
    """The metric of a clean run where one head's corrupted output reaches some receivers, and nothing else.

    Between sender and receivers the heads keep what they had (feed-forwards, too, with ``mlp_out`` in
    ``freeze``); with no receivers the path goes to the logits directly.

    Args:
        model: a causal language model.
        clean, corrupted: ids (1, time) of equal length.
        metric: of logits.
        senders: points with heads, each head of which sends in turn; or (address, head) pairs.
        receivers: addresses of what the path ends in, such as ``rot_q.5``; the logits if none.
        heads: of the receivers; all if None.
        freeze: names of points that keep their clean values on the way.

    Returns:
        (layers, heads) of the senders, or (pairs,).

    Source: Wang et al. 2022, "Interpretability in the wild", section 3.1; Goldowsky-Dill et al. 2023,
        "Localizing model behavior with path patching"
    """
    clean, corrupted = pair_of("path_patching", model, clean, corrupted)
    frozen = list(pick_points(model, list(freeze)).values())
    if isinstance(senders, str):
        points = list(pick_points(model, senders).values())
    else:
        points = list(pick_points(model, [address for address, _ in senders]).values())
    if not points or any("head" not in p.axes for p in points):
        raise ArgumentError(f"path_patching: senders must be points with heads, not {senders!r}.")
    plan = Plan(capture=[*(p.address for p in (*frozen, *points))])
    good, bad = run(model, clean, plan), run(model, corrupted, plan)
    axis = points[0].axes.index("head")
    count = good[points[0].address].shape[axis]
    pairs = (
        [(p.address, h) for p in points for h in range(count)] if isinstance(senders, str) else list(senders)
    )
    made = []
    for address, head in pairs:
        changes = [Change(p.address, "replace", good[p.address]) for p in frozen]
        changes.append(Change(address, "replace", bad[address], heads=(head,)))
        seen = run(model, clean, Plan(capture=list(receivers), patch=changes))
        if receivers:
            chosen = None if heads is None else tuple(heads)
            back = [Change(r, "replace", seen[r], heads=chosen) for r in receivers]
            seen = run(model, clean, Plan(patch=back))
        made.append(measured("path_patching", metric, logits_of(seen.output)).reshape(()))
    result = stack(made)
    return result.unflatten(0, (-1, count)) if isinstance(senders, str) else result


def mean_activation(model: Any, batches: Sequence[Any], point: str) -> Tensor:
    """The mean of a value over positions and sequences, for ablation by the mean.

    Args:
        model: a model.
        batches: ids, each (batch, time) or a list.
        point: an address.

    Returns:
        The value's axes without batch and position.
    """
    total, count = None, 0
    for batch in batches:
        seen = under(False, run, model, batch, Plan(capture=[point]))[point]
        part = seen.sum((0, 1))
        total = part if total is None else total + part
        count += int(seen.shape[0] * seen.shape[1])
    if total is None:
        raise ArgumentError("mean_activation: batches are empty. Give at least one.")
    return total / count
