"""Errors, interrupts and other tasks while a split program waits for a value, and what else looks on."""

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import bits, replays, some
from pellucid import nn
from pellucid.device.stream import stream

pytestmark = pytest.mark.gpu


def check_nothing_listens() -> None:
    s = stream()
    assert s.capturing is None
    assert s.on_submit == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_after_the_read(rng, error):
    def f(x):
        y = x * 2
        if (y > 0).any():
            raise error("here")
        return y + 1

    compiled = torch.compile(f)
    for k in range(6):
        x = some(rng, 3).abs()
        if k % 2:
            with pytest.raises(error, match="here"):
                compiled(x)
            check_nothing_listens()
        assert bits(compiled(-x)) == bits(f(-x))
    assert replays(compiled) >= 3


def test_an_index_out_of_range_is_raised_by_the_read(rng):
    table = some(rng, 4, 3)

    def f(ids):
        rows = table[ids]
        return rows * 2 if rows.sum() > 1e9 else rows

    compiled = torch.compile(f)
    good, bad = torch.tensor([0, 3, 1]), torch.tensor([0, 9, 1])
    for _ in range(4):
        compiled(good)
    served = replays(compiled)
    assert served >= 2
    for _ in range(2):
        with pytest.raises(IndexError, match="index 9"):
            compiled(bad)
    assert bits(compiled(good)) == bits(f(good))
    check_nothing_listens()


def test_a_read_that_fails_and_is_caught(rng):
    table = some(rng, 4, 3)

    def f(ids):
        try:
            table[ids].sum().item()
        except IndexError:
            return table * 3
        return table * 2

    compiled = torch.compile(f)
    bad = torch.tensor([0, 9, 1])
    for _ in range(4):
        assert bits(compiled(bad)) == bits(table * 3)
    assert replays(compiled) == 0
    assert "a read fails" in str(compiled.explain())


@pytest.mark.parametrize("known", [True, False])
def test_an_interrupt_while_it_waits(rng, monkeypatch, known):
    def f(x):
        y = x * 2 + torch.rand(4)
        return y * 3 if (y > 0).all() else y - 1

    compiled = torch.compile(f)
    x = some(rng, 4).abs()
    for _ in range(4 if known else 0):
        compiled(x)
    host = type(stream().host)
    original = host.read

    def interrupted(self, ticket):
        self.drop_read(ticket)
        raise KeyboardInterrupt

    for _ in range(2):
        monkeypatch.setattr(host, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compiled(x)
        monkeypatch.setattr(host, "read", original)
        check_nothing_listens()
        for y in (x, -x - 2):
            state = torch.get_rng_state()
            got = bits(compiled(y))
            torch.set_rng_state(state)
            assert got == bits(f(y))


@unchecked("it reads, too, where the other task would")
def test_another_task_while_it_waits(rng, monkeypatch):
    """What runs while a value is awaited is no part of the call, and may change what the guards look at."""
    weight = nn.Parameter(some(rng, 4), requires_grad=False)

    def f(x):
        y = x * weight
        return y + weight if (x > 0).all() else y

    compiled = torch.compile(f)
    x = some(rng, 4).abs()
    host = type(stream().host)
    original, others = host.read, []

    def meanwhile(self, ticket):
        data = original(self, ticket)
        monkeypatch.setattr(host, "read", original)
        others.append((x * 5 + torch.rand(4)).sum())
        return data

    monkeypatch.setattr(host, "read", meanwhile)
    assert bits(compiled(x)) == bits(f(x))
    assert "another task used webgpu" in str(compiled.explain())
    for _ in range(4):
        assert bits(compiled(x)) == bits(f(x))
    served = replays(compiled)
    assert served >= 1

    def rebinding(self, ticket):
        data = original(self, ticket)
        monkeypatch.setattr(host, "read", original)
        weight.data = x * 7
        return data

    monkeypatch.setattr(host, "read", rebinding)
    compiled(x)
    assert replays(compiled) == served
    assert bits(compiled(x)) == bits(f(x))
    others.clear()


def test_traces_blocking_mode_and_looks(rng):
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.ReLU())

    def f(x):
        y = model(x)
        return y * 2 if (y > 0.1).any() else y - 1

    compiled = torch.compile(f)
    xs = [some(rng, 2, 4), some(rng, 2, 4) * 0]
    with torch.no_grad():
        for _ in range(4):
            for x in xs:
                compiled(x)
        served = replays(compiled)
        with torch.debug.blocking():
            assert bits(compiled(xs[0])) == bits(f(xs[0]))
        assert replays(compiled) == served
        with torch.debug.trace() as trace:
            result = compiled(xs[0])
        assert replays(compiled) == served + 1
        assert len(trace) > 3
        assert bits(result) == bits(f(xs[0]))
        for _ in range(4):
            for x in xs:
                with torch.lens.capture(model) as cache:
                    assert bits(compiled(x)) == bits(f(x))
                assert bits(cache["0"]) == bits(layer(x))
        handle = layer.register_forward_hook(lambda *given: None)
        served = replays(compiled)
        assert bits(compiled(xs[0])) == bits(f(xs[0]))
        assert replays(compiled) == served
        handle.remove()
    check_nothing_listens()


def test_within_another_captured_function(rng):
    inner = torch.compile(lambda x: x * 2 if (x > 0).all() else x - 1)
    outer = torch.compile(lambda x: inner(x + 1) * 3)
    for k in range(8):
        x = some(rng, 5).abs() * (1 if k % 2 else -9)
        y = x + 1
        assert bits(outer(x)) == bits((y * 2 if (y > 0).all() else y - 1) * 3)
    assert replays(outer) >= 4
    assert replays(inner) == 0


def test_a_device_that_is_opened_anew():
    def f(x):
        y = x * 2 + 1
        return y * 3 if (y > 0).all() else y

    compiled = torch.compile(f)
    for _ in range(2):
        values = np.arange(4, dtype=np.float32)
        for sign in (1, -1, 1, 1, -1, -1):
            x = torch.tensor(values * sign)
            assert bits(compiled(x)) == bits(f(x))
        assert replays(compiled) >= 1
        del x
        torch.webgpu.reset()
    x = torch.tensor(values)
    assert bits(compiled(x)) == bits(f(x))
