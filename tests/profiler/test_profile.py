"""`pellucid.profiler`: sums, tables, named parts, the file for Chrome, the peak."""

import asyncio
import json
import re
import time
from xml.etree import ElementTree

import pytest

import pellucid as torch
from checked import unchecked
from pellucid.device.native import NativeHost
from pellucid.device.stream import stream
from pellucid.errors import DeviceError
from pellucid.op.kernel.source import load
from pellucid.op.launches import RegisteredLaunch, register
from pellucid.profiler import ProfilerActivity, peak, peak_async, profile, record_function
from pellucid.profiler.lines import Line
from pellucid.profiler.recording import Dispatch, OpCall, Recording, Window
from pellucid.profiler.text import about_times, rounding, shortened, table, with_unit

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def alone():
    """Every launch by itself."""
    with torch.webgpu.fusion(False):
        yield


def row_of(rows, key):
    (found,) = [row for row in rows if row.key == key]
    return found


@pytest.mark.usefixtures("timestamps")
def test_rows_are_sums_by_op_and_kernel():
    x, w = torch.rand(100, 100), torch.rand(100, 100)
    with profile() as p:
        for _ in range(3):
            y = x @ w
        y = (y * 2).sum()
        y.item()
    rows = p.key_averages()
    product, mul = row_of(rows, "matmul"), row_of(rows, "mul")
    assert (product.count, mul.count) == (3, 1)
    assert product.kernel.startswith("matmul/")
    assert product.bytes == 3 * 3 * 40_000
    assert product.flops == 3 * 2 * 100**3
    events = [e for e in p.events() if e.kind == "dispatch" and e.name == "matmul"]
    assert product.device_time_total == pytest.approx(sum(e.duration for e in events))
    assert product.device_time == pytest.approx(product.device_time_total / 3)
    assert product.bandwidth == pytest.approx(product.bytes / (product.device_time_total / 1e6))
    assert product.flop_rate == pytest.approx(product.flops / (product.device_time_total / 1e6))
    assert rows.total().count == sum(row.count for row in rows)
    assert rows.total().device_time_total == pytest.approx(sum(row.device_time_total for row in rows))
    assert [row.device_time_total for row in rows] == sorted(
        (row.device_time_total for row in rows), reverse=True
    )


@unchecked("it takes time of its own")
def test_python_time_is_that_of_the_program_without_submits_and_waits(monkeypatch):
    x = torch.rand(600, 600)
    warm = [x @ x, x + 1, x * 2, x - 1]  # kernels are compiled before
    torch.webgpu.flush()
    read = NativeHost.read

    def slow_read(host, ticket):  # a fast device keeps nobody waiting
        time.sleep(0.02)
        return read(host, ticket)

    monkeypatch.setattr(NativeHost, "read", slow_read)
    with profile([ProfilerActivity.CPU]) as p:
        y = x + 1
        time.sleep(0.05)
        y = x * 2
        (x @ x).sum().item()
        y = x - 1
    rows = p.key_averages()
    assert row_of(rows, "mul").python_time_total >= 50_000
    assert row_of(rows, "add").python_time_total < 50_000
    # The op after a read has nothing of the wait.
    waited = sum(e.duration for e in p.events() if e.kind in ("wait", "window"))
    assert waited > 10_000
    assert row_of(rows, "sub").python_time_total < waited
    total = rows.total().python_time_total
    span = p.events()
    assert total <= max(e.start + e.duration for e in span) - waited + 1e3
    del y, warm


def test_launches_of_one_call_share_its_time():
    x = torch.rand(3, 5000)
    with profile([ProfilerActivity.CPU]) as p:
        x.var()
        x.sum()
    rows = p.key_averages()
    calls = [e.source.seconds for e in p.events() if e.kind == "op"]
    assert sum(row.python_time_total for row in rows) == pytest.approx(sum(calls) * 1e6)


@pytest.mark.usefixtures("timestamps")
def test_only_python_leaves_the_passes_whole():
    x = torch.ones(100)
    torch.webgpu.flush()
    before = torch.webgpu.memory_stats()["passes"]
    with profile(activities=[ProfilerActivity.CPU]) as p:
        y = x + 1
        y = y.exp()
    assert torch.webgpu.memory_stats()["passes"] == before + 1
    assert not [e for e in p.events() if e.kind == "dispatch"]
    assert "GPU" not in p.key_averages().table()
    with profile(activities=[ProfilerActivity.WEBGPU]) as p:
        y = x + 1
        y = y.exp()
    assert torch.webgpu.memory_stats()["passes"] == before + 3
    assert "GPU total" in p.key_averages().table()


def test_named_parts_hold_what_ran_in_them():
    x = torch.rand(50, 50)

    @record_function("inner")
    def product(y):
        return y @ y

    with record_function("before"), profile() as p:
        with record_function("outer"):
            y = product(x)
            y = y + 1
        y = y.exp()
    rows = p.key_averages()
    outer, inner = row_of(rows, "outer"), row_of(rows, "inner")
    assert [row.key for row in rows if row.is_span] == ["outer", "inner"]
    ops = {key: row_of(rows, key) for key in ("matmul", "add", "exp")}
    assert inner.device_time_total == pytest.approx(ops["matmul"].device_time_total)
    assert outer.device_time_total == pytest.approx(
        ops["matmul"].device_time_total + ops["add"].device_time_total
    )
    assert outer.flops == inner.flops == ops["matmul"].flops
    assert outer.python_time_total > inner.python_time_total > ops["matmul"].python_time_total
    assert rows.total().count == 3


def test_a_dispatch_of_two_parts_belongs_to_neither():
    x = torch.rand(50, 50)
    torch.webgpu.flush()

    def run():
        with record_function("first"):
            y = x * 2
        with record_function("second"):
            y = y + 1
        return y

    with torch.webgpu.fusion(True):
        for _ in range(2):
            y = run()
            torch.webgpu.flush()
            del y
        with profile() as p, record_function("whole"):
            y = run()
            torch.webgpu.flush()
    rows = p.key_averages()
    assert row_of(rows, "mul + add").count == 1
    assert row_of(rows, "first").bytes == row_of(rows, "second").bytes == 0
    assert row_of(rows, "whole").bytes == 20_000
    del y


@unchecked("an eager call stands before each replay, and is traced")
def test_replays_belong_to_the_parts_they_run_in():
    x = torch.rand(50, 50)
    compiled = torch.compile(lambda x: x * 2 + 1)
    with torch.webgpu.fusion(True):
        for _ in range(3):
            compiled(x)
        with profile() as p, record_function("part"):
            compiled(x)
    rows = p.key_averages()
    (row,) = [row for row in rows if not row.is_span]
    assert (row.key, row.count) == ("mul + add", 1)
    assert row_of(rows, "part").bytes == row.bytes == 20_000
    assert row.python_time_total > 0
    assert [e.name for e in p.events() if e.kind == "op"] == ["replay"]


def test_named_parts_of_tasks_do_not_mix():
    x = torch.ones(10)

    @record_function("adding")
    async def adding():
        for _ in range(4):
            x + 1
            await asyncio.sleep(0)

    @record_function("raising")
    async def raising():
        for _ in range(4):
            x.exp()
            await asyncio.sleep(0)

    async def both():
        async with profile() as p:
            await asyncio.gather(adding(), raising())
        return p

    p = asyncio.run(both())
    found = {(e.name, *[s.name for s in e.source.spans]) for e in p.events() if e.kind == "op"}
    assert found == {("add", "adding"), ("exp", "raising")}
    assert row_of(p.key_averages(), "adding").bytes == 4 * 80


def test_rows_by_shape():
    with profile(record_shapes=True) as p:
        torch.ones(3, 4) + 1
        torch.ones(5) + 1
    (both,) = [row for row in p.key_averages() if row.key == "add"]
    assert both.count == 2
    rows = [row for row in p.key_averages(group_by_input_shape=True) if row.key == "add"]
    assert {row.input_shapes for row in rows} == {((3, 4), (3, 4)), ((5,), (5,))}
    assert "3x4, 3x4" in p.key_averages(group_by_input_shape=True).table()
    with profile() as p:
        torch.ones(3)
    assert "shapes" not in p.key_averages().table()
    with pytest.raises(ValueError, match="shapes, which were not recorded"):
        p.key_averages(group_by_input_shape=True)


@pytest.mark.usefixtures("timestamps")
def test_the_table_is_sorted_and_limited():
    x = torch.rand(300, 300)
    with profile() as p:
        for _ in range(5):
            x + 1
        x @ x
    rows = p.key_averages()

    def first(**options):
        lines = rows.table(**options).splitlines()
        return lines[next(k for k, line in enumerate(lines) if line.startswith("---")) + 1].split()[0]

    times = {row.key: row.device_time_total for row in rows}
    assert set(times) == {"add", "matmul"}
    assert first() == first(sort_by="device_time_total") == max(times, key=lambda name: times[name])
    assert first(sort_by="count") == "add"
    assert first(sort_by="flops") == "matmul"
    assert first(sort_by="bytes") == "add"
    assert "... and 1 more\n" in rows.table(row_limit=1)
    assert " more\n" not in rows.table(row_limit=-1)
    assert "matmul" not in rows.table(sort_by="count", max_name_column_width=5).split("matmul/")[0]
    with pytest.raises(ValueError, match="sort_by is 'size'; it must be one of device_time_total"):
        rows.table(sort_by="size")
    assert str(rows) == rows.table()
    assert "6 dispatches in 1 windows" in str(rows)


@pytest.mark.usefixtures("timestamps")
@unchecked("it takes time of its own")
def test_the_file_for_chrome(tmp_path):
    x = torch.rand(200, 200)
    with profile() as p:
        with record_function("part"):
            y = x @ x
        y.sum().item()
    path = tmp_path / "trace.json"
    p.export_chrome_trace(path)
    whole = json.loads(path.read_text())
    named = {e["tid"]: e["args"]["name"] for e in whole["traceEvents"] if e["name"] == "thread_name"}
    assert set(named.values()) == {"Python: ops", "Python: named parts", "submissions and waits", "GPU"}
    complete = [e for e in whole["traceEvents"] if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and {"name", "ts", "pid", "tid", "args"} <= set(e) for e in complete)
    tracks = {}
    for e in complete:
        tracks.setdefault(named[e["tid"]], []).append(e)
    assert [e["name"] for e in tracks["Python: ops"]] == ["matmul", "sum"]
    assert [e["name"] for e in tracks["Python: named parts"]] == ["part"]
    product = tracks["GPU"][0]
    assert product["name"] == "matmul"
    assert product["args"]["flops"] == 2 * 200**3
    assert re.fullmatch(rf"{re.escape(__file__)}:\d+", product["args"]["lines"][0])
    # On a track nothing overlaps, and the GPU begins nothing before it was submitted, by its clock's ticks.
    for name in ("Python: ops", "GPU", "submissions and waits"):
        for a, b in zip(tracks[name], tracks[name][1:], strict=False):
            assert a["ts"] + a["dur"] <= b["ts"] + 1e-3
    submits = [e for e in tracks["submissions and waits"] if e["cat"] == "window"]
    assert product["ts"] >= submits[0]["ts"] - 1
    assert "clock is its own" in whole["otherData"]["clocks"]


@pytest.mark.usefixtures("timestamps")
def test_events_tell_their_sources():
    with profile() as p, record_function("part"):
        torch.ones(10).exp().tolist()
    found = {e.kind: e for e in p.events()}
    assert set(found) == {"op", "span", "window", "wait", "dispatch"}
    assert isinstance(found["op"].source, OpCall)
    assert isinstance(found["dispatch"].source, Dispatch)
    assert isinstance(found["window"].source, Window)
    starts = [e.start for e in p.events()]
    assert starts == sorted(starts)


def test_a_profile_is_shown_and_drawn():
    p = profile()
    assert repr(p) == "<profile: nothing was recorded>"
    with p, record_function("a < b"):
        assert (repr(p), p._repr_svg_()) == ("<profile: recording>", None)
        torch.ones(10).exp().tolist()
    assert repr(p) == p.key_averages().table()
    drawing = ElementTree.fromstring(p._repr_svg_())
    boxes = [e for e in drawing.iter() if e.tag.endswith("rect")]
    found = p.events()
    assert len(boxes) == len(found)
    titles = {box[0].text.rpartition(": ")[0]: box for box in boxes}
    assert set(titles) == {e.name for e in found}
    # Where something is, and how wide, is when it was, and for how long.
    part, window = (next(e for e in found if e.kind == kind) for kind in ("span", "window"))
    x, width = (float(titles["a < b"].get(key)) for key in ("x", "width"))
    at = (float(titles[window.name].get("x")) - x) / width
    assert at == pytest.approx((window.start - part.start) / part.duration, abs=1e-3)


def test_wrong_activities_are_refused():
    with pytest.raises(ValueError, match=r"activities are \['cuda'\]; give some of"):
        profile(activities=["cuda"])
    with pytest.raises(ValueError, match="activities are empty"):
        profile(activities=[])


def test_a_profile_and_a_trace_exclude_each_other():
    with profile() as p:
        with pytest.raises(DeviceError, match="name parts inside it"), torch.debug.trace():
            pass
        with pytest.raises(DeviceError, match="peak\\(\\) cannot measure while"):
            asyncio.run(peak_async())
        torch.ones(3)
    assert row_of(p.key_averages(), "full").count == 1
    with pytest.raises(DeviceError, match="records once"), p:
        pass
    with record_function("alone"):  # a name without a profile costs nothing and does nothing
        torch.ones(3)


@unchecked("the launch is none of an op's")
@pytest.mark.parametrize("groups", [2, 5, 70_001])
def test_the_kernel_of_the_peak_copies_everything(groups):
    """Also where its grid is folded, and with more workgroups than one round has."""
    count = 2048
    x, out = torch.rand(4 * count), torch.zeros(4 * count)
    node = RegisteredLaunch(
        "peak", load("profiler/copy"), {"count": count, "groups": groups}, (), (None, None), groups
    )
    register(node)
    stream().words += (node.head, x._storage.slot, out._storage.slot)
    assert out.tolist() == x.tolist()


@pytest.mark.usefixtures("timestamps")
def test_the_peak_is_measured_once_and_shown():
    torch.webgpu.flush()
    torch.webgpu.empty_cache()
    before = torch.webgpu.memory_stats()
    found = peak()
    after = torch.webgpu.memory_stats()
    assert after["reserved_bytes"] <= before["reserved_bytes"]
    assert after["live_buffers"] == before["live_buffers"]
    assert stream().open().timestamps is None
    assert found.bandwidth > 1e8
    assert found.flop_rate > 1e8
    assert peak() is found
    assert asyncio.run(peak_async()) is found
    assert torch.webgpu.memory_stats()["dispatches"] == after["dispatches"]
    x = torch.rand(200, 200)
    with profile() as p:
        x @ x
    (row,) = p.key_averages()
    nearest, what = row.share_of(found)
    shares = {"bytes": row.bandwidth / found.bandwidth, "flops": row.flop_rate / found.flop_rate}
    assert what == max(shares, key=lambda name: shares[name])
    assert nearest == pytest.approx(shares[what])
    assert f"{nearest:.1%} {what}" in str(p.key_averages())
    assert f"peak: {found}" in str(p.key_averages())


def recorded(*times):
    """A recording of dispatches with these times."""
    made = Recording(asked=True, has_timestamps=True)
    window = Window(0, 0.0, 0.0)
    made.windows.append(window)
    for begin_and_end in times:
        window.dispatches.append(Dispatch(window, None, (), (), 0, begin_and_end))
    return made


def test_rounded_times_are_told():
    step = 1 << 16
    rounded = recorded((5 * step, 7 * step), (7 * step, 7 * step), (9 * step, 14 * step))
    assert rounding(rounded.dispatches) == step
    assert "rounds them to 65.5 us" in " ".join(about_times(rounded))
    exact = recorded((5 * step, 7 * step + 32), (7 * step, 7 * step))
    assert rounding(exact.dispatches) == 0
    assert "rounds" not in " ".join(about_times(exact))
    assert rounding([]) == 0
    assert "1 of 2 dispatches have no time" in " ".join(about_times(recorded((1, 2), None)))
    # A clock that went back measures nothing.
    assert recorded((20, 10)).dispatches[0].seconds == 0


def test_numbers_and_tables():
    assert [with_unit(v, "B") for v in (0, 1, 999, 1000, 12_345_678, 4e15)] == [
        "0 B", "1 B", "999 B", "1 kB", "12.3 MB", "4000 TB",
    ]  # fmt: skip
    assert [with_unit(v, "s") for v in (1.5, 0.0123, 4e-9, 7.25e-5)] == [
        "1.5 s",
        "12.3 ms",
        "4 ns",
        "72.5 us",
    ]
    assert shortened("abc", 3) == "abc"
    assert table(["a", "number"], [["x", "1"], ["long", "20"]], "a") == (
        "a     number\n----  ------\nx          1\nlong      20"
    )
    assert Line("/a/b.py", 3).short == "b.py:3"
