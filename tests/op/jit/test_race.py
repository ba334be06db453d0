"""Functions of one launch: whichever is quicker serves their calls, a replay or their Python."""

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


def test_python_that_is_quicker_serves_calls(x):
    compiled, expected = torch.compile(lambda given: given.exp()), x.exp().numpy()
    for _ in range(CALLS):
        result = compiled(x)
    np.testing.assert_array_equal(result.numpy(), expected)
    assert replays(compiled) < CALLS / 3
    assert "its Python, which is quicker" in str(compiled.explain())
    # So does a call of another kind, and it is captured once calls are looked at again.
    for _ in range(300):
        np.testing.assert_array_equal(compiled(x[:2]).numpy(), expected[:2])
    assert len(compiled.explain().lines) == 2


def test_python_that_is_slower_is_replayed(x):
    def function(given):
        sum(range(300_000))
        return given.exp()

    compiled = torch.compile(function)
    for _ in range(CALLS):
        compiled(x)
    assert replays(compiled) > CALLS - 10
    assert "quicker" not in str(compiled.explain())


@pytest.mark.parametrize(
    "function",
    [lambda x: x.exp() + 1, lambda x: x.add_(1), lambda x: torch.rand_like(x)],
    ids=["two launches", "changes", "draws"],
)
def test_what_is_more_than_a_launch_is_always_replayed(x, function):
    compiled = torch.compile(function)
    for _ in range(CALLS):
        compiled(x)
    assert replays(compiled) > CALLS - 10


def test_gradients_are_those_of_the_function(x):
    compiled, expected = torch.compile(lambda given: given.exp()), x.exp().numpy()
    for _ in range(CALLS):
        leaf = x.clone().requires_grad_()
        compiled(leaf).sum().backward()
        np.testing.assert_array_equal(leaf.grad.numpy(), expected)
