"""`odeint` against closed forms: tolerances, orders, values between steps, derivatives, refusals."""

import math

import numpy as np
import pytest

import pellucid as torch
from pellucid import physics
from pellucid.physics.ode import DormandPrince


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64, device="cpu")


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_errors_follow_the_tolerance(tolerance):
    """``y' = cos(t) y`` is ``exp(sin(t))``; times lie between steps."""
    times = [0.0, 0.7, 1.3, 3.0]
    y = physics.odeint(lambda t, y: math.cos(t) * y, doubles(1.0, 2.0), times, rtol=tolerance, atol=tolerance)
    exact = np.exp(np.sin(times))[:, None] * [1, 2]
    error = np.abs(y.numpy() - exact).max()
    assert error < 30 * tolerance
    assert error > tolerance / 1000 or tolerance < 1e-9


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_orders_of_fixed_steps(method, order):
    errors = []
    for step in (0.05, 0.025):
        y = physics.odeint(
            lambda t, y: math.cos(t) * y, doubles(1.0), [0.0, 1.0], method=method, step_size=step
        )
        errors.append(abs(y[-1].item() - math.exp(math.sin(1))))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


def test_the_order_of_dormand_prince_is_five():
    """A step of a given size: its error falls with dt^6; its estimate of order 4 with dt^5."""
    errors = []
    for dt in (0.4, 0.2):
        solver = DormandPrince(lambda t, y: math.cos(t) * y, doubles(1.0), 0.0, 1.0, 1.0, 1.0)
        solver.dt = dt
        solver.step()
        assert solver.t == dt
        errors.append(
            (
                abs(solver.y.item() - math.exp(math.sin(dt))),
                abs(solver.at(dt / 2).item() - math.exp(math.sin(dt / 2))),
            )
        )
    assert math.log2(errors[0][0] / errors[1][0]) == pytest.approx(6, abs=0.8)
    assert math.log2(errors[0][1] / errors[1][1]) > 4.5


def test_backwards_and_a_round_trip():
    there = physics.odeint(lambda t, y: -y * t, doubles(1.0), [0.0, 2.0])
    back = physics.odeint(lambda t, y: -y * t, there[1], [2.0, 0.0])
    assert there[1].item() == pytest.approx(math.exp(-2), rel=1e-5)
    assert back[1].item() == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_an_oscillator_in_float32(device):
    def field(t, y):
        return torch.stack([y[1], -y[0]])

    y = physics.odeint(
        field, torch.tensor([1.0, 0.0], device=device), torch.tensor([0.0, 1.0, 3.0]), rtol=1e-5
    )
    np.testing.assert_allclose(y[:, 0].numpy(), np.cos([0, 1, 3]), atol=1e-4)


@pytest.mark.parametrize("method", ["dopri5", "rk4"])
def test_derivatives_go_through_the_steps(method):
    """``y' = a y``: ``dy(1)/da = y(1)``, ``dy(1)/dy(0) = exp(a)``."""
    a, y0 = doubles(0.5).requires_grad_(), doubles(2.0).requires_grad_()
    step = None if method == "dopri5" else 0.05
    y = physics.odeint(
        lambda t, y: a * y, y0, [0.0, 0.4, 1.0], method=method, rtol=1e-9, atol=1e-9, step_size=step
    )
    y[-1].sum().backward()
    assert a.grad.item() == pytest.approx(2 * math.exp(0.5), rel=1e-6)
    assert y0.grad.item() == pytest.approx(math.exp(0.5), rel=1e-6)


def test_it_is_the_reference_of_symplectic_methods():
    """A pendulum by both."""
    system = physics.pendulum()
    y = physics.odeint(
        lambda t, y: torch.cat([y[1:], -y[:1].sin()]), doubles(1.0, 0.3), [0.0, 2.0], rtol=1e-9, atol=1e-9
    )
    path = physics.integrate(system, doubles(1.0), doubles(0.3), 0.05, 40, method="yoshida6", every=40)
    np.testing.assert_allclose([path.q[-1].item(), path.p[-1].item()], y[-1].numpy(), atol=1e-7)


REFUSED = [
    (lambda y: physics.odeint(lambda t, y: y * y, y, [0.0, 2.0]), "no step is small enough"),
    (lambda y: physics.odeint(lambda t, y: y, y, [0.0]), "two times or more"),
    (lambda y: physics.odeint(lambda t, y: y, y, [0.0, 1.0, 0.5]), "all rising or all falling"),
    (lambda y: physics.odeint(lambda t, y: y, y, [0, 1], method="rk45"), "'rk45' is none of"),
    (lambda y: physics.odeint(lambda t, y: y[:0], y, [0, 1]), r"returned \(0,\)"),
    (lambda y: physics.odeint(lambda t, y: y, y, [0, 1], rtol=0, atol=0), "must be at least 0"),
    (lambda y: physics.odeint(lambda t, y: y, y, [0, 1], step_size=0.1), "is for fixed steps only"),
    (lambda y: physics.odeint(3, y, [0, 1]), "takes a function of t and y"),
    (lambda y: physics.odeint(lambda t, y: y, y.long(), [0, 1]), "floating-point Tensor y0"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_what_is_refused(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(doubles(1.0))
