"""What is not replayed, why, and that everything goes on after errors and interrupts."""

import copy
import sys
from queue import SimpleQueue

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from fuzz.interrupts import Interrupt, places
from op.jit.probe import bits, replays, settle, some
from pellucid import nn
from pellucid.device.stream import stream

pytestmark = pytest.mark.gpu


def reasons(compiled) -> str:
    return "\n".join(compiled.explain().reasons)


def check_nothing_listens() -> None:
    s = stream()
    assert s.capturing is None
    assert s.on_submit == []


def test_data_of_python_is_uploaded_once_or_every_time(rng):
    table = {}

    def once(x):
        if "t" not in table:
            table["t"] = torch.tensor(np.arange(2000, dtype=np.float32))
        return x + table["t"]

    compiled = torch.compile(once)
    for _ in range(6):
        x = some(rng, 2000)
        assert bits(compiled(x)) == bits(once(x))
    assert replays(compiled) == 3
    table.clear()

    values = np.zeros(2000, np.float32)

    def always(x):
        return x + torch.tensor(values)

    compiled = torch.compile(always)
    x = some(rng, 2000)
    for k in range(16):
        values[:] = k
        np.testing.assert_array_equal(compiled(x).numpy(), x.numpy() + np.float32(k))
    with pytest.warns(RuntimeWarning, match="it uploads 8000 bytes"):
        compiled(x)
    assert replays(compiled) == 0


def test_arguments_that_cannot_be_followed(rng):
    array = np.ones(3, np.float32)
    f = torch.compile(lambda x, a: x + torch.tensor(a))
    for k in range(4):
        array[:] = k
        x = some(rng, 3)
        np.testing.assert_array_equal(f(x, array).numpy(), x.numpy() + np.float32(k))
    assert "numpy array" in reasons(f)
    here = torch.compile(lambda x: x + 1)
    x = torch.ones(3, device="cpu")
    for k in range(4):
        x.fill_(k)
        assert here(x).tolist() == [k + 1.0] * 3
    assert "not on webgpu" in reasons(here)
    both = torch.compile(lambda x: (x * 2, torch.ones(2, device="cpu")))
    for _ in range(4):
        both(some(rng, 3))
    assert "returns a tensor that is not on webgpu" in reasons(both)


def test_results_that_cannot_be_made_again(rng):
    class Box:
        def __init__(self, x):
            self.x = x

    f = torch.compile(lambda x: Box(x * 2))
    kept = [f(some(rng, 3)) for _ in range(4)]
    assert len({id(b) for b in kept}) == 4
    assert "returns a Box" in reasons(f)
    nothing = torch.compile(lambda x: x.shape)
    for _ in range(3):
        assert nothing(some(rng, 3)) == (3,)
    assert "runs nothing on webgpu" in reasons(nothing)
    w = some(rng, 3, 3)
    view = torch.compile(lambda x: (x * 2, w.t()))
    for _ in range(3):
        assert bits(view(some(rng, 3))[1]) == bits(w.t())
    assert "a new view of a tensor that is no argument" in reasons(view)


def test_tensors_that_python_keeps(rng):
    """Where captures do not look."""
    kept = SimpleQueue()

    def f(x):
        kept.put(x * 2)
        return x + 1

    compiled = torch.compile(f)
    for _ in range(8):
        x = some(rng, 3)
        assert bits(compiled(x)) == bits(x + 1)
        assert bits(kept.get()) == bits(x * 2)
    assert replays(compiled) == 0
    assert "Python keeps 1 tensors of 12 bytes" in str(compiled.explain())


def test_cycles_of_what_is_made_keep_nothing(rng):
    def f(x):
        y = x * 2
        loop = [y]
        loop.append(loop)
        return y + 1

    compiled = torch.compile(f)
    for _ in range(5):
        x = some(rng, 3)
        assert bits(compiled(x)) == bits(x * 2 + 1)
    assert replays(compiled) == 3


def test_functions_that_pause_are_refused():
    async def waits(x):
        return x

    def gives(x):
        yield x

    for function in (waits, gives):
        with pytest.raises(TypeError, match="takes plain functions"):
            torch.compile(function)
    with pytest.raises(TypeError, match="takes a function or a module, not int"):
        torch.compile(3)


def test_fullgraph_raises_what_is_in_the_way(rng):
    f = torch.compile(lambda x: x * x.sum().item(), fullgraph=True)
    for _ in range(2):
        with pytest.raises(torch.errors.DeviceError, match="it reads a value"):
            f(some(rng, 3))
    good = torch.compile(lambda x: x * 2, fullgraph=True)
    settle(good, (some(rng, 3),))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_during_a_recorded_call(rng, error):
    state = {"fails": True}
    w = some(rng, 3)

    def f(x):
        y = x * w
        if state["fails"]:
            raise error("here")
        return y + 1

    compiled = torch.compile(f)
    with torch.webgpu.fusion(True):
        before = stream().rewrite
        for rows in (1, 2, 3):
            x = some(rng, rows, 3)
            state["fails"] = True
            with pytest.raises(error, match="here"):
                compiled(x)
            check_nothing_listens()
            assert stream().rewrite is before
            state["fails"] = False
            np.testing.assert_allclose(compiled(x).numpy(), x.numpy() * w.numpy() + 1, rtol=1e-6)
        settle(compiled, (x,))


@unchecked("an eager call stands before each replay")
def test_an_interrupt_during_a_replay(rng, monkeypatch):
    f = torch.compile(lambda x, n: x * 2 + n, dynamic="n")
    x = some(rng, 100)
    for n in (1, 2, 3, 4, 5):
        f(x, n)
    s = stream()
    original = type(s).submit_window

    def interrupted(self, *window):
        raise KeyboardInterrupt

    for n in (6, 7):
        monkeypatch.setattr(type(s), "submit_window", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f(x, n)
        monkeypatch.setattr(type(s), "submit_window", original)
        for m in (n, 5, 6):
            assert bits(f(x, m)) == bits(x * 2 + m)
    assert replays(f) >= 6


def test_an_index_that_is_out_of_range_is_raised_by_the_next_read(rng):
    table = some(rng, 4, 3)
    f = torch.compile(lambda ids: table[ids])
    good, bad = torch.tensor([0, 3, 1]), torch.tensor([0, 9, 1])
    settle(f, (good,), (good.clone(),))
    with pytest.raises(IndexError, match="index 9"):
        f(bad).numpy()
    assert bits(f(good)) == bits(table[good])


def test_one_compiled_function_within_another(rng):
    inner = torch.compile(lambda x: x.relu() + 1)
    outer = torch.compile(lambda x: inner(x * 2) * 3)
    for _ in range(6):
        x = some(rng, 5)
        assert bits(outer(x)) == bits(((x * 2).relu() + 1) * 3)
    assert replays(outer) >= 4
    assert replays(inner) == 0
    settle(inner, (some(rng, 5),))


def test_methods_decorators_and_modules(rng):
    class Thing:
        def __init__(self, factor):
            self.factor = factor

        @torch.compile
        def scaled(self, x):
            "A docstring."
            return x * self.factor

    a, b = Thing(2), Thing(3)
    for _ in range(4):
        x = some(rng, 4)
        assert bits(a.scaled(x)) == bits(x * 2)
        assert bits(b.scaled(x)) == bits(x * 3)
    assert Thing.scaled.__doc__ == "A docstring."
    assert replays(Thing.scaled) == 4

    @torch.compile(dynamic=("n",))
    def f(x, n):
        return x + n

    assert bits(f(x, 3)) == bits(x + 3)
    assert torch.compile(f) is f
    assert torch.compile(len, disable=True) is len

    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    compiled = torch.compile(model)
    assert isinstance(compiled, nn.Module)
    assert compiled.training
    assert compiled.eval().training is model.training is False
    assert [n for n, _ in compiled.named_parameters()] == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert compiled.append == model.append
    assert not hasattr(compiled, "nothing")
    outer = nn.Sequential(compiled, nn.Linear(3, 1))
    with torch.no_grad():
        for _ in range(4):
            x = some(rng, 5, 2)
            assert bits(outer(x)) == bits(outer[1](model(x)))
    assert replays(compiled) == 2


def test_a_copy_has_captures_of_its_own(rng):
    model = torch.compile(nn.Linear(3, 3))
    x = some(rng, 2, 3)
    with torch.no_grad():
        settle(model, (x,))
        other = copy.deepcopy(model)
        other.weight.mul_(2)
        assert bits(other(x)) == bits(other._orig_mod(x)) != bits(model(x))
        settle(other, (x,))
        assert bits(other(x)) == bits(other._orig_mod(x)) != bits(model(x))


def test_memory_that_passes_is_within_the_limit(rng):
    f = torch.compile(lambda x: ((x + 1) * (x @ x)).sum())
    x = some(rng, 300, 300)
    settle(f, (x,))
    torch.webgpu.set_memory_limit(torch.webgpu.memory_allocated() + 1000)
    try:
        with pytest.raises(torch.errors.OutOfMemoryError, match="would pass the limit"):
            f(x)
    finally:
        torch.webgpu.set_memory_limit(None)
    np.testing.assert_allclose(f(x).item(), ((x + 1) * (x @ x)).sum().item(), rtol=1e-5)


@unchecked("an eager call stands before each replay")
def test_debugging_runs_every_op_and_traces_see_replays(rng):
    f = torch.compile(lambda x: x * 2 + 1)
    x = some(rng, 3)
    settle(f, (x,))
    served = replays(f)
    with torch.debug.blocking():
        f(x)
    assert replays(f) == served
    with torch.debug.trace() as trace:
        f(x)
    assert replays(f) == served + 1
    assert len(trace) == 2
    check_nothing_listens()


def test_explain_says_what_became_of_calls(rng):
    f = torch.compile(lambda x: x * 2 + 1)
    assert "was not called yet" in str(f.explain())
    for _ in range(5):
        f(some(rng, 3))
    f(torch.ones(3, device="cpu"))
    text = str(f.explain())
    assert "(float32[3]): 3 replays of 2 launches in 2 dispatches" in text
    assert "1 calls ran eagerly: an argument is not on webgpu" in text
    assert f.explain().replays == 3


def test_an_interrupted_recording_is_over(rng):
    """Wherever Ctrl-C comes: windows are fused again, and nothing listens any more but to the next op."""
    x, s = some(rng, 3), stream()
    files = "op/jit/compiled.py", "op/jit/recording.py", "profiler/listeners.py"
    functions = {"__enter__", "__exit__", "_change", "_record", "_ran", "ignore", "listen", "run", "take"}

    def program():
        torch.compile(lambda x: x * 2 + 1)(x)

    with torch.webgpu.fusion(True):
        before = s.rewrite, list(s.on_submit), list(s.after_op)
        everywhere = places(program, files, functions)
        assert len(everywhere) > 25
        for at in everywhere:
            interrupt = Interrupt(at, files, functions)
            interrupt.run(program)
            assert s.capturing is None, interrupt.where
            x.neg()
            assert (s.rewrite, s.on_submit, s.after_op) == before, interrupt.where


def test_an_interrupt_while_a_call_is_learned_from(rng):
    """Wherever it falls, later replays have the numbers of their own call."""
    whole = torch.arange(64.0)

    def sums(x, y, n):
        return (x * n + y).sum()

    def slices(k):
        return whole[k : k + 4], whole[2 * k : 2 * k + 4], k + 1

    for turn in range(0, 60, 3):
        compiled, left = torch.compile(sums, dynamic=("n",)), [turn]

        def trace(frame, event, argument, left=left):
            if frame.f_code.co_filename.rpartition("/")[2] not in (
                "captured.py",
                "segment.py",
                "compiled.py",
            ):
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_code.co_name in ("takes_over", "is_like", "prepare", "add"):
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return trace

        for k in (0, 0, 4, 4, 8, 12, 12, 4, 0):
            sys.settrace(trace)
            try:
                compiled(*slices(k))
            except KeyboardInterrupt:
                left[0] = turn + 7
            finally:
                sys.settrace(None)
            assert bits(compiled(*slices(k))) == bits(sums(*slices(k))), (turn, k)
