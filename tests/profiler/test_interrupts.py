"""Ctrl-C in any step by which windows go to the host: nothing is lost, run twice or hidden from a trace."""

import linecache
import re
import sys
from contextlib import suppress

import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import settle
from pellucid.device.handover import HandOver, joined
from pellucid.device.native import NativeHost
from pellucid.device.stream import Stream, stream
from pellucid.profiler.recorder import Recorder

pytestmark = pytest.mark.gpu

STEPS = [
    step.__code__
    for step in (
        Stream.submit, Stream._submit, Stream._look_through, Stream._account, Stream._send, Stream._hand_over,
        Stream._rewritten, Stream.submit_window, joined, HandOver.__init__, HandOver.go_on,
        Recorder._on_submit,
    )
]  # fmt: skip
# An empty tuple calls nothing.
CALL = re.compile(r"[\w\])]\(")


class Interrupt:
    """A KeyboardInterrupt before one of the lines of `STEPS` that run within a ``with``.

    Python looks for interrupts at calls: lines without one are a step with the line before.

    Args:
        number: how many of them run before it.
    """

    def __init__(self, number):
        self.left = number
        self.fell = False

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.called)

    def __exit__(self, *exc):
        sys.settrace(self.before)

    def called(self, frame, event, argument):
        return self.line if frame.f_code in STEPS and not self.fell else None

    def line(self, frame, event, argument):
        source = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and CALL.search(source) and not self.fell:
            if not self.left:
                self.fell = True
                raise KeyboardInterrupt
            self.left -= 1
        return self.line


def seen(f, x, number):
    """Run a program of ops and replays with an interrupt: the ops in its trace, and whether one fell."""
    x.zero_()
    torch.webgpu.flush()
    interrupt, flush = Interrupt(number), torch.webgpu.flush

    def replay():
        return f(x)

    with torch.debug.trace() as t:
        for step in (lambda: x.sub_(2), replay, flush, lambda: x.mul_(3), flush, replay, lambda: x.mul_(5)):
            with suppress(KeyboardInterrupt), interrupt:
                step()
    # After an interrupt the function runs eagerly once more.
    return [call.op.replace("add", "replay") for d in t for call in d.calls], interrupt.fell


@unchecked("an eager call stands before each replay, and is traced")
@pytest.mark.parametrize("on", [False, True], ids=["one by one", "fused"])
def test_a_trace_sees_all_that_ran(on):
    """What it names, in its order, makes the value. Only the replay that is interrupted may be left out."""
    f = torch.compile(lambda x: x.add_(1))
    x, y = torch.zeros(3), torch.zeros(3)
    with torch.webgpu.fusion(on):
        settle(f, (x,), (y,))
        number, fell = 0, True
        while fell:
            ops, fell = seen(f, x, number)
            value, factors = 0, iter((3, 5))
            for op in ops:
                value = {"sub": value - 2, "replay": value + 1}[op] if op != "mul" else value * next(factors)
            assert x.tolist() == [value] * 3, (number, ops)
            assert [op for op in ops if op != "replay"] == ["sub", "mul", "mul"]
            assert len(ops) >= 5 - fell
            number += 1
    assert number > 60
    assert not stream().ready


@pytest.mark.parametrize("taken", [False, True])
def test_a_trace_sees_a_window_once_that_an_interrupt_met_at_the_host(monkeypatch, taken):
    x, submit, interrupts = torch.zeros(3), NativeHost.submit, []

    def interrupted(host, words, held=False):
        if taken or not interrupts:
            submit(host, words, held)
        if interrupts:
            raise interrupts.pop()

    monkeypatch.setattr(NativeHost, "submit", interrupted)
    with torch.debug.trace() as t:
        x.add_(2)
        interrupts.append(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            torch.webgpu.flush()
        x.mul_(3)
    assert [call.op for d in t for call in d.calls] == ["add", "mul"]
    assert x.tolist() == [6.0] * 3
