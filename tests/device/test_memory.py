"""Live bytes stay flat, whatever the program does between."""

import contextlib
import gc

import pytest

import pellucid
from pellucid import webgpu
from pellucid.device.stream import stream


def turn(k: int, kept: list) -> None:
    """One iteration of a program that is hard on memory: a graph, views, in-place writes, a cycle, an
    exception."""
    x = pellucid.full((4, 8), 0.5, requires_grad=True)
    y = (x * 2 + k).t()[1:, ::2]
    z = y.exp().sum() if k % 3 else y.tanh()
    if k % 3:
        z.backward()
    part = x.detach()[1:3]
    part += 1
    part[0] = part[1] * 2
    kept.append(y.clone())
    if len(kept) > 5:
        kept.pop(0)
    if k % 7 == 0:
        cycle = {"x": x, "z": z}
        cycle["self"] = cycle
    if k % 11 == 0:
        with contextlib.suppress(ValueError):
            pellucid.cat([y, x.reshape(2, 16)], 0)
    if k % 50 == 0:
        z.detach().numpy()


def settled() -> tuple[int, int]:
    gc.collect()
    webgpu.synchronize()
    gc.collect()
    webgpu.flush()
    return webgpu.memory_allocated(), webgpu.memory_stats()["live_buffers"]


@pytest.fixture(autouse=True, scope="module")
def a_first_window():
    """The block of the status comes with a process's first window and stays."""
    pellucid.zeros(1).item()


def test_ten_thousand_iterations_leave_what_a_hundred_leave():
    """P-056: nothing leaks."""
    kept: list = []
    for k in range(100):
        turn(k, kept)
    first = settled()
    for k in range(100, 10_000):
        turn(k, kept)
    assert settled() == first
    kept.clear()


def test_a_forward_is_one_submit_and_finds_everything_again():
    """P-056: of 1,000 forwards, by the counters that tell how often caches of the device were missed."""
    net = pellucid.nn.Sequential(pellucid.nn.Linear(8, 16), pellucid.nn.LayerNorm(16), pellucid.nn.GELU())
    x, seen = pellucid.randn(5, 8), []
    with pellucid.no_grad():
        for k in range(1008):
            if k in (7, 1007):
                seen.append(webgpu.memory_stats())
            net(x)
            webgpu.flush()
    first, last = seen
    made = {name: last[name] - first[name] for name in first if last[name] != first[name]}
    # Reading the counters flushes once; nothing else grows, least of all pipelines, bind groups and bytes.
    assert made.pop("submits") in (1000, 1001)
    assert made.pop("passes") == 1000
    assert made.pop("dispatches") >= 2000
    assert set(made) <= {"flushes"}


def test_reserved_bytes_stay_flat():
    def spend():
        for k in range(60):
            x = pellucid.zeros(1000 + 64 * (k % 7))
            (x * 2 + 1).sum().item()

    spend()
    reserved = webgpu.memory_reserved()
    for _ in range(5):
        spend()
    assert webgpu.memory_reserved() <= reserved * 1.2


def test_a_reading_generator_that_is_dropped():
    before = settled()
    it = (pellucid.ones(1000) * k for k in range(10))
    next(it)
    del it
    assert settled() == before


def test_counts():
    before = webgpu.memory_allocated()
    x = pellucid.zeros(1000)
    assert webgpu.memory_allocated() == before + 4000
    y = x[10:]
    del x
    assert webgpu.memory_allocated() == before + 4000
    del y
    assert webgpu.memory_allocated() == before
    half = pellucid.zeros(1000, dtype=pellucid.float16)
    assert webgpu.memory_allocated() == before + 2000
    del half
    webgpu.reset_peak_memory_stats()
    pellucid.zeros(5000)
    pellucid.webgpu.flush()
    stats = webgpu.memory_stats()
    assert stats["allocated_bytes"] == before
    assert stats["dispatches"] > 0


@pytest.mark.parametrize("fused", [False, True])
def test_windows_that_are_recognised_account_for_what_ends_in_them(fused):
    """What lives from window to window, what lives within one, and what is given a kind there."""
    kinds = ("parameter_bytes", "cache_bytes")

    def counted():
        stats = webgpu.memory_stats()
        return stats["allocated_bytes"], *[stats[kind] for kind in kinds]

    with webgpu.fusion(fused):
        x, kept = pellucid.ones(100, device="webgpu"), []
        webgpu.synchronize()
        before = counted()
        for k in range(12):
            y = ((x + 1) * 2).exp()
            if k % 3 == 2:
                y._storage.set_kind("cache")
            z = y * 3
            if k >= 8:  # it outlives its window, or does not, by turns
                kept = [y] if k % 2 else []
            del y
            w = pellucid.nn.Parameter(pellucid.ones(10, device="webgpu"))
            if k % 4 == 3:
                w._storage.set_kind("parameter")
            del w
            webgpu.flush()
            cache = 400 if kept and k % 3 == 2 else 0
            assert counted() == (before[0] + 400 * (1 + len(kept)), before[1], before[2] + cache), k
        del z, kept
        assert settled()[0] == before[0]
        assert counted() == before


@pytest.mark.parametrize("does", ["submit", "memory_allocated", "reset"])
def test_a_finalizer_may_do_anything_while_what_ended_is_looked_for(does, monkeypatch):
    """Python's collector may run one between any two steps: nothing is accounted for twice."""
    s = stream()
    x = pellucid.ones(100, device="webgpu")
    before = settled()[0]
    pack, calls = s._packed, []

    def packed(words):
        window = pack(words)
        if not calls:
            calls.append(words)
            getattr(s, does)() if does == "submit" else getattr(webgpu, does)()
        return window

    with webgpu.fusion(False):
        y = x * 2
        del y
        z = x * 3
        with monkeypatch.context() as patched:
            patched.setattr(s, "_packed", packed)
            s.submit()
        assert calls
        if does == "reset":
            del x, z
            assert webgpu.memory_allocated() == 0
            return
        assert settled()[0] == before + 400
        assert len(set(s.free)) == len(s.free)
        assert z.tolist() == [3.0] * 100


def test_the_limit():
    x = pellucid.zeros(1000)
    try:
        webgpu.set_memory_limit(webgpu.memory_allocated() + 8000)
        y = pellucid.zeros(1000)
        with pytest.raises(
            pellucid.errors.OutOfMemoryError,
            match=r"40000 bytes more than the \d+ in use would pass the limit of \d+",
        ):
            pellucid.zeros(10_000)
        del y
        for _ in range(8):
            z = {"t": pellucid.zeros(1000)}
            z["self"] = z  # only the collector frees it
        del z
    finally:
        webgpu.set_memory_limit(None)
    assert x.sum().item() == 0


def test_gradients_are_freed_with_their_graph():
    before = settled()
    x = pellucid.ones(256, requires_grad=True)
    loss = x
    for _ in range(20):
        loss = (loss * 1.01).tanh()
    loss = loss.sum()
    assert webgpu.memory_allocated() > before[0] + 20 * 1024
    loss.backward()
    assert webgpu.memory_allocated() == before[0] + 2 * 1024 + 4  # x, its gradient and the loss
    del loss, x
    assert settled() == before


def test_what_is_kept_of_new_shapes_does_not_add_up():
    """More launches than are kept, of shapes that never come again."""
    host = stream().open()
    before = len(host.launches)  # which other tests may hold
    for n in range(3000, 3750):
        x = pellucid.empty(n, 2, device="webgpu")
        ((x * 2 + 1).sum(0) - x.sum(1).sum()).exp()
    pellucid.webgpu.synchronize()
    assert len(host.launches) < before + 4000
    x = pellucid.ones(3, 2, device="webgpu")
    assert ((x * 2 + 1).sum(0) - x.sum(1).sum()).tolist() == [3.0, 3.0]
