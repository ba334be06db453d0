"""float64 and complex128 on webgpu, where `webgpu.set_float64_precision` lets them in.

Elements keep all their bits where tensors are made, copied, viewed and read, and are float32 and complex64
where ops compute.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..device import get_default_device, resolved
from ..device.stream import stream
from ..errors import DTypeError, PellucidError
from ..op import slow_path
from ..op.arguments import named
from ..op.kernel import element_types
from ..op.kernel.element_types import WIDE
from ..op.plan_cache import forget_plans
from ..op.planning import Op
from ..op.rules import floating
from ..op.slow_path import regular
from ..tensors import dtypes as dt
from ..tensors.meta import Meta

# Ops whose kernels take the elements as they are.
_MOVES = frozenset({"cast", "clone", "copy"})


def is_wide(o: Op, values: tuple) -> bool:
    """Whether a call on webgpu has tensors of these types, or asks for one."""
    if o.view is not None or o.name in _MOVES:
        return False
    flat = [v for value in values for v in (value if isinstance(value, (list, tuple)) else (value,))]
    metas = [v._meta for v in flat if hasattr(v, "_meta")]
    named_wide = any(isinstance(v, dt.DType) and v in WIDE for v in flat)
    if not (named_wide or any(m.dtype in WIDE for m in metas) or _becomes_wide(o, metas)):
        return False
    if metas:
        return metas[0].device.type == "webgpu"
    places = [v for a, v in zip(o.arguments, values, strict=True) if a.name == "device"]
    return (resolved(places[0]) if places else get_default_device()).type == "webgpu"


def _becomes_wide(o: Op, metas: list[Meta]) -> bool:
    """Whether integers become such numbers, since the default dtype is one of these types."""
    whole = all(m.dtype.is_integer or m.dtype is dt.bool_ for m in metas)
    return o.dtype is floating and dt.get_default_dtype() in WIDE and whole


def _narrow(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_narrow, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dt.DType):
        return WIDE.get(value, value)
    return (
        value.to(WIDE[value._meta.dtype]) if hasattr(value, "_meta") and value._meta.dtype in WIDE else value
    )


def _called(o: Op, values: Iterable) -> Any:
    """The op called as users do, with all its arguments in order."""
    pairs = [*zip(o.arguments, values, strict=True)]
    return o.call(*[v for a, v in pairs if not a.keyword], **{a.name: v for a, v in pairs if a.keyword})


def in_float32(o: Op, values: tuple) -> Any:
    """The call in float32, whose results have the types that its rules say."""
    try:
        values = regular(o, values)
        call = o.understand(values)
        o.infer(call)  # nothing of what is written in place
    except PellucidError as error:
        raise named(o.public, error) from None
    whole = _becomes_wide(o, [m for _, m in call.tensors()])
    given = [v.to(dt.float32) if whole and hasattr(v, "_meta") else _narrow(v) for v in values]
    made = _called(o, given)
    if o.mutates:
        for a, value, written in zip(o.arguments, values, given, strict=True):
            if a.name in o.mutated and written is not value:
                value.detach().copy_(written)
        return values[[a.name for a in o.arguments].index(o.mutates)]
    each = [t.to(m.dtype) for t, m in zip(made if o.result else (made,), call.outputs, strict=True)]
    return o.result(*each) if o.result else each[0]


def over(o: Op, values: tuple) -> Any:
    """The same written over the first argument.

    Raises:
        DTypeError: the result does not fit into it.
    """
    target, made = values[0], _called(o, values)
    if not dt.can_cast(made._meta.dtype, target._meta.dtype):
        raise DTypeError(
            f"{o.public}_: a result of {made._meta.dtype} does not fit into a tensor of "
            f"{target._meta.dtype}. Use the form without underscore."
        )
    return target.copy_(made)


def let_in(allowed: bool) -> None:
    """Let these types in, or refuse them again."""
    stream().flush()  # what was asked for before is still joined and run
    element_types.float64_precision = "float32" if allowed else "none"
    slow_path.wide = (is_wide, in_float32, over) if allowed else None
    forget_plans()
