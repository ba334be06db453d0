"""Random numbers: equal on every device, as distributed as promised, governed by their generator."""

import numpy as np
import pytest
import torch

import pellucid


def drawn(device, seed=5):
    g = pellucid.Generator().manual_seed(seed)
    options = {"device": device, "generator": g}
    return [
        pellucid.rand(1001, **options),
        pellucid.randint(0, 10, (77,), **options),
        pellucid.randint(-5, 2**31, (77,), dtype=pellucid.int32, **options),
        pellucid.randint(2**40, 2**40 + 2**31, (9,), **options),
        pellucid.randperm(100, **options),
        pellucid.rand(3, 3, dtype=pellucid.float16, **options),
        pellucid.randn(1001, **options),
    ]


def test_a_seed_says_everything():
    first, again, other = drawn("webgpu"), drawn("webgpu"), drawn("webgpu", 6)
    for x, y, z in zip(first, again, other, strict=True):
        assert x.tolist() == y.tolist()
        assert x.tolist() != z.tolist()
    pellucid.manual_seed(3)
    state = pellucid.get_rng_state()
    x = pellucid.randn(5)
    pellucid.set_rng_state(state)
    assert pellucid.randn(5).tolist() == x.tolist()
    assert pellucid.initial_seed() == 3
    assert pellucid.randn(5).tolist() != x.tolist()


def test_streams_do_not_overlap():
    """What is drawn in two parts is what is drawn at once, in blocks of four."""
    g = pellucid.Generator().manual_seed(1)
    whole = pellucid.rand(16, generator=g)
    g.manual_seed(1)
    parts = pellucid.cat([pellucid.rand(8, generator=g), pellucid.rand(8, generator=g)])
    assert whole.tolist() == parts.tolist()


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_distributions(device):
    pellucid.manual_seed(0)
    u = pellucid.rand(200_000, device=device).numpy()
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 0.003
    assert abs(u.var() - 1 / 12) < 0.002
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.01
    z = pellucid.randn(200_000, device=device).numpy()
    assert np.isfinite(z).all()
    assert abs(z.mean()) < 0.01
    assert abs(z.std() - 1) < 0.01
    assert abs((np.abs(z) < 1).mean() - 0.6827) < 0.005
    assert abs((z**3).mean()) < 0.03
    assert abs((z**4).mean() - 3) < 0.1
    k = pellucid.randint(0, 7, (70_000,), device=device).numpy()
    assert (np.abs(np.bincount(k, minlength=7) - 10_000) < 500).all()
    assert sorted(pellucid.randperm(1000, device=device).tolist()) == list(range(1000))
    b = pellucid.bernoulli(pellucid.full((50_000,), 0.3, device=device)).numpy()
    assert abs(b.mean() - 0.3) < 0.01
    assert set(b.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_dropout(device):
    pellucid.manual_seed(0)
    x = pellucid.ones(50_000, device=device, requires_grad=True)
    y = pellucid.nn.functional.dropout(x, 0.25)
    values = y.detach().numpy()
    assert abs((values == 0).mean() - 0.25) < 0.01
    np.testing.assert_allclose(values[values != 0], 4 / 3, rtol=1e-6)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)
    assert pellucid.dropout(x, 0.5, train=False) is x
    assert not pellucid.dropout(x.detach(), 1.0, True).numpy().any()


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_filling(device):
    x = pellucid.zeros(3, 1000, device=device)
    x[1].uniform_(-2, -1)
    x[2].normal_(5, 0.1)
    a = x.numpy()
    assert not a[0].any()
    assert (a[1] >= -2).all()
    assert (a[1] < -1).all()
    assert abs(a[2].mean() - 5) < 0.02


def test_forms_of_calls():
    """Sizes by name, gradients that are asked for, and Python's type, as PyTorch takes them."""
    for lib in (torch, pellucid):
        x = lib.ones(2, 3, device="cpu")
        assert lib.randint(10, size=(2,), device="cpu").shape == (2,)
        assert lib.randint(10, size=(), device="cpu").shape == ()
        assert lib.randint(low=2, high=5, size=[3], device="cpu").shape == (3,)
        assert lib.randint(4, (2, 2), device="cpu", requires_grad=False).shape == (2, 2)
        assert lib.randint(4, (2,), device="cpu", dtype=lib.float32, requires_grad=True).requires_grad
        for like in (lib.rand_like, lib.randn_like):
            assert like(x, requires_grad=True).requires_grad
            assert not like(x).requires_grad
        assert lib.randint_like(x, 5, requires_grad=True).requires_grad
        assert str(lib.randn(2, dtype=float, device="cpu").dtype).endswith("float64")
        with pytest.raises(TypeError):
            lib.randint(10)
