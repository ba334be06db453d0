"""`FakeQuantize`: numbers as a narrow type holds them, in training, with straight-through gradients."""

from __future__ import annotations

from typing import Any

from ....autograd.grad_mode import is_grad_enabled
from ....ops.elementwise.fake_quantize import fake_quantize_per_tensor_affine
from ....quant.float8 import LARGEST, round_to_fp8
from ....tensors.shape import axis
from ....tensors.tensor import Tensor
from ...modules.module import Module
from .observers import MinMaxObserver, ObserverBase, PerBlockMinMaxObserver, PerChannelMinMaxObserver


class FakeQuantize(Module):
    """What a narrow type makes of a tensor: rounded to it and back, in float32.

    ``x' = (clamp(round(x / scale) + zero_point) - zero_point) * scale``. Gradients go through where nothing
    is clamped.

    Args:
        observer: the class of an observer, whose range decides the scale.
        options: of the observer.

    Source:
        https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.fake_quantize.FakeQuantize.html;
        Jacob et al. 2018, "Quantization and training of neural networks for efficient
        integer-arithmetic-only inference"

    Example:
        >>> import pellucid as torch
        >>> fake = torch.ao.quantization.FakeQuantize(dtype="int4", symmetric=True)
        >>> fake(torch.tensor([-0.75, 0.33, 0.1], device="cpu"))
        tensor([-0.7500,  0.3000,  0.1000], device='cpu')
    """

    def __init__(self, observer: type[ObserverBase] = MinMaxObserver, **options: Any):
        super().__init__()
        self.activation_post_process = observer(**options)
        self.observer_enabled = self.fake_quant_enabled = True

    def enable_observer(self, enabled: bool = True) -> None:
        """Let the range follow what comes, or stay."""
        self.observer_enabled = enabled

    def disable_observer(self) -> None:
        """Let the range stay."""
        self.enable_observer(False)

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round, or return numbers as they are."""
        self.fake_quant_enabled = enabled

    def disable_fake_quant(self) -> None:
        """Return numbers as they are."""
        self.enable_fake_quant(False)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scales and zero points, as the observer has them."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, x: Tensor) -> Tensor:
        """The tensor, rounded if that is enabled."""
        observer = self.activation_post_process
        if self.observer_enabled:
            observer(x)
        return self.quantized(x) if self.fake_quant_enabled else x

    def quantized(self, x: Tensor) -> Tensor:
        """The tensor, rounded with the scales that the observer knows."""
        observer = self.activation_post_process
        scale, zero = observer.calculate_qparams()
        if isinstance(observer, PerBlockMinMaxObserver):
            blocks = x.unflatten(-1, (-1, observer.block_size))
            return self._rounded(blocks, scale.unsqueeze(-1), zero.unsqueeze(-1)).reshape(x.shape)
        if isinstance(observer, PerChannelMinMaxObserver):
            along = [-1 if k == axis(observer.ch_axis, x.ndim) else 1 for k in range(x.ndim)]
            scale, zero = scale.reshape(along), zero.reshape(along)
        return self._rounded(x, scale, zero)

    def _rounded(self, x: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
        observer = self.activation_post_process
        if observer.dtype not in LARGEST:
            return fake_quantize_per_tensor_affine(x, scale, zero, observer.quant_min, observer.quant_max)
        made = round_to_fp8(x.detach() / scale, observer.dtype) * scale
        if not (is_grad_enabled() and x.requires_grad):
            return made
        largest = scale * LARGEST[observer.dtype]
        inside = x.detach().abs() <= largest
        # The value is the rounded one, the derivative that of x where it is in range.
        return made + (x - x.detach()) * inside
