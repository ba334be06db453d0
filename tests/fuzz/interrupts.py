"""Ctrl-C wherever Python looks for it, between any two records: afterwards values are right, no memory is
kept, and nothing raises.

A trace function raises in place of the signal: when a function begins, behind calls, and where loops go back.
Python looks there and nowhere else.
"""

from __future__ import annotations

import dis
import gc
import sys
from bisect import bisect_right
from collections.abc import Callable, Collection
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import pytest

import pellucid
from pellucid.device.stream import stream
from pellucid.op.kernel.variants import VARIANTS

COUNT = 7
EACH = 4  # interrupts of one seed

_PACKAGE = str(Path(pellucid.__file__).parent)
# Python 3.12 tells a trace function of opcodes only if some frame asked for them before.
sys._getframe().f_trace_opcodes = True

_CALLS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW"}


@cache
def _handlers(code: CodeType) -> tuple[list[int], list[tuple[int, int]]]:
    entries = sorted((e.start, e.end, e.target) for e in dis._parse_exception_table(code))  # type: ignore
    return [start for start, _, _ in entries], [(end, target) for _, end, target in entries]


def _handler(code: CodeType, at: int) -> int:
    """Where an exception of an instruction is handled; -1 where it leaves the function."""
    starts, rest = _handlers(code)
    k = bisect_right(starts, at) - 1
    return rest[k][1] if k >= 0 and at < rest[k][0] else -1


@cache
def _looks(code: CodeType) -> dict[int, bool]:
    """Whether Python looks at an instruction: behind calls, where a jump goes back, and where a function
    begins or goes on behind a ``yield``, but neither behind ``yield from`` nor ``await``."""
    return {
        i.offset: i.opname in _CALLS
        or i.opname == "JUMP_BACKWARD"
        or i.opname.startswith("POP_JUMP_BACKWARD")
        or (i.opname == "RESUME" and i.arg & 3 < 2)
        for i in dis.get_instructions(code)
    }


class Interrupt:
    """One interrupt of a program, or none: then the places where it could come are counted.

    Args:
        at: at which of these it comes; 0 for never.
        files: ends of the names of files where it may come.
        functions: names of functions where it may come; all if not given.
    """

    def __init__(self, at: int = 0, files: tuple[str, ...] = ("",), functions: Collection[str] = ()):
        self.at, self.met, self.where = at, 0, ""
        self.files, self.functions = files, functions

    def run(self, program: Callable[[], Any]) -> Any:
        """What the program returns; None where it was interrupted."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            result = program()
        except KeyboardInterrupt:
            return None
        finally:
            sys.settrace(before)
        assert not self.where, f"the interrupt at {self.where} was swallowed"
        return result

    def _meet(self, frame: FrameType) -> None:
        self.met += 1
        if self.met == self.at:
            self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} ({frame.f_code.co_name})"
            sys.settrace(None)
            raise KeyboardInterrupt

    def _is_held_back(self, frame: FrameType | None) -> bool:
        """Whether the native host keeps signals back while it encodes a window."""
        while frame is not None:
            if frame.f_code.co_name == "submit" and frame.f_code.co_filename.endswith("device/native.py"):
                return True
            frame = frame.f_back
        return False

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        is_ours = code.co_filename.startswith(_PACKAGE) or code.co_filename == "<string>"
        if (
            not is_ours
            or not code.co_filename.endswith(self.files)
            or self.where
            or self._is_held_back(frame)
        ):
            return None
        if self.functions and code.co_name not in self.functions:
            return None
        frame.f_trace_opcodes, last = True, -1

        def step(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "opcode" and not self.where:
                at = frame.f_lasti
                # Where blocks end, Python raises within the call, and the block's handler is asked.
                if last >= 0 and _looks(code)[last] and _handler(code, last) == _handler(code, at):
                    self._meet(frame)
                last = at
            elif event == "exception":  # where a call raises, Python does not look
                last = -1
            return step

        if _looks(code).get(frame.f_lasti):  # not where a generator that is closed is told to end
            self._meet(frame)
        return step


def places(program: Callable[[], Any], *limits: Any) -> range:
    """Where an interrupt of a program can come.

    Args:
        program: the same places each time.
        limits: further arguments of `Interrupt`.
    """
    for _ in range(2):  # Python 3.13 tells of a function's opcodes from its second call on
        counted = Interrupt(0, *limits)
        counted.run(program)
    return range(1, counted.met + 1)


def _given(n: int = 6, **more: Any) -> Any:
    return pellucid.tensor([[k + 0.5 * j for j in range(3)] for k in range(n)], device="webgpu", **more)


_lengths = count(50)


def eager() -> Any:
    """Ops that have plans."""
    x = _given()
    return ((x * 2 + 1).sin() - x[1:3].sum(0)).tolist()


def new_shapes() -> Any:
    """Ops that are planned."""
    n = next(_lengths)
    x = pellucid.ones(n, 3, device="webgpu")
    return ((x * 2 + 1).sum(0) - 3 * n).tolist()  # exact on every device, which a quotient is not


def several_results() -> Any:
    values, order = _given().sort(dim=0, descending=True)
    return values.tolist(), order.tolist(), _given().topk(2)[0].tolist()


def windows() -> Any:
    """Windows that are met, planned and recognised."""
    x = _given()
    for _ in range(4):
        x = ((x * 0.5).exp() + 1).log()
        pellucid.webgpu.flush()
    return x.tolist()


def uploads() -> Any:
    x = pellucid.tensor(list(range(3000)), dtype=pellucid.float32, device="webgpu")
    y = pellucid.tensor([1.0, 2.0], device="webgpu")
    return x.sum().item(), y.tolist(), x[2999].item()


def ends() -> Any:
    """Storages that go, one by one and in a cycle."""
    held: Any = [_given() + k for k in range(4)]
    while len(held) > 1:
        del held[0]
        pellucid.webgpu.flush()
    held.append(held)
    last = held[0].sum().item()
    del held
    return last


def in_place() -> Any:
    x = _given()
    x.mul_(2).add_(1)
    x[1] = 0
    x[:, 0].copy_(x[:, 1])
    x += x.sum()
    return x.tolist()


def reads() -> Any:
    """Reads that nobody waits for, beside others."""
    x = _given()
    for k in range(3):
        stream().begin_read(x._storage, 4 * k, 4)
    return bytes(stream().begin_read(x._storage, 8, 4).result()), bool((x > 0).any())


def backward() -> Any:
    x = _given(requires_grad=True)
    ((x * x).relu() @ x.T).sum().backward()
    return x.grad.tolist()


def training() -> Any:
    w = _given(3, requires_grad=True)
    optimizer = pellucid.optim.AdamW([w], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (_given() @ w).square().mean().backward()
        optimizer.step()
    return w.tolist()


def accounting() -> Any:
    x = _given()
    pellucid.webgpu.memory_stats()
    x = x + 1
    pellucid.webgpu.empty_cache()
    pellucid.webgpu.synchronize()
    return x.tolist(), pellucid.webgpu.memory_allocated() > 0


PROGRAMS = (
    eager, new_shapes, several_results, windows, uploads, ends, in_place, reads, backward, training,
    accounting,
)  # fmt: skip


def _settled() -> tuple[int, int]:
    gc.collect()
    pellucid.webgpu.synchronize()
    stats = pellucid.webgpu.memory_stats()
    return stats["allocated_bytes"], stats["live_buffers"]


def _slots() -> int:
    """Numbers of slots that are in use or were lost."""
    return stream()._slots - len(stream().free)


def run(seed: int) -> None:
    """Interrupt one program at some of the places where it can be."""
    chance = Random(seed)
    program = PROGRAMS[seed % len(PROGRAMS)]
    with pellucid.webgpu.fusion(chance.random() < 0.7), pytest.MonkeyPatch.context() as patch:
        # Ops that are planned from here on take kernels as of another device.
        patch.setenv("PELLUCID_KERNELS", chance.choice(["", "", *VARIANTS]))
        for _ in range(chance.choice([1, 4])):
            wanted = program()
        everywhere = places(program)
        before, slots = _settled(), _slots()
        for at in sorted(chance.choice(everywhere) for _ in range(EACH)):
            interrupt = Interrupt(at)
            interrupt.run(program)
            place = f"{interrupt.where or 'no place'} ({at} of {len(everywhere)})"
            said = f"{program.__name__}, interrupted at {place}"
            try:
                assert _settled() == before, f"{_settled()}, not {before}"
                assert _slots() <= slots + 1, f"{_slots() - slots} numbers of slots are lost"
                slots = _slots()
                for _ in range(2):
                    assert program() == wanted, "values differ afterwards"
                    assert eager() == eager()
                assert _settled() == before, f"after another run {_settled()}, not {before}"
            except Exception as error:
                raise AssertionError(f"{said}: {type(error).__name__}: {error}") from error
