"""L-BFGS: Newton's method with an inverse Hessian from the last steps, and a line search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import isfinite, sqrt
from typing import Any, NamedTuple

from ..autograd.grad_mode import under
from ..errors import ArgumentError, RangeError
from ..op.arguments import describe
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from .optimizer import Optimizer
from .settings import given


class Trial(NamedTuple):
    """A place on a line: its distance, the loss, the gradient and its slope along the line."""

    at: float
    loss: float
    grad: Tensor
    slope: float


def _cubic_minimum(a: Trial, b: Trial, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with their slopes is least, within bounds."""
    low, high = bounds or sorted((a.at, b.at))
    if a.at > b.at:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = sqrt(square)
    best = b.at - (b.at - a.at) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(best, low), high)


def strong_wolfe(
    measure: Callable[[float], Trial],
    start: Trial,
    first: float,
    reach: float,
    least_change: float,
    fall: float = 1e-4,
    flatness: float = 0.9,
    most: int = 25,
) -> tuple[Trial, int]:
    """A point on a line that meets the strong Wolfe conditions: the loss fell, and the slope is flatter.

    Args:
        measure: the point at a distance.
        start: the point at 0.
        first: the distance to try first.
        reach: the largest element of the direction.
        least_change: a bracket shorter than this is given up.
        fall, flatness: constants of the two conditions.
        most: evaluations.

    Returns:
        The point, and how many were measured.

    Source: Nocedal and Wright 2006, "Numerical optimization", algorithms 3.5 and 3.6, with the safeguards of
        PyTorch's LBFGS
    """

    def is_high(p: Trial) -> bool:
        return p.loss > start.loss + fall * p.at * start.slope

    def is_flat(p: Trial) -> bool:
        return abs(p.slope) <= -flatness * start.slope

    before, here, count = start, measure(first), 1
    bracket: list[Trial] = []
    for turn in range(most):
        if is_high(here) or (turn and here.loss >= before.loss):
            bracket = [before, here]
        elif is_flat(here):
            return here, count
        elif here.slope >= 0:
            bracket = [before, here]
        if bracket:
            break
        bounds = here.at + 0.01 * (here.at - before.at), here.at * 10
        before, here = here, measure(_cubic_minimum(before, here, bounds))
        count += 1
    turns = count if bracket else most
    bracket = bracket or [start, here]
    stalled = False
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    while turns < most:
        ends = [p.at for p in bracket]
        width = max(ends) - min(ends)
        if width * reach < least_change:
            break
        at = _cubic_minimum(bracket[0], bracket[1])
        # A point next to an end of the bracket, twice in a row, is moved inwards.
        if min(max(ends) - at, at - min(ends)) / width < 0.1:
            if stalled or at >= max(ends) or at <= min(ends):
                near_end = abs(at - max(ends)) < abs(at - min(ends))
                at = max(ends) - 0.1 * width if near_end else min(ends) + 0.1 * width
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        here = measure(at)
        count, turns = count + 1, turns + 1
        if is_high(here) or here.loss >= bracket[low].loss:
            bracket[high] = here
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            done = is_flat(here)
            if not done and here.slope * (bracket[high].at - bracket[low].at) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = here
            if done:
                break
    return bracket[low], count


class LBFGS(Optimizer):
    """Steps along ``-H @ gradient`` with H the inverse Hessian as the last steps tell it.

    It decides by values of the loss, so a step waits for the device several times, and captured functions
    run it eagerly.

    Args:
        params: parameters; one group at most.
        max_iter: iterations per step.
        max_eval: evaluations of the closure per step; 1.25 * max_iter if None.
        tolerance_grad: end where no element of the gradient is larger.
        tolerance_change: end where parameters or loss change less.
        history_size: how many steps are kept.
        line_search_fn: "strong_wolfe", or None for the rate as it is.

    Raises:
        ValueError: there are several groups.
        RuntimeError: another line search is asked for.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.LBFGS.html; Nocedal 1980, "Updating
        quasi-Newton matrices with limited storage"

    Example:
        >>> import pellucid as torch
        >>> w = torch.tensor([3.0, -2.0], requires_grad=True, device="cpu")
        >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 1) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item(), w.tolist()
        (13.0, [1.0, 1.0])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        if not isinstance(max_iter, int):
            raise ArgumentError(f"LBFGS: max_iter must be an integer, not {max_iter!r}.")
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, given(locals()))
        if len(self.param_groups) != 1:
            raise RangeError(f"LBFGS: takes one group of parameters, not {len(self.param_groups)}.")
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        return cat([(p * 0 if p.grad is None else p.grad).detach().reshape(-1) for p in self._params])

    def _move(self, values: list[Tensor], at: float, direction: Tensor) -> None:
        """Put parameters to values plus a distance along a direction."""
        parts = direction.split([p.numel() for p in self._params])
        for p, x, part in zip(self._params, values, parts, strict=True):
            p.copy_(x + part.view(p.shape) * at)

    def _measure(self, closure: Callable, values: list[Tensor], direction: Tensor, at: float) -> Trial:
        self._move(values, at, direction)
        loss, grad = float(closure()), self._flat_grad()
        return Trial(at, loss, grad, float(grad.dot(direction)))

    def step(self, closure: Callable[[], Any]) -> Any:
        """Iterate until a limit or a tolerance is reached.

        Args:
            closure: clears gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            The loss before the step.
        """
        if not callable(closure):
            raise ArgumentError(f"step: LBFGS needs a closure, not {describe(closure)}.")
        return under(False, lambda: self._iterate(lambda: under(True, closure)))

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        most, tolerance, least_change = (group[k] for k in ("max_iter", "tolerance_grad", "tolerance_change"))
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RangeError(f"LBFGS: line_search_fn must be None or 'strong_wolfe', not {search!r}.")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if float(grad.abs().max()) <= tolerance:
            return first_loss
        for turn in range(1, most + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            length = float(group["lr"])
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(grad.abs().sum()))
            state.update(d=direction, t=length, prev_flat_grad=grad, prev_loss=loss)
            slope = float(grad.dot(direction))
            if slope > -least_change:
                break
            values = [p.clone() for p in self._params]

            measure = partial(self._measure, closure, values, direction)
            before, used = loss, 0
            reach = float(direction.abs().max())
            if search:
                found, used = strong_wolfe(
                    measure, Trial(0.0, loss, grad, slope), length, reach, least_change
                )
                self._move(values, found.at, direction)
                length, loss, grad = found.at, found.loss, found.grad
            elif turn < most:
                found, used = measure(length), 1
                loss, grad = found.loss, found.grad
            else:
                self._move(values, length, direction)
            state["t"] = length
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or float(grad.abs().max()) <= tolerance
                or reach * length <= least_change
                or (isfinite(loss) and abs(loss - before) < least_change)
            ):
                break
        return first_loss

    def _direction(self, state: dict[str, Any], grad: Tensor, most: int) -> Tensor:
        """Minus the inverse Hessian times the gradient, by two loops over the last steps."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -grad
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if float(curvature) > 1e-10:
            if len(changes) == most:
                for history in (changes, steps, inverses):
                    history.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        q, shares = -grad, []
        for y, s, inverse in zip(reversed(changes), reversed(steps), reversed(inverses), strict=True):
            shares.append(s.dot(q) * inverse)
            q = q - y * shares[-1]
        q = q * state["H_diag"]
        for y, s, inverse, share in zip(changes, steps, inverses, reversed(shares), strict=True):
            q = q + s * (share - y.dot(q) * inverse)
        return q


__all__ = ["LBFGS"]
