"""NaN and infinity reach every result that they reach in PyTorch, whatever the kernel; nowhere else."""

import math

import numpy as np
import pytest
import torch

import pellucid
from ops.each_variant import device, variant  # noqa: F401

pytestmark = pytest.mark.gpu
SPECIALS = (math.nan, math.inf, -math.inf)
ROWS = {"short": (5, 7), "held": (4, 300), "long": (4, 5000), "columns": (600, 40)}


def _method(name, *more):
    return lambda m, x: getattr(m, name)(x, *more)


def _functional(name, *more, **named):
    return lambda m, *tensors: getattr(m.nn.functional, name)(*tensors, *more, **named)


# Sums may end in another NaN than they begin with, and products in another order: neither is here.
ALONG = ["softmax", "log_softmax", "logsumexp", "cumsum", "sum", "amax", "amin", "argmax", "argmin", "max"]
ALONG += ["min", "sort", "std"]
OF_ROWS = {
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda m, x: m.nn.functional.rms_norm(x, x.shape[-1:]),
    "nll": lambda m, x: m.nn.functional.cross_entropy(x, (x[:, 0] < 9).long(), reduction="none"),
    "topk": lambda m, x: m.topk(x, 5, 1).values,
    "smallest": lambda m, x: m.topk(x, 5, 1, largest=False).values,
    "largest of all": lambda m, x: m.max(x),
    "place of the smallest": lambda m, x: m.argmin(x)
}  # fmt: skip
OTHERS = {
    "max_pool2d": (((2, 3, 13, 11),), _functional("max_pool2d", 3, 2, 1)),
    "max_pool1d": (((2, 3, 40),), _functional("max_pool1d", 3, 2, 1, return_indices=True)),
    "avg_pool2d": (((2, 3, 13, 11),), _functional("avg_pool2d", 3, 2, 1)),
    "matmul": (((4, 65), (65, 70)), lambda m, a, b: a @ b),
    "one row": (((1, 300), (300, 50)), lambda m, a, b: a @ b),
    "long rows": (((4, 5000), (5000, 3)), lambda m, a, b: a @ b),
    "conv1d": (((2, 8, 30), (16, 8, 5)), _functional("conv1d")),
    "clamp": (((64,),), lambda m, x: x.clamp(-0.5, 0.5)),
    "clamp by tensors": (((64,), (64,), (64,)), lambda m, x, a, b: m.clamp(x, a, b)),
    "maximum": (((64,), (64,)), lambda m, x, y: m.maximum(x, y)),
    "minimum": (((64,), (64,)), lambda m, x, y: m.minimum(x, y)),
    "relu": (((64,),), lambda m, x: m.relu(x)),
    "isnan": (((64,),), lambda m, x: m.isnan(x * 1)),
    "not less": (((64,), (64,)), lambda m, x, y: ~(x < y))
}  # fmt: skip
SIZES = {
    "few queries": ((1, 2, 3, 8), (1, 2, 9, 8)),
    "one query": ((1, 2, 1, 64), (1, 2, 300, 64)),
    "many queries": ((1, 2, 50, 16), (1, 2, 70, 16)),
}


def outcomes(function, arrays):
    """PyTorch's results and ours."""
    made = [function(torch, *map(torch.tensor, arrays)), function(pellucid, *map(device, arrays))]
    for out in made:
        whole = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        yield [t.detach().numpy() for t in whole]


def agree(function, *arrays):
    theirs, ours = outcomes(function, arrays)
    for t, o in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(o, t, rtol=2e-3, atol=1e-4)


def put(rng, shape, value):
    """Numbers, one of which is special."""
    a = rng.standard_normal(shape).astype(np.float32)
    a.reshape(-1)[rng.integers(a.size)] = value
    return a


def one_of_each(rng, shape):
    """Numbers; in all but the last of four rows one is special."""
    a = rng.standard_normal(shape).astype(np.float32)
    for row, value in enumerate(SPECIALS):
        a[row, rng.integers(shape[1])] = value
    return a


@pytest.mark.parametrize("size", ROWS)
@pytest.mark.parametrize("name", ALONG)
def test_along_an_axis(name, size):
    x = one_of_each(np.random.default_rng(1), ROWS[size])
    more = {"stable": True} if name == "sort" else {}
    for dim in (0, 1):
        agree(lambda m, x, d=dim: getattr(m, name)(x, dim=d, **more), x)


@pytest.mark.parametrize("size", ROWS)
@pytest.mark.parametrize("name", OF_ROWS)
def test_of_rows(name, size):
    agree(OF_ROWS[name], one_of_each(np.random.default_rng(2), ROWS[size]))


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    rng = np.random.default_rng(3)
    shapes, function = OTHERS[name]
    for value in SPECIALS:
        for which in range(len(shapes)):
            arrays = [put(rng, s, value if k == which else 0.5) for k, s in enumerate(shapes)]
            agree(function, *arrays)


@pytest.mark.parametrize("bound", ["min", "max"])
def test_a_bound_that_is_nan(bound):
    """NaN, as in most of PyTorch's code; in that of newer processors such a number bounds nothing."""
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    theirs, ours = (out[0] for out in outcomes(lambda m, x: x.clamp(**{bound: math.nan}), [x]))
    assert np.isnan(ours).all()
    assert (np.isnan(theirs) | (theirs == x)).all()


def attention(m, query, key, value, mask=None, **more):
    """PyTorch's by its definition: its kernel for rows without a mask has 0 where the query is NaN."""
    if m is pellucid:
        return m.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, **more)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return m.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, **more)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", ["query", "key", "value"])
def test_attention(which, size):
    rng = np.random.default_rng(4)
    q, k = SIZES[size]
    seen = rng.random((q[2], k[2])) < 0.7
    added = np.where(seen, 0.5, -np.inf).astype(np.float32)
    for value in SPECIALS:
        named = {"query": q, "key": k, "value": k}
        arrays = [put(rng, shape, value if name == which else 0.5) for name, shape in named.items()]
        agree(attention, *arrays)
        agree(attention, *arrays, seen)
        agree(attention, *arrays, added)


@pytest.mark.parametrize("size", SIZES)
def test_masks_of_attention(size):
    """A row without a key is 0, whatever hides the keys; a mask that is NaN or inf makes its row NaN."""
    rng = np.random.default_rng(5)
    q, k = SIZES[size]
    arrays = [rng.standard_normal(s).astype(np.float32) for s in (q, k, k)]
    mask = np.zeros((q[2], k[2]), np.float32)
    mask[0] = -np.inf
    agree(attention, *arrays, mask)
    agree(attention, *arrays, mask == 0)
    agree(attention, arrays[0], np.full(k, -np.inf, np.float32), np.abs(arrays[2]))
    for value in SPECIALS:
        mask = np.zeros((q[2], k[2]), np.float32)
        mask[-1, 2] = value
        agree(attention, *arrays, mask)


def test_later_keys_do_not_reach_earlier_queries():
    rng = np.random.default_rng(6)
    query, key, value = (rng.standard_normal((1, 2, 40, 16)).astype(np.float32) for _ in range(3))
    key[0, 0, 20] = math.nan
    out = attention(pellucid, *map(device, (query, key, value)), is_causal=True).numpy()
    assert np.isnan(out[0, 0, 20:]).all()
    assert np.isfinite(out[0, 0, :20]).all()
    assert np.isfinite(out[0, 1]).all()


def test_gradients_of_attention_that_sees_nothing():
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal((1, 1, 3, 4)).astype(np.float32) for _ in range(3)]
    seen = np.array([[False] * 3, [True, False, True], [True] * 3])
    for mask in (seen, np.where(seen, 0, -np.inf).astype(np.float32)):
        found = []
        for m, make in ((torch, torch.tensor), (pellucid, device)):
            leaves = [make(a).detach().requires_grad_() for a in arrays]
            attention(m, *leaves, make(mask)).sum().backward()
            found.append([leaf.grad.numpy() for leaf in leaves])
        for t, o in zip(*found, strict=True):
            np.testing.assert_allclose(o, t, rtol=1e-4, atol=1e-5)
        # And NaN stays NaN behind weights that are NaN.
        leaves = [device(a).detach().requires_grad_() for a in (arrays[0] * math.nan, *arrays[1:])]
        attention(pellucid, *leaves, device(mask)).sum().backward()
        assert all(np.isnan(leaf.grad.numpy()).any() for leaf in leaves)


def test_fused():
    """Handed on in registers, NaN stays NaN."""
    x = np.array([-0.5, 2, math.nan, math.inf, -math.inf, 0, -0.0], np.float32)
    for _ in range(5):
        t = device(x)
        out = pellucid.maximum((t * 1).clamp(-1, 1), t - 1).relu() + t.isnan()
        u = torch.tensor(x)
        expected = torch.maximum((u * 1).clamp(-1, 1), u - 1).relu() + u.isnan()
        np.testing.assert_array_equal(out.numpy(), expected.numpy())
