"""Quantized tensors: a scale and a zero point for a tensor or for each index of an axis.

An operator computes floats. What it takes of int8, uint8 or int16 is dequantized before, what it gives is
rounded to the numbers that the file says; both are joined to the operator's own kernels. So float sums stand
for the sums of integers and their multipliers in the runtime: a result differs from it by one step, rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....errors import ArgumentError
from ....nn import functional as F
from ....tensors import dtypes as dt
from ....tensors.construct import tensor
from ....tensors.dtypes import DType
from ....tensors.tensor import Tensor
from ..onnx.operators.elementwise import ops
from .layout import planes
from .table import TfliteOperator

# By the enum ActivationFunctionType.
ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {
    1: planes(F.relu),
    2: planes(lambda x: ops.clamp(x, -1.0, 1.0)),
    3: planes(F.relu6),
    4: planes(ops.tanh),
}


@dataclass(frozen=True)
class Quantization:
    """How integers stand for floats: ``scale * (integer - zero)``.

    Args:
        dtype: of the integers.
        scales, zeros: one of each, or as many as the axis is long.
        axis: along which they differ.
        rank: of the tensor.
    """

    dtype: DType
    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int
    rank: int

    def _spread(self, values: Sequence[float], device: Any) -> Any:
        if len(values) == 1:
            return float(values[0])
        shape = [-1 if k == self.axis else 1 for k in range(self.rank)]
        return tensor(np.array(values, np.float32).reshape(shape), device=device)

    def floats(self, x: Tensor) -> Tensor:
        """The floats that integers stand for."""
        scale = self._spread(self.scales, x.device)
        zero = self._spread(self.zeros, x.device) if any(self.zeros) else None
        given = [t for t in (scale, zero) if isinstance(t, Tensor)]

        def compute(x: Tensor, *spread: Tensor) -> Tensor:
            more = list(spread)
            s = more.pop(0) if isinstance(scale, Tensor) else scale
            y = x.to(dt.float32)
            if zero is not None:
                y = y - (more.pop(0) if isinstance(zero, Tensor) else zero)
            return y * s

        return planes(compute)(x, *given)

    def integers(self, y: Tensor) -> Tensor:
        """The integers that stand for floats best."""
        if len(self.scales) != 1:
            raise ArgumentError("a result is quantized for each channel. Only weights can be.")
        assert self.dtype.numpy is not None
        limits = np.iinfo(self.dtype.numpy)
        scale, zero = self.scales[0], self.zeros[0]

        def compute(y: Tensor) -> Tensor:
            return ops.clamp(ops.round(y / scale) + zero, limits.min, limits.max).to(self.dtype)

        return planes(compute)(y)


def lowered(
    row: TfliteOperator,
    activation: int,
    given: Sequence[Quantization | None],
    made: Sequence[Quantization | None],
) -> TfliteOperator:
    """The row of an operator whose function takes and gives what the file has.

    Args:
        row: of the table.
        activation: by number, is applied to the result; 0 if none.
        given, made: of the inputs and the outputs.

    Raises:
        ArgumentError: there is no such activation.
    """
    if activation and activation not in ACTIVATIONS:
        raise ArgumentError(f"the fused activation is number {activation}; 1 to 4 are computed.")
    scales = {(q.scales, q.zeros) for q in (*given, *made) if q is not None}
    if not activation and (not scales or (row.moves and len(scales) == 1)):
        return row
    inner, activate = row.function, ACTIVATIONS.get(activation)

    def run(*inputs: Any, **attributes: Any) -> Any:
        floats = [
            q.floats(x) if q is not None and isinstance(x, Tensor) and not x.dtype.is_floating_point else x
            for x, q in zip(inputs, given, strict=True)
        ]
        result = inner(*floats, **attributes)
        several = list(result) if isinstance(result, (tuple, list)) else [result]
        if activate is not None:
            several[0] = activate(several[0])
        for k, q in enumerate(made[: len(several)]):
            if q is not None and several[k].dtype.is_floating_point:
                several[k] = q.integers(several[k])
        return several if isinstance(result, (tuple, list)) else several[0]

    return replace(row, function=run)
