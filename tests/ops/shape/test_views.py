"""Views of whole tensors against PyTorch and numpy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import DTYPES, equal, ours
from pellucid.errors import DTypeError, ShapeError

MOVES = {
    "view": lambda p, x: x.reshape(2, 12).view(4, -1),
    "reshape": lambda p, x: (x.reshape(-1), x.transpose(0, 2).reshape(4, 6), p.reshape(x, (3, 8))),
    "flatten": lambda p, x: (x.flatten(), x.flatten(1), p.flatten(x, 0, 1)),
    "unflatten": lambda p, x: (x.unflatten(2, (2, 2)), x.unflatten(-1, (-1, 1))),
    "permute": lambda p, x: (x.permute(2, 0, 1), x.permute((1, -1, 0)), p.permute(x, (2, 1, 0))),
    "transpose": lambda p, x: (x.transpose(0, 2), x.transpose(-1, 1), x[0].t(), x[0].T, x.mT),
    "movedim": lambda p, x: (p.movedim(x, 0, 2), x.movedim((0, 1), (-1, 0))),
    "expand": lambda p, x: (x[:, :1].expand(2, 5, 4), x[:1].expand(3, -1, 3, 4), x[0, 0].expand_as(x)),
    "broadcast_to": lambda p, x: p.broadcast_to(x[:1], (5, 3, 4)),
    "broadcast_tensors": lambda p, x: p.broadcast_tensors(x[:1], x[0, :, :1]),
    "squeeze": lambda p, x: (x[:1].squeeze(), x[:, :1].squeeze(1), x.squeeze(0), x[:1, :1].squeeze((0, 1))),
    "unsqueeze": lambda p, x: (x.unsqueeze(0), x.unsqueeze(-1), x.unsqueeze(-2)),
    "as_strided": lambda p, x: x.as_strided((2, 2), (5, 3)) if x.is_contiguous() else x,
}


@pytest.mark.parametrize("name", MOVES)
def test_values_and_gradients(name):
    check(MOVES[name], normal(2, 3, 4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_moves(dtype):
    x = (torch.arange(24) % (2 if dtype == "bool" else 100)).reshape(2, 3, 4).to(getattr(torch, dtype))
    for device in DEVICES:
        y = ours(x, device)
        for name in ("permute", "expand"):
            mine, theirs = MOVES[name](pellucid, y), MOVES[name](torch, x)
            for m, t in zip(mine, theirs, strict=True):
                equal(m.contiguous(), t, what=f"{name} on {device}")


def test_views_share_storage_and_copies_do_not():
    for device in DEVICES:
        x = pellucid.zeros(2, 3, 4, device=device)
        for y in (
            x.view(6, 4),
            x.permute(2, 0, 1),
            x[1],
            x.expand(5, 2, 3, 4),
            x.squeeze(),
            x.unsqueeze(1),
            x.diagonal(),
            x.mT,
            *x.split(1),
            x.detach(),
            x.reshape(-1),
            x.contiguous(),
        ):
            assert y._storage is x._storage
        for y in (
            x.clone(),
            x.mT.contiguous(),
            x.mT.reshape(-1),
            pellucid.cat([x, x]),
            x.repeat(1, 1, 1),
            x.flip(0),
            x + 0,
        ):
            assert y._storage is not x._storage
        assert x.mT.stride() == (12, 1, 4)
        assert x[:, 1:, ::2].storage_offset() == 4
        assert x[:, 1:, ::2].stride() == (12, 4, 2)


def test_reading_bits_as_another_type():
    for device in DEVICES:
        x = pellucid.tensor([1.0, -2.0], device=device)
        assert x.view(pellucid.int32).tolist() == [0x3F800000, -0x40000000]
        with pytest.raises(DTypeError, match="elements of 4 and 2 bytes"):
            x.view(pellucid.float16)


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = pellucid.zeros(2, 3, 4, device=device)
    refused = [
        (
            ShapeError,
            r"view: shape \(24,\) cannot show a tensor of shape \(2, 4, 3\) and strides \(12, 1, 4\) "
            r"without a copy\. Use reshape\.",
            lambda: x.mT.view(24),
        ),
        (ShapeError, r"shape \(5, 5\) is invalid for 24 elements: it has 25", lambda: x.reshape(5, 5)),
        (
            ShapeError,
            r"shape \(5, -1\) is invalid for 24 elements: 24 is not a multiple of 5",
            lambda: x.view(5, -1),
        ),
        (ShapeError, r"at most one length may be -1", lambda: x.view(-1, -1)),
        (ShapeError, r"dims \(0, 1\) are not a permutation of the 3 axes", lambda: x.permute(0, 1)),
        (
            IndexError,
            r"dimension 3 is out of range: a tensor of 3 axes takes -3 to 2",
            lambda: x.transpose(0, 3),
        ),
        (
            ShapeError,
            r"axis 1 of length 3 cannot become 5; only axes of length 1 expand",
            lambda: x.expand(2, 5, 4),
        ),
        (ShapeError, r"t: takes at most two axes, not 3", lambda: x.t()),
        (
            ShapeError,
            r"as_strided: size \(5, 5\), stride \(5, 1\) from 0 reach elements 0 to 24 of 24",
            lambda: x.as_strided((5, 5), (5, 1)),
        ),
        (TypeError, r"a size must be an integer, not float", lambda: x.reshape(2.0, 12)),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()


@st.composite
def chains(draw):
    """A shape and steps that numpy and pellucid can both take."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    return shape, draw(
        st.lists(
            st.tuples(
                st.sampled_from(["permute", "slice", "reshape", "unsqueeze", "squeeze", "expand", "flat"]),
                st.integers(0, 1000),
            ),
            max_size=5,
        )
    )


def step(a, b, kind, k):
    """One step on the numpy array and on the tensor."""
    if kind == "permute" and a.ndim:
        order = np.random.default_rng(k).permutation(a.ndim).tolist()
        return a.transpose(order), b.permute(*order)
    if kind == "slice" and a.ndim:
        key = (slice(None),) * (k % a.ndim) + (slice(None, None, [-1, 2, -2][k % 3]),)
        return a[key], b[key]
    if kind == "reshape" and a.size:
        n = next((d for d in (2, 3, 4, 5) if a.size % d == 0), 1)
        return a.reshape(n, -1), b.reshape(n, -1)
    if kind == "unsqueeze":
        return np.expand_dims(a, k % (a.ndim + 1)), b.unsqueeze(k % (a.ndim + 1))
    if kind == "squeeze":
        return a.squeeze(), b.squeeze()
    if kind == "expand":
        return np.broadcast_to(a, (2, *a.shape)), b.expand(2, *b.shape)
    if kind == "flat":
        return a.reshape(-1), b.reshape(-1)
    return a, b


@given(chains())
@settings(max_examples=120, deadline=None)
def test_any_chain_of_views_is_numpys(chain):
    shape, steps = chain
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    for device in DEVICES:
        a, b = x, pellucid.tensor(x, device=device)
        for kind, k in steps:
            a, b = step(a, b, kind, k)
            if a.ndim > 6 or a.size > 4000:
                break
        np.testing.assert_array_equal(b.numpy(), a)
        np.testing.assert_array_equal((b + 1).numpy(), a + 1)


@given(
    st.lists(st.integers(0, 3), max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.integers(0, 4),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_broadcasting_is_numpys(shape, kept, cut, reverse):
    a = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    other = [n if k else 1 for n, k in zip(shape, kept, strict=False)][cut:]
    b = np.arange(int(np.prod(other)), dtype=np.float32).reshape(other) * 10
    a, b = (b, a) if reverse else (a, b)
    for device in DEVICES:
        out = pellucid.tensor(a, device=device) + pellucid.tensor(b, device=device)
        np.testing.assert_array_equal(out.numpy(), a + b)
