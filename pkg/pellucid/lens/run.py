"""Runs of a model under a plan: hooks at its points, and the values by address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..autograd.grad_mode import under
from ..errors import ArgumentError, RangeError
from ..op.arguments import describe
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .logits import look_at
from .paths import checked
from .plan import Plan
from .points import Point, places
from .probe import Clock, hook, register
from .seen import Seen


@contextmanager
def attach(model: Any, plan: Plan) -> Iterator[Seen]:
    """Follow a plan in every call of a model while the context is open.

    Captured calls and the steps of ``generate`` stay captured: changes and what is kept are a part of them.
    Positions are those of the sequence, also where a cache holds the ones before.

    Args:
        model: a module.
        plan: what is seen and changed.

    Yields:
        A `Seen` of the last call: address -> tensor; its ``look`` is the logit lens, if the plan has one.

    Raises:
        WeightError: the model has no such point.

    Example:
        >>> from pellucid import lens
        >>> def tell(model, ids):
        ...     with lens.attach(model, lens.Plan(capture=["attn_probs.0"])) as seen:
        ...         for token in model.stream(ids):
        ...             print(token, seen["attn_probs.0"].shape)
    """
    checked(model, "")
    if not isinstance(plan, Plan):
        raise ArgumentError(f"lens: plan must be a Plan, not {describe(plan)}.")
    changes: dict[str, list[Any]] = {}
    found: dict[str, Point] = {}
    for change in plan.changes:
        for address, place in places(model, change.point).items():
            found[address] = place
            changes.setdefault(address, []).append(change)
    keeps: set[str] = set()
    for pattern in plan.capture:
        keeps.update(kept := places(model, pattern))
        found.update(kept)
    seen, looked = Seen(), Seen()
    with ExitStack() as stack:
        clock = None
        if any(change.positions is not None for change in plan.changes):
            clock = Clock()
            register(stack, model, clock, before=True)
        hook(stack, model, seen, found, changes, keeps, clock)
        if plan.lens is not None:
            settings = {"points": "resid_post", **plan.lens}
            wanted = [settings["points"]] if isinstance(settings["points"], str) else settings["points"]
            layers = {a: p for pattern in wanted for a, p in places(model, pattern).items()}
            hook(stack, model, looked, layers, {}, set(layers))
            position = settings.get("position")
            tap = look_at(model, seen, looked, tuple(layers), settings.get("top_k", 5), position)
            register(stack, model, tap)
        yield seen


def run(model: Any, ids: Any, plan: Plan | None = None, *, grad: bool = False, **forward: Any) -> Seen:
    """Run a model once under a plan.

    Args:
        model: a module.
        ids: (batch, time) ids, or what else the model takes; a list of ids is one sequence.
        plan: what is seen and changed; nothing if None.
        grad: record the graph, so that gradients of what is seen can be taken.
        forward: further arguments of the model's call, such as ``past_key_values``.

    Returns:
        A `Seen`: address -> tensor. ``output`` is what the model returned, ``look`` the plan's logit lens.

    Raises:
        WeightError: the model has no such point.
        RangeError: a change is about a position that the ids do not have.

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens
        >>> from pellucid.models import LlamaConfig, LlamaForCausalLM
        >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))
        ...     seen = lens.run(model, [1, 2, 3], lens.Plan(capture=["attn_probs", "resid_post"]))
        >>> {address: tuple(x.shape) for address, x in seen.items()}
        {'attn_probs.0': (1, 2, 3, 3), 'resid_post.0': (1, 3, 8)}
    """
    plan = Plan() if plan is None else plan
    if not isinstance(plan, Plan):
        raise ArgumentError(f"lens.run: plan must be a Plan, not {describe(plan)}.")
    ids = ids_of(model, ids)
    if forward.get("past_key_values") is None and ids.ndim == 2:
        for change in plan.changes:
            if wrong := [p for p in change.positions or () if not -ids.shape[1] <= p < ids.shape[1]]:
                raise RangeError(
                    f"lens.run: {change.method} at {change.point} is about position {wrong[0]}; there are "
                    f"{ids.shape[1]}."
                )
    with attach(model, plan) as seen:
        seen.output = under(grad, model, ids, **forward)
    return seen


def ids_of(model: Any, ids: Any) -> Any:
    """Ids as (batch, time) on the model's device; other inputs stay as they are."""
    if not isinstance(ids, Tensor):
        ids = tensor(ids, device=device_of(model))
    return ids.unsqueeze(0) if ids.ndim == 1 and not ids.dtype.is_floating_point else ids


def device_of(model: Any) -> Any:
    """Where a model's parameters are.

    Raises:
        ArgumentError: it is no module.
    """
    checked(model, "")
    parameter = next(iter(model.parameters()), None)
    return None if parameter is None else parameter.device


def logits_of(output: Any) -> Tensor:
    """The logits of what a model returned: a field of it, or the tensor itself."""
    return output if isinstance(output, Tensor) else output.logits
