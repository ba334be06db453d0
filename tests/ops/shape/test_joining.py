"""Joining, repeating and reordering against PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import DTYPES, equal, ours
from pellucid.errors import DeviceError, DimensionError, DTypeError, GradientError, ShapeError

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


JOINS = ("cat", "stack", "hstack", "vstack", "dstack", "column_stack")
# Shapes and dtypes of what is joined: in PyTorch most of them are, some are refused.
GIVEN = {
    "a matrix twice": [((2, 3), "float32"), ((2, 3), "float32")],
    "more rows": [((2, 3), "float32"), ((4, 3), "float32")],
    "more columns": [((2, 3), "float32"), ((2, 4), "float32")],
    "rows": [((3,), "float32"), ((3,), "float32"), ((3,), "float32")],
    "numbers": [((), "float32"), ((), "int64")],
    "a number and a row": [((), "float32"), ((2,), "float32")],
    "a row and a matrix": [((3,), "float32"), ((2, 3), "float32")],
    "cubes": [((2, 3, 4), "float16"), ((2, 3, 4), "float16")],
    "an empty row before a matrix": [((0,), "float32"), ((2, 3), "float32")],
    "an empty row between matrices": [((2, 3), "int32"), ((0,), "int64"), ((2, 3), "int32")],
    "an empty matrix": [((2, 3), "float32"), ((0, 3), "float32")],
    "an empty matrix of other width": [((1, 0), "float32"), ((2, 3), "float32")],
    "empty rows only": [((0,), "int32"), ((0,), "float32")],
    "bool and int": [((2, 2), "bool"), ((2, 2), "int32")],
    "int and half": [((2, 2), "int64"), ((2, 2), "float16")],
    "half and bfloat16": [((2, 2), "float16"), ((2, 2), "bfloat16")],
    "one": [((2, 2), "float32")],
}


def _given(name):
    count = 0
    for shape, dtype in GIVEN[name]:
        n = int(np.prod(shape))
        yield (
            (torch.arange(count, count + n) % (2 if dtype == "bool" else 1000))
            .reshape(shape)
            .to(getattr(torch, dtype))
        )
        count += n


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("join", JOINS)
def test_what_is_joined_and_refused_is_what_pytorch_joins_and_refuses(join, given, device):
    theirs = list(_given(given))
    mine = [ours(t, device) for t in theirs]
    for more in ({}, {"dim": 1}, {"dim": -1}, {"dim": 2}) if join in ("cat", "stack") else ({},):
        try:
            expected = getattr(torch, join)(theirs, **more)
        except (RuntimeError, IndexError) as error:
            with pytest.raises(IndexError if isinstance(error, IndexError) else ShapeError):
                getattr(pellucid, join)(mine, **more)
        else:
            equal(getattr(pellucid, join)(mine, **more), expected, what=f"{join} {more}")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("join", JOINS)
def test_joins_have_gradients(join, device):
    theirs = [torch.randn(2, 3, requires_grad=True) for _ in range(2)]
    mine = [ours(t.detach(), device).requires_grad_() for t in theirs]
    (getattr(torch, join)(theirs) ** 2).sum().backward()
    (getattr(pellucid, join)(mine) ** 2).sum().backward()
    for m, t in zip(mine, theirs, strict=True):
        equal(m.grad, t.grad)


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

    with pytest.raises(ShapeError, match=r"out \(7,\). Give a tensor of that shape, or one without elements"):
        call(mine, out=pellucid.zeros(7, device=device))
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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("join", JOINS)
def test_what_is_not_a_list_of_tensors_is_refused(join, device):
    call, x = getattr(pellucid, join), pellucid.zeros(2, 3, device=device)
    with pytest.raises(ValueError, match=f"{join}: 'tensors' is empty. Give at least one tensor"):
        call([])
    with pytest.raises(RuntimeError, match="is empty"):
        call(())
    with pytest.raises(TypeError, match=rf"{join}\(\): argument 'tensors' must be a non-empty tuple or list"):
        call(x)
    with pytest.raises(TypeError, match=rf"{join}\(\): argument 'tensors' must be Tensor, not int 1"):
        call([x, 1])
    with pytest.raises(ShapeError, match=rf"{join}: tensor 0 has shape \(2, 3.* and tensor 1 \(5, 7"):
        call([x, pellucid.zeros(5, 7, device=device)])
    with pytest.raises(DeviceError, match=f"{join}: "):
        call([x, pellucid.zeros(2, 3, device="meta")])


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = pellucid.zeros(2, 3, 4, device=device)
    refused = [
        (
            ShapeError,
            r"tensor 0 has shape \(2, 3, 4\) and tensor 2 \(2, 3, 3\): they must agree in every axis but 0",
            lambda: pellucid.cat([x, x, x[:, :, 1:]]),
        ),
        (
            ShapeError,
            r"cat: tensor 1 has shape \(2, 3, 4\) and tensor 2 \(3, 4\). Bring both to the same number of",
            lambda: pellucid.cat([x[:0, 0, 0], x, x[0]]),
        ),
        (
            ShapeError,
            r"cat: tensor 1 has no axis to be joined along",
            lambda: pellucid.cat([x[0, 0], x.sum()]),
        ),
        (
            ShapeError,
            r"stack: tensor 0 has shape \(2, 3, 4\) and tensor 1 \(3, 4\); all must have the same",
            lambda: pellucid.stack([x, x[0]]),
        ),
        (DimensionError, r"dimension -4 is out of range", lambda: pellucid.cat([x, x], -4)),
        (TypeError, r"cat\(\): argument 'out' must be Tensor, not int 3", lambda: pellucid.cat([x], out=3)),
        (
            TypeError,
            r"add\(\): argument 'out' must be Tensor, not tuple",
            lambda: pellucid.add(x, x, out=(x,)),
        ),
        (DimensionError, r"dimension 4 is out of range", lambda: pellucid.stack([x, x], 4)),
        (ShapeError, r"roll: 2 shifts for 1 axes", lambda: x.roll((1, 2), 0)),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
