"""Windows of loops are planned from a few repetitions: the plan is the one that is made in full."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid as torch
from op.fusion.programs import BINARY, UNARY
from pellucid.device.commands import walk
from pellucid.op.fusion import window
from pellucid.op.fusion.commands import period, structure
from pellucid.op.fusion.plan import make_plan, planning
from pellucid.op.fusion.repeats import plan_by_repeats
from pellucid.op.fusion.work import done
from pellucid.op.launches import nodes

pytestmark = pytest.mark.gpu
NAMES = ["sin", "tanh", "scaled", "halved", "softmax", "centred", "normed", "root_mean", "columns"]
PAIRS = ["add", "mul", "less", "rows", "one", "product", "in_place", "in_part", "view"]


def windows_of(loop):
    """The windows of a program that begin anew, and after how many words."""
    found = []

    def note(words, _):
        told = structure(words)
        if told is not None and (again := period(told[1])):
            found.append((list(words), again))

    with torch.webgpu.fusion(True):
        torch.webgpu.synchronize()
        window.on_rewrite.append(note)
        try:
            kept = loop()
            torch.webgpu.flush()
        finally:
            window.on_rewrite.remove(note)
    del kept
    return found


def cut(words, by):
    """A window without so many of its last commands."""
    ends = [command.data.stop for command in walk(words, nodes)]
    return words[: ends[-1 - by]]


def assert_equal_to_full(words, again):
    """Returns whether a few repetitions said what the plan is."""
    found, full = done(plan_by_repeats(words, again, planning)), make_plan(words)
    if found is None:
        return False
    for name in ("places", "constants", "zeros"):
        np.testing.assert_array_equal(getattr(found, name), getattr(full, name), err_msg=name)
        assert getattr(found, name).dtype == getattr(full, name).dtype
    assert found.heads == full.heads
    assert all(a is b for a, b in zip(found.heads, full.heads, strict=True))
    assert found.stands == full.stands
    return True


def state():
    return torch.rand(8, 8), torch.rand(8, 8), torch.rand(8)


def elementwise(k, x, scale, shift):
    x = torch.full((8, 8), k / 300)
    for _ in range(2):
        x = (x * scale + shift).tanh()
        x = torch.where(x > 0, x, 0.5 * x)
    x.sum(-1, keepdim=True).abs()
    return x


def in_place(k, x, scale, shift):
    x.mul_(0.9).add_(scale)
    x += (scale * shift).sin().sum(0)
    return x


def reduced(k, x, scale, shift):
    y = (x - x.mean(-1, keepdim=True)) * scale
    return y / (y.abs().amax() + 1.0)


def uploaded(k, x, scale, shift):
    y = torch.tensor([[float(k)] * 8] * 8) * scale
    z = torch.empty_like(y)
    z.copy_(y + shift)
    return torch.softmax(z, -1)


def recurrent(k, x, scale, shift):
    return torch.tanh(x @ scale + shift * 0.5)


def leapfrog(k, x, scale, shift):
    scale -= 0.01 * x
    return x + 0.01 * scale


LOOPS = {f.__name__: f for f in (elementwise, in_place, reduced, uploaded, recurrent, leapfrog)}


def loop_of(body, count=250):
    def loop():
        x, scale, shift = state()
        for k in range(count):
            x = body(k, x, scale, shift)
        return x

    return loop


@pytest.mark.parametrize("name", LOOPS)
def test_a_plan_of_a_loop_is_the_one_made_in_full(name):
    """Also where the last repetition is cut."""
    found = windows_of(loop_of(LOOPS[name], 700))
    assert found
    words, again = max(found, key=lambda pair: len(pair[0]) // pair[1])
    said = [assert_equal_to_full(cut(words, by), again) for by in (0, 1, 2, 5, 9, 14)]
    # What is written in place grows to kernels of as many members as may be, over many repetitions.
    assert any(said) == (name != "in_place")


def test_values_that_are_kept():
    kept = []

    def body(k, x, scale, shift):
        y = (x * scale).exp()
        kept.append(y)
        return (y + shift).softmax(-1)

    said = [assert_equal_to_full(*pair) for pair in windows_of(loop_of(body))]
    assert any(said)


def test_values_of_several_repetitions_ago():
    """A value lives on for three repetitions; two tensors change places."""

    def loop():
        x, scale, shift = state()
        past = [x.clone() for _ in range(4)]
        for _ in range(250):
            past = [((past[0] + past[3]) * shift).tanh(), *past[:3]]
            x, scale = scale, x
            x.add_(past[0].sum(-1))
        return past

    said = [assert_equal_to_full(*pair) for pair in windows_of(loop)]
    assert any(said)


@pytest.mark.parametrize("odd", ["operands", "begin"])
def test_one_repetition_that_differs(odd):
    """Its commands are the same, but their slots or where a tensor begins are others: no few say it all."""

    def loop():
        x, scale, shift = state()
        rows = torch.rand(4, 8, 8)
        for k in range(250):
            is_odd = k % 100 == 30
            row = rows[0 if is_odd and odd == "begin" else 1]
            a, b = (scale, x) if is_odd and odd == "operands" else (x, scale)
            x = torch.softmax((a - b).sin() * row + shift, -1)
        return x

    found = windows_of(loop)
    assert found
    for words, again in found:
        assert_equal_to_full(words, again)


def test_a_window_that_goes_on_for_longer_runs_the_same():
    """Full windows of a loop, run from their plans."""
    body = LOOPS["reduced"]
    torch.manual_seed(0)
    with torch.webgpu.fusion(False):
        wanted = loop_of(body, 40)().numpy()
    for _ in range(3):
        torch.manual_seed(0)
        with torch.webgpu.fusion(True):
            np.testing.assert_allclose(loop_of(body, 40)().numpy(), wanted, rtol=1e-5, atol=1e-6)


STEP = st.one_of(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 4)),
    st.tuples(st.sampled_from(PAIRS), st.integers(0, 4), st.integers(0, 4)),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=6), st.integers(0, 12), st.data())
def test_any_loop(body, by, data):
    """Values are tensors that live on, or that a repetition makes; some are written in place, some kept."""
    places = [data.draw(st.integers(0, 4)) for _ in body]
    fresh = data.draw(st.booleans())

    def loop():
        values = [torch.rand(8, 8) for _ in range(5)]
        first = list(values)
        for _ in range(600 // len(body)):
            if fresh:
                values = list(first)
            for (name, *arguments), place in zip(body, places, strict=True):
                chosen = [values[a] for a in arguments]
                if name in UNARY:
                    values[place] = UNARY[name](*chosen)
                elif name == "in_place":
                    values[arguments[0]].add_(values[arguments[1]] * 0.5)
                else:
                    values[place] = BINARY[name](*chosen)
                del chosen
        return values

    for words, again in windows_of(loop):
        assert_equal_to_full(words, again)
        assert_equal_to_full(cut(words, by), again)
