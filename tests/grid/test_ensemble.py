"""P-068, P-069, P-070: deviations in buckets, models that complement each other, votes, grafts."""

import numpy as np
import pytest

import pellucid
from ops.oracle import DEVICES
from pellucid import grid, nn
from pellucid.errors import PellucidError

RIGHT = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0]]


def masks(device="cpu"):
    return [pellucid.tensor([bool(v) for v in row], device=device) for row in RIGHT]


@pytest.mark.parametrize("device", DEVICES)
def test_pairs_that_complement_each_other_come_first(device):
    found = grid.complementary_matches(masks(device))
    assert [(m.first, m.second, m.coverage, m.overlap) for m in found] == [
        (0, 1, 1.0, 0.0), (1, 2, 1.0, 0.25), (0, 2, 0.75, 0.5),
    ]  # fmt: skip
    assert grid.complementary_matches(masks(device), 0.8) == found[:2]
    assert grid.performance_similarity(*masks(device)[:2]) == 0
    assert grid.performance_similarity(masks(device)[0], masks(device)[2]) == pytest.approx(2 / np.sqrt(6))
    nothing = pellucid.zeros(4, dtype=pellucid.bool, device=device)
    assert grid.performance_similarity(nothing, nothing) == 0


@pytest.mark.parametrize("device", DEVICES)
def test_of_equally_many_votes_the_smallest_class_wins(device):
    votes = np.random.default_rng(3).integers(0, 4, (5, 50))
    out = grid.majority_vote(pellucid.tensor(votes, device=device)).tolist()
    assert out == [int(np.bincount(votes[:, k]).argmax()) for k in range(50)]
    assert grid.majority_vote([pellucid.tensor([2, 1]), pellucid.tensor([0, 1])], 7).tolist() == [0, 1]


@pytest.mark.parametrize("device", DEVICES)
def test_buckets_of_deviation(device):
    expected = pellucid.tensor([1.0, 2.0, 4.0, -1.0, 0.0, 10.0, 1.0, 1.0], device=device)
    actual = pellucid.tensor([1.0, 2.3, 5.0, -1.45, 0.05, 16.0, 2.5, float("nan")], device=device)
    found = grid.deviation_metrics(expected, actual)
    assert list(found.buckets.values()) == [2, 1, 1, 0, 1, 1, 2]
    assert found.samples[0, 10] == [0, 4]
    assert (found.total, found.failures, found.accuracy) == (8, 2, 0.25)
    assert found.average == pytest.approx((0 + 15 + 25 + 45 + 5 + 60 + 100 + 100) / 8, rel=1e-4)
    assert found.score == pytest.approx(100 - found.average)
    assert "8 predictions" in str(found)
    assert "100% and more" in str(found)


def test_models_are_ranked():
    x = pellucid.tensor([[1.0], [2.0]])
    found = grid.evaluate({"double": nn.Sequential(nn.Identity(), Twice()), "same": nn.Identity()}, x, x)
    assert list(found) == ["same", "double"]
    assert found["double"].failures == 2


class Twice(nn.Module):
    def forward(self, x):
        return 2 * x


def test_grafts_are_what_their_parts_are_combined():
    a, b, x = nn.Linear(3, 3), nn.Linear(3, 3), pellucid.ones(2, 3)
    assert pellucid.allclose(grid.graft([a, b])(x), (a(x) + b(x)) / 2)
    assert pellucid.allclose(grid.graft([a, b], "concat")(x), pellucid.cat([a(x), b(x)], -1))
    assert pellucid.allclose(grid.residual_graft(a)(x), x + a(x))


@pytest.mark.parametrize(
    "call",
    [
        lambda: grid.complementary_matches([]),
        lambda: grid.complementary_matches([pellucid.ones(3)]),
        lambda: grid.complementary_matches(masks(), 2),
        lambda: grid.performance_similarity(masks()[0], masks()[0][:2]),
        lambda: grid.majority_vote(pellucid.ones(2, 3)),
        lambda: grid.majority_vote(pellucid.tensor([[-1]])),
        lambda: grid.majority_vote(pellucid.tensor([[3]]), 3),
        lambda: grid.deviation_metrics(pellucid.ones(2), pellucid.ones(3)),
        lambda: grid.evaluate({}, pellucid.ones(1), pellucid.ones(1)),
    ],
)
def test_bad_input(call):
    with pytest.raises(PellucidError):
        call()
