"""Adam with 8-bit state: moments as codes of a dynamic map, with a scale for each block."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import prod, sqrt
from typing import Any

import numpy as np

from ..errors import RangeError
from ..ops.index.counting import searchsorted
from ..ops.shape.creation import zeros_like
from ..ops.shape.padding import pad
from ..tensors import dtypes as dt
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, kept
from .settings import given


@cache
def dynamic_map(signed: bool) -> np.ndarray:
    """The 256 numbers of the dynamic data type, from the least to 1: exponents in unary, fractions in what
    is left.

    Source: Dettmers 2015, "8-bit approximations for parallelism in deep learning"; Dettmers et al. 2022,
        "8-bit optimizers via block-wise quantization", section 1.3
    """
    values = [0.0, 1.0]
    bits = 7
    for k in range(bits):
        count = 2 ** (k + (0 if signed else 1)) + 1
        ends = np.linspace(0.1, 1, count)
        middles = (ends[:-1] + ends[1:]) / 2 * 10.0 ** (k - bits + 1)
        values += [*middles, *(-middles if signed else ())]
    values += [0.0] * (256 - len(values))
    return np.sort(np.array(values, np.float32))


def quantize_blockwise(x: Tensor, bounds: Tensor, block_size: int) -> tuple[Tensor, Tensor]:
    """Numbers as codes of one byte, with the largest size of each block.

    Args:
        x: of any shape.
        bounds: (255,), between the numbers of a dynamic map.
        block_size: numbers with one scale.

    Returns:
        Codes uint8 (blocks, block_size), the last block filled with those of 0, and scales (blocks, 1).

    Source: Dettmers et al. 2022, "8-bit optimizers via block-wise quantization", section 2.1
    """
    flat = pad(x.reshape(-1), (0, -x.numel() % block_size))
    blocks = flat.reshape(-1, block_size)
    scale = blocks.abs().amax(1, keepdim=True)
    codes = searchsorted(bounds, blocks / scale.clamp(min=1e-38), out_int32=True)
    return codes.to(dt.uint8), scale


def dequantize_blockwise(codes: Tensor, scale: Tensor, values: Tensor, shape: Any) -> Tensor:
    """The numbers that codes of `quantize_blockwise` stand for.

    Args:
        codes, scale: what it returned.
        values: (256,), the dynamic map.
        shape: of the numbers.
    """
    found = values[codes.to(dt.int32)] * scale
    return found.reshape(-1)[: prod(shape)].reshape(shape)


class Adam8bit(Optimizer):
    """`Adam` that keeps its two moments in a byte each, a quarter of what float32 takes.

    Each block of 256 numbers has its largest size as a float, and codes of the dynamic map. Small
    parameters, such as biases and norms, keep float32 state.

    Args:
        min_8bit_size: parameters with fewer numbers keep float32 state.
        block_size: numbers with one scale.

    Raises:
        ValueError: a setting is out of range.

    Source: Dettmers et al. 2022, "8-bit optimizers via block-wise quantization"

    Example:
        >>> import pellucid as torch
        >>> w = torch.nn.Parameter(torch.ones(4096, device="cpu"))
        >>> optimizer = torch.optim.Adam8bit([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> round(w[0].item(), 4), optimizer.state_bytes()
        (0.9, 8320)
    """

    _counted = ("step",)
    _decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        min_8bit_size: int = 4096,
        block_size: int = 256,
    ):
        if block_size < 1 or min_8bit_size < 0:
            raise RangeError(
                f"{type(self).__name__}: block_size={block_size!r} must be at least 1, min_8bit_size="
                f"{min_8bit_size!r} at least 0."
            )
        super().__init__(params, given(locals()))
        self._maps: dict[Any, tuple[Tensor, Tensor]] = {}

    def _kernel(self, group: dict[str, Any]) -> Any:
        return group["eps"], group["block_size"], bool(group["weight_decay"])

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        state["step"] = step = state["step"] + 1.0
        (beta1, beta2), lr = map(float, group["betas"]), float(group["lr"])
        decay = float(group["weight_decay"])
        shrink, joined = (1 - lr * decay, 0.0) if self._decoupled else (1.0, decay)
        return (
            beta1,
            1 - beta1,
            beta2,
            1 - beta2,
            shrink,
            joined,
            sqrt(1 - beta2**step),
            lr / (1 - beta1**step),
        )

    def _map(self, signed: bool, like: Tensor) -> tuple[Tensor, Tensor]:
        """The dynamic map on a device, and the bounds between its numbers."""
        key = like.device, signed
        if key not in self._maps:
            values = dynamic_map(signed)
            bounds = (values[:-1] + values[1:]) / 2
            self._maps[key] = tensor(values, device=like.device), tensor(bounds, device=like.device)
        return self._maps[key]

    def _begin(self, value: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The first state of a parameter, with the names of bitsandbytes."""
        state: dict[str, Any] = {"step": 0.0}
        for k, signed in enumerate((True, False), 1):
            nothing = zeros_like(value)
            if value.numel() < group["min_8bit_size"]:
                state[f"state{k}"] = kept(nothing)
                continue
            codes, scale = quantize_blockwise(nothing, self._map(signed, value)[1], group["block_size"])
            state[f"state{k}"], state[f"absmax{k}"] = kept(codes), kept(scale)
        return state

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        value, g = self._operands(p)
        state = self.state[p]
        if not state:
            state.update(self._begin(value, group))
        keep1, take1, keep2, take2, shrink, decay, root, rate = self._numbers_of(p, group, state)
        if group["weight_decay"] and not self._decoupled:
            g = g + value * decay
        moments = []
        parts = ((1, True, g, keep1, take1), (2, False, g * g, keep2, take2))
        for k, signed, part, keep, take in parts:
            codes, scale = state[f"state{k}"], state.get(f"absmax{k}")
            if scale is None:
                codes.mul_(keep).add_(part * take)
                moments.append(codes)
                continue
            values, bounds = self._map(signed, value)
            new = dequantize_blockwise(codes, scale, values, value.shape) * keep + part * take
            for old, changed in zip(
                (codes, scale), quantize_blockwise(new, bounds, codes.shape[1]), strict=True
            ):
                old.copy_(changed)
            moments.append(new)
        if group["weight_decay"] and self._decoupled:
            value.mul_(shrink)
        value.sub_(moments[0] / (moments[1].sqrt() / root + group["eps"]) * rate)
        self._write_back(p, value)

    def state_bytes(self) -> int:
        """How many bytes the moments of all parameters take."""
        kept_here = [t for state in self.state.values() for t in state.values() if isinstance(t, Tensor)]
        return sum(t.numel() * t.element_size() for t in kept_here)


class AdamW8bit(Adam8bit):
    """`Adam8bit` whose weight decay shrinks the parameter directly, as `AdamW`'s does.

    Args:
        weight_decay: ``lr * weight_decay`` of the parameter is taken away per step.
        min_8bit_size: parameters with fewer numbers keep float32 state.
        block_size: numbers with one scale.

    Raises:
        ValueError: a setting is out of range.

    Source: Dettmers et al. 2022, "8-bit optimizers via block-wise quantization"; Loshchilov and Hutter 2019
    """

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        min_8bit_size: int = 4096,
        block_size: int = 256,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, min_8bit_size=min_8bit_size, block_size=block_size
        )
