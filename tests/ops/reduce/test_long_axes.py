"""Axes that are longer than a loop may be: whole numbers, so that every order of a sum gives the same."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid.nn import functional as F
from pellucid.op.kernel import turns
from pellucid.op.plan_cache import forget_plans
from pellucid.ops.index import sources
from pellucid.ops.random.token_sampling import sample

pytestmark = pytest.mark.gpu
# More than llvmpipe makes turns, and no multiple of anything.
LONG = 70_003


@pytest.fixture(params=["direct", "shared"], autouse=True)
def variant(request, monkeypatch):
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", request.param)
    yield request.param
    forget_plans()


def whole(*shape, most=3, seed=0):
    """Small whole numbers."""
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(np.float32)


def agree(function, *arrays, grad=False):
    """Values, and the gradients of their sum, are PyTorch's."""
    found = []
    for m in (torch, pellucid):
        leaves = [m.tensor(a).requires_grad_(grad and a.dtype.kind == "f") for a in arrays]
        out = function(m, *leaves)
        made = list(out) if isinstance(out, (tuple, list)) else [out]
        if grad:
            made[0].sum().backward()
            made += [t.grad for t in leaves if t.requires_grad]
        found.append([t.detach().numpy() for t in made])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_products():
    agree(lambda m, a, b: a @ b, whole(40, LONG), whole(LONG, 2, seed=1))
    agree(lambda m, x, w, b: m.nn.functional.linear(x, w, b), whole(9, LONG), whole(8, LONG), whole(8))


def test_gradient_of_a_weight_over_many_rows():
    agree(lambda m, x, w: m.nn.functional.linear(x, w), whole(LONG, 3), whole(9, 3), grad=True)


def convolved(m, x, w, **settings):
    count = x.dim() - 2
    return getattr(m.nn.functional, f"conv{count}d")(x, w, **settings)


def test_gradient_of_a_convolution_over_many_pixels():
    agree(lambda m, x, w: convolved(m, x, w, padding=1), whole(90, 1, 28, 28), whole(2, 1, 3, 3), grad=True)
    agree(lambda m, x, w: convolved(m, x, w, padding=1), whole(1, 1, LONG), whole(9, 1, 3), grad=True)


def test_a_convolution_with_a_long_window():
    agree(lambda m, x, w: convolved(m, x, w), whole(1, 2, LONG + 5), whole(1, 2, LONG))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_many_sources_of_one_place(dtype):
    index = np.zeros(LONG, np.int64)
    index[::1000] = 2
    source = whole(LONG, most=1, seed=2).astype(dtype)
    zeros = np.zeros(3, dtype)
    agree(lambda m, x, i, s: m.scatter_add(x, 0, i, s), zeros, index, source)
    agree(lambda m, x, i, s: x.scatter(0, i, s), zeros, index, np.arange(LONG).astype(dtype))
    agree(lambda m, x, i, s: m.index_add(x, 0, i, s), zeros[:, None], index, source[:, None])
    x = pellucid.zeros(3, dtype=getattr(pellucid, dtype), device="webgpu")
    x.index_put_((pellucid.tensor(index),), pellucid.tensor(source), accumulate=True)
    assert x.tolist() == np.bincount(index, source, 3).astype(dtype).tolist()


def test_gradient_of_few_rows_that_are_looked_up_often():
    agree(lambda m, w, i: m.nn.functional.embedding(i, w), whole(3, 4), np.zeros(LONG, np.int64), grad=True)
    # Fewer sources than are sorted, of rows so wide that a workgroup has many of their elements.
    out = pellucid.zeros(1100, 1024).index_add(
        0, pellucid.zeros(8192, dtype=pellucid.int64), pellucid.ones(8192, 1024)
    )
    assert (out[0] == 8192).all().item()
    assert out.sum().item() == 8192 * 1024


def test_pools():
    x = whole(1, 2, LONG + 3)
    agree(lambda m, x: m.nn.functional.max_pool1d(x, LONG, 1, return_indices=True), x)
    mean = F.avg_pool1d(pellucid.tensor(x), LONG, 1)
    sums = np.array([[row[k : k + LONG].sum() for k in range(4)] for row in x[0]])
    np.testing.assert_allclose(mean.numpy()[0] * LONG, sums, rtol=1e-5, atol=1e-2)
    square = np.ones((1, 1, 300, 300), np.float32)
    square[0, 0, 299, 299] = 5
    agree(lambda m, x: m.nn.functional.max_pool2d(x, 300, return_indices=True), square)
    both = F.adaptive_avg_pool1d(pellucid.ones(1, 1, 2 * LONG), 2)
    np.testing.assert_array_equal(both.numpy(), [[[1, 1]]])


def test_pieces(monkeypatch):
    """What is cut, with loops that may have few turns."""
    monkeypatch.setattr(turns, "PIECE", 40)
    monkeypatch.setattr(sources, "PIECE", 20)
    agree(lambda m, a, b: a @ b, whole(2, 9, 130), whole(2, 130, 11), grad=True)
    agree(
        lambda m, x, w, b: m.nn.functional.linear(x, w, b), whole(9, 130), whole(5, 130), whole(5), grad=True
    )
    for groups in (1, 2):
        x, w = whole(3, 4, 7, 90), whole(6, 4 // groups, 3, 3)
        agree(lambda m, x, w, g=groups: convolved(m, x, w, padding=1, groups=g), x, w, grad=True)
    agree(lambda m, x, w: convolved(m, x, w, stride=2), whole(3, 2, 9, 9), whole(9, 2, 2, 3), grad=True)
    index = np.random.default_rng(4).integers(0, 3, 9000)
    agree(lambda m, x, i, s: m.index_add(x, 0, i, s), whole(3, 2), index, whole(9000, 2), grad=True)
    agree(lambda m, x, i, s: m.scatter_add(x, 0, i, s), whole(3), index, whole(9000), grad=True)
    agree(lambda m, x, i, s: x.scatter(0, i[8990:], s[8990:]), whole(3), index, whole(9000))
    x = whole(2, 3, 19, 61)
    for window, step in [((9, 8), 2), ((3, 50), 1), ((18, 2), 3)]:
        agree(lambda m, x, w=window, s=step: m.nn.functional.max_pool2d(x, w, s, return_indices=True), x)
        agree(lambda m, x, w=window, s=step: m.nn.functional.max_pool2d(x, w, s), x, grad=True)
        found = []
        for m in (torch, pellucid):
            leaf = m.tensor(x, requires_grad=True)
            out = m.nn.functional.avg_pool2d(leaf, window, step)
            (out * out).sum().backward()
            found.append((out.detach().numpy(), leaf.grad.numpy()))
        for theirs, ours in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    with_nan = x.copy()
    with_nan[0, 1, 5, 20] = np.nan
    agree(lambda m, x: m.nn.functional.max_pool2d(x, (3, 50), 1, return_indices=True), with_nan)


def test_attention():
    n = LONG
    for time in (1, 3, 20):
        query = pellucid.ones(1, 1, time, 2)
        out = F.scaled_dot_product_attention(query, pellucid.ones(1, 1, n, 2), pellucid.ones(1, 1, n, 2))
        np.testing.assert_allclose(out.numpy(), np.ones((1, 1, time, 2)), rtol=1e-3)


def test_the_best_of_rising_rows():
    """Every entry goes past all that are kept."""
    x = np.arange(3000, dtype=np.float32)
    agree(lambda m, x: tuple(m.topk(x, 64)), x[None])


@pytest.mark.parametrize("name", ["sum", "amax", "argmax", "cumsum", "logsumexp", "softmax", "sort"])
def test_along_long_axes(name):
    x = whole(LONG, most=1, seed=3)
    x[LONG - 7] = 9
    for shape, dim in [((1, LONG), 1), ((LONG, 1), 0)]:
        ours = getattr(pellucid, name)(pellucid.tensor(x.reshape(shape)), dim)
        theirs = getattr(torch, name)(torch.tensor(x.reshape(shape)).double(), dim)
        values = (ours[0], theirs[0]) if name == "sort" else (ours, theirs)
        np.testing.assert_allclose(values[0].numpy(), values[1].numpy(), rtol=1e-4, atol=1e-7)


def test_a_nucleus_of_many_ids(variant):
    if variant == "shared":
        pytest.skip("the same dispatches")
    logits = np.full((1, 1_000_003), -20, np.float32)
    logits[0, 999_999] = 1
    drawn = sample(pellucid.tensor(logits), pellucid.tensor([0.3]), top_p=0.9)
    assert drawn.tolist() == [999_999]


def test_many_outputs(variant):
    """More workgroups than a dimension of the grid has."""
    n = 70_001
    agree(lambda m, x: x + 1, whole(n * 64, most=1))
    agree(lambda m, x: x.sum(1), whole(n, 3))
    agree(lambda m, x: x.softmax(1).argmax(1), whole(n, 5) + np.arange(5, dtype=np.float32) * 10)
    agree(lambda m, x: m.nn.functional.max_pool1d(x, 2), whole(n, 1, 4))
    normed = F.rms_norm(pellucid.ones(n, 4), (4,))
    assert (normed[-1] - 1).abs().max().item() < 1e-5
    if variant == "shared":
        return  # a barrier takes long on a CPU
    agree(lambda m, x: x.sort(1).values, whole(n, 3))
    agree(lambda m, x: x.cumsum(1), whole(n, 3))
    agree(lambda m, a, b: m.bmm(a, b), whole(n, 1, 2), whole(n, 2, 1))
    agree(lambda m, x, w: convolved(m, x, w), whole(n, 1, 3), whole(1, 1, 2))
    agree(lambda m, x, i: x.gather(1, i), whole(n, 3), np.ones((n, 1), np.int64))
    seen = F.scaled_dot_product_attention(*[pellucid.ones(n, 1, 1, 4)] * 3)
    assert seen[-1, 0, 0, 0].item() == 1
