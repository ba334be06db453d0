"""Target propagation: each layer learns from a target of its own, without the chain rule through all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...autograd.derivatives import grad
from ...autograd.grad_mode import enable_grad, no_grad
from ...errors import ArgumentError, RangeError
from ...nn.modules.container import Sequential
from ...nn.modules.module import Module
from ...ops.elementwise.comparison import where
from ...ops.shape.joining import stack
from ...tensors.tensor import Tensor
from ..network import GridNetwork


@dataclass(frozen=True)
class TargetPropagationConfig:
    """Settings of target propagation.

    Args:
        learning_rate: of the local steps.
        chain_rule: gaps go down by each layer's own derivative, unscaled: then a step is one of gradient
            descent. Without, each example's gap keeps its length on the way down: only directions are passed.
        gradient_scale: from the loss's gradient at the output to the output's gap.
        depth_scale: factor of the gap for each layer further down: above 1 deep layers learn more.
        momentum: of the steps.
        activation_clamp: targets are held within plus and minus this; no bound if None.
        budget: a layer whose link budget is below this is not changed.
        max_step: longest step of a layer's parameters; longer ones are shortened (damping). No bound if None.
    """

    learning_rate: float = 0.1
    chain_rule: bool = False
    gradient_scale: float = 1.0
    depth_scale: float = 1.0
    momentum: float = 0.0
    activation_clamp: float | None = None
    budget: float = 0.2
    max_step: float | None = None

    def __post_init__(self) -> None:
        positive = {"learning_rate", "gradient_scale", "depth_scale", "activation_clamp", "max_step"}
        for name in positive:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise RangeError(f"TargetPropagationConfig: {name} must be positive and finite, not {value}.")
        if not 0 <= self.momentum < 1 or not -1 <= self.budget <= 1:
            raise RangeError(
                f"TargetPropagationConfig: momentum lies between 0 and 1 and budget between -1 and 1, but "
                f"they are {self.momentum} and {self.budget}."
            )


class StepRecord(NamedTuple):
    """What a step did: the loss before it, and for each layer its link budget and the length of its gap."""

    loss: float
    budgets: list[float]
    gaps: list[float]


class TargetPropagation:
    """Trains a chain of layers by targets.

    The output's target lies down the gradient of the loss. For each layer from the last to the first, the
    gap is what its target differs from what it gave: ``gap = target - f(x)``. Its parameters take a step
    that closes the gap of this layer alone, and the layer before gets the gap that goes through this layer's
    own derivative. The link budget of a layer is the cosine between what it gave and its target; where it is
    too low, the target points elsewhere and the layer is left alone. Steps that are too long are shortened,
    so a large learning rate stays finite.

    Args:
        network: a GridNetwork without links, or a Sequential.
        config: settings.

    Raises:
        ArgumentError: the network is none of these, or has links.

    Source: Lee, Zhang, Fischer and Bengio 2015, "Difference Target Propagation", for layers that learn from
        targets; the gap's way down, budgets and damping are this library's.

    Example:
        >>> import pellucid
        >>> net = pellucid.nn.Sequential(pellucid.nn.Linear(1, 1, device="cpu"))
        >>> train = pellucid.grid.TargetPropagation(net)
        >>> x = pellucid.ones(1, 1, device="cpu")
        >>> first, second = (train.step(x, x * 3, pellucid.nn.functional.mse_loss) for _ in range(2))
        >>> second.loss < first.loss
        True
    """

    def __init__(self, network: Module, config: TargetPropagationConfig | None = None):
        self.config = config or TargetPropagationConfig()
        if isinstance(network, GridNetwork):
            if network.links:
                raise ArgumentError(
                    "TargetPropagation: the network has remote links; only chains have targets."
                )
            self.layers = [layer for place, layer in network.layers() if place not in network.disabled]
        elif isinstance(network, Sequential):
            self.layers = list(network)
        else:
            raise ArgumentError(
                f"TargetPropagation: the network must be a GridNetwork or a Sequential, not "
                f"{type(network).__name__}."
            )
        self.steps: dict[int, list[Tensor]] = {}

    def step(self, input: Tensor, target: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> StepRecord:
        """One step on a batch.

        Args:
            input: (examples, ...).
            target: what the loss compares the output with.
            loss: from the output and the target to a number.

        Returns:
            The loss before the step, link budgets from -1 to 1, and mean lengths of the gaps.
        """
        return _record(self._step(input, target, loss).tolist())

    async def step_async(
        self, input: Tensor, target: Tensor, loss: Callable[[Tensor, Tensor], Tensor]
    ) -> StepRecord:
        """`step` for places where Python cannot wait.

        Args:
            input, target, loss: as in `step`.
        """
        return _record(await self._step(input, target, loss).tolist_async())

    def _step(self, input: Tensor, target: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """One step; the loss, budgets and gaps, still on the device: a step is one submission."""
        inputs, outputs = [], []
        value = input.detach()
        with enable_grad():
            for layer in self.layers:
                value = value.detach().requires_grad_(value.dtype.is_floating_point)
                inputs.append(value)
                value = layer(value)
                outputs.append(value)
            end = value.detach().requires_grad_()
            found = loss(end, target)
            (slope,) = grad(found, [end])
        assert slope is not None
        gap = -self.config.gradient_scale * slope
        budgets, gaps = [], []
        for k in range(len(self.layers) - 1, -1, -1):
            gap = self._clamped(outputs[k].detach(), gap)
            budgets.append(_budget(outputs[k].detach(), gap))
            gaps.append(_lengths(gap).mean())
            gap = self._learn(k, inputs[k], outputs[k], gap, budgets[-1])
        return stack([found.detach().float(), *(v.float() for v in (*budgets[::-1], *gaps[::-1]))])

    def _clamped(self, given: Tensor, gap: Tensor) -> Tensor:
        bound = self.config.activation_clamp
        return gap if bound is None else (given + gap).clamp(-bound, bound) - given

    def _learn(self, k: int, input: Tensor, output: Tensor, gap: Tensor, budget: Tensor) -> Tensor:
        """Change a layer, and give the gap of the layer before."""
        parameters = [p for p in self.layers[k].parameters() if p.requires_grad]
        wanted = [*parameters, *([input] if input.requires_grad else [])]
        if not wanted or not output.requires_grad:
            return gap
        slopes = grad(output, wanted, grad_outputs=[gap], allow_unused=True)
        rises = [p.new_zeros(p.shape) if g is None else g for p, g in zip(parameters, slopes, strict=False)]
        self._move(k, parameters, rises, budget >= self.config.budget)
        below = slopes[-1] if input.requires_grad else None
        if below is None:
            return input.new_zeros(input.shape) if input.requires_grad else gap
        if not self.config.chain_rule:
            kept = _lengths(gap) / _lengths(below).clamp(min=1e-30)
            below = below * kept.reshape(-1, *[1] * (below.dim() - 1))
        return below * self.config.depth_scale

    def _move(self, k: int, parameters: Sequence[Tensor], rises: list[Tensor], learns: Tensor) -> None:
        """A step of a layer's parameters; where it does not learn, neither they nor its momentum change."""
        c = self.config
        if not parameters:
            return
        before = self.steps.get(k) or [p.new_zeros(p.shape) for p in parameters]
        steps = [c.momentum * v + c.learning_rate * g for v, g in zip(before, rises, strict=True)]
        if c.max_step is not None:
            length = stack([(s * s).sum() for s in steps]).sum().sqrt()
            factor = (c.max_step / length.clamp(min=c.max_step)).nan_to_num(0.0)
            steps = [(s * factor).nan_to_num(0.0, 0.0, 0.0) for s in steps]
        self.steps[k] = [where(learns, s, v) for s, v in zip(steps, before, strict=True)]
        with no_grad():
            for p, s in zip(parameters, steps, strict=True):
                p.add_(where(learns, s, 0.0))


def _lengths(gap: Tensor) -> Tensor:
    flat = gap.reshape(gap.shape[0], -1)
    return (flat * flat).sum(-1).sqrt()


def _budget(given: Tensor, gap: Tensor) -> Tensor:
    """The cosine between what a layer gave and its target, over the batch."""
    a, b = given.flatten(), (given + gap).flatten()
    length = ((a * a).sum() * (b * b).sum()).sqrt()
    return ((a * b).sum() / length.clamp(min=1e-30)).clamp(-1, 1)


def _record(numbers: list[float]) -> StepRecord:
    layers = len(numbers) // 2
    return StepRecord(numbers[0], numbers[1 : layers + 1], numbers[layers + 1 :])
