"""Containers behave as PyTorch's: the same program in both libraries gives the same result."""

from collections import OrderedDict

import pytest
import torch

import pellucid


def same_program(program):
    results = []
    for lib in (pellucid, torch):
        with lib.device("cpu"):
            results.append(program(lib, lib.nn))
    assert results[0] == results[1]
    return results[0]


def names(items):
    return [type(m).__name__ for m in items]


@pytest.mark.parametrize("kind", ["Sequential", "ModuleList"])
def test_numbered(kind):
    def program(lib, nn):
        made = [nn.ReLU(), nn.Tanh(), nn.Sigmoid()]
        c = nn.Sequential(*made) if kind == "Sequential" else nn.ModuleList(made)
        seen = [names(c), len(c), names([c[0], c[-1]]), names(c[1:]), type(c[1:]).__name__]
        c.append(nn.GELU())
        c.insert(1, nn.Identity())
        c.extend([nn.SiLU(), nn.Mish()])
        seen += [names(c), list(c._modules)]
        c[1] = nn.Softsign()
        del c[0]
        seen += [names(c), list(c._modules)]
        seen += [type(c.pop(1)).__name__, names(c), repr(c)]
        del c[1:3]
        seen += [names(c), list(c._modules)]
        return seen

    same_program(program)


def test_sequential_runs_in_order_and_takes_names():
    def program(lib, nn):
        net = nn.Sequential(OrderedDict([("first", nn.ReLU()), ("second", nn.Hardtanh())]))
        return [repr(net), net(lib.tensor([-2.0, 0.5, 7.0])).tolist(), names(net), type(net.second).__name__]

    assert same_program(program)[1] == [0.0, 0.5, 1.0]


def test_module_list_adds():
    def program(lib, nn):
        a, b = nn.ModuleList([nn.ReLU()]), nn.ModuleList([nn.Tanh()])
        c = a + b
        a += b
        return [names(c), names(a), names(b), repr(nn.ModuleList([nn.Tanh(), nn.ReLU()]))]

    results = []
    for lib in (pellucid, torch):
        results.append(program(lib, lib.nn)[:3])
    assert results[0] == results[1]


def test_module_dict():
    def program(lib, nn):
        d = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        d["c"] = nn.Sigmoid()
        d.update([("b", nn.GELU())])
        seen = [list(d), len(d), "b" in d, "z" in d, names(d.values()), list(d.keys()), repr(d)]
        seen += [type(d.pop("a")).__name__, [k for k, _ in d.items()]]
        del d["b"]
        seen.append(list(d))
        d.clear()
        return [*seen, len(d)]

    same_program(program)


def test_parameter_list():
    def program(lib, nn):
        p = nn.ParameterList([lib.ones(2), nn.Parameter(lib.zeros(1))])
        p.append(lib.ones(3))
        p[0] = nn.Parameter(lib.zeros(4))
        return [len(p), [tuple(x.shape) for x in p], [n for n, _ in p.named_parameters()], tuple(p[-1].shape)]

    same_program(program)


def test_parameter_lists_and_dicts_hold_anything():
    def program(lib, nn):
        p = nn.ParameterList([lib.zeros(2), 3, "a", nn.Parameter(lib.ones(1))])
        p[1] = lib.ones(3)
        p.append(None).extend([{"a": 1}])
        p += [lib.ones(1).tolist()]
        seen = [[type(x).__name__ for x in p], [n for n, _ in p.named_parameters()], len(p)]
        seen += [
            repr(p).replace(lib.__name__, ""),
            [type(x).__name__ for x in p[1:5:2]],
            "0" in dir(p),
            list(p.state_dict()),
        ]
        d = nn.ParameterDict({"b": lib.zeros(2), "a": 3})
        d["c"], d["d"] = None, lib.ones(1)
        seen += [
            list(d),
            list(reversed(d)),
            repr(d),
            [n for n, _ in d.named_parameters()],
            d.get("c", 1),
        ]
        seen += [[type(x).__name__ for x in d.values()], d.popitem()[0], d.pop("a"), "a" in d, len(d)]
        for wrong in (
            lambda: p.extend(lib.ones(2)), lambda: p.extend(3), lambda: d.update({3: lib.ones(1)}),
            lambda: p.__setitem__(0, "a"), lambda: nn.ParameterList(lib.ones(2)), lambda: p(),
        ):  # fmt: skip
            with pytest.raises((TypeError, RuntimeError, NotImplementedError)):
                wrong()
        return seen

    same_program(program)


def test_positions_outside_are_errors():
    with pytest.raises(IndexError, match="Sequential: index 3 is out of range for 1 entries"):
        pellucid.nn.Sequential(pellucid.nn.ReLU())[3]
    with pytest.raises(TypeError, match="int is not a Module"):
        pellucid.nn.ModuleList([3])
    with pytest.raises(KeyError):
        pellucid.nn.ModuleDict()["x"]


def test_parameter_dict():
    def program(lib, nn):
        d = nn.ParameterDict({"a": lib.ones(2), "b": nn.Parameter(lib.zeros(1, 3))})
        d["c"] = lib.ones(1)
        seen = [list(d), len(d), "a" in d, d.get("z"), d.setdefault("a").tolist(), repr(d).count("(")]
        both = d | {"z": lib.zeros(2)}
        key, value = both.popitem()
        seen += [key, value.tolist(), [n for n, _ in both.named_parameters()], list(d.copy())]
        seen += [d.pop("b").shape == (1, 3), list(d.keys()), list(d.fromkeys(["q"], lib.ones(1)))]
        d.clear()
        return [*seen, len(d)]

    assert same_program(program)[-1] == 0


def test_what_cannot_be_held_leaves_nothing_behind():
    def program(lib, nn):
        d = nn.ParameterDict({"a": lib.ones(2), "type": 3})
        for name in ("", "a.b", "keys"):
            with pytest.raises(KeyError):
                d[name] = lib.ones(1)
        return [d["type"], [n for n, _ in d.named_parameters()]]

    assert same_program(program) == [3, ["a"]]
    p, d = pellucid.nn.ParameterList([1]), pellucid.nn.ParameterDict({"type": 3})
    with pytest.raises(RuntimeError, match="int64 has no gradients"):
        p.append(pellucid.tensor([1]))
    with pytest.raises(KeyError, match="hold a dot"):
        d["a.b"] = pellucid.ones(1)
    assert (list(p), list(d)) == ([1], ["type"])


def test_sequences_are_joined_and_repeated():
    for nn in (pellucid.nn, torch.nn):
        one, two = nn.Sequential(nn.ReLU()), nn.Sequential(nn.Tanh(), nn.Sigmoid())
        assert [type(m).__name__ for m in one + two] == ["ReLU", "Tanh", "Sigmoid"]
        assert [type(m).__name__ for m in 2 * two] == ["Tanh", "Sigmoid"] * 2
        assert (two * 2)[2] is two[0]
        kept = one
        one += two
        one *= 2
        assert kept is one
        assert len(one) == 6
        with pytest.raises(ValueError, match=r"once or more|Non-positive"):
            two * 0


def test_neighbours_that_are_alike_are_one_line():
    def shown(nn):
        pairs = [nn.Sequential(nn.ReLU(), nn.Tanh()) for _ in range(2)]
        layers = [nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU(), *pairs, nn.ReLU()]
        return (
            repr(nn.ModuleList(layers)),
            repr(nn.ModuleList()),
            repr(nn.Sequential(nn.ModuleList(layers[:2]))),
        )

    assert shown(pellucid.nn) == shown(torch.nn)


def test_parts_of_a_list_of_parameters_are_lists():
    for lib in (pellucid, torch):
        p = lib.nn.ParameterList([lib.ones(k + 1) for k in range(3)])
        part = p[1:]
        assert isinstance(part, lib.nn.ParameterList)
        assert part[0] is p[1]
        assert [tuple(t.shape) for t in part] == [(2,), (3,)]
        kept = p
        p += [lib.zeros(1)]
        assert p is kept
        assert len(p) == 4
        assert [name for name, _ in p.named_parameters()] == ["0", "1", "2", "3"]


def test_names_of_parts():
    """Those of a sequence stay, as its state dict has them; a list of modules counts anew."""
    for nn in (pellucid.nn, torch.nn):
        layers = [nn.Linear(1, 1) for _ in range(4)]
        assert list(nn.Sequential(*layers)[2:].state_dict()) == ["2.weight", "2.bias", "3.weight", "3.bias"]
        assert list(nn.Sequential(*layers)[::3].state_dict())[-1] == "3.bias"
        assert next(iter(nn.ModuleList(layers)[2:].state_dict())) == "0.weight"
        assert (nn.Linear.dump_patches, nn.Linear.call_super_init) == (False, False)
