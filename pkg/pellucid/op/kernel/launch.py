"""Launch: which kernel, how its holes and parameters are filled, how many workgroups."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import KernelError
from .source import KernelSource, load

# Values of the fields of a kernel's Params.
Params = dict[str, Any]


def flag(on: bool) -> str:
    """A bool as the value of a hole."""
    return str(on).lower()


@dataclass
class Launch:
    """One dispatch: which file, how its holes and parameters are filled, how many workgroups.

    Args:
        file: a name below ``wgsl/`` without its ending, or a `KernelSource`.
        grid: workgroups; a number is folded into two dimensions past 65,535, a tuple is taken as it is.
        params: values of the fields of Params. ``<binding>_offset`` fields, fields named like a float
            argument and ``op`` are filled by the op.
        holes: declarations to replace (`KernelSource.fill`).
        bind: binding name -> name of an op's argument, output or temporary, where they differ.
            ``"tensors[2]"`` picks one of a list.
        map: the expression, for kernels that are one: others may take it up.
        at_most: of fields that each run brings the largest value, where a loop is as long (`turns.py`).
    """

    file: str | KernelSource
    grid: int | tuple[int, int, int]
    params: Params = field(default_factory=dict)
    holes: dict[str, str] = field(default_factory=dict)
    bind: dict[str, str] = field(default_factory=dict)
    map: Any = None
    at_most: dict[str, int] = field(default_factory=dict)

    @property
    def source(self) -> KernelSource:
        return load(self.file) if isinstance(self.file, str) else self.file


# Invocations from which on workgroups are larger. On an H200 it takes 160 us to begin 262,144 workgroups.
_MANY = 1 << 16


def per_element(
    file: str | KernelSource,
    count: int,
    params: Params,
    holes: dict[str, str] | None = None,
    bind: dict[str, str] | None = None,
) -> Launch:
    """The dispatch of a kernel of which each invocation makes one of ``count`` elements, in workgroups of 64,
    or of 256 where there are many; the other arguments as `Launch` has them."""
    lanes = 256 if count >= _MANY else 64
    filled = {**(holes or {}), "WORKGROUP": f"{lanes}u"}
    return Launch(file, -(-count // lanes), params, filled, bind or {})


_IN_PAIRS = {
    "PAIRS": "true",
    "load_x": "let k = params.x_offset + i; return x[k / 2u][k % 2u];",
    "load_pair": "if (params.x_offset % 2u == 0u) { return x[(params.x_offset + i) / 2u]; } "
    "return vec2<f32>(load_x(i), load_x(i + 1u));",
}


def per_line(
    file: str, params: Params, holes: dict[str, str], bind: dict[str, str], in_pairs: bool = False
) -> Launch:
    """The dispatch of a kernel that goes through lines of planes (wgsl/parts/plane_lines.wgsl): ``lines`` of
    ``out_width``, both in ``params``. Lanes lie side by side as far as most of them have a column. With
    ``in_pairs`` each takes an even place of a float32 ``x`` and the next one in each row."""
    width = params["out_width"]
    tile = min((64, 32, 16), key=lambda lanes: -(-width // lanes) * lanes)
    tiles = -(-width // tile)
    groups = tiles * -(-params["lines"] // (4 * 256 // tile))
    source = load(file).fill({**holes, "TILE": f"{tile}u"})
    if in_pairs:
        source = source.with_element("x", "vec2<f32>").fill(_IN_PAIRS).as_typed()
    return Launch(source, groups, {**params, "tiles": tiles}, bind=bind)


def fold(groups: int, limit: int = 65535) -> tuple[int, int, int]:
    """A number of workgroups as a grid within the limit of one dimension.

    Example:
        >>> fold(10), fold(70000)
        ((10, 1, 1), (35000, 2, 1))
    """
    if groups <= limit:
        return max(groups, 1), 1, 1
    rows = -(-groups // limit)
    return -(-groups // rows), rows, 1


def pack_params(source: KernelSource, values: Mapping[str, Any]) -> bytes:
    """The bytes of Params from values by field name.

    Raises:
        KernelError: a field is missing or unknown.
    """
    if source.fields.keys() != values.keys():
        missing, extra = source.fields.keys() - values.keys(), values.keys() - source.fields.keys()
        raise KernelError(
            f"{source.name}: Params lacks a value for {sorted(missing)} and has no field {sorted(extra)}."
        )
    block = bytearray(4 * source.params_words)
    for name, where in source.fields.items():
        value = values[name]
        items = value if isinstance(value, (tuple, list)) else (value,)
        if where.type in ("f32", "vec4<f32>", "vec4f"):
            struct.pack_into(f"<{len(items)}f", block, 4 * where.word, *items)
        else:
            words = [int(item) & 0xFFFFFFFF for item in items]
            struct.pack_into(f"<{len(items)}I", block, 4 * where.word, *words)
    return bytes(block)
