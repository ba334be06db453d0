"""Mixed precision as PyTorch's older ``torch.cuda.amp`` has it: of one device, which no argument names."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...optim import amp


def of(device_type: str, usual: Any) -> dict[str, Any]:
    """The names of such a module.

    Args:
        device_type: the device.
        usual: what its contexts cast to.
    """

    class _Autocast(amp.autocast):
        """`torch.autocast` of this device."""

        def __init__(self, enabled: bool = True, dtype: Any = usual, cache_enabled: bool = True):
            super().__init__(device_type, dtype, enabled, cache_enabled)

    class _Scaler(amp.GradScaler):
        """`torch.amp.GradScaler` of this device."""

        def __init__(
            self,
            init_scale: float = 65536.0,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ):
            settings = init_scale, growth_factor, backoff_factor, growth_interval
            super().__init__(device_type, *settings, enabled=enabled)

    _Autocast.__name__, _Scaler.__name__ = "autocast", "GradScaler"
    return {
        "autocast": _Autocast,
        "GradScaler": _Scaler,
        "custom_fwd": partial(amp.custom_fwd, device_type=device_type),
        "custom_bwd": partial(amp.custom_bwd, device_type=device_type),
        "autocast_decorator": amp.autocast_decorator,
    }


__all__ = ["of"]
