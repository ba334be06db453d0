"""The host's times of dispatches: `timing` and `timings` of the contract in docs/design.md, natively."""

from array import array

import pytest

import pellucid as torch
from pellucid.device import native_timestamps
from pellucid.device.commands import CODE_BITS, RUN
from pellucid.device.stream import stream

MOST_PASSES = native_timestamps.MOST_PASSES

pytestmark = pytest.mark.gpu


@pytest.fixture
def host():
    """The host, with every launch by itself; timing is off at the end."""
    opened = stream().open()
    with torch.webgpu.fusion(False):
        yield opened
    opened.timing(False)


def test_nothing_is_timed_unless_asked(host):
    x = torch.ones(10) + 1
    torch.webgpu.flush()
    assert host.timings() == []
    del x


@pytest.mark.usefixtures("timestamps")
def test_each_dispatch_has_a_begin_and_an_end(host):
    x = torch.ones(1000)
    torch.webgpu.flush()
    assert host.timing(True) is True
    assert host.timing(True) is True
    passes = host.stats()["passes"]
    y = x + 1
    z = y.exp()
    y = y + 1
    torch.webgpu.flush()
    assert host.stats()["passes"] == passes + 3
    times = host.timings()
    assert len(times) == 3
    assert times[0][0] == times[2][0] != times[1][0]
    stamps = [stamp for _, begin, end in times for stamp in (begin, end)]
    assert stamps == sorted(stamps)
    assert stamps[-1] > stamps[0]
    assert host.timings() == []
    host.timing(False)
    y = y + 1
    y = y.exp()
    torch.webgpu.flush()
    assert host.timings() == []
    assert host.stats()["passes"] == passes + 4
    del z


@pytest.mark.usefixtures("timestamps")
def test_a_window_of_more_dispatches_than_one_set_of_queries(host):
    x = torch.ones(4)
    torch.webgpu.flush()
    host.timing(True)
    for _ in range(MOST_PASSES + 10):
        x = x + 1
    torch.webgpu.flush()
    assert x.tolist() == [MOST_PASSES + 11.0] * 4
    assert len(host.timings()) == MOST_PASSES + 10


@pytest.mark.usefixtures("timestamps")
def test_past_its_memory_the_host_times_nothing(host, monkeypatch):
    x = torch.ones(4)
    torch.webgpu.flush()
    monkeypatch.setattr(native_timestamps, "RESULT_BYTES", 1024)
    host.timing(True)
    for _ in range(6):
        x = x + 1
        torch.webgpu.flush()
    assert x.tolist() == [7.0] * 4
    assert len(host.timings()) == 4
    x = x + 1
    torch.webgpu.flush()
    assert len(host.timings()) == 1


@pytest.mark.usefixtures("timestamps")
def test_what_failed_has_no_time(host):
    x = torch.ones(4)
    y = x + 1
    torch.webgpu.flush()
    host.timing(True)
    launch = host.launch(host.pipeline("fn main(", "w", 0, False, "bad"), b"", (), 1, 1, 1)
    assert host.failure().startswith("validation")
    host.submit(array("I", [launch << CODE_BITS | RUN, x._storage.slot]))
    assert host.timings() == []
    y = x + 1
    torch.webgpu.flush()
    assert [end > begin for _, begin, end in host.timings()] == [True]
    assert y.tolist() == [2.0] * 4


def test_waiting_leaves_index_errors_to_the_next_read():
    x = torch.embedding(torch.ones(3, 2), torch.tensor([5]))
    torch.webgpu.synchronize()
    with pytest.raises(IndexError, match="index 5 is out of range for 3"):
        x.tolist()
    assert torch.ones(2).tolist() == [1.0, 1.0]
