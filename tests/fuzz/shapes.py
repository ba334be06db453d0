"""Programs that never meet a shape twice: what is kept is bounded, and values stay right while tables
of plans, launches and layouts let go of what is old.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from random import Random

import pellucid
from pellucid.device.stream import stream
from pellucid.op import launches, plan_cache
from pellucid.tensors import meta

COUNT = 3
STEPS = 60

# So many at once, instead of thousands: tables let go all the time.
_LAUNCHES, _PLANS, _METAS = 96, 160, 200


def _lasting() -> list[Callable[[], bool]]:
    """Programs with shapes of their own, which must live through everything: eager, fused, captured."""
    w = pellucid.ones(5, 7, device="webgpu")
    captured = pellucid.compile(lambda x: (x * 2 + 1).sum(0))

    def eager() -> bool:
        return (w * 3 - 1).sum().item() == 70.0

    def replayed() -> bool:
        return captured(w).tolist() == [15.0] * 7

    def in_place() -> bool:
        x = pellucid.zeros(11, device="webgpu")
        x.add_(2).mul_(3)
        return x.tolist() == [6.0] * 11

    return [eager, replayed, in_place]


def _kept() -> dict[str, int]:
    return {
        "launches": len(launches._launches),
        "nodes": len(launches.nodes),
        "plans": sum(map(len, plan_cache.tables)),
        "layouts": len(meta._interned),
    }


def _step(chance: Random, n: int) -> None:
    """A few ops of a length that did not come before."""
    x = pellucid.ones(n, 3, device="webgpu", requires_grad=chance.random() < 0.3)
    kind = chance.randrange(4)
    if kind == 0:
        assert ((x * 2 + 1).sum(0) + x[: n // 2 + 1].amax(0)).tolist() == [3.0 * n + 1] * 3
    elif kind == 1:
        y = (x.T @ x).reshape(-1)
        assert y.tolist() == [float(n)] * 9
    elif kind == 2:
        y = pellucid.cat([x, x + 1]).cumsum(0)[-1]
        assert y.tolist() == [3.0 * n] * 3
    else:
        y = x.detach().clone()
        y[n // 2] = 5
        y -= 1
        assert y.sum().item() == 12.0
    if x.requires_grad:
        (x * x).sum().backward()
        assert x.grad is not None
        assert x.grad.sum().item() == 6.0 * n


def run(seed: int) -> None:
    """Go through new lengths, and come back to programs that last now and then."""
    chance = Random(seed)
    before = launches._most[0], meta._most[0], plan_cache._most[0]
    launches._most[0], meta._most[0], plan_cache._most[0] = _LAUNCHES, _METAS, _PLANS
    usual = launches.MOST_LAUNCHES, meta.MOST_METAS
    launches.MOST_LAUNCHES, meta.MOST_METAS = _LAUNCHES, _METAS
    try:
        with pellucid.webgpu.fusion(chance.random() < 0.7), warnings.catch_warnings():
            lasting = _lasting()
            n = chance.randint(2, 500)
            for k in range(STEPS):
                n += chance.randint(1, 5)
                _step(chance, n)
                if chance.random() < 0.3:
                    program = chance.choice(lasting)
                    assert program(), f"{program.__name__} is wrong after {k} new lengths"
            gc.collect()
            pellucid.webgpu.synchronize()
            kept = _kept()
            most = {"launches": 3 * _LAUNCHES, "nodes": 3 * _LAUNCHES, "plans": _PLANS, "layouts": 3 * _METAS}
            assert all(kept[name] <= most[name] for name in most), (
                f"{kept} are kept, at most {most} should be"
            )
            assert (
                len(stream().open().launches) <= len(launches._launches) + 32
            )  # what is made without a plan
            assert all(program() for program in lasting)
    finally:
        launches.MOST_LAUNCHES, meta.MOST_METAS = usual
        launches._most[0], meta._most[0], plan_cache._most[0] = before
