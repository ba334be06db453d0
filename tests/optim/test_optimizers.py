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
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "weight_decay": 0.1, "t0": 3}),
    ("Rprop", {"etas": (0.4, 1.3), "step_sizes": (1e-3, 0.1), "maximize": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {"rho": 0.8, "weight_decay": 0.1}),
    ("RMSprop", {"weight_decay": 0.1}),
    ("RMSprop", {"lr": 1e-3, "momentum": 0.9, "centered": True, "eps": 0.1}),
    ("RMSprop", {"centered": True, "maximize": True}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "momentum_decay": 0.01}),
    ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "eps": (1e-3, 0.1), "d": 2.0, "maximize": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "foreach": True}),
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
    """M-11, P-037, P-095, P-096: SGD, RMSprop, Adam, AdamW (100 steps) and others, step by step."""
    ours = pellucid.tensor(START, device=device, requires_grad=True)
    theirs = torch.tensor(START, requires_grad=True)
    ours_by = getattr(pellucid.optim, name)([ours], **settings)
    theirs_by = getattr(torch.optim, name)([theirs], **settings)
    count = 100 if (name, settings) == CASES[8] else 20
    steps(ours_by, ours, count)
    steps(theirs_by, theirs, count)
    np.testing.assert_allclose(value(ours), value(theirs), atol=1e-5, rtol=1e-5)
    assert ours.grad.shape == ours.shape
    assert_equal_states(ours_by, theirs_by)


def assert_equal_states(ours, theirs):
    """The same entries as in PyTorch's file, in tensors of the same shapes and dtypes."""
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert ours["state"].keys() == theirs["state"].keys()
    for place, wanted in theirs["state"].items():
        have = ours["state"][place]
        assert have.keys() == wanted.keys()
        for name, x in wanted.items():
            assert str(x.dtype) == str(have[name].dtype).replace("pellucid", "torch")
            np.testing.assert_allclose(value(have[name]), value(x), atol=1e-5, rtol=1e-5)


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


@pytest.mark.parametrize(("name", "settings"), [CASES[1], CASES[9], CASES[11], CASES[19]])
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
        (lambda o, w: o.Adadelta([w], rho=1.5), ValueError, "rho must be at least 0 and at most 1, not 1.5"),
        (lambda o, w: o.Rprop([w], etas=(1.1, 1.2)), ValueError, "etas must lie"),
        (lambda o, w: o.Adam([w], differentiable=True), RuntimeError, "not differentiable"),
        (lambda o, w: o.SparseAdam([w]), RuntimeError, "no sparse tensors"),
        (lambda o, w: o.Muon([w]), ValueError, r"shape \(2,\), not two axes"),
        (lambda o, w: o.Muon([w], adjust_lr_fn="x"), ValueError, "'match_rms_adamw' or None, not 'x'"),
        (lambda o, w: o.Muon([w], ns_steps=100), ValueError, "0 to 99 ns_steps"),
        (lambda o, w: o.LBFGS([{"params": [w]}, {"params": []}]), ValueError, "one group"),
        (lambda o, w: o.LBFGS([w]).step(), TypeError, "closure"),
        (lambda o, w: o.LBFGS([w], line_search_fn="x").step(abs), RuntimeError, "'strong_wolfe', not 'x'"),
        (lambda o, w: o.Adam([w], foreach=True, fused=True), RuntimeError, "exclude each other"),
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
    lines = [
        repr(lib.optim.SGD([{"params": [lib.ones(1)]}, {"params": [lib.ones(1)]}], lr=0.5)).count("\n\n")
        for lib in (torch, pellucid)
    ]
    assert lines == [1, 1]
    text = repr(pellucid.optim.SGD([w], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0.0\n    differentiable: False\n")


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


def test_state_of_a_pytorch_file(device):
    """What PyTorch saved goes on here as it does there."""
    theirs = torch.tensor(START, requires_grad=True)
    there = torch.optim.NAdam([("w", theirs)])
    steps(there, theirs, 3)
    saved = copy.deepcopy(there.state_dict())
    for k, x in saved["state"][0].items():
        saved["state"][0][k] = pellucid.tensor(x.numpy())
    ours = pellucid.tensor(value(theirs), device=device, requires_grad=True)
    here = pellucid.optim.NAdam([("w", ours)])
    here.load_state_dict(saved)
    steps(there, theirs, 3)
    steps(here, ours, 3)
    np.testing.assert_allclose(value(ours), value(theirs), atol=1e-5)
    assert here.param_groups[0]["param_names"] == ["w"]


def heard(lib, make):
    """What the hooks of an optimizer hear, in order."""
    w = lib.ones(2, device="cpu", requires_grad=True)
    o, seen = make(lib)([w], lr=0.5), []
    w.grad = lib.ones(2, device="cpu")
    handles = [
        o.register_step_pre_hook(lambda o, args, kwargs: seen.append(("before", w.tolist(), len(args)))),
        o.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 3.0), {})),
        o.register_step_post_hook(lambda o, args, kwargs: seen.append(("after", w.tolist(), len(args)))),
        o.register_state_dict_pre_hook(lambda o: seen.append("saving")),
        o.register_state_dict_post_hook(lambda o, state: {**state, "more": 1}),
        o.register_state_dict_post_hook(lambda o, state: seen.append(len(state)), prepend=True),
        o.register_load_state_dict_pre_hook(lambda o, state: seen.append(sorted(state))),
        o.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
    ]
    seen.append(o.step())
    o.load_state_dict(o.state_dict())
    for handle in handles:
        handle.remove()
    o.step()
    o.load_state_dict(o.state_dict())
    return [*seen, w.tolist()]


def own(lib):
    class Plain(lib.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @lib.no_grad()
        def step(self, closure=None):
            loss = closure() if closure else None
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])
            return loss

    return Plain


@pytest.mark.parametrize("make", [lambda lib: lib.optim.SGD, own])
def test_hooks(make):
    assert heard(pellucid, make) == heard(torch, make)


def test_a_hook_returns_arguments_or_nothing():
    o = pellucid.optim.SGD([pellucid.ones(2, device="cpu")])
    o.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(TypeError, match="must return None or"):
        o.step()


@pytest.mark.parametrize("settings", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}])
def test_muon(device, settings):
    """Matrices that are made orthogonal in bfloat16 differ by its rounding."""
    seen = []
    for lib, options in ((pellucid, {"device": device}), (torch, {})):
        w = [lib.tensor(x, requires_grad=True, **options) for x in (START, START.T.copy())]
        optimizer = lib.optim.Muon(w, lr=0.1, **settings)
        for _ in range(3):
            optimizer.zero_grad()
            sum(loss_of(x) for x in w).backward()
            optimizer.step()
        seen.append([value(x) for x in w])
    for ours, theirs in zip(*seen, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.01)


@pytest.mark.parametrize("name", ["vectors", "no axes"])
def test_adafactor_without_rows(device, name):
    seen = []
    for lib, options in ((pellucid, {"device": device}), (torch, {})):
        w = lib.tensor(START[0] if name == "vectors" else START[0, 0], requires_grad=True, **options)
        steps(lib.optim.Adafactor([w], lr=0.1), w, 5)
        seen.append(value(w))
    np.testing.assert_allclose(*seen, atol=1e-5)


def minimized(lib, options, count=2, **settings):
    """Rosenbrock's valley, from a point and a matrix, over some steps of LBFGS."""
    x, y = (
        lib.tensor(v, dtype=getattr(lib, kind), requires_grad=True, **where)
        for v in ([-1.2, 1.0], [[0.5], [2.0]])
        for kind, where in (options,)
    )
    unused = lib.ones(1, requires_grad=True)
    optimizer = lib.optim.LBFGS([x, y, unused.to(**options[1]).detach()], **settings)

    def closure():
        optimizer.zero_grad()
        a, b = x, y.view(-1)
        loss = (100 * (b - a * a) ** 2 + (1 - a) ** 2).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(count)]
    state = optimizer.state_dict()["state"][0]
    return [*losses, *x.tolist(), *y.view(-1).tolist(), state["func_evals"], state["n_iter"], state["t"]]


@pytest.mark.parametrize(
    "settings",
    [
        {"line_search_fn": "strong_wolfe", "max_iter": 30},
        {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 12},
        {"lr": 1e-3, "max_iter": 6},
        {"lr": 0.5, "max_iter": 6, "max_eval": 3},
    ],
)
def test_lbfgs(settings):
    """P-096: in doubles, for the path is sensitive."""
    ours = minimized(pellucid, ("float64", {"device": "cpu"}), **settings)
    assert ours == pytest.approx(minimized(torch, ("float64", {}), **settings), rel=1e-4)


def test_lbfgs_on_the_gpu():
    settings = {"line_search_fn": "strong_wolfe"}
    ours = minimized(pellucid, ("float32", {"device": "webgpu"}), 3, **settings)
    assert ours[3:7] == pytest.approx([1.0] * 4, abs=1e-3)
