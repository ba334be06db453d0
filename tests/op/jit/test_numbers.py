"""Dynamic numbers, and which of a program's words follow them."""

import copy

import numpy as np
import pytest
import torch as pytorch

import pellucid as torch
from op.jit.probe import bits, replays, some
from pellucid.op.fusion.replay import total
from pellucid.op.symbols import Conditions, Followed, moved


def test_words_follow_integers():
    conditions = Conditions([10, 4])
    n, m = conditions.symbols()
    word = (2 * n - m + 7).word(23, "low")
    assert word == 23
    kind, start, form = word.source(conditions)
    assert kind == "sum"
    assert total([20, 5], start, form) == 42
    assert (n + 1).word(0x41300000, "f32").source(conditions) == ("real", 1, ((0, 1),))
    assert conditions.holds([1 << 24, 4]) is False  # no float32 of every integer
    assert conditions.holds([-(1 << 23), 4])
    # The high half stays what it is.
    assert type(m.word(0, "high")) is int
    assert conditions.holds([10, 0])
    assert not conditions.holds([10, -1])
    assert n.word(1, "truth") == 1
    assert not conditions.holds([0, 4])


def test_integers_that_are_no_float32_are_settled():
    conditions = Conditions([1 << 30])
    (n,) = conditions.symbols()
    assert type(n.word(0x4E800000, "f32")) is int
    assert conditions.holds([1 << 30])
    assert not conditions.holds([(1 << 30) + 1])


def test_offsets_add_up():
    conditions = Conditions([3], [8, 100])
    (n,) = conditions.symbols()
    here = conditions.offset(0)
    assert here == 8
    for place, wanted in (
        (here + 2, 22),
        (2 + here, 22),
        (here - 4, 16),
        (here * 4, 80),
        (moved(here, n * 5), 45),
    ):
        assert total([8, 20, 100], *place.source(conditions)[1:]) == wanted
    assert type(moved(7, 3)) is int
    # Where an offset does not change, it is a number.
    assert type(here - conditions.offset(0)) is int
    assert total([3, 20, 90], *(here + conditions.offset(1)).source(conditions)[1:]) == 110
    conditions.is_open = False
    assert type(here + 2) is int
    assert type(copy.deepcopy(here)) is int


def test_floats_are_their_bits():
    conditions = Conditions([7, 0.5])
    _, x = conditions.symbols()
    assert x.word(0x3F000000, "f32").source(conditions) == ("value", 1)
    assert conditions.holds([7, 0.25])
    assert x.word(0, "low").source(conditions) == ("computed", 1)
    assert not conditions.holds([7, 0.25])


def test_what_replays_bring_is_followed_or_no_call_is_replayed():
    conditions = Conditions([7], [0])
    word, rate = conditions.brought(9, "it draws"), conditions.brought(0.5, "it steps")
    assert word.word(9, "low").source(conditions) == ("value", 2)
    assert rate.word(0x3F000000, "f32").source(conditions) == ("value", 3)
    assert conditions.reason is None
    assert word | 4 == 13
    assert conditions.reason == "it draws"
    assert rate > 0.25
    assert conditions.holds([7])


def test_a_number_of_another_call_is_none_of_this_one():
    conditions, other = Conditions([7]), Conditions([7])
    (n,) = conditions.symbols()
    word = n.word(7, "low")
    assert type(word) is Followed
    assert word.source(other) is None


@pytest.mark.gpu
class TestFunctions:
    def test_positions(self, rng):
        def g(x, position, scale):
            there = torch.arange(40) == position
            return torch.where(there, x * scale, x), x[position : position + 3], position + 1

        compiled = torch.compile(g, dynamic=("position", "scale"))
        for k, position in enumerate([4, 5, 6, 7, 5, 12, 20, 9, 30, 2, 33, 31, 37]):
            x = some(rng, 40)
            scale = 1.5 if k % 3 else 2.5
            assert bits(compiled(x, position, scale)) == bits(g(x, position, scale))
            assert bits(compiled(x, position=position, scale=scale)) == bits(g(x, position, scale))
        assert replays(compiled) >= 6

    def test_a_number_that_does_not_follow_is_refused(self, rng):
        """A float parameter follows only as its bits, and integers take another word."""
        cut = torch.compile(lambda x, s: x.fill_(s), dynamic=("s",))
        x = some(rng, 3).int()
        cut(x, 1.5)
        with pytest.raises(ValueError, match=r"a number of fill.* in Python from the argument 's'"):
            cut(x, 2.5)
        with pytest.raises(ValueError, match="'s', which dynamic= names"):
            cut(x, 1.5)

    def test_a_shape_that_follows_is_captured_anew(self, rng):
        compiled = torch.compile(lambda x, n: x[:n] * 2, dynamic=("n",))
        x = some(rng, 9)
        for n in (3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 3, 3):
            assert bits(compiled(x, n)) == bits(x[:n] * 2)

    def test_a_decision_at_a_power_of_two_is_met(self, rng):
        compiled = torch.compile(lambda x, n: x + n if n < 64 else x * n, dynamic=("n",))
        x = some(rng, 9)
        for n in [*range(50, 70), *range(55, 75)]:
            assert bits(compiled(x, n)) == bits(x + n if n < 64 else x * n)
        assert replays(compiled) > 20

    @pytest.mark.parametrize("fused", [False, True])
    def test_numbers_that_change_together_are_those_of_the_call(self, rng, fused):
        whole, other = some(rng, 16), some(rng, 16)
        sums = torch.compile(lambda a, b: (a + b).sum())
        line = torch.compile(lambda x, a, b, s: x[a : a + 3] * s + b, dynamic=("a", "b", "s"))
        with torch.webgpu.fusion(fused):
            for k in (0, 4, 4, 8, 8, 4, 0, 12, 12):
                got = sums(whole[k : k + 4], other[k : k + 4]).item()
                assert got == pytest.approx((whole[k : k + 4] + other[k : k + 4]).sum().item(), rel=1e-5)
                for _ in range(2):
                    wanted = whole[k : k + 3].numpy() * (k + 0.5) + 3 * k
                    np.testing.assert_allclose(line(whole, k, 3 * k, k + 0.5).numpy(), wanted, rtol=1e-6)
        assert replays(sums) >= 3
        assert replays(line) >= 4

    def test_wrong_names_are_refused(self):
        with pytest.raises(ValueError, match=r"names \['y'\], and the parameters are \['x'\]"):
            torch.compile(lambda x: x, dynamic=("y",))
        with pytest.raises(TypeError, match="takes the names of parameters"):
            torch.compile(lambda x: x, dynamic=3)

    def test_keywords_of_pytorch(self, rng):
        """Each is taken as PyTorch takes it, by the decorator, too, and what PyTorch refuses is refused."""
        x = some(rng, 4)
        ways: list[dict] = [
            {"dynamic": True},
            {"dynamic": False, "disable": True},
            {"backend": "eager", "name": "double"},
            {"mode": "reduce-overhead", "recompile_limit": 3, "isolate_recompiles": True},
            {"options": {"trace": True}},
        ]
        for given in ways:
            for compiled in (
                torch.compile(lambda x: x * 2, **given),
                torch.compile(**given)(lambda x: x * 2),
            ):
                assert bits(compiled(x)) == bits(x * 2), given
        for given in ({"mode": "fastest"}, {"mode": "default", "options": {}}):
            for library in (torch, pytorch):
                with pytest.raises((TypeError, ValueError, RuntimeError), match="mode"):
                    library.compile(lambda x: x * 2, **given)(library.ones(2))


def test_a_part_that_was_written_over_itself_and_then_lies_elsewhere():
    """Two offsets that are the same in the recorded call: what is written is no copy of itself in others."""

    def f(part, whole, n):
        whole[n : n + 2] = part[:2]
        return part + 1

    compiled = torch.compile(f, dynamic=("n",))
    ours, theirs = [torch.arange(48.0).reshape(16, 3) for _ in range(2)]
    for n, k in [(8, 8), (8, 8), (9, 9), (2, 8), (3, 9), (5, 11)]:
        compiled(ours[k : k + 4], ours, n)
        f(theirs[k : k + 4], theirs, n)
        assert bits(ours) == bits(theirs)
    assert replays(compiled) >= 3
