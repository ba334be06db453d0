"""What an op should make: the same op on the cpu device, of the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...device import device as Device
from ...device.cpu import CpuStorage
from ...op.plan import cpu_plan
from ...tensors.meta import meta
from ...tensors.tensor import Tensor

if TYPE_CHECKING:
    from ...op.planning import Op

_CPU = Device("cpu")
_LIMIT = 4096
_plans: dict[tuple, Callable] = {}


def on_cpu(values: np.ndarray, shape, dtype) -> Tensor:
    """A tensor of values as the cpu device holds them, which become its memory."""
    return Tensor(CpuStorage(np.ascontiguousarray(values)), meta(shape, dtype, _CPU), 0)


def _plan(o: Op, values: tuple, written: str | None) -> Callable:
    key = (o.name, o.key(values), written)
    plan = _plans.get(key)
    if plan is None:
        call = o.understand(values)
        o.infer(call)
        if len(_plans) >= _LIMIT:
            _plans.clear()
        plan = _plans[key] = cpu_plan(o, call, written=written)
    return plan


def expected(o: Op, values: tuple[Any, ...], written: str | None) -> list[np.ndarray]:
    """Values of what an op makes, or of the arguments that it writes into.

    Args:
        o: the op.
        values: of its arguments, tensors on the cpu device.
        written: the argument that its in-place form writes into.

    Raises:
        IndexError: an index is out of range.
    """
    given: tuple[Any, ...] = tuple(_CPU if isinstance(v, Device) else v for v in values)
    result = _plan(o, given, written)(*given)
    if written or o.mutates:
        names = [written] if written else o.mutated
        found = [v for a, v in zip(o.arguments, given, strict=True) if a.name in names and v is not None]
    else:
        found = result if o.result else [result]
    return [t.numpy() if not t.dtype.is_quantized else t._storage.data for t in found]
