"""Interrupts within the text of plans: what an op has recorded is freed."""

import dis
import gc
import sys

import pytest

import pellucid
from pellucid.device.stream import stream

pytestmark = pytest.mark.gpu


def interrupted(program, count: int) -> bool:
    """Run a program; whether an interrupt came, behind so many calls within the text of plans."""
    left, was_call = count, False

    def trace(frame, event, _):
        nonlocal left, was_call
        if frame.f_code.co_name != "run":
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            if was_call:
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            was_call = dis.opname[frame.f_code.co_code[frame.f_lasti]] == "CALL"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        program()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupted_op_leaves_no_memory_behind():
    """Wherever it comes: Python looks for interrupts behind calls."""
    x = pellucid.ones(4000, device="webgpu")

    def settled():
        gc.collect()
        pellucid.webgpu.synchronize()
        stats = stream().open().stats()
        return stats["live_buffers"], pellucid.webgpu.memory_allocated()

    for _ in range(2):
        x.sort()
        pellucid.webgpu.synchronize()
    before, count = settled(), 1
    while interrupted(x.sort, count):
        assert settled() == before, count
        count += 1
    assert count > 8
    assert settled() == before


def test_an_interrupted_op_gives_the_numbers_of_its_slots_back():
    """All but the one that it was just taking: Python looks for interrupts before that number has a name."""
    x = pellucid.ones(4000, device="webgpu")

    def given_out():
        gc.collect()
        pellucid.webgpu.synchronize()
        return stream()._slots - len(stream().free)

    for op in (x.sort, lambda: x + 1):
        for _ in range(2):
            op()
            pellucid.webgpu.synchronize()
        before, count, lost = given_out(), 1, []
        while interrupted(op, count):
            lost.append(given_out() - before)
            before += lost[-1]
            count += 1
        assert max(lost) == 1
        assert lost.count(1) <= len(lost) // 3, lost
