"""A walk to named inputs runs only what leads to them, as PyTorch's does."""

import pytest

import pellucid as torch
from pellucid import nn


@pytest.fixture
def ran(monkeypatch):
    """Names of the nodes whose formulas run."""
    from pellucid.autograd.nodes import Node

    names, gradients = [], Node.gradients
    monkeypatch.setattr(Node, "gradients", lambda self, *a: names.append(self.op.name) or gradients(self, *a))
    return names


def test_what_lies_before_the_inputs_does_not_run(ran):
    x = torch.tensor([2.0], device="cpu", requires_grad=True)
    early = x.sin()
    late = early * early
    (g,) = torch.autograd.grad(late.exp(), late)
    assert g.item() == pytest.approx(late.exp().item())
    assert ran == ["exp"]


def test_what_lies_beside_the_inputs_does_not_run(ran):
    x = torch.tensor([2.0], device="cpu", requires_grad=True)
    y = torch.tensor([3.0], device="cpu", requires_grad=True)
    (g,) = torch.autograd.grad(x.sin() + y.cos().exp(), x)
    assert g.item() == pytest.approx(torch.cos(x).item())
    assert ran == ["add", "sin"]


def test_an_input_behind_another_input_is_reached():
    x = torch.tensor([2.0], device="cpu", requires_grad=True)
    y = x * x
    assert [g.item() for g in torch.autograd.grad(y * 3, [y, x])] == [3.0, 12.0]
    z = x.exp()
    torch.autograd.backward(z * 2, inputs=[x])
    assert x.grad.item() == pytest.approx(2 * z.item())


def test_a_root_may_be_the_input():
    x = torch.tensor([2.0], device="cpu", requires_grad=True)
    y = x * 2
    assert torch.autograd.grad([x, y], [x, y])[0].item() == 3.0
    assert torch.autograd.grad(x, x)[0].item() == 1.0


def test_what_did_not_run_keeps_what_it_saved():
    """PyTorch frees what a walk went through, and no more."""
    x = torch.tensor([2.0], device="cpu", requires_grad=True)
    early = x.exp()
    late = early * early
    torch.autograd.grad(late, early)
    assert torch.autograd.grad(early, x)[0].item() == pytest.approx(early.item())


def test_a_deep_graph_is_walked_without_recursion():
    x = torch.tensor([1.0], device="cpu", requires_grad=True)
    y = x
    for _ in range(3000):
        y = y * 1.0
    assert torch.autograd.grad(y, x)[0].item() == 1.0


def test_gradients_of_inputs_of_a_module_are_those_of_backward():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to("cpu")
    x = torch.randn(5, 3, device="cpu").requires_grad_()
    (g,) = torch.autograd.grad(model(x).square().sum(), x)
    model(x).square().sum().backward()
    assert (g - x.grad).abs().max().item() == 0
