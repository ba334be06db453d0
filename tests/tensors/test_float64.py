"""float64 and complex128 on webgpu, where they are let in: kept whole, computed in float32, said once."""

import io
import warnings

import numpy as np
import pytest

import pellucid
from pellucid.errors import ArgumentError, DTypeError
from pellucid.op.kernel import element_types

RANDOM = np.random.default_rng(0)
# Ordinary numbers of all sizes, ties, the largest that float32 holds and what lies beside it, subnormals.
HALF = 2.0**-24
VALUES = np.concatenate([
    RANDOM.standard_normal(50) * 10.0 ** RANDOM.integers(-44, 38, 50),
    [0, -0.0, np.inf, -np.inf, np.nan, 1 + HALF, 1 + HALF + HALF**2, 1 + 3 * HALF, 3.4028235677973366e38,
     3.4028235677973362e38, 1e-45, 7.1e-46, 7e-46, 1e-46, 1.1754943e-38, 1e300, -1e-300],
])  # fmt: skip
float64, complex128 = pellucid.float64, pellucid.complex128


@pytest.fixture(autouse=True)
def let_in(monkeypatch):
    monkeypatch.setattr(element_types, "_has_warned", True)
    pellucid.webgpu.set_float64_precision("float32")
    yield
    pellucid.webgpu.set_float64_precision("none")
    pellucid.set_default_dtype(pellucid.float32)


def test_elements_keep_their_bits():
    """Made, copied, viewed, written in place, saved and read: no bit is lost; float32 is the nearest."""
    x = pellucid.tensor(VALUES)
    assert x.dtype is float64
    assert x.device.type == "webgpu"
    buffer = io.BytesIO()
    pellucid.save(x, buffer)
    buffer.seek(0)
    for same in (x, x.clone(), x.flip(0).clone()[::1].flip(0), pellucid.load(buffer)):
        assert same.dtype is float64
    for same in (x, x.clone(), pellucid.zeros_like(x).copy_(x), pellucid.stack([x, x])[1].clone()):
        read = same.numpy()
        assert read.dtype == np.float64
    moved = x.view(-1, 1).t().contiguous().numpy()[0]
    np.testing.assert_array_equal(moved.view(np.int64), VALUES.view(np.int64))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(x.float().numpy(), VALUES.astype(np.float32))
    halves = np.array([0, -0.0, 1e-45, 1.2e-38, 3.4e38, np.inf, np.nan, 1 / 3, -7], np.float32)
    np.testing.assert_array_equal(pellucid.tensor(halves).double().numpy(), halves.astype(np.float64))
    z = VALUES[:8] + 1j * VALUES[8:16]
    w = pellucid.tensor(z)
    assert (w.dtype, w.real.dtype, w.abs().dtype) == (complex128, float64, float64)
    np.testing.assert_array_equal(w.clone().numpy(), z)
    np.testing.assert_array_equal(w.to(pellucid.complex64).numpy(), z.astype(np.complex64))


def test_results_have_the_types_of_pytorch_and_the_precision_of_float32():
    a, b = RANDOM.standard_normal((2, 3, 4))
    x, y = pellucid.tensor(a, requires_grad=True), pellucid.tensor(b)
    for ours, theirs in (
        (x * y + 1, a * b + 1), (x @ y.t(), a @ b.T), (x.softmax(1).log().sum(), None),
        (pellucid.where(y > 0, x, 0.5), np.where(b > 0, a, 0.5)), (x.max(1).values, a.max(1)),
        (pellucid.ones(2).sum(dtype=float64), 2.0),
        (pellucid.float_power(pellucid.tensor([2, 3]), 2), [4, 9]),
        (pellucid.linalg.inv(x[:, :3]), np.linalg.inv(a[:, :3])), (x[[2, 0], 1:], a[[2, 0], 1:]),
    ):  # fmt: skip
        assert ours.dtype is float64
        if theirs is not None:
            np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-4, atol=1e-5)
    assert (y > 0).dtype is pellucid.bool
    assert y.argmax(1).dtype is pellucid.int64
    assert (pellucid.tensor(2.0, dtype=float64) * pellucid.ones(2)).dtype is pellucid.float32
    assert pellucid.fft.fft(y).dtype is complex128
    (x.sin() * y).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is float64
    np.testing.assert_allclose(x.grad.numpy(), np.cos(a) * b, rtol=1e-5)
    pellucid.set_default_dtype(float64)
    assert pellucid.tensor([4, 9]).sqrt().tolist() == [2.0, 3.0]
    assert pellucid.tensor([4, 9]).sqrt().dtype is pellucid.ones(1).dtype is float64


def test_writing_in_place_and_training():
    y = pellucid.zeros(3, dtype=float64)
    y += 1
    y[1] = 0.1
    y.mul_(pellucid.tensor([1.0, 2.0, 3.0]))
    y[pellucid.tensor([True, False, False])] = 7
    np.testing.assert_allclose(y.numpy(), [7, 0.2, 3], rtol=1e-6)
    with pytest.raises(DTypeError, match="does not fit"):
        pellucid.zeros(3, dtype=pellucid.int64).add_(y)
    layer = pellucid.nn.Linear(3, 2)
    layer.double()
    before = layer.weight.detach().numpy().copy()
    for optimizer in (
        pellucid.optim.SGD(layer.parameters(), 0.1, momentum=0.9),
        pellucid.optim.Adam(layer.parameters()),
    ):
        optimizer.zero_grad()
        layer(y).square().sum().backward()
        optimizer.step()
    assert layer.weight.dtype is float64
    assert np.abs(layer.weight.detach().numpy() - before).max() > 1e-3


def test_it_is_said_once_and_can_be_taken_back(monkeypatch):
    monkeypatch.setattr(element_types, "_has_warned", False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        y = pellucid.ones(2, dtype=float64) + pellucid.ones(2, dtype=float64)
    assert [str(w.message).split(" (")[0] for w in found] == [
        "pellucid.float64 on webgpu is computed in float32"
    ]
    assert pellucid.webgpu.get_float64_precision() == "float32"
    pellucid.webgpu.set_float64_precision("none")
    with pytest.raises(DTypeError, match=r"set_float64_precision\('float32'\)"):
        _ = y + 1
    with pytest.raises(ArgumentError, match='"none" or "float32"'):
        pellucid.webgpu.set_float64_precision("float64")


def test_the_default_dtype_is_no_part_of_old_plans():
    """A call that was planned for another default dtype is planned again."""
    x = pellucid.tensor([4], device="cpu")
    assert x.sqrt().dtype is pellucid.float32
    pellucid.set_default_dtype(float64)
    assert x.sqrt().dtype is float64
