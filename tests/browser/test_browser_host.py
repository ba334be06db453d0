"""`BrowserHost` inside the site's Pyodide: the contract of pellucid/device/host.py over web/runtime."""

from pytest_pyodide import run_in_pyodide

STEP = """
struct Params { n: u32, m: u32, c: u32 }
var<immediate> params: Params;
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < params.n) { x[id.x] = x[id.x] * params.m + params.c; }
}
"""


@run_in_pyodide(packages=["pellucid"])
def _windows_uploads_and_reads(selenium, source):
    from array import array

    from pellucid.device.browser import BrowserHost
    from pellucid.device.commands import ALLOC, FREE, RUN, UPLOAD

    host = BrowserHost()
    try:
        assert (host.info.host, host.info.architecture, host.info.immediates) == (
            "browser",
            "swiftshader",
            64,
        )
        assert host.info.limits["maxComputeWorkgroupsPerDimension"] == 65535
        assert "subgroups" in host.info.features
        step = host.pipeline(source, "w", 12, True, "step")
        launch = host.launch(step, array("I", [100, 0, 0]).tobytes(), (1, 2), 2, 1, 1)
        host.submit(array("I", [0 << 3 | ALLOC, 64, 5 << 3 | ALLOC, 400]))
        host.submit(array("I", [5 << 3 | UPLOAD, 0, 400, *range(100), launch << 3 | RUN, 5, 2, 7]))
        data, status = host.read(host.begin_read(5, 0, 400))
        assert array("I", data.tobytes()).tolist() == [2 * i + 7 for i in range(100)]
        assert status == (0,) * 16
        # Two launches of which the second word is 1 and 0 in turns: 1, 0, 1.
        turns = [host.launch(step, array("I", [n, 5, 0]).tobytes(), (2,), 2, 1, 1, 1) for n in (100, 99)]
        runs = [turns[0] << 3 | RUN, 5, 3, turns[1] << 3 | RUN, 5, 4, turns[1] << 3 | RUN, 5, 6]
        host.submit(array("I", runs))
        data, _ = host.read(host.begin_read(5, 0, 400))
        assert array("I", data.tobytes()).tolist() == [10] * 99 + [2 * 99 + 7 + 3]
        host.write(6, 10, 0, memoryview(b"0123456789"))
        assert host.read(host.begin_read(6, 3, 6))[0].tobytes() == b"345678"
        assert host.read(host.begin_read(6, 0, 0))[0].nbytes == 0
        large = bytes(range(256)) * (20 << 12)
        host.write(7, len(large), 0, large)
        assert host.read(host.begin_read(7, 0, len(large)))[0] == large
        host.submit(array("I", [5 << 3 | FREE, 6 << 3 | FREE, 7 << 3 | FREE]))
        assert host.stats()["live_buffers"] == 1  # the status buffer
        host.trim()
        assert host.stats()["pooled_bytes"] == 0
        assert host.failure() is None
    finally:
        host.close()


def test_windows_uploads_and_reads(selenium):
    _windows_uploads_and_reads(selenium, STEP)


@run_in_pyodide(packages=["pellucid"])
def _errors_are_typed(selenium, source):
    from array import array

    import pytest

    from pellucid.device.browser import BrowserHost
    from pellucid.device.commands import RUN
    from pellucid.errors import DeviceError

    host = BrowserHost(default_limits=True)
    assert (host.info.immediates, host.info.features) == (0, frozenset())
    with pytest.raises(DeviceError, match="step: 12 bytes of parameters exceed the limit of 0"):
        host.pipeline(source, "w", 12, True, "step")
    host.pipeline("fn main(", "w", 0, False, "norm/rows")
    host.synchronize()
    assert host.failure().startswith("validation: norm/rows: line 1:")
    with pytest.raises(DeviceError, match="launch 77 was never registered"):
        host.submit(array("I", [77 << 3 | RUN, 1]))
    with pytest.raises(DeviceError, match="slot 9 does not exist"):
        host.read(host.begin_read(9, 0, 4))
    with pytest.raises(DeviceError, match="exceeds this device's limit maxBufferSize"):
        host.write(10, 1 << 40, 0, b"0123")
    host.write(11, 4, 0, b"0123")
    host.stream.device.destroy()
    with pytest.raises(DeviceError, match="lost: "):
        host.read(host.begin_read(11, 0, 4))
    assert host.failure().startswith("lost: ")
    host.close()
    with pytest.raises(DeviceError, match="closed"):
        host.read(host.begin_read(11, 0, 4))


def test_errors_are_typed(selenium):
    _errors_are_typed(selenium, STEP)


@run_in_pyodide(packages=["pellucid"])
async def test_tasks_read_while_others_wait(selenium):
    import asyncio
    from array import array

    from pellucid.device.browser import BrowserHost
    from pellucid.device.commands import UPLOAD

    host = await BrowserHost.open_async()
    try:
        for slot in range(1, 6):
            host.write(slot, 4, 0, bytes([slot, 0, 0, 0]))

        async def read(slot):
            return (await host.read_async(host.begin_read(slot, 0, 4)))[0][0]

        reads = [asyncio.ensure_future(read(slot)) for slot in range(1, 6)]
        await asyncio.sleep(0)
        assert host.read(host.begin_read(3, 0, 4))[0][0] == 3  # blocks while the others are in flight
        assert await asyncio.gather(*reads) == [1, 2, 3, 4, 5]

        given_up = asyncio.ensure_future(read(1))
        await asyncio.sleep(0)
        given_up.cancel()
        host.submit(array("I", [1 << 3 | UPLOAD, 0, 4, 9]))
        assert await read(1) == 9
        await host.synchronize_async()
        assert host.stream.readback.reads.size == 0  # the read that was given up holds nothing
    finally:
        host.close()


@run_in_pyodide(packages=["pellucid"])
def test_blocking_does_not_pass_through_the_event_loop(selenium):
    import asyncio
    from array import array

    import pyodide_js
    import pytest
    from pyodide.code import run_js

    from pellucid.device.browser import BrowserHost
    from pellucid.errors import DeviceError

    calls = []
    loop = type(asyncio.get_running_loop())
    call_soon = loop.call_soon

    def count(self, *arguments, **named):
        calls.append(arguments)
        return call_soon(self, *arguments, **named)

    def reads(host):
        host.write(1, 4, 0, array("I", [7]))
        host.synchronize()
        calls.clear()
        assert [host.read(host.begin_read(1, 0, 4))[0][0] for _ in range(20)] == [7] * 20
        return len(calls)

    loop.call_soon = count
    try:
        # One that takes more than 50 ms is left to the loop, which a busy machine may bring about.
        host = BrowserHost()
        assert min(reads(host) for _ in range(5)) == 0
        host.stream.device.destroy()
        with pytest.raises(DeviceError, match="lost: "):
            host.read(host.begin_read(1, 0, 4))
        host.close()
        # A Pyodide that does not have what it takes.
        waiting = "Symbol.for('pellucid.waiting')"
        run_js(
            "(heap) => { heap.kept = heap._JsvPromise_Syncify; delete heap._JsvPromise_Syncify;"
            f" delete heap[{waiting}]; }}"
        )(pyodide_js._module)
        host = BrowserHost()
        assert reads(host) > 0
        host.close()
    finally:
        loop.call_soon = call_soon
        run_js(f"(heap) => {{ heap._JsvPromise_Syncify = heap.kept; delete heap[{waiting}]; }}")(
            pyodide_js._module
        )


@run_in_pyodide(packages=["pellucid"])
async def test_tasks_that_block_for_long_do_not_mix_up_what_they_wait_for(selenium):
    import asyncio

    from pyodide.code import run_js

    from pellucid.device.browser import BrowserHost

    host = await BrowserHost.open_async()
    for slot in (1, 2):
        host.write(slot, 4, 0, bytes([slot, 0, 0, 0]))
    # The first read arrives when the others have, longer than a wait lasts that nothing interrupts.
    run_js(
        """(stream) => {
            const { arrival } = stream;
            const late = new Promise((resolve) => {
                stream.release = resolve;
                setTimeout(resolve, 20_000);
            });
            stream.arrival = (ticket) => {
                const arrived = arrival.call(stream, ticket);
                return ticket === 1 ? late.then(() => arrived) : arrived;
            };
        }"""
    )(host.stream)
    host._arrival = host.stream.arrival
    order = []

    async def read(slot, times):
        for _ in range(times):
            assert host.read(host.begin_read(slot, 0, 4))[0][0] == slot
            await asyncio.sleep(0.02)
        order.append(slot)
        if slot == 2:
            host.stream.release()

    await asyncio.gather(read(1, 1), read(2, 5))
    assert order == [2, 1]
    assert host.stream.readback.reads.size == 0
    host.close()


@run_in_pyodide(packages=["pellucid"])
async def test_a_task_that_is_cancelled_while_it_reads_ends(selenium):
    import asyncio

    import pytest

    from pellucid.device.browser import BrowserHost

    host = await BrowserHost.open_async()
    host.write(1, 4, 0, b"1234")
    reads = 0

    async def forever():
        nonlocal reads
        try:
            while True:
                host.read(host.begin_read(1, 0, 4))
                reads += 1
        finally:
            cleaned.append(bytes(host.read(host.begin_read(1, 0, 4))[0]))

    cleaned = []
    task = asyncio.ensure_future(forever())
    while reads < 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [b"1234"]
    await host.synchronize_async()
    assert host.stream.readback.reads.size == 0
    host.close()


@run_in_pyodide(packages=["pellucid"])
async def test_every_read_that_a_lost_or_closed_device_ends_says_so(selenium):
    import asyncio

    import pytest

    from pellucid.device.browser import BrowserHost
    from pellucid.errors import DeviceError

    for reason in ("lost", "closed"):
        host = await BrowserHost.open_async()
        host.write(1, 4, 0, b"1234")
        host.synchronize()
        begun = [host.begin_read(1, 0, 4) for _ in range(3)]

        async def blocked(reason, wait, *arguments):
            with pytest.raises(DeviceError, match=f"{reason}: "):
                wait(*arguments)

        async def end(host, reason):
            host.close() if reason == "closed" else host.stream.device.destroy()

        await asyncio.gather(
            *[blocked(reason, host.read, host.begin_read(1, 0, 4)) for _ in range(3)],
            *[blocked(reason, host.synchronize) for _ in range(2)],
            end(host, reason),
        )
        await asyncio.sleep(0.2)  # those that were begun fail before anybody waits for them
        await blocked(reason, host.read, begun[0])
        with pytest.raises(DeviceError, match=f"{reason}: "):
            await host.read_async(begun[1])
        host.drop_read(begun[2])
        await asyncio.sleep(0)
        assert host.stream.readback.reads.size == 0
        host.close()


@run_in_pyodide(packages=["pellucid"])
async def test_tasks_that_block_in_turns_do_not_use_up_the_stack(selenium):
    import asyncio
    from contextvars import ContextVar

    import pyodide_js
    from pyodide.code import run_js
    from pyodide.ffi import create_proxy

    from pellucid.device.browser import BrowserHost

    # Outside of tasks a variable belongs to the thread, of which there is one.
    from_timer = run_js("(f) => new Promise((resolve) => setTimeout(() => resolve(f()), 5))")
    variable = ContextVar("variable", default=0)
    await from_timer(create_proxy(lambda: variable.set(5) and None))
    host = await BrowserHost.open_async()
    await asyncio.sleep(0.05)
    assert await from_timer(create_proxy(variable.get)) == 5
    host.write(1, 4, 0, b"1234")

    async def read():
        return bytes(host.read(host.begin_read(1, 0, 4))[0])

    before = pyodide_js._module.stackSave()
    for _ in range(2000):
        assert await asyncio.gather(read(), read()) == [b"1234"] * 2
    assert before - pyodide_js._module.stackSave() < 1.5 * (1 << 20)
    assert len(asyncio.all_tasks()) == 1
    host.close()


@run_in_pyodide(packages=["pellucid"])
def test_a_read_in_a_synchronous_callback_names_the_twin(selenium):
    import pytest
    from pyodide.code import run_js
    from pyodide.ffi import create_proxy

    from pellucid.device.browser import BrowserHost
    from pellucid.errors import DeviceError

    host = BrowserHost()
    host.write(1, 4, 0, b"\1\0\0\0")

    def callback():
        for blocking in (lambda: host.read(host.begin_read(1, 0, 4)), host.synchronize, BrowserHost):
            with pytest.raises(DeviceError, match=r"cannot wait here.*_async"):
                blocking()
        return 5

    proxy = create_proxy(callback)
    assert run_js("(f) => [0].map(() => f())[0]")(proxy) == 5
    proxy.destroy()
    assert host.read(host.begin_read(1, 0, 4))[0][0] == 1
    host.close()


@run_in_pyodide(packages=["pellucid"])
def test_without_webgpu_the_error_says_what_to_do(selenium):
    import pytest
    from pyodide.code import run_js

    from pellucid.device.browser import BrowserHost
    from pellucid.errors import DeviceError

    run_js("Object.defineProperty(navigator, 'gpu', { value: undefined, configurable: true })")
    try:
        with pytest.raises(DeviceError, match=r"no WebGPU.*set_default_device\('cpu'\)"):
            BrowserHost()
    finally:
        run_js("delete navigator.gpu")
    run_js(
        "GPU.prototype.kept = GPU.prototype.requestAdapter;GPU.prototype.requestAdapter = async () => null; 0"
    )
    try:
        with pytest.raises(DeviceError, match=r"no adapter.*set_default_device\('cpu'\)"):
            BrowserHost()
    finally:
        run_js("GPU.prototype.requestAdapter = GPU.prototype.kept; delete GPU.prototype.kept")
    BrowserHost().close()


@run_in_pyodide(packages=["pellucid"])
def _nothing_is_kept(selenium, source):
    import gc
    from array import array

    import pyodide_js

    from pellucid.device.browser import BrowserHost
    from pellucid.device.commands import ALLOC, FREE, RUN

    host = BrowserHost()
    step = host.pipeline(source, "w", 12, True, "step")
    launch = host.launch(step, array("I", [1, 1, 1]).tobytes(), (), 1, 1, 1)
    window = array("I", [1 << 3 | ALLOC, 4, launch << 3 | RUN, 1, 2 << 3 | ALLOC, 4, launch << 3 | RUN, 2])
    window += array("I", [1 << 3 | FREE])
    again = array("I", [2 << 3 | FREE])

    def round_of(count):
        for _ in range(count):
            host.submit(window)
            host.write(3, 4, 0, b"abcd")
            host.read(host.begin_read(2, 0, 4))
            host.submit(again)
        gc.collect()
        kept = host.stats()
        counts = kept["live_buffers"], kept["reserved_bytes"], kept["cached_bind_groups"]
        return len(gc.get_objects()), pyodide_js._module.HEAPU8.length, *counts

    before = round_of(100)
    after = round_of(2000)
    assert after[1:] == before[1:]
    assert after[0] - before[0] < 20
    host.close()


def test_nothing_is_kept(selenium):
    _nothing_is_kept(selenium, STEP)


@run_in_pyodide(packages=["pellucid"])
async def test_a_page_that_opens_many_devices_imports_its_modules_once(selenium):
    from pyodide.code import run_js

    import pellucid

    # The browser keeps every module, and what is made for it, as long as the page.
    run_js(
        "globalThis.made = 0; URL.make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => (made++, URL.make(blob))"
    )
    counts = []
    for _ in range(3):
        await pellucid.webgpu.open_async()
        assert await (pellucid.ones(2) + 1).tolist_async() == [2.0, 2.0]
        pellucid.webgpu.reset()
        counts.append(run_js("made"))
    assert counts[0] == counts[1] == counts[2] > 10


@run_in_pyodide(packages=["pellucid", "pytest"])
def _memory_that_is_not_there(selenium):
    import pytest

    import pellucid as torch

    # The largest buffer that the adapter says it makes, and has no memory for.
    size = torch.webgpu.get_device_properties().limits["maxBufferSize"] // 4
    tries = [
        lambda: torch.ones(size).sum().item(),
        lambda: (torch.ones(size) + 1).numpy(),
        lambda: torch.zeros(size).copy_(torch.ones(size)).flip(0)[5].item(),
    ]
    for work in tries:
        with pytest.raises(torch.errors.OutOfMemoryError, match="out of memory"):
            work()
        # What the buffer was used in is refused, too, and told to nobody.
        for _ in range(3):
            assert (torch.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]


def test_memory_that_is_not_there(selenium):
    _memory_that_is_not_there(selenium)


@run_in_pyodide(packages=["pellucid", "pytest"])
def test_steps_while_a_device_opens(selenium):
    import pytest

    from pellucid.device.browser import BrowserHost

    done = []
    host = BrowserHost(meanwhile=[lambda k=k: done.append(k) for k in range(100_000)])
    assert 1 <= len(done) < 100_000  # as many as there was time for
    assert done == [*range(len(done))]
    host.close()

    def fail():
        raise ValueError("what a step says")

    with pytest.raises(ValueError, match="what a step says"):
        BrowserHost(meanwhile=[fail])
