"""Copies, casts and triangles against PyTorch."""

from itertools import permutations

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from ops.values import equal, ours
from pellucid.op.plan_cache import forget_plans
from samples.sample import DTYPES

FLOATS = torch.tensor(
    [0, -0.0, 1, -1, 1.5, -1.5, 0.4999, 2.5, 100, -100, 127, 3e-5, 6e-8, np.inf, -np.inf, np.nan]
)
SMALL = [0, 1, 2, 3, 100, 127]
WIDE = [-1, -128, 65504, 70000, -70000, 16777217, 2**31 - 1, -(2**31)]
WIDEST = [2**40 + 1, -(2**40) - 1, 2**63 - 1, -(2**63), 2**24 + 1, 2**53 + 1, (1 << 62) + (1 << 38)]
INTEGERS = {"int64": SMALL + WIDE + WIDEST, "int32": SMALL + WIDE}


@pytest.mark.parametrize("source", DTYPES)
def test_casts(source):
    x = FLOATS if "float" in source else torch.tensor(INTEGERS.get(source, SMALL))
    x = x.to(getattr(torch, source))
    for target in DTYPES:
        values = (
            x[torch.isfinite(x)]
            if x.is_floating_point() and not target.startswith(("float", "bfloat", "bool"))
            else x
        )
        if target == "uint8" and values.is_floating_point():
            values = values[values >= 0]
        for device in DEVICES:
            mine = ours(values, device).to(getattr(pellucid, "bool_" if target == "bool" else target))
            equal(mine, values.to(getattr(torch, target)), what=f"{source} to {target} on {device}")


def test_every_half_survives_the_trip():
    bits = np.arange(1 << 16, dtype=np.uint32)
    half = bits.astype(np.uint16).view(np.float16)
    wide = half.astype(np.float32)
    x = pellucid.tensor(half, device="webgpu")
    np.testing.assert_array_equal(x.float().numpy(), wide)
    np.testing.assert_array_equal(x.float().half().numpy(), half)
    brain = (bits << 16).view(np.float32)
    y = pellucid.tensor(brain, dtype=pellucid.bfloat16, device="webgpu")
    np.testing.assert_array_equal(y.float().numpy(), brain)


def test_rounding_to_halves_is_to_nearest_even():
    rng = np.random.default_rng(3)
    values = rng.standard_normal(20000) * 10.0 ** rng.integers(-9, 6, 20000)
    x = torch.tensor(values.astype(np.float32))
    for dtype in (torch.float16, torch.bfloat16):
        equal(ours(x, "webgpu").to(getattr(pellucid, str(dtype)[6:])), x.to(dtype))
        equal(ours(x, "cpu").to(getattr(pellucid, str(dtype)[6:])), x.to(dtype))


@pytest.fixture
def on_a_gpu(monkeypatch):
    """Kernels that a GPU has."""
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    yield
    forget_plans()


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_large_copies_of_what_lies_in_another_order(on_a_gpu, dtype):
    x = (np.random.default_rng(4).standard_normal((5, 34, 41, 33)) * 100).astype(dtype)
    theirs, mine = torch.tensor(x), pellucid.tensor(x, device="webgpu")
    for order in permutations(range(4)):
        equal(mine.permute(order).contiguous(), theirs.permute(order).contiguous(), what=str(order))
    for turns in (1, 2, 3):
        equal(mine.rot90(turns, (1, 3)), theirs.rot90(turns, (1, 3)), what=f"{turns} turns")
    equal(mine[:, 1::2].transpose(1, 3).contiguous(), theirs[:, 1::2].transpose(1, 3).contiguous())


def test_transposed_copies_that_are_fused(on_a_gpu):
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((300, 250), (250, 300)))
    mine, other = pellucid.tensor(x, device="webgpu"), pellucid.tensor(y, device="webgpu")
    for _ in range(4):
        np.testing.assert_allclose(
            (mine.t().contiguous() + other).sum(1).numpy(), (x.T + y).sum(1), atol=1e-4
        )
        np.testing.assert_allclose(mine.cumsum(0).numpy(), x.cumsum(0), atol=1e-4)
