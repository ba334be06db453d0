"""Captured functions run on webgpu; every test leaves as much memory as it found."""

import gc
import random

import numpy as np
import pytest

import pellucid as torch


@pytest.fixture(autouse=True)
def plain_windows():
    """Launches run one by one, so that a replay gives the bits that eager calls give."""
    with torch.webgpu.fusion(False):
        yield


@pytest.fixture(autouse=True)
def nothing_stays(request: pytest.FixtureRequest):
    """No test leaves more live bytes than it found; one that closes the device may leave fewer."""
    gc.collect()
    before = torch.webgpu.memory_allocated()
    failures = request.session.testsfailed
    yield
    (getattr(request.node, "funcargs", None) or {}).clear()
    gc.collect()
    # The traceback of a failed test holds its tensors.
    if request.session.testsfailed == failures:
        assert torch.webgpu.memory_allocated() <= before


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(random.randrange(1 << 30))
