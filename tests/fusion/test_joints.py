"""A decoder layer of quantized weights runs in few launches, and gives what its launches give one by one."""

import numpy as np
import pytest

import pellucid as torch
from pellucid.nn import functional as F
from pellucid.op import forget_plans
from pellucid.quant.weight import weight_from_blocks
from quant.samples import tame_blocks

pytestmark = pytest.mark.gpu
WIDTH, INNER, KEYS = 64, 96, 32


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    with torch.webgpu.fusion(True):
        yield
    forget_plans()


class Parts:
    """Weights of a layer's products, of a format each."""

    def __init__(self, formats=("q4_0",) * 6):
        rng = np.random.default_rng(0)
        shapes = (WIDTH, WIDTH), (KEYS, WIDTH), (KEYS, WIDTH), (INNER, WIDTH), (INNER, WIDTH), (WIDTH, INNER)
        self.q, self.k, self.v, self.gate, self.up, self.down = (
            weight_from_blocks(tame_blocks(name, *shape, rng), name, shape, "webgpu")
            for name, shape in zip(formats, shapes, strict=True)
        )
        self.norm = torch.randn(WIDTH)


def settled(run):
    """What a run gives alone, and its dispatches once fused, after the values were compared."""
    with torch.webgpu.fusion(False):
        plain = [t.numpy() for t in run()]
    counts = []
    for _ in range(6):
        torch.webgpu.flush()
        before = torch.webgpu.memory_stats()["dispatches"]
        result = run()
        torch.webgpu.flush()
        counts.append(torch.webgpu.memory_stats()["dispatches"] - before)
        for a, b in zip(result, plain, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)
    assert counts[-2] == counts[-1]
    return counts[0], counts[-1]


def test_products_of_a_normalized_row():
    p, x = Parts(), torch.randn(1, 1, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return F.linear(h, p.q), F.linear(h, p.k), F.linear(h, p.v)

    assert settled(run) == (4, 1)


def test_gated_pair_with_its_expressions():
    p, x = Parts(), torch.randn(1, 1, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return [x + F.linear(F.silu(F.linear(h, p.gate)) * F.linear(h, p.up), p.down)]

    assert settled(run) == (7, 2)


def test_a_held_norm_is_written():
    p, x = Parts(), torch.randn(1, 1, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return h, F.linear(h, p.q), F.linear(h, p.k)

    assert settled(run) == (3, 2)


def test_held_products_of_a_pair_are_written():
    p, x = Parts(), torch.randn(1, 1, WIDTH)

    def run():
        gate, up = F.linear(x, p.gate), F.linear(x, p.up)
        return gate, up, F.silu(gate) * up

    assert settled(run) == (4, 1)


def test_formats_that_differ_are_launches_of_their_own():
    p = Parts(("q4_0", "q4_0", "q8_0", "q4_0", "q4_0", "q4_0"))
    x = torch.randn(1, 1, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return F.linear(h, p.q), F.linear(h, p.k), F.linear(h, p.v)

    assert settled(run) == (4, 3)


def test_an_input_that_changes_between_stays_what_it_was():
    p, x = Parts(), torch.randn(1, 1, WIDTH)
    start = x.clone()

    def run():
        x.copy_(start)
        first = F.linear(x, p.q)
        x.mul_(2)
        return first, F.linear(x, p.k), x * 1

    settled(run)


def test_several_rows_are_not_normalized_on_the_way():
    p, x = Parts(), torch.randn(1, 3, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return F.linear(h, p.q), F.linear(h, p.k)

    assert settled(run) == (3, 2)
