"""A device that goes away, calls of the host that fail: errors are this library's own, and work goes on."""

import asyncio
import functools

import pytest

import pellucid as torch
from pellucid.device.stream import stream
from pellucid.errors import DeviceError, KernelError

pytestmark = pytest.mark.gpu

CALLS = (
    "pipeline", "pipeline_later", "launch", "forget", "submit", "write", "begin_read", "read", "drop_read",
    "synchronize", "timing", "timings", "stats", "trim",
)  # fmt: skip


@pytest.fixture(autouse=True)
def fresh():
    yield
    torch.webgpu.reset()


def program():
    """Uploads, kernels of several layouts, gradients, reads that are given up: all that a host is asked."""
    x = torch.ones(1500, device="webgpu") + torch.tensor([float(k) for k in range(1500)], device="webgpu")
    w = torch.ones(5, 4, device="webgpu", requires_grad=True)
    (w @ w.T).relu().sum().backward()
    held = torch.zeros(2, device="webgpu")
    del held
    stream().begin_read(x._storage, 0, 4)
    torch.webgpu.synchronize()
    torch.webgpu.empty_cache()
    torch.webgpu.memory_stats()
    return (x.cumsum(0)[3].item(), w.grad.sum().item())


def watched(host, before):
    """Call a function before every call of a host."""
    for name in CALLS:
        method = getattr(host, name)

        @functools.wraps(method)
        def call(*args, method=method):
            before()
            return method(*args)

        setattr(host, name, call)


def after(count, trouble):
    """Run the program on a new device with trouble before one of its calls; returns what came of it, and how
    many calls there were."""
    torch.webgpu.reset()
    host, calls = stream().open(), 0

    def before():
        nonlocal calls
        calls += 1
        if calls == count:
            trouble(host)

    watched(host, before)
    try:
        return program(), calls
    except DeviceError as error:
        return error, calls


def test_a_device_that_is_lost_before_any_call_of_the_host():
    wanted, calls = after(-1, None)
    assert calls > 30
    for count in range(1, calls + 1, 5):
        found, _ = after(count, lambda host: host.device.destroy())
        assert found == wanted or isinstance(found, DeviceError), count
        torch.webgpu.reset()
        assert program() == wanted, count


def test_a_device_that_is_lost_before_a_new_layout():
    stream().open().device.destroy()
    with pytest.raises(DeviceError, match="lost"):
        torch.addcmul(*[torch.ones(3, device="webgpu")] * 3).tolist()


def test_a_device_that_is_lost_while_a_read_is_on_its_way():
    x = torch.ones(3, device="webgpu")
    read = stream().begin_read(x._storage, 0, 4)
    stream().open().device.destroy()
    try:
        found = bytes(read.result())
    except DeviceError as error:
        found = str(error)
    assert found == b"\0\0\x80\x3f" or "lost" in found


def test_a_loss_that_the_event_loop_met_is_not_raised_after_a_reset():
    async def lose():
        x = torch.ones(3, device="webgpu") + 1
        stream().open().device.destroy()
        await asyncio.sleep(0.01)  # where the window is submitted, and nobody hears of it
        del x

    torch.webgpu.reset()
    asyncio.run(lose())
    assert stream()._late is not None
    torch.webgpu.reset()
    torch.webgpu.flush()
    assert torch.ones(3, device="webgpu").tolist() == [1.0] * 3


def test_a_call_of_the_host_that_fails_leaves_the_session_usable():
    """Wherever it fails; nothing that is recorded later fails for it."""

    def fail(host):
        raise KernelError("this call fails")

    wanted, calls = after(-1, None)
    for count in range(3, calls + 1, 5):
        try:
            found, _ = after(count, fail)
        except KernelError as error:
            found = error
        assert found == wanted or isinstance(found, KernelError), count
        for _ in range(2):
            assert program() == wanted, count
        torch.webgpu.synchronize()


@pytest.mark.parametrize("broken", [0.5, -1, 1 << 32, "tensor"])
def test_a_word_that_is_none_fails_once(broken):
    x = torch.ones(3, device="webgpu")
    torch.webgpu.synchronize()
    before = torch.webgpu.memory_allocated()
    y = x + 1
    word = torch.tensor(2, device="webgpu") if broken == "tensor" else broken
    stream().copy(x._storage, y._storage, 0, word, 4)
    z = x + 2
    with pytest.raises(KernelError, match="left out"):
        torch.webgpu.flush()
    assert (y.tolist(), z.tolist()) == ([2.0] * 3, [3.0] * 3)
    del y, z, word
    torch.webgpu.synchronize()
    assert torch.webgpu.memory_allocated() == before


def test_a_size_that_is_no_number_spoils_nothing():
    from pellucid.device.stream import Storage

    size = torch.tensor(4, device="webgpu")
    before = torch.webgpu.memory_allocated()
    for nbytes in (size, 1.5, -4, 1 << 40, True):
        with pytest.raises(TypeError, match="nbytes"):
            Storage(nbytes)
    with pytest.raises(ValueError, match="kind"):
        Storage(4, "activatoin")
    assert torch.webgpu.memory_allocated() == before
    assert size.item() == 4
