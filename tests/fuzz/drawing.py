"""Random programs of one step a line: what a step is, and what it is drawn from.

A program is made by running it as it grows, on the cpu device, so that every step fits what is there. The
text of a step has holes for numbers and offsets, which may be others each time that the program runs. PyTorch
is not needed here, so that pages can draw the same programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from laws import MOVE, Law, State, follow

import pellucid

FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "uint8", "int8", "int16")
MOST = 5000  # elements of one tensor
NAMES = {"nan": float("nan"), "inf": float("inf")}


@dataclass
class Step:
    """One line.

    Args:
        text: the line, with holes.
        theirs: PyTorch's spelling of it, where that is another: what is refused there, or overlaps.
        reads: variables whose values it takes.
        makes: the variable that it makes.
        writes: the variable that it writes into, or a view of it.
        law: how exact the result is.
    """

    text: str
    theirs: str | None = None
    reads: tuple[str, ...] = ()
    makes: str | None = None
    writes: str | None = None
    law: Law = MOVE
    holes: dict[str, Callable[[Random], str]] = field(default_factory=dict)
    # Whether the result's shape depends on values: nothing is made of it, for it is another each time.
    last: bool = False

    @property
    def needs(self) -> set[str]:
        return set(re.findall(r"\bv\d+\b", self.text)) - {self.makes}


def plain(tensor) -> np.ndarray:
    """The values, bfloat16 widened."""
    if isinstance(tensor, pellucid.Tensor):
        return tensor.detach().numpy()
    tensor = tensor.detach().clone()  # PyTorch: a copy, of memory that a later step may overwrite
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def memory(tensor):
    """What two tensors have in common that share memory."""
    if isinstance(tensor, pellucid.Tensor):
        return tensor._storage
    return tensor.untyped_storage().data_ptr() or object()


def dtype_of(tensor) -> str:
    return str(tensor.dtype).split(".")[1]


class Follower:
    """Runs a program step by step with a module and keeps how exact each variable is."""

    def __init__(self, module) -> None:
        self.space: dict[str, Any] = {"torch": module, **NAMES}
        self.states: dict[str, State] = {}
        self.groups: dict[str, str] = {}

    def run(self, step: Step, text: str) -> None:
        """One step; `text` has no holes any more."""
        given = [plain(self.space[name]) for name in step.reads]
        kinds = [dtype_of(self.space[name]) for name in step.reads]
        states = [self.state(name) for name in step.reads]
        before = {memory(self.space[name]) for name in self.variables}
        with np.errstate(all="ignore"):
            exec(text, self.space)
        changed = step.makes or step.writes
        if changed is None or changed not in self.space:
            return
        made = self.space[changed]
        state = follow(step.law, states, given, plain(made), dtype_of(made), kinds)
        if step.makes is None:
            group = self.groups[changed]
            self.states[group] = self.states[group].with_others(state)
        else:
            where = memory(made)
            others = (n for n in self.variables if n != changed and memory(self.space[n]) == where)
            first = next(others, None)
            if first is None and where not in before:
                # Fresh results of PyTorch may keep the order of axes of what they are made of, ours do not: a
                # `reshape` of them is a view here and a copy there.
                self.space[changed] = made.contiguous()
            self.groups[changed] = changed if first is None else self.groups[first]
            if first is None:
                self.states[changed] = state

    def state(self, name: str) -> State:
        return self.states[self.groups[name]]

    @property
    def variables(self) -> list[str]:
        return [name for name in self.space if re.fullmatch(r"v\d+", name)]


def number(rng: Random, dtype: str) -> str:
    """A number, mostly small and whole, at times special."""
    if dtype == "bool":
        return rng.choice(("True", "False"))
    if dtype in FLOATS:
        kind = rng.random()
        if kind < 0.75:
            return str(rng.randint(-8, 8) / rng.choice((1, 1, 2)))
        if kind < 0.9:
            return repr(round(rng.gauss(0, 2), 3))
        return rng.choice(("nan", "inf", "-inf", "-0.0", "1e30", "60000.0", "1e-6"))
    low = 0 if dtype == "uint8" else -6
    if rng.random() < 0.85:
        return str(rng.randint(low, 6))
    ends = np.iinfo(dtype)
    return str(rng.choice((ends.min, ends.max, ends.min + 1, ends.max // 2)))


def values(rng: Random, dtype: str, n: int) -> str:
    style = rng.random()
    if dtype in FLOATS and style < 0.3:
        return f"[{', '.join(repr(round(rng.gauss(0, 2), 3)) for _ in range(n))}]"
    if dtype in FLOATS and style < 0.6:
        return f"[{', '.join(str(float(rng.randint(-5, 5))) for _ in range(n))}]"
    return f"[{', '.join(number(rng, dtype) for _ in range(n))}]"


class Drawing:
    """A program as it grows."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.steps: list[Step] = []
        self.follower = Follower(pellucid)
        self.made = 0
        self.holes: dict[str, Callable[[Random], str]] = {}
        self.named = 0
        self.unusable: set[str] = set()

    @property
    def usable(self) -> dict[str, Any]:
        """The variables that further steps may use."""
        return {n: self.follower.space[n] for n in self.follower.variables if n not in self.unusable}

    # What step makers use

    def hole(self, draw: Callable[[Random], str]) -> str:
        """A place in the text that is filled anew for each run."""
        name = f"h{self.named}"
        self.named += 1
        self.holes[name] = draw
        return f"{{{name}}}"

    def whole(self, low: int, high: int) -> str:
        return self.hole(lambda rng: str(rng.randint(low, high)))

    def number(self, dtype: str) -> str:
        return self.hole(lambda rng: number(rng, dtype))

    def fill(self, dtype: str) -> str:
        """A number for `full` and `fill_`: a half refuses what it does not hold, in PyTorch only many do."""
        return self.hole(
            lambda rng: number(rng, dtype).replace("1e30", "inf" if dtype == "float16" else "1e30")
        )

    def bound(self, dtype: str) -> str:
        """A number for `clamp`: what NaN makes there differs between PyTorch's own kernels."""
        return self.hole(lambda rng: number(rng, dtype).replace("nan", "0.5"))

    def pick(self, fits: Callable[[Any], bool] = lambda t: True) -> tuple[str, Any]:
        """A variable, the later ones rather.

        Raises:
            LookupError: none fits.
        """
        names = [n for n, t in self.usable.items() if fits(t)]
        if not names:
            raise LookupError
        name = names[min(len(names) - 1, int(len(names) * self.rng.random() ** 0.6))]
        return name, self.follower.space[name]

    def pick_same(self, fits: Callable[[Any], bool] = lambda t: True) -> tuple[str, Any]:
        """The same of variables whose bits are known, for functions with jumps."""
        known = {id(t): n for n, t in self.usable.items()}
        return self.pick(lambda t: self.follower.state(known[id(t)]).same and fits(t))

    def partner(self, name: str, t) -> tuple[str, str, tuple[str, ...]]:
        """An operand beside a tensor: text, PyTorch's text, what it reads."""
        kind = self.rng.random()
        if kind < 0.25:
            text = self.number(dtype_of(t))
            return text, text, ()
        other, o = self.pick(lambda o: broadcasts(o.shape, t.shape)) if kind < 0.9 else self.pick()
        if kind < 0.4 and o.ndim:
            d = self.rng.randrange(o.ndim)
            step = self.rng.choice((1, 1, 2)) if o.shape[d] < 2 or t.shape != o.shape else 1
            index = ":, " * d
            flipped = f"{other}.flip({d})" + (f"[{index}::{step}]" if step > 1 else "")
            return f"{other}[{index}::-{step}]", flipped, (other,)
        if kind < 0.5 and o.ndim > 1 and o.shape[-1] == o.shape[-2]:
            return f"{other}.mT", f"{other}.mT", (other,)
        return other, other, (other,)

    def index(self, t, write: bool = False) -> str:
        """The inside of brackets, of integers, slices, None and an ellipsis."""
        rng, parts = self.rng, []
        count = rng.randint(1, max(1, t.ndim))
        for n in t.shape[:count]:
            kind = rng.random()
            if kind < 0.2 and n:
                parts.append(self.whole(-n, n - 1))
            elif kind < 0.75 and n:
                length, step = rng.randint(0 if kind < 0.23 else 1, n), rng.choice((1, 1, 1, 2, 3))
                room = max(0, n - (length - 1) * step - 1) if length else n
                if (length - 1) * step >= n:
                    step, room = 1, n - length
                start = self.whole(0, room)
                parts.append(f"{start}:{start}+{(length - 1) * step + 1 if length else 0}:{step}")
            else:
                parts.append(":")
        if rng.random() < 0.15 and not write:
            parts.insert(rng.randint(0, len(parts)), "None")
        if rng.random() < 0.15 and count < t.ndim:
            parts.append("...")
        elif rng.random() < 0.1 and t.ndim and count == t.ndim:
            parts.insert(rng.randint(0, len(parts)), "...")
        return ", ".join(parts) or "..."

    def positions(self, n: int, length: int, unique: bool = False) -> str:
        """A list of indices into n elements."""

        def draw(rng: Random) -> str:
            if unique:
                return str(rng.sample(range(n), length))
            return str([rng.randint(-n, n - 1) for _ in range(length)])

        return self.hole(draw)

    # Growing

    def add(self, step: Step) -> bool:
        """Run a step and keep it if it can be run."""
        step.holes, self.holes = {n: h for n, h in self.holes.items() if f"{{{n}}}" in step.text}, {}
        step.reads = tuple(name for name in step.reads if name in step.needs | {step.writes})
        text = fill(step.text, {name: draw(self.rng) for name, draw in step.holes.items()})
        try:
            self.follower.run(step, text)
        except (pellucid.errors.PellucidError, TypeError):
            self._forget(step)
            return False
        if step.makes is not None:
            made = self.follower.space[step.makes]
            if not isinstance(made, pellucid.Tensor) or made.numel() > MOST:
                self._forget(step)
                return False
            if step.last:
                self.unusable.add(step.makes)
        self.steps.append(step)
        return True

    def _forget(self, step: Step) -> None:
        if step.makes:
            self.follower.space.pop(step.makes, None)
            self.follower.groups.pop(step.makes, None)

    def name(self) -> str:
        self.made += 1
        return f"v{self.made - 1}"


def broadcasts(small, large) -> bool:
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(small[::-1], large[::-1]))


def fill(text: str, holes: dict[str, str]) -> str:
    return text.format(**holes)


# Takes the drawing and gives the step, or raises LookupError where nothing fits.
Maker = Callable[["Drawing"], Step]


def maker(makers: list[tuple[int, Maker]], weight: int):
    """Declares a step maker, with how often it is drawn beside others."""

    def declare(function: Maker) -> Maker:
        makers.append((weight, function))
        return function

    return declare


def made(d: Drawing, expression: str, reads, law: Law, theirs: str | None = None) -> Step:
    name = d.name()
    other = None if theirs in (None, expression) else f"{name} = {theirs}"
    return Step(f"{name} = {expression}", other, tuple(reads), name, law=law)
