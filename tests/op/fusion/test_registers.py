"""Values handed on in registers are those that were stored between: compilers know rules about floats that do
not hold for NaN, infinities and the sign of zero."""

import itertools
import math
import os

import numpy as np
import pytest

import pellucid
from pellucid.op import fusion

pytestmark = pytest.mark.gpu
X = np.array(
    [0, -0.0, 1, -1, 0.5, -0.5, 3, math.inf, -math.inf, math.nan, 1e30, -1e30, 3e38, 88.5, 7.25],
    np.float32,
)
ONE = {
    "sqrt": lambda a: a.sqrt(), "square": lambda a: a.square(), "neg": lambda a: -a, "abs": lambda a: a.abs(),
    "exp": lambda a: a.exp(), "log": lambda a: a.log(), "reciprocal": lambda a: a.reciprocal(),
    "rsqrt": lambda a: a.rsqrt(), "relu": lambda a: a.relu(), "sin": lambda a: a.sin(),
    "sigmoid": lambda a: a.sigmoid(), "clamp": lambda a: a.clamp(-1, 1), "* 0": lambda a: a * 0,
    "+ 0": lambda a: a + 0, "0 -": lambda a: 0 - a, "* 2": lambda a: a * 2, "/ 2": lambda a: a / 2,
    "sign": lambda a: a.sign(), "is nan": lambda a: a.isnan().float(),
}  # fmt: skip
TWO = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "max": lambda a, b: pellucid.maximum(a, b), "min": lambda a, b: pellucid.minimum(a, b),
    "not <": lambda a, b: (~(a < b)).float(), "!=": lambda a, b: (a != b).float(),
}  # fmt: skip


def programs():
    """Every pair of functions, the second with the first one's value and with what went into that."""
    for (_, f), (_, g) in itertools.product(ONE.items(), ONE.items()):
        yield lambda a, b, f=f, g=g: g(f(a))
    for (_, f), (_, g) in itertools.product(ONE.items(), TWO.items()):
        yield lambda a, b, f=f, g=g: (lambda u: g(u, u))(f(a))
        yield lambda a, b, f=f, g=g: g(f(a), a)
    for (_, f), (_, g) in itertools.product(TWO.items(), TWO.items()):
        yield lambda a, b, f=f, g=g: g(f(a, b), a)
        yield lambda a, b, f=f, g=g: g(b, f(a, b))
    for (_, f), (_, g) in itertools.product(TWO.items(), ONE.items()):
        yield lambda a, b, f=f, g=g: g(f(a, b))


# Some of them, of each family, and all in which a value meets itself: compilers make numbers of those.
PROGRAMS = [
    *list(programs())[::9],
    *[lambda a, b, g=g: g(a, a) for g in TWO.values()],
    *[lambda a, b, f=f, g=g: g(f(a), f(a)) for f in ONE.values() for g in (TWO["/"], TWO["-"])],
    lambda a, b: pellucid.addcdiv(a * 2, b + 1, b + 1),
    lambda a, b: (lambda u: pellucid.addcdiv(u, u, u))(a * 2),
]


@pytest.fixture(autouse=True)
def as_before():
    on = fusion.is_fusion_enabled()
    yield
    fusion.enable(on, at_once=os.environ.get("PELLUCID_FUSION") == "always")


def made(is_fused: bool) -> list[np.ndarray]:
    fusion.enable(is_fused, at_once=True)
    a, b = pellucid.tensor(np.repeat(X, X.size)), pellucid.tensor(np.tile(X, X.size))
    results = []
    for k in range(0, len(PROGRAMS), 40):
        window = []
        for program in PROGRAMS[k : k + 40]:
            window.append(program(a, b))
            if not is_fused:
                pellucid.webgpu.flush()
        results += [out.numpy() for out in window]
    return results


def test_fused_pairs_are_the_unfused_ones():
    for unfused, fused in zip(made(False), made(True), strict=True):
        same = unfused.view(np.uint32) == fused.view(np.uint32)
        assert (same | (np.isnan(unfused) & np.isnan(fused))).all()


def test_roots_squared_in_every_round():
    for _ in range(5):
        x = pellucid.tensor([-0.5, 2.0])
        out = x.sqrt().square().numpy()
        assert math.isnan(out[0])


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_between_one_value_and_itself(weight):
    fusion.enable(True, at_once=True)
    x = pellucid.tensor(X)
    for ends in (x, x * 1):
        out = (pellucid.lerp(ends, ends, weight) * 1).numpy()
        assert (np.isnan(out) == ~np.isfinite(X)).all()


def test_what_is_always_nothing_times_not_a_number():
    for _ in range(5):
        x = pellucid.tensor(X)
        finite, whole = x.isfinite(), x.isnan().int()
        for nothing in (finite ^ finite, whole - whole, whole & 0):
            assert (np.isnan((x * nothing).numpy()) == ~np.isfinite(X)).all()


def test_handed_on_by_a_reduction_and_into_one():
    for _ in range(5):
        x = pellucid.tensor([[-0.5, 2.0], [1.0, 3.0]])
        assert math.isnan((x.sqrt() * x.sqrt()).sum(1).tolist()[0])
        total = (x.sum(1) - 5).sqrt()
        assert math.isnan((total * total).tolist()[0])
