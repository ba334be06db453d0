"""What a plan makes of one launch: a kernel typed as its tensors are, with Params that are filled or left to
each run."""

from __future__ import annotations

from typing import Any

from ..device.stream import stream
from ..errors import DeviceError, KernelError
from ..kernel.element_types import PHYSICAL
from ..kernel.launch import Launch
from ..kernel.turns import check_turns
from ..tensors.meta import Meta
from .expression import TRUTH
from .launches import LaunchId, RegisteredLaunch, register
from .schema import Schema


def plan_launch(
    o: Schema, launch: Launch, metas: dict[str, Meta]
) -> tuple[LaunchId, list[tuple[str, str, str | None]]]:
    """Type a kernel's bindings, fill its Params and register it with the host.

    Args:
        o: the op that plans it.
        launch: the kernel, its holes filled.
        metas: of arguments, outputs and temporaries, by name.

    Returns:
        The word that begins the launch's records, and the words that each run brings: the expression, which
        the plan's text evaluates with its arguments, ``bits``, the word of a float, ``known``, those that
        were asked for (a look takes less than a call), and ``wide``, which refuses integers of more than 64
        bits; of which kind it is; and of which number among the arguments, None for the offset of a tensor.

    Raises:
        DeviceError: a tensor spans more than a kernel reaches on this device.
        KernelError: a field of Params has no value, or the device takes fewer buffers or parameters.
        ShapeError: the grid is over the device's limit, or a loop would be too long for it.
    """
    host = stream().open()
    source = launch.source
    largest = host.info.limits.get("maxStorageBufferBindingSize", 1 << 27)
    for b in source.bindings:
        name = launch.bind.get(b.name, b.name)
        if (m := metas.get(name)) is not None and _reach(m) > largest:
            raise DeviceError(
                f"'{name}' spans {_reach(m)} bytes, and a kernel reaches {largest} of a buffer on this "
                "device. Work on smaller tensors."
            )
    for b in () if source.typed else source.bindings:
        m = metas.get(launch.bind.get(b.name, b.name))
        if b.written or m is None or m.dtype.is_quantized:
            continue
        if m.dtype in PHYSICAL and "atomic" not in b.element:
            source = source.retype(b.name, m.dtype)
    values: dict[str, Any] = dict(launch.params)
    patches: list[tuple[str, str, str | None]] = []
    patched: list[str] = []
    roles = {a.name: a.role for a in o.arguments}
    for field, where in source.fields.items():
        if field in values:
            continue
        if field == "op":
            values[field] = o.index
            continue
        base = field.removesuffix("_offset")
        if (
            base != field
            and (found := launch.bind.get(base, base)) is not None
            and _is_buffer(found, metas, roles)
        ):
            values[field] = 0
            if found in metas and found.split("[")[0] in roles:
                patched.append(field)
                patches.append((f"{found}._offset", "offset", None))
            continue
        part, half = field, ""
        if f"params.{field}" not in launch.bind and field not in roles:
            half = next((h for h in ("_low", "_high", TRUTH) if field.endswith(h)), "")
            part = field.removesuffix(half)
        name = launch.bind.get(f"params.{part}", part)
        if name not in roles:
            raise KernelError(
                f"{source.name}: Params has a field {field!r} that neither the launch nor the op fills."
            )
        values[field] = 0
        patched.append(field)
        if where.type == "f32":
            patches.append((f"known.get({name}) or bits({name!r}, {name})", "f32", name))
        elif half == TRUTH:
            patches.append((f"int(bool({name}))", "truth", name))
        elif half == "_high":
            patches.append((f"int({name}) >> 32 & 0xFFFFFFFF", "high", name))
        else:
            word = f"int({name}) & 0xFFFFFFFF"
            wide = f"wide({name!r}, {name}) or {word}"
            patches.append((f"{word} if {-1 << 63} <= {name} < {1 << 64} else {wide}", "low", name))
    check_turns(source, dict(launch.params) | launch.at_most)
    named = [metas.get(launch.bind.get(b.name, b.name)) for b in source.bindings]
    node = RegisteredLaunch(o.public, source, values, tuple(patched), tuple(named), launch.grid, launch.map)
    return register(node), patches


def _reach(m: Meta) -> int:
    """Bytes from a tensor's first element to its last: what a kernel must see of the buffer, at least."""
    if m.numel == 0:
        return 0
    last = sum((n - 1) * abs(s) for n, s in zip(m.shape, m.strides, strict=True))
    return (last + 1) * m.dtype.itemsize


def _is_buffer(name: str, metas: dict[str, Meta], roles: dict[str, str]) -> bool:
    return name in metas or roles.get(name.split("[")[0]) in ("tensor", "optional", "operand", "tensors")
