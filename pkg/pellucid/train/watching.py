"""Watching a network while it trains: tensors of a model every n steps, and histograms of its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from typing import Any

import numpy as np

from ..autograd.grad_mode import under
from ..errors import ArgumentError, RangeError
from ..ops.index.counting import histc
from ..ops.shape.joining import cat, stack
from ..tensors.tensor import Tensor
from .callbacks import TrainerCallback
from .plots import report_histograms


class WatchCallback(TrainerCallback):
    """Shows tensors of the model every so many steps, such as attention, activations or a logit lens.

    The tensors are computed without gradients and read between two steps, by whoever runs the trainer:
    `train_async` awaits them, so a page stays usable.

    Args:
        every: steps from one look to the next.
        look: called with the model; gives tensors by name.
        show: called with the step and the arrays by name.

    Raises:
        RangeError: every is below 1.
        ArgumentError: look or show cannot be called.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.train import Trainer, TrainingArguments, WatchCallback
        >>> torch.set_default_device("cpu")
        >>> model = torch.nn.Linear(1, 1)
        >>> seen = WatchCallback(2, lambda m: {"w": m.weight}, lambda step, found: print(step, *found))
        >>> args = TrainingArguments(max_steps=4, disable_tqdm=True)
        >>> data = [(torch.ones(1), torch.zeros(1))] * 4
        >>> Trainer(
        ...     model, args, train_dataset=data, callbacks=[seen],
        ...     compute_loss_func=lambda y, labels, **_: torch.nn.functional.mse_loss(y, labels),
        ... ).train().global_step
        2 w
        4 w
        4
    """

    def __init__(
        self,
        every: int,
        look: Callable[[Any], Mapping[str, Tensor]],
        show: Callable[[int, dict[str, np.ndarray]], object],
    ):
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise RangeError(f"{type(self).__name__}: every must be a whole number from 1 on, not {every!r}.")
        for name, function in (("look", look), ("show", show)):
            if not callable(function):
                raise ArgumentError(f"{type(self).__name__}: {name} must be a function, not {function!r}.")
        self.every, self.look, self.show = every, look, show

    def tensors(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Mapping[str, Tensor]:
        """What it wants to see after this step."""
        return {} if state.global_step % self.every else under(False, self.look, kwargs["model"])

    def on_tensors(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The values that it asked for."""
        self.show(state.global_step, kwargs["values"])


class WeightHistograms(WatchCallback):
    """Histograms of a model's parameters every so many steps, for `plots.histograms` and for the page.

    They are counted on the device: what is read is the counts and the ends.

    Args:
        every: steps from one to the next.
        names: of the parameters, with ``*``.
        bins: of equal width between the least and the largest number.
        report: called with each entry; the page's event "histograms" if left out.

    Attributes:
        history: entries ``{"step": 50, "histograms": {name: {"low": ..., "high": ..., "counts": [...]}}}``.

    Raises:
        RangeError: every or bins is below 1.
    """

    def __init__(
        self,
        every: int = 50,
        names: str = "*weight",
        bins: int = 32,
        report: Callable[[Mapping[str, Any]], object] = report_histograms,
    ):
        super().__init__(every, self._count, self._take)
        if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
            raise RangeError(f"WeightHistograms: bins must be a whole number from 1 on, not {bins!r}.")
        self.names, self.bins, self.report = names, bins, report
        self.history: list[dict[str, Any]] = []
        self._of: list[str] = []

    def _count(self, model: Any) -> dict[str, Tensor]:
        rows, self._of = [], []
        for name, p in model.named_parameters():
            if not fnmatch(name, self.names) or not p.dtype.is_floating_point or not p.numel():
                continue
            x = p.detach().float()
            low, high = x.amin(), x.amax()
            # Where all are alike they lie in the first bin.
            share = (x - low) / (high - low).clamp(min=1e-30)
            rows.append(cat([histc(share, self.bins, 0.0, 1.0), stack([low, high])]))
            self._of.append(name)
        return {"rows": stack(rows)} if rows else {}

    def _take(self, step: int, found: dict[str, np.ndarray]) -> None:
        counted = {
            name: {"low": float(row[-2]), "high": float(row[-1]), "counts": [int(n) for n in row[:-2]]}
            for name, row in zip(self._of, found["rows"], strict=True)
        }
        self.history.append({"step": step, "histograms": counted})
        self.report(self.history[-1])


__all__ = ["WatchCallback", "WeightHistograms"]
