"""Changes of values at points: replace, steer along directions, ablate; as data, and what each computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import ArgumentError, RangeError, ShapeError
from ..op.arguments import describe
from ..ops.elementwise.comparison import where
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Change:
    """One change of the value at some points. A change is itself: captured calls know it by identity.

    Args:
        point: address, alias or pattern of the points, or a module's path.
        method: one of `METHODS`.
        value: a tensor or nested numbers: what replaces the value, or the direction.
        other: the second direction of a swap.
        strength: factor of what is added, taken out or scaled.
        least, most: of the component that is clamped.
        relative: what is added has ``strength`` times the length of what is there.
        order: for each row of the batch the row that it is resampled from.
        positions: which ones of the sequence; all if None. Negative ones count from the end of a call.
        heads: which ones; all if None. Only where there is an axis of heads.
        columns: which ones of the last axis; all if None.

    Raises:
        ArgumentError: there is no such method, or it lacks what it needs.
    """

    point: str
    method: str
    value: Any = None
    other: Any = None
    strength: float = 1.0
    least: float | None = None
    most: float | None = None
    relative: bool = False
    order: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    columns: tuple[int, ...] | None = None
    _known: dict = field(default_factory=dict, repr=False)

    def __post_init__(self):
        if self.method not in METHODS:
            raise ArgumentError(
                f"lens: change of {self.point!r}: there is no method {self.method!r}. There are "
                f"{', '.join(METHODS)}."
            )
        for name in METHODS[self.method].needs:
            if getattr(self, name) is None:
                raise ArgumentError(f"lens: change of {self.point!r}: {self.method} needs {name!r}.")
        for name in ("order", "positions", "heads", "columns"):
            if (given := getattr(self, name)) is not None:
                numbers = (given,) if isinstance(given, int) else tuple(given)
                if wrong := [n for n in numbers if not isinstance(n, int)]:
                    raise ArgumentError(
                        f"lens: change of {self.point!r}: {name} must be integers, not {describe(wrong[0])}."
                    )
                object.__setattr__(self, name, numbers)

    def given(self, name: str, like: Tensor) -> Tensor:
        """The value or the other direction on a device, made once."""
        key = name, like.device
        if key not in self._known:
            value = getattr(self, name)
            if not isinstance(value, Tensor):
                value = tensor(value)
            self._known[key] = value.to(device=like.device, dtype=like.dtype)
        return self._known[key]

    def unit(self, name: str, like: Tensor) -> Tensor:
        """A direction of length one."""
        v = self.given(name, like)
        return v / (v * v).sum(-1, keepdim=True).sqrt()

    def apply(self, x: Tensor, axes: tuple[str, ...], chosen: list[int] | None) -> Tensor:
        """The changed value.

        Args:
            x: the value.
            axes: what its axes are.
            chosen: positions within the call; all if None.

        Raises:
            ShapeError: the change's value does not fit.
        """
        try:
            new = METHODS[self.method].apply(self, x)
        except (ShapeError, RuntimeError) as error:
            raise ShapeError(
                f"lens: {self.method} at {self.point}: the value of shape {tuple(x.shape)} does not go with "
                f"what is given: {error}"
            ) from None
        if new.shape != x.shape:
            raise ShapeError(
                f"lens: {self.method} at {self.point}: the value is of shape {tuple(x.shape)}, what is given "
                f"makes it {tuple(new.shape)}. They must be equal."
            )
        for name, numbers in (("position", chosen), ("head", self.heads), (axes[-1], self.columns)):
            if numbers is None:
                continue
            if name not in axes:
                raise ShapeError(
                    f"lens: {self.point} has no {name}s to choose from; its axes are {', '.join(axes)}."
                )
            axis = axes.index(name) if name != axes[-1] else x.ndim - 1
            new = where(self._mask(name, tuple(numbers), axis, x), new, x)
        return new

    def _mask(self, name: str, numbers: tuple[int, ...], axis: int, x: Tensor) -> Tensor:
        length = int(x.shape[axis])
        if wrong := [n for n in numbers if not -length <= n < length]:
            raise RangeError(f"lens: {self.point} has {length} {name}s, and no {wrong[0]}.")
        key = numbers, axis, length, x.ndim, x.device
        if key not in self._known:
            chosen = {n % length for n in numbers}
            shape = [1] * x.ndim
            shape[axis] = length
            self._known[key] = tensor([k in chosen for k in range(length)], device=x.device).reshape(shape)
        return self._known[key]


def _along(x: Tensor, unit: Tensor) -> Tensor:
    """The component of a value along a direction of length one."""
    return (x * unit).sum(-1, keepdim=True)


def _replace(change: Change, x: Tensor) -> Tensor:
    return change.given("value", x).expand(x.shape)


def _add(change: Change, x: Tensor) -> Tensor:
    if change.relative:
        length = (x * x).sum(-1, keepdim=True).sqrt()
        return x + change.strength * length * change.unit("value", x)
    return x + change.strength * change.given("value", x)


def _project_out(change: Change, x: Tensor) -> Tensor:
    u = change.unit("value", x)
    return x - change.strength * _along(x, u) * u


def _clamp(change: Change, x: Tensor) -> Tensor:
    if change.least is None and change.most is None:
        raise ArgumentError(f"lens: clamp at {change.point} needs 'least' or 'most'.")
    u = change.unit("value", x)
    a = _along(x, u)
    return x + (a.clamp(change.least, change.most) - a) * u


def _scale(change: Change, x: Tensor) -> Tensor:
    if change.value is None:
        return x * change.strength
    u = change.unit("value", x)
    return x + (change.strength - 1) * _along(x, u) * u


def _swap(change: Change, x: Tensor) -> Tensor:
    # Coordinates in the plane of both, which need not be at a right angle.
    u, w = change.unit("value", x), change.unit("other", x)
    a, b, g = _along(x, u), _along(x, w), (u * w).sum()
    # Of nearly parallel directions there is nothing to swap.
    apart = (1 - g * g).clamp(min=1e-6)
    more = ((b - g * a) - (a - g * b)) / apart
    return x + more * (u - w)


def _zero(change: Change, x: Tensor) -> Tensor:
    return x * 0 if change.value is None else _replace(change, x)


def _mean(change: Change, x: Tensor) -> Tensor:
    return (x.mean((0, 1), keepdim=True) if change.value is None else change.given("value", x)).expand(
        x.shape
    )


def _resample(change: Change, x: Tensor) -> Tensor:
    if change.value is not None:
        return _replace(change, x)
    order = change.order if change.order is not None else (*range(1, x.shape[0]), 0)
    if len(order) != x.shape[0] or not all(0 <= k < x.shape[0] for k in order):
        raise ArgumentError(
            f"lens: resample at {change.point}: order {list(order)} must name a row for each of the "
            f"{x.shape[0]} in the batch."
        )
    key = "order", x.shape[0], x.device
    if key not in change._known:
        change._known[key] = tensor(list(order), device=x.device)
    return x[change._known[key]]


class Method(NamedTuple):
    """How a change computes: the list of a plan that it stands in, what it needs, the function."""

    group: str
    needs: tuple[str, ...]
    apply: Callable[[Change, Tensor], Tensor]


METHODS: dict[str, Method] = {
    "replace": Method("patch", ("value",), _replace),
    "add": Method("steer", ("value",), _add),
    "project_out": Method("steer", ("value",), _project_out),
    "clamp": Method("steer", ("value",), _clamp),
    "scale": Method("steer", (), _scale),
    "swap": Method("steer", ("value", "other"), _swap),
    "zero": Method("ablate", (), _zero),
    "mean": Method("ablate", (), _mean),
    "resample": Method("ablate", (), _resample),
}
