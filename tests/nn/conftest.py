"""Layers are tested on both devices."""

import pytest


@pytest.fixture(params=["cpu", "webgpu"])
def device(request: pytest.FixtureRequest) -> str:
    return request.param
