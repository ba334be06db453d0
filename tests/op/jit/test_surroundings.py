"""What a captured function finds in Python besides arguments: changes take effect at the next call."""

import collections
import dataclasses
import functools
import gc
import random
import sys
import types

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import bits, replays, settle, some
from pellucid import nn

pytestmark = pytest.mark.gpu

# Functions that make a function, arguments besides `x`, and changes.
CASES = []
# A module that functions find, as if it were imported.
settings = types.ModuleType("settings")


def case(make):
    CASES.append(pytest.param(make, id=make.__name__))
    return make


@pytest.mark.parametrize("make", CASES)
def test_changes_take_effect(rng, monkeypatch, make):
    monkeypatch.setitem(sys.modules, "settings", settings)
    function, given, changes = make()
    compiled = torch.compile(function)
    x = some(rng, 3)
    settle(compiled, (x, *given))
    for change in changes:
        before = bits(function(x, *given))
        change()
        wanted = bits(function(x, *given))
        assert wanted != before, "the change does nothing"
        for _ in range(3):
            assert bits(compiled(x, *given)) == wanted
        # As before, and seen again at once.
        settle(compiled, (x, *given))


class Config:
    shared = 2.0

    def __init__(self):
        self.eps = 0.5

    def total(self):
        return self.eps * Config.shared

    @property
    def half(self):
        return self.eps / 2 + getattr(self, "more", 0.0)

    @staticmethod
    def times(x, factor=3.0):
        return x * factor

    @classmethod
    def scaled(cls, x):
        return x * cls.shared


class Sub(Config):
    __slots__ = ("slot",)


@dataclasses.dataclass
class Sizes:
    scale: float = 1.5
    parts: list = dataclasses.field(default_factory=lambda: [1.0])


def scaled(x, factor=2.0, *, shift=0.25):
    return x * factor + shift


@case
def defaults():
    def f(x, factor=2.0, parts=[1.0]):  # noqa: B006  a default that changes is the case
        return x * factor + parts[0]

    return f, (), [
        lambda: setattr(f, "__defaults__", (3.0, [1.0])),
        lambda: f.__defaults__[1].insert(0, 2.0),
    ]  # fmt: skip


@case
def defaults_of_a_helper():
    def helper(x, factor=2.0, *, shift=0.25):
        return x * factor + shift

    return lambda x: helper(x), (), [
        lambda: setattr(helper, "__defaults__", (3.0,)),
        lambda: setattr(helper, "__kwdefaults__", {"shift": 1.0}),
        lambda: helper.__kwdefaults__.update(shift=4.0),
        lambda: setattr(helper, "__code__", (lambda x, factor, *, shift: x - factor).__code__),
    ]  # fmt: skip


class Trainer:
    def __init__(self):
        self.scale, self.flag, self.config = 2.0, True, Config()
        self.number, self.array = np.float32(0.5), np.arange(3.0)
        self.factors, self.table = [1.0, (2.0, [3.0])], {"a": {"b": 1.0}}
        self.chosen, self.queue = {1, 2}, collections.deque([1.0])
        # Nobody looks at what the code does not name.
        self.samples = list(range(10**5))

    def run(self, x):
        x = x * self.scale if self.flag else x
        x = self.add(x, self.config) * float(self.number) + float(self.array[1])
        x = x + self.factors[1][1][0] * sum(self.chosen) + len(self.factors)
        return x * self.table["a"]["b"] + self.queue[0]

    def add(self, x, config):
        return x + config.eps


@case
def attributes_of_self():
    t = Trainer()
    return t.run, (), [
        lambda: setattr(t, "scale", 3.0),
        lambda: setattr(t, "flag", False),
        lambda: setattr(t.config, "eps", 4.0),
        lambda: setattr(t, "config", Config()),
        lambda: setattr(t.config, "eps", 5.0),
        lambda: setattr(t, "number", np.float32(0.75)),
        lambda: t.array.__setitem__(1, 7.0),
        lambda: t.factors[1][1].__setitem__(0, 4.0),
        lambda: t.factors.append(None),
        lambda: t.table["a"].update(b=2.0),
        lambda: t.chosen.add(3),
        lambda: t.queue.appendleft(2.0),
        lambda: setattr(t, "add", lambda x, config: x - config.eps),
    ]  # fmt: skip


@case
def methods_and_properties():
    c = Config()
    kept = [(name, vars(Config)[name]) for name in ("half", "total", "shared")]
    return lambda x: Config.scaled(x) * c.half + c.total() + Config.times(x), (), [
        lambda: setattr(c, "more", 1.0),
        lambda: setattr(Config, "shared", 3.0),
        lambda: setattr(Config, "half", 7.0),
        lambda: setattr(Config, "total", lambda self: 9.0),
        lambda: [setattr(Config, *each) for each in kept],
    ]  # fmt: skip


@case
def an_object_that_is_given():
    c = Sub()
    c.slot = 1.0
    return lambda x, c: x * c.eps + c.shared * c.slot, (c,), [
        lambda: setattr(c, "eps", 3.0),
        lambda: setattr(c, "slot", 2.0),
        lambda: setattr(Sub, "shared", 4.0),
        lambda: delattr(Sub, "shared"),
    ]  # fmt: skip


@case
def objects_of_this_package():
    optimizer = torch.optim.SGD([torch.ones(3)], lr=0.5)
    block = nn.Identity()
    block.config = Sizes()
    return lambda x: x * optimizer.param_groups[0]["lr"] + block.config.scale, (), [
        lambda: optimizer.param_groups[0].update(lr=0.25),
        lambda: setattr(block.config, "scale", 2.0),
    ]  # fmt: skip


@case
def a_dataclass_that_is_given():
    sizes = Sizes()
    more = Sizes()
    more.further = 2.0
    return lambda x, s, m: x * s.scale + sum(s.parts) * m.further, (sizes, more), [
        lambda: setattr(sizes, "scale", 3.0),
        lambda: sizes.parts.append(2.0),
        lambda: setattr(more, "further", 3.0),
    ]  # fmt: skip


@case
def attributes_whose_names_are_computed():
    c, sizes, name = Config(), Sizes(), "eps"
    made = types.SimpleNamespace(a=1.0)

    def f(x):
        x = x * getattr(c, name) + dataclasses.asdict(sizes)["scale"] * len(c.__dict__)
        return x + sum(vars(made).values())

    return f, (), [
        lambda: setattr(c, "eps", 3.0),
        lambda: setattr(c, "new", 3.0),
        lambda: setattr(sizes, "scale", 3.0),
        lambda: setattr(made, "a", 3.0),
        lambda: setattr(made, "b", 3.0),
    ]  # fmt: skip


@case
def containers_that_are_given():
    queue, table = collections.deque([1.0]), collections.defaultdict(float, k=2.0)
    return lambda x, queue, table: x * queue[0] + table["k"], (queue, table), [
        lambda: queue.appendleft(2.0),
        lambda: table.update(k=3.0),
    ]  # fmt: skip


@case
def a_method_of_a_container():
    class Factors(list):
        def run(self, x):
            return x * self[0]

    factors = Factors([1.0])
    return factors.run, (), [lambda: factors.insert(0, 2.0)]


@case
def a_function_that_is_given():
    factor = 2.0

    def change():
        nonlocal factor
        factor = 3.0

    return lambda x, g: g(x), (lambda x: x * factor,), [change]


@case
def modules_of_python():
    settings.SCALE, settings.nested = 2.0, types.SimpleNamespace(shift=1.0)

    def f(x):
        from settings import nested

        return x * settings.SCALE + nested.shift

    return f, (), [
        lambda: setattr(settings, "SCALE", 3.0),
        lambda: setattr(settings.nested, "shift", 2.0),
        lambda: setattr(settings, "nested", types.SimpleNamespace(shift=5.0)),
    ]  # fmt: skip


@case
def modules_that_are_imported_relatively():
    package, part = types.ModuleType("package"), types.ModuleType("package.part")
    package.part, part.SCALE, part.SHIFT = part, 2.0, 1.0
    sys.modules |= {"package": package, "package.part": part}
    variables = {"__name__": "package.own", "__package__": "package"}
    exec(
        "def f(x):\n    from . import part\n    from .part import SCALE\n    return x * SCALE + part.SHIFT\n",
        variables,
    )
    return variables["f"], (), [
        lambda: setattr(part, "SCALE", 3.0),
        lambda: setattr(part, "SHIFT", 2.0),
        lambda: setattr(package, "part", types.SimpleNamespace(SHIFT=5.0)),
    ]  # fmt: skip


@case
def a_module_that_is_imported_at_the_first_call():
    loaded = types.ModuleType("loaded")
    loaded.SCALE = 2.0

    def f(x):
        sys.modules["loaded"] = loaded
        import loaded as found

        return x * found.SCALE

    sys.modules.pop("loaded", None)
    return f, (), [lambda: setattr(loaded, "SCALE", 3.0), lambda: setattr(loaded, "SCALE", 4.0)]


@case
def containers_in_closures():
    parts, table, chosen = [1.0, {"k": (2.0, [3.0])}], {"a": 1.0}, {1}
    array, frozen = np.ones(2, np.float32), types.MappingProxyType(table)

    def f(x):
        return x * sum(chosen) + parts[0] + parts[1]["k"][1][0] + table["a"] + float(array[0]) * frozen["a"]

    return f, (), [
        lambda: parts.__setitem__(0, 2.0),
        lambda: parts[1]["k"][1].__setitem__(0, 4.0),
        lambda: table.update(a=-0.5),
        lambda: chosen.add(2),
        lambda: array.__setitem__(0, 5.0),
    ]  # fmt: skip


@case
def an_object_in_a_container():
    many = [Config(), Config()]
    return lambda x: x * many[0].eps + many[1].eps, (), [
        lambda: setattr(many[1], "eps", 3.0),
        lambda: many.reverse(),
    ]  # fmt: skip


@case
def tensors_in_a_container():
    many = [torch.ones(3), torch.zeros(3)]
    return lambda x: x * many[0] - many[1], (), [lambda: many.reverse(), lambda: many.append(many.pop() + 1)]


@case
def a_dictionary_with_attributes():
    class Settings(dict):
        __getattr__ = dict.__getitem__

    found = Settings(scale=2.0)
    return lambda x: x * found.scale, (), [lambda: found.update(scale=3.0)]


@case
def partials():
    f = functools.partial(scaled, factor=3.0)
    inner = functools.partial(lambda x, c, k: x * c.eps * k, c=Config(), k=2.0)
    return lambda x: f(x) + inner(x), (), [
        lambda: f.keywords.update(factor=1.0),
        lambda: setattr(inner.keywords["c"], "eps", 3.0),
        lambda: setattr(scaled, "__kwdefaults__", {"shift": 0.5}),
        lambda: setattr(scaled, "__kwdefaults__", {"shift": 0.25}),
    ]  # fmt: skip


@case
def names_that_are_bound_anew():
    helper, w = (lambda x: x + 1), torch.ones(3)
    kept = [helper, w]

    def bind(function, tensor):
        nonlocal helper, w
        helper, w = function, tensor

    return lambda x: helper(x) * w, (), [
        lambda: bind(lambda x: x - 1, w),
        lambda: bind(kept[0], torch.zeros(3)),
        lambda: bind(functools.partial(scaled, factor=0.5), kept[1]),
        lambda: bind(torch.tanh, kept[1]),
        lambda: bind(torch.exp, kept[1]),
    ]  # fmt: skip


@case
def a_global_before_a_builtin():
    scope = {}
    exec("def f(x):\n    return x * len('ab')", scope)
    return scope["f"], (), [lambda: scope.update(len=lambda text: 5.0), lambda: scope.pop("len")]


@case
def what_wraps_a_function():
    factor = 2.0

    @torch.no_grad()
    def inner(x):
        return x * factor

    compiled = torch.compile(lambda x: x + factor)

    def change(value):
        nonlocal factor
        factor = value

    return lambda x: inner(x) * compiled(x), (), [lambda: change(3.0), lambda: change(4.0)]


@case
def callable_objects():
    class Scale:
        def __init__(self):
            self.k, self.calls = 2.0, None

        def __call__(self, x):
            return x * self.k

        def __getitem__(self, name):
            return Config.shared if name == "shared" else None

    scale = Scale()

    def function(x):
        return scale(x) + scale["shared"] * function.k

    function.k = 1.0
    return function, (), [
        lambda: setattr(scale, "k", 3.0),
        lambda: setattr(Config, "shared", 4.0),
        lambda: setattr(Config, "shared", 2.0),
        lambda: setattr(function, "k", 5.0),
        lambda: setattr(Scale, "__call__", lambda self, x: x - 1),
    ]  # fmt: skip


class Block(nn.Module):
    shift = 1.0

    def __init__(self):
        super().__init__()
        self.p, self.parts, self.config, self.act = 0.5, [1.0], Config(), nn.Identity()

    def forward(self, x):
        return self.act(x) * self.p * self.parts[0] + self.config.eps + self.shift + self.training


@case
def attributes_of_modules():
    tree = nn.Sequential(Block(), nn.Identity())
    block, own = tree[0], tree[1]
    return tree, (), [
        lambda: setattr(block, "p", 0.75),
        lambda: block.parts.__setitem__(0, 2.0),
        lambda: setattr(block.config, "eps", 3.0),
        lambda: setattr(block, "act", nn.Tanh()),
        lambda: tree.eval(),
        lambda: setattr(Block, "shift", 2.0),
        lambda: setattr(Block, "shift", 1.0),
        lambda: setattr(own, "forward", lambda x: x * block.config.eps),
        lambda: setattr(block.config, "eps", 4.0),
    ]  # fmt: skip


@case
def modules_in_closures():
    block = Block()
    return lambda x: block(x) * block.p + block.training, (), [
        lambda: setattr(block, "p", 0.75),
        lambda: block.parts.append(block.parts.pop() + 1),
        lambda: block.eval(),
    ]  # fmt: skip


# What is no change


def test_what_the_code_does_not_name_may_change(rng):
    t = Trainer()
    scope = {"t": t, "step": 0}
    exec("def f(x):\n    return t.step(x)", scope)
    t.step, t.last = t.run, None
    compiled, x = torch.compile(scope["f"]), some(rng, 3)
    settle(compiled, (x,))
    before = replays(compiled)
    for k in range(6):
        # A global of the name of an attribute is another thing.
        scope["step"], t.last, scope[f"new{k}"], t.samples[0] = k, k, k, k
        compiled(x)
    assert replays(compiled) == before + 6


def test_equal_dataclasses_are_the_same_argument(rng):
    compiled, x = torch.compile(lambda x, s: x * s.scale + sum(s.parts)), some(rng, 3)
    for _ in range(6):
        compiled(x, Sizes(parts=[2.0, 1.0]))
    assert replays(compiled) == 5


def test_a_state_that_comes_back_is_replayed(rng):
    c = Config()
    compiled, x = torch.compile(lambda x: x * c.eps), some(rng, 3)
    for _ in range(4):
        for c.eps in (0.5, 2.0, -0.0, 0.0):
            assert bits(compiled(x)) == bits(x * c.eps)
    assert replays(compiled) == 12


def test_looking_keeps_nothing_alive(rng):
    found, c = [some(rng, 1000)], Config()
    c.hidden, x = some(rng, 1000), some(rng, 1000)
    compiled = torch.compile(lambda x: x * found[0] + c.hidden)
    settle(compiled, (x,))
    torch.webgpu.synchronize()
    before = torch.webgpu.memory_allocated()
    found, c = [x], types.SimpleNamespace(hidden=x)
    gc.collect()
    torch.webgpu.synchronize()
    assert torch.webgpu.memory_allocated() == before - 2 * 4000


# What a function changes by itself


class Counting:
    def __init__(self):
        self.calls, self.flag, self.seen, self.table = 0, False, [], None
        self.generator = np.random.default_rng(3)

    def count(self, x):
        self.calls += 1
        return x * self.calls

    def flip(self, x):
        self.flag = not self.flag
        return x * (2 if self.flag else 3)

    def append(self, x):
        self.seen.append(len(self.seen))
        return x + self.seen[-1]

    def shuffle(self, x):
        return x * random.random()

    def draw(self, x):
        return x * float(self.generator.random())

    def given(self, x, generator):
        return x * float(generator.random())

    def once(self, x):
        if self.table is None:
            self.table = [2.0, 3.0]
        return x * self.table[1]


@unchecked("an eager call stands before each replay, and counts")
@pytest.mark.filterwarnings("ignore:compile. Counting")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("count", "'calls' of a Counting"),
        ("flip", "'flag' of a Counting"),
        ("append", "'seen' of a Counting"),
        ("shuffle", "Python's random numbers"),
        ("draw", "'generator' of a Counting"),
        ("given", "the Generator that it is given"),
    ],
)
def test_what_a_function_changes_is_changed_by_every_call(rng, name, what):
    mine, other = Counting(), Counting()
    compiled, x = torch.compile(getattr(mine, name)), some(rng, 3)
    more = (mine.generator,) if name == "given" else ()
    others = (other.generator,) if name == "given" else ()
    for k in range(20):
        random.seed(k)
        got = bits(compiled(x, *more))
        random.seed(k)
        assert bits(getattr(other, name)(x, *others)) == got
    assert (mine.calls, mine.flag, mine.seen) == (other.calls, other.flag, other.seen)
    assert replays(compiled) == 0
    assert f"it changes {what}" in str(compiled.explain())


@unchecked("an eager call stands before each replay, and counts")
@pytest.mark.filterwarnings("ignore:compile.")
@pytest.mark.parametrize("make", [lambda: [1.0], Sizes, lambda: collections.deque([1.0]), dict])
def test_what_a_function_changes_in_an_argument(rng, make):
    def f(x, given):
        if isinstance(given, Sizes):
            given.scale += 1
        elif isinstance(given, dict):
            given["k"] = given.get("k", 0) + 1
        else:
            given.append(given.pop() + 1)
        return x + len(str(given))

    compiled, x = torch.compile(f), some(rng, 3)
    for _ in range(3):
        mine, other = make(), make()
        for _ in range(4):
            assert bits(compiled(x, mine)) == bits(f(x, other))
            assert str(mine) == str(other)
    assert replays(compiled) == 0


def test_what_a_function_makes_once_is_captured(rng):
    settle(torch.compile(Counting().once), (some(rng, 3),))


# What cannot be looked at

_MANY = [0.5] * 10**5
_WIDE = np.ones(10**5)
_TURNS = iter(range(10**6))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x * _MANY[0], "it finds '_MANY', of more than"),
        (lambda x: x * float(_WIDE[0]), "it finds '_WIDE', of more than"),
        (lambda x: x * next(_TURNS), "it finds an iterator, a range_iterator"),
    ],
)
def test_what_cannot_be_looked_at_is_not_captured(rng, function, reason):
    compiled, x = torch.compile(function), some(rng, 3)
    for _ in range(4):
        compiled(x)
    assert replays(compiled) == 0
    assert reason in str(compiled.explain())
    with pytest.raises(torch.errors.DeviceError, match=reason):
        torch.compile(function, fullgraph=True)(x)
