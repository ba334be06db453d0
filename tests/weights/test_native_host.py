"""Loads into real buffers of the desktop's WebGPU."""

import numpy as np
import pytest

from pellucid import weights
from pellucid.device.host import STATUS_BYTES, STATUS_SLOT
from pellucid.weights import Target
from weights import samples

pytestmark = pytest.mark.gpu


@pytest.fixture
def host():
    from pellucid.device.native import NativeHost

    opened = NativeHost()
    opened.write(
        STATUS_SLOT, STATUS_BYTES, 0, bytes(STATUS_BYTES)
    )  # reads copy it; the device's stream makes it
    yield opened
    opened.close()


def test_buffers_hold_the_tensors_bytes(server, host, monkeypatch):
    monkeypatch.setattr(
        "pellucid.weights.pump._BACKLOG", 1 << 20
    )  # so that writes go to the device in between
    random = np.random.default_rng(1)
    arrays = {f"t{n}": random.integers(0, 255, n, dtype=np.uint8) for n in (3, 4, 1_000_001, 3_000_002, 17)}
    server.files["/m.safetensors"] = samples.safetensors_file(arrays)
    checkpoint = weights.open(f"{server.url}/m.safetensors")
    items = [(t, Target(slot, t.nbytes)) for slot, t in enumerate(checkpoint.values(), 1)]
    weights.stream(checkpoint, items, host)
    for info, target in items:
        data, _ = host.read(host.begin_read(target.slot, 0, (info.nbytes + 3) & ~3))
        assert bytes(data)[: info.nbytes] == arrays[info.name].tobytes()
