"""Observers: what range numbers have, and which scale and zero point hold it, per tensor, channel or
block.
"""

from __future__ import annotations

from typing import Any

from ....autograd.grad_mode import under
from ....errors import ArgumentError, GradientError, RangeError, ShapeError
from ....ops.shape.creation import zeros_like
from ....quant.float8 import LARGEST
from ....tensors.shape import axis
from ....tensors.tensor import Tensor
from ...modules.module import Module

# From the least to the largest.
INTEGERS = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}
_LEAST_SCALE = 2.0**-23


class ObserverBase(Module):
    """What all observers have: they look at tensors, return them as they are, and know a scale afterwards.

    Args:
        dtype: ``"int8"``, ``"uint8"``, ``"int4"``, ``"uint4"``, ``"fp8_e4m3"`` or ``"fp8_e5m2"``.
        symmetric: the zero point is 0, or the middle of an unsigned type. Floats are always symmetric.
        quant_min, quant_max: a narrower range of integers.

    Attributes:
        min_val, max_val: the range so far, or None.

    Raises:
        RangeError: there is no such type, or the range is empty or wider than the type.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.observer.ObserverBase.html
    """

    def __init__(
        self,
        dtype: str = "int8",
        symmetric: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
    ):
        super().__init__()
        dtype = str(dtype).removeprefix("pellucid.").removeprefix("torch.")
        if dtype not in (*INTEGERS, *LARGEST):
            known = ", ".join((*INTEGERS, *LARGEST))
            raise RangeError(f"{type(self).__name__}: dtype {dtype!r} is none of {known}.")
        self.dtype, self.symmetric = dtype, symmetric or dtype in LARGEST
        if dtype in INTEGERS:
            least, largest = INTEGERS[dtype]
            self.quant_min = least if quant_min is None else quant_min
            self.quant_max = largest if quant_max is None else quant_max
            if not least <= self.quant_min < self.quant_max <= largest:
                raise RangeError(
                    f"{type(self).__name__}: [{self.quant_min}, {self.quant_max}] is no range within "
                    f"{dtype}'s "
                    f"[{least}, {largest}]."
                )
        self.min_val: Tensor | None = None
        self.max_val: Tensor | None = None

    def _ends(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the largest number of each part of a tensor that has a scale of its own."""
        return x.min(), x.max()

    def _joined(self, old: Tensor, new: Tensor, largest: bool) -> Tensor:
        return old.maximum(new) if largest else old.minimum(new)

    def forward(self, x: Tensor) -> Tensor:
        """Look at a tensor, and return it."""
        if not isinstance(x, Tensor) or not x.is_floating_point():
            raise ArgumentError(f"{type(self).__name__}: observes floating-point Tensors, not {x!r}.")
        if x.numel():
            under(False, self._look, x.detach())
        return x

    def _look(self, x: Tensor) -> None:
        low, high = self._ends(x)
        if self.min_val is not None and self.max_val is not None:
            if self.min_val.shape != low.shape:
                raise ShapeError(
                    f"{type(self).__name__}: saw parts of shape {tuple(self.min_val.shape)} before and "
                    f"{tuple(low.shape)} now. Use one observer for each tensor."
                )
            low, high = self._joined(self.min_val, low, False), self._joined(self.max_val, high, True)
        self.min_val, self.max_val = low, high

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val = self.max_val = None

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scales and zero points that hold the range, with 0 among what is exact.

        Returns:
            Two Tensors, of one number for each part of the tensor.

        Raises:
            RuntimeError: nothing was seen.
        """
        if self.min_val is None or self.max_val is None:
            raise GradientError(f"{type(self).__name__}: nothing was observed. Run the model on data first.")
        return under(False, self._qparams, self.min_val.clamp(max=0.0), self.max_val.clamp(min=0.0))

    def _qparams(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        if self.dtype in LARGEST:
            return (high.maximum(-low) / LARGEST[self.dtype]).clamp(min=_LEAST_SCALE), zeros_like(high)
        steps = self.quant_max - self.quant_min
        if self.symmetric:
            scale = (high.maximum(-low) / (steps / 2)).clamp(min=_LEAST_SCALE)
            middle = 0 if self.quant_min < 0 else (self.quant_min + self.quant_max + 1) // 2
            return scale, zeros_like(scale) + middle
        scale = ((high - low) / steps).clamp(min=_LEAST_SCALE)
        zero = self.quant_min - (low / scale).round()
        return scale, zero.clamp(self.quant_min, self.quant_max)

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, symmetric={self.symmetric}"


class MinMaxObserver(ObserverBase):
    """The least and the largest number of all tensors seen, with one scale.

    Args:
        dtype, symmetric, quant_min, quant_max: see `ObserverBase`.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.observer.MinMaxObserver.html

    Example:
        >>> import pellucid as torch
        >>> observer = torch.ao.quantization.MinMaxObserver(dtype="uint8")
        >>> _ = observer(torch.tensor([-1.0, 1.55], device="cpu"))
        >>> scale, zero_point = observer.calculate_qparams()
        >>> round(scale.item(), 4), zero_point.item()
        (0.01, 100.0)
    """


class MovingAverageMinMaxObserver(ObserverBase):
    """A running mean of the least and the largest number, for activations, whose outliers it forgets.

    Args:
        averaging_constant: the share of a new tensor.
        dtype, symmetric, quant_min, quant_max: see `ObserverBase`.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.observer.MovingAverageMinMaxObserver.html
    """

    def __init__(self, averaging_constant: float = 0.01, **options: Any):
        super().__init__(**options)
        if not 0 < averaging_constant <= 1:
            raise RangeError(
                f"MovingAverageMinMaxObserver: averaging_constant must be above 0 and at most 1, not "
                f"{averaging_constant!r}."
            )
        self.averaging_constant = averaging_constant

    def _joined(self, old: Tensor, new: Tensor, largest: bool) -> Tensor:
        return old + (new - old) * self.averaging_constant


class PerChannelMinMaxObserver(ObserverBase):
    """A scale for each place along an axis, for weights.

    Args:
        ch_axis: which axis.
        dtype, symmetric, quant_min, quant_max: see `ObserverBase`.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.observer.PerChannelMinMaxObserver.html
    """

    def __init__(self, ch_axis: int = 0, **options: Any):
        super().__init__(**options)
        self.ch_axis = ch_axis

    def _ends(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.movedim(axis(self.ch_axis, x.ndim), 0).flatten(1) if x.ndim > 1 else x.unsqueeze(1)
        return rows.amin(1), rows.amax(1)


class PerBlockMinMaxObserver(ObserverBase):
    """A scale for each block of columns of each row, as block formats have.

    Args:
        block_size: columns of a block, of which the last axis must hold whole ones.
        dtype, symmetric, quant_min, quant_max: see `ObserverBase`.

    Raises:
        ShapeError: when it looks, the last axis is no multiple of ``block_size``.

    Source: Dettmers et al. 2022, "8-bit optimizers via block-wise quantization", section 2.1
    """

    def __init__(self, block_size: int = 32, **options: Any):
        super().__init__(**options)
        if isinstance(block_size, bool) or not isinstance(block_size, int) or block_size < 1:
            raise RangeError(f"PerBlockMinMaxObserver: block_size must be at least 1, not {block_size!r}.")
        self.block_size = block_size

    def _ends(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if not x.ndim or x.shape[-1] % self.block_size:
            raise ShapeError(
                f"PerBlockMinMaxObserver: the last axis of shape {tuple(x.shape)} is no multiple of "
                "block_size="
                f"{self.block_size}."
            )
        blocks = x.unflatten(-1, (-1, self.block_size))
        return blocks.amin(-1), blocks.amax(-1)
