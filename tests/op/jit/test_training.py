"""Whole steps of training, captured: the same bits as eager steps, whatever happens to gradients between."""

import gc
import itertools

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import bits, replays, some
from pellucid import nn
from pellucid.device.stream import stream
from pellucid.nn import functional as F

pytestmark = pytest.mark.gpu


def network(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(dropout), nn.Linear(16, 3))


def batches(rng, count: int):
    return [(some(rng, 8, 6), torch.tensor(rng.integers(0, 3, 8))) for _ in range(count)]


def state_of(model, optimizer):
    """Everything that training changes, as bits."""
    return [
        [bits(p) for p in model.parameters()],
        [None if p.grad is None else bits(p.grad) for p in model.parameters()],
        [{k: bits(v) for k, v in s.items()} for s in optimizer.state_dict()["state"].values()],
        bits(torch.get_rng_state()),
    ]


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}
# Whose steps count more than one number, or change with their number.
COUNTING = {
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.1, lambd=0.1, t0=4),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
}


def before(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def after(model, optimizer):
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def zeroing(model, optimizer):
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return loss

    return step


def trained(make, optimizer, compiled, steps, between=lambda k, model, optimizer: None, dropout=0.0):
    model = network(dropout)
    o = (OPTIMIZERS | COUNTING)[optimizer](model.parameters())
    step = make(model, o)
    if compiled:
        step = torch.compile(step)
    losses = []
    torch.manual_seed(5)
    for k, batch in enumerate(steps):
        losses.append(bits(step(*batch)))
        between(k, model, o)
    return [losses, *state_of(model, o)], step


def test_batches_that_are_slices_of_one_tensor(rng):
    """Data and labels move together, so that which number follows which is not known for long."""
    data, labels = some(rng, 32, 6), torch.tensor(rng.integers(0, 3, 32))
    steps = [(data[k : k + 8], labels[k : k + 8]) for k in (0, 8, 8, 16, 16, 16, 8, 0, 24, 24, 0)]
    wanted, _ = trained(before, "momentum", False, steps)
    got, step = trained(before, "momentum", True, steps)
    assert got == wanted
    assert replays(step) >= 3


@pytest.mark.parametrize("make", [before, after, zeroing])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_captured_training_equals_eager_training(rng, make, optimizer):
    steps = batches(rng, 12)
    wanted, _ = trained(make, optimizer, False, steps, dropout=0.3)
    got, step = trained(make, optimizer, True, steps, dropout=0.3)
    assert got == wanted
    assert replays(step) >= 7, str(step.explain())


@pytest.mark.parametrize("optimizer", COUNTING)
def test_captured_steps_count(rng, optimizer):
    steps = batches(rng, 9)
    wanted, _ = trained(after, optimizer, False, steps)
    got, step = trained(after, optimizer, True, steps)
    assert got == wanted
    assert replays(step) >= 5, str(step.explain())


def test_an_optimizer_that_somebody_listens_to_runs_eagerly(rng):
    model = network()
    optimizer = OPTIMIZERS["Adam"](model.parameters())
    step, heard = torch.compile(after(model, optimizer)), []
    for k, batch in enumerate(batches(rng, 8)):
        if k == 6:
            assert replays(step) >= 2
            optimizer.register_step_post_hook(lambda *_: heard.append(1))
        step(*batch)
    assert heard == [1, 1]
    assert "Adam has hooks that run at every step" in str(step.explain())


def test_fused_training_agrees(rng):
    steps = batches(rng, 10)
    wanted, _ = trained(after, "AdamW", False, steps)
    with torch.webgpu.fusion(True):
        got, step = trained(after, "AdamW", True, steps)
    assert replays(step) >= 6
    for (a, *_), (b, *_) in zip(got[1], wanted[1], strict=True):
        np.testing.assert_allclose(np.frombuffer(a, np.float32), np.frombuffer(b, np.float32), atol=1e-5)


def test_learning_rates_and_other_settings_are_followed(rng):
    steps = batches(rng, 14)

    def between(k, model, optimizer):
        group = optimizer.param_groups[0]
        group["lr"] = 0.02 / (1 + k)
        if k == 8:
            group["weight_decay"] = 0.3
            group["betas"] = (0.5, 0.9)
        if k == 10:
            group["maximize"] = True

    wanted, _ = trained(after, "AdamW", False, steps, between)
    got, step = trained(after, "AdamW", True, steps, between)
    assert got == wanted
    assert replays(step) >= 11


def test_a_setting_that_takes_another_kernel(rng):
    steps = batches(rng, 14)

    def between(k, model, optimizer):
        if k == 7:
            optimizer.param_groups[0]["nesterov"] = False

    wanted, _ = trained(before, "momentum", False, steps, between)
    got, step = trained(before, "momentum", True, steps, between)
    assert got == wanted
    assert replays(step) >= 6


def test_a_state_that_is_loaded(rng):
    steps = batches(rng, 14)

    def between(k, model, optimizer):
        if k == 7:
            state = optimizer.state_dict()
            for s in state["state"].values():
                s["step"] += 20
            optimizer.load_state_dict(state)

    wanted, _ = trained(after, "Adam", False, steps, between)
    got, step = trained(after, "Adam", True, steps, between)
    assert got == wanted
    assert replays(step) >= 6


@pytest.mark.parametrize("make", [before, after, zeroing])
def test_gradients_that_are_touched_between_steps(rng, make):
    steps = batches(rng, 16)

    def between(k, model, optimizer):
        first = model[0].weight
        if k == 6:
            first.grad = None
        if k == 9:
            first.grad = torch.full_like(first, 0.25)

    wanted, _ = trained(make, "SGD", False, steps, between)
    got, step = trained(make, "SGD", True, steps, between)
    assert got == wanted
    assert replays(step) >= 6


def test_gradients_are_new_tensors_at_every_step(rng):
    model = network()
    optimizer = OPTIMIZERS["SGD"](model.parameters())
    step = torch.compile(before(model, optimizer))
    kept = []
    for x, y in batches(rng, 8):
        step(x, y)
        kept.append((model[0].weight.grad, bits(model[0].weight.grad)))
    assert all(bits(g) == b for g, b in kept)
    assert len({id(g._storage) for g, _ in kept}) == 8


def test_gradients_that_are_added_up(rng):
    """Two backward passes a step: the first makes gradients, the second adds to them."""

    def run(compiled):
        model = network()
        optimizer = OPTIMIZERS["AdamW"](model.parameters())

        def backward(x, y):
            loss = F.cross_entropy(model(x), y) / 2
            loss.backward()
            return loss

        found = torch.compile(backward) if compiled else backward
        losses = []
        for k, batch in enumerate(steps):
            losses.append(bits(found(*batch)))
            if k % 2:
                optimizer.step()
                optimizer.zero_grad()
        return [losses, *state_of(model, optimizer)], found

    steps = batches(rng, 16)
    wanted, _ = run(False)
    got, backward = run(True)
    assert got == wanted
    assert replays(backward) >= 8, str(backward.explain())


def test_parameters_that_are_frozen_and_freed(rng):
    model = network()
    optimizer = OPTIMIZERS["SGD"](model.parameters())
    step = torch.compile(before(model, optimizer))
    steps = batches(rng, 12)
    for x, y in steps[:5]:
        step(x, y)
    model[0].requires_grad_(False)
    model[0].weight.grad = model[0].bias.grad = None
    frozen = bits(model[0].weight)
    for x, y in steps[5:]:
        step(x, y)
    assert bits(model[0].weight) == frozen


def test_a_hook_of_a_parameter_runs_at_every_step(rng):
    model = network()
    step = torch.compile(after(model, OPTIMIZERS["SGD"](model.parameters())))
    steps = batches(rng, 12)
    for batch in steps[:5]:
        step(*batch)
    seen = []
    handle = model[0].weight.register_hook(lambda g: seen.append(1))
    for batch in steps[5:8]:
        step(*batch)
    assert len(seen) == 3
    handles = [p.register_hook(lambda g: None) for p in model.parameters()]
    step(*steps[0])
    assert len(seen) == 4
    for h in (handle, *handles):
        h.remove()
    served = replays(step)
    for batch in steps[8:]:
        step(*batch)
    assert replays(step) == served + 4
    assert len(seen) == 4


def test_the_order_in_which_the_collector_finds_parameters_is_no_matter(rng, monkeypatch):
    referrers, turns = gc.get_referrers, itertools.count()
    monkeypatch.setattr(gc, "get_referrers", lambda *of: referrers(*of)[:: -1 if next(turns) % 2 else 1])
    model = network()
    step = torch.compile(before(model, OPTIMIZERS["SGD"](model.parameters())))
    for batch in batches(rng, 8):
        step(*batch)
    assert replays(step) >= 5


def test_a_loss_keeps_its_place_in_the_walked_graph(rng):
    model = network()
    step = torch.compile(before(model, OPTIMIZERS["SGD"](model.parameters())))
    for batch in batches(rng, 6):
        loss = step(*batch)
    assert replays(step) >= 3
    assert loss.requires_grad
    with pytest.raises(RuntimeError, match="backward a second time"):
        loss.backward()


def test_what_needs_its_graph_outside_runs_eagerly(rng):
    model = network()
    forward = torch.compile(model)
    x = some(rng, 8, 6)
    for _ in range(4):
        model.zero_grad()
        out = forward(x)
        out.sum().backward()
        got = bits(model[0].weight.grad)
        model.zero_grad()
        model(x).sum().backward()
        assert got == bits(model[0].weight.grad)
    assert "gradient is still to come" in str(forward.explain())
    with torch.no_grad():
        for _ in range(3):
            assert bits(forward(x)) == bits(model(x))
    assert replays(forward) == 2
    scale = torch.compile(lambda t: (t * 2).detach())
    for _ in range(4):
        scale(model(x))
    assert "the graph would cross the call" in str(scale.explain())


def test_gradients_of_arguments_run_eagerly(rng):
    def f(x):
        (x * x).sum().backward()
        return x.detach() * 2

    compiled = torch.compile(f)
    for _ in range(4):
        x = some(rng, 5).requires_grad_()
        compiled(x)
        np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy())
    assert "another gradient at an argument" in str(compiled.explain())


def test_a_graph_that_an_argument_is_left_in_runs_eagerly(rng):
    w = some(rng, 5).requires_grad_()
    compiled = torch.compile(lambda x: x.mul_(w).detach() + 1)
    for _ in range(4):
        x = some(rng, 5)
        before = x.numpy()
        compiled(x)
        w.grad = None
        x.sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), before)
    assert replays(compiled) == 0
    assert "another place in the graph" in str(compiled.explain())


@pytest.mark.parametrize(
    "change", [lambda t: t.t_(), lambda t: setattr(t, "data", t.data.t()), lambda t: t.set_(t.detach().t())]
)
def test_a_tensor_from_outside_that_is_given_another_layout_runs_eagerly(change):
    t = torch.arange(6.0).reshape(2, 3)

    def f():
        change(t)
        return t * 2

    compiled = torch.compile(f)
    assert [tuple(compiled().shape) for _ in range(5)] == [(3, 2), (2, 3), (3, 2), (2, 3), (3, 2)]
    assert "another layout" in str(compiled.explain())


def test_a_schedule_is_stepped_outside(rng):
    model = network()
    optimizer = OPTIMIZERS["SGD"](model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        return loss.detach()

    compiled = torch.compile(step)
    for batch in batches(rng, 4):
        compiled(*batch)
    assert schedule.last_epoch == 4
    assert "steps a learning-rate schedule" in str(compiled.explain())


def test_an_optimizer_of_ones_own_runs_eagerly(rng):
    class Signs(torch.optim.Optimizer):
        def _update(self, p, group):
            p.add_(p.grad.sign(), alpha=-group["lr"])

    model = network()
    step = torch.compile(after(model, Signs(model.parameters(), {"lr": 0.1})))
    for batch in batches(rng, 4):
        step(*batch)
    assert replays(step) == 0
    assert "Signs computes numbers of its step in Python" in str(step.explain())


def test_an_eager_step_is_one_window(rng):
    model = network()
    optimizer = OPTIMIZERS["AdamW"](model.parameters())
    step = after(model, optimizer)
    (x, y), *_ = batches(rng, 1)
    for _ in range(3):
        step(x, y)
    windows = []
    stream().on_submit.append(lambda records: windows.append(len(records)))
    for _ in range(5):
        step(x, y)
    stream().on_submit.clear()
    assert len(windows) == 5
    assert len(set(windows[1:])) == 1


@unchecked("windows are counted")
def test_steady_training_takes_no_memory(rng):
    model = network()
    step = torch.compile(after(model, OPTIMIZERS["AdamW"](model.parameters())))
    x, y = batches(rng, 1)[0]
    for _ in range(10):
        step(x, y)
    gc.collect()
    stats = torch.webgpu.memory_stats()
    for _ in range(20):
        step(x, y)
    assert stream().open().stats()["submits"] - stats["submits"] == 20
    later = torch.webgpu.memory_stats()
    for name in ("bind_groups", "live_buffers", "reserved_bytes", "allocated_bytes"):
        assert later[name] == stats[name]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_an_optimizer_changes_and_keeps_is_looked_at(rng, name):
    """State that is dropped, gradients that come from elsewhere, and parameters that join."""

    def run(compiled):
        parameters = [nn.Parameter(torch.ones(3) * k) for k in (1, 2, 3)]
        p, q, r = parameters
        optimizer = OPTIMIZERS[name]([p, q])

        def step(x):
            (p * x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        step = torch.compile(step) if compiled else step
        found = []
        for k in range(24):
            if k in (5, 9):
                (q * 3).sum().backward()
            if k == 13:
                optimizer.state.clear()
            if k == 17:
                optimizer.add_param_group({"params": [r]})
                r.grad = torch.ones(3)
            step(x)
            found.append([bits(t) for t in parameters])
        return found, step

    x = some(rng, 3)
    wanted, _ = run(False)
    got, step = run(True)
    assert got == wanted
    assert replays(step) >= 3


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_several_steps_in_a_call_are_counted_one_by_one(rng, name):
    def make(model, optimizer):
        def step(x, y):
            for _ in range(2):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()

        return step

    steps = batches(rng, 6)
    wanted, _ = trained(make, name, False, steps)
    got, step = trained(make, name, True, steps)
    assert got == wanted
    assert replays(step) >= 3


def test_a_gradient_that_is_the_argument(rng):
    """Then a kernel that adds to it reads and writes one buffer, which another call's program does not."""
    p = nn.Parameter(torch.ones(3))

    def f(x):
        (p * x).sum().backward()
        return p.grad + x

    compiled = torch.compile(f)
    values = rng.standard_normal((14, 3)).astype(np.float32)
    for k, value in enumerate(values):
        found = []
        for run in (f, compiled):
            x = torch.tensor(value)
            p.grad = x if k in (4, 9, 10) else torch.ones(3)
            found.append([bits(run(x)), bits(x), bits(p.grad)])
        assert found[0] == found[1]
    assert replays(compiled) >= 6
