"""What replays return: the bits of eager calls, in new tensors, in the same containers."""

import gc
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import bits, replays, settle, some
from pellucid.device.stream import stream
from pellucid.models.output import CausalLMOutput

pytestmark = pytest.mark.gpu


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


@dataclass
class Named:
    x: torch.Tensor
    label: str = "a"


def several(x, w):
    y = (x @ w).relu()
    part = y[1:]
    return {
        "y": y,
        "again": y,
        "part": part,
        "pair": Pair(y.sum(), x),
        "list": [x * 2, None, 3, 1.5, "text", (y.t(),)],
        "named": Named(y.max()),
        "output": CausalLMOutput(logits=x + 1),
        "shape": y.shape,
    }


def plain(found):
    return bits(
        {**found, "named": (found["named"].x, found["named"].label), "output": found["output"].to_tuple()}
    )


@pytest.mark.parametrize("fused", [False, True])
def test_replays_give_the_bits_of_eager_calls(rng, fused):
    with torch.webgpu.fusion(fused):
        f = torch.compile(several)
        w = some(rng, 5, 4)
        for k in range(6):
            x = some(rng, 3, 5)
            got, wanted = f(x, w), several(x, w)
            if fused:
                np.testing.assert_allclose(got["y"].numpy(), wanted["y"].numpy(), rtol=1e-5, atol=1e-6)
            else:
                assert plain(got) == plain(wanted)
            assert replays(f) == max(k - 1, 0)


def test_containers_and_identities_are_those_of_eager_calls(rng):
    f = torch.compile(several)
    w = some(rng, 5, 4)
    settle(f, (some(rng, 3, 5), w))
    x = some(rng, 3, 5)
    found = f(x, w)
    assert found["y"] is found["again"]
    assert found["part"]._storage is found["y"]._storage
    assert found["part"]._base is found["y"]
    assert type(found["pair"]) is Pair
    assert found["pair"].second is x
    assert type(found["named"]) is Named
    assert type(found["output"]) is CausalLMOutput
    assert type(found["shape"]) is torch.Size
    assert found["list"][1:5] == [None, 3, 1.5, "text"]


def test_results_are_new_tensors_at_every_call(rng):
    f = torch.compile(lambda x: (x * 2, x + 1))
    kept = []
    for _ in range(12):
        x = some(rng, 7)
        kept.append((x, *f(x)))
    for x, twice, more in kept:
        np.testing.assert_array_equal(twice.numpy(), x.numpy() * 2)
        np.testing.assert_array_equal(more.numpy(), x.numpy() + 1)
    assert len({id(t._storage) for _, *made in kept for t in made}) == 24
    kept[3][1].fill_(0)
    assert kept[4][1].numpy().any()


def test_arguments_are_returned_written_and_looked_at(rng):
    def f(x, y):
        x.add_(y)
        return x, x[1:], y.t(), x.sum()

    compiled = torch.compile(f)
    for _ in range(5):
        x, y = some(rng, 4, 4), some(rng, 4, 4)
        other = x.clone()
        got, wanted = compiled(x, y), f(other, y)
        assert bits(got) == bits(wanted)
        assert got[0] is x
        assert got[1]._storage is x._storage
        assert got[1]._base is x
        assert x._version == other._version
    assert replays(compiled) == 3


def test_values_of_other_functions_change_when_they_should(rng):
    """What a replay writes was written for everyone, graphs included."""
    total = some(rng, 3)
    f = torch.compile(lambda x: total.add_(x).sum())
    settle(f, (some(rng, 3),))
    with torch.enable_grad():
        w = torch.ones(3, requires_grad=True)
        y = (w * total).sum()
    f(some(rng, 3))
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_offsets_of_arguments_are_followed(rng):
    data = some(rng, 40, 3)
    f = torch.compile(lambda x: x * 2 + x.sum())
    for k in range(12):
        x = data[k : k + 4]
        assert bits(f(x)) == bits(x * 2 + x.sum())
    assert replays(f) >= 8
    assert bits(f(data[0:4])) == bits(data[0:4] * 2 + data[0:4].sum())


@pytest.mark.parametrize("fused", [False, True])
def test_offsets_that_were_zero_at_first_are_followed(rng, fused):
    with torch.webgpu.fusion(fused):
        data = some(rng, 40)
        f = torch.compile(lambda x: (x * 2 + 1) * x)
        settle(f, (data[:8],))
        for k in (3, 5, 9, 0, 30):
            x = data[k : k + 8].numpy()
            np.testing.assert_allclose(f(data[k : k + 8]).numpy(), (x * 2 + 1) * x, rtol=1e-6)
        assert replays(f) >= 4


@unchecked("an eager call stands before each replay, and counts")
def test_replays_fuse_what_eager_calls_fuse():
    """In-place launches are one where their tensor begins where its memory does, and not elsewhere."""

    def f(x):
        x.add_(1)
        x.mul_(2)
        return x.sum()

    def dispatches(run, x):
        torch.webgpu.synchronize()
        before = stream().open().stats()["dispatches"]
        run(x)
        torch.webgpu.synchronize()
        return stream().open().stats()["dispatches"] - before

    with torch.webgpu.fusion(True):
        compiled = torch.compile(f)
        for begin in (0, 1, 0):
            mine, eager = torch.zeros(9), torch.zeros(9)
            for _ in range(5):
                taken = dispatches(f, eager[begin:]), dispatches(compiled, mine[begin:])
            assert taken == (2 + begin,) * 2
            assert bits(mine) == bits(eager)
        assert replays(compiled) > 10


def test_arguments_that_share_memory(rng):
    def f(x, y):
        x.mul_(2)
        return x + y

    compiled = torch.compile(f)
    for _ in range(4):
        for shared in (False, True, False):
            a = some(rng, 6)
            b = a if shared else some(rng, 6)
            c, d = a.clone(), b.clone()
            assert bits(compiled(a, b)) == bits(f(c, c if shared else d))
    x = some(rng, 10)
    for k in range(4):
        y = x.clone()
        assert bits(compiled(x[:6], x[k : k + 6])) == bits(f(y[:6], y[k : k + 6]))


def test_an_argument_that_the_function_also_finds_by_itself(rng):
    """Which uses mean the argument is told by calls with another one."""
    table = some(rng, 4)
    f = torch.compile(lambda x: table * 10 + x)
    for _ in range(3):
        np.testing.assert_allclose(f(table).numpy(), table.numpy() * 11, rtol=1e-6)
    for _ in range(6):
        x = some(rng, 4)
        np.testing.assert_allclose(f(x).numpy(), table.numpy() * 10 + x.numpy(), rtol=1e-6)
    np.testing.assert_allclose(f(table).numpy(), table.numpy() * 11, rtol=1e-6)


def test_tensors_from_data_and_from_nothing(rng):
    def f(x):
        return (
            x + torch.tensor([1.0, 2.0, 3.0]),
            torch.zeros(2, 2),
            torch.arange(3),
            torch.empty(0),
            torch.empty(4),
        )

    compiled = torch.compile(f)
    for _ in range(5):
        x = some(rng, 3)
        assert bits(compiled(x)[:4]) == bits(f(x)[:4])
    assert compiled(some(rng, 3))[4].shape == (4,)
    assert replays(compiled) == 4


@unchecked("windows are counted")
def test_windows_that_end_in_the_middle_are_one(rng):
    def f(x):
        for k in range(30):
            x = x * 1.01 + k
            if k % 7 == 3:
                torch.webgpu.flush()
        return x

    compiled = torch.compile(f)
    settle(compiled, (some(rng, 50),), (some(rng, 50),))
    x = some(rng, 50)
    before = torch.webgpu.memory_stats()["flushes"]
    got = compiled(x)
    assert torch.webgpu.memory_stats()["flushes"] == before + 1
    assert bits(got) == bits(f(x))


def test_more_records_than_a_window_takes(rng):
    def f(x):
        for _ in range(2000):
            x = x + 1
        return x

    compiled = torch.compile(f)
    for _ in range(4):
        x = some(rng, 3)
        assert bits(compiled(x)) == bits(f(x))
    assert replays(compiled) == 2


@pytest.mark.parametrize("fused", [False, True])
def test_steady_replays_need_no_buffers_groups_or_memory(rng, fused):
    with torch.webgpu.fusion(fused):
        w = some(rng, 64, 64)
        f = torch.compile(lambda x: torch.softmax((x @ w).relu() @ w, -1).sum(0))
        x = some(rng, 16, 64)
        y = x.sum(0)
        for _ in range(12):
            y = f(x)
        gc.collect()
        before = torch.webgpu.memory_stats()
        for _ in range(30):
            y = f(x)
        after = torch.webgpu.memory_stats()
        for name in ("bind_groups", "pipelines", "live_buffers", "reserved_bytes", "allocated_bytes"):
            assert after[name] == before[name], name
        assert np.isfinite(y.numpy()).all()


def test_what_is_made_within_takes_no_memory_between_calls(rng):
    f = torch.compile(lambda x: ((x + 1) * (x - 1)).sum())
    x = some(rng, 1 << 16)
    settle(f, (x,))
    gc.collect()
    before = torch.webgpu.memory_allocated()
    y = f(x)
    assert torch.webgpu.memory_allocated() == before + y._storage.nbytes


def test_a_capture_keeps_nothing_alive(rng):
    w, x = some(rng, 1000), some(rng, 1000)
    f = torch.compile(lambda x: x + w)
    settle(f, (x,))
    gc.collect()
    before = torch.webgpu.memory_allocated()
    x = None
    gc.collect()
    assert torch.webgpu.memory_allocated() == before - 4000
