"""Two models, or one under two plans, step by step on the same tokens, with what differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError
from ...tensors.tensor import Tensor
from ..points import pick_points
from .session import Session


@dataclass
class StepDifference:
    """What two sessions differ in at one token.

    Args:
        token: that both read last.
        choices: the likeliest next id of each.
        kl: from the first's prediction to the second's, in nats.
        distances: by address, the length of the difference of values over that of the first's.
    """

    token: int
    choices: tuple[int, int]
    kl: float
    distances: dict[str, float]

    @property
    def agree(self) -> bool:
        """Whether both would say the same."""
        return self.choices[0] == self.choices[1]


class Lockstep:
    """Two sessions that read the same tokens: a quantized model beside a float one, or a plan beside none.

    Args:
        first, second: sessions that stand at the same tokens.
        points: whose values are compared; of those that both models have.

    Raises:
        ArgumentError: they stand at different tokens, or their vocabularies differ.

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens
        >>> from pellucid.models import LlamaConfig, LlamaForCausalLM
        >>> _ = torch.manual_seed(0)
        >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, **sizes))
        >>> zero = lens.Plan(ablate=[{"point": "mlp_out.1", "method": "zero"}])
        >>> pair = lens.Lockstep(lens.Session(model, [1, 2]), lens.Session(model, [1, 2], plan=zero))
        >>> found = pair.step()
        >>> found.distances["resid_post.0"], found.distances["resid_post.1"] > 0, found.kl > 0
        (0.0, True, True)
    """

    def __init__(self, first: Session, second: Session, points: Any = "resid_post"):
        if first.ids != second.ids:
            raise ArgumentError(
                "Lockstep: the sessions stand at different tokens. Begin both with the same ids."
            )
        sizes = [s.model.config.vocab_size for s in (first, second)]
        if sizes[0] != sizes[1]:
            raise ArgumentError(f"Lockstep: the vocabularies have {sizes[0]} and {sizes[1]} tokens.")
        self.first, self.second = first, second
        self.points = [a for a in pick_points(first.model, points) if a in pick_points(second.model, points)]
        self._last: StepDifference | None = None

    def step(self, token: int | None = None) -> StepDifference:
        """Compare at the token that both stand at; before that, from the second call on, add one. Waits.

        Args:
            token: the id that both go on with; what the first would say if None.
        """
        if self._last is not None:
            token = self._last.choices[0] if token is None else token
            self.first.token(token)
            self.second.token(token)
        self._last = self._compare()
        return self._last

    def _compare(self) -> StepDifference:
        seen = [s.read(self.points) for s in (self.first, self.second)]
        ends = [s.logits.float().cpu().log_softmax(-1) for s in (self.first, self.second)]
        kl = (ends[0].exp() * (ends[0] - ends[1])).sum().item()
        choices = int(ends[0].argmax().item()), int(ends[1].argmax().item())
        distances = {a: _distance(seen[0][a], seen[1][a]) for a in self.points}
        return StepDifference(self.first.at.id, choices, kl, distances)


def _distance(first: Tensor, second: Tensor) -> float:
    """Of the last position's values; infinite where the shapes differ."""
    a, b = (x[:, -1].float().cpu() for x in (first, second))
    if a.shape != b.shape:
        return float("inf")
    difference, length = (a - b).norm().item(), a.norm().item()
    return difference / length if length else float(difference != 0)
