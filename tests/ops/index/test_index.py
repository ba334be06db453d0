"""Embedding, gather, scatter and index tensors against PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import check, normal, plain
from pellucid.ops.index.rows import embedding
from pellucid.ops.index.selection import index_get, index_put, put_at, take_at


def places(limit: int, *shape: int, dtype=np.int64) -> np.ndarray:
    return np.random.randint(0, limit, shape).astype(dtype)


def test_gradients_have_the_same_bits_every_time():
    ids, g = places(50, 4000), normal(4000, 8)
    found = []
    for _ in range(3):
        weight = pellucid.tensor(np.zeros((50, 8), np.float32), device="webgpu", requires_grad=True)
        embedding(weight, pellucid.tensor(ids, device="webgpu")).backward(pellucid.tensor(g, device="webgpu"))
        found.append(plain(weight.grad))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


@pytest.mark.parametrize("bad", [11, -1, 2**32, -(2**40)])
def test_a_bad_index_is_raised_by_the_next_read(bad):
    weight = pellucid.tensor(normal(11, 4), device="webgpu")
    out = embedding(weight, pellucid.tensor([1, bad, 3], device="webgpu"))
    with pytest.raises(IndexError, match=f"{bad}"):
        out.numpy()
    assert plain(embedding(weight, pellucid.tensor([1], device="webgpu"))).shape == (1, 4)
    with pytest.raises(IndexError, match=f"{bad}"):
        embedding(weight.cpu(), pellucid.tensor([1, bad, 3], device="cpu"))


@pytest.mark.parametrize("count", [5, 50])
def test_the_last_of_equal_places_stays(count):
    x = pellucid.zeros(3, device="webgpu")
    index = pellucid.tensor([1] * count, device="webgpu")
    out = x.scatter(0, index, pellucid.arange(count, device="webgpu").float())
    assert out.tolist() == [0, count - 1, 0]


INDICES = [
    ([0],),
    ([0, 2], [1, 1]),
    ([[0, 3], [2, -1]],),
    (None, [1, -2, 0]),
    (None, [0, 1], [2, 2]),
    ([1, 0], None, [3, -1]),
    ([[0], [1]], [2, 3]),
    ([1], [2], [0, 4]),
]


@pytest.mark.parametrize("indices", INDICES)
def test_index_tensors(indices):
    def key(p, device=None):
        return [None if i is None else p.tensor(i, **({"device": device} if device else {})) for i in indices]

    def theirs(p, x):
        return x[tuple(slice(None) if i is None else i for i in key(torch))]

    def write(p, x, v):
        x = x.clone()
        x[tuple(slice(None) if i is None else i for i in key(torch))] = v
        return x

    def add(p, x, v):
        full = [torch.arange(n).view([-1 if k == j else 1 for j in range(3)]) for k, n in enumerate(x.shape)]
        places = [f.expand(x.shape)[tuple(slice(None) if i is None else i for i in key(torch))] for f in full]
        return x.index_put(tuple(places), v.expand(places[0].shape), accumulate=True)

    x = normal(4, 5, 6)
    shape = torch.tensor(x)[tuple(slice(None) if i is None else torch.tensor(i) for i in indices)].shape
    check(lambda p, x: index_get(x, key(p, x.device)), x, theirs=theirs)
    check(
        lambda p, x, v: index_put(x, key(p, x.device), v),
        x,
        normal(*shape),
        theirs=write,
        layouts=("contiguous", "strided"),
    )
    check(
        lambda p, x, v: index_put(x, key(p, x.device), v, True),
        x,
        normal(*shape),
        theirs=add,
        layouts=("contiguous",),
    )


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_take_and_put_by_axis(device):
    x = pellucid.tensor(normal(4, 5), device=device)
    before = plain(x).copy()
    index = {1: pellucid.tensor([0, -1], device=device)}
    np.testing.assert_array_equal(plain(take_at(x, index)), before[:, [0, -1]])
    put_at(x, index, pellucid.tensor(7, device=device))
    before[:, [0, -1]] = 7
    np.testing.assert_array_equal(plain(x), before)


def test_a_bad_index_tensor_is_raised():
    x = pellucid.tensor(normal(4, 5), device="webgpu")
    for bad in (4, -5):
        with pytest.raises(IndexError):
            index_get(x, [pellucid.tensor([0, bad], device="webgpu")]).numpy()
