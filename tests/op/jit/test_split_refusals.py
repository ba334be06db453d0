"""Where a function that reads values is not split, and how often it may go another way."""

from io import StringIO

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import bits, replays, some
from pellucid import nn

pytestmark = pytest.mark.gpu


def reasons(compiled) -> str:
    return "\n".join(compiled.explain().reasons)


def in_place(x, state):
    state.add_(x)
    return state * 2 if (x > 0).all() else state * 3


def argument(x, state):
    x *= 2
    return x + 1 if x.sum() > 0 else x + 2


def copied(x, state):
    y = x * 2
    state[1:] = y[1:]
    return y if y.sum() > 0 else state + 1


def view(x, state):
    state.view(-1)[0].fill_(1.0)
    return x * state if state.sum() > 0 else x


@pytest.mark.parametrize("function", [in_place, argument, copied, view])
def test_what_writes_memory_of_others_before_a_read_runs_eagerly(rng, function):
    state, other = some(rng, 3), some(rng, 3)
    other.copy_(state)
    compiled = torch.compile(lambda x: function(x, state))
    for k in range(6):
        x = some(rng, 3) + k % 3 - 1
        y = x.clone()
        assert bits(compiled(x)) == bits(function(y, other))
        assert bits(state) == bits(other)
        assert bits(x) == bits(y)
    assert replays(compiled) == 0
    assert "writes memory that was there before the call, and a value is read after that" in reasons(compiled)
    line = function.__code__.co_firstlineno + (3 if function in (copied, view) else 2)
    assert f"{__file__}:{line - (function is view)}" in reasons(compiled)


class Centred(nn.Module):
    """Takes a mean off, which follows what it sees while it trains."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        if self.training:
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        y = x - self.mean
        return y * 2 if y.max() > 1 else y


def test_a_layer_with_running_statistics(rng):
    models = [Centred(), Centred()]
    compiled = torch.compile(models[0])
    for _ in range(5):
        x = some(rng, 8, 3)
        assert bits(compiled(x)) == bits(models[1](x))
        assert bits(models[0].mean) == bits(models[1].mean)
    assert "mul writes memory that was there before the call" in reasons(compiled)
    for model in models:
        model.eval()
    evaluated = torch.compile(models[0])
    for _ in range(12):
        x = some(rng, 8, 3)
        assert bits(evaluated(x)) == bits(models[1](x))
    assert evaluated.explain().replays >= 4


def test_an_optimizer_before_a_read(rng):
    weights = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))]
    steps = [torch.optim.SGD([w], lr=0.1, momentum=0.9) for w in weights]

    def f(w, step, x):
        step.zero_grad()
        (w * x).sum().backward()
        step.step()
        return x * 2 if w.detach().sum() > 0 else x

    compiled = torch.compile(lambda x: f(weights[0], steps[0], x))
    for _ in range(5):
        x = some(rng, 3)
        assert bits(compiled(x)) == bits(f(weights[1], steps[1], x))
        assert bits(weights[0]) == bits(weights[1])
    assert replays(compiled) == 0
    assert "a value is read after that" in reasons(compiled)


def test_gradients_that_are_added_to_before_a_read(rng):
    weights = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))]

    def f(w, x):
        (w * x).sum().backward()
        return x * 2 if w.grad.sum() > 0 else x

    compiled = torch.compile(lambda x: f(weights[0], x))
    for _ in range(5):
        x = some(rng, 3)
        assert bits(compiled(x)) == bits(f(weights[1], x))
        assert bits(weights[0].grad) == bits(weights[1].grad)
    assert replays(compiled) == 0
    assert "writes memory that was there before the call" in reasons(compiled)
    reading = torch.compile(lambda x: x * weights[0] if weights[0].grad.sum() > 0 else x)
    with torch.no_grad():
        assert bits(reading(x)) == bits(x * weights[0] if weights[0].grad.sum() > 0 else x)
    assert "gradients that were there before it" in reasons(reading)


@pytest.mark.parametrize(
    "read",
    [
        lambda y: y.tolist_later().result()[0],
        lambda y: max(y.tolist()),
        lambda y: y[:0].sum() if str(y) else 1,
    ],
)
def test_reads_that_nothing_is_split_at(rng, read):
    def f(x):
        y = x * 2
        return y + read(y)

    compiled = torch.compile(f)
    for _ in range(4):
        x = some(rng, 300)
        assert bits(compiled(x)) == bits(f(x))
    assert replays(compiled) == 0
    assert "it reads " in reasons(compiled)
    assert f"{__file__}:" in reasons(compiled)
    assert "ms of Python a call" in str(compiled.explain())


def test_fullgraph_refuses_reads(rng):
    compiled = torch.compile(lambda x: x if (x > 0).all() else x * 2, fullgraph=True)
    for _ in range(2):
        with pytest.raises(torch.errors.DeviceError, match="it reads a value"):
            compiled(some(rng, 3))


def test_a_number_that_is_always_another_one(rng):
    def f(x):
        loss = (x * 2).sum()
        return loss.item()

    def call(k):
        x = some(rng, 5) + k
        assert compiled(x) == f(x)

    compiled = torch.compile(f)
    for k in range(8):
        call(k)
    with pytest.warns(RuntimeWarning, match=r"reads float32\[\], which had more than 8 values"):
        call(8)
    call(9)
    assert replays(compiled) == 0
    assert f"{__file__}:{f.__code__.co_firstlineno + 2}" in reasons(compiled)
    assert "better returned, and read after the call" in reasons(compiled)


def test_too_many_ways(rng):
    def f(x):
        y = x * 1
        for k in range(5):
            y = y * 2 if y[k].item() > 0 else y * 3
        return y

    signs = [torch.tensor([1.0 if k >> b & 1 else -1.0 for b in range(5)]) for k in range(20)]
    compiled = torch.compile(f)
    for x in signs[:16]:
        for y in (x, x, signs[0]):
            assert bits(compiled(y)) == bits(f(y))
    assert replays(compiled) >= 16
    with pytest.warns(RuntimeWarning, match="more than 16 ways"):
        compiled(signs[16])
    for y in signs:
        assert bits(compiled(y)) == bits(f(y))


@unchecked("an eager call stands before each replay, and counts")
def test_a_value_that_was_not_met_runs_eagerly_and_is_kept(rng):
    printed = StringIO()

    def f(x, n):
        y = x * 2
        k = n.item()
        print(k, file=printed)
        return y + k

    compiled = torch.compile(f)
    x = some(rng, 4)
    for k in (1, 1, 1, 2, 2, 1, 2, 5, 5, 1):
        n = torch.tensor(k)
        np.testing.assert_array_equal(compiled(x, n).numpy(), (x * 2 + k).numpy())
    runs = printed.getvalue().split()
    assert "5" in runs
    assert runs.count("1") < 4
    assert replays(compiled) >= 4


def test_guards_that_fail_between(rng):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        def forward(self, x):
            y = x * self.factor
            return y + 1 if (x > 0).all() else y - self.factor

    model = Scaled()
    compiled = torch.compile(model)
    calls = [some(rng, 4).abs() + 1, -some(rng, 4).abs() - 1]
    for factor in (2.0, 3.0, 2.0, 5.0, 2.0):
        model.factor = factor
        for _ in range(3):
            for x in calls:
                assert bits(compiled(x)) == bits(model(x))
    assert compiled.explain().replays >= 5
    # Other modes are other programs.
    for _ in range(4):
        for x in calls:
            with torch.webgpu.fusion(True):
                np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-5)
            half = x.half()
            assert bits(compiled(half)) == bits(model(half))


def test_one_way_with_many_settings(rng):
    """Old programs of a way make room for new ones."""

    class Shifted(nn.Module):
        def forward(self, x):
            y = x * 2
            return y + self.shift if (x > 0).all() else y

    model = Shifted()
    compiled = torch.compile(model)
    x = some(rng, 4).abs() + 1
    for k in range(24):
        model.shift = k + 2
        for _ in range(3):
            assert bits(compiled(x)) == bits(model(x))
    (line,) = [line for line in compiled.explain().lines if "split at" in line]
    assert "1 continuations known" in line
    # Four programs are kept, and each was replayed twice.
    assert compiled.explain().replays == 8
