"""When windows are fused, into how many dispatches, and what happens to memory and parameters."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import pellucid as torch
from pellucid.device.stream import stream
from pellucid.op.fusion import known, window
from pellucid.op.fusion.known import PlanCache
from pellucid.op.fusion.plan import planning

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def fused():
    with torch.webgpu.fusion(True):
        yield


@pytest.fixture
def planned(monkeypatch):
    """How many words each window has that is planned from here on."""
    lengths = []

    def counted(words, period):
        lengths.append(len(words))
        return planning(words, period)

    monkeypatch.setattr(window, "planning", counted)
    return lengths


def dispatches(run):
    """What a run takes, whose values are read afterwards."""
    torch.webgpu.flush()
    before = torch.webgpu.memory_stats()["dispatches"]
    result = run()
    torch.webgpu.flush()
    return torch.webgpu.memory_stats()["dispatches"] - before, result


def settled(run):
    """The same once the fused kernels are in use."""
    counts = [dispatches(run)[0] for _ in range(4)]
    assert counts[0] == counts[1]
    assert counts[2] == counts[3]
    return counts[0], counts[3]


def test_chain_is_one_dispatch():
    """P-098: elementwise launches become one kernel, whose WGSL is written then."""
    x = torch.randn(1000)

    def chain():
        y = x
        for k in range(20):
            y = y * 1.01 if k % 2 else y + 0.5
        return y

    assert settled(chain) == (20, 1)


def test_held_values_are_written_by_the_same_kernel():
    x = torch.randn(100)

    def chain():
        a = x.sin()
        b = a * 2
        return a, b, b + 1

    assert settled(chain) == (3, 1)
    _, (a, b, c) = dispatches(chain)
    np.testing.assert_array_equal(b.numpy(), a.numpy() * 2)
    np.testing.assert_array_equal(c.numpy(), b.numpy() + 1)


def test_expressions_go_into_loads_and_stores():
    x, w = torch.randn(8, 32), torch.randn(16, 32)
    assert settled(lambda: torch.softmax(x * 2 + 1, -1) * 3) == (4, 1)
    assert settled(lambda: (x * x).sum(-1).sqrt()) == (3, 1)
    assert settled(lambda: torch.nn.functional.linear(x, w).relu() + 1) == (3, 1)


def test_dead_intermediates_take_no_memory():
    x = torch.zeros(1 << 20)

    def chain():
        return ((x + 1) * 2 - 3).sum()

    for _ in range(5):
        chain().item()
    torch.webgpu.empty_cache()
    before = torch.webgpu.memory_reserved()
    chain().item()
    assert torch.webgpu.memory_reserved() - before < 1 << 20


def test_numbers_and_offsets_are_parameters():
    """A fused kernel serves other numbers; where a tensor begins elsewhere, another one does."""
    x = torch.arange(0, 64).float()
    expected = x.numpy()
    for k in range(12):
        y = x[k : k + 8] * float(k) + 0.5
        z = (y * 2)[k % 3 : k % 3 + 4] - 1
        np.testing.assert_array_equal(
            z.numpy(), ((expected[k : k + 8] * np.float32(k) + 0.5) * 2)[k % 3 : k % 3 + 4] - 1
        )


def test_what_is_read_before_it_is_written_stays():
    x = torch.ones(10)
    for k in range(5):
        before = x * 2
        x.add_(1)
        after = x * 2
        assert before.tolist() == [2.0 * (k + 1)] * 10
        assert after.tolist() == [2.0 * (k + 2)] * 10


def test_a_tensor_that_is_added_to_itself():
    x = torch.ones(10)
    for k in range(5):
        x.add_(x)
        z = x * 2
        assert z.tolist() == [2.0 ** (k + 2)] * 10


def test_errors_are_still_raised():
    table, ids = torch.randn(4, 8), torch.tensor([1, 9])
    for _ in range(4):
        y = torch.nn.functional.embedding(ids, table) * 2 + 1
        with pytest.raises(IndexError, match="index 9"):
            y.numpy()


def test_nothing_is_left():
    x = torch.randn(50, 20)

    def step():
        y = (x * 2 + 1).softmax(-1)
        return (y * y).sum().item()

    for _ in range(5):
        step()
    gc.collect()
    live = torch.webgpu.memory_stats()["live_buffers"]
    for _ in range(50):
        step()
    gc.collect()
    assert torch.webgpu.memory_stats()["live_buffers"] == live


def test_steady_windows_need_no_new_buffers_or_groups():
    x = torch.randn(50, 20)

    def step():
        return ((x * 2 + 1).softmax(-1) + x).mean(0).sin().sum().item()

    for _ in range(12):
        step()
    before = torch.webgpu.memory_stats()
    for _ in range(20):
        step()
    after = torch.webgpu.memory_stats()
    for name in ("bind_groups", "pipelines", "reserved_bytes"):
        assert before[name] == after[name], name


def test_a_loop_that_never_waits_has_few_kinds_of_windows(planned):
    """Full windows end where the loop begins anew, whatever their length: else each would be planned."""
    x, scale, shift = torch.randn(16), torch.full((16,), 0.9), torch.randn(16)
    torch.webgpu.synchronize()
    counts, expected, y = [], x.numpy(), x
    for _ in range(3):
        before = torch.webgpu.memory_stats()["dispatches"]
        for _ in range(80):
            for k in range(97):
                y = y * scale if k % 3 else y + shift
        torch.webgpu.flush()
        counts.append(torch.webgpu.memory_stats()["dispatches"] - before)
    assert len(planned) <= 4
    assert max(planned) > 4096
    assert counts[2] < 80 * 97 / 8
    for k in range(3 * 80 * 97):
        expected = expected * np.float32(0.9) if k % 97 % 3 else expected + shift.numpy()
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)


def test_windows_after_a_wait_do_not_depend_on_what_ran_before(planned):
    """Else a loop is planned anew after every other program: its windows would end elsewhere in it."""
    x, scale = torch.randn(16), torch.full((16,), 0.9)
    lengths = []

    def loop():
        torch.webgpu.synchronize()
        lengths.clear()
        y = x
        for _ in range(3000):
            y = y * scale
            y = y.sin()
        torch.webgpu.synchronize()
        return list(lengths)

    stream().on_submit.append(lambda records: lengths.append(len(records)))
    try:
        first = loop()
        for _ in range(3):
            assert loop() == first
        plans = len(planned)
        with torch.webgpu.fusion(False):
            loop()
        y = x
        for _ in range(3000):
            y = torch.cos(y + scale)
        assert loop() == first
    finally:
        stream().on_submit.clear()
    assert max(first) > 4096
    assert len(planned) <= plans + 3  # those of the other loop


def test_what_was_planned_in_vain_is_planned_again_once_it_comes_often(planned, monkeypatch):
    """A program with more kinds of windows than are kept, again and again, and then with one of them."""
    monkeypatch.setattr(window, "_known", PlanCache(300))
    x = torch.randn(8)

    def run(n):
        y = x
        for _ in range(n):
            y = y.sin()
        np.testing.assert_allclose(y.numpy(), _sines(x.numpy(), n), rtol=1e-5)

    def around(times):
        before = len(planned)
        for _ in range(times):
            for n in range(3, 12):
                run(n)
        return len(planned) - before

    assert 0 < around(6) <= 9
    # Each waits for 8, 16, 32 windows of its kind.
    assert 0 < around(54) <= 3 * 9
    again = []
    for n in (3, 11):
        counts = []
        while len(counts) < 100 and (not counts or counts[-1] > 1):
            before = torch.webgpu.memory_stats()["dispatches"]
            run(n)
            counts.append(torch.webgpu.memory_stats()["dispatches"] - before)
        again.append(counts[-1])
    assert again == [1, 1]


def _sines(values, n):
    for _ in range(n):
        values = np.sin(values)
    return values


PROGRAM = """
import hashlib, pellucid as torch
from pellucid.device.stream import stream
host, seen = stream().open(), hashlib.sha256()
submit = host.submit
def watched(words, held=False):
    seen.update(words.tobytes())
    submit(words, held)
host.submit = watched
torch.manual_seed(0)
x = torch.randn(4, 8)
w = torch.randn(8, 8, requires_grad=True)
for _ in range(5):
    x = torch.softmax((x @ w).detach() * 2 + 1, -1) + torch.rand(4, 8)
    (x @ w).tanh().sum().backward()
    seen.update(x.numpy().tobytes())
    seen.update(w.grad.numpy().tobytes())
print(seen.hexdigest(), torch.webgpu.memory_stats()["dispatches"])
"""


def test_two_runs_of_a_program_have_the_same_windows_and_bits():
    runs = [subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout


def test_an_interrupt_while_planning_loses_nothing(monkeypatch):
    x = torch.arange(0, 8).float()

    def run():
        return (x * 2 + 1).sin() * 3

    plain = run().numpy()

    def interrupted(*_):
        raise KeyboardInterrupt

    for k in range(3):
        y = run()
        if k == 1:
            with monkeypatch.context() as patch:
                patch.setattr(window, "planning", interrupted)
                patch.setattr(window, "_known", PlanCache(1 << 18))
                patch.setattr(window, "_at_once", True)
                with pytest.raises(KeyboardInterrupt):
                    torch.webgpu.flush()
        np.testing.assert_array_equal(y.numpy(), plain)


@pytest.fixture
def in_parts(monkeypatch):
    """Windows are planned as where kernels are compiled beside Python; the structures that are known."""
    monkeypatch.setattr(stream().open(), "compiles_beside", True, raising=False)
    monkeypatch.setattr(window, "_LEAST", 16)
    monkeypatch.setattr(window, "_known", PlanCache(1 << 18))
    return window._known


def test_what_waits_for_a_plan_is_planned_after_others(in_parts, monkeypatch):
    """Plans that are being made take memory: few are at a time, and none that no longer comes."""
    monkeypatch.setattr(known, "_MOST_UNDER_WAY", 1)
    x = torch.linspace(0, 1, 256)

    def run(length):
        y = x
        for k in range(length):
            y = y.sin() * (k + 2)
        return y

    for _ in range(3):
        dispatches(lambda: run(90))  # and never again
    counts = {60: [], 70: []}
    for _ in range(100):
        for length, found in counts.items():
            found.append(dispatches(lambda length=length: run(length))[0])
        assert len([one for one in in_parts._by_key.values() if one.under_way is not None]) <= 1
    for length, found in counts.items():
        assert found[0] == 2 * length
        assert found[-1] < length


def test_a_long_window_is_planned_a_part_at_a_time(in_parts, monkeypatch):
    """Where kernels are compiled beside Python, no window waits for a whole plan."""
    x = torch.linspace(0, 1, 256)
    parts: list[list[int]] = []

    def counted(words, period, make=planning):
        work = make(words, period)
        while True:
            try:
                done = next(work)
            except StopIteration as end:
                return end.value
            parts[-1].append(done)
            yield done

    monkeypatch.setattr(window, "planning", counted)

    def run():
        y = x
        for k in range(150):
            y = y.sin() * (k + 2)
        return y

    counts, results = [], []
    while len(counts) < 60 and (not counts or counts[-1] == counts[0]):
        parts.append([])
        taken, y = dispatches(run)
        counts.append(taken)
        results.append(y)
    assert counts[-1] < counts[0] == 300
    assert sum(parts[0]) < 5  # what was recorded before
    assert sum(map(sum, parts)) > 600  # launches are looked at more than once
    assert all(sum(part[:-1]) < 100 for part in parts)  # and none of 300 at one window
    for y in results[1:]:
        np.testing.assert_array_equal(y.numpy(), results[0].numpy())
