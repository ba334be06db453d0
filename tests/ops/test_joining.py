"""Joining, repeating and reordering against PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import DTYPES, equal, ours
from pellucid.errors import ShapeError

MOVES = {
    "cat": lambda p, x: (
        p.cat([x, x[:, 1:]], 1),
        p.cat((x, x.flip(0)), -1),
        p.cat([x[:0], x]),
        p.concat([x, x]),
    ),
    "cat of many": lambda p, x: (
        p.cat([x[k % 2] * (k + 1) for k in range(9)]),
        p.cat([x, x[:, :2], x, x[:, :0], x[:, 1:], x], 1),
        p.cat([x, x[..., 1:], x.flip(2), x[..., :1]] * 4, -1),
        p.cat([x, x.transpose(0, 1)[:, :1].transpose(0, 1)[:, :3], x[1:], x]),
    ),
    "stack of many": lambda p, x: (
        p.stack([x[1, k % 3] for k in range(30)]),
        p.stack([x[0], x[1], x[0] * x[1]], 1),
        p.stack([x[k % 2, k % 3, k % 4] for k in range(17)]),
        p.stack([x] * 8, -1),
    ),
    "stack": lambda p, x: (p.stack([x, x * 2]), p.stack((x, x), -1), p.stack([x, x], 1)),
    "hstack and vstack": lambda p, x: (
        p.hstack([x, x]),
        p.vstack([x, x]),
        p.hstack([x[0, 0], x[0, 1]]),
        p.vstack([x[0, 0], x[0, 1]]),
    ),
    "repeat": lambda p, x: (x.repeat(2, 1, 3), x.repeat(2, 1, 1, 2), p.tile(x, (2, 3))),
    "repeat_interleave": lambda p, x: (
        x.repeat_interleave(2),
        x.repeat_interleave(3, 1),
        p.repeat_interleave(x, 2, dim=-1),
    ),
    "flip": lambda p, x: (x.flip(0), x.flip(0, -1), p.flip(x, (1, 2))),
    "roll": lambda p, x: (x.roll(1), x.roll(-1, 0), p.roll(x, (1, 2), (0, 2)), x.roll(5, 1)),
}


@pytest.mark.parametrize("name", MOVES)
def test_values_and_gradients(name):
    check(MOVES[name], normal(2, 3, 4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_moves(dtype):
    x = (torch.arange(24) % (2 if dtype == "bool" else 100)).reshape(2, 3, 4).to(getattr(torch, dtype))
    for device in DEVICES:
        y = ours(x, device)
        for name in ("cat", "cat of many", "stack", "stack of many", "flip", "roll", "repeat"):
            mine, theirs = MOVES[name](pellucid, y), MOVES[name](torch, x)
            for m, t in zip(mine, theirs, strict=True):
                equal(m.contiguous(), t, what=f"{name} on {device}")


@pytest.mark.parametrize(
    "dtypes",
    [
        ("int32", "float32", "int64", "float32", "bool", "float16", "bfloat16", "uint8", "float32"),
        ("int64", "int32", "int16", "bool", "uint8", "int8", "int64", "int32"),
        ("uint8", "int32", "bool", "int16", "int32"),
        ("float16", "bool", "float16", "float16"),
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_many_of_several_types_become_their_common_one(dtypes, device):
    x = torch.arange(-7, 13).reshape(4, 5)
    parts = [(x % 2 if d == "bool" else x.abs() if d == "uint8" else x).to(getattr(torch, d)) for d in dtypes]
    for dim in (0, 1):
        got = pellucid.cat([ours(t, device)[1:, :3].contiguous()[1:] for t in parts], dim)
        equal(got, torch.cat([t[2:, :3] for t in parts], dim))


def test_small_and_large_and_strided_tensors_are_joined_in_their_order():
    sizes = (3, 70000, 2, 5, 1, 66000, 4, 4)
    parts = [torch.randn(2, n) for n in sizes]
    mine = [pellucid.tensor(p.numpy(), device="webgpu") for p in parts]
    mine[3] = mine[3].t().contiguous().t()
    equal(pellucid.cat(mine, 1), torch.cat(parts, 1))


@pytest.mark.parametrize(("count", "most"), [(2, 2), (3, 1), (7, 1), (8, 2), (30, 5)])
def test_seven_small_tensors_go_in_one_dispatch(count, most):
    parts = [pellucid.randn(1, 576, device="webgpu") for _ in range(count)]
    pellucid.webgpu.synchronize()
    before = pellucid.webgpu.memory_stats()["dispatches"]
    out = pellucid.cat(parts)
    pellucid.webgpu.synchronize()
    assert pellucid.webgpu.memory_stats()["dispatches"] - before == most
    assert out[count - 1].tolist() == parts[-1][0].tolist()


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


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = pellucid.zeros(2, 3, 4, device=device)
    refused = [
        (
            ShapeError,
            r"shapes \(2, 3, 4\), \(2, 3, 3\) must agree in every axis but 0",
            lambda: pellucid.cat([x, x[:, :, 1:]]),
        ),
        (ShapeError, r"stack: shapes", lambda: pellucid.stack([x, x[0]])),
        (TypeError, r"non-empty tuple or list of tensors", lambda: pellucid.cat([])),
        (ShapeError, r"stack: there are no tensors", lambda: pellucid.stack([])),
        (ShapeError, r"hstack: there are no tensors", lambda: pellucid.hstack([])),
        (ShapeError, r"vstack: there are no tensors", lambda: pellucid.vstack([])),
        (ShapeError, r"roll: 2 shifts for 1 axes", lambda: x.roll((1, 2), 0)),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
