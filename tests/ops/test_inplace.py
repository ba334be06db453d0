"""Writing into tensors and views: strides, packed types at odd places, aliases, overlaps, versions."""

import inspect
import warnings

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from ops.values import equal, ours
from pellucid.errors import ArgumentError, DeviceError, DTypeError, GradientError, ShapeError
from pellucid.tensors.absent import public
from samples.sample import DTYPES

VIEWS = {
    "whole": lambda x: x,
    "rows": lambda x: x[1:3],
    "columns": lambda x: x[:, 1:4],
    "odd columns": lambda x: x[:, 1::2],
    "one column": lambda x: x[:, 3],
    "one row": lambda x: x[2],
    "one element": lambda x: x[3, 2],
    "transposed": lambda x: x.t(),
    "transposed part": lambda x: x.t()[2:4, 1:],
    "diagonal": lambda x: x.diagonal(),
    "part of a flat view": lambda x: x.reshape(-1)[3:18],
}


def grid(dtype: str) -> torch.Tensor:
    x = torch.arange(35).reshape(5, 7)
    return x % 3 == 0 if dtype == "bool" else x.to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_copy_into_views(dtype):
    """Neighbours of a view stay as they are, also where they share a word with it."""
    for name, view in VIEWS.items():
        for device in DEVICES:
            theirs = grid(dtype)
            mine = ours(theirs, device)
            part = view(theirs)
            values = (torch.arange(part.numel()).reshape(part.shape) * 5 + 1) % (
                2 if dtype == "bool" else 100
            )
            part.copy_(values.to(part.dtype))
            view(mine).copy_(ours(values.to(part.dtype), device))
            equal(mine, theirs, what=f"{name} on {device}")
            part.copy_(values.float())
            view(mine).copy_(ours(values.float(), device))
            equal(mine, theirs, what=f"{name} from float32 on {device}")
            view(mine).fill_(1)
            part.fill_(1)
            equal(mine, theirs, what=f"fill {name} on {device}")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
def test_arithmetic_into_views(dtype):
    for name, view in VIEWS.items():
        for device in DEVICES:
            theirs = grid(dtype)
            mine = ours(theirs, device)
            for x in (theirs, mine):
                part = view(x)
                part += 3
                part *= part
                part -= part[..., :1].clone() if part.ndim else 1
                part.add_(part, alpha=2)
            equal(mine, theirs, what=f"{name} on {device}")


def test_reversed_views():
    for dtype in ("float32", "uint8", "float16", "int64"):
        for device in DEVICES:
            x = ours(grid(dtype), device)
            expected = grid(dtype)
            x[::-2, ::-1][:, 1:3].mul_(2)
            expected[[0, 2, 4], 4:6] *= 2
            equal(x, expected, what=f"{dtype} on {device}")


ALIASED = {
    "itself": lambda x: x.add_(x),
    "its transpose": lambda x: x.add_(x.t()),
    "itself, shifted": lambda x: x[1:].add_(x[:-1]),
    "itself, shifted back": lambda x: x[:-1].mul_(x[1:]),
    "its own row": lambda x: x.sub_(x[0]),
    "its own column": lambda x: x.div_(x[:, 1:2] + 1),
    "one element": lambda x: x.add_(x[2, 2]),
    "columns of the same rows": lambda x: x[:, :2].copy_(x[:, 1:3]),
    "overlap within a row": lambda x: x.reshape(-1)[1:].copy_(x.reshape(-1)[:-1].clone()),
    "twice": lambda x: x.addcmul_(x, x),
}


@pytest.mark.parametrize("name", ALIASED)
def test_operands_that_share_memory(name):
    for dtype in ("float32", "float16", "uint8", "int64"):
        if name == "its own column" and not dtype.startswith("float"):
            continue
        base = torch.arange(25).reshape(5, 5)
        for device in DEVICES:
            theirs = base.to(getattr(torch, dtype))
            mine = ours(theirs, device)
            with torch.no_grad():
                # PyTorch leaves overlapping writes undefined; what is meant is the right side evaluated
                # first.
                expected = theirs.clone()
                {
                    "itself": lambda x, y: x.add_(y),
                    "its transpose": lambda x, y: x.add_(y.t()),
                    "itself, shifted": lambda x, y: x[1:].add_(y[:-1]),
                    "itself, shifted back": lambda x, y: x[:-1].mul_(y[1:]),
                    "its own row": lambda x, y: x.sub_(y[0]),
                    "its own column": lambda x, y: x.div_(y[:, 1:2] + 1),
                    "one element": lambda x, y: x.add_(y[2, 2]),
                    "columns of the same rows": lambda x, y: x[:, :2].copy_(y[:, 1:3]),
                    "overlap within a row": lambda x, y: x.reshape(-1)[1:].copy_(y.reshape(-1)[:-1]),
                    "twice": lambda x, y: x.addcmul_(y, y),
                }[name](expected, theirs)
            ALIASED[name](mine)
            equal(mine, expected, 1e-3 if dtype == "float16" else 1e-6, what=f"{dtype} on {device}")


@pytest.mark.parametrize("device", DEVICES)
def test_statements(device):
    x = pellucid.arange(6, device=device)
    y = x
    x += 1
    x *= 2
    x -= 1
    x //= 2
    x %= 4
    x |= 8
    x &= 13
    x ^= 1
    expected = torch.arange(6)
    expected = (((((expected + 1) * 2 - 1) // 2) % 4) | 8) & 13 ^ 1
    assert y is x
    equal(x, expected)
    z = pellucid.ones(3, device=device)
    z /= 4
    z **= 2
    assert z.tolist() == [0.0625] * 3


@pytest.mark.parametrize("device", DEVICES)
def test_versions(device):
    x = pellucid.zeros(3, 4, device=device)
    assert x._version == 0
    x.add_(1)
    x[1] = 5
    x[:, 0].mul_(2)
    assert x._version == x[0]._version == 3
    x.exp()
    assert x._version == 3


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = pellucid.zeros(2, 3, device=device)
    with pytest.raises(
        ShapeError,
        match=r"add_: the result has shape \(4, 2, 3\), the tensor that it is written into \(2, 3\)",
    ):
        x.add_(pellucid.zeros(4, 1, 3, device=device))
    with pytest.raises(ShapeError, match="expanded tensor has elements that share memory"):
        x[:, :1].expand(2, 3).add_(1)
    with pytest.raises(ShapeError, match=r"share memory, here of shape \(3, 3\) and strides \(1, 1\)"):
        x.as_strided((3, 3), (1, 1)).mul_(2)
    assert x.as_strided((2, 2), (3, 2)).zero_() is not None  # strides in any order that keep elements apart
    with pytest.raises(
        DTypeError, match=r"add_: a result of pellucid.float32 does not fit into a tensor of pellucid.int64"
    ):
        pellucid.zeros(2, dtype=pellucid.int64, device=device).add_(1.5)
    with pytest.raises(DTypeError, match="does not fit"):
        pellucid.zeros(2, dtype=pellucid.bool_, device=device).add_(1)
    with pytest.raises(ShapeError, match=r"src of shape \(5,\) does not broadcast to \(2, 3\)"):
        x.copy_(pellucid.zeros(5, device=device))
    leaf = pellucid.zeros(2, device=device, requires_grad=True)
    with pytest.raises(GradientError, match="a leaf that requires grad cannot be changed in place"):
        leaf.add_(1)
    with pytest.raises(GradientError, match="a leaf that requires grad"):
        leaf[0] = 1
    with pellucid.no_grad():
        leaf.add_(1)
    assert leaf.tolist() == [1, 1]
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_copy_from_the_other_device():
    x, y = pellucid.zeros(3, device="webgpu"), pellucid.arange(3, device="cpu")
    assert x.copy_(y).tolist() == [0, 1, 2]
    assert pellucid.zeros(3, device="cpu").copy_(x).tolist() == [0, 1, 2]


@pytest.mark.parametrize("device", DEVICES)
def test_out(device):
    x, y = pellucid.tensor([1.0, 2.0, 3.0], device=device), pellucid.tensor([4.0, 5.0, 6.0], device=device)
    out = pellucid.zeros(2, 3, device=device)
    row = out[1]
    assert pellucid.add(x, y, out=row) is row
    assert out.tolist() == [[0, 0, 0], [5, 7, 9]]
    pellucid.mul(x, 2, out=x)
    assert x.tolist() == [2, 4, 6]
    pellucid.exp(x - x, out=row)
    assert out[1].tolist() == [1, 1, 1]
    flags = pellucid.zeros(3, dtype=pellucid.bool_, device=device)
    pellucid.lt(x, y, out=flags)
    assert flags.tolist() == [True, True, False]
    with pytest.warns(UserWarning, match=r"add: out had shape \(2, 3\) and is resized to \(3,\)"):
        assert pellucid.add(x, y, out=out) is out
    assert out.shape == (3,)
    with pytest.raises(DeviceError, match="out on meta"):
        pellucid.add(x, y, out=pellucid.zeros(3, device="meta"))
    with pytest.raises(DTypeError, match=r"does not fit into out of pellucid\.bool"):
        pellucid.add(x, y, out=flags)
    with pytest.raises(GradientError, match="add: out= records no gradient"):
        pellucid.add(x.clone().requires_grad_(), y, out=row)


def test_what_pytorch_writes_into_out_is_written_here():
    def takes(call):
        code = call.__code__
        return "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    for place in ("", "fft", "linalg", "special"):
        ours = getattr(pellucid, place) if place else pellucid
        names = public()[f"out of torch{'.' * bool(place)}{place}"]
        have = {name: getattr(ours, name) for name in names if inspect.isfunction(getattr(ours, name, None))}
        assert len(have) > 15
        assert not [name for name, call in have.items() if not (takes(call) or takes(inspect.unwrap(call)))]


WRITTEN = {
    "sum": lambda p, x: p.sum(x, 1, out=p.zeros(2)),
    "cumsum": lambda p, x: p.cumsum(x, 0, out=p.empty(0)),
    "max": lambda p, x: p.max(x, 1, out=(p.zeros(2), p.zeros(2, dtype=p.int64))),
    "topk": lambda p, x: p.topk(x, 2, out=(p.zeros(0), p.zeros(0, dtype=p.int64))).values,
    "qr": lambda p, x: (lambda Q, R: Q @ R)(*p.linalg.qr(x, out=(p.zeros(2, 2), p.zeros(2, 3)))),
    "addmm": lambda p, x: p.addmm(x[:, :2], x, x.mT, beta=2, out=p.zeros(2, 2)),
    "overlapping": lambda p, x: p.flip(p.tril(x, out=x), (0,)),
    "whole numbers": lambda p, x: p.arange(3, out=p.zeros(3, dtype=p.int32)),
    "new": lambda p, x: p.full((2,), 3, out=p.zeros(2, dtype=p.float16)),
    "norm by place": lambda p, x: p.norm(x, 2, 1, False, p.zeros(2)),
    "norm and its type": lambda p, x: p.norm(x, 1, 0, True, p.zeros(1, 3), p.float32),
    "into a part": lambda p, x: (p.sum(x, 1, out=(whole := p.zeros(2, 2))[1]), whole),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", WRITTEN)
def test_out_as_in_pytorch(case, device):
    def run(p):
        found = WRITTEN[case](p, p.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]]))
        parts = found if isinstance(found, tuple) else (found,)
        return [(str(t.dtype).split(".")[1], np.array(t.tolist())) for t in parts]

    with pellucid.device(device):
        mine = run(pellucid)
    for (have, a), (wanted, b) in zip(mine, run(torch), strict=True):
        assert have == wanted
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_out_that_does_not_fit():
    with pellucid.device("cpu"):
        x, y = pellucid.ones(2, 3), pellucid.zeros(3)
        with pytest.raises(ArgumentError, match=r"there are 2 results\. As out, give as many"):
            pellucid.sort(x, out=(y,))
        with pytest.raises(ArgumentError, match="out"):
            pellucid.sum(x, out=3)
        with pytest.raises(GradientError, match="cumsum: out= records no gradient"):
            pellucid.cumsum(x.requires_grad_(), 0, out=pellucid.zeros(2, 3))
    with pytest.raises(DeviceError, match="out on meta"):
        pellucid.kron(y, y, out=pellucid.zeros(9, device="meta"))


FILLED = {
    "fill_": lambda p, x, v: x.fill_(v),
    "masked_fill": lambda p, x, v: x.masked_fill(p.tensor([True, False]), v),
    "masked_fill_": lambda p, x, v: x.masked_fill_(p.tensor([True, False]), v).sum().backward(),
    "fill_ of a view": lambda p, x, v: x[1:].fill_(v).sum().backward(),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FILLED)
def test_integers_lose_no_gradient_of_a_value(name, device):
    """PyTorch refuses some when they are called, others when the walk comes to them."""

    def filled(p, dtype, **there):
        value = p.tensor(2.0, requires_grad=True, **there)
        return FILLED[name](p, p.zeros(2, dtype=dtype, **there), value)

    with pytest.raises(RuntimeError):
        filled(torch, torch.int64).sum().backward()
    with pellucid.device(device):
        with pytest.raises(GradientError, match=r"fill_?: the value requires grad"):
            filled(pellucid, pellucid.int64)
        with pellucid.no_grad():
            FILLED["fill_"](
                pellucid, pellucid.zeros(2, dtype=pellucid.int64), pellucid.ones((), requires_grad=True)
            )


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized:UserWarning")
@pytest.mark.filterwarnings("ignore:The number of elements in the out tensor:UserWarning")
@pytest.mark.filterwarnings("ignore:add. out had shape:UserWarning")
@pytest.mark.parametrize("device", DEVICES)
def test_out_of_another_shape_is_resized(device):
    """As in PyTorch, with a warning: its memory grows where it is too short, also under a view of it."""
    calls = [
        (lambda t, x, out: t.add(x, 1, out=out), (2,)),
        (lambda t, x, out: t.exp(x, out=out), (3, 4)),
        (lambda t, x, out: t.mm(x, x, out=out), (1,)),
        (lambda t, x, out: t.cumsum(x, 0, out=out), (2, 3)),
        (lambda t, x, out: t.arange(5, out=out), (2,)),
        (lambda t, x, out: t.sort(x, out=(out, t.zeros(1, dtype=t.int64, device=x.device))), (4,)),
    ]
    for call, shape in calls:
        found = []
        for lib in (torch, pellucid):
            d = "cpu" if lib is torch else device
            out = lib.full(shape, 7.0, device=d)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                made = call(lib, lib.arange(9.0, device=d).reshape(3, 3) / 8, out)
            assert "resize" in str(seen[0].message)
            assert seen[0].filename == __file__
            assert (made[0] if isinstance(made, tuple) else made) is out
            found.append(out.tolist())
        np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    found = []
    for lib in (torch, pellucid):
        whole = lib.zeros(4, 2, device="cpu" if lib is torch else device)
        lib.add(lib.ones(3, 2, device=whole.device), 1, out=whole[1:3])
        found.append(whole.tolist())
    assert found[0] == found[1] == [[0.0, 0.0], *[[2.0, 2.0]] * 3]


@pytest.mark.parametrize("device", DEVICES)
def test_out_of_another_shape_that_shares_memory_is_refused(device):
    """With itself, or with what the result is made of: to resize it would write over that."""
    for lib in (torch, pellucid):
        x = lib.arange(6.0, device="cpu" if lib is torch else device)
        for out in (x[:1].expand(3), x[:4]):
            with pytest.raises(RuntimeError):
                lib.index_select(x, 0, lib.zeros(2, dtype=lib.int64, device=x.device), out=out)
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
