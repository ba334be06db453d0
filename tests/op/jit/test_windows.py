"""Replays wait for the next flush like records, among records, and come out in order, once."""

import asyncio
import subprocess
import sys

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import bits, replays, settle, some
from pellucid import nn
from pellucid.device.stream import MAX_WINDOW_WORDS, stream
from pellucid.nn import functional as F

pytestmark = [pytest.mark.gpu, unchecked("replays are handed over one by one, after eager calls")]


def submits() -> int:
    return stream().open().stats()["submits"]


@pytest.fixture(params=[False, True], ids=["plain", "fused"])
def fused(request):
    with torch.webgpu.fusion(request.param):
        yield request.param


def test_many_replays_are_one_submit(rng, fused):
    """P-064, P-089, P-095: two programs that share what passes, and results that the next call takes."""
    w = some(rng, 6, 6)

    def f(x):
        return torch.softmax((x @ w).relu() @ w, -1)

    def g(x):
        return (x.exp() @ w).sum(0, keepdim=True) + x

    first, second = torch.compile(f), torch.compile(g)
    for compiled in (first, second):
        settle(compiled, (some(rng, 4, 6),), (some(rng, 4, 6),))
    x = some(rng, 4, 6)
    torch.webgpu.flush()
    before, served = submits(), replays(first) + replays(second)
    found, y = [], x
    for _ in range(5):
        y = second(first(y))
        found.append(y)
        first(x)  # nobody holds this result
    assert submits() == before
    assert replays(first) + replays(second) == served + 15
    torch.webgpu.flush()
    assert submits() == before + 1
    for got in found:
        x = g(f(x))
        np.testing.assert_allclose(got.numpy(), x.numpy(), rtol=1e-5, atol=1e-5)


def test_replays_among_records_that_change_their_arguments(rng, fused):
    total = torch.zeros(5)

    def f(x):
        total.add_(x)
        x.mul_(0.5)
        return x * 10 + total

    compiled = torch.compile(f)
    settle(compiled, (some(rng, 5),), (some(rng, 5),))
    total.zero_()
    x = some(rng, 5)
    wanted, summed = x.numpy(), np.zeros(5, np.float32)
    torch.webgpu.flush()
    before = submits()
    found = []
    for k in range(8):
        x.add_(k)
        y = compiled(x)
        x.sub_(1)
        found.append(y + x)
        wanted = wanted + np.float32(k)
        summed = summed + wanted
        wanted = wanted * np.float32(0.5)
        value = wanted * 10 + summed
        wanted = wanted - 1
        found.append(value + wanted)
        if k == 3:
            assert submits() == before
            np.testing.assert_allclose(y.numpy(), value, rtol=1e-5)
            before = submits()
    assert submits() == before
    for got, value in zip(found[::2], found[1::2], strict=True):
        np.testing.assert_allclose(got.numpy(), value, rtol=1e-5)
    np.testing.assert_allclose(total.numpy(), summed, rtol=1e-5)
    np.testing.assert_allclose(x.numpy(), wanted, rtol=1e-5)


def test_data_that_comes_and_goes_between_replays(rng):
    """What ends between two replays may lend its memory to the second one, not to the first."""
    f = torch.compile(lambda x: (x + 1) * (x - 1))
    settle(f, (some(rng, 300),), (some(rng, 300),))
    found, wanted = [], []
    for k in range(30):
        data = rng.standard_normal(300).astype(np.float32)
        found.append(f(torch.tensor(data)))
        wanted.append((data + 1) * (data - 1))
        if k % 3 == 2:
            del found[-2], wanted[-2]
    for got, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), value, rtol=1e-5, atol=1e-6)


def test_a_long_window_of_replays_is_submitted_by_itself(rng):
    f = torch.compile(lambda x: x.add_(1))
    x, y = some(rng, 3), some(rng, 3)
    settle(f, (x,), (y,))
    x.zero_()
    torch.webgpu.flush()
    before = submits()
    for _ in range(MAX_WINDOW_WORDS // 2):
        f(x)
        assert stream().ready_words <= MAX_WINDOW_WORDS
    assert submits() > before
    assert x.tolist() == [MAX_WINDOW_WORDS // 2] * 3


def test_replays_are_submitted_when_python_yields_to_the_event_loop(rng):
    f = torch.compile(lambda x: x.add_(1))
    x, y = some(rng, 3), some(rng, 3)
    settle(f, (x,), (y,))
    x.zero_()

    async def main():
        for _ in range(3):
            f(x)
            torch.webgpu.flush()
            f(x)
            assert stream().ready
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not stream().ready

    asyncio.run(main())
    asyncio.run(main())
    assert x.tolist() == [12.0] * 3


def test_an_interrupt_while_records_among_replays_are_fused_loses_nothing(rng, monkeypatch):
    s = stream()
    with torch.webgpu.fusion(True):
        f = torch.compile(lambda x: x.add_(1))
        x, y = some(rng, 3), some(rng, 3)
        settle(f, (x,), (y,))
        x.zero_()
        torch.webgpu.flush()
        rewrite, calls = s.rewrite, []

        def interrupted(words, window, found):
            calls.append(words)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return rewrite(words, window, found)

        for _ in range(4):
            f(x)
            x.mul_(2)
        monkeypatch.setattr(s, "rewrite", interrupted)
        with pytest.raises(KeyboardInterrupt):
            torch.webgpu.flush()
        monkeypatch.setattr(s, "rewrite", rewrite)
        f(x)
        assert x.tolist() == [31.0] * 3


@pytest.mark.parametrize("taken", [False, True])
def test_an_interrupt_before_or_after_the_host_takes_a_window_neither_loses_nor_repeats_it(
    rng, monkeypatch, taken
):
    f = torch.compile(lambda x: x.add_(1))
    x, y = some(rng, 3), some(rng, 3)
    settle(f, (x,), (y,))
    x.zero_()
    torch.webgpu.flush()
    host, allocated = stream().open(), torch.webgpu.memory_allocated()
    submit = host.submit

    def interrupted(*window):
        if taken:
            submit(*window)
        raise KeyboardInterrupt

    for _ in range(3):
        f(x)
        x.mul_(2)
        gone = f(y) + 1
        monkeypatch.setattr(host, "submit", interrupted, raising=False)
        with pytest.raises(KeyboardInterrupt):
            torch.webgpu.flush()
        monkeypatch.setattr(host, "submit", submit)
        del gone
    f(x)
    torch.webgpu.flush()
    assert x.tolist() == [15.0] * 3
    assert torch.webgpu.memory_allocated() == allocated


def test_a_launch_that_fails_is_told_by_the_next_flush_and_leaves_the_rest(rng, monkeypatch):
    f, g = torch.compile(lambda x: x * 2 + 1), torch.compile(lambda x: x * 3)
    big, small = torch.zeros(1 << 19), some(rng, 3)
    settle(f, (big,), (torch.zeros(1 << 19),))
    settle(g, (small,))
    torch.webgpu.flush()
    torch.webgpu.empty_cache()
    monkeypatch.setitem(stream().open().info.limits, "maxStorageBufferBindingSize", 1 << 20)
    first, lost, second = g(small), f(torch.empty(1 << 19)), g(small)
    with pytest.raises(torch.errors.DeviceError, match="binds at most 1048576"):
        torch.webgpu.flush()
    assert bits(first) == bits(second) == bits(small * 3)
    del lost


def test_a_closed_device_takes_waiting_replays_along(rng):
    f = torch.compile(lambda x: x * 2)
    x = some(rng, 3)
    settle(f, (x,))
    f(x)
    assert stream().ready
    del x
    torch.webgpu.reset()
    assert not stream().ready
    x = some(rng, 3)
    settle(f, (x,))
    assert bits(f(x)) == bits(x * 2)


def test_traces_see_every_replay_by_itself(rng):
    f, x = torch.compile(lambda x: x.exp() + 1), some(rng, 3)
    settle(f, (x,))
    f(x)  # waits, and is none of the trace's
    with torch.debug.trace() as trace:
        y = f(x)
        z = (y * 2).tanh()
        last = f(z)
    del last
    assert [len(window.dispatches) for window in trace.windows] == [2, 2, 2]
    assert [d.ops for d in trace][2:4] == [("mul",), ("tanh",)]
    assert len(trace[0].lines) == 1


PROGRAM = """
import hashlib, pellucid as torch
from pellucid.device.stream import stream
host, seen = stream().open(), hashlib.sha256()
submit = host.submit
def watched(words, *more):
    seen.update(words.tobytes())
    submit(words, *more)
host.submit = watched
torch.manual_seed(0)
w = torch.randn(8, 8)
f = torch.compile(lambda x: torch.softmax((x @ w).tanh() + torch.rand(4, 8), -1))
x, kept = torch.randn(4, 8), []
for k in range(20):
    x = f(x) * 2 + f(x)
    kept.append(f(x))
    if k % 5 == 4:
        seen.update(x.numpy().tobytes())
print(f.explain().replays, stream().flushes, seen.hexdigest())
"""


def test_two_runs_of_a_program_have_the_same_windows_and_bits():
    runs = [subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    assert int(runs[0].stdout.split()[0]) >= 50


def after_some(call, rounds: int) -> dict[str, int]:
    """How counters grow in the last of several rounds, whose results are held until each ends."""
    for _ in range(rounds):
        before = stream().open().stats()
        kept = [call(k) for k in range(6)]
        torch.webgpu.flush()
        after = stream().open().stats()
        del kept
    return {name: after[name] - before[name] for name in after}


def test_results_that_are_kept_for_a_while_need_no_new_bind_groups(rng, fused):
    """They are as large as much of what passes, and find their blocks again all the same."""
    w = some(rng, 16, 16)
    layer = torch.compile(lambda x: x + torch.softmax((x @ w).relu() @ w, -1) @ w)
    inputs = [some(rng, 16, 16) for _ in range(3)]
    settle(layer, *[(x,) for x in inputs])
    grown = after_some(lambda k: layer(inputs[k % 3]), 12)
    assert grown["bind_groups"] == grown["reserved_bytes"] == 0
    assert grown["submits"] == 1


def test_training_whose_losses_are_kept_needs_no_new_bind_groups(rng, fused):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    data = [(some(rng, 8, 8), torch.tensor(rng.integers(0, 4, 8))) for _ in range(3)]
    grown = after_some(lambda k: step(*data[k % 3]), 16)
    assert grown["bind_groups"] == grown["reserved_bytes"] == 0
    assert replays(step) >= 80
