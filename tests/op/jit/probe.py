"""What the tests of captures share: random tensors, bits of results, how calls were served."""

from typing import Any

import numpy as np

import pellucid as torch


def some(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    """Random numbers on webgpu."""
    return torch.tensor(rng.standard_normal(shape).astype(np.float32))


def bits(value: Any) -> Any:
    """Tensors of a result as bytes, everything else as it is."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().tobytes(), tuple(value.shape), value.stride(), value.dtype
    if isinstance(value, (list, tuple)):
        return [bits(v) for v in value]
    if isinstance(value, dict):
        return {k: bits(v) for k, v in value.items()}
    return value


def replays(compiled: Any) -> int:
    """Calls that were replayed so far."""
    return compiled.explain().replays


def settle(compiled: Any, *calls: tuple) -> None:
    """Call until calls like these are replayed."""
    for _ in range(4):
        for arguments in calls:
            compiled(*arguments)
    for arguments in calls:
        before = replays(compiled)
        compiled(*arguments)
        assert replays(compiled) == before + 1, str(compiled.explain())
