"""Random functions, captured and eager: the same at every call of a long random sequence.

Arguments are slices of tensors that persist, at offsets that change singly, together and not at all; dynamic
integers and floats, by which Python decides; tensors that the function finds, writes and trains. Between
calls happens what users do: gradients are dropped, settings of optimizers change, generators are seeded,
attributes and containers that the function finds are others.
"""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import numpy as np

import pellucid as torch
from pellucid import nn

COUNT = 14

ROWS, COLUMNS = 4, 3
# Steps that make `v`, of shape (ROWS, COLUMNS), from values so far. In braces: {v} one of these, {c} a small
# integer, {i} an integer of the call or a sum of such, {f} a float of it, {k} a row.
PURE = [
    "{v} * 0.5 + {c}",
    "{v} * {f} + {w}",
    "{v} + {i}",
    "({i} - {v}) * 0.125",
    "{v} * {i} * 0.125",
    "torch.where({v} > {i} * 0.125, {v}, {f})",
    "{v}.clamp({f}, {f} + 1.0)",
    "{v}.tanh() @ s.W",
    "({v} @ {w}.t() @ {v}) * 0.125",
    "{v}.roll({i}, 0)",
    "{v}[{k}:{k} + 1].expand(4, 3) + {w}",
    "whole[{j}:{j} + 4].float() * 0.25 + {v}",
    "whole[{j}] - {v}",
    "whole[{j}:][:4] * {v}.sigmoid()",
    "whole.narrow(0, {j}, 4) + whole[-{j} - 1]",
    "whole[{j}:{j} + 8:2] * 0.5",
    "{v} + torch.full((4, 3), {i}, dtype=torch.float32)",
    "{v} + labels[{k}] * 0.125",
    "(labels[:, None] + {i} * labels[:, None]).float() * 0.125 + {v}",
    "{v}.half().float() * 0.5",
    "{v}.softmax(-1)",
    "torch.cat([{v}[1:], {w}[:1]])",
    "{v}.t().contiguous().t()",
    "{v}.masked_fill(labels[:, None] > {i}, {f})",
    "{v} * len(str({i}))",
    "{v} * min({i}, {c})",
    "{v} + [0.5, 1.5, -1.0][{i} % 3]",
    "{v} * (({i} // 2) % 5)",
    "{v} + float({i}) * 0.125",
    "{v} + ({f} * {f})",
    "{v}[list(range(4))[{i} % 4]].expand(4, 3) + 0.25",
    "{v} + (1 if {f} < 1 else {f})",
    "{v} - {{1: 0.5, 2: 2.0}}.get({i}, 1.25)",
    "{v} * 0.5 if {i} > {i} else {v} + 0.25",
    "{v} * 0.75 if {i} == {c} else {v} - 0.25",
    "{v} + 0.5 if {i} else {w}",
    "{v} + torch.arange({j}, {j} + 3)",
]
# What it finds in Python, as it is found.
FOUND = [
    "{v} * s.scale",
    "{v} + s.table['k'][{k} % 2] * 0.125",
    "{v} * (s.config.eps if s.flag else 0.5)",
    "{v} - float(s.array[{k}])",
    "{v} * len(s.table)",
    "s.config.scaled({v})",
    "helper({v})",
    "SETTINGS.scale * {v}",
]
RANDOM = ["{v} + torch.rand(4, 3)", "nn.functional.dropout({v}, 0.5)", "{v} + torch.randn(4, 3) * 0.25"]
# Statements that write.
WRITES = [
    "a.add_({v} * 0.25)",
    "b.mul_(0.5)",
    "a[{k}] = {i}",
    "s.S[{k}:{k} + 1].copy_({v}[:1])",
    "s.S.mul_(0.5).add_({f} * 0.125)",
    "whole[{j}].add_(0.125)",
    "whole[{j}:{j} + 2] = {v}[:2]",
    "labels.add_(1)",
    "s.counter.add_({i})",
]
# Statements that write in Python, as every call does.
CHANGES = ["s.scale = s.scale * 0.5 + 0.25", "s.table['k'][0] += 1", "s.config.eps = 0.75", "s.count += {c}"]
READS = [
    "v = v * 0.5 if ({v} * 0 + {i}).sum().item() > 30 else v",
    "v = v + 0.5 if ({v} > 0).any() else v - 0.5",
    "v = v + (labels + {i})[{k}].item()",
    "v = v + 0.25 if bool((labels[{k}:] >= 2).any()) else v",
]
TRAINS = [
    "s.optimizer.zero_grad()\nloss = ((v @ s.W) ** 2).mean()\nloss.backward()\ns.optimizer.step()\n"
    "v = v + loss.detach()",
    "loss = (v * s.W[0] * {f}).tanh().mean()\nloss.backward()\nv = v.detach() + loss.detach()",
    "x = v.detach().clone().requires_grad_()\n(x[{k}:] ** 2 * {i}).sum().backward()\n"
    "v = v.detach() + x.grad * 0.125",
    "nn.utils.clip_grad_norm_([s.W], 0.5) if s.W.grad is not None else None",
]
HELPER = """
def helper(x, k=0.5):
    return x * k

def other(x):
    return x + SETTINGS.scale

"""
RETURNS = [
    "v",
    "[v, n + m]",
    "{{'v': v, 'a': a, 'n': 2 * n - m}}",
    "(v, v[1:], s.S, f)",
    "v.sum()",
    "[v, b, v.t()]",
]


class Program:
    """A function's text, and how it is run."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.reads = rng.random() < 0.25
        self.fused = not self.reads and rng.random() < 0.3
        self.grad = rng.random() < 0.6
        lines = ["v = a * 0.5 + b", "values = [a, b, v]"]
        for _ in range(rng.randint(1, 6)):
            kind = rng.random()
            if kind < 0.52:
                lines.append(f"v = {self.fill(rng.choice(PURE))}")
            elif kind < 0.69:
                lines.append(f"v = {self.fill(rng.choice(FOUND))}")
            elif kind < 0.7:
                lines.append(self.fill(rng.choice(CHANGES)))
            elif kind < 0.78:
                lines.append(f"v = {self.fill(rng.choice(RANDOM))}")
            elif kind < 0.88 and not (self.reads and rng.random() < 0.8):
                lines += ["with torch.no_grad():", f"    {self.fill(rng.choice(WRITES))}"]
            elif kind < 0.94 and self.reads:
                lines.append(self.fill(rng.choice(READS)))
            elif self.grad:
                lines += self.fill(rng.choice(TRAINS)).split("\n")
            lines.append("values.append(v)")
        # What hangs in a graph that is still to be walked is not replayed.
        lines.append("v = v.detach()")
        lines.append(f"return {self.fill(rng.choice(RETURNS))}")
        self.text = "def f(s, a, b, whole, labels, n, m, f):\n" + "".join(f"    {line}\n" for line in lines)

    def fill(self, template: str) -> str:
        rng = self.rng
        for name, draw in (
            ("{v}", lambda: rng.choice(["v", "values[-1]", "values[0]", "a", "b", "s.S"])),
            ("{w}", lambda: rng.choice(["v", "b", "values[len(values) // 2]"])),
            ("{c}", lambda: str(rng.randint(-2, 6))),
            ("{k}", lambda: str(rng.randint(0, ROWS - 1))),
            ("{i}", lambda: rng.choice(["n", "m", "(n + 1)", "(n - m)", "(2 * m + n)", "abs(m)", "(3 - n)"])),
            ("{j}", lambda: rng.choice(["n", "m", "(n + 1)", "(m + n)"])),
            ("{f}", lambda: "f"),
        ):
            while name in template:
                template = template.replace(name, draw(), 1)
        return template.replace("{{", "{").replace("}}", "}")


class Settings:
    """What a function finds attributes and methods of."""

    scale = 0.5

    def __init__(self):
        self.eps = 1.25

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


class World:
    """Everything that a function finds and is given, on its own."""

    def __init__(self, program: Program, seed: int, grids: bool):
        rng = np.random.default_rng(seed)

        def some(*shape: int) -> torch.Tensor:
            made = rng.integers(-8, 9, shape) / 4 if grids else rng.standard_normal(shape)
            return torch.tensor(made.astype(np.float32))

        self.X, self.Y, self.S = some(24, COLUMNS), some(24, COLUMNS), some(ROWS, COLUMNS)
        self.labels = torch.tensor(rng.integers(0, 4, 24))
        self.counter = torch.zeros(2, dtype=torch.int64)
        self.W = nn.Parameter(some(COLUMNS, COLUMNS))
        chosen = rng.integers(3)
        self.optimizer: Any = (
            torch.optim.SGD([self.W], lr=0.05),
            torch.optim.SGD([self.W], lr=0.05, momentum=0.9),
            torch.optim.AdamW([self.W], lr=0.01),
        )[chosen]
        self.generator = torch.default_generator.get_state()
        self.scale, self.flag, self.count, self.config = 0.5, True, 0, Settings()
        self.table, self.array = {"k": [1, 2]}, np.arange(4.0)
        self.scope = {"torch": torch, "nn": nn, "SETTINGS": type("Settings", (Settings,), {})}
        exec(HELPER + program.text, self.scope)
        self.function: Any = self.scope["f"]

    def capture(self) -> None:
        names = self.function.__code__.co_varnames
        assert {"n", "m", "f"} <= set(names)
        function = self.function
        self.function = torch.compile(
            lambda a, b, whole, labels, n, m, f: function(self, a, b, whole, labels, n, m, f),
            dynamic=("n", "m", "f"),
        )
        self.call = lambda *given: self.function(*given)

    def call(self, *given: Any) -> Any:
        return self.function(self, *given)

    def run(self, step: dict[str, Any]) -> list[Any]:
        """A call and what comes before it; everything that there is to see afterwards."""
        torch.default_generator.set_state(self.generator)
        self.between(step["between"])
        i, j, k = step["i"], step["j"], step["k"]
        other = self.X if step["alias"] else self.Y
        given = (
            self.X[i : i + 4],
            other[j : j + 4],
            self.Y,
            self.labels[k : k + 4],
            step["n"],
            step["m"],
            step["f"],
        )
        with torch.set_grad_enabled(step["grad"]):
            try:
                result = self.call(*given)
            except (torch.errors.PellucidError, LookupError, ArithmeticError, TypeError, ValueError) as error:
                result = f"{type(error).__name__}: {error}"
        del given
        self.generator = torch.default_generator.get_state()
        state = self.optimizer.state_dict()["state"]
        seen = [result, self.X, self.Y, self.S, self.labels, self.counter, self.W.detach(), self.W.grad]
        seen += [part for values in state.values() for part in values.values()]
        seen += [self.scale, self.table, self.count, self.config.eps]
        return [*self.flat(seen), self.generator.tolist()]

    def between(self, what: str) -> None:
        group = self.optimizer.param_groups[0]
        if what == "drop":
            self.W.grad = None
        elif what == "zero":
            self.optimizer.zero_grad(set_to_none=False)
        elif what == "rate":
            group["lr"] = group["lr"] * 0.5
        elif what == "decay":
            group["weight_decay"] = 0.01 if not group["weight_decay"] else 0.0
        elif what == "seed":
            torch.manual_seed(3)
        elif what == "weights":
            with torch.no_grad():
                self.W.mul_(0.5)
        elif what == "data":
            self.W.data = self.W.data * 2
        elif what == "state":
            self.S = self.S * 0.5
        elif what == "freeze":
            self.W.requires_grad_(not self.W.requires_grad)
        elif what == "scale":
            self.scale = 1.5 - self.scale
        elif what == "flag":
            self.flag = not self.flag
        elif what == "table":
            self.table["k"].reverse()
        elif what == "key":
            self.table[f"k{len(self.table)}"] = 0
        elif what == "config":
            self.config = Settings()
        elif what == "attribute":
            self.config.eps, self.config.scale = -self.config.eps, 0.75
        elif what == "class":
            self.scope["SETTINGS"].scale *= -1
        elif what == "array":
            self.array[1:3] += 0.5
        elif what == "defaults":
            self.scope["helper"].__defaults__ = (0.25,)
        elif what == "helper":
            self.scope["helper"] = self.scope["other"]

    def flat(self, value: Any) -> list[Any]:
        if isinstance(value, torch.Tensor):
            return [(value.detach().numpy(), value.stride(), value.dtype, value.requires_grad)]
        if isinstance(value, (list, tuple)):
            return [type(value).__name__, *[part for v in value for part in self.flat(v)]]
        if isinstance(value, dict):
            return [*value, *[part for v in value.values() for part in self.flat(v)]]
        return [(type(value), repr(value))]


BETWEEN = ["drop", "zero", "rate", "decay", "seed", "weights", "data", "state", "freeze"]
BETWEEN += ["scale", "flag", "table", "key", "config", "attribute", "class", "array", "defaults", "helper"]


def calls(rng: Random, program: Program, count: int) -> list[dict[str, Any]]:
    """Numbers of calls: repeated, changed one at a time, and changed together."""
    now = {"i": 0, "j": 0, "k": 0, "n": rng.randint(0, 6), "m": rng.randint(0, 6), "f": 0.5}
    now |= {"alias": rng.random() < 0.2, "grad": program.grad}

    def draw(name: str) -> Any:
        if name == "f":
            return rng.choice([0.0, -0.0, 0.25, 0.5, 1.0, 1.5, -2.0, 0.1])
        if name in "nm":
            return rng.choice([0, 1, 2, 3, 5, 8, 9, now["n"] + 1, now["m"], rng.randint(-3, 16)])
        return rng.choice([0, 4, 8, now["i"], now["i"] + 4, rng.randint(0, 20)]) % 21

    found = []
    for _ in range(count):
        kind = rng.random()
        names = "ijknmf"
        if kind < 0.4:
            name = rng.choice(names)
            now[name] = draw(name)
        elif kind < 0.7:
            for name in rng.sample(names, rng.randint(2, 6)):
                now[name] = draw(name)
        if rng.random() < 0.05:
            now["alias"] = not now["alias"]
        if rng.random() < 0.05:
            now["grad"] = not now["grad"] and program.grad
        found.append({**now, "between": rng.choice(BETWEEN) if rng.random() < 0.2 else ""})
    return found


def differs(got: list[Any], wanted: list[Any], exact: bool) -> str | None:
    if len(got) != len(wanted):
        return f"{len(got)} parts instead of {len(wanted)}"
    for k, (one, other) in enumerate(zip(got, wanted, strict=True)):
        if isinstance(other, tuple) and other and isinstance(other[0], np.ndarray):
            if not isinstance(one, tuple) or one[1:] != other[1:]:
                return f"part {k} is {one} instead of {other}"
            a, b = one[0], other[0]
            same = a.tobytes() == b.tobytes() if exact else np.allclose(a, b, 1e-3, 1e-3, equal_nan=True)
            if a.shape != b.shape or not same:
                return f"part {k} is\n{a}\ninstead of\n{b}"
        elif one != other:
            return f"part {k} is {one} instead of {other}"
    return None


def check(seed: int, count: int = 14) -> int:
    """One function and its calls; returns how many were replayed."""
    rng = Random(seed)
    program = Program(rng)
    steps = calls(rng, program, count)
    worlds = [World(program, seed, program.fused) for _ in range(2)]
    worlds[0].generator = worlds[1].generator = torch.Generator().manual_seed(seed).get_state()
    captured = worlds[1]
    captured.capture()
    with torch.webgpu.fusion(program.fused), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, step in enumerate(steps):
            wanted, got = (world.run(step) for world in worlds)
            if any(isinstance(part[0], np.ndarray) and _overflows(part[0]) for part in wanted if part):
                break  # nothing is told of infinities and of what is near
            if difference := differs(got, wanted, not program.fused):
                history = "\n".join(f"  {s}" for s in steps[: k + 1])
                raise AssertionError(
                    f"{program.text}\nfused: {program.fused}; calls:\n{history}\n\ncall {k}: {difference}\n"
                    f"{captured.function.explain()}"
                )
    return captured.function.explain().replays


def _overflows(values: np.ndarray) -> bool:
    return values.dtype.kind == "f" and bool(values.size) and not float(np.abs(values).max()) < 1e6


def run(seed: int) -> None:
    check(seed)
