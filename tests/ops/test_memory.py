"""Live bytes stay flat, whatever the program does between."""

import contextlib
import gc

import pytest

import pellucid
from pellucid import webgpu


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


def test_ten_thousand_iterations_leave_what_a_hundred_leave():
    kept: list = []
    for k in range(100):
        turn(k, kept)
    first = settled()
    for k in range(100, 10_000):
        turn(k, kept)
    assert settled() == first
    kept.clear()


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
