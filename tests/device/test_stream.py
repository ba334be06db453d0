"""The stream as Python sees it: windows, reads, limits, the debug mode."""

import asyncio
import gc
import re
import signal
import subprocess
import sys
import types
from typing import ClassVar

import pytest

import pellucid
from pellucid.device.host import STATUS_BYTES
from pellucid.device.stream import (
    FIRST_WINDOW_WORDS,
    MAX_WINDOW_WORDS,
    STATUS_BUFFER_BYTES,
    Stream,
    stream,
)
from pellucid.errors import DeviceError, OutOfMemoryError


@pytest.fixture(autouse=True)
def on_webgpu():
    with pellucid.device("webgpu"):
        yield


def mlp_step():
    x, w = pellucid.ones(4, 8), pellucid.ones(8, 3, requires_grad=True)
    ((x @ w).relu() * 2).sum().backward()


PROGRAM = """
import hashlib, pellucid
from pellucid.device.stream import stream
host, seen = stream().open(), hashlib.sha256()
submit = host.submit
def watched(words, held=False):
    seen.update(words.tobytes())
    submit(words, held)
host.submit = watched
pellucid.manual_seed(3)
w = pellucid.randn(8, 3, requires_grad=True)
for step in range(4):
    loss = ((pellucid.randn(4, 8) @ w).tanh() ** 2).mean()
    loss.backward()
    with pellucid.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    print(loss.item().hex())
print(stream().flushes, seen.hexdigest())
"""


def test_two_runs_of_a_program_have_the_same_windows_and_bits():
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert len(runs[0].splitlines()) == 5
    assert runs[0] == runs[1]


def test_a_steady_program_makes_no_pipelines_and_takes_no_more_memory():
    """P-056: pipelines, launches and buffers are found again."""
    for _ in range(3):
        mlp_step()
        stream().flush()
    before = pellucid.webgpu.memory_stats()
    for _ in range(5):
        mlp_step()
        stream().flush()
    after = pellucid.webgpu.memory_stats()
    assert after["pipelines"] == before["pipelines"]
    assert after["reserved_bytes"] == before["reserved_bytes"]


def test_a_long_window_is_submitted_by_itself():
    s = stream()
    s.flush()
    flushes = s.flushes
    x = pellucid.ones(2)
    for _ in range(MAX_WINDOW_WORDS // 4):
        x = x + 1
    assert s.flushes > flushes
    assert len(s.words) <= 2 * MAX_WINDOW_WORDS
    assert x.tolist() == [1 + MAX_WINDOW_WORDS // 4] * 2


def test_the_first_window_after_a_wait_is_short():
    """And each that fills up is twice as long: the device begins early, long programs have long windows."""
    s = stream()
    x = pellucid.ones(2)
    x.tolist()
    lengths = []
    submit = s.open().submit
    s.open().submit = lambda words, held=False: (lengths.append(len(words)), submit(words, held))
    try:
        with pellucid.webgpu.fusion(False):
            for _ in range(3 * MAX_WINDOW_WORDS // 4):
                x = x + 1
            s.flush()
            x.tolist()
            first = len(lengths)
            for _ in range(FIRST_WINDOW_WORDS // 4):
                x = x + 1
            s.flush()
    finally:
        del s.open().submit
    assert FIRST_WINDOW_WORDS <= lengths[0] < 1.1 * FIRST_WINDOW_WORDS
    assert 2 * FIRST_WINDOW_WORDS <= lengths[1] < 2.1 * FIRST_WINDOW_WORDS
    assert max(lengths) < 1.1 * MAX_WINDOW_WORDS
    assert FIRST_WINDOW_WORDS <= lengths[first] < 1.1 * FIRST_WINDOW_WORDS


def test_windows_that_end_with_a_loop_grow_too():
    """Also where the loop fits the words of a window without a rest."""
    s = stream()
    x = pellucid.ones(2)
    x = x * 2
    x.tolist()
    words = len(s.words)
    x = x * 2
    each = len(s.words) - words
    assert FIRST_WINDOW_WORDS % each == 0
    x.tolist()
    lengths = []
    s.on_submit.append(lambda records: lengths.append(len(records)))
    try:
        with pellucid.webgpu.fusion(False):
            s.period = each
            for _ in range(3 * MAX_WINDOW_WORDS // each):
                x = x * 2
            s.flush()
    finally:
        s.on_submit.clear()
        s.period = 0
    assert lengths[:3] == [FIRST_WINDOW_WORDS, 2 * FIRST_WINDOW_WORDS, 4 * FIRST_WINDOW_WORDS]
    assert max(lengths) == MAX_WINDOW_WORDS


def test_the_slots_of_a_window_do_not_depend_on_the_order_in_which_others_came_back():
    taken = []
    for order in (1, -1):
        made = [pellucid.empty(4) for _ in range(20)][::order]
        pellucid.webgpu.flush()
        while made:
            made.pop()
        pellucid.webgpu.flush()
        taken.append([t._storage.slot for t in [pellucid.empty(4) for _ in range(20)]])
        pellucid.webgpu.flush()
    assert taken[0] == taken[1] == sorted(taken[0])


def test_a_long_window_of_writes_in_place_is_submitted_by_itself():
    s = stream()
    x, y = pellucid.ones(2), pellucid.ones(2)
    s.flush()
    flushes = s.flushes
    for _ in range(MAX_WINDOW_WORDS // 4):
        x.add_(1)
        y.copy_(x)
    assert s.flushes > flushes
    assert len(s.words) <= 2 * MAX_WINDOW_WORDS
    assert y.tolist() == [1 + MAX_WINDOW_WORDS // 4] * 2


def test_writes_in_place_are_submitted_when_python_yields_to_the_event_loop():
    x = pellucid.ones(3)
    stream().flush()

    async def main():
        x.add_(1)
        assert stream().words
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not stream().words
        return await x.tolist_async()

    assert asyncio.run(main()) == [2.0, 2.0, 2.0]


def test_a_window_that_began_without_records_is_submitted_by_the_event_loop_all_the_same():
    """A direct upload needs no record; what follows it after a pause does."""

    async def main():
        stream().flush()
        x = pellucid.tensor(list(range(4096)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        y = x + 1
        assert stream().words
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not stream().words
        return await y[-1].item_async()

    assert asyncio.run(main()) == 4096


def test_tasks_that_open_the_device_at_once_open_one(monkeypatch):
    class Host:
        made: ClassVar[list] = []

        def __init__(self):
            self.closed = False
            self.made.append(self)

        def close(self):
            self.closed = True

        @classmethod
        async def open_async(cls, **settings):
            await asyncio.sleep(0)
            return cls()

    async def main(s):
        return await asyncio.gather(s.open_async(), s.open_async())

    browser = types.ModuleType("pellucid.device.browser")
    browser.BrowserHost = Host  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pellucid.device.browser", browser)
    module = sys.modules["pellucid.device.stream"]
    monkeypatch.setattr(module, "sys", types.SimpleNamespace(platform="emscripten"))
    s = Stream()
    first, second = asyncio.run(main(s))
    assert first is second is s.host
    assert [host.closed for host in Host.made] == [host is not s.host for host in Host.made]
    assert [s.words.count(n) for n in (STATUS_BUFFER_BYTES, STATUS_BYTES)] == [1, 1]  # made, and cleared


def test_tensors_that_no_kernel_reaches_are_refused():
    """Not cut off at the limit: what lies behind it would be wrong in silence."""
    s = stream()
    largest = s.open().info.limits["maxStorageBufferBindingSize"]
    if largest >= s.open().info.limits["maxBufferSize"]:
        pytest.skip("every buffer of this device can be bound as a whole")
    x = pellucid.empty(largest // 4 + 1)
    for use in (lambda: x + 1, lambda: x.sum(), lambda: x.fill_(1), lambda: x.clone()):
        with pytest.raises(DeviceError, match=f"a kernel reaches {largest} of a buffer"):
            use()
    assert pellucid.ones(1).expand(largest)[7:9].tolist() == [1.0, 1.0]


def test_sizes_that_no_record_can_say_are_refused_and_harm_nothing(monkeypatch):
    s = stream()
    monkeypatch.setitem(s.open().info.limits, "maxBufferSize", 1 << 40)
    with pytest.raises(DeviceError, match="over this device's limit"):
        pellucid.empty(5 << 30, dtype=pellucid.uint8)
    assert (pellucid.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]


def test_a_read_gives_its_values_once():
    read = (pellucid.ones(2) + 1).tolist_later()
    assert read.result() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="once"):
        read.result()


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", -1.5),
        ("float16", 0.1),
        ("bfloat16", 3.140625),
        ("int64", -(1 << 40) - 3),
        ("int32", -(1 << 31)),
        ("uint8", 200),
        ("int8", -128),
        ("bool", True),
    ],
)
def test_an_item_is_the_number_of_the_array(dtype, value, device):
    """Read by itself, it is what an array of it would hold, at any place in its buffer."""
    x = pellucid.tensor([value] * 7, dtype=getattr(pellucid, dtype), device=device)
    for one in (x[0], x[3], x[6:], x[2:3].reshape(1, 1, 1)):
        found = one.item()
        assert found == one.numpy().reshape(()).item()
        assert type(found) is type(value)
        assert asyncio.run(one.item_async()) == found


RESET = """
import pellucid
from pellucid.models.rotary import RotaryEmbedding
turn = RotaryEmbedding(8, 64, 10000.0)
x = pellucid.ones(1, 1, 3, 8)
turned = turn(x, 5).tolist()
kept = x * 2
kept.add_(1)
pellucid.webgpu.reset()
try:
    kept.tolist()
except pellucid.errors.DeviceError as error:
    print("closed" in str(error))
x = pellucid.ones(1, 1, 3, 8)
print(turn(x, 5).tolist() == turned)
x.add_(1)
print((x * 2).sum().item())
"""


def test_after_a_reset_nothing_made_before_is_used():
    found = subprocess.run([sys.executable, "-c", RESET], capture_output=True, text=True)
    assert found.stdout.split() == ["True", "True", "96.0"], found.stderr


def test_records_are_submitted_when_python_yields_to_the_event_loop():
    async def main():
        x = pellucid.ones(3) + 1
        assert stream().words
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not stream().words
        return await x.tolist_async()

    assert asyncio.run(main()) == [2.0, 2.0, 2.0]


def test_tasks_that_wait_for_reads_do_not_disturb_each_other():
    async def count(start):
        x, seen = pellucid.full((2,), float(start)), []
        for _ in range(5):
            x = x + 1
            seen.append((await x.tolist_async())[0])
        return seen

    async def main():
        return await asyncio.gather(*[count(10 * k) for k in range(4)])

    assert asyncio.run(main()) == [[10.0 * k + j for j in range(1, 6)] for k in range(4)]


def test_tasks_that_take_turns_have_each_their_default_device():
    async def within(name, first, second):
        with pellucid.device(name):
            for _ in range(first):
                await asyncio.sleep(0)
            with pellucid.device("meta"):
                await asyncio.sleep(0)
            for _ in range(second):
                await asyncio.sleep(0)
            return pellucid.get_default_device().type

    async def main():
        return await asyncio.gather(within("cpu", 0, 1), within("webgpu", 3, 3), within("cpu", 1, 0))

    assert asyncio.run(main()) == ["cpu", "webgpu", "cpu"]


def test_a_read_that_was_begun_sees_the_values_of_its_moment():
    x = pellucid.zeros(3)
    begun = x.tolist_later()
    x += 1
    assert begun.result() == [0.0, 0.0, 0.0]
    assert x.tolist() == [1.0, 1.0, 1.0]
    x.tolist_later()  # dropped without a look
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_a_bad_index_is_raised_once_by_the_next_read_and_names_the_op():
    table = pellucid.ones(3, 2)
    pellucid.embedding(table, pellucid.tensor([5]))
    with pytest.raises(IndexError, match=r"embedding: index 5 is out of range for 3 entries"):
        table.tolist()
    assert table.tolist() == [[1.0, 1.0]] * 3


def test_the_debug_mode_raises_at_the_line_of_the_cause():
    table = pellucid.ones(3, 2)
    with pellucid.debug.blocking(), pytest.raises(IndexError, match=re.escape(__file__)):
        pellucid.embedding(table, pellucid.tensor([-7]))
    assert not stream().after_op


def test_the_memory_limit_collects_cycles_before_it_refuses():
    before = pellucid.webgpu.memory_allocated()
    pellucid.webgpu.set_memory_limit(before + (3 << 20))
    try:
        cycle = [pellucid.zeros(1 << 18)]
        cycle.append(cycle)
        pellucid.zeros(1 << 18)
        del cycle
        kept = pellucid.zeros(1 << 19)  # fits only once the cycle is collected
        with pytest.raises(OutOfMemoryError, match="would pass the limit"):
            pellucid.zeros(1 << 20)
        assert kept.sum().item() == 0.0
    finally:
        pellucid.webgpu.set_memory_limit(None)
    del kept
    gc.collect()
    assert pellucid.webgpu.memory_allocated() == before


def test_what_makes_no_storage_runs_past_the_memory_limit():
    x = pellucid.zeros(1000)
    pellucid.webgpu.synchronize()
    pellucid.webgpu.set_memory_limit(100)
    try:
        x.add_(1)
        x[0] = 5
        assert x.tolist() == [5.0] + [1.0] * 999
        with pytest.raises(OutOfMemoryError, match="would pass the limit of 100"):
            x + 1
    finally:
        pellucid.webgpu.set_memory_limit(None)


def test_accounting_by_kind():
    """P-100: what the device's memory is used for."""
    from pellucid import nn

    before = pellucid.webgpu.memory_stats()
    layer = nn.Linear(16, 16, bias=False)
    stats = pellucid.webgpu.memory_stats()
    assert stats["parameter_bytes"] - before["parameter_bytes"] == 16 * 16 * 4
    del layer
    assert pellucid.webgpu.memory_stats()["parameter_bytes"] == before["parameter_bytes"]


def test_an_unknown_device_is_refused():
    with pytest.raises(DeviceError, match="There are 'webgpu', 'cpu' and 'meta'"):
        pellucid.zeros(1, device="cuda")


def test_a_record_that_fails_is_left_out_and_the_rest_runs(monkeypatch):
    s = stream()
    s.flush()
    big = pellucid.zeros(1 << 19)
    s.flush()
    monkeypatch.setitem(s.open().info.limits, "maxStorageBufferBindingSize", 1 << 20)
    kept = pellucid.full((3,), 2.0)
    big[5:9].fill_(1.0)  # four elements of a buffer that this device may not bind
    after = kept * 3
    with pytest.raises(DeviceError, match="binds at most 1048576"):
        s.flush()
    assert after.tolist() == [6.0, 6.0, 6.0]


def test_ctrl_c_in_the_middle_of_a_window_loses_nothing():
    program = """
import os, signal, pellucid
from pellucid.device.stream import stream
from pellucid.device import native_window
run = native_window.NativeWindow._run
def interrupted(self, launch, words):
    os.kill(os.getpid(), signal.SIGINT)
    run(self, launch, words)
native_window.NativeWindow._run = interrupted
x = [pellucid.ones(2) + k for k in range(5)]
try:
    stream().flush()
except KeyboardInterrupt:
    print("interrupted")
native_window.NativeWindow._run = run
print([v.tolist()[0] for v in x])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["interrupted", "[1.0, 2.0, 3.0, 4.0, 5.0]"], done.stderr


def test_what_reads_a_tensor_while_a_window_is_handed_over_is_refused(monkeypatch):
    """As the repr of the task of `asyncio.run` does, which `signal.getsignal` asks for in Python 3.11."""
    x = pellucid.zeros(3)
    stream().flush()
    x += 1
    getsignal = signal.getsignal

    def reading(number):
        monkeypatch.undo()
        with pytest.raises(DeviceError, match="while a window is handed over"):
            x.tolist()
        refused.append(number)
        return getsignal(number)

    refused = []
    monkeypatch.setattr(signal, "getsignal", reading)
    assert x.tolist() == [1, 1, 1]
    assert refused == [signal.SIGINT]


def test_a_tensor_that_asyncio_run_returns():
    x = pellucid.zeros(3)

    async def add():
        x.add_(1)
        return x

    for k in range(1, 6):
        assert asyncio.run(add()).tolist() == [k] * 3


def test_reads_are_given_up_while_others_are(monkeypatch):
    """A finalizer may run in between, and read itself."""
    s, x = stream(), pellucid.ones(4)
    host = s.open()
    dropped, drop = [], host.drop_read

    def drop_twice(ticket):
        dropped.append(ticket)
        if len(dropped) == 1:
            s.begin_read(x._storage, 0, 4)
            assert pellucid.zeros(1).item() == 0
        drop(ticket)

    monkeypatch.setattr(host, "drop_read", drop_twice)
    for _ in range(3):
        s.begin_read(x._storage, 0, 4)
    assert x.sum().item() == 4
    assert not s.given_up
