"""Dynamic numbers, and which of a program's words follow them."""

import numpy as np
import pytest

import pellucid as torch
from jit.probe import bits, replays, some
from pellucid.jit.law import Law, Unlawful
from pellucid.op.plan import float_bits


def law(values, numbers, words=None, offsets=0, floats=(), reals=()):
    return Law(values, numbers, len(numbers) if words is None else words, offsets, floats, reals)


def test_a_number_grows_with_its_value():
    found = law([10], [10, 7, 110, (1 << 32) - 10])
    assert found.holds([10])
    assert not found.holds([11])
    assert found.learn([11], [11, 7, 120, (1 << 32) - 11])
    assert found.holds([11])
    assert not found.holds([12])
    assert not found.learn([12], [12, 7, 130, (1 << 32) - 12])
    assert found.holds([9])
    assert found.predict([14]) == [14, 7, 150, (1 << 32) - 14]
    assert found.varying == {0: {0: 1}, 2: {0: 10}, 3: {0: -1}}
    # Powers of two are looked at once more.
    assert not found.holds([16])
    assert not found.learn([16], [16, 7, 170, (1 << 32) - 16])
    assert found.holds([31])
    assert not found.holds([-3])


@pytest.mark.parametrize("third", [[12, 8], [13, 6], [11, 6]])
def test_what_does_not_grow_evenly_is_noticed(third):
    found = law([10], [10, 6])
    found.learn([11], [11, 6])
    with pytest.raises(Unlawful, match="does not grow evenly"):
        found.learn([12], third)
    with pytest.raises(Unlawful, match="does not grow evenly"):
        law([10], [10]).learn([13], [11])


def test_values_are_told_apart_one_by_one():
    found = law([1, 50], [1, 50, 51])
    # Both for the first time: nothing can be said, and this call becomes the first one.
    assert found.learn([2, 60], [2, 60, 62])
    assert found.learn([3, 60], [3, 60, 63])
    assert not found.learn([1, 60], [1, 60, 61])
    assert found.learn([2, 61], [2, 61, 63])
    assert not found.learn([3, 59], [3, 59, 62])
    assert found.predict([2, 40]) == [2, 40, 42]


def test_offsets_add_up_without_a_third_call():
    found = law([0, 5], [0, 5, 9], offsets=2)
    found.learn([8, 5], [8, 5, 17])
    assert found.holds([1 << 20, 5])
    assert found.predict([3, 5]) == [3, 5, 12]


def test_floats_are_their_bits():
    found = law([100, 7], [100, 3, 100], floats=[0])
    with pytest.raises(Unlawful, match="computed in Python"):
        law([100], [101], floats=[0]).learn([200], [201])
    found.learn([200, 7], [200, 3, 100])
    assert found.holds([300, 7])
    assert found.predict([300, 7]) == [300, 3, 100]


def test_integers_arrive_as_floats():
    found = law([1], [float_bits(1.0), float_bits(2.5)], reals=[0, 1])
    found.learn([2], [float_bits(2.0), float_bits(2.0)])
    assert not found.learn([3], [float_bits(3.0), float_bits(1.5)])
    assert found.predict([10]) == [float_bits(10.0), float_bits(-2.0)]
    with pytest.raises(Unlawful, match="does not grow evenly"):
        found.learn([4], [float_bits(16.0), float_bits(1.0)])


def test_plain_integers_do_not_wrap():
    found = law([1], [1, 5_000_000_000], words=1)
    found.learn([2], [2, 5_000_000_001])
    assert found.plain([4]) == [5_000_000_003]


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
        """The call that the law begins with is then another one than the one that the program was made of."""
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
            torch.compile(lambda x: x, dynamic=True)
