"""Adam with 8-bit state: moments as codes of a dynamic map, with a scale for each block."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import sqrt
from typing import Any

import numpy as np

from ..errors import RangeError
from ..ops.index.counting import searchsorted
from ..tensors import dtypes as dt
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .optimizer import Optimizer
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


class BlockState:
    """A tensor as codes of one byte, with the largest size of each block.

    Args:
        signed: whether numbers may be below 0.
        block_size: numbers of a block.
        like: a Tensor of the shape.

    Source: Dettmers et al. 2022, "8-bit optimizers via block-wise quantization", section 2.1
    """

    def __init__(self, signed: bool, block_size: int, like: Tensor):
        values = dynamic_map(signed)
        self.block_size, self.count = block_size, like.numel()
        self.values = tensor(values, device=like.device)
        self.bounds = tensor((values[:-1] + values[1:]) / 2, device=like.device)
        self.write(like.detach() * 0)

    def write(self, x: Tensor) -> None:
        """Keep the nearest code of each number over its block's largest size."""
        flat = x.reshape(-1)
        short = -self.count % self.block_size
        if short:
            whole = flat.new_zeros(self.count + short)
            whole[: self.count] = flat
            flat = whole
        blocks = flat.reshape(-1, self.block_size)
        self.scale = blocks.abs().amax(1, keepdim=True)
        shares = blocks / self.scale.clamp(min=1e-38)
        self.codes = searchsorted(self.bounds, shares, out_int32=True).to(dt.uint8)

    def read(self, shape: Any) -> Tensor:
        """The numbers that the codes stand for."""
        found = self.values[self.codes.to(dt.int32)] * self.scale
        return found.reshape(-1)[: self.count].reshape(shape)

    @property
    def nbytes(self) -> int:
        """Bytes of codes and scales."""
        return self.codes.numel() + 4 * self.scale.numel()


class Adam8bit(Optimizer):
    """`Adam` that keeps its two moments in a byte each, a quarter of what float32 takes.

    Each block of 256 numbers has its largest size as a float, and codes of the dynamic map. Small
    parameters, such as biases and norms, keep float32 state.

    Args:
        params: parameters or groups.
        lr: learning rate.
        betas: what the running means keep per step.
        eps: added to the denominator.
        weight_decay: times the parameter is added to the gradient.
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

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state, g = self.state[p], p.grad
        assert g is not None
        beta1, beta2 = map(float, group["betas"])
        if not state:
            state["step"] = 0
            is_small = p.numel() < group["min_8bit_size"]
            for name, signed in (("exp_avg", True), ("exp_avg_sq", False)):
                state[name] = p.detach() * 0 if is_small else BlockState(signed, group["block_size"], p)
        state["step"] += 1
        if group["weight_decay"] and not self._decoupled:
            g = g + p * group["weight_decay"]
        moments = []
        for name, keep, part in (("exp_avg", beta1, g), ("exp_avg_sq", beta2, g * g)):
            old = state[name]
            new = (old.read(p.shape) if isinstance(old, BlockState) else old) * keep + part * (1 - keep)
            if isinstance(old, BlockState):
                old.write(new)
            else:
                state[name] = new
            moments.append(new)
        root = sqrt(1 - beta2 ** state["step"])
        rate = group["lr"] / (1 - beta1 ** state["step"])
        if group["weight_decay"] and self._decoupled:
            p.mul_(1 - group["lr"] * group["weight_decay"])
        p.sub_(moments[0] / (moments[1].sqrt() / root + group["eps"]) * rate)

    def state_bytes(self) -> int:
        """How many bytes the moments of all parameters take."""
        kept = [s[k] for s in self.state.values() for k in ("exp_avg", "exp_avg_sq")]
        return sum(s.nbytes if isinstance(s, BlockState) else 4 * s.numel() for s in kept)


class AdamW8bit(Adam8bit):
    """`Adam8bit` whose weight decay shrinks the parameter directly, as `AdamW`'s does.

    Args:
        params: parameters or groups.
        lr: learning rate.
        betas: what the running means keep per step.
        eps: added to the denominator.
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
