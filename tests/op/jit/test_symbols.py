"""What Python learns of a dynamic number is a condition of the replay, whatever it does with the number."""

import contextlib
import copy
import math
from queue import SimpleQueue

import numpy as np
import pytest

import pellucid as torch
from op.jit.probe import bits, replays, some
from pellucid.op.symbols import Conditions, Integer, returned, settled

INTEGERS = [5, 6, 7, 8, 9, 10, 11, 5, 6, 7, 12, 13, 5, 5, 300, 301, 5, 0, 1, -1, -2, 0]
FLOATS = [0.5, 0.75, 1.5, 0.5, 1.5, -0.0, 0.0, math.nan, 2.5, 2.6, 0.5, math.inf, 1.0]


def symbol(value):
    """A symbol, and the conditions that it notes."""
    conditions = Conditions([value])
    return conditions.symbols()[0], conditions


def holding(conditions, values=range(-50, 50)):
    """The values at which Python does the same."""
    return [v for v in values if conditions.holds([v])]


def at(result, value):
    """A result where the number is another one: what follows is computed again."""
    if isinstance(result, (list, tuple)):
        return type(result)(at(part, value) for part in result)
    return result._base + result._slopes[0] * value if type(result) is Integer else result


USES = [
    lambda n: n == 10,
    lambda n: n != 10,
    lambda n: n < 10,
    lambda n: 10 <= n,  # noqa: SIM300
    lambda n: 3 > n,  # noqa: SIM300
    lambda n: bool(n),
    lambda n: not n - 7,
    lambda n: -n < -3,
    lambda n: 2 * n + 1 >= 8,
    lambda n: n * -3 > 5,
    lambda n: n // 2,
    lambda n: n % 3,
    lambda n: divmod(n, 4),
    lambda n: n / 2,
    lambda n: n**2,
    lambda n: 2 ** abs(n),
    lambda n: n & 1,
    lambda n: 1 << abs(n),
    lambda n: ~n,
    lambda n: abs(n),
    lambda n: round(n),
    lambda n: +n,
    lambda n: int(n),
    lambda n: float(n),
    lambda n: complex(n),
    lambda n: str(n),
    lambda n: f"{n:03}",
    lambda n: "%d" % n,  # noqa: UP031
    lambda n: hash(n),
    lambda n: {7: "a"}.get(n),
    lambda n: n in {1, 7},
    lambda n: n in (1, 7),
    lambda n: [0] * n,
    lambda n: list(range(n)),
    lambda n: list(range(50))[n],
    lambda n: "abc" * n,
    lambda n: min(n, 5),
    lambda n: max(n, 5),
    lambda n: sorted([n, 5, 8]),
    lambda n: sum([n, 1]),
    lambda n: math.sqrt(abs(n)),
    lambda n: np.arange(60)[n],
    lambda n: np.asarray(n).item(),
    lambda n: np.float32(2) * n,
    lambda n: n + 0.5,
    lambda n: n < 7.5,
    lambda n: n == "7",
    lambda n: n is None or n in (None, 3),
    lambda n: n.bit_length(),
    lambda n: n.real,
    lambda n: isinstance(n, int),
    lambda n: isinstance(n, bool),
    lambda n: isinstance(n, float),
    lambda n: copy.deepcopy([n]),
    lambda n: (n * n) > 9,
    lambda n: n - n,
    lambda n: [k for k in range(9) if k < n],
    lambda n: math.floor(n),
    lambda n: pow(n, 2, 5),
    lambda n: n + True,
    lambda n: np.zeros(3)[:n].size,
]


def test_every_use_gives_what_the_number_gives_and_holds_only_where_it_does():
    for number, use in enumerate(USES):
        for value in (7, 10, 0, -4):
            n, conditions = symbol(value)
            try:
                wanted = use(value)
            except (ValueError, IndexError, TypeError):
                continue
            got = use(n)
            # A settled number is a plain one: nobody after Python sees a symbol but where it is followed.
            for other in holding(conditions):
                assert at(got, other) == use(other), (number, value, other)
            assert value in holding(conditions)
            got = returned(got)
            assert got == wanted, number
            assert type(got) is type(wanted), number


def test_integers_are_told_apart_where_python_does():
    n, conditions = symbol(7)
    assert n > 3
    assert n + 1 != 10
    assert not n >= 20
    assert holding(conditions) == [v for v in range(4, 20) if v != 9]
    other, more = symbol(12)
    assert other < 15
    conditions.join(more)
    assert holding(conditions) == [v for v in range(4, 15) if v != 9]
    assert settled((1, [n])) == (1, [7])
    assert holding(conditions) == [7]


def test_several_integers():
    conditions = Conditions([3, 5, 0.5])
    a, b, s = conditions.symbols()
    assert a < b
    assert a - b + b - a == 0
    assert b - a == 2
    assert conditions.holds([13, 15, 0.75])
    assert not conditions.holds([13, 16, 0.5])
    assert a * b == 15
    assert not conditions.holds([13, 15, 0.5])
    assert s < 1
    assert s != math.nan
    assert conditions.holds([3, 5, -2.0])
    assert not conditions.holds([3, 5, 1.0])
    assert not conditions.holds([3, 5, math.nan])
    assert -s == -0.5
    assert not conditions.holds([3, 5, 0.25])


def test_floats_are_settled_to_the_bit():
    for use in (
        float,
        lambda s: s + 1,
        lambda s: 1 / s if s.hex() else 0,
        repr,
        hash,
        lambda s: f"{s}",
        math.sqrt,
    ):
        for value, other in ((0.0, -0.0), (0.5, 0.5000000000000001)):
            s, conditions = symbol(value)
            with contextlib.suppress(ZeroDivisionError):
                use(s)
            assert conditions.holds([value])
            assert not conditions.holds([other])


def test_nothing_is_noted_after_the_call():
    n, conditions = symbol(7)
    conditions.is_open = False
    assert n == 7
    assert n < 8
    assert type(n + 1) is int
    assert [0, 1, 2, 3, 4, 5, 6, 7][n] == 7
    assert holding(conditions) == list(range(-50, 50))


def written(x, n):
    y = x * 1
    y[n] = n
    y[n + 1 : n + 3] = 7
    y[n + 3 : n + 5] += n
    return y


def gradient(x, n):
    y = x.detach().clone().requires_grad_()
    (y[n : n + 3] ** 2 * n).sum().backward()
    return y.grad * 1


def power(x, s):
    y = x[:3].detach().clone().requires_grad_()
    (y.abs() ** s).sum().backward()
    return y.grad * 1


def counted(x, n):
    while n > 3:
        x, n = x + n, n - 100
    return x


ON_WEBGPU = {
    "equal": lambda x, n: x * 0 if n == 10 else x + n,
    "less": lambda x, n: x * 0 if n < 10 else x + n,
    "truth": lambda x, n: x * n if n else x + 1,
    "half": lambda x, n: x * (n // 2),
    "slice": lambda x, n: x[n : n + 3] * 2,
    "end": lambda x, n: x[: n % 3] * 2,
    "backwards": lambda x, n: x[-n - 3 : -n] * 2,
    "parts": lambda x, n: x[n:][:4] + n,
    "steps": lambda x, n: x[n : n + 6 : 2] + n,
    "reverse": lambda x, n: x.flip(0)[n : n + 2] + n,
    "far": lambda x, n: x[2 * n : 2 * n + 5].sum(),
    "narrow": lambda x, n: x.narrow(0, n, 4) + n,
    "select": lambda x, n: x[n] + x[-n] + n,
    "rows": lambda x, n: x.view(20, 20)[n % 20, n % 4 :] + n,
    "method": lambda x, n: x.select(0, n) + x[3],
    "strided": lambda x, n: x.as_strided((2, 2), (3, 1), n) * 2,
    "gather": lambda x, n: x[[n, n + 1]] * 2,
    "count": lambda x, n: torch.arange(n) + x[0].long(),
    "list": lambda x, n: x * [*range(400)][n],
    "dict": lambda x, n: x * {5: 1}.get(n, 2),
    "text": lambda x, n: x * len(f"{n}"),
    "least": lambda x, n: x * min(n, 8),
    "returned": lambda x, n: {"a": x * n, "b": (n, [n + 1, n > 6])},
    "full": lambda x, n: torch.full((3,), n) + x[:3].long(),
    "power": lambda x, n: x ** (n - 4),
    "quotient": lambda x, n: (n - x) / n,
    "where": lambda x, n: torch.where(x > n, x, n),
    "bytes": lambda x, n: (x.to(torch.uint8) + n) * (x.to(torch.uint8) >= n),
    "long": lambda x, n: x.long() * n - (n << 33),
    "truths": lambda x, n: x.bool().logical_and(x > 3) * n,
    "cpu": lambda x, n: x * (torch.ones(2, device="cpu") * n).sum().item(),
    "cpu part": lambda x, n: x * torch.arange(400, device="cpu")[n].item(),
    "written": written,
    "gradient": gradient,
    "counted": counted,
    "place": lambda x, n: x[n : n + 3] * x[n:].storage_offset(),
    "read": lambda x, n: x * 2 if (x + n).sum().item() > 80000 else x * n,
}
FLOATING = {
    "factor": lambda x, s: x[:3] * s,
    "square": lambda x, s: x[:3] * (s * s),
    "compared": lambda x, s: x[:3] * s if s > 1 else x[:3] + s,
    "returned": lambda x, s: (x * s, s),
    "slope": lambda x, s: torch.nn.functional.leaky_relu(x[:3] - 1, s),
    "power": power,
    "integer": lambda x, s: x[:3].long() * s,
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*ON_WEBGPU, *(f"float {name}" for name in FLOATING)])
def test_same_as_eagerly(name, recwarn):
    is_float = name.startswith("float ")
    function = FLOATING[name.removeprefix("float ")] if is_float else ON_WEBGPU[name]
    x = torch.arange(400.0)
    compiled = torch.compile(function, dynamic=("n", "s")[is_float : is_float + 1])
    for value in FLOATS if is_float else INTEGERS:
        found = []
        for f in (function, compiled):
            try:
                found.append(repr(bits(f(x, value))))
            except (IndexError, ValueError, TypeError, ZeroDivisionError, RuntimeError) as error:
                found.append(repr(error))
        assert found[0] == found[1], (name, value, str(compiled.explain()))


@pytest.mark.gpu
def test_a_comparison_that_nobody_met_before():
    compiled = torch.compile(lambda x, position: x * 0 if position == 300 else x + 1, dynamic=("position",))
    x = torch.ones(3) * 300
    for position in range(256, 303):
        assert compiled(x, position).tolist() == [0.0 if position == 300 else 301.0] * 3
    assert replays(compiled) >= 42


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", ["equal", "least", "slice", "select", "narrow", "full", "written", "gradient", "where"]
)
def test_what_follows_is_replayed(name):
    compiled = torch.compile(ON_WEBGPU[name], dynamic=("n",))
    x = torch.arange(400.0)
    for n in range(64, 76):
        compiled(x, n)
    assert replays(compiled) >= 9, str(compiled.explain())


@pytest.mark.gpu
def test_large_integers_are_no_float32(rng):
    x = some(rng, 3)
    compiled = torch.compile(lambda x, n: x + n, dynamic=("n",))
    for n in [1 << 30, (1 << 30) + 1, (1 << 30) + 2, (1 << 30) + 100, (1 << 24) - 1, 1 << 24, (1 << 24) + 2]:
        assert bits(compiled(x, n)) == bits(x + n)


@pytest.mark.gpu
def test_a_function_within_another_and_an_error_within(rng):
    inner = torch.compile(lambda x, n: x * n if n < 8 else x + n, dynamic=("n",))
    x, kept = some(rng, 3), SimpleQueue()

    def outer(x, n):
        kept.put(n)
        if n == 9:
            raise KeyError(n)
        return inner(x, n + 1)

    compiled = torch.compile(outer, dynamic=("n",))
    for n in (3, 4, 5, 6, 7, 8, 9, 3, 4, 6, 9):
        if n == 9:
            with pytest.raises(KeyError):
                compiled(x, n)
        else:
            assert bits(compiled(x, n)) == bits(x * (n + 1) if n < 7 else x + (n + 1))
        # What a recording leaves behind is the number.
        assert kept.empty() or kept.get() + 0 == n
    assert replays(compiled) >= 3
