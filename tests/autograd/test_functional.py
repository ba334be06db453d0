"""Jacobians, Hessians, their products, and the comparison with differences, beside PyTorch."""

import numpy as np
import pytest
import torch

import pellucid

VALUES = np.linspace(0.3, 1.2, 3).astype(np.float32)
OTHER = np.linspace(-1, 1, 3).astype(np.float32)


def numbers(value):
    return [numbers(v) for v in value] if isinstance(value, (tuple, list)) else value.detach().numpy()


def compare(program):
    """What a program of either library returns is equal."""
    theirs = numbers(program(torch, torch.tensor(VALUES), torch.tensor(OTHER)))
    mine = numbers(program(pellucid, *(pellucid.tensor(a, device="cpu") for a in (VALUES, OTHER))))
    flat = _flat(theirs)
    assert len(flat) == len(_flat(mine))
    for a, b in zip(_flat(mine), flat, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def _flat(value):
    return [a for v in value for a in _flat(v)] if isinstance(value, list) else [value]


PROGRAMS = {
    "vjp": lambda p, x, v: p.autograd.functional.vjp(lambda x: x.sin() * x.sum(), x, v),
    "vjp of several": lambda p, x, v: p.autograd.functional.vjp(
        lambda a, b: (a * b, (a + b).sum()), (x, v), (v, p.tensor(2.0, device=x.device))
    ),
    "jvp": lambda p, x, v: p.autograd.functional.jvp(lambda x: x.sin() * x.sum(), x, v),
    "jvp of several": lambda p, x, v: p.autograd.functional.jvp(
        lambda a, b: (a * b, (a + b).sum()), (x, v), (v, x)
    ),
    "jacobian": lambda p, x, v: p.autograd.functional.jacobian(lambda x: (x[:, None] * x).exp(), x),
    "jacobian of several": lambda p, x, v: p.autograd.functional.jacobian(
        lambda a, b: (a * b, a.sum()), (x, v)
    ),
    "jacobian by columns": lambda p, x, v: p.autograd.functional.jacobian(
        lambda a, b: (a * b.exp(), a.sum()),
        (x, v),
        **({"vectorize": True, "strategy": "forward-mode"} if p is pellucid else {}),
    ),
    "hessian": lambda p, x, v: p.autograd.functional.hessian(lambda x: (x**3).sum() * x[0], x),
    "hessian of several": lambda p, x, v: p.autograd.functional.hessian(
        lambda a, b: (a * a * b).sum(), (x, v)
    ),
    "hvp": lambda p, x, v: p.autograd.functional.hvp(lambda x: (x**3).sum() * x[0], x, v),
    "vhp": lambda p, x, v: p.autograd.functional.vhp(lambda x: (x**3).sum() * x[0], x, v),
    "further": lambda p, x, v: p.autograd.grad(
        p.autograd.functional.jacobian(p.sin, x.requires_grad_(), create_graph=True).sum(), x
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_pytorch(name):
    compare(PROGRAMS[name])


def test_refusals():
    f, x = pellucid.autograd.functional, pellucid.ones(2, device="cpu")
    for call, text in (
        (lambda: f.vjp(pellucid.sin, x), "^vjp: v can only be None"),
        (lambda: f.vjp(pellucid.sin, x, x[:1]), "^vjp: v has shapes"),
        (lambda: f.jacobian(lambda x: 3, x), "^jacobian: outputs of func must be Tensors"),
        (lambda: f.jacobian(lambda x: pellucid.ones(2), x, strict=True), "independent"),
        (lambda: f.jacobian(pellucid.sin, x, strategy="up"), "strategy"),
        (lambda: f.hessian(pellucid.sin, x), "^hessian: func must return one Tensor"),
        (lambda: f.hvp(pellucid.sin, 5), "^hvp: inputs must be Tensors"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert f.jacobian(lambda x: pellucid.ones(2, device="cpu"), x).tolist() == [[0.0, 0.0]] * 2


def test_gradcheck():
    p = pellucid
    x = p.tensor([0.5, 1.5], dtype=p.float64, device="cpu", requires_grad=True)
    y = p.tensor([[2.0], [3.0]], dtype=p.float64, device="cpu", requires_grad=True)
    assert p.autograd.gradcheck(lambda a, b: (a * b, a.sin().sum()), (x, y))
    assert p.autograd.gradgradcheck(lambda a, b: a.exp() * b, (x, y))
    assert x.tolist() == [0.5, 1.5]

    class Wrong(p.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    with pytest.raises(
        p.autograd.gradcheck.__globals__["GradcheckError"], match="Jacobian mismatch for output 0"
    ):
        p.autograd.gradcheck(Wrong.apply, x)
    assert not p.autograd.gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(RuntimeError, match="requires grad"):
        p.autograd.gradcheck(p.sin, x.detach())
    with pytest.warns(UserWarning, match="double precision"):
        p.autograd.gradcheck(p.sin, x.detach().float().requires_grad_(), eps=1e-2, atol=1e-2)
