"""Views of whole tensors against PyTorch and numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid
from ops.oracle import DEVICES


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
