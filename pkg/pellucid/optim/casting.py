"""Autocast: within a context, products and convolutions compute in half types, and what needs the range of
float32 computes in float32. Part of PyTorch's ``torch.amp``.

Outside of contexts nothing is paid: entering the first one puts another table of plans and another slow path
under the call paths of the ops that are cast, and leaving the last one puts the old ones back.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..device import ELSEWHERE
from ..errors import ArgumentError, RangeError
from ..op.arguments import describe
from ..op.call_path import call_path
from ..op.schema import OPS
from ..op.slow_path import call_slowly
from ..tensors import dtypes as dt
from ..tensors.tensor import Tensor

# Ops whose float32 inputs become the half type: products, convolutions, attention.
LOWER = (
    "matmul", "linear", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "convolution",
    "scaled_dot_product_attention",
)  # fmt: skip
# Ops whose half inputs become float32: PyTorch's list for GPUs, as far as they are ops of their own.
FLOAT32 = (
    "acos", "asin", "cosh", "cumprod", "cumsum", "erfinv", "exp", "expm1", "layer_norm", "log", "log10",
    "log1p", "log2", "log_softmax", "logsigmoid", "pow", "prod", "reciprocal", "rms_norm", "rsqrt", "sinh",
    "softmax", "softplus", "sum", "tan",
)  # fmt: skip
_HALVES = (dt.float16, dt.bfloat16)
# Which dtype a context without one means.
_dtypes: dict[str, Any] = {"webgpu": dt.float16, "cpu": dt.bfloat16}
# Devices of PyTorch that are not here: their contexts do nothing.
# The half types of the devices on which it is on.
active: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("autocast", default=())
_entered = 0
_usual: list[tuple[dict[str, Any], Any, Any]] = []


@functools.cache
def _plainly(name: str) -> Callable[..., Any]:
    """The call path of an op as it is outside of contexts."""
    return call_path(OPS[name], call_slowly, None)


def _call_cast(o: Any, values: tuple) -> Any:
    """A call of an op that is cast within contexts."""
    types = dict(active.get())
    if types:
        lower = o.name in LOWER
        values = tuple([_cast(v, types, lower) for v in values])
    named = {a.name: v for a, v in zip(o.arguments, values, strict=True) if a.keyword}
    return _plainly(o.name)(*values[: len(values) - len(named)], **named)


def _cast(value: Any, types: dict[str, Any], lower: bool) -> Any:
    if not isinstance(value, Tensor) or value.device.type not in types:
        return value
    if lower:
        target = types[value.device.type]
        return value.to(target) if value.dtype in (dt.float32, *_HALVES) else value
    return value.to(dt.float32) if value.dtype in _HALVES else value


def _enter() -> None:
    global _entered
    _entered += 1
    if _entered > 1:
        return
    operators = [f for f in vars(Tensor).values() if hasattr(f, "__globals__")]
    for name in (*LOWER, *FLOAT32):
        o: Any = OPS[name]
        for function in (o.call, *(f for f in operators if f.__globals__.get("o") is o)):
            scope = function.__globals__
            if scope.get("plans") is o.plans:
                _usual.append((scope, scope["plans"], scope["slow"]))
                scope["plans"], scope["slow"] = {}, _call_cast


def _leave() -> None:
    global _entered
    _entered -= 1
    if not _entered:
        for scope, plans, slow in _usual:
            scope["plans"], scope["slow"] = plans, slow
        _usual.clear()


class autocast:
    """A context or decorator in which products, convolutions and attention compute in a half type.

    What needs float32's range (`exp`, `log`, `softmax`, `sum`, norms and what is made of them) computes in
    float32; other ops compute in the common type of their inputs. float16 and bfloat16 are stored by every
    device here, and sums of products are float32's. Contexts of a device that is not here ("cuda") do
    nothing, and say so by a warning.

    Args:
        device_type: "webgpu" or "cpu": whose tensors are cast.
        dtype: `float16` or `bfloat16`; `get_autocast_dtype` of the device if None.
        enabled: False switches it off within another context.
        cache_enabled: taken, and without effect: casts of weights are not kept.

    Raises:
        RangeError: no such type of device.

    Source: https://pytorch.org/docs/stable/amp.html#torch.autocast; Micikevicius et al. 2018, "Mixed
        precision training"

    Example:
        >>> import pellucid as torch
        >>> x = torch.ones(2, 2, device="cpu")
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     product, total = x @ x, (x @ x).sum()
        >>> product.dtype, total.dtype
        (pellucid.bfloat16, pellucid.float32)
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        _check(device_type)
        self.device = device_type
        self.fast_dtype = _dtypes.get(device_type, dt.float16) if dtype is None else dtype
        if enabled and device_type not in _dtypes:
            warnings.warn(
                f"autocast: there is no {device_type} here. The context does nothing.", stacklevel=2
            )
            enabled = False
        if enabled and self.fast_dtype not in _HALVES:
            warnings.warn(
                f"autocast: casts to float16 or bfloat16, not {self.fast_dtype}. The context does nothing.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple] = []

    def __enter__(self) -> autocast:
        types = dict(active.get())
        self._before.append(active.get())
        types.pop(self.device, None)
        if self._enabled:
            types[self.device] = self.fast_dtype
            _enter()
        active.set(tuple(types.items()))
        return self

    def __exit__(self, *exc: Any) -> None:
        active.set(self._before.pop())
        if self._enabled:
            _leave()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within


def _check(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ArgumentError(f"autocast: device_type must be a string, not {describe(device_type)}.")
    if device_type not in (*_dtypes, *ELSEWHERE):
        raise RangeError(f"autocast: device_type must be 'webgpu' or 'cpu', not {device_type!r}.")


def is_autocast_available(device_type: str) -> bool:
    """Whether tensors of a type of device can be cast.

    Args:
        device_type: such as "webgpu".

    Source: https://pytorch.org/docs/stable/amp.html
    """
    return device_type in _dtypes


def is_autocast_enabled(device_type: str = "webgpu") -> bool:
    """Whether tensors of a type of device are cast now.

    Args:
        device_type: such as "webgpu".

    Source: https://pytorch.org/docs/stable/amp.html
    """
    _check(device_type)
    return device_type in dict(active.get())


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Cast tensors of a type of device from now on, or cast them no more; `autocast` does so for a block.

    Args:
        device_type: such as "webgpu".
        enabled: whether to.

    Source: https://pytorch.org/docs/stable/amp.html
    """
    _check(device_type)
    types = dict(active.get())
    if enabled == (device_type in types):
        return
    if not enabled:
        del types[device_type]
        _leave()
    elif is_autocast_available(device_type):
        types[device_type] = _dtypes[device_type]
        _enter()
    active.set(tuple(types.items()))


def autocast_increment_nesting() -> int:
    """Count a context that a program opens by `set_autocast_enabled`; returns how many there are."""
    _nesting[0] += 1
    return _nesting[0]


def autocast_decrement_nesting() -> int:
    """Count a context that ends; returns how many there are."""
    _nesting[0] -= 1
    return _nesting[0]


_nesting = [0]


def get_autocast_cpu_dtype() -> Any:
    """The half type of the cpu: `get_autocast_dtype` by its older name."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """The half type of CUDA, which is not here: `get_autocast_dtype` by its older name."""
    return get_autocast_dtype("cuda")


def is_autocast_cpu_enabled() -> bool:
    """Whether tensors on the cpu are cast now: `is_autocast_enabled` by its older name."""
    return is_autocast_enabled("cpu")


def get_autocast_dtype(device_type: str) -> Any:
    """The half type of a type of device: that of the context, else what a context without one means.

    Args:
        device_type: "webgpu" or "cpu".

    Source: https://pytorch.org/docs/stable/amp.html
    """
    _check(device_type)
    return dict(active.get()).get(device_type) or _dtypes.get(device_type, dt.float16)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """What contexts without a dtype mean from now on.

    Args:
        device_type: "webgpu" or "cpu".
        dtype: `float16` or `bfloat16`.

    Raises:
        RangeError: another dtype.

    Source: https://pytorch.org/docs/stable/amp.html
    """
    _check(device_type)
    if dtype not in _HALVES:
        raise RangeError(f"set_autocast_dtype: dtype must be float16 or bfloat16, not {dtype}.")
    if device_type in _dtypes:
        _dtypes[device_type] = dtype


__all__ = [
    "autocast", "get_autocast_dtype", "is_autocast_available", "is_autocast_enabled", "set_autocast_dtype",
]  # fmt: skip
