"""New tensors against PyTorch: from data, from shapes, from ranges; and back to Python and numpy."""

import copy
import pickle

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from ops.values import equal
from pellucid.errors import DTypeError, ShapeError
from samples.sample import DTYPES


def test_like():
    for device in DEVICES:
        for dtype in DTYPES:
            d, t = getattr(pellucid, "bool_" if dtype == "bool" else dtype), getattr(torch, dtype)
            x, y = pellucid.ones(2, 3, dtype=d, device=device), torch.ones(2, 3, dtype=t)
            equal(pellucid.zeros_like(x), torch.zeros_like(y))
            equal(pellucid.ones_like(x, dtype=pellucid.int64), torch.ones_like(y, dtype=torch.int64))
            equal(pellucid.full_like(x, 1), torch.full_like(y, 1))
            equal(x.new_zeros(4), y.new_zeros(4))
            equal(x.new_ones((2, 1)), y.new_ones((2, 1)))
            equal(x.new_full((2,), 1), y.new_full((2,), 1))
            equal(x.new_tensor([0, 1]), y.new_tensor([0, 1]))
            assert pellucid.empty_like(x).shape == x.new_empty(2, 3).shape == (2, 3)


DATA = [
    1, 1.5, True, [], [[]], [1, 2], [1, 2.5], [True, False], [[1, 2], [3, 4]], (1, 2), [[[1.0]]],
    np.arange(6).reshape(2, 3)[:, ::2], np.float32(2), np.arange(3, dtype=np.uint8),
    np.zeros((0, 2), np.float32), [np.float32(1), 2], [2**40], np.arange(4.0, dtype=np.float16)[::-1].copy(),
]  # fmt: skip


def test_from_data():
    for data in DATA:
        for device in DEVICES:
            equal(pellucid.tensor(data, device=device), torch.tensor(data), what=repr(data))
    for device in DEVICES:
        x = pellucid.tensor([1.0, 2.0], device=device)
        equal(pellucid.tensor([x[0], 3.0], device=device), torch.tensor([1.0, 3.0]))
        y = pellucid.tensor(x)
        assert y._storage is not x._storage
        assert pellucid.as_tensor(x) is x
        assert pellucid.tensor([1.7, -1.7], dtype=pellucid.int64, device=device).tolist() == [1, -1]


def test_refused():
    with pytest.raises(ShapeError, match="tensor: nested lists must have equal lengths"):
        pellucid.tensor([[1], [2, 3]])
    with pytest.raises(TypeError, match="cannot make a tensor of str"):
        pellucid.tensor("abc")
    with pytest.raises(DTypeError, match=r"pellucid\.float64 does not exist on webgpu"):
        pellucid.tensor(np.zeros(2), device="webgpu")
    with pytest.raises(DTypeError, match=r"numpy dtype uint64 has no counterpart"):
        pellucid.tensor(np.zeros(2, np.uint64), device="cpu")
    with pytest.raises(ValueError, match="arange: step -1 does not lead from 0 to 3"):
        pellucid.arange(0, 3, -1)
    with pytest.raises(ShapeError, match="negative length"):
        pellucid.zeros(2, -1)
    with pytest.raises(TypeError, match="a size must be an integer, not float"):
        pellucid.zeros(2.5)


def test_from_numpy_shares_memory():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = pellucid.from_numpy(a)
    a[0, 0] = 9
    assert x[0, 0].item() == 9
    x.mul_(2)
    assert a[1, 2] == 10
    assert x.device.type == "cpu"
    y = pellucid.from_numpy(a.T)
    y[0, 1] = -1
    assert a[1, 0] == -1


def test_python_values():
    for device in DEVICES:
        x = pellucid.tensor([[1, 2], [3, 4]], device=device)
        assert x.tolist() == [[1, 2], [3, 4]]
        assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
        assert len(x) == 2
        assert 3 in x
        assert 7 not in x
        one = x[0, 0]
        assert (int(one), float(one), bool(one), [10, 20][one]) == (1, 1.0, True, 20)
        assert f"{one}" == "1"
        assert f"{x.float()[0, 1]:.2f}" == "2.00"
        assert range(x[0, 1])[-1] == 1
        with pytest.raises(ShapeError, match=r"item: a tensor of shape \(2, 2\) has 4 elements, not one"):
            x.item()
        with pytest.raises(ShapeError, match="bool: a tensor of 4 elements is neither true nor false"):
            bool(x)
        with pytest.raises(TypeError, match="only integer tensors"):
            [1][pellucid.tensor(0.0, device=device)]
        with pytest.raises(TypeError, match="without axes"):
            len(one)
        with pytest.raises(TypeError, match="without axes"):
            iter(one)
        assert {x: 1}[x] == 1


def test_numpy_interchange():
    for device in DEVICES:
        x = pellucid.tensor([1.0, 2.0, 4.0], device=device)
        a = np.asarray(x)
        assert a.dtype == np.float32
        assert a.tolist() == [1.0, 2.0, 4.0]
        assert np.asarray(x, dtype=np.float64).dtype == np.float64
        assert np.array(x).tolist() == [1.0, 2.0, 4.0]
        for out in (
            x + np.float32(2),
            np.float32(2) + x,
            x * np.int64(2),
            np.float64(3) - x,
            x > np.float32(1),
        ):
            assert isinstance(out, pellucid.Tensor)
            assert out.device.type == device
        equal(np.float64(3) - x, torch.tensor([2.0, 1.0, -1.0]))
        equal(np.float32(8) / x, torch.tensor([8.0, 4.0, 2.0]))
        assert np.sqrt(np.asarray(x)).tolist()[2] == 2.0
        assert x.numpy(force=True).tolist() == [1.0, 2.0, 4.0]


def test_copies_and_pickles():
    for device in DEVICES:
        for dtype in ("float32", "bfloat16", "int64", "bool_"):
            x = pellucid.ones(2, 3, dtype=getattr(pellucid, dtype), device=device)[:, 1:]
            y = pickle.loads(pickle.dumps(x))
            assert (y.dtype, y.device, y.shape, y.tolist()) == (x.dtype, x.device, x.shape, x.tolist())
            z = copy.deepcopy(x)
            assert z._storage is not x._storage
            assert z.tolist() == x.tolist()
        w = pellucid.ones(2, device=device, requires_grad=True)
        assert pickle.loads(pickle.dumps(w)).requires_grad
        assert copy.deepcopy(w).requires_grad
        assert copy.deepcopy({"a": w, "b": [w]})["b"][0].is_leaf
        assert copy.copy(w).tolist() == [1, 1]


def test_moving_between_devices():
    x = pellucid.tensor([1.0, 2.0], device="webgpu", requires_grad=True)
    y = (x * 2).cpu()
    assert y.device.type == "cpu"
    (y * y).sum().backward()
    assert x.grad.device.type == "webgpu"
    assert x.grad.tolist() == [8.0, 16.0]
    z = pellucid.ones(2, dtype=pellucid.float64, device="cpu")
    assert z.to("webgpu", pellucid.float32).dtype is pellucid.float32
    assert z.to(x).device.type == "webgpu"
    assert x.to("webgpu") is x
    assert x.to(pellucid.float32) is x
    assert x.to(copy=True) is not x
    assert x.to("cpu", pellucid.float64).dtype is pellucid.float64
    with pytest.raises(DTypeError, match=r"float64 does not exist on webgpu"):
        z.to("webgpu")
    with pytest.raises(DTypeError, match=r"float64 does not exist on webgpu"):
        x.double()
    with pytest.raises(TypeError, match=r"to\(\): takes a dtype, a device or a tensor, not int 3"):
        x.to(3)


def test_default_device():
    assert pellucid.zeros(1).device.type == "webgpu"
    with pellucid.device("cpu"):
        assert (
            pellucid.zeros(1).device.type
            == pellucid.tensor([1]).device.type
            == pellucid.rand(1).device.type
            == "cpu"
        )
        with pellucid.device("webgpu"):
            assert pellucid.arange(3).device.type == "webgpu"
    assert pellucid.zeros(1).device.type == "webgpu"


REPRS = [
    torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.5, 2, 3]), torch.tensor([[1, 2], [3, 40]]),
    torch.tensor(3.25), torch.tensor(7), torch.tensor(True), torch.tensor([True, False]),
    torch.tensor([1e-5, 1.0]), torch.tensor([1e9, 1.0]), torch.tensor([123456.0, 0.001]),
    torch.tensor([float("nan"), 1.0]), torch.tensor([float("inf"), -1.5]), torch.tensor([-0.5, 100.25]),
    torch.zeros(2, 3), torch.zeros(0), torch.zeros(0, 3), torch.zeros(2, 0, dtype=torch.int64),
    torch.arange(30).reshape(2, 3, 5), torch.arange(2000), torch.arange(2000.0).reshape(40, 50),
    torch.linspace(-1, 1, 40), torch.arange(60).reshape(2, 30), torch.tensor([1.0, 2.5], dtype=torch.float16),
    torch.tensor([1, 2], dtype=torch.int32), torch.tensor([1, 2], dtype=torch.uint8),
    torch.tensor([0.1], dtype=torch.bfloat16), torch.tensor([[0.1234567, -10.5]]), torch.tensor([1e-8]),
    torch.tensor([1e20]), torch.arange(3000).reshape(10, 10, 30), torch.full((2, 2), 1e5),
    torch.tensor([float("nan")]), torch.tensor([float("inf")]), torch.tensor([0.0, 1e-3]),
    torch.tensor(-1e-10), torch.tensor([99999999.0, 1.5]),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(REPRS)))
def test_repr_is_pytorchs(k):
    t = REPRS[k]
    name = "bool_" if t.dtype is torch.bool else str(t.dtype)[6:]
    values = (t.float() if t.dtype is torch.bfloat16 else t).numpy()
    expected = repr(t).replace("torch.", "pellucid.")
    assert repr(pellucid.tensor(values, dtype=getattr(pellucid, name), device="webgpu")) == expected


def test_repr_of_the_graph():
    x = pellucid.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"
    assert str(x.detach()) == "tensor([1., 1.])"
    assert repr(pellucid.ones(2, device="cpu")) == "tensor([1., 1.], device='cpu')"
    assert repr(x.shape) == "Size([2])"
    assert repr(x.dtype) == "pellucid.float32"
    assert repr(x.device) == "device(type='webgpu')"


def test_integers_past_int64_are_refused():
    for value in (2**63, [2**63, 2**64 - 1]):
        with pytest.raises(ValueError, match="larger than int64 holds"):
            pellucid.tensor(value, device="cpu")
