"""Tensors of no elements and axes of length 0: PyTorch's result, or an error of its class."""

import itertools

import pytest
import torch

import pellucid
from ops.oracle import DEVICES

# PyTorch's, and numpy's, of means and deviations of nothing.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
SHAPES = [(0,), (0, 3), (2, 0), (2, 0, 3)]
# Along every axis, and for those of the second row over all of them.
ALONG = ["softmax", "log_softmax", "logsumexp", "cumsum", "cumprod", "sort", "argsort"]
REDUCTIONS = [
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "all",
    "any",
    "argmax",
    "argmin",
    "std",
    "var",
    "max",
    "min",
    "count_nonzero",
]


def nothing(m, *shape):
    return m.zeros(*shape, dtype=m.int64)


def _functional(name, *more):
    return lambda m, *tensors: getattr(m.nn.functional, name)(*tensors, *more)


attention = _functional("scaled_dot_product_attention")
CASES = {
    "matmul, no depth": (((2, 0), (0, 3)), lambda m, a, b: a @ b),
    "matmul, no rows": (((0, 2), (2, 3)), lambda m, a, b: a @ b),
    "bmm, no depth": (((2, 2, 0), (2, 0, 4)), lambda m, a, b: m.bmm(a, b)),
    "bmm, no batches": (((0, 2, 3), (0, 3, 4)), lambda m, a, b: m.bmm(a, b)),
    "mv": (((3, 0), (0,)), lambda m, a, b: m.mv(a, b)),
    "dot": (((0,), (0,)), lambda m, a, b: m.dot(a, b)),
    "addmm": (((2, 3), (2, 0), (0, 3)), lambda m, c, a, b: m.addmm(c, a, b)),
    "linear, no features": (((2, 0), (3, 0), (3,)), _functional("linear")),
    "linear, no rows": (((0, 4), (3, 4)), _functional("linear")),
    "conv1d": (((0, 2, 5), (3, 2, 3)), _functional("conv1d")),
    "conv2d": (((0, 2, 5, 5), (3, 2, 3, 3)), _functional("conv2d")),
    "conv2d, no outputs": (((1, 2, 5, 5), (0, 2, 3, 3)), _functional("conv2d")),
    "conv2d, no height": (((1, 2, 0, 5), (3, 2, 3, 3)), _functional("conv2d")),
    "conv_transpose1d": (((0, 2, 5), (2, 3, 3)), _functional("conv_transpose1d")),
    "max_pool2d": (((0, 2, 4, 4),), _functional("max_pool2d", 2)),
    "max_pool2d, no channels": (((1, 0, 4, 4),), _functional("max_pool2d", 2)),
    "max_pool2d, no height": (((1, 1, 0, 4),), _functional("max_pool2d", 2)),
    "avg_pool2d": (((0, 2, 4, 4),), _functional("avg_pool2d", 2)),
    "adaptive_avg_pool2d": (((0, 2, 4, 4),), _functional("adaptive_avg_pool2d", 2)),
    "layer_norm": (((0, 4),), _functional("layer_norm", (4,))),
    "layer_norm, no columns": (((2, 0),), _functional("layer_norm", (0,))),
    "rms_norm": (((0, 4),), _functional("rms_norm", (4,))),
    "embedding": (((5, 3),), lambda m, w: m.nn.functional.embedding(nothing(m, 0), w)),
    "embedding, no columns": (((5, 0),), lambda m, w: m.nn.functional.embedding(nothing(m, 2), w)),
    "gather": (((0, 3),), lambda m, x: m.gather(x, 0, nothing(m, 0, 3))),
    "index_add": (((5, 0), (2, 0)), lambda m, x, s: m.index_add(x, 0, nothing(m, 2), s)),
    "scatter_add": (((0, 3),), lambda m, x: m.scatter_add(x, 0, nothing(m, 0, 3), x)),
    "scatter, no sources": (((3, 4), (0, 4)), lambda m, x, y: m.scatter(x, 0, nothing(m, 0, 4), y)),
    "scatter_add, no sources": (((3, 4), (3, 0)), lambda m, x, y: m.scatter_add(x, 1, nothing(m, 3, 0), y)),
    "a mask": (((0, 3),), lambda m, x: x[x > 1]),
    "nonzero": (((0, 3),), lambda m, x: m.nonzero(x)),
    "cat": (((0, 3), (2, 3)), lambda m, a, b: m.cat([a, b])),
    "roll": (((0, 3),), lambda m, x: m.roll(x, 1, 0)),
    "tile to nothing": (((2, 3),), lambda m, x: m.tile(x, (0, 2))),
    "pad to nothing": (((2, 3),), _functional("pad", (-1, -2))),
    "tril": (((3, 0),), lambda m, x: m.tril(x)),
    "topk": (((2, 0),), lambda m, x: m.topk(x, 0)),
    "attention, no queries": (((1, 2, 0, 4), *[(1, 2, 3, 4)] * 2), attention),
    "attention, no keys": (((1, 2, 3, 4), *[(1, 2, 0, 4)] * 2), attention),
    "cross_entropy": (((0, 4),), lambda m, x: m.nn.functional.cross_entropy(x, nothing(m, 0))),
    "mse_loss": (((0, 4), (0, 4)), _functional("mse_loss")),
    "normalize": (((4, 0),), _functional("normalize")),
    "cosine_similarity": (((4, 0), (4, 0)), _functional("cosine_similarity")),
    "glu": (((0, 4),), _functional("glu")),
    "broadcast": (((0, 1), (3,)), lambda m, x, y: x + y),
    "half": (((0, 3),), lambda m, x: x.half()),
}  # fmt: skip


def outcome(m, function, shapes, **where):
    """Shapes, dtypes and values of results and gradients; the error where it is refused."""
    leaves = [m.zeros(*shape, requires_grad=True, **where) for shape in shapes]
    try:
        out = function(m, *leaves)
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        for t in out:
            if t.requires_grad:
                t.sum().backward(retain_graph=True)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        return error
    out += [x.grad for x in leaves if x.grad is not None]
    return [(tuple(t.shape), str(t.dtype).split(".")[1], repr(t.detach().tolist())) for t in out]


def check(function, *shapes, device):
    theirs = outcome(torch, function, shapes)
    mine = outcome(pellucid, function, shapes, device=device)
    if isinstance(theirs, Exception):
        assert isinstance(mine, type(theirs)), f"{mine!r}, PyTorch: {theirs!r}"
    else:
        assert mine == theirs


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ALONG + REDUCTIONS)
def test_axes(name, device):
    for shape in SHAPES:
        for dim in range(len(shape)):
            check(lambda m, x, d=dim: getattr(m, name)(x, d), shape, device=device)
        if name in REDUCTIONS:
            check(lambda m, x: getattr(m, name)(x), shape, device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_ops(name, device):
    shapes, function = CASES[name]
    pellucid.set_default_device(device)
    try:
        check(function, *shapes, device=device)
    finally:
        pellucid.set_default_device("webgpu")


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float16", "bfloat16"])
def test_scans_of_other_types(dtype):
    for name, shape in itertools.product(("cumsum", "cumprod"), SHAPES):
        t = getattr(torch.zeros(shape, dtype=getattr(torch, dtype)), name)(0)
        o = getattr(pellucid.zeros(shape, dtype=getattr(pellucid, dtype), device="webgpu"), name)(0)
        assert (str(o.dtype).split(".")[1], o.tolist()) == (str(t.dtype).split(".")[1], t.tolist())
