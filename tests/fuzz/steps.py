"""Random programs of one step a line: what each may be, and how they are drawn.

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
from laws import ADD, CAST, JUMP, MATMUL, MOVE, MULTIPLY, SMOOTH, SUM, Law, State, follow, sums

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


# A step maker takes the drawing and gives the step, or raises LookupError where nothing fits.
MAKERS: list[tuple[int, Callable[[Drawing], Step]]] = []


def maker(weight: int):
    def declare(function):
        MAKERS.append((weight, function))
        return function

    return declare


def made(d: Drawing, expression: str, reads, law: Law, theirs: str | None = None) -> Step:
    name = d.name()
    other = None if theirs in (None, expression) else f"{name} = {theirs}"
    return Step(f"{name} = {expression}", other, tuple(reads), name, law=law)


@maker(8)
def given(d: Drawing) -> Step:
    rng = d.rng
    dtype = rng.choice((*FLOATS, "float32", "float32", "float32", *INTEGERS, "bool"))
    shape = [rng.choice((1, 2, 3, 3, 4, 5, 7)) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 4)))]
    if rng.random() < 0.05 and shape:
        shape[rng.randrange(len(shape))] = 0
    n = int(np.prod(shape))
    if rng.random() < 0.12:
        shape = [rng.choice((33, 64, 130, 1)), rng.choice((4, 31, 65))][: rng.choice((1, 2))]
        n = int(np.prod(shape))
        parts = f"torch.arange({n}) * {d.whole(3, 40)} % {d.whole(5, 23)} - {0 if dtype == 'uint8' else 4}"
        return made(d, f"({parts}).to(torch.{dtype}).reshape({tuple(shape)})", (), MOVE)
    more = rng.choice((0, 0, 2, 5))
    text = f"torch.tensor({d.hole(lambda r: values(r, dtype, n + more))}, dtype=torch.{dtype})"
    if more:
        start = d.whole(0, more)
        text += f"[{start}:{start}+{n}]"
    return made(d, f"{text}.reshape({tuple(shape)})", (), MOVE)


@maker(4)
def filled(d: Drawing) -> Step:
    dtype = d.rng.choice((*FLOATS, *INTEGERS, "bool"))
    shape = tuple(d.rng.randint(1, 4) for _ in range(d.rng.randint(0, 3)))
    text = d.rng.choice((
        f"torch.full({shape}, {d.fill(dtype)}, dtype=torch.{dtype})",
        f"torch.zeros({shape}, dtype=torch.{dtype})",
        f"torch.arange({d.rng.randint(1, 9)}, dtype=torch.{dtype if dtype != 'bool' else 'int64'})",
        f"torch.eye({d.rng.randint(1, 4)})",
    ))  # fmt: skip
    return made(d, text, (), MOVE)


@maker(14)
def sliced(d: Drawing) -> Step:
    name, t = d.pick(lambda t: t.ndim > 0)
    return made(d, f"{name}[{d.index(t)}]", [name], MOVE)


@maker(14)
def view(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick(lambda t: t.ndim > 0)
    a, b = rng.randrange(t.ndim), rng.randrange(t.ndim)
    order = tuple(rng.sample(range(t.ndim), t.ndim))
    n = t.shape[a]
    choices = [
        f"transpose({a}, {b})",
        f"permute({order})",
        f"movedim({a}, {b})",
        f"unsqueeze({rng.randint(0, t.ndim)})",
        "squeeze()",
        f"flatten({min(a, b)}, {max(a, b)})",
        f"expand({tuple(rng.choice((2, 3)) if s == 1 else s for s in t.shape)})",
        f"expand({rng.randint(1, 3)}, {', '.join('-1' for _ in t.shape)})",
        "reshape(-1)",
        "view(-1)",
        "detach()",
    ]
    if n:
        length = rng.randint(1, n)
        choices += [
            f"narrow({a}, {d.whole(0, n - length)}, {length})",
            f"select({a}, {d.whole(-n, n - 1)})",
            f"unbind({a})[{rng.randrange(n)}]",
            f"split({length}, {a})[{rng.randrange(-(-n // length))}]",
            f"chunk({length}, {a})[0]",
        ]
    if t.ndim > 1 and a != b:
        choices += [f"diagonal({rng.randint(-2, 2)}, {a}, {b})"] * 2 + ["mT"]
    if n and n % 2 == 0:
        choices += [f"unflatten({a}, (2, {n // 2}))", f"unflatten({a}, (-1, 2))"]
    if t.is_contiguous() and t.numel() > 3 and t._storage.nbytes == t.numel() * t.itemsize:
        rows = rng.randint(1, 3)
        columns = rng.randint(1, t.numel() // rows)
        stride = rng.randint(1, columns)
        room = t.numel() - (rows - 1) * stride - columns
        if room >= 0:
            choices += [f"as_strided(({rows}, {columns}), ({stride}, 1), {d.whole(0, room)})"] * 2
    return made(d, f"{name}.{rng.choice(choices)}", [name], MOVE)


@maker(12)
def arithmetic(d: Drawing) -> Step:
    name, t = d.pick()
    other, theirs, reads = d.partner(name, t)
    sign, law = d.rng.choice((("+", ADD), ("-", ADD), ("*", MULTIPLY)))
    left, right = (name, other) if d.rng.random() < 0.7 else (other, name)
    left_theirs, right_theirs = (name, theirs) if left == name else (theirs, name)
    return made(d, f"{left} {sign} {right}", (name, *reads), law, f"{left_theirs} {sign} {right_theirs}")


@maker(4)
def divided(d: Drawing) -> Step:
    """Divisors have no zero, whose sign may be any."""
    name, t = d.pick_same(lambda t: dtype_of(t) != "bool")
    other, theirs, reads = d.partner(name, t)
    sign = d.rng.choice(("/", "//", "%"))
    law = SMOOTH if sign == "/" else JUMP
    function = d.rng.choice(("", "", "torch.fmod")) if sign == "%" else ""
    if not reads:
        other = theirs = d.hole(lambda rng: rng.choice(("2", "3", "7")))
    else:
        if not d.follower.state(reads[0]).same:
            raise LookupError
        other, theirs = f"({other}.abs() + 1)", f"({theirs}.abs() + 1)"
    if function:
        return made(d, f"{function}({name}, {other})", (name, *reads), law, f"{function}({name}, {theirs})")
    return made(d, f"{name} {sign} {other}", (name, *reads), law, f"{name} {sign} {theirs}")


@maker(6)
def compared(d: Drawing) -> Step:
    name, t = d.pick_same()
    other, theirs, reads = d.partner(name, t)
    sign = d.rng.choice(("<", "<=", ">", ">=", "==", "!="))
    return made(d, f"{name} {sign} {other}", (name, *reads), JUMP, f"{name} {sign} {theirs}")


@maker(5)
def of_bits(d: Drawing) -> Step:
    name, t = d.pick(lambda t: dtype_of(t) not in FLOATS)
    other, _ = d.pick(lambda o: dtype_of(o) not in FLOATS and broadcasts(o.shape, t.shape))
    sign = d.rng.choice(("&", "|", "^", "~", "<<", ">>"))
    if sign == "~":
        return made(d, f"~{name}", [name], MOVE)
    if sign in ("<<", ">>"):
        return made(d, f"{name} {sign} {d.whole(0, 6)}", [name], MOVE)
    return made(d, f"{name} {sign} {other}", [name, other], MOVE)


@maker(5)
def chosen(d: Drawing) -> Step:
    mask, m = d.pick(lambda t: dtype_of(t) == "bool")
    name, t = d.pick(lambda t: broadcasts(t.shape, m.shape) or broadcasts(m.shape, t.shape))
    kind = d.rng.random()
    if kind < 0.3:
        return made(d, f"{name}.masked_fill({mask}, {d.number(dtype_of(t))})", [name, mask], MOVE)
    other, theirs, reads = d.partner(name, t)
    return made(
        d,
        f"torch.where({mask}, {name}, {other})",
        (mask, name, *reads),
        MOVE,
        f"torch.where({mask}, {name}, {theirs})",
    )


@maker(8)
def smooth(d: Drawing) -> Step:
    """Functions whose values stay small."""
    function = d.rng.choice(
        ("sin", "cos", "tanh", "sigmoid", "erf", "atan", "asinh", "clamp(-4, 4).exp", "clamp(-9, 3).expm1",
         "clamp(-5, 5).sinh", "abs().add(1).log", "abs().add(1).sqrt", "abs().add(1).rsqrt",
         "abs().add(1).reciprocal", "abs().add(1).log1p", "clamp(-5, 5).exp2", "abs().add(1).log2")
    )  # fmt: skip
    name, _ = d.pick()
    amplifies = "exp" in function or "sinh" in function
    return made(d, f"{name}.{function}()", [name], Law("smooth", steep) if amplifies else SMOOTH)


def steep(errors, peaks, n):
    return 200 * max(errors) + 5e-3


@maker(7)
def piecewise(d: Drawing) -> Step:
    name, t = d.pick()
    function = d.rng.choice(
        ("abs()", "neg()", "relu()", "positive()", "clone()", "contiguous()", "square()",
         f"clamp({d.bound(dtype_of(t))}, {d.bound(dtype_of(t))})", f"clamp(min={d.bound(dtype_of(t))})")
    )  # fmt: skip
    return made(d, f"{name}.{function}", [name], MULTIPLY if function == "square()" else MOVE)


@maker(5)
def jumped(d: Drawing) -> Step:
    name, _ = d.pick_same()
    function = d.rng.choice(
        ("round", "floor", "ceil", "trunc", "frac", "sign", "isnan", "isinf", "isfinite", "logical_not")
    )
    return made(d, f"{name}.{function}()", [name], JUMP)


@maker(5)
def of_two(d: Drawing) -> Step:
    name, t = d.pick()
    other, _ = d.pick(lambda o: broadcasts(o.shape, t.shape))
    function, law = d.rng.choice(
        (("maximum", MOVE), ("minimum", MOVE), ("add", ADD), ("sub", ADD), ("mul", MULTIPLY),
         ("logical_and", JUMP), ("logical_or", JUMP), ("logical_xor", JUMP))
    )  # fmt: skip
    if law is JUMP and not (d.follower.state(name).same and d.follower.state(other).same):
        raise LookupError
    return made(d, f"torch.{function}({name}, {other})", [name, other], law)


@maker(3)
def of_three(d: Drawing) -> Step:
    name, t = d.pick(lambda t: dtype_of(t) in FLOATS)
    a, _ = d.pick(lambda o: o.dtype is t.dtype and broadcasts(o.shape, t.shape))
    b, _ = d.pick(lambda o: o.dtype is t.dtype and broadcasts(o.shape, t.shape))
    law = Law("exact", lambda e, p, n: sum(e) + 3 * max(e) * max(p) + 1e-5 * max(p) ** 2)
    text = d.rng.choice((
        f"torch.addcmul({name}, {a}, {b}, value={d.whole(-2, 2)})",
        f"torch.lerp({name}, {a}, {d.hole(lambda rng: rng.choice(('0.0', '0.5', '1.0')))})",
        f"torch.lerp({name}, {a}, {b})",
    ))  # fmt: skip
    return made(d, text, [name, a, b], law)


@maker(8)
def cast(d: Drawing) -> Step:
    name, t = d.pick()
    dtype = d.rng.choice((*FLOATS, *FLOATS, *INTEGERS, "bool"))
    if dtype not in FLOATS and dtype_of(t) in FLOATS:
        name, t = d.pick_same(lambda t: dtype_of(t) in FLOATS)
        bounded = "" if dtype == "bool" else f".clamp({0 if dtype == 'uint8' else -100}, 100)"
        return made(d, f"{name}{bounded}.to(torch.{dtype})", [name], CAST)
    text = d.rng.choice((f".to(torch.{dtype})", f".type(torch.{dtype})"))
    return made(d, f"{name}{text}", [name], CAST)


@maker(10)
def reduced(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick()
    same = d.follower.state(name).same
    axes = ""
    if t.ndim and rng.random() < 0.75:
        count = rng.randint(1, t.ndim)
        chosen = sorted(rng.sample(range(t.ndim), count))
        axes = str(chosen[0]) if count == 1 else str(tuple(chosen))
    keep = "" if not axes or rng.random() < 0.6 else ", keepdim=True"
    one = axes and "(" not in axes
    functions = [("sum", SUM), ("mean", Law("smooth", sums)), ("amax", MOVE), ("amin", MOVE)]
    if same:
        functions += [("any", JUMP), ("all", JUMP), ("count_nonzero", JUMP)]
        if one:
            functions += [("argmax", JUMP), ("argmin", JUMP)]
        if dtype_of(t) not in FLOATS and (one or not axes):
            functions += [("prod", SUM)]
    if t.numel() > 1 and np.isfinite(plain(t)).all():
        functions += (
            [("logsumexp", Law("smooth", lambda e, p, n: max(e) + 1e-4 * (1 + max(p))))] if axes else []
        )
        functions += [("var", Law("smooth", lambda e, p, n: 8 * max(e) * max(p) + 4e-5 * max(p) ** 2 + 1e-6))]
    function, law = rng.choice(functions)
    if function == "count_nonzero":
        keep = ""
    extra = ", correction=0" if function == "var" and axes else ""
    return made(d, f"{name}.{function}({axes}{keep}{extra})", [name], law)


@maker(5)
def scanned(d: Drawing) -> Step:
    name, t = d.pick(lambda t: t.ndim > 0)
    axis = d.rng.randrange(t.ndim)
    kind = d.rng.choice(("cumsum", "softmax", "log_softmax"))
    if kind == "cumsum":
        return made(d, f"{name}.cumsum({axis})", [name], SUM)
    law = Law("smooth", lambda e, p, n: 3 * max(e) + 1e-4 * (1 + max(p)))
    return made(d, f"{name}.{kind}({axis})", [name], law)


@maker(6)
def ordered(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick_same(lambda t: t.ndim > 0)
    axis = rng.randrange(t.ndim)
    down = rng.choice(("True", "False"))
    stable = f"{name}.sort(dim={axis}, descending={down}, stable=True)"
    order = f"torch.argsort({name}, dim={axis}, descending={down}, stable=True)"
    choices = [f"{stable}[0]", f"{stable}[1]", order, f"{name}.sort({axis})[0]", f"{name}.max({axis})[0]"]
    if t.shape[axis]:
        choices.append(f"{name}.topk({rng.randint(1, t.shape[axis])}, {axis}, largest={down})[0]")
        choices.append(f"{name}.min({axis})[1]")
    return made(d, rng.choice(choices), [name], JUMP)


@maker(8)
def joined(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick(lambda t: t.ndim > 0)
    axis = rng.randrange(t.ndim)

    def like(o) -> bool:
        return o.ndim == t.ndim and all(o.shape[k] == n for k, n in enumerate(t.shape) if k != axis)

    others = [d.pick(like)[0] for _ in range(rng.randint(1, 2))]
    same = [d.pick(lambda o: o.shape == t.shape)[0]]
    turns = tuple(rng.randint(1, 2) for _ in t.shape)
    text, reads = rng.choice((
        (f"torch.cat([{', '.join([name, *others])}], {axis})", [name, *others]),
        (f"torch.stack([{', '.join([name, *same])}], {axis})", [name, *same]),
        (f"{name}.roll({rng.randint(-3, 3)}, {axis})", [name]),
        (f"{name}.flip({axis})", [name]),
        (f"{name}.repeat({', '.join(map(str, turns))})", [name]),
        (f"torch.tile({name}, {turns})", [name]),
        (f"{name}.repeat_interleave({rng.randint(1, 3)}, {axis})", [name]),
        (f"{name}.{rng.choice(('tril', 'triu'))}({rng.randint(-1, 1)})", [name]),
    ))  # fmt: skip
    return made(d, text, reads, MOVE)


@maker(8)
def multiplied(d: Drawing) -> Step:
    name, t = d.pick(lambda t: t.ndim > 0 and dtype_of(t) in FLOATS)
    depth = t.shape[-1]
    fits = [f"{name} @ {name}.mT"] if t.ndim > 1 else [f"{name} @ {name}"]
    reads = [[name]]
    for other, o in d.usable.items():
        if o.dtype is not t.dtype or not o.ndim:
            continue
        if o.shape[-2 if o.ndim > 1 else 0] == depth:
            fits.append(f"{name} @ {other}")
            reads.append([name, other])
        if o.ndim > 1 and o.shape[-1] == depth:
            fits.append(f"{name} @ {other}.mT")
            reads.append([name, other])
    k = d.rng.randrange(len(fits))
    return made(d, fits[k], reads[k], MATMUL)


@maker(10)
def looked_up(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick(lambda t: t.ndim > 0 and 0 not in t.shape)
    n, length = t.shape[0], rng.randint(1, 5)
    listed = f"torch.tensor({d.positions(n, length)})"
    axis = rng.randrange(t.ndim)
    along = f"torch.tensor({d.hole(lambda r: str([r.randrange(t.shape[axis]) for _ in range(3)]))})"
    choices = [f"{name}[{listed}]", f"{name}[{listed}, None]", f"{name}[..., {listed} % {t.shape[-1]}]"]
    choices.append(f"{name}.index_select({axis}, {along})")
    if t.ndim > 1:
        second = f"torch.tensor({d.positions(t.shape[1], length)})"
        choices += [f"{name}[{listed}, {second}]", f"{name}[{listed}, {d.whole(0, t.shape[1] - 1)}]"]
        choices += [f"{name}[:, {second}]", f"{name}[{listed}.unsqueeze(1), {second}]"]
        choices += [f"{name}[None, {listed}]"]
    if t.ndim > 2:
        third = f"torch.tensor({d.positions(t.shape[2], length)})"
        choices += [f"{name}[{listed}, :, {third}]", f"{name}[:, :, {third}]"]
    if t.ndim == 1:
        choices.append(f"{name}.gather(0, {along})")
        choices.append(f"torch.take_along_dim({name}, {along}, 0)")
    return made(d, rng.choice(choices), [name], MOVE)


@maker(4)
def of_length_unknown(d: Drawing) -> Step:
    """Results whose shape depends on values: nothing is made of them, since it is another each time."""
    mask, m = d.pick_same(lambda t: dtype_of(t) == "bool")
    name, _ = d.pick(lambda t: t.shape[: m.ndim] == m.shape)
    text = d.rng.choice((f"{name}[{mask}]", f"torch.masked_select({name}, {mask})", f"torch.nonzero({mask})"))
    step = made(d, text, [name, mask], MOVE)
    step.last = True
    return step


# In place


def target(d: Drawing) -> tuple[str, Any, str, str]:
    """What is written into: the variable, the tensor written, its text for us and for PyTorch."""
    rng = d.rng
    name, t = d.pick()
    if not t.ndim or rng.random() < 0.35:
        return name, t, name
    return name, t, f"{name}[{d.index(t, write=True)}]"


def apart(d: Drawing, name: str, text: str) -> str:
    """PyTorch's operand: a copy where it shares the target's memory, which we promise and it does not."""
    return re.sub(r"(\bv\d+\b(\.mT)?)", r"\1.clone()", text)


@maker(14)
def assigned(d: Drawing) -> Step:
    name, t, where = target(d)
    if where == name:
        where = f"{name}[...]"
    other, theirs, reads = d.partner(name, t)
    return Step(
        f"{where} = {other}", f"{where} = {apart(d, name, theirs)}", (name, *reads), writes=name, law=CAST
    )


@maker(12)
def updated(d: Drawing) -> Step:
    name, t, where = target(d)
    other, theirs, reads = d.partner(name, t)
    sign, law = d.rng.choice((("+=", ADD), ("-=", ADD), ("*=", MULTIPLY)))
    return Step(
        f"{where} {sign} {other}",
        f"{where} {sign} {apart(d, name, theirs)}",
        (name, *reads),
        writes=name,
        law=law,
    )


@maker(10)
def methods_in_place(d: Drawing) -> Step:
    name, t, where = target(d)
    other, theirs, reads = d.partner(name, t)
    sides = apart(d, name, theirs)
    one, bound = d.fill(dtype_of(t)), d.bound(dtype_of(t))
    text, law, operand = d.rng.choice((
        ("zero_()", MOVE, False), (f"fill_({one})", MOVE, False), (f"clamp_(min={bound})", MOVE, False),
        ("neg_()", MOVE, False), ("abs_()", MOVE, False), ("relu_()", MOVE, False),
        ("add_(#)", ADD, True), ("sub_(#)", ADD, True), ("mul_(#)", MULTIPLY, True), ("copy_(#)", CAST, True),
        ("tanh_()", SMOOTH, False), ("square_()", MULTIPLY, False),
    ))  # fmt: skip
    if text == "copy_(#)" and not reads:
        raise LookupError
    return Step(
        f"{where}.{text.replace('#', other)}",
        f"{where}.{text.replace('#', sides)}",
        (name, *(reads if operand else ())),
        writes=name,
        law=law,
    )


@maker(6)
def reversed_in_place(d: Drawing) -> Step:
    """Writes through negative strides, which PyTorch has none of."""
    name, t = d.pick(lambda t: t.ndim > 0)
    axis = d.rng.randrange(t.ndim)
    view = f"{name}[{':, ' * axis}::-1]"
    other, _ = d.pick(lambda o: o.shape == t.shape)
    back = f".flip({axis})"
    text, theirs, law = d.rng.choice((
        (f"{view} = {other}", f"{name}.copy_({other}{back})", CAST),
        (f"{view} += {other}", f"{name} += {other}{back}", ADD),
        (f"{view}.mul_({other})", f"{name} *= {other}{back}", MULTIPLY),
    ))  # fmt: skip
    return Step(text, theirs, (name, other), writes=name, law=law)


@maker(10)
def indexed_in_place(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick(lambda t: t.ndim > 0 and 0 not in t.shape)
    n = t.shape[0]
    length = rng.randint(1, n)
    unique = f"torch.tensor({d.positions(n, length, unique=True)})"
    repeated = f"torch.tensor({d.hole(lambda r: str([r.randrange(n) for _ in range(length)]))})"
    number_ = d.number(dtype_of(t))
    rows = t.shape[1:]
    choices = [
        (f"{name}[{unique}] = {number_}", (name,), MOVE),
        (f"{name}[{unique}] += {number_}", (name,), ADD),
    ]
    for source, s in d.usable.items():
        if s.dtype is t.dtype and s.shape == (length, *rows) and source != name:
            choices += [
                (f"{name}[{unique}] = {source}.clone()", (name, source), MOVE),
                (f"{name}.index_add_(0, {repeated}, {source}.clone())", (name, source), SUM),
                (f"{name}.index_put_(({repeated},), {source}.clone(), accumulate=True)", (name, source), SUM),
            ]
            if t.ndim == 1:
                choices += [
                    (f"{name}.scatter_add_(0, {repeated}, {source}.clone())", (name, source), SUM),
                    (f"{name}.scatter_(0, {unique}, {source}.clone())", (name, source), MOVE),
                ]
    masks = [m for m, o in d.usable.items() if dtype_of(o) == "bool" and o.shape == t.shape and m != name]
    for mask in masks[:2]:
        choices += [(f"{name}[{mask}.clone()] = {number_}", (name, mask), MOVE)] * 2
        choices += [(f"{name}.masked_fill_({mask}.clone(), {number_})", (name, mask), MOVE)]
    text, reads, law = rng.choice(choices)
    return Step(text, None, reads, writes=name, law=law)


@maker(5)
def dropped(d: Drawing) -> Step:
    name, _ = d.pick()
    if len(d.follower.variables) < 4:
        raise LookupError
    return Step(f"del {name}")


@maker(2)
def flushed(d: Drawing) -> Step:
    return Step("torch.webgpu.flush()", "pass")


def draw(rng: Random) -> list[Step]:
    """A program of up to thirty steps."""
    d = Drawing(rng)
    before = pellucid.get_default_device()
    pellucid.set_default_device("cpu")
    try:
        wanted = rng.randint(4, 24)
        for _ in range(rng.randint(1, 3)):
            d.add(given(d))
        weights, makers = zip(*MAKERS)
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
