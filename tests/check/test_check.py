"""PELLUCID_CHECK=1 names the op and the line of what is wrong, and nothing that is right."""

import re

import pytest

pytestmark = pytest.mark.gpu

BREAK_REFERENCE = """
from pellucid.op.schema import OPS
sine = OPS["sin"].reference
OPS["sin"].reference = lambda x: sine(x) + (abs(x - 3) < 1e-3)
"""
BREAK_FUSED_KERNELS = """
from pellucid.op.fusion import kernels
register = kernels.register
def broken(node, later):
    text = node.source.text.replace("return sin_of(input)", "return 1.0 + sin_of(input)")
    node.source = kernels.KernelSource(node.source.name, text, typed=True)
    return register(node, later)
kernels.register = broken
"""
# A plan that forgets to run the last launch of a window.
BREAK_WINDOWS = """
from pellucid.device.handover import packed
from pellucid.device.stream import stream
from pellucid.op.fusion.commands import read
s, rewrite = stream(), stream().rewrite
def without_the_last(words, window, found):
    runs = [r for r in read(words) if r.is_run]
    if len(runs) > 2:
        words = words[: runs[-1].words[0] - 1] + words[runs[-1].words[-1] + 1 :]
    return rewrite(words, packed(words))
s.rewrite = without_the_last
"""


def failure(text: str) -> str:
    """The message of the CheckError by which a program ended."""
    found = re.search(r"^pellucid\.errors\.CheckError: (.*)", text, re.M)
    assert found, text
    return found[1]


@pytest.mark.parametrize("fusion", ["0", "always"])
def test_a_wrong_op_is_named_with_its_line(program, fusion):
    status, out = program(
        BREAK_REFERENCE
        + """
x = torch.arange(6.0).reshape(2, 3)
y = x * 1
z = y.sin()  # this one
w = (z + 1).sum()
print(w.item())
""",
        PELLUCID_FUSION=fusion,
    )
    assert status == 1
    message = failure(out)
    assert message.startswith("sin: ")
    assert "at [1, 0] (1 of 6 elements differ): 0.14" in message
    assert "sin(input=float32[2, 3])" in message
    assert "program.py:9" in message


def test_a_trace_leaves_the_check_on(program):
    status, out = program(
        BREAK_REFERENCE
        + """
x = torch.arange(6.0)
with torch.debug.trace():
    y = x * 1
print((y.sin() * 2).tolist())
"""
    )
    assert status == 1
    assert failure(out).startswith("sin: ")


def test_a_wrong_op_in_place_is_named_though_its_input_is_gone(program):
    status, out = program(
        BREAK_REFERENCE
        + """
x = torch.arange(6.0)
x[2:].sin_()
x.mul_(0.5)
x.zero_().add_(x[:1])
y = torch.full((6,), 3.0)
y.sin_()
y += 1
print(y.tolist())
"""
    )
    assert status == 1
    assert failure(out).startswith("sin_: ")
    assert "program.py:12" in failure(out)


def test_a_wrong_fused_kernel_is_told_apart_from_a_wrong_op(program):
    status, out = program(
        BREAK_FUSED_KERNELS
        + """
x = torch.arange(6.0)
y = (x * 2 + 1).sin() * 3
torch.webgpu.flush()
print(y.tolist())
""",
        PELLUCID_FUSION="always",
    )
    assert status == 1
    message = failure(out)
    assert message.startswith("mul: what a window made differs from what its ops make one by one")
    assert "mul (program.py:12), add (program.py:12), sin (program.py:12), mul (program.py:12)" in message
    assert "fused" in message


def test_fused_kernels_may_round_what_is_compared(program):
    """Both sides of the comparison come of one fused kernel; the op by itself ends in another last bit."""
    status, out = program(
        BREAK_FUSED_KERNELS.replace("1.0 +", "1.0000001 *")
        + """
x = torch.arange(600.0)
y = (x * 2 + 1).sin()
torch.webgpu.flush()
print(torch.equal(y, (x * 2 + 1).sin()))
""",
        PELLUCID_FUSION="always",
    )
    assert status == 0, out
    assert out.strip() == "True"


def test_a_window_that_leaves_out_a_launch(program):
    status, out = program(
        BREAK_WINDOWS
        + """
x = torch.arange(600.0)
a = x + 1
b = x.cumsum(0)
c = x.flip(0)
torch.webgpu.flush()
"""
    )
    assert status == 1
    assert "what a window made differs from what its ops make one by one at [0] (599 of 600" in failure(out)


def test_programs_that_are_right(program):
    status, out = program(
        """
torch.manual_seed(0)
from pellucid import nn
model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.2), nn.Linear(8, 3))
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
for _ in range(6):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
h = x.bfloat16()
h[::2] = h.flip(0)[1::2]
h[torch.tensor([1, 3])] += 1
a = torch.empty(4)
b = a.fill_(2).half()
bits = torch.tensor([True, False, True])
z = torch.fft.fft(torch.rand(67))
(z * z.conj() / (z + 3)).sum().abs().item()
print(h.sum().item(), b.tolist(), (~bits).tolist(), torch.tensor([3, 1, 2]).sort())
"""
    )
    assert status == 0, out
    assert "[2.0, 2.0, 2.0, 2.0]" in out


def test_ops_that_are_waited_for_one_by_one(program):
    """Each is submitted before the check knows of it, with what it writes over."""
    status, out = program(
        """
        torch.manual_seed(0)
        weight = torch.randn(64, 64)
        with torch.debug.blocking():
            for k in range(3):
                x = torch.randn(1, 64)
                x += torch.nn.functional.rms_norm(x, (64,)) @ weight
                x[0, :32] *= x[0, 32:]
                x += 1
        print(x.isfinite().all().item())
        """
    )
    assert (status, out) == (0, "True\n")


def test_what_goes_to_the_device_while_a_reference_is_computed(program):
    """A finalizer may submit: the op is in the window, and nothing is known of it yet."""
    status, out = program(
        """
        from pellucid.profiler.check import journal
        expected = journal.expected
        def between(*given):
            torch.webgpu.flush()
            return expected(*given)
        journal.expected = between
        x = torch.arange(3.0)
        x.mul_(2).add_(1)
        x += x.sum()
        print(x.tolist())
        """
    )
    assert (status, out) == (0, "[10.0, 12.0, 14.0]\n")


def test_ops_of_nothing_among_those_that_are_run_once_more(program):
    status, out = program(
        BREAK_REFERENCE
        + """
x = torch.cat([torch.zeros(0), torch.arange(6.0)])
y = torch.cat([x[:0] + 1, x]).sin()
print(y.tolist())
"""
    )
    assert status == 1
    assert failure(out).startswith("sin: ")


def test_an_index_out_of_range_is_still_the_next_reads_error(program):
    status, out = program(
        """
y = torch.zeros(3)[torch.tensor([1, 7])]
torch.webgpu.flush()
z = y + 1
torch.webgpu.flush()
try:
    z.tolist()
except IndexError as error:
    print("raised:", error)
print((torch.zeros(3) + 1).tolist())
"""
    )
    assert status == 0, out
    assert "raised: " in out
    assert "[1.0, 1.0, 1.0]" in out


def test_memory_and_windows_are_those_of_an_unchecked_program(program):
    text = """
torch.manual_seed(0)
x = torch.randn(64, 64)
for _ in range(5):
    y = ((x @ x).relu() * 2 + x).softmax(-1)
    y[1:] += y[:-1]
torch.webgpu.synchronize()
stats = torch.webgpu.memory_stats()
print({k: stats[k] for k in ("allocated_bytes", "flushes", "dispatches", "live_buffers")})
"""
    checked, plain = program(text), program(text, PELLUCID_CHECK="0")
    assert checked == plain
    assert checked[0] == 0


def test_nothing_is_installed_while_it_is_off(program):
    status, out = program(
        """
import sys
from pellucid.op import plan
from pellucid.device.stream import stream
assert plan.observe is None
assert "submit" not in vars(stream())
assert not any(name.startswith("pellucid.profiler.check") for name in sys.modules)
""",
        PELLUCID_CHECK="",
    )
    assert status == 0, out


def test_the_variable_has_two_values(program):
    status, out = program("", PELLUCID_CHECK="yes")
    assert status == 1
    assert "PELLUCID_CHECK is 'yes'; it must be 0 or 1" in out


def test_the_error_is_one_of_ours():
    import pellucid

    assert issubclass(pellucid.errors.CheckError, RuntimeError)


# Replays go on with the numbers of the first one.
BREAK_REPLAYS = """
from pellucid.op.fusion.replay import Replay
submit, first = Replay.submit, {}
def stale(self, slots, values):
    submit(self, slots, first.setdefault(id(self), values))
Replay.submit = stale
"""
TRAIN = """
from io import StringIO
from pellucid import nn
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
calls = StringIO()
@torch.compile
def step(x, y):
    calls.write(".")
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss
x, y = torch.randn(64, 4), torch.randn(64, 1)
losses = []
for k in (0, 0, 8, 16, 24, 32, 32, 0, 8):
    losses.append(step(x[k : k + 8], y[k : k + 8]).item())
print(losses, model.weight.sum().item(), optimizer.state_dict()["state"][0]["step"])
"""


def test_a_wrong_replay_is_told(program):
    status, out = program(
        BREAK_REPLAYS
        + """
x = torch.arange(40.0)
double = torch.compile(lambda a: a * 2)
for k in range(0, 36, 4):
    print(double(x[k : k + 4]).tolist())
"""
    )
    assert status == 1
    message = failure(out)
    assert message.startswith("compile: <lambda>: a replay at ")
    assert "program.py:12 differs from an eager call: the result has" in message


def test_replays_that_are_right_change_nothing(program):
    status, out = program(TRAIN + "print(step.explain().replays)\nassert len(calls.getvalue()) == 9")
    plain = program(
        TRAIN + "print(step.explain().replays)\nassert len(calls.getvalue()) < 9", PELLUCID_CHECK="0"
    )
    assert (status, out) == plain
    assert status == 0, out


def test_replays_that_write_leave_the_versions_of_an_eager_call(program):
    """The eager call before a replay is no second write: what backward saved was not overwritten."""
    text = """
        add = torch.compile(lambda x: x.add_(1))
        x = torch.zeros(3)
        for _ in range(6):
            add(x)
        print(x._version, x.tolist(), add.explain().replays > 0)
        """
    assert program(text) == (0, "6 [6.0, 6.0, 6.0] True\n")


def test_a_number_that_changes_is_captured_as_in_an_unchecked_program(program):
    """What is noted of an op keeps none of its tensors alive, which the call would seem to keep."""
    text = """
        x = torch.ones(4)
        double = torch.compile(lambda x: x * 2)
        for _ in range(4):
            double(x)
        with torch.debug.trace():
            double(x)
        def f(x, n):
            if x.sum() > 0:
                y = x * 2
                return (y + n) * 3
            return x
        compiled = torch.compile(f, dynamic=("n",))
        print([compiled(x, n).tolist()[0] for n in range(12)], compiled.explain().replays > 8)
        """
    assert program(text) == (0, f"{[6.0 + 3 * n for n in range(12)]} True\n")
