"""Random programs of views, writes through views, indices, reductions, casts and products: the same in
PyTorch, and here without fusion, fused at once, and fused when it comes again with other numbers and offsets.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from random import Random
from typing import Any

import writes
from drawing import Drawing, Follower, Step, dtype_of, fill, plain
from laws import differs
from steps import MAKERS, given

import pellucid
from pellucid.op.fusion.window import enable

COUNT = 16
ROUNDS = 5  # from the third on a window is fused
SHRINKING = 20.0  # seconds

Numbers = list[dict[str, str]]


def draw(rng: Random) -> list[Step]:
    """A program of up to thirty steps."""
    d = Drawing(rng)
    before = pellucid.get_default_device()
    pellucid.set_default_device("cpu")
    try:
        wanted = rng.randint(4, 24)
        for _ in range(rng.randint(1, 3)):
            d.add(given(d))
        weights, makers = zip(*MAKERS, *writes.MAKERS)
        while len(d.steps) < wanted:
            try:
                step = rng.choices(makers, weights)[0](d)
            except LookupError:
                d.holes = {}
                continue
            d.add(step)
    finally:
        pellucid.set_default_device(before)
    return d.steps


def sample(steps: list[Step], rng: Random) -> list[dict[str, str]]:
    """Numbers and offsets for one run: per step, by hole."""
    return [{name: draw(rng) for name, draw in step.holes.items()} for step in steps]


class Expected:
    """What the oracle made in one round: variables with shape, dtype, values and how exact they are."""

    def __init__(self, follower: Follower) -> None:
        self.of = {
            name: (tuple(t.shape), dtype_of(t), plain(t), follower.state(name))
            for name in follower.variables
            for t in [follower.space[name]]
        }


def oracle(steps: list[Step], numbers: Numbers, module) -> tuple[list[int], Expected]:
    """The steps that an oracle takes, and what they make: those that it refuses are left out, and what needs
    them."""
    ours = module is pellucid
    follower, taken = Follower(module), []
    for k, step in enumerate(steps):
        if not step.needs <= set(follower.space):
            continue
        try:
            follower.run(step, fill(step.text if ours else step.theirs or step.text, numbers[k]))
        except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
            follower.space.pop(step.makes, None)
            continue
        taken.append(k)
    return taken, Expected(follower)


def text_of(steps: list[Step], numbers: Numbers) -> str:
    return "\n".join(fill(step.text, n) for step, n in zip(steps, numbers))


def ours(text: str) -> dict[str, Any]:
    """The variables of a program that ran here."""
    space: dict[str, Any] = {"torch": pellucid, "nan": float("nan"), "inf": float("inf")}
    exec(text, space)
    return {name: t for name, t in space.items() if isinstance(t, pellucid.Tensor)}


def compare(found: dict[str, Any], expected: Expected) -> str | None:
    for name, (shape, dtype, values, state) in expected.of.items():
        mine = found[name]
        if tuple(mine.shape) != shape:
            return f"{name} has shape {tuple(mine.shape)} instead of {shape}"
        if dtype_of(mine) != dtype:
            return f"{name} is {dtype_of(mine)} instead of {dtype}"
        if difference := differs(plain(mine), values, state):
            return f"{name} ({dtype}, shape {shape}): {difference}"
    return None


def without_fusion(rounds: list[tuple[str, Expected]]) -> str | None:
    enable(False)
    return _all(rounds[:2])


def fused_at_once(rounds: list[tuple[str, Expected]]) -> str | None:
    enable(True, at_once=True)
    return _all(rounds[:2])


def fused_again(rounds: list[tuple[str, Expected]]) -> str | None:
    enable(True)
    return _all(rounds)


def _all(rounds: list[tuple[str, Expected]]) -> str | None:
    for k, (text, expected) in enumerate(rounds):
        try:
            difference = compare(ours(text), expected)
        except (pellucid.errors.PellucidError, ArithmeticError, LookupError, NameError) as error:
            difference = f"{type(error).__name__}: {error}"
        if difference:
            return f"round {k}: {difference}"
    return None


MODES: dict[str, Callable[[list[tuple[str, Expected]]], str | None]] = {
    "without fusion": without_fusion,
    "fused at once": fused_at_once,
    "fused when it comes again": fused_again,
}


@contextmanager
def device(name: str | None):
    """Tensors are made on this device, None for the usual one."""
    before = pellucid.get_default_device()
    pellucid.set_default_device(name or before)
    try:
        yield
    finally:
        pellucid.set_default_device(before)


class Program:
    """Steps with the numbers of each round, and the oracle's results.

    Args:
        steps: the program.
        numbers: for each round.
        module: the oracle.
        where: its device, if it is not PyTorch.
    """

    def __init__(self, steps: list[Step], numbers: list[Numbers], module, where: str | None = None) -> None:
        with warnings.catch_warnings(), device(where):
            warnings.simplefilter("ignore")
            while True:
                # A step that is refused in any round, for the numbers that it has there, goes from all.
                found = [oracle(steps, n, module) for n in numbers]
                taken = sorted(set.intersection(*[set(t) for t, _ in found]))
                if all(len(t) == len(steps) for t, _ in found):
                    break
                steps = [steps[k] for k in taken]
                numbers = [[n[k] for k in taken] for n in numbers]
        self.steps, self.numbers, self.oracle = steps, numbers, (module, where)
        self.rounds = [(text_of(steps, n), expected) for n, (_, expected) in zip(numbers, found)]

    def differs(self, mode: str) -> str | None:
        try:
            return MODES[mode](self.rounds)
        finally:
            enable(True)

    def without(self, k: int) -> Program:
        steps = self.steps[:k] + self.steps[k + 1 :]
        return Program(steps, [n[:k] + n[k + 1 :] for n in self.numbers], *self.oracle)

    def shrunk(self, mode: str) -> Program:
        """A shorter one that still differs: steps dropped as long as time allows."""
        end, best = time.monotonic() + SHRINKING, self
        again = True
        while again:
            again = False
            for k in reversed(range(len(best.steps))):
                if k >= len(best.steps):
                    continue
                if time.monotonic() > end:
                    return best
                shorter = best.without(k)
                if shorter.differs(mode):
                    best, again = shorter, True
        return best

    def report(self, mode: str, difference: str) -> str:
        lines = [f"{mode}: {difference}", ""]
        rounds = self.rounds[: int(difference.removeprefix("round ").split(":")[0]) + 1]
        for k, (text, _) in enumerate(rounds):
            lines += [f"# round {k}", text, ""]
        spelled = [
            f"#   {fill(step.text, n)}    is in PyTorch    {fill(step.theirs, n)}"
            for step, n in zip(self.steps, self.numbers[len(rounds) - 1])
            if step.theirs not in (None, step.text)
        ]
        return "\n".join([*lines, *spelled])


def check(seed: int, module, where: str | None = None) -> None:
    """One program, in every mode, against PyTorch, or against ourselves on another device."""
    rng = Random(seed)
    steps = draw(rng)
    program = Program(steps, [sample(steps, rng) for _ in range(ROUNDS)], module, where)
    for mode in MODES:
        if difference := program.differs(mode):
            shorter = program.shrunk(mode)
            raise AssertionError(shorter.report(mode, shorter.differs(mode) or difference))


def run(seed: int) -> None:
    import torch

    # Its products of bfloat16 multiply infinity by zeros that pad their blocks, which makes NaN.
    torch.backends.mkldnn.set_flags(False)
    check(seed, torch)
