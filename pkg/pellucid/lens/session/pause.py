"""A pause within a token: layers run one at a time, and the values of each are passed one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentError
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..changes import Change
from ..plan import Plan
from ..points import pick_points, points
from ..probe import Clock
from ..run import attach
from .branches import Branch
from .tree import TokenNode


class Pause:
    """The reading of one token, stopped at a point.

    Args:
        model: a causal language model.
        node: the token that is read.
        branch: the cache, turned back to the position before it.

    Attributes:
        address: of the point; its value is the last one that was computed.
        passed: values of all points up to it, by address.
        logits: (1, 1, vocab) once the end was reached, else None.
    """

    def __init__(self, model: Any, node: TokenNode, branch: Branch):
        self._model, self.node, self.branch = model, node, branch
        self._groups = _groups(model)
        self._ahead: list[tuple[str, Tensor]] = []  # values of the layer that ran, which were not passed yet
        self._ids = tensor([[node.id]], device=model.device)
        self._hidden: Tensor | None = None
        self._masks: dict = {}
        self._next = 0
        self.passed: dict[str, Tensor] = {}
        self.address = ""
        self.logits: Tensor | None = None
        self.advance()

    @property
    def value(self) -> Tensor:
        """The value at the point."""
        return self.passed[self.address]

    @property
    def addresses(self) -> list[str]:
        """All points at which it can stop, in order."""
        return [address for group in self._groups for address in group]

    def advance(self) -> bool:
        """Go to the next point; False at the end, where the token was read."""
        while not self._ahead:
            if self._next == len(self._groups):
                return False
            self._run(self._next)
            self._next += 1
        self.address, value = self._ahead.pop(0)
        self.passed[self.address] = value
        return True

    def go(self, address: str) -> None:
        """Go on until a point.

        Raises:
            ArgumentError: it is none of the points that are still to come.
        """
        if address not in self.addresses or address in self.passed:
            raise ArgumentError(
                f"Session: {address!r} does not come after {self.address}. Points are listed by "
                "session.paused.addresses."
            )
        while self.address != address and self.advance():
            pass

    def _run(self, group: int) -> None:
        """Run the embedding, a layer, or the end, and keep its values."""
        plan, decoder, cache = self.node.plan, self._model.decoder, self.branch.cache
        plan = Plan(self._stops(group), plan.patch, plan.steer, plan.ablate)
        with no_grad(), attach(self._model, plan) as seen:
            for hook in self._model._hooks.values():
                if isinstance(hook.function, Clock):  # the model itself is not called, which would tell it
                    hook.function(self._model, (self._ids, None, cache), {})
            if group == 0:
                self._masks = decoder.masks(self._ids, cache, None)
                self._hidden = decoder.embed(self._ids, cache, None)
            elif group < len(self._groups) - 1:
                assert self._hidden is not None
                self._hidden = decoder.run_layer(group - 1, self._hidden, cache, self._masks)
            else:
                assert self._hidden is not None
                cache.advance(1)
                self.logits = self._model.logits(decoder.finish(self._hidden))
        self._ahead = [(address, seen[address]) for address in self._groups[group] if address in seen]

    def _stops(self, group: int) -> list[str]:
        """The addresses of a group; no scores where a window has forgotten keys that they are of."""
        windows, cache = [None, *self.branch.cache.windows, None], self.branch.cache
        forgets = windows[group] is not None and cache.length >= windows[group]
        return [
            a for a in self._groups[group] if not (forgets and a.startswith(("attn_scores", "attn_probs")))
        ]


def _groups(model: Any) -> list[list[str]]:
    """Addresses of the embedding, of each layer and of the end."""
    layers = model.config.num_hidden_layers
    found: list[list[str]] = [[] for _ in range(layers + 2)]
    for address, place in points(model).items():
        at = place.layer + 1 if place.layer is not None else 0 if address == "embed" else layers + 1
        found[at].append(address)
    return found


def changed(model: Any, plan: Plan, address: str, value: Any) -> Plan:
    """The plan with another value at one point, in place of all that it does there."""

    def others(changes: Sequence[Change]) -> list[Change]:
        kept = []
        for change in changes:
            found = pick_points(model, change.point)
            if address not in found:
                kept.append(change)
                continue
            settings = {
                name: getattr(change, name)
                for name in change.__dataclass_fields__
                if not name.startswith("_") and name != "point"
            }
            kept += [Change(point, **settings) for point in found if point != address]
        return kept

    patch = [*others(plan.patch), Change(address, "replace", value)]
    return Plan(plan.capture, patch, others(plan.steer), others(plan.ablate), plan.lens)
