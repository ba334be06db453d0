"""Tensors of different dtypes: what PyTorch promotes, converts and refuses, and by which class of error."""

import itertools

import numpy as np
import pytest
import torch

import pellucid

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "bool")


def made(lib, dtype, seed):
    values = np.random.default_rng(seed).integers(0, 3, (3, 3)).tolist()
    return lib.tensor(values, device="cpu").to(getattr(lib, dtype))


def assigned(key):
    def program(lib, a, b):
        where, value = key(lib, a, b)
        a = a.clone()
        a[where] = value
        return a

    return program


def indices(lib, *values):
    return lib.tensor(values, device="cpu")


CALLS = {
    "addmm": lambda L, a, b: L.addmm(a, b, b),
    "baddbmm": lambda L, a, b: L.baddbmm(a[None], b[None], b[None]),
    "addmv": lambda L, a, b: L.addmv(a[0], b, b[0]),
    "addr": lambda L, a, b: L.addr(a, b[0], b[0]),
    "matmul": lambda L, a, b: a @ b,
    "einsum": lambda L, a, b: L.einsum("ij,jk->ik", a, b),
    "einsum without sums": lambda L, a, b: L.einsum("i,j->ij", a[0], b[0]),
    "cross": lambda L, a, b: L.linalg.cross(a, b),
    "cdist": lambda L, a, b: L.cdist(a, b) if a.is_floating_point() and b.is_floating_point() else a,
    "lerp": lambda L, a, b: L.lerp(a, a, b),
    "linear": lambda L, a, b: L.nn.functional.linear(a, b),
    "conv1d": lambda L, a, b: L.nn.functional.conv1d(a[None], b[None]),
    "layer norm": lambda L, a, b: L.nn.functional.layer_norm(a, (3,), b[0], b[0]),
    "batch norm": lambda L, a, b: L.nn.functional.batch_norm(a, None, None, b[0], b[0], True),
    "group norm": lambda L, a, b: L.nn.functional.group_norm(a[None], 1, b[0], b[0]),
    "nll": lambda L, a, b: L.nn.functional.nll_loss(a, b[0]),
    "cross entropy": lambda L, a, b: L.nn.functional.cross_entropy(a, b[0]),
    "bce": lambda L, a, b: L.nn.functional.binary_cross_entropy(a / 4, b / 4 if b.is_floating_point() else b),
    "mse": lambda L, a, b: L.nn.functional.mse_loss(a, b),
    "where": lambda L, a, b: L.where(a > 1, a, b),
    "cat": lambda L, a, b: L.cat([a, b]),
    "add_": lambda L, a, b: a.clone().add_(b),
    "index_put": lambda L, a, b: a.index_put((indices(L, 0, 1),), b[:2]),
    "index_add": lambda L, a, b: a.index_add(0, indices(L, 0, 1, 2), b),
    "mask": assigned(lambda L, a, b: (a > 0, b[a > 0])),
    "mask, one value": assigned(lambda L, a, b: (a > 0, b[0, 0])),
    "mask, an axis of one value": assigned(lambda L, a, b: (a > 0, b[0, :1])),
    "mask of rows": assigned(lambda L, a, b: (a[0] > 0, b[0])),
    "numbers": assigned(lambda L, a, b: (indices(L, 0, 1), b[:2])),
    "numbers, one value": assigned(lambda L, a, b: (indices(L, 0, 1), b[0, 0])),
    "list": assigned(lambda L, a, b: ([0, 2], b[0])),
    "slice": assigned(lambda L, a, b: (slice(0, 2), b[:2])),
    "row": assigned(lambda L, a, b: (0, b[0])),
}


# Where integers of one width stand for those of another: numpy's have 32 bits in a page.
CLASSES = {"nll", "cross entropy"}
PLACES = {"mask", "mask of rows", "numbers", "numbers, one value", "list"}


def outcome(call, *args, **kwargs):
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return error


def agree(theirs, ours, what):
    """A refusal is of PyTorch's class; else dtypes and values are its own."""
    if isinstance(theirs, Exception):
        if "not implemented for" not in str(theirs):
            assert isinstance(ours, type(theirs)), (what, theirs, ours)
        return
    assert not isinstance(ours, Exception), (what, ours)
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2], what
    found, wanted = (np.asarray(t.double().tolist()) for t in (ours, theirs))
    np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=2e-2, err_msg=str(what))


@pytest.mark.parametrize("name", CALLS)
def test_two_dtypes(name):
    for types in itertools.product(DTYPES, DTYPES):
        given = [[made(lib, d, k) for k, d in enumerate(types, 1)] for lib in (torch, pellucid)]
        theirs, ours = outcome(CALLS[name], torch, *given[0]), outcome(CALLS[name], pellucid, *given[1])
        if (name in CLASSES and types[1] == "int32") or (name in PLACES and {*types} == {"int32", "int64"}):
            assert isinstance(theirs, Exception)
            assert "float" not in types[0] or not isinstance(ours, Exception), (types, ours)
            continue
        agree(theirs, ours, types)


INTO = {
    "add": lambda L, x, **out: L.add(x, x, **out),
    "mul": lambda L, x, **out: L.mul(x, 2, **out),
    "exp": lambda L, x, **out: L.exp(x, **out),
    "abs": lambda L, x, **out: L.abs(x, **out),
    "mean": lambda L, x, **out: L.mean(x, 0, **out),
    "cat": lambda L, x, **out: L.cat([x, x], **out),
    "gather": lambda L, x, **out: L.gather(x, 0, L.zeros(1, 3, dtype=L.int64, device="cpu"), **out),
    "argmax": lambda L, x, **out: L.argmax(x, 0, **out),
    "matmul": lambda L, x, **out: L.matmul(x, x, **out),
    "maximum": lambda L, x, **out: L.max(x, x, **out),
    "softmax": lambda L, x, **out: L.softmax(x, 0, **out),
    "complex": lambda L, x, **out: L.complex(x, x, **out),
}
SEVERAL = {
    "max": lambda L, x, **out: L.max(x, 0, **out),
    "sort": lambda L, x, **out: L.sort(x, 0, **out),
    "topk": lambda L, x, **out: L.topk(x, 1, 0, **out),
    "aminmax": lambda L, x, **out: L.aminmax(x, dim=0, **out),
    "cummax": lambda L, x, **out: L.cummax(x, 0, **out),
}


def into(name, lib, dtype, other):
    """What a call writes into a tensor of another dtype."""
    call, x = (INTO | SEVERAL)[name], made(lib, dtype, 1)
    result = outcome(call, lib, x)
    if isinstance(result, Exception):
        return result
    several = list(result) if name in SEVERAL else [result]
    out = [lib.empty(0, dtype=t.dtype, device="cpu") for t in several]
    out[0] = lib.zeros(tuple(several[0].shape), dtype=getattr(lib, other), device="cpu")
    written = outcome(call, lib, x, out=tuple(out) if name in SEVERAL else out[0])
    return written if isinstance(written, Exception) else out[0].real


@pytest.mark.parametrize("name", [*INTO, *SEVERAL])
def test_results_into_another_dtype(name):
    for dtype, other in itertools.product(("float32", "int64"), (*DTYPES, "complex64", "complex128")):
        agree(into(name, torch, dtype, other), into(name, pellucid, dtype, other), (dtype, other))
