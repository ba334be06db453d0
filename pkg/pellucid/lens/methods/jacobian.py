"""Jacobian lens: a state moved to the end by the mean Jacobian of what lies between, then the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...autograd.derivatives import grad
from ...autograd.grad_mode import under
from ...errors import ArgumentError, FormatError, ShapeError
from ...ops.shape.creation import zeros
from ...ops.shape.joining import cat
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..points import pick_points
from ..run import device_of, ids_of
from .gradients import states


class JacobianLens:
    """What a state does to the end: ``head(norm(J h))``; the logit lens is ``J = I``.

    Args:
        model: a causal language model.
        matrices: address -> J, (dim, dim).

    Source: Gurnee et al. 2026, "Verbalizable representations form a global workspace in language models"
    """

    def __init__(self, model: Any, matrices: Mapping[str, Tensor]):
        self.model, self.matrices = model, dict(matrices)

    def logits(self, hidden: Tensor, point: str) -> Tensor:
        """What a state of a point says: (..., dim) to (..., vocab).

        Raises:
            ArgumentError: there is no matrix for the point.
        """
        if point not in self.matrices:
            raise ArgumentError(
                f"JacobianLens: there is no matrix for {point!r}. There are {', '.join(self.matrices)}."
            )
        return under(False, lambda: self.model.unembed(hidden @ self.matrices[point].T))

    def direction(self, token: int, point: str) -> Tensor:
        """The direction of a point along which a token's logit grows, but for norms: (dim,)."""
        return self.model.lm_head.weight[token].detach() @ self.matrices[point]

    @classmethod
    def load(cls, model: Any, content: Mapping[Any, Any]) -> JacobianLens:
        """From a published fit: ``J``, layer -> matrix, as ``torch.load`` gives it.

        Raises:
            FormatError: it has no ``J``, or matrices of another size than the model.
        """
        found = content.get("J")
        dim = model.config.hidden_size
        if not isinstance(found, Mapping) or not found:
            raise FormatError("JacobianLens: the file has no 'J', matrices by layer.")
        made: dict[str, Tensor] = {}
        for layer, value in found.items():
            value = value if isinstance(value, Tensor) else tensor(value)
            if tuple(value.shape) != (dim, dim):
                raise FormatError(
                    f"JacobianLens: J[{layer}] is of shape {tuple(value.shape)}; it must be {(dim, dim)}."
                )
            made[f"resid_post.{int(layer)}"] = value.to(device_of(model)).float()
        return cls(model, made)

    @classmethod
    def fit(
        cls, model: Any, batches: Sequence[Any], points: str = "resid_post", *, skip: int = 16, rows: int = 8
    ) -> JacobianLens:
        """The mean Jacobians over some texts, a backward pass for each column of the end.

        ``J = mean over texts and positions t of sum over positions t' >= t of d end[t'] / d state[t]``

        Args:
            model: a causal language model, quantized or not.
            batches: texts, ids (1, time) each; a hundred of 128 ids is usable.
            points: of the states; the last of them is the end.
            skip: positions at the front that do not count. Nor does the last one.
            rows: columns whose gradients are taken together.

        Raises:
            ShapeError: a text has no position that counts.
        """
        found = list(pick_points(model, points))
        if not found or not len(batches):
            raise ArgumentError(
                f"JacobianLens: needs points and texts, not {points!r} and {len(batches)} texts."
            )
        total: dict[str, Tensor] = {}
        for batch in batches:
            for address, matrix in _jacobians(model, ids_of(model, batch), found, skip, rows).items():
                total[address] = total[address] + matrix if address in total else matrix
        return cls(model, {a: m / len(batches) for a, m in total.items()})


def _jacobians(model: Any, ids: Tensor, found: list[str], skip: int, rows: int) -> dict[str, Tensor]:
    """address -> (dim, dim) of one text."""
    time = int(ids.shape[1])
    if ids.shape[0] != 1 or time < skip + 2:
        raise ShapeError(
            f"JacobianLens: ids of shape {tuple(ids.shape)} must be (1, time) with more than {skip + 1} "
            "positions. Give longer texts, or a smaller skip."
        )
    seen = states(model, ids.expand(rows, -1), found)
    end, inputs = seen[found[-1]], [seen[a] for a in found]
    dim = int(end.shape[-1])
    made: dict[str, list[Tensor]] = {a: [] for a in found}
    for first in range(0, dim, rows):
        some = min(rows, dim - first)
        ones = zeros(end.shape, device=end.device)
        for k in range(some):
            ones[k, skip : time - 1, first + k] = 1.0
        gradients: Any = grad(end, inputs, ones, retain_graph=first + rows < dim)
        for address, g in zip(found, gradients, strict=True):
            made[address].append(g[:some, skip : time - 1].mean(1))
    return {address: under(False, cat, parts) for address, parts in made.items()}
