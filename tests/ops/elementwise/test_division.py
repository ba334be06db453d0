"""Whole quotients and remainders against PyTorch, bit for bit, where the device's own division is inexact."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import agree, flushed
from ops.values import ours
from pellucid.op.kernel import parts, source
from pellucid.op.plan_cache import forget_plans
from samples.elementwise import FLOATS

pytestmark = pytest.mark.gpu
# WGSL allows 2.5 units in the last place: up to 3 beside the rounded quotient, in either direction.
UNITS = (-3, -1, 0, 1, 3)
QUOTIENTS = ("f32(up.x) / f32(down.x)", "abs(a) / abs(b)")
# PyTorch's float32 fmod gives NaN where the quotient overflows. In float64 remainders are exact.
OPS = {
    "floor_divide": torch.floor_divide,
    "remainder": lambda a, b: torch.remainder(a.double(), b.double()).float(),
    "fmod": lambda a, b: torch.fmod(a.double(), b.double()).float(),
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
}
# Subnormal numbers, their neighbours, both sides of 2^-63, where kernels scale, and the largest.
EDGES = """1e-45 -1e-45 1e-40 -3e-39 1.1754942e-38 1.1754944e-38 -2.4e-38 1e-30 1.0842022e-19 5.4210106e-20
3e-20 24.999998 25 0.99999994 1.0000001 0.33333334 16777215 16777218 8.507059e37 1.1e38 3.4028235e38"""
VALUES = np.concatenate([FLOATS, np.array(EDGES.split(), np.float32), -np.array(EDGES.split(), np.float32)])


def mine(name: str, a: pellucid.Tensor, b: pellucid.Tensor) -> pellucid.Tensor:
    if name in ("trunc", "floor"):
        return pellucid.div(a, b, rounding_mode=name)
    return getattr(pellucid, name)(a, b)


@pytest.fixture
def off_by(monkeypatch):
    """A function that makes every later kernel's float32 quotient wrong by a number of units."""
    known = parts._parts()
    part = known["division"]
    text = "\n".join(part.functions.values())
    for quotient in QUOTIENTS:
        assert quotient in text

    def forget() -> None:
        source._finished.cache_clear()
        forget_plans()

    def use(units: int) -> None:
        def changed(function: str) -> str:
            for quotient in QUOTIENTS:
                wrong = f"bitcast<f32>(bitcast<u32>({quotient}) + bitcast<u32>({units}i))"
                function = function.replace(quotient, wrong)
            return function

        functions = {name: changed(function) for name, function in part.functions.items()}
        parts_changed = {**known, "division": part._replace(functions=functions)}
        monkeypatch.setattr(parts, "_part", lambda name: parts_changed[name])
        forget()

    yield use
    monkeypatch.undo()
    forget()


def numbers(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random pairs: of any bits, of nearby sizes, and multiples that were rounded, so quotients lie beside
    whole numbers."""
    rng = np.random.default_rng(3)
    anything = rng.integers(1 << 32, size=(2, count), dtype=np.uint32).view(np.float32)
    a, b = rng.standard_normal((2, count)).astype(np.float32) * np.array([[100], [1]], np.float32)
    times = rng.integers(1, 1 << rng.integers(1, 31, count)).astype(np.float32)
    beside = np.nextafter(times * b, rng.choice([-np.inf, np.inf], count).astype(np.float32))
    first = np.concatenate([anything[0], a, np.where(rng.random(count) < 0.5, beside, times * b)])
    second = np.concatenate([anything[1], b, b])
    return torch.tensor(first), torch.tensor(second)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("name", OPS)
def test_an_inexact_quotient_changes_nothing(name, units, off_by):
    off_by(units)
    edges = torch.tensor(VALUES)
    some, others = numbers(30_000)
    a = torch.cat([edges.repeat_interleave(len(edges)), some])
    b = torch.cat([edges.repeat(len(edges)), others])
    out = mine(name, ours(a, "webgpu"), ours(b, "webgpu"))
    agree(out, OPS[name], a, b, device="webgpu", what=f"{name}, off by {units}")
    expected = OPS[name](a, b).numpy()
    zero = (expected == 0) & (flushed(a.numpy()) == a.numpy()) & (flushed(b.numpy()) == b.numpy())
    np.testing.assert_array_equal(np.signbit(out.numpy()[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_remainder_of_nothing_has_the_sign_of_the_dividend(device, dtype):
    a = torch.tensor([0.0, -0.0, 6.0, -6.0, 6.0, -6.0, -5.0], dtype=dtype)
    b = torch.tensor([-1.0, 2.0, -3.0, 3.0, 1.5, -1.5, 3.0], dtype=dtype)
    expected, out = torch.remainder(a, b), pellucid.remainder(ours(a, device), ours(b, device)).float()
    np.testing.assert_array_equal(out.numpy(), expected.float().numpy())
    np.testing.assert_array_equal(np.signbit(out.numpy()), np.signbit(expected.float().numpy()))
