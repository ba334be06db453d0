"""The tables of launches and pipelines: what goes when they are full."""

import gc

import numpy as np

import pellucid
from pellucid.op import launches
from pellucid.op.plan_cache import forget_plans


def test_a_pipeline_without_launches_stays_for_the_launch_that_makes_room(monkeypatch):
    x = pellucid.ones(5)
    x.atanh()
    pellucid.webgpu.synchronize()
    forget_plans()
    gc.collect()
    monkeypatch.setattr(launches, "_MOST_PIPELINES", 0)
    launches._most[0] = 0
    y = pellucid.full((2, 3), 0.5)
    pellucid.webgpu.synchronize()
    forget_plans()
    launches._most[0] = 0
    np.testing.assert_allclose(y.atanh().numpy(), np.arctanh(np.full((2, 3), 0.5)), rtol=1e-6)
