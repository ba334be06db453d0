"""Tests of times are for devices that have timestamps."""

import pytest

import pellucid as torch


@pytest.fixture
def timestamps() -> None:
    """Skips where the device has none, as with PELLUCID_DEFAULT_LIMITS=1."""
    if "timestamp-query" not in torch.webgpu.get_device_properties().features:
        pytest.skip("the device has no timestamps")
