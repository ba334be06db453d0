"""Rows that a mask chooses, and places of what is not zero, against PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.each_variant import dispatches, variant  # noqa: F401
from ops.oracle import DEVICES, check, normal

# The shape of the tensor, and the first axes that the mask covers.
SHAPES = [((9000,), 1), ((70, 130), 2), ((300, 7), 1), ((6, 5, 4), 2), ((0, 3), 1), ((4, 0), 1), ((4, 0), 2)]
DTYPES = ["float32", "float16", "bfloat16", "complex64", "int64", "int32", "int16", "uint8", "bool"]


def chosen(shape, axes: int, share: float) -> np.ndarray:
    return np.random.random(shape[:axes]) < share


def plain(t) -> np.ndarray:
    """The values, those of halves exactly in float32."""
    return t.cpu().to(pellucid.float32).numpy() if t.dtype is pellucid.bfloat16 else t.numpy()


@pytest.mark.parametrize("share", [0, 0.3, 1])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
@pytest.mark.parametrize("device", DEVICES)
def test_rows_that_a_mask_chooses(device, shape, axes, share):
    x, mask = normal(*shape), chosen(shape, axes, share)
    x.reshape(-1)[::7] = np.nan
    x.reshape(-1)[1::7] = -0.0
    ours, ids = pellucid.tensor(x, device=device), pellucid.tensor(mask, device=device)
    for key in (ids, mask, (ids,), (ids, ...)):
        found = ours[key].numpy()
        assert found.shape == x[mask].shape
        assert found.tobytes() == x[mask].tobytes()  # NaN, and zeros with a sign, too
    if axes == len(shape):
        assert ours.masked_select(ids).numpy().tobytes() == x[mask].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_every_type(dtype):
    x, mask = torch.tensor(4 * normal(41, 3)).to(getattr(torch, dtype)), chosen((41,), 1, 0.4)
    held = x.float().numpy() if dtype == "bfloat16" else x.numpy()
    ours = pellucid.tensor(held, device="webgpu").to(getattr(pellucid, dtype))
    at = pellucid.tensor(mask, device="webgpu")
    assert np.array_equal(plain(ours[at]), held[mask])
    assert np.array_equal(plain(ours.t()[:, at]), held.T[:, mask])
    assert np.array_equal(plain(ours[:, :1][at]), held[:, :1][mask])  # not contiguous


def test_what_broadcasts():
    x, mask = normal(4, 1, 5), chosen((6, 5), 2, 0.5)
    ours = pellucid.tensor(x, device="webgpu").masked_select(pellucid.tensor(mask, device="webgpu"))
    assert np.array_equal(ours.numpy(), torch.tensor(x).masked_select(torch.tensor(mask)).numpy())


@pytest.mark.parametrize(("shape", "axes"), [((40, 5), 1), ((8, 9), 2)])
def test_gradients_go_where_rows_come_from(shape, axes):
    mask = chosen(shape, axes, 0.4)
    check(lambda t, x, m: (x[m] ** 3).sum(), normal(*shape), mask, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_second_derivatives(device):
    a, mask = normal(30, 4), chosen((30,), 1, 0.4)
    found = []
    for module, where in ((pellucid, {"device": device}), (torch, {})):
        x = module.tensor(a, requires_grad=True, **where)
        out = (x[module.tensor(mask, **where)] ** 3).sum()
        (first,) = module.autograd.grad(out, x, create_graph=True)
        (second,) = module.autograd.grad((first**2).sum(), x)
        found.append(second.numpy())
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_a_mask_that_does_not_fit():
    x = pellucid.zeros(4, 5, device="webgpu")
    for shape in ((3,), (4, 4), (4, 5, 1)):
        with pytest.raises(IndexError, match="mask of shape"):
            x[pellucid.ones(*shape, dtype=pellucid.bool, device="webgpu")]


def test_examples_of_a_batch_share_a_mask():
    x, mask = normal(3, 8, 2), chosen((8,), 1, 0.5)
    at = pellucid.tensor(mask, device="webgpu")
    out = pellucid.func.vmap(lambda row: row[at])(pellucid.tensor(x, device="webgpu"))
    assert np.array_equal(out.numpy(), x[:, mask])


@pytest.mark.parametrize("shape", [(), (5000,), (60, 70), (3, 0), (5, 6, 7, 8)])
@pytest.mark.parametrize("device", DEVICES)
def test_places_of_what_is_not_zero(device, shape):
    a = np.where(np.random.random(shape) < 0.3, normal(*shape), np.float32(0))
    for held in (a, a != 0):
        x = pellucid.tensor(held, device=device)
        theirs = torch.tensor(held)
        assert x.nonzero().is_contiguous()
        assert x.nonzero().tolist() == theirs.nonzero().tolist()
        for mine, other in zip(
            x.nonzero(as_tuple=True), theirs.nonzero(as_tuple=True), strict=True
        ):  # fmt: skip
            assert mine.is_contiguous()
            assert np.array_equal(mine.numpy(), other.numpy())


def test_places_along_an_axis_take_a_dispatch_each():
    mask = pellucid.tensor(chosen((50, 60), 2, 0.5), device="webgpu")
    count = dispatches(lambda: mask.reshape(-1).cumsum(0, dtype=pellucid.int32))
    assert dispatches(lambda: mask.nonzero(as_tuple=True)) == count + 2


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_counts_of_every_integer_type(dtype):
    index, weights = np.random.randint(0, 100, 3000).astype(dtype), normal(3000)
    ours, heavy = pellucid.tensor(index, device="webgpu"), pellucid.tensor(weights, device="webgpu")
    assert np.array_equal(pellucid.bincount(ours).numpy(), np.bincount(index))
    np.testing.assert_allclose(pellucid.bincount(ours, heavy).numpy(), np.bincount(index, weights), atol=1e-4)
