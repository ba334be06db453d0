"""Gradients through random programs of views and writes in place: PyTorch's, and of smooth programs also what
finite differences give.
"""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import numpy as np
import torch

import pellucid
from pellucid.errors import PellucidError

# The sine of a larger float32 says little about its last digits.
STEEP = 1e4
COUNT = 60

SHAPES = [(6,), (3, 4), (4, 4), (2, 3, 4), (2, 6), (1, 5), ()]
# What of a program is refused here although PyTorch takes it; loudly, so it is left out.
REFUSED = (
    "Call .contiguous() before the view is taken",
    "has elements that share memory",
    "was changed in place after it was used",
)
# What PyTorch says at the end of a program that it took.
REFUSED_BY_PYTORCH = (
    "modified by an inplace",
    "has been modified inplace",
    "is not implemented",
)
SMOOTH = ("sin", "tanh", "sigmoid", "cos", "atan", "square", "neg")
CORNERED = ("relu", "abs", "floor", "sign", "round", "frac")
JUMPS = ("floor", "sign", "round", "frac")


class Program:
    """A program as lines of Python, and what they make in one of the two libraries.

    Args:
        module: `torch` or `pellucid`.
        leaves: the values of ``x0``, ``x1`` and so on.
        constants: those of ``c0`` and so on, which get no gradient.
        device: where, in pellucid.
        tracked: whether the leaves require grad.
    """

    def __init__(self, module: Any, leaves: list, constants: list, device: str, tracked: bool = True):
        options = {} if module is torch else {"device": device}
        self.space: dict[str, Any] = {"p": module, "o": options}
        for k, values in enumerate(leaves):
            self.space[f"x{k}"] = module.tensor(values, **options)
            if tracked:
                self.space[f"x{k}"].requires_grad_()
        for k, values in enumerate(constants):
            self.space[f"c{k}"] = module.tensor(values, **options)

    def run(self, line: str) -> None:
        exec(line, self.space)

    def names(self) -> list[str]:
        return [name for name in self.space if name[0] in "xcv" and name[1:].isdigit()]

    def __getitem__(self, name: str) -> Any:
        return self.space[name]


def key(rng: Random, shape: tuple[int, ...], backwards: bool) -> str:
    """What stands between brackets: positions and slices."""
    parts = []
    for n in shape:
        kind = rng.random()
        if kind < 0.35:
            parts.append(":")
        elif kind < 0.5 and n:
            parts.append(str(rng.randrange(-n, n)))
        elif kind < 0.6:
            parts.append("::2")
        elif kind < 0.65 and backwards:
            parts.append(rng.choice(["::-1", "::-2", f"{n}:0:-1"]))
        else:
            start = rng.randrange(n) if n else 0
            parts.append(f"{start}:{rng.randint(start + 1, max(n, start + 1))}")
    if rng.random() < 0.15 and parts:
        parts = [*parts[: rng.randrange(len(parts))], "..."]
    if rng.random() < 0.1:
        parts.insert(rng.randint(0, len(parts)), "None")
    return ", ".join(parts) or "..."


def factors(rng: Random, count: int) -> tuple[int, ...]:
    """Lengths whose product is a number of elements."""
    for n in rng.sample([2, 3, 4, 6], 4):
        if count % n == 0 and count > n:
            return (n, count // n) if rng.random() < 0.6 else (n, *factors(rng, count // n))
    return (count,)


def view(rng: Random, name: str, t: Any, smooth: bool, backwards: bool) -> str:
    shape = tuple(t.shape)
    rank, count = len(shape), int(np.prod(shape))
    a, b = (rng.randrange(-rank, rank) for _ in "ab") if rank else (0, 0)
    some = [
        f"{name}[{key(rng, shape, backwards)}]",
        f"{name}[{key(rng, shape, backwards)}]",
        f"{name}.reshape({factors(rng, count)})",
        f"{name}.view({factors(rng, count)})",
        f"{name}.unsqueeze({rng.randint(0, rank)})",
        f"{name}.expand(2, *{tuple(shape)})",
        f"{name}.view_as({name})",
        f"{name}.detach()",
    ]
    if rank:
        some += [
            f"{name}.transpose({a}, {b})",
            f"{name}.permute({tuple(rng.sample(range(rank), rank))})",
            f"{name}.flatten()",
            f"{name}.squeeze({a})",
            f"{name}.unbind({a})[{rng.randrange(max(shape[a], 1))}]",
            f"{name}.chunk(2, {a})[-1]",
            f"{name}.narrow({a}, 0, {rng.randint(1, max(shape[a], 1))})",
            f"{name}.select({a}, 0)",
        ]
    if rank > 1:
        some += [f"{name}.diagonal({rng.randint(-1, 1)})", f"{name}.T" if rank == 2 else f"{name}.mT"]
    # Only of what lies whole: PyTorch's derivative by what lies beside a part is none, or another one once
    # anything was written there without a graph.
    if count > 3 and t.is_contiguous():
        some.append(f"{name}.as_strided((2, {count // 2}), ({count // 2}, 1))")
    return rng.choice(some)


def memory(t: Any) -> int:
    return t.untyped_storage().data_ptr() if isinstance(t, torch.Tensor) else id(t._storage)


def operand(rng: Random, program: Program, target: str) -> str:
    """A number, or a tensor that may broadcast to the target: of the same memory as a copy."""
    if rng.random() < 0.25:
        return str(rng.choice([0.5, -1.5, 2.0]))
    name = rng.choice(program.names())
    copied = ".clone()" if memory(program[name]) == memory(program[target]) else ""
    if tuple(program[name].shape) == tuple(program[target].shape) and rng.random() < 0.8:
        return name + copied
    return rng.choice([f"{name}.sum()", f"{name}{copied}", f"{name}.reshape(-1)[0]{copied}"])


def function_of(rng: Random, program: Program, name: str, smooth: bool) -> str:
    """A function of one tensor; none that jumps where rounding decides on which side a value is."""
    function = rng.choice(SMOOTH if smooth else SMOOTH + CORNERED)
    if function in JUMPS:
        halves = 2 * numbers(program[name]).astype(np.float64)
        if (np.abs(halves - np.rint(halves)) < 1e-4 * np.maximum(1, np.abs(halves))).any():
            return "relu"
    return function


def write(rng: Random, program: Program, name: str, smooth: bool) -> str:
    t = program[name]
    shape = tuple(t.shape)
    value = operand(rng, program, name)
    function = function_of(rng, program, name, smooth)
    some = [
        f"{name}.{function}_()",
        f"{name}.add_({value})",
        f"{name}.mul_({value})",
        f"{name}.sub_({value})",
        f"{name} *= {value}",
        f"{name}.div_(2.5)",
        f"{name}.zero_()",
        f"{name}.fill_({value})",
        f"{name}.copy_({value if value[0] in 'xcv' else name + '.clone()'})",
        f"{name}.lerp_({value if value[0] in 'xcv' else 'p.ones_like(' + name + ')'}, 0.25)",
        f"{name}[{key(rng, shape, False)}] = {value}",
        f"{name}[{key(rng, shape, False)}] *= {value}",
        f"{name}[{key(rng, shape, False)}].{function}_()",
        f"{name}[{key(rng, shape, False)}].zero_()",
        f"{name}.masked_fill_(p.arange({t.numel()}, **o).reshape({shape}) % 3 == 1, 0.5)",
    ]
    if shape and shape[0]:
        rows = [rng.randrange(shape[0]) for _ in range(2)]
        some += [
            f"{name}[{sorted(set(rows))}] = {value}",
            f"{name}.index_add_(0, p.tensor({rows}, **o), {name}[{rows}].clone())",
            f"{name}[p.arange({shape[0]}, **o) % 2 == 0] = {value}",
        ]
    if not smooth:
        some += [
            f"{name}.clamp_(min=0.0)",
            f"{name}.clamp_(-0.5, 0.5)",
            f"with p.no_grad(): {name}.mul_(2.0)",
            f"with p.no_grad(): {name}[{key(rng, shape, False)}] = 0.25",
            f"{name}.detach()[{key(rng, shape, False)}].mul_(0.5)",
        ]
    return rng.choice(some)


def made(rng: Random, program: Program, smooth: bool) -> str:
    """A new tensor from others, contiguous: strides of results may be others than PyTorch's."""
    name = rng.choice(program.names())
    shape = tuple(program[name].shape)
    function = function_of(rng, program, name, smooth)
    other = rng.choice(program.names())
    some = [
        f"{name}.{function}()",
        f"{name} * {other}",
        f"{name} + {other}",
        f"{name}.clone()",
        f"{name} * 1.5",
        f"p.where({name} > 0.1, {name}, {other})" if not smooth else f"{name} - {other}",
        f"p.zeros_like({name})",
    ]
    if shape:
        some += [
            f"p.cat([{name}, {name} * 2])",
            f"{name}.sum(-1)",
            f"{name}.mean(0, keepdim=True)",
            f"p.stack([{name}, {name}])",
            f"{name}.cumsum(0)",
            f"{name}.softmax(-1)",
            f"{name}.flip(0)",
        ]
    return f"({rng.choice(some)}).contiguous()"


def draw(rng: Random, program: Program, smooth: bool, backwards: bool) -> str:
    kind = rng.random()
    own = [name for name in program.names() if name[0] == "v"]
    if kind < 0.4 or not own:
        line = made(rng, program, smooth) if kind < 0.15 or not own else ""
        name = rng.choice(program.names())
        line = line or view(rng, name, program[name], smooth, backwards)
        if smooth and ".detach()" in line:
            line = f"{name}.clone()"
        return f"v{len(own)} = {line}"
    target = rng.choice(own if rng.random() < 0.9 else program.names())
    return write(rng, program, target, smooth)


def loss(program: Program, names: list[str]) -> Any:
    """A number in which every element counts differently."""
    total: Any = 0.0
    for name in names:
        t = program[name]
        weights = program["p"].arange(1, t.numel() + 1, **program["o"]).to(t.dtype).reshape(tuple(t.shape))
        total = total + (t.sin() * weights / max(t.numel(), 1)).sum()
    return total


def numbers(t: Any) -> np.ndarray:
    return t.detach().numpy(force=True) if isinstance(t, torch.Tensor) else t.detach().numpy()


def gradients(program: Program, names: list[str], leaves: list[str], twice: bool) -> list[np.ndarray]:
    total = loss(program, names)
    module = program["p"]
    found = module.autograd.grad(
        total, [program[x] for x in leaves], allow_unused=True, create_graph=twice, retain_graph=twice
    )
    if twice:
        squares = [(g * g).sum() for g in found if g is not None and g.requires_grad]
        if squares:
            more = module.autograd.grad(
                sum(squares[1:], squares[0]), [program[x] for x in leaves], allow_unused=True
            )
            found = [*found, *more]
    whole = [numbers(program[x]) for x in leaves] * 2
    return [np.zeros_like(w) if g is None else numbers(g) for g, w in zip(found, whole, strict=False)]


def text(leaves: list, constants: list, lines: list[str], names: list[str], device: str, found: str) -> str:
    """The program as a file that can be run."""
    head = [
        f"import numpy as np, {'torch as p'}",
        "o = {}",
        f"# or: import pellucid as p; o = {{'device': {device!r}}}",
    ]
    for prefix, all_values in (("x", leaves), ("c", constants)):
        for k, v in enumerate(all_values):
            grad = ".requires_grad_()" if prefix == "x" else ""
            head.append(f"{prefix}{k} = p.tensor(np.array({v.tolist()}, np.{v.dtype}), **o){grad}")
    tail = [f"# the sum of sin({name}) times 1, 2, ... / numel" for name in names]
    return "\n".join([found, "", *head, *lines, *tail])


class Differs(AssertionError):
    """What is wrong; the program is told by who knows it."""


def same(what: str, mine: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    if mine.shape != theirs.shape:
        raise Differs(f"{what}: shape {mine.shape}, expected {theirs.shape}")
    scale = max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
    if not np.isfinite(scale) or scale > 1e6:  # too steep to compare
        return
    if not np.allclose(mine, theirs, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        raise Differs(f"{what}: {mine.tolist()}, expected {theirs.tolist()}")


def replay(lines: list[str], *arguments: Any, **options: Any) -> Program:
    program = Program(*arguments, **options)
    for line in lines:
        program.run(line)
    return program


def against_pytorch(rng: Random, leaves: list, constants: list, device: str) -> None:
    """A program that PyTorch takes, line by line beside it."""
    tolerance = 1e-3 if leaves[0].dtype == np.float32 else 1e-8
    theirs, ours = (Program(p, leaves, constants, device) for p in (torch, pellucid))
    lines: list[str] = []
    tries = 0
    while len(lines) < 12 and tries < 40:
        tries += 1
        line = draw(rng, theirs, smooth=False, backwards=False)
        try:
            theirs.run(line)
        except (RuntimeError, TypeError, ValueError, IndexError):
            theirs = replay(lines, torch, leaves, constants, device)
            continue
        lines.append(line)
        try:
            ours.run(line)
        except PellucidError as error:
            if not any(words in str(error) for words in REFUSED):
                found = f"PyTorch takes the last line: {type(error).__name__} {error}"
                raise AssertionError(text(leaves, constants, lines, [], device, found)) from None
            lines.pop()
            theirs = replay(lines, torch, leaves, constants, device)
            ours = replay(lines, pellucid, leaves, constants, device)
    compare(rng, theirs, ours, lines, leaves, constants, device, tolerance)


def compare(rng, theirs, ours, lines, leaves, constants, device, tolerance) -> None:
    where: list[str] = []
    try:
        for name in theirs.names():
            same(f"value of {name}", numbers(ours[name]), numbers(theirs[name]), tolerance)
        traced = [name for name in theirs.names() if theirs[name].requires_grad]
        for name in traced:
            if not ours[name].requires_grad:
                raise Differs(f"{name} does not require grad")
        where = sorted(rng.sample(traced, min(len(traced), rng.randint(1, 3))))
        if not where:
            return
        if any(np.abs(numbers(theirs[name])).max(initial=0.0) > STEEP for name in where):
            return
        wanted = [f"x{k}" for k in range(len(leaves))]
        twice = rng.random() < 0.25
        try:
            expected = gradients(theirs, where, wanted, twice)
        except RuntimeError as error:
            if not any(words in str(error) for words in REFUSED_BY_PYTORCH):
                raise
            return
        try:
            found = gradients(ours, where, wanted, twice)
        except PellucidError as error:
            if any(words in str(error) for words in REFUSED):
                return
            raise Differs(f"gradient: {type(error).__name__} {error}") from None
        for k, (mine, his) in enumerate(zip(found, expected, strict=False)):
            what = f"gradient {k} of {wanted}"
            try:
                same(what, mine, his, tolerance)
            except Differs:
                if leaves[0].dtype != np.float32:
                    raise
                wide = replay(lines, torch, in_float64(leaves), in_float64(constants), device)
                exact = gradients(wide, where, wanted, twice)[k]
                same(what, mine, exact, max(tolerance, 3 * off(his, exact)))
    except Differs as error:
        raise AssertionError(text(leaves, constants, lines, where, device, str(error))) from None


def in_float64(arrays: list) -> list:
    return [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]


def off(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error beside the largest number; PyTorch's own is what rounding makes of a program."""
    return float(np.max(np.abs(found - exact), initial=0.0) / max(1.0, np.max(np.abs(exact), initial=0.0)))


def against_differences(rng: Random, leaves: list, constants: list) -> None:
    """A smooth program, also with steps backwards, in float64 on the cpu device: its slope along a line."""
    program = Program(pellucid, leaves, constants, "cpu")
    lines: list[str] = []
    tries = 0
    while len(lines) < 10 and tries < 40:
        tries += 1
        line = draw(rng, program, smooth=True, backwards=True)
        try:
            program.run(line)
        except (PellucidError, TypeError, ValueError, IndexError):
            program = replay(lines, pellucid, leaves, constants, "cpu")
            continue
        lines.append(line)
    traced = [name for name in program.names() if program[name].requires_grad]
    where = sorted(rng.sample(traced, min(len(traced), rng.randint(1, 3))))
    wanted = [f"x{k}" for k in range(len(leaves))]
    try:
        found = gradients(program, where, wanted, False)
    except PellucidError as error:
        if any(words in str(error) for words in REFUSED):
            return
        raise
    directions = [np.asarray(np.cos(np.arange(x.size)).reshape(x.shape)) for x in leaves]
    slope = sum(float((g * d).sum()) for g, d in zip(found, directions, strict=True))
    expected = 0.0
    for h in (1e-5, 1e-6, 1e-7):  # a program may bend within the longer ones
        ends = []
        for sign in (h, -h):
            moved = [x + sign * d for x, d in zip(leaves, directions, strict=True)]
            ends.append(
                float(loss(replay(lines, pellucid, moved, constants, "cpu", tracked=False), where).item())
            )
        expected = (ends[0] - ends[1]) / (2 * h)
        steep = max(1.0, abs(expected))
        # The mean of nothing is NaN, whatever it is differentiated by.
        if np.isnan(expected) or steep >= 1e5 or abs(slope - expected) <= 1e-4 * steep:
            return
    raise AssertionError(
        text(leaves, constants, lines, where, "cpu", f"slope {slope}, by differences {expected}")
    )


def run(seed: int) -> None:
    """One program.

    Raises:
        AssertionError: values or gradients differ; the text holds the program.
    """
    rng = Random(seed)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kind = rng.choice(["differences", "cpu", "webgpu", "webgpu"])
    values = np.random.default_rng(seed)

    def some() -> np.ndarray:
        drawn = values.uniform(-1.5, 1.5, rng.choice(SHAPES)).round(3)
        return np.asarray(drawn, np.float32 if kind == "webgpu" else np.float64)

    leaves = [some() for _ in range(rng.randint(1, 2))]
    constants = [some()]
    if kind == "differences":
        against_differences(rng, leaves, constants)
    else:
        against_pytorch(rng, leaves, constants, kind)
