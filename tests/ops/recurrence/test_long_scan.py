"""Selective scans around the length of a chunk, and of 65,536 positions: values, derivatives, memory."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid import webgpu
from pellucid.device.stream import stream
from pellucid.nn.functional import selective_scan
from samples.recurrence import stepwise


def made(device):
    rng, time = np.random.default_rng(2), 65_536
    shapes = {"u": (1, time, 1), "delta": (1, time, 1), "A": (1, 1), "B": (1, time, 1), "C": (1, time, 1)}
    arrays = {name: rng.uniform(0.1, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    given = {name: pellucid.tensor(a, device=device) for name, a in arrays.items()}
    given["A"] = -given["A"]
    for t in given.values():
        t.requires_grad_()
    out, last = selective_scan(*given.values())
    (out.square().mean() + last.sum()).backward()
    return [out, last, *[t.grad for t in given.values()]]


def test_a_long_scan_is_linear_in_memory():
    webgpu.reset_peak_memory_stats()
    before = webgpu.max_memory_allocated()
    found = made("webgpu")
    # Thirty rows of the time at most: a square would have 65,536.
    assert webgpu.max_memory_allocated() - before < 30 * 4 * 65_536
    for mine, wanted in zip(found, made("cpu"), strict=True):
        wanted = wanted.detach().numpy()
        scale = max(float(np.abs(wanted).max()), 1e-6)
        np.testing.assert_allclose(mine.detach().numpy() / scale, wanted / scale, atol=2e-5)


@pytest.mark.parametrize("time", [1, 63, 64, 65, 1000])
def test_a_scan_is_its_recurrence(time):
    """M-04: position after position, in PyTorch."""
    rng = np.random.default_rng(time)
    columns = {"u": 3, "delta": 3, "A": 3, "B": 2, "C": 2}
    arrays = {k: rng.uniform(0.1, 1, (1, time, n)).astype(np.float32) for k, n in columns.items()}
    arrays["A"] = -rng.uniform(0.1, 2, (3, 2)).astype(np.float32)
    found = []
    for lib, scan in ((pellucid, selective_scan), (torch, lambda *given: stepwise(torch, *given))):
        given = [lib.tensor(a).requires_grad_() for a in arrays.values()]
        out, last = scan(*given)
        (out.square().mean() + last.sum()).backward()
        found.append([t.detach().cpu().numpy() for t in (out, last, *[t.grad for t in given])])
    for mine, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.gpu
@pytest.mark.parametrize("time", [64, 65_536])
def test_a_scan_is_three_dispatches_however_long(time):
    """M-04: a loop over the positions would take one after another; chunks do theirs side by side."""
    long, short = (pellucid.ones(1, time, n) for n in (1, 1))
    A = -pellucid.ones(1, 1)
    host = stream().open()
    with webgpu.fusion(False):
        selective_scan(long, long, A, short, short)[0].sum().item()
        before = host.stats()["dispatches"]
        out, _ = selective_scan(long, long, A, short, short)
        webgpu.synchronize()
    # States of chunks, what is carried from chunk to chunk, outputs.
    assert host.stats()["dispatches"] - before == 3
    assert out[0, -1].item() == pytest.approx(1 / (1 - np.exp(-1)), rel=1e-5)
