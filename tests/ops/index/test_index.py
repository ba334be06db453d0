"""Embedding, gather, scatter and index tensors against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import pellucid
from ops.oracle import check, check_error, normal, plain
from pellucid.errors import DTypeError, ShapeError
from pellucid.ops.index.rows import embedding
from pellucid.ops.index.selection import index_get, index_put, put_at, take_at


def places(limit: int, *shape: int, dtype=np.int64) -> np.ndarray:
    return np.random.randint(0, limit, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (), (2, 0)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_embedding(shape, dtype):
    ids = places(11, *shape, dtype=dtype)
    check(lambda p, w, i: embedding(w, i), normal(11, 6), ids, theirs=lambda p, w, i: F.embedding(i, w))


def test_embedding_gradient_of_many_equal_rows():
    ids = places(5, 3000)
    check(
        lambda p, w, i: embedding(w, i),
        normal(5, 3),
        ids,
        theirs=lambda p, w, i: F.embedding(i, w),
        rtol=1e-4,
        atol=1e-4,
        layouts=("contiguous",),
    )
    check(
        lambda p, w, i: embedding(w, i, 2),
        normal(5, 3),
        ids[:40],
        theirs=lambda p, w, i: F.embedding(i, w, 2),
        layouts=("contiguous",),
    )


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


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_select(dim):
    check(lambda p, x, i: p.index_select(x, dim, i), normal(4, 5, 6), places(4, 9))
    check(lambda p, x, i: x.index_select(dim, i), places(99, 4, 5, 6, dtype=np.int32), places(4, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int32, np.uint8, np.bool_])
def test_every_dtype_can_be_picked(dtype):
    x = (normal(6, 5) * 3).astype(dtype)
    check(
        lambda p, x, i: (p.index_select(x, 0, i), p.gather(x, 0, i.reshape(2, 2))),
        x,
        places(6, 4),
        grad=False,
    )


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather(dim):
    x = normal(4, 5, 6)
    check(lambda p, x, i: p.gather(x, dim, i), x, places(4, 4, 5, 6))
    check(lambda p, x, i: p.gather(x, dim, i), x, places(4, 2, 3, 4))
    long = [3, 4, 5]
    long[dim] = 30
    check(lambda p, x, i: x.gather(dim, i), x, places(4, *long), rtol=1e-4, atol=1e-4)


def test_gather_of_one_logit_per_row():
    check(
        lambda p, x, i: x.log_softmax(-1).gather(-1, i.unsqueeze(-1)).squeeze(-1),
        normal(9, 50),
        places(50, 9),
    )


def test_take_along_dim():
    check(lambda p, x, i: p.take_along_dim(x, i, 1), normal(4, 5), places(5, 4, 2))
    check(lambda p, x, i: p.take_along_dim(x, i, 1), normal(4, 5), places(5, 1, 3))
    check(lambda p, x, i: p.take_along_dim(x, i), normal(4, 5), places(20, 7), layouts=("contiguous",))


@pytest.mark.parametrize("sources", [3, 40])
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_add(dim, sources):
    shape = [6, 7]
    shape[dim] = sources
    check(
        lambda p, x, i, s: p.scatter_add(x, dim, i, s),
        normal(6, 7),
        places(6, *shape),
        normal(*shape),
        atol=1e-4,
    )
    check(lambda p, x, i, s: x.scatter_add(dim, i, s), places(9, 6, 7), places(6, *shape), places(9, *shape))


def test_scatter_add_of_a_part():
    check(
        lambda p, x, i, s: p.scatter_add(x, 0, i, s),
        normal(6, 7),
        places(6, 3, 4),
        normal(5, 6),
        layouts=("contiguous",),
        grad=False,
    )
    check(
        lambda p, x, i, s: p.scatter_add(x, 1, i, s),
        normal(6, 7),
        places(7, 3, 40),
        normal(3, 40),
        layouts=("contiguous",),
        atol=1e-4,
    )


@pytest.mark.parametrize("columns", [5, 60])
def test_scatter(columns):
    # Distinct places: PyTorch leaves open which of equal places stays.
    index = np.stack([np.random.permutation(60)[:columns] for _ in range(4)])
    check(lambda p, x, i, s: p.scatter(x, 1, i, s), normal(4, 60), index, normal(4, columns))
    check(lambda p, x, i: x.scatter(1, i, 2.5), normal(4, 60), index)
    check(lambda p, x, i: x.scatter(1, i, value=7), places(9, 4, 60), index)


@pytest.mark.parametrize("count", [5, 50])
def test_the_last_of_equal_places_stays(count):
    x = pellucid.zeros(3, device="webgpu")
    index = pellucid.tensor([1] * count, device="webgpu")
    out = x.scatter(0, index, pellucid.arange(count, device="webgpu").float())
    assert out.tolist() == [0, count - 1, 0]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_add(dim):
    shape = [4, 5, 6]
    shape[dim] = 9
    check(lambda p, x, i, s: x.index_add(dim, i, s), normal(4, 5, 6), places(4, 9), normal(*shape), atol=1e-4)
    check(
        lambda p, x, i, s: x.clone().index_add_(dim, i, s, alpha=2),
        normal(4, 5, 6), places(4, 9), normal(*shape), layouts=("contiguous",), atol=1e-4,
    )  # fmt: skip


def test_in_place_forms():
    index = np.stack([np.random.permutation(9)[:3] for _ in range(4)])
    check(lambda p, x, i, s: x.clone().scatter_(1, i, s), normal(4, 9), index, normal(4, 3))
    check(lambda p, x, i: x.clone().scatter_(1, i, 1.0), normal(4, 9), index)
    check(lambda p, x, i, s: x.clone().scatter_add_(1, i, s), normal(4, 9), index, normal(4, 3))
    check(lambda p, x, i, v: x.clone().index_put_((i,), v), normal(4, 9), np.array([2, 0]), normal(2, 9))
    x = pellucid.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.scatter_(0, pellucid.tensor([0]), 1.0)


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


def test_repeated_indices_accumulate():
    index = [[1, 1, 1, 0, 1] * 20]
    check(
        lambda p, x, v: index_put(x, [pellucid.tensor(i, device=x.device) for i in index], v, True),
        normal(3, 4), normal(100, 4),
        theirs=lambda p, x, v: x.index_put(tuple(torch.tensor(i) for i in index), v, accumulate=True),
        atol=1e-4,
    )  # fmt: skip


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


def test_nonzero_and_masked_select():
    x = np.random.randint(0, 2, (4, 5))
    check(lambda p, x: p.nonzero(x), x)
    check(lambda p, x: p.nonzero(x, as_tuple=True), x)
    check(lambda p, x, m: p.masked_select(x, m), normal(4, 5), x.astype(bool))
    check(lambda p, x, m: p.masked_select(x, m), normal(4, 5), np.zeros(5, bool), layouts=("contiguous",))
    check(lambda p, x: p.nonzero(x), np.float32(2), grad=False)


def test_errors():
    x = normal(3, 4)
    check_error(lambda p, x, i: p.gather(x, 0, i), x, places(3, 2, 9))
    check_error(lambda p, x, i: p.gather(x, 0, i), x, places(3, 2))
    check_error(lambda p, x, i: p.index_select(x, 0, i), x, places(3, 2, 2))
    check_error(lambda p, x, i: p.index_select(x, 3, i), x, places(3, 2))
    check_error(lambda p, x, i, s: p.scatter_add(x, 0, i, s), x, places(3, 2, 4), normal(1, 4))
    check_error(lambda p, x, i, s: p.scatter_add(x, 0, i, s), x, places(3, 2, 4), np.ones((2, 4), np.int64))
    check_error(lambda p, x, m: p.masked_select(x, m), x, np.ones((3, 4), np.float32))
    here = pellucid.tensor(x, device="cpu")
    with pytest.raises(DTypeError, match="int64"):
        embedding(here, here)
    with pytest.raises(ShapeError, match="broadcast"):
        index_put(here, [pellucid.tensor([0, 1], device="cpu")], pellucid.zeros(3, 4, device="cpu"))
