"""What Python runs in between, wherever it can, such as a finalizer or the handler of a signal: it computes
and reads tensors of its own and of the program. Both have right values, or the former is refused.

A trace function calls it in place of Python; see `fuzz.interrupts`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

import pellucid
from fuzz.interrupts import PROGRAMS, Interrupt, eager
from pellucid.errors import DeviceError, KernelError
from pellucid.op.kernel.variants import VARIANTS

COUNT = 11
EACH = 4  # entries of one seed


class Reentry(Interrupt):
    """Calls something at one place of a program, or nowhere: then the places are counted.

    Args:
        at: at which of these; 0 for never.
        act: what is called.
    """

    def __init__(self, at: int, act: Callable[[], Any]):
        super().__init__(at)
        self.act, self.is_refused = act, False

    def _is_held_back(self, frame: FrameType | None) -> bool:
        return False

    def run(self, program: Callable[[], Any]) -> Any:
        """What the program returns."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return program()
        finally:
            sys.settrace(before)

    def _meet(self, frame: FrameType) -> None:
        self.met += 1
        if self.met == self.at:
            self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} ({frame.f_code.co_name})"
            sys.settrace(None)
            try:
                self.act()
            except (DeviceError, KernelError) as error:
                self.is_refused = "handed over" in str(error) or "a finalizer reads one" in str(error)
                if not self.is_refused:
                    raise


def pending() -> tuple[Callable[[], Any], list[Any]]:
    """What reads a tensor that is recorded and written in place, and what it saw."""
    x = pellucid.ones(3, device="webgpu")
    x += 1
    seen: list[Any] = []
    return lambda: seen.append(x.tolist()), seen


def apart() -> tuple[Callable[[], Any], list[Any]]:
    """Ops and reads of tensors that the program knows nothing of."""
    seen: list[Any] = []
    return lambda: seen.append(eager() == eager()), seen


def flushes() -> tuple[Callable[[], Any], list[Any]]:
    """Waits for the device, and a storage that goes."""
    seen: list[Any] = []

    def act() -> None:
        y = pellucid.ones(2, device="webgpu") + 1
        pellucid.webgpu.flush()
        del y
        pellucid.webgpu.synchronize()
        seen.append(True)

    return act, seen


ACTS = {pending: [2.0, 2.0, 2.0], apart: True, flushes: True}


def run(seed: int) -> None:
    """Enter one program at some of the places where Python can."""
    chance = Random(seed)
    program, kind = PROGRAMS[seed % len(PROGRAMS)], chance.choice(list(ACTS))
    with pellucid.webgpu.fusion(chance.random() < 0.7), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PELLUCID_KERNELS", chance.choice(["", "", *VARIANTS]))
        for _ in range(chance.choice([1, 4])):
            wanted = program()
        for _ in range(2):
            counted = Reentry(0, lambda: None)
            counted.run(program)
        for at in sorted(chance.randint(1, counted.met) for _ in range(EACH)):
            act, seen = kind()
            entry = Reentry(at, act)
            said = f"{program.__name__}, {kind.__name__} at "
            try:
                found = entry.run(program)
                assert found == wanted, f"{found}, not {wanted}"
                done = [] if entry.is_refused else [ACTS[kind]]
                assert not entry.where or seen == done, f"what was run in between saw {seen}"
                assert program() == wanted, "values differ afterwards"
            except Exception as error:
                said += f"{entry.where or 'no place'} ({at} of {counted.met})"
                raise AssertionError(f"{said}: {type(error).__name__}: {error}") from error
