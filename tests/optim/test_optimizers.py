"""Optimizers against PyTorch's over 20 steps, on plain, half and strided parameters."""

import copy

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import WeightError

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "dampening": 0.5}),
    ("SGD", {"lr": 0.001, "momentum": 0.9, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.99), "eps": 1e-6}),
    ("Adam", {"lr": 0.01, "amsgrad": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3}),
]
START = np.random.default_rng(1).standard_normal((7, 45)).astype(np.float32)


def loss_of(w):
    return (w * w).sum() * 0.5 + w.sin().sum()


def steps(optimizer, w, count=20):
    for _ in range(count):
        optimizer.zero_grad()
        loss_of(w).backward()
        optimizer.step()


def value(t):
    return t.detach().numpy()


@pytest.mark.parametrize(("name", "settings"), CASES, ids=[f"{n}{s}" for n, s in CASES])
def test_equals_pytorch(name, settings, device):
    ours = pellucid.tensor(START, device=device, requires_grad=True)
    theirs = torch.tensor(START, requires_grad=True)
    steps(getattr(pellucid.optim, name)([ours], **settings), ours)
    steps(getattr(torch.optim, name)([theirs], **settings), theirs)
    np.testing.assert_allclose(value(ours), value(theirs), atol=1e-5, rtol=1e-5)
    assert ours.grad.shape == ours.shape


@pytest.mark.parametrize(("name", "settings"), [CASES[1], CASES[8]])
def test_strided_and_half_parameters(name, settings, device):
    base = pellucid.tensor(START.T.copy(), device=device)
    strided = base.t().requires_grad_()
    half = pellucid.tensor(START, device=device, dtype=pellucid.float16, requires_grad=True)
    theirs = torch.tensor(START, requires_grad=True)
    for w in (strided, half):
        steps(getattr(pellucid.optim, name)([w], **settings), w)
    steps(getattr(torch.optim, name)([theirs], **settings), theirs)
    assert not strided.is_contiguous()
    np.testing.assert_allclose(value(strided), value(theirs), atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(value(base).T, value(theirs), atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(value(half), value(theirs), atol=0.05)


def test_double_parameters_stay_exact():
    ours = pellucid.tensor(START.astype(np.float64), device="cpu", requires_grad=True)
    theirs = torch.tensor(START.astype(np.float64), requires_grad=True)
    steps(pellucid.optim.AdamW([ours]), ours)
    steps(torch.optim.AdamW([theirs]), theirs)
    np.testing.assert_allclose(value(ours), value(theirs), rtol=1e-12)


def test_a_parameter_that_is_part_of_a_storage(device):
    base = pellucid.tensor(START, device=device)
    row = base[2].requires_grad_()
    theirs = torch.tensor(START[2], requires_grad=True)
    steps(pellucid.optim.Adam([row]), row)
    steps(torch.optim.Adam([theirs]), theirs)
    np.testing.assert_allclose(value(row), value(theirs), atol=1e-5)
    np.testing.assert_array_equal(np.delete(value(base), 2, 0), np.delete(START, 2, 0))


def test_one_dispatch_per_parameter():
    ours = [pellucid.tensor(START, device="webgpu", requires_grad=True) for _ in range(3)]
    optimizer = pellucid.optim.AdamW(ours, lr=0.01)
    sum(loss_of(w) for w in ours).backward()
    optimizer.step()
    before = pellucid.webgpu.memory_stats()
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    optimizer.step()
    after = pellucid.webgpu.memory_stats()
    assert after["dispatches"] - before["dispatches"] == 3
    assert after["pipelines"] == before["pipelines"]
    assert after["allocated_bytes"] == before["allocated_bytes"]


def test_groups_have_their_own_settings(device):
    values = []
    for lib, where in ((pellucid, device), (torch, "cpu")):
        a, b = (lib.tensor(START, device=where, requires_grad=True) for _ in range(2))
        optimizer = lib.optim.SGD([{"params": [a], "lr": 0.5}, {"params": b}], lr=0.01, momentum=0.9)
        c = lib.tensor(START, device=where, requires_grad=True)
        optimizer.add_param_group({"params": [c], "momentum": 0.0})
        assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.01, 0.01]
        for _ in range(3):
            optimizer.zero_grad()
            (a.sum() + (b * b).sum() + c.sin().sum()).backward()
            optimizer.step()
        values.append([value(t) for t in (a, b, c)])
    for ours, theirs in zip(*values, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-5)


def test_named_parameters_are_taken(device):
    layer = pellucid.nn.Linear(2, 2, device=device)
    optimizer = pellucid.optim.SGD(layer.named_parameters())
    assert optimizer.param_groups[0]["params"] == list(layer.parameters())


def test_parameters_without_gradient_stay(device):
    a = pellucid.ones(2, device=device, requires_grad=True)
    b = pellucid.ones(2, device=device, requires_grad=True)
    optimizer = pellucid.optim.AdamW([a, b])
    a.sum().backward()
    optimizer.step()
    assert b.tolist() == [1.0, 1.0]
    assert b not in optimizer.state
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert a.grad is None


def test_closure_runs_with_gradients(device):
    w = pellucid.ones(2, device=device, requires_grad=True)
    optimizer = pellucid.optim.SGD([w], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with pellucid.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert w.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("name", "settings"), [CASES[1], CASES[9]])
def test_state_goes_over_to_another_optimizer(name, settings, device):
    straight = pellucid.tensor(START, device=device, requires_grad=True)
    first = getattr(pellucid.optim, name)([straight], **settings)
    steps(first, straight, 4)
    moved = straight.detach().clone().requires_grad_()
    second = getattr(pellucid.optim, name)([moved], lr=123.0)
    state = copy.deepcopy(first.state_dict())
    second.load_state_dict(state)
    assert second.param_groups[0]["lr"] == settings["lr"]
    steps(first, straight, 4)
    steps(second, moved, 4)
    np.testing.assert_allclose(value(moved), value(straight), atol=1e-6)
    theirs = getattr(torch.optim, name)([torch.tensor(START, requires_grad=True)], **settings)
    assert set(settings) <= set(state["param_groups"][0])
    assert set(state) == set(theirs.state_dict())


def test_old_values_of_a_parameter_are_missed_by_backward(device):
    w = pellucid.ones(2, device=device, requires_grad=True)
    optimizer = pellucid.optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o, w: o.SGD(w), TypeError, "not one tensor"),
        (lambda o, w: o.SGD([]), ValueError, "no parameters"),
        (lambda o, w: o.SGD([3]), TypeError, "optimizes tensors, not int"),
        (lambda o, w: o.SGD([{"params": [w]}, {"params": w}]), ValueError, "in two groups"),
        (
            lambda o, w: o.SGD([{"params": [w]}, 5]),
            TypeError,
            "a group must be a dictionary with the key 'params'",
        ),
        (lambda o, w: o.SGD([{"lr": 1.0}]), TypeError, "with the key 'params', not \\['lr'\\]"),
        (lambda o, w: o.SGD([{"params": {w}}]), TypeError, "need an order"),
        (lambda o, w: o.SGD([("a", w), w.detach()]), ValueError, "names, or none"),
        (lambda o, w: o.SGD(5), TypeError, "must be an iterable of tensors or of dictionaries, not int 5"),
        (lambda o, w: o.SGD([{"params": None}]), TypeError, "must be an iterable"),
        (lambda o, w: o.SGD([w], lr="a"), TypeError, "'lr' must be a number, not str 'a'"),
        (lambda o, w: o.SGD([w]).step(5), TypeError, "closure must be a function"),
        (lambda o, w: o.Adam([w], betas=5), TypeError, "betas must be two numbers, not 5"),
        (lambda o, w: o.Adam([w], betas=(0.9,)), TypeError, "betas must be two numbers"),
        (lambda o, w: o.SGD([w]).load_state_dict(None), TypeError, "what an optimizer's state_dict"),
        (
            lambda o, w: o.SGD([w]).load_state_dict({"state": {}, "param_groups": [{}]}),
            TypeError,
            "state_dict",
        ),
        (lambda o, w: o.lr_scheduler.LambdaLR(o.SGD([w]), 5), TypeError, "lr_lambda must be a list"),
        (lambda o, w: o.lr_scheduler.SequentialLR(o.SGD([w]), [5], []), TypeError, "must be schedules"),
        (lambda o, w: o.lr_scheduler.StepLR(None, 3), TypeError, "takes an optimizer, not NoneType"),
        (lambda o, w: o.SGD([w * 2]), ValueError, "only leaf tensors"),
        (lambda o, w: o.SGD([w], lr=-1), ValueError, "lr must be at least 0, not -1"),
        (lambda o, w: o.SGD([w], nesterov=True), ValueError, "nesterov needs momentum"),
        (
            lambda o, w: o.Adam([w], betas=(1.0, 0.9)),
            ValueError,
            r"betas\[0\] must be at least 0 and below 1, not 1.0",
        ),
        (lambda o, w: o.AdamW([w], eps=-1), ValueError, "eps must be"),
    ],
)
def test_says_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make(pellucid.optim, pellucid.ones(2, device="cpu", requires_grad=True))


@pytest.mark.filterwarnings("ignore:optimizer contains a parameter group with duplicate")
def test_a_parameter_twice_in_a_group_takes_two_steps():
    made = []
    for p in (torch, pellucid):
        w = p.ones(2, device="cpu", requires_grad=True)
        with pytest.warns(UserWarning, match="duplicate|twice"):
            optimizer = p.optim.SGD([w, w], lr=0.125)
        for _ in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
        made.append((w.tolist(), optimizer.state_dict()["param_groups"][0]["params"]))
    assert made[0] == made[1]


def test_state_of_another_shape_is_refused():
    a, b = (pellucid.ones(2, device="cpu", requires_grad=True) for _ in range(2))
    state = pellucid.optim.SGD([a, b]).state_dict()
    with pytest.raises(WeightError, match=r"groups of \[2\] parameters, the optimizer of \[1\]"):
        pellucid.optim.SGD([a]).load_state_dict(state)


def test_prints_its_settings():
    w = pellucid.ones(2, device="cpu", requires_grad=True)
    text = repr(pellucid.optim.SGD([w], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0.0\n    lr: 0.5\n")


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_no_weight_decay_leaves_infinite_parameters_alone(name, device):
    seen = []
    for p, options in ((torch, {}), (pellucid, {"device": device})):
        x = p.tensor([1.0, float("inf"), 3.0], requires_grad=True, **options)
        optimizer = getattr(p.optim, name)([x], lr=0.1)
        x.grad = p.tensor([1.0, 1.0, 1.0], **options)
        optimizer.step()
        seen.append(x.tolist())
    assert seen[1] == pytest.approx(seen[0], nan_ok=True)
