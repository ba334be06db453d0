"""Directions of concepts: difference of means, and linear probes."""

from __future__ import annotations

from typing import Any

from ...autograd.grad_mode import under
from ...errors import ArgumentError, ShapeError
from ...nn import functional as F
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ...ops.shape.joining import cat
from ...optim import LBFGS
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..plan import Plan
from ..run import run


def activations(model: Any, prompts: Any, point: str, position: int = -1) -> Tensor:
    """What a point holds at one position of many prompts: (prompts, dim).

    Args:
        model: a model.
        prompts: ids (batch, time), or a list of sequences of any length.
        point: an address.
        position: from the front, or from the end where negative.

    Raises:
        ArgumentError: there are no prompts.
    """
    if isinstance(prompts, Tensor):
        prompts = [prompts]
    if not len(prompts):
        raise ArgumentError("activations: prompts are empty. Give at least one.")
    rows = [run(model, ids, Plan(capture=[point]))[point][:, position] for ids in prompts]
    return cat(rows).flatten(1)


def difference_of_means(
    model: Any, positive: Any, negative: Any, point: str, *, position: int = -1, normed: bool = False
) -> Tensor:
    """The direction from the mean of some prompts to that of others, for steering and for taking it out.

    Args:
        model: a model.
        positive, negative: ids (batch, time), or lists of sequences.
        point: an address, such as ``resid_post.12``.
        position: where it is read.
        normed: make it of length one.

    Returns:
        (dim,)

    Source: Marks and Tegmark 2023, "The geometry of truth", section 5.1; Arditi et al. 2024, "Refusal in
        language models is mediated by a single direction", equation 3
    """
    first, second = (activations(model, p, point, position).mean(0) for p in (positive, negative))
    v = first - second
    return v / (v * v).sum().sqrt() if normed else v


class LinearProbe(Module):
    """Logistic regression on activations: which of some classes a hidden state is of.

    Args:
        dim: columns of the activations.
        classes: how many.
        device: where.

    Source: Alain and Bengio 2016, "Understanding intermediate layers using linear classifier probes"

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens
        >>> x = torch.tensor([[0.0, 1.0], [0.2, 0.8], [1.0, 0.0], [0.8, 0.1]], device="cpu")
        >>> probe = lens.LinearProbe(2, 2, device="cpu").fit(x, [0, 0, 1, 1])
        >>> probe.accuracy(x, [0, 0, 1, 1])
        1.0
    """

    def __init__(self, dim: int, classes: int = 2, *, device: Any = None):
        super().__init__()
        self.linear = Linear(dim, classes, device=device)
        with_zeros = self.linear.weight.detach() * 0
        self.linear.weight.data = with_zeros
        assert self.linear.bias is not None
        self.linear.bias.data = self.linear.bias.detach() * 0

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the classes: (..., dim) to (..., classes)."""
        return self.linear(x)

    def fit(self, x: Tensor, labels: Any, *, decay: float = 1e-3, steps: int = 100) -> LinearProbe:
        """Minimize ``cross entropy + decay / 2 * |weight|^2`` over all rows at once, by L-BFGS.

        Args:
            x: (rows, dim).
            labels: (rows,) classes.
            decay: of the weight.
            steps: at most.

        Raises:
            ShapeError: there is not a label for each row.
        """
        x, y = x.detach(), self._labels(x, labels)
        solver = LBFGS(
            self.parameters(),
            max_iter=steps,
            tolerance_grad=1e-6,
            history_size=10,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Tensor:
            solver.zero_grad()
            loss = F.cross_entropy(self(x), y) + decay / 2 * self.linear.weight.square().sum()
            loss.backward()
            return loss

        under(True, solver.step, closure)
        return self

    def accuracy(self, x: Tensor, labels: Any) -> float:
        """The share of rows whose class is the likeliest. Waits for the device."""
        right = under(False, self, x).argmax(-1) == self._labels(x, labels)
        return right.float().mean().item()

    def _labels(self, x: Tensor, labels: Any) -> Tensor:
        y = labels if isinstance(labels, Tensor) else tensor(labels)
        if x.ndim != 2 or y.shape != x.shape[:1]:
            raise ShapeError(
                f"LinearProbe: activations of shape {tuple(x.shape)} and labels of {tuple(y.shape)} must be "
                "(rows, dim) and (rows,)."
            )
        return y.to(x.device)

    @property
    def direction(self) -> Tensor:
        """From the first class to the last, of length one."""
        v = self.linear.weight[-1] - self.linear.weight[0]
        return (v / (v * v).sum().sqrt()).detach()
