"""Replays draw the random numbers that eager calls would draw, and leave generators where those would."""

import numpy as np
import pytest

import pellucid as torch
from op.jit.probe import bits, replays, some

pytestmark = pytest.mark.gpu


def noisy(x):
    y = torch.nn.functional.dropout(x, 0.4)
    z = torch.rand(5) + torch.randn(3, 5)
    return y, z, torch.randint(0, 10, (4,)), torch.bernoulli(x.abs().clamp(max=1))


def test_the_default_generator_goes_on(rng):
    x = some(rng, 6, 7)
    torch.manual_seed(3)
    wanted = [bits(noisy(x)) for _ in range(6)]
    end = bits(torch.get_rng_state())
    f = torch.compile(noisy)
    torch.manual_seed(3)
    assert [bits(f(x)) for _ in range(6)] == wanted
    assert bits(torch.get_rng_state()) == end
    assert replays(f) == 5
    assert len({str(w) for w in wanted}) == 6


def test_seeding_between_calls_is_honoured(rng):
    x = some(rng, 6, 7)
    f = torch.compile(noisy)
    torch.manual_seed(1 << 40 | 5)
    first = bits(f(x))
    for _ in range(3):
        torch.manual_seed(1 << 40 | 5)
        assert bits(f(x)) == first
    state = torch.get_rng_state()
    second = bits(f(x))
    assert second != first
    torch.rand(100)
    torch.set_rng_state(state)
    assert bits(f(x)) == second
    # Counters carry into their high word.
    state = torch.tensor(np.array([9, (1 << 32) - 3], np.uint64).view(np.uint8), device="cpu")
    torch.set_rng_state(state)
    wanted = bits(noisy(x))
    torch.set_rng_state(state)
    assert bits(f(x)) == wanted


def test_generators_that_are_arguments_and_others(rng):
    own = torch.Generator().manual_seed(4)

    def f(x, generator):
        return x + torch.rand(3, generator=own) + torch.rand(3, generator=generator) + torch.rand(3)

    compiled = torch.compile(f)
    x = some(rng, 3)
    for k in range(6):
        given = torch.Generator().manual_seed(k)
        states = own.get_state(), torch.get_rng_state(), given.get_state()
        got = compiled(x, given)
        ends = [bits(s) for s in (own.get_state(), torch.get_rng_state(), given.get_state())]
        own.set_state(states[0])
        torch.set_rng_state(states[1])
        given.set_state(states[2])
        assert bits(f(x, given)) == bits(got)
        assert [bits(s) for s in (own.get_state(), torch.get_rng_state(), given.get_state())] == ends
    assert replays(compiled) == 5


def test_what_draws_in_python_runs_eagerly(rng):
    f = torch.compile(lambda x: x[torch.randperm(50)])
    x = some(rng, 50)
    torch.manual_seed(2)
    wanted = [bits(x[torch.randperm(50)]) for _ in range(4)]
    torch.manual_seed(2)
    assert [bits(f(x)) for _ in range(4)] == wanted
    assert "draws random numbers in Python" in str(f.explain())

    def seeded(x):
        torch.manual_seed(1)
        return x + torch.rand(50)

    f = torch.compile(seeded)
    assert len({str(bits(f(x))) for _ in range(4)}) == 1
    assert "seeds a random generator" in str(f.explain())

    def local(x):
        return x + torch.rand(50, generator=torch.Generator())

    f = torch.compile(local)
    assert len({str(bits(f(x))) for _ in range(4)}) == 1
    assert replays(f) == 0
