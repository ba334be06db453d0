"""What happens when the device has no room for a buffer: free blocks go, and creation is tried again."""

import gc
from typing import Any

import numpy as np
import pytest

import pellucid as torch
from pellucid.device.stream import stream
from pellucid.errors import OutOfMemoryError

pytestmark = pytest.mark.gpu
wgpu = pytest.importorskip("wgpu")
MEGABYTE = 1 << 20


class Small:
    """A device that has room for so many bytes of the pool's blocks."""

    def __init__(self, monkeypatch, room: int):
        self.host: Any = stream().open()
        self.room, self.refused = room, 0
        self.create = self.host.device.create_buffer
        monkeypatch.setattr(self.host.device, "create_buffer", self)

    def __call__(self, *, size, usage, **settings):
        reserved = self.host.pool.live_bytes + self.host.pool.free_bytes
        if usage & wgpu.BufferUsage.STORAGE and reserved + size > self.room:
            self.refused += 1
            raise wgpu.GPUOutOfMemoryError("not enough memory left")
        return self.create(size=size, usage=usage, **settings)


@pytest.fixture
def small(monkeypatch):
    gc.collect()
    torch.webgpu.synchronize()
    torch.webgpu.empty_cache()
    in_use = torch.webgpu.memory_reserved()
    return Small(monkeypatch, in_use + 40 * MEGABYTE)


def megabytes(count: int, value: float):
    return torch.full((count * MEGABYTE // 4,), value)


def test_free_blocks_make_room(small):
    for size in (9, 10, 11):
        x = megabytes(size, 1.0)
        torch.webgpu.flush()
        del x
    torch.webgpu.flush()
    assert torch.webgpu.memory_stats()["pooled_bytes"] == 30 * MEGABYTE
    assert small.refused == 0
    y = megabytes(35, 2.0)
    assert y[-1].item() == 2.0
    assert small.refused == 1


def test_blocks_that_the_window_used_serve_it_before_they_go(small):
    """A block that is freed within the window is used by commands that are not submitted yet."""
    with torch.webgpu.fusion(False):
        x = megabytes(12, 3.0)
        first = x[:5] * 2
        y = x.sum()
        del x
        z = megabytes(13, 4.0)
        w = megabytes(14, 5.0)
        v = megabytes(5, 6.0) + w[0]
        torch.webgpu.flush()
    assert small.refused == 1
    np.testing.assert_array_equal(first.numpy(), [6.0] * 5)
    assert y.item() == pytest.approx(3.0 * 12 * MEGABYTE / 4, rel=1e-5)
    assert (z[-1].item(), w[-1].item(), v[-1].item()) == (4.0, 5.0, 11.0)


def test_what_does_not_fit_is_refused_and_the_rest_goes_on(small):
    x = megabytes(20, 1.0)
    torch.webgpu.flush()
    y = megabytes(30, 2.0)
    with pytest.raises(OutOfMemoryError, match=r"31457280 bytes: not enough memory left.*Free tensors"):
        torch.webgpu.flush()
    assert small.refused == 2
    del y
    assert x[-1].item() == 1.0
    del x
    z = megabytes(30, 3.0)
    assert z[-1].item() == 3.0
