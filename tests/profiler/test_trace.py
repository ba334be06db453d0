"""`pellucid.debug.trace`: what ran, from which lines, with which kernels, and that nothing of it stays."""

import asyncio
import gc
import inspect
import math
import re
import subprocess
import sys
from array import array

import pytest

import pellucid as torch
from checked import unchecked
from pellucid.device.stream import MAX_WINDOW_WORDS, stream
from pellucid.errors import DeviceError
from pellucid.op.fusion import window
from pellucid.op.fusion.commands import read
from pellucid.op.launches import _pipelines, nodes

pytestmark = pytest.mark.gpu


def here(back=0):
    """The number of the caller's line."""
    frame = inspect.currentframe().f_back
    return frame.f_lineno - back


def numbers(dispatch):
    """The numbers of a dispatch's lines, all of this file."""
    assert {line.file for line in dispatch.lines} <= {__file__}
    return [line.number for line in dispatch.lines]


def settled(run):
    """A trace of a run whose windows are fused by now; what it returns is needed."""
    gc.collect()  # what other tests left behind would end within the windows and make them differ
    torch.webgpu.flush()
    for _ in range(2):
        result = run()
        torch.webgpu.flush()
        del result
    with torch.debug.trace() as t:
        result = run()
        torch.webgpu.flush()
    del result
    return t


@pytest.fixture
def alone():
    """Every launch by itself."""
    with torch.webgpu.fusion(False):
        yield


@pytest.fixture
def fused():
    with torch.webgpu.fusion(True):
        yield


def test_a_dispatch_tells_what_ran(alone):
    x = torch.ones(1000)
    y = torch.ones(20, 30)
    with torch.debug.trace() as t:
        z = x * 2
        s = torch.softmax(y, dim=-1)
        line = here(1)
    assert len(t) == 2
    assert [d.ops for d in t] == [("mul",), ("softmax",)]
    assert [numbers(d) for d in t] == [[line - 1], [line]]
    assert str(t[1].lines[0]) == f"{__file__}:{line}"
    assert t[1].kernel.startswith("norm/softmax")
    assert t[0].grid == (math.ceil(1000 / 64), 1, 1)
    assert (t[0].bytes_read, t[0].bytes_written) == (4000, 4000)
    assert (t[1].bytes_read, t[1].bytes_written) == (2400, 2400)
    assert not t[0].is_fused
    assert t[0].seconds is None
    # The text is what the device compiled, to the letter.
    assert t[0].text in _pipelines
    assert t[1].text in _pipelines
    assert t[0].text != t[1].text
    assert [len(part) for part in (t[:1], t[-1:], t[5:])] == [1, 1, 0]
    del z, s


def test_fused_launches_name_all_their_ops_and_lines(fused):
    x = torch.ones(1000)

    def run():
        a = x * 2
        b = a + 1
        return (b * b).sin()

    first = run.__code__.co_firstlineno
    t = settled(run)
    assert len(t) == 1
    assert t[0].is_fused
    assert t[0].ops == ("mul", "add", "mul", "sin")
    assert numbers(t[0]) == [first + 1, first + 2, first + 3]
    assert (t[0].bytes_read, t[0].bytes_written) == (4000, 4000)
    assert t[0].text in _pipelines
    assert t[0].text.count("let value_m") == 4


def test_lines_belong_to_their_groups(fused):
    x, y = torch.ones(1000), torch.ones(77)

    def run():
        a = x * 2
        b = y * 3
        a = a + 1
        b = b - 1
        return a.exp(), b.log()

    first = run.__code__.co_firstlineno
    t = settled(run)
    found = {d.ops: numbers(d) for d in t}
    assert found == {
        ("mul", "add", "exp"): [first + 1, first + 3, first + 5],
        ("mul", "sub", "log"): [first + 2, first + 4, first + 5],
    }


def test_lines_are_right_where_a_window_begins_with_what_went_away(fused):
    x = torch.ones(1000)
    kept = []

    def run():
        kept.clear()  # frees the result of the last run, first of all
        a = x * 2
        kept.append(a + 1)

    first = run.__code__.co_firstlineno
    t = settled(run)
    assert [numbers(d) for d in t] == [[first + 2, first + 3]]


def test_a_window_that_is_not_fused_yet_has_its_launches_one_by_one(fused):
    x = torch.ones(1013)
    with torch.debug.trace() as t:
        y = (x * 2 + 1).tanh()
    assert [d.ops for d in t] == [("mul",), ("add",), ("tanh",)]
    assert not any(d.is_fused for d in t)
    del y


def test_the_backward_pass_names_the_forward_lines():
    x = torch.ones(8, 5, requires_grad=True)
    with torch.debug.trace() as t:
        a = x * 2
        b = a.transpose(0, 1)
        c = b.exp()
        c.mean().backward()
        last = here(1)
    assert [line.number for line in t[0].lines] == [last - 3]
    backward = [line for d in t for line in d.lines if line.backward]
    assert {line.number for line in backward} == {last - 3, last - 1, last}
    assert str(backward[-1]).endswith(f":{backward[-1].number} (backward)")
    # The gradient that it begins with is made by backward() itself.
    assert ("full",) in [d.ops for d in t if any(not line.backward for line in d.lines)]


def test_the_backward_pass_of_what_ran_before_names_its_own_line(alone):
    x = torch.ones(8, requires_grad=True)
    loss = (x * 2).exp().sum()
    with torch.debug.trace() as t:
        loss.backward()
        line = here(1)
    assert len(t) > 2
    assert {tuple(d.lines) for d in t} == {((__file__, line, False),)}


def test_a_definition_that_is_differentiated_names_the_forward_line(alone):
    q = torch.rand(1, 2, 8, 4, requires_grad=True)
    with torch.debug.trace() as t:
        y = torch.scaled_dot_product_attention(q, q, q)
        line = here(1)
        y.sum().backward()
    assert "softmax" in [d.ops[0] for d in t if d.lines[0].backward]
    assert {found.number for d in t for found in d.lines if found.backward} == {line}


def test_hooks_of_the_program_are_lines_of_the_program():
    x = torch.ones(8, requires_grad=True)
    y = x * 2

    def hook(g):
        return g * 3

    y.register_hook(hook)
    with torch.debug.trace() as t:
        y.sum().backward()
    assert hook.__code__.co_firstlineno + 1 in [n for d in t for n in numbers(d)]


def test_uploads_and_copies_are_counted(alone):
    with torch.debug.trace() as t:
        x = torch.tensor([1.0, 2.0, 3.0])
        stream().copy(x._storage, torch.ones(3)._storage, 0, 0, 8)
    assert [w.uploads for w in t.windows] == [[12]]
    assert [w.copies for w in t.windows] == [[8]]
    assert "1 copies of 8 B" in str(t)
    assert "1 uploads of 12 B" in str(t)


def test_many_windows_keep_their_lines(alone):
    x = torch.ones(4)
    with torch.debug.trace() as t:
        for _ in range(MAX_WINDOW_WORDS // 2):
            x = x + 1
            line = here(1)
    assert len(t.windows) > 2
    assert [w.number for w in t.windows] == list(range(len(t.windows)))
    assert len(t) == MAX_WINDOW_WORDS // 2
    assert {(d.ops, d.lines[0].number, len(d.lines)) for d in t} == {(("add",), line, 1)}
    assert x.tolist() == [1.0 + MAX_WINDOW_WORDS // 2] * 4


def test_tasks_have_their_own_lines(alone):
    x = torch.ones(100)

    async def first():
        for _ in range(5):
            x + 1
            await asyncio.sleep(0)

    async def second():
        for _ in range(5):
            x.exp()
            await asyncio.sleep(0)

    async def both():
        async with torch.debug.trace() as t:
            await asyncio.gather(first(), second())
        return t

    t = asyncio.run(both())
    found = {(d.ops[0], *numbers(d)) for d in t}
    assert found == {
        ("add", first.__code__.co_firstlineno + 2),
        ("exp", second.__code__.co_firstlineno + 2),
    }
    assert len(t) == 10


def test_what_a_replay_submits_has_ops_and_the_line_that_asked_for_it(alone):
    x = torch.ones(1000)
    torch.webgpu.flush()
    y = x * 2
    words = stream().words
    run = next(r for r in read(words) if r.node is not None).words[0] - 1
    again = array("I", words[run : run + 3 + len(nodes[words[run]].patched)])
    torch.webgpu.flush()
    y.fill_(0)
    with torch.debug.trace() as t:
        stream().submit_window(again)
        line = here(1)
    assert [(d.ops, *numbers(d)) for d in t] == [(("mul",), line)]
    assert y.tolist() == [2.0] * 1000


@unchecked("an eager call stands before each replay, and is traced")
@pytest.mark.usefixtures("timestamps")
def test_a_compiled_function_has_the_ops_of_its_kernels_and_the_line_of_the_call(fused):
    compiled = torch.compile(lambda x: (x * 2 + 1).sin())
    x = torch.ones(1000)
    for _ in range(3):
        compiled(x)
    with torch.debug.trace(time=True) as t:
        y = compiled(x)
        line = here(1)
    assert [(d.ops, *numbers(d)) for d in t] == [(("mul", "add", "sin"), line)]
    assert t[0].seconds > 0
    assert y.tolist() == (x * 2 + 1).sin().tolist()


def test_printed_it_is_a_table(fused):
    x = torch.ones(1000)
    t = settled(lambda: (x * 2 + 1).sin())
    summary, heads, _, row = str(t).splitlines()
    assert summary == "1 window, 1 dispatch; 1 of them fused from 3"
    assert heads.split() == ["#", "window", "ops", "kernel", "grid", "read", "written", "lines"]
    assert re.match(r"0 +0 +mul \+ add \+ sin +fused expressions +16x1x1 +4 kB +4 kB +test_trace.py:\d+", row)
    assert t.table(row_limit=0).endswith("... and 1 more")
    with torch.debug.trace() as nothing:
        pass
    assert str(nothing) == "0 windows, 0 dispatches"


@pytest.mark.usefixtures("timestamps")
def test_times_are_those_of_the_dispatches(alone):
    x, w = torch.randn(64), torch.randn(256, 256)
    w @ w
    with torch.debug.trace(time=True) as t:
        for _ in range(5):
            x + 1
            w @ w
        x.sin()
    assert all(d.seconds > 0 for d in t)
    # Of several, for any one may have waited for a core of the machine.
    assert min(d.seconds for d in t[1:10:2]) > min(d.seconds for d in t[0:10:2])
    ends = [stamp for d in t for stamp in d.time]
    assert ends == sorted(ends)
    assert "GPU time" in str(t)
    assert "a pass of its own" in str(t)
    assert f"{len(t)} dispatches" in str(t)


WITHOUT_TIMESTAMPS = """
import pellucid as torch
x = torch.ones(1000)
with torch.debug.trace(time=True) as t:
    y = x * 2
    torch.webgpu.flush()
    z = y + 1
assert [d.seconds for d in t] == [None, None]
assert len(t.windows) == 2 and all(w.seconds > 0 for w in t.windows), t.windows
assert t.windows[0].time[1] <= t.windows[1].time[0]
print(t)
torch.embedding(torch.ones(3, 2), torch.tensor([5]))
torch.webgpu.synchronize()
try:
    z.tolist()
except IndexError:
    print("the index error was kept")
"""


def test_without_timestamps_windows_are_timed():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TIMESTAMPS],
        capture_output=True, text=True, env={**environ(), "PELLUCID_DEFAULT_LIMITS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "This device has no timestamps. Times are those of whole windows" in done.stdout
    assert re.search(r"windows of [\d.]+ \ws, [\d.]+ \ws", done.stdout)
    assert "GPU time" not in done.stdout
    assert "the index error was kept" in done.stdout


def environ():
    from paths import environment

    return environment()


def watchers():
    host = stream().open()
    names = {"submit", "begin_read", "read", "read_async"} & set(vars(host))
    return names, list(stream().after_op), list(stream().on_submit), list(window.on_rewrite), host.timestamps


def test_nothing_of_it_stays():
    x = torch.ones(1000)
    (x * 2).sum().item()
    torch.webgpu.flush()
    before = torch.webgpu.memory_stats()
    for time in (False, True):
        with torch.debug.trace(time=time) as t:
            (x * 2).sum().item()
        assert len(t) >= 1
        assert watchers() == (set(), [], [], [], None)
    torch.webgpu.flush()
    after = torch.webgpu.memory_stats()
    for name in ("live_buffers", "allocated_bytes", "pipelines"):
        assert after[name] >= before[name]
    assert after["live_buffers"] == before["live_buffers"]
    assert after["allocated_bytes"] == before["allocated_bytes"]
    passes = after["passes"]
    y = x.exp().sqrt() if not torch.webgpu.is_fusion_enabled() else x.exp()
    torch.webgpu.flush()
    assert torch.webgpu.memory_stats()["passes"] == passes + 1
    del y


def test_others_who_stand_before_the_host_stay_there(alone):
    host, seen = stream().open(), []
    submit = host.submit

    def watching(words, held=False):
        seen.append(len(words))
        submit(words, held)

    host.submit = watching
    try:
        with torch.debug.trace() as t:
            torch.ones(3)
        assert len(t) == len(seen) == 1
        assert host.submit is watching
        torch.ones(3)
        torch.webgpu.flush()
        assert len(seen) == 2
    finally:
        del host.submit


@pytest.mark.usefixtures("timestamps")
def test_an_error_inside_ends_it():
    x = torch.ones(4)
    t = torch.debug.trace(time=True)

    def fails():
        with t:
            x + 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert len(t) == 1
    assert t[0].seconds > 0
    assert watchers() == (set(), [], [], [], None)


def test_only_one_records_at_a_time():
    with torch.debug.trace() as t:
        with pytest.raises(DeviceError, match="being recorded already"), torch.debug.trace():
            pass
        torch.ones(3) + 1
    assert len(t) == 2
    with pytest.raises(DeviceError, match="records once"), t:
        pass


@pytest.mark.parametrize("blocking_first", [True, False])
def test_beside_the_debug_mode(blocking_first, alone):
    outer, inner = torch.debug.blocking(), torch.debug.trace()
    if not blocking_first:
        outer, inner = inner, outer
    table = torch.ones(3, 2)
    with outer as a, inner as b:
        y = table + 1
        with pytest.raises(IndexError, match=re.escape(__file__)):
            torch.embedding(table, torch.tensor([7]))
        line = here(1)
    t = b if blocking_first else a
    assert [d.ops for d in t] == [("add",), ("embedding",)]
    assert numbers(t[1]) == [line]
    assert stream().after_op == []
    del y


REOPENED = """
import pellucid as torch
with torch.debug.trace(time=True) as t:
    a = torch.ones(10)
    torch.webgpu.flush()
    torch.webgpu.reset()
    b = torch.ones(10)
    c = b.exp()
    c.tolist()
    print([d.ops for d in t], [d.seconds is not None for d in t])
print([d.ops for d in t], [d.seconds is not None for d in t])
d = c + 1
print(d.tolist()[:1])
"""


@pytest.mark.usefixtures("timestamps")
def test_the_device_may_be_reopened_inside():
    done = subprocess.run(
        [sys.executable, "-c", REOPENED],
        capture_output=True,
        text=True,
        env={**environ(), "PELLUCID_FUSION": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert "[('full',), ('full',), ('exp',)] [False, True, True]" in done.stdout
    assert "[3.7182" in done.stdout


@pytest.mark.parametrize("module", [{}, {"__name__": "console"}])
def test_code_without_a_module_has_lines_too(alone, module):
    scope = {"x": torch.ones(3), **module}
    with torch.debug.trace() as t:
        exec(compile("y = 1\nz = x + y", "<console>", "exec"), scope)
    assert [str(line) for line in t[0].lines] == ["<console>:2"]
