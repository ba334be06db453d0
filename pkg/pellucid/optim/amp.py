"""Mixed precision: autocast, and losses scaled so that gradients of half types do not vanish. PyTorch's
``torch.amp``."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError, GradientError, RangeError
from ..op.arguments import describe
from ..ops.shape.joining import stack
from ..tensors.absent import refuse_others
from ..tensors.tensor import Tensor
from .casting import (
    autocast,
    autocast_decrement_nesting,
    autocast_increment_nesting,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_available,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)


class GradScaler:
    """Multiplies losses so that small gradients of half types do not become 0, and divides gradients again.

    A step whose gradients are not all finite is left out, and the scale falls; after ``growth_interval``
    steps without one it grows. Each step waits once for the device, to know whether gradients are finite.

    Args:
        device: "webgpu" or "cpu"; for a device that is not here ("cuda") it does nothing, with a warning.
        init_scale: the first scale.
        growth_factor, backoff_factor: by which it grows and falls.
        growth_interval: see above.
        enabled: False: losses and steps as they are.

    Raises:
        RangeError: ``growth_factor`` is not above 1, or ``backoff_factor`` not below 1.

    Source: https://pytorch.org/docs/stable/amp.html#gradient-scaling

    Example:
        >>> import pellucid as torch
        >>> w = torch.ones(1, requires_grad=True, device="cpu")
        >>> optimizer, scaler = torch.optim.SGD([w], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale((w * w).sum()).backward()
        >>> w.grad.item()
        16.0
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> w.item(), scaler.get_scale()
        (0.0, 8.0)
    """

    def __init__(
        self,
        device: str = "webgpu",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if enabled and not is_autocast_available(device):
            warnings.warn(f"GradScaler: there is no {device} here. It does nothing.", stacklevel=2)
            enabled = False
        if not growth_factor > 1 or not backoff_factor < 1:
            raise RangeError(
                f"GradScaler: growth_factor must be above 1 and backoff_factor below; they are "
                f"{growth_factor} and {backoff_factor}."
            )
        self._enabled, self._scale, self._tracker = enabled, float(init_scale), 0
        self._growth, self._backoff, self._interval = growth_factor, backoff_factor, growth_interval
        # Of each optimizer since the last update: whether gradients are all finite, and whether it stepped.
        self._seen: dict[int, dict[str, Any]] = {}

    def scale(self, outputs: Any) -> Any:
        """Losses times the scale.

        Args:
            outputs: a tensor, or an iterable of them.

        Raises:
            ArgumentError: it is neither.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if not isinstance(outputs, Iterable):
            raise ArgumentError(f"scale: takes a tensor or several, not {describe(outputs)}.")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    @no_grad()
    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for example before clipping them.

        Args:
            optimizer: whose.

        Raises:
            GradientError: they were divided since the last update.
        """
        if not self._enabled:
            return
        if "finite" in self._of(optimizer):
            raise GradientError("unscale_: was called for this optimizer since the last update().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for g in grads:
            g.mul_(1.0 / self._scale)
        finite = [g.isfinite().all().to("cpu") for g in grads]
        self._of(optimizer)["finite"] = not finite or bool(stack(finite).all())

    def _of(self, optimizer: Any) -> dict[str, Any]:
        return self._seen.setdefault(id(optimizer), {})

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step an optimizer unless a gradient is not finite; divides gradients first where that was not done.

        Args:
            optimizer: whose step.
            *args, **kwargs: of the step; a closure is refused.

        Returns:
            What the step returned, or None.

        Raises:
            GradientError: a second step since the last update.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or any(map(callable, args)):
            raise ArgumentError("step: a closure would compute gradients that are not scaled. Leave it out.")
        seen = self._of(optimizer)
        if seen.get("stepped"):
            raise GradientError("step: was called for this optimizer since the last update().")
        if "finite" not in seen:
            self.unscale_(optimizer)
        seen["stepped"] = True
        return optimizer.step(*args, **kwargs) if seen["finite"] else None

    def update(self, new_scale: Any = None) -> None:
        """Let the scale fall if a gradient was not finite, or grow if it is time.

        Args:
            new_scale: a number or a tensor of one element: the scale from now on.

        Raises:
            GradientError: no gradients were looked at since the last update.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            finite = [seen["finite"] for seen in self._seen.values() if "finite" in seen]
            if not finite:
                raise GradientError("update: no optimizer stepped since the last one. Call step() first.")
            self._tracker = self._tracker + 1 if all(finite) else 0
            if not all(finite):
                self._scale *= self._backoff
            elif self._tracker == self._interval:
                self._scale, self._tracker = self._scale * self._growth, 0
        self._seen.clear()

    def get_scale(self) -> float:
        """The scale; 1 where it does nothing."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """By which the scale grows."""
        return self._growth

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by which the scale grows."""
        self._growth = new_factor

    def get_backoff_factor(self) -> float:
        """By which the scale falls."""
        return self._backoff

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by which the scale falls."""
        self._backoff = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the scale grows."""
        return self._interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps the scale grows."""
        self._interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and counts, in PyTorch's layout; empty where it does nothing."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state that `state_dict` gave.

        Raises:
            RangeError: it is empty, as that of a scaler that did nothing.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RangeError("load_state_dict: the state is empty, as that of a scaler that was not enabled.")
        self._scale, self._tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth, self._backoff = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._interval = state_dict["growth_interval"]


def autocast_decorator(autocast_instance: autocast, func: Callable) -> Callable:
    """The function, run within a context of `autocast`.

    Args:
        autocast_instance: the context.
        func: the function.
    """
    return autocast_instance(func)


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: Any = None) -> Callable:
    """A decorator of the forward method of an `autograd.Function` that knows of autocast.

    Args:
        fwd: the method.
        device_type: whose contexts count.
        cast_inputs: within a context, cast floating-point inputs to this dtype, and run without autocast.

    Source: https://pytorch.org/docs/stable/amp.html#torch.amp.custom_fwd
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    def cast(value: Any) -> Any:
        is_cast = isinstance(value, Tensor) and value.device.type == device_type
        return value.to(cast_inputs) if is_cast and value.dtype.is_floating_point else value

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        is_on = is_autocast_enabled(device_type)
        ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), is_on and cast_inputs is None
        if cast_inputs is None or not is_on:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *map(cast, args), **{k: cast(v) for k, v in kwargs.items()})

    return forward


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """A decorator of the backward method of an `autograd.Function`: autocast is as it was in forward.

    Args:
        bwd: the method.
        device_type: whose contexts count.

    Source: https://pytorch.org/docs/stable/amp.html#torch.amp.custom_bwd
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return backward


__all__ = [
    "GradScaler", "autocast", "autocast_decorator", "autocast_decrement_nesting",
    "autocast_increment_nesting", "custom_bwd", "custom_fwd", "get_autocast_cpu_dtype", "get_autocast_dtype",
    "get_autocast_gpu_dtype", "is_autocast_available", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "set_autocast_dtype", "set_autocast_enabled",
]  # fmt: skip

refuse_others("torch.amp", globals())
