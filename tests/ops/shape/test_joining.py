"""Joining, repeating and reordering against PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, normal
from ops.values import equal, ours
from pellucid.errors import DTypeError, GradientError


@pytest.mark.parametrize(("count", "most"), [(2, 2), (3, 1), (7, 1), (8, 2), (30, 5)])
def test_seven_small_tensors_go_in_one_dispatch(count, most):
    parts = [pellucid.randn(1, 576, device="webgpu") for _ in range(count)]
    pellucid.webgpu.synchronize()
    before = pellucid.webgpu.memory_stats()["dispatches"]
    out = pellucid.cat(parts)
    pellucid.webgpu.synchronize()
    assert pellucid.webgpu.memory_stats()["dispatches"] - before == most
    assert out[count - 1].tolist() == parts[-1][0].tolist()


@pytest.mark.parametrize(
    ("widths", "dtypes", "most"),
    [
        ((1, 1), ("float32", "float32"), 1),
        ((2, 5), ("float32", "int32"), 1),
        ((3, 1, 2), ("int64", "int64", "int64"), 1),
        ((1, 9), ("float32", "float32"), 2),
        ((1, 1), ("bool", "bool"), 2),
    ],
)
def test_large_tensors_of_narrow_rows_go_in_one_dispatch(widths, dtypes, most):
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 100, (70_001, w)).astype(d) for w, d in zip(widths, dtypes, strict=True)]
    given = [pellucid.tensor(part, device="webgpu") for part in parts]
    pellucid.webgpu.synchronize()
    before = pellucid.webgpu.memory_stats()["dispatches"]
    out = pellucid.cat(given, -1)
    pellucid.webgpu.synchronize()
    assert pellucid.webgpu.memory_stats()["dispatches"] - before == most
    equal(out, torch.cat([torch.from_numpy(part) for part in parts], -1))


def test_a_joined_tensor_is_the_same_when_it_is_fused_and_captured():
    def double(x, offset):
        parts = [x[k : k + 1] * k + offset for k in range(9)]
        return pellucid.cat([*parts, x[:1]]) * 2 - pellucid.stack([p[0] for p in parts] + [x[3]])

    x = normal(10, 6)
    compiled = pellucid.compile(double)
    for k in range(6):
        y = x + k
        got = compiled(pellucid.tensor(y, device="webgpu"), 0.5).numpy()
        rows = np.concatenate([y[:9] * np.arange(9)[:, None] + 0.5, y[:1]])
        other = np.concatenate([rows[:9], y[3:4]])
        np.testing.assert_allclose(got, rows * 2 - other, rtol=1e-5, atol=1e-5)
    assert compiled.explain().replays > 0


JOINS = ("cat", "stack", "hstack", "vstack", "dstack", "column_stack")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("join", JOINS)
def test_a_join_goes_into_out(join, device):
    theirs = [torch.arange(6).reshape(2, 3), torch.arange(6, 12).reshape(2, 3)]
    mine = [ours(t, device) for t in theirs]
    call = getattr(pellucid, join)
    expected = getattr(torch, join)(theirs)

    out = pellucid.zeros(tuple(expected.shape), dtype=pellucid.int64, device=device)
    assert call(mine, out=out) is out
    equal(out, expected)

    wide = pellucid.zeros((2, *expected.shape), device=device)
    call(mine, out=wide[1])
    equal(wide[1], expected.float())
    assert not wide[0].any().item()

    turned = pellucid.zeros(tuple(expected.shape)[::-1], device=device).permute(
        *reversed(range(expected.ndim))
    )
    call(mine, out=turned)
    equal(turned.contiguous(), expected.float())

    none = pellucid.zeros(0, device=device)
    assert call(mine, out=none) is none
    equal(none, getattr(torch, join)(theirs, out=torch.zeros(0)))

    other = pellucid.zeros(7, device=device)
    with pytest.warns(UserWarning, match=r"out had shape \(7,\) and is resized"):
        assert call(mine, out=other) is other
    equal(other, expected.float())
    with pytest.raises(DTypeError, match="does not fit into out"):
        call([m.float() for m in mine], out=out)
    with pytest.raises(GradientError, match="out= records no gradient"):
        call([m.float().requires_grad_() for m in mine], out=none)
    with pytest.raises(GradientError, match="out= records no gradient"):
        call([m.float() for m in mine], out=none.detach().requires_grad_())
    with pellucid.no_grad():
        assert call([m.float().requires_grad_() for m in mine], out=none) is none


@pytest.mark.parametrize("device", DEVICES)
def test_out_may_be_what_is_joined(device):
    x = pellucid.arange(12, device=device).reshape(4, 3)
    pellucid.cat([x[2:], x[:2]], out=x)
    equal(x, torch.arange(12).reshape(4, 3).roll(2, 0))


def test_padding_by_nothing_is_a_copy():
    for lib in (torch, pellucid):
        x = lib.ones(1, 2, 3, device="cpu")
        for mode in ("constant", "reflect", "replicate", "circular"):
            for pad in ((0, 0), (-1, 0)):
                lib.nn.functional.pad(x, pad, mode=mode).zero_()
        assert x.sum().item() == 6


def test_other_layouts_are_refused():
    for lib in (torch, pellucid):
        with pytest.raises(ValueError, match="strided"):
            lib.signal.windows.hann(5, layout=lib.sparse_coo)
