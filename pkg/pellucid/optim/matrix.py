"""Optimizers that see rows and columns: Adafactor's factored moments, Muon's orthogonal steps."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from ..errors import RangeError
from ..ops.shape.creation import zeros
from ..tensors import dtypes as dt
from ..tensors.limits import finfo
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, kept
from .settings import given

# After which other rate Muon's is modelled: its factor, from rows and columns.
_ADJUSTED = {
    None: lambda rows, columns: sqrt(max(1.0, rows / columns)),
    "original": lambda rows, columns: sqrt(max(1.0, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * sqrt(max(rows, columns)),
}


def _mean_size(x: Tensor) -> Tensor:
    """The root of the mean square."""
    return x.norm() / sqrt(x.numel())


class Adafactor(Optimizer):
    """Adam without a first moment, whose second one is a product of row and column means.

    Steps are relative to the parameter's size, and clipped by their own.

    Args:
        lr: the largest relative step; that of step t is at most ``t^-0.5``.
        beta2_decay: the running means take ``t^beta2_decay`` of step t.
        eps: the least mean (None: the dtype's epsilon), and the least size of a parameter.
        d: above which mean size a step is clipped.
        weight_decay: ``lr * weight_decay`` of the parameter is taken away per step.
        foreach: taken, and without effect.

    Raises:
        ValueError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.Adafactor.html; Shazeer and Stern 2018,
        algorithm 5
    """

    _counted = ("step",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        super().__init__(params, given(locals()))

    def _kernel(self, group: dict[str, Any]) -> Any:
        return tuple(group["eps"]), group["d"], bool(group["maximize"])

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        state["step"] = step = state["step"] + 1.0
        lr = float(group["lr"])
        return 1.0 - lr * group["weight_decay"], step ** group["beta2_decay"], min(lr, step**-0.5)

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        value, grad = self._operands(p)
        grad = -grad if group["maximize"] else grad
        least, size = group["eps"]
        least = float(finfo(p.dtype).eps) if least is None else least
        state, shape = self.state[p], grad.shape
        factored = grad.ndim > 1
        if not state:
            means = {"variance": shape}
            if factored:
                means = {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}
            made = {k: kept(zeros(s, dtype=value.dtype, device=p.device)) for k, s in means.items()}
            state.update(step=0.0, **made)
        shrink, take, rate = self._numbers_of(p, group, state)
        step = _mean_size(value).clamp(min=size) * rate
        value.mul_(shrink)
        if factored:
            for name, k in (("row_var", -1), ("col_var", -2)):
                mean = grad.norm(dim=k, keepdim=True).square() / shape[k]
                state[name].add_((mean - state[name]) * take)
            rows = state["row_var"]
            estimate = rows @ state["col_var"] / rows.mean(dim=-2, keepdim=True).clamp(min=least)
        else:
            estimate = state["variance"]
            estimate.add_((grad * grad - estimate) * take)
        change = estimate.clamp(min=least * least).rsqrt() * grad
        clip = (_mean_size(change) / group["d"]).clamp(min=1.0)
        value.sub_(change * (step / clip))
        self._write_back(p, value)


class Muon(Optimizer):
    """Momentum whose steps are made nearly orthogonal matrices, in bfloat16 as PyTorch does.

    Args:
        params: parameters of two axes, or groups of them.
        weight_decay: ``lr * weight_decay`` of the parameter is taken away per step.
        momentum: what the running mean of gradients keeps per step.
        nesterov: look ahead by one step of momentum.
        ns_coefficients: a, b, c of an iteration ``(a + b * A + c * A^2) @ X`` with ``A = X @ X.T``.
        eps: the least norm by which the gradient is divided first.
        ns_steps: iterations.
        adjust_lr_fn: "original" multiplies the rate by ``sqrt(max(1, rows / columns))``, "match_rms_adamw" by
            ``0.2 * sqrt(max(rows, columns))``.

    Raises:
        ValueError: a setting is out of range, or a parameter has not two axes.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.Muon.html; Jordan et al. 2024, "Muon: an
        optimizer for hidden layers in neural networks"
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        if adjust_lr_fn not in _ADJUSTED:
            raise RangeError(
                f"Muon: adjust_lr_fn must be 'original', 'match_rms_adamw' or None, not {adjust_lr_fn!r}."
            )
        if not 0 <= ns_steps < 100 or len(ns_coefficients) != 3:
            raise RangeError(
                f"Muon: takes 0 to 99 ns_steps and three ns_coefficients, not {ns_steps} and "
                f"{ns_coefficients}."
            )
        super().__init__(params, given(locals()))
        for p in (p for group in self.param_groups for p in group["params"]):
            if p.ndim != 2:
                raise RangeError(
                    f"Muon: a parameter has shape {tuple(p.shape)}, not two axes. "
                    "Give it to another optimizer."
                )

    def _kernel(self, group: dict[str, Any]) -> Any:
        return tuple([group[k] for k in ("nesterov", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn")])

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        lr, momentum = float(group["lr"]), float(group["momentum"])
        return 1.0 - momentum, momentum, 1.0 - lr * float(group["weight_decay"]), lr

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        value, grad = self._operands(p)
        state = self.state[p]
        if not state:
            state["momentum_buffer"] = kept(zeros(p.shape, dtype=value.dtype, device=p.device))
        buffer = state["momentum_buffer"]
        take, momentum, shrink, rate = self._numbers_of(p, group, state)
        buffer.add_((grad - buffer) * take)
        step = grad + (buffer - grad) * momentum if group["nesterov"] else buffer
        rows, columns = p.shape
        x = (step.T if rows > columns else step).to(dt.bfloat16)
        x = x / x.norm().clamp(min=group["eps"])
        a, b, c = group["ns_coefficients"]
        for _ in range(group["ns_steps"]):
            # Each sum with a product is rounded to bfloat16 once.
            gram, wide = (x @ x.T).float(), x.float()
            change = (gram * b + (gram @ gram) * c).to(dt.bfloat16)
            x = (wide * a + change.float() @ wide).to(dt.bfloat16)
        step = (x.T if rows > columns else x).to(value.dtype)
        value.mul_(shrink)
        value.sub_(step * _ADJUSTED[group["adjust_lr_fn"]](rows, columns) * rate)
        self._write_back(p, value)


__all__ = ["Adafactor", "Muon"]
