"""For tests of kernels that have variants: each of them, whatever the device would choose for itself."""

import numpy as np
import pytest

import pellucid
from pellucid.op.kernel.variants import VARIANTS
from pellucid.op.plan_cache import forget_plans


# Each combination with a variant costs kernels that a software driver compiles for long, so they take turns.
@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.turns(4)) for name in VARIANTS], autouse=True)
def variant(request, monkeypatch):
    """Plans are made anew with the variant, and forgotten again."""
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", request.param)
    yield request.param
    forget_plans()


def device(a: np.ndarray):
    """On webgpu, as a view that begins in the middle of its buffer."""
    whole = pellucid.tensor(np.concatenate([[7], a.reshape(-1)]).astype(a.dtype), device="webgpu")
    return whole[1:].reshape(a.shape)


def dispatches(function) -> int:
    """How many a call takes."""
    before = pellucid.webgpu.memory_stats()["dispatches"]
    result = function()
    taken = pellucid.webgpu.memory_stats()["dispatches"] - before
    del result
    return taken
