"""Functions of one launch: whichever is quicker serves their calls, a replay or their Python."""

from itertools import cycle

import numpy as np
import pytest

import pellucid as torch
from op.jit.probe import replays
from pellucid.op.jit.race import Race

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not Race.may_be_run, reason="replays that are checked are slow on purpose"),
]
CALLS = 120


@pytest.fixture
def x():
    return torch.arange(12.0).reshape(3, 4).to("webgpu")


@pytest.fixture
def quicker(monkeypatch: pytest.MonkeyPatch):
    """Lets the function or the replay win: what the clock says before and behind each, replays first."""

    def choose(python: bool):
        ticks = cycle([0.0, 2.0, 0.0, 1.0] if python else [0.0, 1.0, 0.0, 2.0])
        monkeypatch.setattr(Race, "clock", staticmethod(lambda: next(ticks)))

    return choose


def test_python_that_is_quicker_serves_calls(x, quicker):
    quicker(python=True)
    compiled, expected = torch.compile(lambda given: given.exp()), x.exp().numpy()
    for _ in range(CALLS):
        result = compiled(x)
    np.testing.assert_array_equal(result.numpy(), expected)
    assert replays(compiled) < CALLS / 3
    assert "its Python, which is quicker" in str(compiled.explain())
    # Calls of another kind are captured for themselves.
    for _ in range(CALLS):
        np.testing.assert_array_equal(compiled(x[:2]).numpy(), expected[:2])
    assert len(compiled.explain().lines) == 2


def test_other_kinds_of_calls_are_replayed(x, quicker):
    quicker(python=True)

    def function(given, many=False):
        return ((given * 2 + 1) * 2 + 1) * 2 if many else given * 2

    compiled = torch.compile(function)
    for _ in range(CALLS):
        compiled(x)
    before = replays(compiled)
    for _ in range(CALLS):
        compiled(x)
        compiled(x, True)
    assert replays(compiled) - before > CALLS - 10


def test_python_that_is_slower_is_replayed(x, quicker):
    quicker(python=False)
    compiled = torch.compile(lambda given: given.exp())
    for _ in range(CALLS):
        compiled(x)
    assert replays(compiled) > CALLS - 10
    assert "quicker" not in str(compiled.explain())


@pytest.mark.parametrize(
    "function",
    [lambda x: x.exp() + 1, lambda x: x.add_(1), lambda x: torch.rand_like(x)],
    ids=["two launches", "changes", "draws"],
)
def test_what_is_more_than_a_launch_is_always_replayed(x, function, quicker):
    quicker(python=True)
    compiled = torch.compile(function)
    for _ in range(CALLS):
        compiled(x)
    assert replays(compiled) > CALLS - 10


def test_a_whole_graph_is_always_replayed(x, quicker):
    quicker(python=True)
    compiled = torch.compile(lambda given: given.exp(), fullgraph=True)
    for _ in range(CALLS):
        compiled(x)
    assert replays(compiled) > CALLS - 10


def test_gradients_are_those_of_the_function(x):
    compiled, expected = torch.compile(lambda given: given.exp()), x.exp().numpy()
    for _ in range(CALLS):
        leaf = x.clone().requires_grad_()
        compiled(leaf).sum().backward()
        np.testing.assert_array_equal(leaf.grad.numpy(), expected)
