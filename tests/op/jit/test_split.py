"""Functions that read values are split there: replays give what eager calls give, whichever way those go."""

import gc

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import bits, replays, some
from pellucid import errors, nn
from pellucid.device.stream import stream

pytestmark = pytest.mark.gpu


def check(compiled, function, calls, rounds=4):
    """All calls equal eager ones; in the end, each is replayed. Returns how many were replayed in all."""
    for turn in range(rounds):
        for arguments in calls:
            before = replays(compiled)
            assert bits(compiled(*arguments)) == bits(function(*arguments)), str(compiled.explain())
            if turn == rounds - 1:
                assert replays(compiled) == before + 1, str(compiled.explain())
    return replays(compiled)


def signs(rng, *shape):
    """Tensors that are above zero, below zero and both."""
    x = some(rng, *shape)
    return [(x.abs() + 1,), (-x.abs() - 1,), (x - x.mean(),)]


@pytest.mark.parametrize("fused", [False, True])
def test_bool_decides(rng, fused):
    def f(x):
        y = x * 2 + 1
        if (y > 0).all():
            return y.exp().sum(), y
        z = y.abs() + x
        if (y > 0).any():
            return (z * 3).sum(), z
        return z.sum(), z - y

    compiled = torch.compile(f)
    with torch.webgpu.fusion(fused):
        if not fused:
            check(compiled, f, signs(rng, 33))
            return
        for _ in range(5):
            for (x,) in signs(rng, 33):
                for got, wanted in zip(compiled(x), f(x), strict=True):
                    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)
    assert replays(compiled) >= 6
    text = str(compiled.explain())
    first = f.__code__.co_firstlineno
    assert f"split at {__file__}:{first + 2}, where it reads bool[]: 2 continuations known" in text
    assert f"split at {__file__}:{first + 5}, where it reads bool[]: 2 continuations known" in text


def test_a_loop_that_counts_on_the_device(rng):
    def f(x, n):
        y = x
        while n.item() < 5:
            y = y * 1.5 + 1
            n = n + 1
        return y, n

    compiled = torch.compile(f)
    calls = [(some(rng, 7), torch.tensor([k])) for k in (0, 3, 5, 4, 3, 9)]
    check(compiled, f, calls)
    assert "int64[1]: 13 continuations known of 9 reads" in str(compiled.explain())


def test_an_argument_is_read_before_anything_runs(rng):
    def f(x, n):
        return x[: int(n[1])] * 2

    compiled = torch.compile(f)
    check(compiled, f, [(some(rng, 6), torch.tensor([9, k, 9])) for k in (2, 5)])


def test_lists_and_arrays(rng):
    def f(x, sizes):
        parts = x.split((sizes + 1).tolist())
        found = [p.sum() * k for k, p in enumerate(parts)]
        return found, x * float(sizes.numpy().max())

    compiled = torch.compile(f)
    calls = [(some(rng, 9), torch.tensor(s)) for s in ([1, 2, 3], [3, 2, 1], [0, 0, 6])]
    check(compiled, f, calls)


def test_shapes_that_depend_on_values(rng):
    def f(x, mask):
        return x[mask].cumsum(0) * 2

    compiled = torch.compile(f)
    masks = [torch.tensor([k % 3 == m for k in range(8)]) for m in (0, 2)]
    check(compiled, f, [(some(rng, 8), mask) for mask in masks])


def test_parameters_that_nobody_gives_are_read(rng):
    state = torch.tensor([1.0, 2.0])

    def f(x):
        return x * 2 if state[1].item() > 0 else x - 1

    compiled = torch.compile(f)
    for sign in (1, -1, 1, -1, 1, 1, -1, 1, -1):
        state.fill_(sign)
        x = some(rng, 3)
        assert bits(compiled(x)) == bits(f(x))
    assert replays(compiled) >= 4


def test_nothing_after_the_read(rng):
    def f(x, y):
        if (x > y).any():
            return x
        return None

    compiled = torch.compile(f)
    x = some(rng, 4)
    for _ in range(5):
        assert compiled(x, x - 1) is x
        assert compiled(x, x + 1) is None
    assert replays(compiled) >= 6


def test_values_that_are_returned(rng):
    def f(x):
        count = int((x > 0).sum())
        return count, x * 2

    compiled = torch.compile(f)
    x = some(rng, 20).abs()
    ys = [x, -x, torch.cat([x[:5], -x[5:]])]
    check(compiled, f, [(y,) for y in ys])


def test_results_made_before_between_and_after(rng):
    def f(x):
        early = x + 1
        view = early[1:].view(-1, 2)
        if early.sum() > 0:
            middle = early * 2
            if middle.max() > 1e9:
                return view
            return {"view": view, "early": early, "middle": middle, "late": view * 3, "x": x}
        return early

    compiled = torch.compile(f)
    calls = [(some(rng, 7).abs(),), (-some(rng, 7).abs() - 3,)]
    check(compiled, f, calls)
    kept = [compiled(*calls[0]) for _ in range(3)]
    assert len({r["early"]._storage.slot for r in kept}) == 3
    for r in kept:
        assert bits(r) == bits(f(*calls[0]))
        assert r["view"]._base is r["early"]
        r["early"].zero_()
        assert r["view"].abs().sum().item() == 0


def test_dynamic_numbers_and_offsets_on_every_side(rng):
    def f(x, n, s):
        y = x * s + n
        if y.narrow(0, n, 2).sum() > 0:
            return y.narrow(0, n + 1, 2) * n, n
        return y - n

    compiled = torch.compile(f, dynamic=("n", "s"))
    whole = some(rng, 40).abs()
    # One changes at a time, until it is known what follows what.
    known = [(2, 0.5, 0), (2, 0.5, 3), (3, 0.5, 3), (2, 0.25, 3), (3, 0.25, 0), (3, 0.75, 1)]
    for sign in (1, -1):
        for n, s, at in known:
            x = (whole * sign)[at : at + 12]
            assert bits(compiled(x, n, s)) == bits(f(x, n, s))
    served = replays(compiled)
    for k in range(20):
        n, s, at = 2 + k % 2, 0.1 * (k % 7), k % 5
        x = (whole if k % 3 else whole * -9)[at : at + 12]
        assert bits(compiled(x, n, s)) == bits(f(x, n, s)), str(compiled.explain())
    assert replays(compiled) > served + 10, str(compiled.explain())


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_where_the_value_lies_moves_with_its_argument(rng, dtype):
    """Flags begin within words, too."""

    def f(x, n):
        return x * 2 if n.item() else x * 3

    compiled = torch.compile(f)
    flags = torch.tensor([0, 1, 1, 0] * 8).to(getattr(torch, dtype))
    x = some(rng, 3)
    for _ in range(3):
        for k in (0, 4, 8, 12, 1, 5, 9, 13, 2, 3, 6, 7, 10, 15, 20):
            assert bits(compiled(x, flags[k])) == bits(f(x, flags[k]))
    assert replays(compiled) > 12


def test_what_was_written_after_the_read(rng):
    def f(x, cache):
        if (x > 0).all():
            cache.mul_(2)
            cache[0] = x.sum()
        return cache + 1

    compiled = torch.compile(f)
    one, other = some(rng, 4), some(rng, 4)
    other.copy_(one)
    for k in range(10):
        x = some(rng, 3).abs() * (1 if k % 3 else -1)
        version = one._storage.version
        assert bits(compiled(x, one)) == bits(f(x, other))
        assert bits(one) == bits(other)
        assert (one._storage.version > version) is bool(k % 3)
    assert replays(compiled) >= 5


def test_random_numbers_around_reads(rng):
    own = torch.Generator().manual_seed(4)

    def f(x, g):
        y = x + torch.rand(4) + torch.rand(4, generator=own)
        if y.sum() > 0:
            return y + torch.rand(4, generator=g)
        z = y + torch.randn(4)
        return z * 2 if z.max() > 0 else z

    compiled = torch.compile(f)
    torch.manual_seed(7)
    for k in range(24):
        x = some(rng, 4) * 3 - k % 3
        g = torch.Generator().manual_seed(k)
        states = [torch.get_rng_state(), own.get_state(), g.get_state()]
        got = bits(compiled(x, g))
        ends = [bits(torch.get_rng_state()), bits(own.get_state()), bits(g.get_state())]
        torch.set_rng_state(states[0])
        own.set_state(states[1])
        g.set_state(states[2])
        assert bits(f(x, g)) == got
        assert [bits(torch.get_rng_state()), bits(own.get_state()), bits(g.get_state())] == ends
    assert replays(compiled) >= 12


def test_random_words_go_back_where_the_value_is_unknown(rng):
    def f(x):
        y = x + torch.rand(4)
        return y * 2 if y.sum() > 0 else y - torch.rand(4)

    compiled = torch.compile(f)
    x = some(rng, 4).abs()
    for _ in range(3):
        compiled(x)
    assert replays(compiled) >= 1
    torch.manual_seed(5)
    wanted = bits(f(-x - 3)), bits(torch.get_rng_state())
    torch.manual_seed(5)
    served = replays(compiled)
    assert (bits(compiled(-x - 3)), bits(torch.get_rng_state())) == wanted
    assert replays(compiled) == served


class Gate(nn.Module):
    """Layers behind a value that is read."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        y = self.drop(self.first(x).relu())
        if y.max() > 2.0:
            y = y / y.max()
        return self.second(y)


def test_a_module_trains_and_evaluates(rng):
    torch.manual_seed(0)
    model = Gate()
    compiled = torch.compile(model)
    xs = [some(rng, 5, 4) * 0.1, some(rng, 5, 4) * 50]
    with torch.no_grad():
        for training in (False, True, False, True, False):
            model.train(training)
            for _ in range(3):
                for x in xs:
                    state = torch.get_rng_state()
                    got = bits(compiled(x))
                    end = bits(torch.get_rng_state())
                    torch.set_rng_state(state)
                    assert bits(model(x)) == got
                    assert bits(torch.get_rng_state()) == end
        assert compiled.explain().replays >= 10
        # Other values of the parameters, and other parameters.
        model.eval()
        model.second.weight.mul_(2)
        for x in xs:
            assert bits(compiled(x)) == bits(model(x))
        model.first.weight = nn.Parameter(some(rng, 6, 4))
        for _ in range(3):
            for x in xs:
                assert bits(compiled(x)) == bits(model(x))


@pytest.mark.parametrize("place", ["forward", "backward", "step"])
def test_a_training_step_that_reads(rng, place):
    """A value is read in the middle of forward, between forward and backward, before the step."""

    def train(model, optimizer, x, y):
        optimizer.zero_grad()
        hidden = model.first(x).relu()
        if place == "forward" and hidden.max() > 3:
            hidden = hidden * 0.5
        loss = (model.second(hidden) - y).square().mean()
        if place == "backward" and loss > 4:
            loss = loss * 0.1
        loss.backward()
        norm = sum(p.grad.square().sum() for p in model.parameters()).sqrt()
        if place == "step" and norm > 2:
            return loss.detach()
        optimizer.step()
        return loss.detach()

    models = []
    for _ in range(2):
        torch.manual_seed(1)
        models.append(Gate().eval())
    steps = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in models]
    compiled = torch.compile(lambda x, y: train(models[0], steps[0], x, y))
    for k in range(16):
        x, y = some(rng, 5, 4) * (4 if k % 4 == 3 else 0.3), some(rng, 5, 3)
        assert bits(compiled(x, y)) == bits(train(models[1], steps[1], x, y))
        for p, q in zip(models[0].parameters(), models[1].parameters(), strict=True):
            assert bits(p) == bits(q)
            assert bits(p.grad) == bits(q.grad)
    assert replays(compiled) >= 6, str(compiled.explain())


def test_a_graph_that_crosses_the_call_stays_eager(rng):
    layer = nn.Linear(3, 3)

    def f(x):
        y = layer(x)
        return y * 2 if y.sum() > 0 else y * 3

    compiled = torch.compile(f)
    for _ in range(5):
        x = some(rng, 2, 3)
        compiled(x).sum().backward()
        got, layer.weight.grad = layer.weight.grad, None
        f(x).sum().backward()
        wanted, layer.weight.grad = layer.weight.grad, None
        assert bits(got) == bits(wanted)
    assert replays(compiled) == 0
    assert "gradient is still to come" in str(compiled.explain())
    with torch.no_grad():
        check(compiled, f, [(some(rng, 2, 3),)])


def test_nothing_is_made_anew_by_replays(rng):
    """No memory, bind groups or pipelines after the first replays, and as much memory as before."""

    def f(x):
        y = (x * 2 + 1).exp()
        if (y > 1).any():
            z = y @ y
            if z.sum() > 1e6:
                return z
            return z + y, y
        return y * 3

    compiled = torch.compile(f)
    xs = [some(rng, 16, 16), -some(rng, 16, 16).abs() - 2]
    for _ in range(8):
        for x in xs:
            result = compiled(x)
    del result
    gc.collect()
    torch.webgpu.synchronize()
    before = stream().host.stats(), torch.webgpu.memory_allocated()
    for _ in range(20):
        for x in xs:
            result = compiled(x)
    served = replays(compiled)
    compiled(xs[0])
    assert replays(compiled) == served + 1
    del result
    gc.collect()
    torch.webgpu.synchronize()
    after = stream().host.stats(), torch.webgpu.memory_allocated()
    assert after[1] == before[1]
    for name in ("live_buffers", "reserved_bytes", "bind_groups", "pipelines"):
        assert after[0][name] == before[0][name], name


@unchecked("windows are counted")
def test_a_segment_is_one_submission(rng):
    def f(x):
        y = (x * 2 + 1).exp() - 3
        return (y * 2).tanh() + 1 if (y > 0).any() else y

    compiled = torch.compile(f)
    x = some(rng, 9).abs()
    for _ in range(4):
        compiled(x)
    torch.webgpu.synchronize()
    before = stream().host.stats()["submits"]
    result = compiled(x)
    assert stream().host.stats()["submits"] == before + 1
    torch.webgpu.synchronize()
    assert stream().host.stats()["submits"] == before + 2
    assert bits(result) == bits(f(x))


def test_cond_records_the_branch_that_is_taken(rng):
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x.exp(), lambda x: x * 3, (x,)) + 1

    compiled, x = torch.compile(f), some(rng, 9).abs()
    for k in range(8):
        given = -x if k % 2 else x
        assert bits(compiled(given)) == bits(f(given))
    assert replays(compiled) >= 4
    with pytest.raises(errors.DeviceError, match="PyTorch compiles both, and requires"):
        torch.compile(f, fullgraph=True)(x)

    def known(x):
        return torch.cond(x.dim() == 1, lambda x: x.exp(), lambda x: x * 3, (x,))

    assert bits(torch.compile(known, fullgraph=True)(x)) == bits(x.exp())
