"""Tuned lens: a learned translation of each layer's state into the last one's, then the model's own head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...autograd.derivatives import grad
from ...autograd.grad_mode import under
from ...device.steps import now
from ...errors import ArgumentError, FormatError
from ...nn.modules.container import ModuleDict
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ...optim import Adam
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ...weights.fields import shown
from ..plan import Plan
from ..points import pick_points
from ..run import device_of, ids_of, logits_of, run
from .arrays import read_arrays


class TunedLens(Module):
    """What each layer would have said, in the words of the last: ``head(norm(h + A h + b))``.

    A fresh one is the logit lens.

    Args:
        model: a causal language model; its parameters are not changed.
        points: of the hidden states that are translated.

    Source: Belrose et al. 2023, "Eliciting latent predictions from transformers with the tuned lens"
    """

    model: Any

    def __init__(self, model: Any, points: str = "resid_pre"):
        super().__init__()
        found = list(pick_points(model, points))
        if not found:
            raise ArgumentError(f"TunedLens: {type(model).__name__} has no points {points!r}.")
        dim = model.config.hidden_size
        # The model is looked at, and is no part of this module's parameters.
        object.__setattr__(self, "model", model)
        self.translators = ModuleDict(
            {a.replace(".", "-"): Linear(dim, dim, device=device_of(model)) for a in found}
        )
        for p in self.parameters():
            p.data = p.detach() * 0

    @property
    def points(self) -> list[str]:
        """Addresses of the states that are translated."""
        return [name.replace("-", ".") for name in self.translators]

    def translate(self, hidden: Tensor, point: str) -> Tensor:
        """A hidden state of a point as one of the last layer: (..., dim)."""
        name = point.replace(".", "-")
        if name not in self.translators:
            raise ArgumentError(f"TunedLens: there is no translator for {point!r}. There are {self.points}.")
        return hidden + self.translators[name](hidden)

    def logits(self, hidden: Tensor, point: str) -> Tensor:
        """What the point would have said: (..., vocab)."""
        return under(False, lambda: self.model.unembed(self.translate(hidden, point)))

    def forward(self, hidden: Tensor, point: str) -> Tensor:
        """The same with a graph."""
        return self.model.unembed(self.translate(hidden, point))

    def fit(self, batches: Sequence[Any], *, lr: float = 1e-3, epochs: int = 1) -> list[float]:
        """Train the translators: the mean distance from the model's predictions to the lens's becomes small.

        ``kl = sum p_end (log p_end - log p_lens)``

        Args:
            batches: ids (batch, time) each.
            lr: of Adam.
            epochs: turns over all batches.

        Returns:
            The mean distance of each step, in nats. Waits for the device once a step.
        """
        solver = Adam(self.parameters(), lr=lr)
        losses: list[float] = []
        for _ in range(epochs):
            for batch in batches:
                seen = run(self.model, ids_of(self.model, batch), Plan(capture=self.points))
                end = logits_of(seen.output).float().log_softmax(-1)
                losses.append(under(True, self._step, solver, seen, end))
        return losses

    def _step(self, solver: Any, seen: Mapping[str, Tensor], end: Tensor) -> float:
        total = 0.0
        for point in self.points:
            said = self(seen[point], point).float().log_softmax(-1)
            loss = (end.exp() * (end - said)).sum(-1).mean()
            # One graph at a time, for logits are large; the model's own parameters get no gradients.
            own = list(self.translators[point.replace(".", "-")].parameters())
            for p, g in zip(own, grad(loss, own), strict=True):
                p.grad = g
            total += loss.detach().item()
        solver.step()
        return total / len(self.points)

    def load(self, source: Any) -> TunedLens:
        """Read translators: ``<layer>.weight`` and ``<layer>.bias``, as the authors' files have them.

        Args:
            source: path or address of safetensors or an ``.npz``, a File, or name -> array.

        Raises:
            FormatError: there is none for a layer, or of another shape.
        """
        arrays = now(read_arrays("TunedLens", source))
        for k, module in enumerate(self.translators.values()):
            for name, p in (("weight", module.weight), ("bias", module.bias)):
                value = next(
                    (
                        arrays[key]
                        for key in (f"{k}.{name}", f"layer_translators.{k}.{name}")
                        if key in arrays
                    ),
                    None,
                )
                if value is None or tuple(value.shape) != tuple(p.shape):
                    got = "missing" if value is None else f"of shape {shown(tuple(value.shape))}"
                    raise FormatError(f"TunedLens: {k}.{name} is {got}; it must be {tuple(p.shape)}.")
                p.data = tensor(value, device=p.device)
        return self
