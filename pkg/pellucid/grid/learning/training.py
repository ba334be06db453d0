"""Training on batches with a record of losses and times: backpropagation of any module by any optimizer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import ArgumentError, RangeError
from ...nn.likelihood_loss import cross_entropy
from ...nn.loss import mse_loss
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...nn.utils import clip_grad_norm_
from ...optim.optimizer import Optimizer
from ...optim.sgd import SGD
from ...tensors.shape import index
from ...tensors.tensor import Tensor

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mse": mse_loss, "cross_entropy": cross_entropy}


@dataclass(frozen=True)
class FitConfig:
    """Settings of `fit`.

    Args:
        epochs: how often all batches are gone through.
        learning_rate: of SGD, if no other optimizer is given.
        loss: "mse", "cross_entropy", or a function of output and target.
        gradient_clip: longest gradient of all parameters together; no bound if None.
        verbose: whether a line is printed after each epoch.
    """

    epochs: int = 10
    learning_rate: float = 0.01
    loss: str | Callable[[Tensor, Tensor], Tensor] = "mse"
    gradient_clip: float | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        if index(self.epochs, "FitConfig: epochs") < 1:
            raise RangeError(f"FitConfig: epochs must be at least 1, not {self.epochs}.")
        for name in ("learning_rate", "gradient_clip"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise RangeError(f"FitConfig: {name} must be positive and finite, not {value}.")
        if not callable(self.loss) and self.loss not in LOSSES:
            raise RangeError(f"FitConfig: loss must be one of {', '.join(LOSSES)}, not {self.loss!r}.")

    @property
    def criterion(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The loss as a function of output and target."""
        return LOSSES[self.loss] if isinstance(self.loss, str) else self.loss


class FitResult(NamedTuple):
    """What `fit` recorded: the mean loss of each epoch, the last one, and seconds."""

    losses: list[float]
    epoch_seconds: list[float]

    @property
    def final_loss(self) -> float:
        """The mean loss of the last epoch."""
        return self.losses[-1]

    @property
    def seconds(self) -> float:
        """All epochs together."""
        return sum(self.epoch_seconds)


def fit(
    module: Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    config: FitConfig | None = None,
    optimizer: Optimizer | None = None,
) -> FitResult:
    """Train a module on batches of inputs and targets.

    Losses are summed on the device and read once an epoch, so a step is one submission.

    Args:
        module: what learns.
        batches: pairs of input and target, gone through in every epoch: a list or a DataLoader.
        config: settings.
        optimizer: of the module's parameters; plain SGD if None.

    Returns:
        Losses and times by epoch.

    Raises:
        ArgumentError: there are no batches, or nothing that learns.

    Example:
        >>> import pellucid
        >>> x = pellucid.linspace(0, 1, 8, device="cpu").unsqueeze(1)
        >>> layer = pellucid.nn.Linear(1, 1, device="cpu")
        >>> result = pellucid.grid.fit(layer, [(x, 2 * x)], pellucid.grid.FitConfig(20, 0.5))
        >>> result.final_loss < result.losses[0]
        True
    """
    config = config or FitConfig()
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise ArgumentError(f"fit: {type(module).__name__} has no parameters that require a gradient.")
    optimizer = optimizer or SGD(parameters, config.learning_rate)
    losses, seconds = [], []
    for epoch in range(config.epochs):
        began, count, total = time.perf_counter(), 0, None
        for input, target in batches:
            loss = step(module, input, target, config.criterion, optimizer, parameters, config.gradient_clip)
            count, total = count + 1, loss if total is None else total + loss
        if total is None:
            raise ArgumentError(
                "fit: there are no batches. Give a list: an iterator is empty after one epoch."
            )
        losses.append(total.item() / count)
        seconds.append(time.perf_counter() - began)
        if config.verbose:
            print(f"epoch {epoch + 1}: loss {losses[-1]:.6g}, {seconds[-1]:.3f} s")
    return FitResult(losses, seconds)


def step(
    module: Module,
    input: Tensor,
    target: Tensor,
    criterion: Callable[[Tensor, Tensor], Tensor],
    optimizer: Optimizer,
    parameters: list[Parameter] | None = None,
    clip: float | None = None,
) -> Tensor:
    """One step of an optimizer; gives the loss before it, still on the device."""
    optimizer.zero_grad()
    loss = criterion(module(input), target)
    loss.backward()
    if clip is not None:
        clip_grad_norm_(parameters or list(module.parameters()), clip)
    optimizer.step()
    return loss.detach()
