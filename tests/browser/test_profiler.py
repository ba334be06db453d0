"""`pellucid.debug.trace` and `pellucid.profiler` inside the site's Pyodide, with the browser's timestamps."""

from pytest_pyodide import run_in_pyodide


@run_in_pyodide(packages=["pellucid"])
def _dispatches_are_timed_and_named(selenium):
    import gc
    import json

    import pellucid as torch
    from pellucid.device.stream import stream
    from pellucid.op.launches import _pipelines

    def step(x):
        return (x @ x).relu() * 2 + 1

    x = torch.rand(200, 200)
    torch.webgpu.flush()
    for _ in range(30):  # windows of which each makes a part of the plan
        y = step(x)
        torch.webgpu.flush()
        del y
    while torch.webgpu.memory_stats()["compiling"]:
        torch.webgpu.synchronize()
    gc.collect()
    before = torch.webgpu.memory_stats()
    with torch.debug.trace(time=True) as t:
        y = step(x)
        torch.webgpu.flush()
        y = y.exp()
    assert [d.ops for d in t] == [("matmul", "relu", "mul", "add"), ("exp",)]
    assert all(d.seconds > 0 for d in t), t
    assert t[0].time[1] <= t[1].time[0]
    assert t[0].flops == 2 * 200**3
    first = step.__code__.co_firstlineno
    assert [line.number for line in t[0].lines] == [first + 1]
    assert t[0].lines[0].file == step.__code__.co_filename
    assert t[0].text in _pipelines
    assert "GPU time" in str(t)
    y.tolist()
    del y
    after = torch.webgpu.memory_stats()
    assert after["passes"] == before["passes"] + 2
    assert after["allocated_bytes"] == before["allocated_bytes"]
    host = stream().open()
    assert not host.stream.encoder.timestamps
    assert not {"submit", "read", "read_async", "begin_read"} & set(vars(host))

    with torch.profiler.profile() as p, torch.profiler.record_function("part"):
        step(x).sum().item()
    rows = p.key_averages()
    assert rows.total().timed == rows.total().count == len([e for e in p.events() if e.kind == "dispatch"])
    assert {"op", "span", "window", "wait", "dispatch"} == {e.kind for e in p.events()}
    p.export_chrome_trace("/tmp/trace.json")
    with open("/tmp/trace.json") as file:
        assert len(json.load(file)["traceEvents"]) > len(rows)
    found = torch.profiler.peak()
    assert found.bandwidth > 1e7
    assert found.flop_rate > 1e7
    assert f"peak: {found}" in str(rows)


def test_dispatches_are_timed_and_named(selenium):
    _dispatches_are_timed_and_named(selenium)


@run_in_pyodide(packages=["pellucid"])
async def test_where_python_cannot_block(selenium):
    import pytest
    from pyodide.code import run_js
    from pyodide.ffi import create_proxy

    import pellucid as torch
    from pellucid.device.stream import stream
    from pellucid.errors import DeviceError

    await torch.webgpu.open_async()

    def callback():
        trace = torch.debug.trace(time=True)
        with pytest.raises(DeviceError, match=r"timings.* cannot wait here.*timings_async"), trace:
            torch.ones(3)
        assert not stream().open().stream.encoder.timestamps
        with torch.debug.trace() as t:  # nothing has to be waited for
            torch.ones(3) + 1
        return len(t)

    proxy = create_proxy(callback)
    assert run_js("(f) => [0].map(() => f())[0]")(proxy) == 2
    proxy.destroy()
    async with torch.debug.trace(time=True) as t:
        torch.ones(3) + 1
    assert all(d.seconds is not None for d in t)
    async with torch.profiler.profile() as p:
        await (torch.ones(3) + 1).tolist_async()
    assert p.key_averages().total().timed == 2
    assert (await torch.profiler.peak_async()).bandwidth > 1e7


@run_in_pyodide(packages=["pellucid"])
def _windows_are_timed(selenium):
    import pellucid as torch
    from pellucid.device.stream import stream

    stream().settings["default_limits"] = True
    torch.webgpu.reset()
    with torch.debug.trace(time=True) as t:
        y = torch.ones(1000) * 2
        torch.webgpu.flush()
        y = y.exp()
    assert [d.seconds for d in t] == [None] * 3
    assert len(t.windows) == 2
    assert all(w.seconds > 0 for w in t.windows)
    assert "This device has no timestamps" in str(t)
    assert not stream().open().stream.windowTimes
    del y


def test_without_timestamps_windows_are_timed(selenium):
    _windows_are_timed(selenium)
