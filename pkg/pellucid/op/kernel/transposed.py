"""Copies of what lies transposed: in tiles, on a GPU."""

from __future__ import annotations

import re
from dataclasses import replace

from ...tensors.shape import contiguous_strides
from .launch import Launch
from .source import KernelSource, load
from .variants import is_direct

_TILE = 32
# Workgroups along one dimension of the grid, at most.
_MOST = 65535
_WORD = (1 << 32) - 1


def in_tiles(
    launch: Launch, name: str, local: str, shape: tuple[int, ...], steps: tuple[int, ...], element: str
) -> Launch:
    """The dispatch that a copy is made by: one in tiles, where rows of its input are columns of the result.

    Args:
        launch: the dispatch by elements, which goes through memory with long steps.
        name: for messages.
        local: the input's binding.
        shape: of the result, up to four axes.
        steps: the input's strides.
        element: the WGSL type of both.
    """
    row = _row(shape, steps)
    if row is None or is_direct():
        return launch
    out_steps = contiguous_strides(tuple(shape))
    outer, inner = [None, None, *(k for k in range(len(shape) - 1) if k != row)][-2:]

    def of(values: tuple[int, ...], axis: int | None) -> int:
        return 0 if axis is None else values[axis] & _WORD

    lengths = [1 if axis is None else shape[axis] for axis in (outer, inner)]
    grid = -(-shape[-1] // _TILE), -(-shape[row] // _TILE), lengths[0] * lengths[1]
    if max(grid) > _MOST:
        return launch
    params: dict[str, int | float] = {
        "rows": shape[row], "columns": shape[-1], "row_step": of(steps, row), "column_step": of(steps, -1),
        "out_row_step": out_steps[row], "inner": lengths[1], "outer_step": of(steps, outer),
        "inner_step": of(steps, inner), "out_outer_step": of(out_steps, outer),
        "out_inner_step": of(out_steps, inner),
    }  # fmt: skip
    text = load("shape/transpose").fill({"T": element}).text
    # Fused kernels look for the operand by its name.
    text = re.sub(r"\bx(?=\[|:|_offset)", local, text)
    file = KernelSource(f"shape/transpose ({name})", text, typed=True)
    return replace(launch, file=file, grid=grid, params=params)


def _row(shape: tuple[int, ...], steps: tuple[int, ...]) -> int | None:
    """The axis whose neighbours lie side by side in the input, where it and the last one are long."""
    if shape[-1] < _TILE // 2:
        return None
    rows = range(len(shape) - 1)
    return next((k for k in rows if abs(steps[k]) == 1 and shape[k] >= _TILE // 2), None)
