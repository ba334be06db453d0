"""Transforms and constraints: images, inverses, Jacobians, shapes and errors are PyTorch's."""

from __future__ import annotations

import pickle
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import constraints as THEIRS

import pellucid
from distributions.rows import chance, positive, real
from pellucid import distributions as D
from pellucid.distributions import constraints


def f32(values: Any) -> np.ndarray:
    return np.array(values, "f4")


# A transform of a library, and values of its domain.
TRANSFORMS = {
    "exp": (lambda D, t: D.ExpTransform(), real(2, 3)),
    "sigmoid": (lambda D, t: D.SigmoidTransform(), real(2, 3)),
    "softplus": (lambda D, t: D.SoftplusTransform(), 9 * real(2, 3)),
    "tanh": (lambda D, t: D.TanhTransform(), real(2, 3)),
    "abs": (lambda D, t: D.AbsTransform(), real(2, 3)),
    "power": (lambda D, t: D.PowerTransform(t(f32([2, -1, 0.5]))), positive(2, 3)),
    "affine": (lambda D, t: D.AffineTransform(t(f32([1, 2, 3])), -2.0), real(2, 3)),
    "affine of vectors": (lambda D, t: D.AffineTransform(0.0, t(f32([1, -2, 3])), 1), real(2, 3)),
    "of a cdf": (lambda D, t: D.CumulativeDistributionTransform(D.Normal(t(f32(0.0)), 2.0)),
                 real(2, 3)),
    "softmax": (lambda D, t: D.SoftmaxTransform(), real(2, 3)),
    "stick": (lambda D, t: D.StickBreakingTransform(), real(2, 3)),
    "lower": (lambda D, t: D.LowerCholeskyTransform(), real(2, 3, 3)),
    "definite": (lambda D, t: D.PositiveDefiniteTransform(), real(2, 3, 3)),
    "correlation": (lambda D, t: D.CorrCholeskyTransform(), real(2, 6)),
    "reshape": (lambda D, t: D.ReshapeTransform((2, 3), (6,)), real(4, 2, 3)),
    "independent": (lambda D, t: D.IndependentTransform(D.ExpTransform(), 1), real(2, 3)),
    "compose": (lambda D, t: D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.StickBreakingTransform()]),
                real(2, 3)),
    "inverse": (lambda D, t: D.ComposeTransform([D.ExpTransform().inv, D.TanhTransform()]).inv,
                chance(2, 3)),
    "cat": (lambda D, t: D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], 1, [1, 2]), real(2, 3)),
    "stack": (lambda D, t: D.StackTransform([D.ExpTransform(), D.TanhTransform()], 0), real(2, 3)),
    "identity": (lambda D, t: D.identity_transform, real(2, 3)),
}  # fmt: skip


def same(ours: Any, theirs: Any, said: str = "") -> None:
    assert tuple(ours.shape) == tuple(theirs.shape), said
    np.testing.assert_allclose(
        ours.detach().cpu().numpy(), theirs.detach().numpy(), rtol=2e-4, atol=2e-5, err_msg=said
    )


def numbers(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def answer(call: Any) -> Any:
    """What is answered, or the class of what is refused."""
    try:
        return call()
    except NotImplementedError:
        return NotImplementedError


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize("key", TRANSFORMS)
def test_transforms(key, device):
    make, array = TRANSFORMS[key]
    a = make(D, lambda v: pellucid.tensor(v, device=device))
    b = make(torch.distributions, torch.tensor)
    x, u = pellucid.tensor(array, device=device, requires_grad=True), torch.tensor(array, requires_grad=True)
    y, v = a(x), b(u)
    same(y, v)
    same(a.inv(y), b.inv(v), "inverse")
    assert (a.domain.event_dim, a.codomain.event_dim) == (b.domain.event_dim, b.codomain.event_dim)
    assert bool(a.codomain.check(y).all())
    assert a.bijective == b.bijective
    assert tuple(a.forward_shape(x.shape)) == tuple(b.forward_shape(u.shape))
    assert tuple(a.inverse_shape(y.shape)) == tuple(b.inverse_shape(v.shape))
    assert np.array_equal(answer(lambda: numbers(a.sign)), answer(lambda: numbers(b.sign)))
    jacobians = answer(lambda: a.log_abs_det_jacobian(x, y)), answer(lambda: b.log_abs_det_jacobian(u, v))
    if jacobians[1] is NotImplementedError:
        assert jacobians[0] is NotImplementedError
    else:
        same(*jacobians, "jacobian")
        assert a.inv.inv is a
        same(a.inv.log_abs_det_jacobian(y, x), b.inv.log_abs_det_jacobian(v, u), "inverse jacobian")
        (slope,) = pellucid.autograd.grad(jacobians[0].sum() + y.square().sum(), x)
        (expected,) = torch.autograd.grad(jacobians[1].sum() + v.square().sum(), u)
        same(slope, expected, "gradient")
    cached = a.with_cache()
    image = cached(x)
    if a.bijective and key != "inverse":
        same(cached.inv(image), u, "what is remembered")
        assert key in ("compose", "identity") or cached.inv(image) is x


def test_transforms_are_equal():
    for key, (make, _) in TRANSFORMS.items():
        if key not in ("of a cdf", "reshape", "independent", "cat", "stack"):
            made = [make(D, lambda v: pellucid.tensor(v, device="cpu")) for _ in range(2)]
            assert made[0].inv == made[0].inv
            if key not in ("power", "affine", "affine of vectors"):
                assert made[0] == made[1], key
    assert D.AffineTransform(0, 1) == D.AffineTransform(0, 1) != D.AffineTransform(0, 2)
    assert D.PowerTransform(2.0) == D.PowerTransform(2.0) != D.ExpTransform()
    assert D.ExpTransform() != D.ExpTransform().inv
    assert pickle.loads(pickle.dumps(D.ExpTransform())) == D.ExpTransform()
    for lib in (D, torch.distributions):
        both = lib.ComposeTransform([lib.ExpTransform(), lib.AffineTransform(0.0, 2.0)])
        assert repr(both) == "ComposeTransform(\n    ExpTransform(),\n    AffineTransform()\n)"
        assert repr(lib.ReshapeTransform((2,), (1, 2)).domain) == "IndependentConstraint(Real(), 1)"
    assert repr(D.IndependentTransform(D.AbsTransform(), 1)) == "IndependentTransform(AbsTransform(), 1)"


def test_refused_transforms():
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        D.ExpTransform(cache_size=2)
    with pytest.raises(ValueError, match="different numbers of elements"):
        D.ReshapeTransform((2, 3), (5,))
    with pytest.raises(ValueError, match="Shape mismatch"):
        D.ReshapeTransform((2, 3), (6,)).forward_shape((3, 2))
    with pytest.raises(ValueError, match="Too few dimensions"):
        D.StickBreakingTransform().forward_shape(())
    with pytest.raises(ValueError, match="Input is not a flattend"):
        D.CorrCholeskyTransform().forward_shape((4,))
    with pytest.raises(ValueError, match="Input is not square"):
        D.CorrCholeskyTransform().inverse_shape((4, 3))
    with pytest.raises(ValueError, match=r"domain\.event_dim"):
        _ = D.ReshapeTransform((2, 3), (6,)).event_dim
    with pytest.raises(ValueError, match="Too few dimensions"):
        D.IndependentTransform(D.ExpTransform(), 1)(pellucid.tensor(1.0, device="cpu"))
    with pytest.raises(ValueError, match="must be a Transform or a list of Transforms"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="needs to have shape with size at least 1"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform())
    with pytest.raises(NotImplementedError, match="Cannot transform _Dependent constraints"):
        D.transform_to(constraints.dependent)
    with pytest.raises(TypeError, match="Expected constraint to be"):
        D.transform_to.register(3, lambda c: None)


NUMBERS = f32([-2, -1, -0.5, 0, 0.25, 1, 2, 3, np.nan])
MATRICES = f32([
    [[2, 0], [1, 3]], [[2, 1], [1, 3]], [[1, 2], [2, 1]], [[-1, 0], [0, 1]], [[1, 0], [0.6, 0.8]],
    [[1, 5], [0, 1]],
])  # fmt: skip
VECTORS = f32([[0, 1, 0], [0.5, 0.25, 0.25], [1, 1, 0], [2, 1, 0], [-1, 2, 0], [0, 0, 0]])
CONSTRAINTS: dict[str, tuple[Any, np.ndarray]] = {
    **{name: (attrgetter(name), array) for names, array in (
        ("boolean nonnegative nonnegative_integer positive positive_integer real unit_interval", NUMBERS),
        ("one_hot simplex real_vector", VECTORS),
        ("lower_triangular lower_cholesky corr_cholesky square symmetric", MATRICES),
        ("positive_semidefinite positive_definite", MATRICES),
    ) for name in names.split()},
    "greater": (lambda c: c.greater_than(-1), NUMBERS),
    "at least": (lambda c: c.greater_than_eq(-1), NUMBERS),
    "less": (lambda c: c.less_than(0.25), NUMBERS), "interval": (lambda c: c.interval(-1, 2), NUMBERS),
    "half open": (lambda c: c.half_open_interval(-1, 2), NUMBERS),
    "integers": (lambda c: c.integer_interval(-1, 2), NUMBERS),
    "counts": (lambda c: c.multinomial(2), VECTORS),
    "rows": (lambda c: c.independent(c.nonnegative, 1), VECTORS),
    "cat": (lambda c: c.cat([c.positive, c.boolean], 1, [1, 2]), VECTORS),
    "stack": (lambda c: c.stack([c.positive, c.boolean, c.real], 1), VECTORS),
    "mixture": (lambda c: c.MixtureSameFamilyConstraint(c.interval(-1, 2)), NUMBERS),
}  # fmt: skip


@pytest.mark.parametrize("key", CONSTRAINTS)
def test_constraints(key):
    make, array = CONSTRAINTS[key]
    a, b = make(constraints), make(THEIRS)
    found = a.check(pellucid.tensor(array, device="cpu"))
    expected = b.check(torch.tensor(array))
    assert found.dtype is pellucid.bool
    assert found.tolist() == expected.tolist()
    assert (a.event_dim, a.is_discrete) == (b.event_dim, b.is_discrete)
    assert "object at" not in repr(a)


def test_what_constraints_cannot_say():
    assert constraints.is_dependent(constraints.dependent)
    assert constraints.is_dependent(D.Uniform.support)
    assert not constraints.is_dependent(constraints.real)
    with pytest.raises(TypeError, match="cannot determine validity"):
        constraints.dependent.check(pellucid.ones(1, device="cpu"))
    for name in ("is_discrete", "event_dim"):
        with pytest.raises(NotImplementedError, match=f"{name} cannot be determined"):
            getattr(constraints.dependent, name)
    assert constraints.dependent(event_dim=2).event_dim == 2
    with pytest.raises(ValueError, match="values need at least 2 axes"):
        constraints.independent(constraints.real, 2).check(pellucid.ones(3, device="cpu"))


REGISTERED = {
    "real": constraints.real, "positive": constraints.positive, "at least": constraints.greater_than_eq(2.0),
    "greater": constraints.greater_than(2.0), "less": constraints.less_than(2.0),
    "unit": constraints.unit_interval, "interval": constraints.interval(-1.0, 3.0),
    "half open": constraints.half_open_interval(-1.0, 3.0), "simplex": constraints.simplex,
    "correlation": constraints.corr_cholesky, "rows": constraints.independent(constraints.positive, 1),
    "cat": constraints.cat([constraints.positive, constraints.real], 1, [1, 2]),
    "stack": constraints.stack([constraints.positive, constraints.real], 0),
}  # fmt: skip


@pytest.mark.parametrize("key", REGISTERED)
def test_from_real_numbers_to_a_constraint(key):
    x = pellucid.tensor(real(2, 3), device="cpu")
    for registry in (D.biject_to, D.transform_to):
        made = registry(REGISTERED[key])
        y = made(x)
        assert bool(REGISTERED[key].check(y).all())
        np.testing.assert_allclose(made(made.inv(y)).tolist(), y.tolist(), rtol=1e-3, atol=1e-5)
    for matrix in (
        constraints.lower_cholesky,
        constraints.positive_definite,
        constraints.positive_semidefinite,
    ):
        assert bool(matrix.check(D.transform_to(matrix)(pellucid.tensor(real(3, 3), device="cpu"))).all())


def test_registering_a_transform():
    class Even(constraints.Constraint):
        pass

    @D.biject_to.register(Even)
    def twice(constraint):
        return D.AffineTransform(0.0, 2.0)

    assert D.biject_to(Even()) == D.AffineTransform(0.0, 2.0)
    with pytest.raises(NotImplementedError, match=r"Even: define check\(\)"):
        Even().check(pellucid.ones(1, device="cpu"))
