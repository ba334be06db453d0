"""Averages of a model's parameters over training (SWA, EMA): PyTorch's ``torch.optim.swa_utils``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from math import cos, pi
from typing import Any

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError, RangeError
from ..nn.modules.module import Module
from ..tensors import dtypes as dt
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .optimizer import Optimizer
from .schedule import LRScheduler, check_is_optimizer


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function of average, value and number of values so far: the mean with one value more.

    Returns:
        ``(averaged, current, num_averaged) -> averaged + (current - averaged) / (num_averaged + 1)``.

    Source: https://pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """

    @no_grad()
    def mean(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return averaged + (current - averaged) / (num_averaged + 1)

    return mean


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function of average and value: the exponential moving average.

    Args:
        decay: what the average keeps.

    Returns:
        ``(averaged, current, num_averaged) -> decay * averaged + (1 - decay) * current``.

    Raises:
        RangeError: ``decay`` is not between 0 and 1.

    Source: https://pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """
    if not 0 <= decay <= 1:
        raise RangeError(f"get_ema_avg_fn: decay must lie between 0 and 1, not {decay}.")

    @no_grad()
    def moving(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return decay * averaged + (1 - decay) * current

    return moving


def _of_many(average: Callable[..., Tensor]) -> Callable[..., None]:
    """A function of lists that writes averages in place, from one of a single tensor."""

    @no_grad()
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any) -> None:
        for a, b in zip(averaged, current, strict=True):
            a.copy_(average(a, b, num_averaged))

    return update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """`get_swa_avg_fn` of lists of tensors, in place.

    Source: https://pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """
    return _of_many(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """`get_ema_avg_fn` of lists of tensors, in place.

    Args:
        decay: what the average keeps.

    Source: https://pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """
    return _of_many(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over its calls of `update_parameters`.

    Args:
        model: what is copied.
        device: where the copy is.
        avg_fn: function of average, value and number of values so far; the mean if None.
        multi_avg_fn: the same of lists, in place.
        use_buffers: average buffers, too, instead of taking the last ones.

    Raises:
        ArgumentError: both functions are given.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.swa_utils.AveragedModel.html; Izmailov et
        al. 2018, "Averaging weights leads to wider optima and better generalization"

    Example:
        >>> import pellucid as torch
        >>> model = torch.nn.Linear(1, 1, bias=False, device="cpu")
        >>> averaged = torch.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = torch.nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight.item()
        3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel: takes avg_fn or multi_avg_fn, not both.")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=dt.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the average.

        Args:
            model: like the one that was copied.
        """
        own, others = (
            list(chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters())
            for m in (self.module, model)
        )
        current = [b.detach().to(a.device) for a, b in zip(own, others, strict=True)]
        count = int(self.n_averaged)
        if not count:
            for a, b in zip(own, current, strict=True):
                a.copy_(b)
        else:
            update = self.multi_avg_fn or _of_many(self.avg_fn or get_swa_avg_fn())
            update([a.detach() for a in own], current, count)
        if not self.use_buffers:
            for a, b in zip(self.module.buffers(), model.buffers(), strict=True):
                a.copy_(b.detach().to(a.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch norms anew, by one pass over data.

    Args:
        loader: batches; of tuples and lists the first is given to the model.
        model: changed in place.
        device: where batches are moved.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.swa_utils.update_bn.html
    """
    momenta: dict[Any, float | None] = {}
    module: Any
    for module in model.modules():
        if hasattr(module, "reset_running_stats") and hasattr(module, "num_batches_tracked"):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present rates to ``swa_lr`` within ``anneal_epochs`` steps, and no further.

    Args:
        swa_lr: the last rate, or one per group.
        anneal_epochs: see above.
        anneal_strategy: "cos" or "linear".

    Raises:
        RangeError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.swa_utils.SWALR.html
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        check_is_optimizer(self, optimizer)
        self.optimizer = optimizer
        if anneal_strategy not in ("cos", "linear"):
            raise RangeError(f"SWALR: anneal_strategy must be 'cos' or 'linear', not {anneal_strategy!r}.")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise RangeError(f"SWALR: anneal_epochs must be an integer of at least 0, not {anneal_epochs!r}.")
        for group, last in zip(optimizer.param_groups, self._by_group("swa_lr", swa_lr), strict=True):
            group["swa_lr"] = last
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way is gone."""
        done = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - cos(pi * done)) / 2 if self._anneal_strategy == "cos" else done

    def get_lr(self) -> list[float]:
        # At a step that is also the end, nothing is left of the rate at the start.
        step = self._step_count - 1
        step = max(1, step) if self.anneal_epochs == 0 else step
        gone, now = self._share(step - 1), self._share(step)
        rates = []
        for lr, group in zip(self._rates, self.optimizer.param_groups, strict=True):
            last = group["swa_lr"]
            start = last if gone == 1 else (lr - gone * last) / (1 - gone)
            rates.append(last * now + start * (1 - now))
        return rates


__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip
