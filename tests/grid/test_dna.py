"""P-044, P-045, P-046: signatures, comparison with shifts of logic, and crossover of networks."""

import copy
import json

import numpy as np
import pytest

import pellucid
from pellucid.errors import PellucidError
from pellucid.grid import GridNetwork, compare_networks, dna, network_from_json, splice

PLACES = [(0, 0, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0)]


def network(seed, kinds=("dense", "dense", "dense")):
    pellucid.manual_seed(seed)
    layers = [{**dict(zip("zyxl", p, strict=True)), "type": k, "d_model": 4} for p, k in zip(PLACES, kinds)]
    return network_from_json(json.dumps({"depth": 2, "cols": 2, "layers": layers}), device="cpu")


def weights(net):
    return [p.detach().numpy() for p in net.parameters()]


def test_signatures_have_length_1():
    net = network(0)
    net.place((1, 0, 1, 0), pellucid.nn.ReLU())
    found = dna(net)
    assert [s.position for s in found] == [*PLACES, (1, 0, 1, 0)]
    assert [s.kind for s in found] == ["dense"] * 3 + ["ReLU"]
    for s in found:
        assert np.linalg.norm(s.weights) == pytest.approx(1)


def test_a_network_equals_itself_and_its_half_precision_nearly():
    net = network(1)
    same = compare_networks(dna(net), dna(net))
    assert same.overall == pytest.approx(1)
    assert same.shifts == []
    half = copy.deepcopy(net).half()
    assert compare_networks(dna(net), dna(half)).overall == pytest.approx(1, abs=1e-5)
    signs = copy.deepcopy(net)
    with pellucid.no_grad():
        for p in signs.parameters():
            p.copy_(p.sign())
    assert 0.6 < compare_networks(dna(net), dna(signs)).overall < 0.99


def test_two_layers_that_changed_places_are_two_shifts():
    net, moved = network(2), network(2)
    a, b = net.layer(PLACES[0]), net.layer(PLACES[2])
    moved.place(PLACES[0], copy.deepcopy(b))
    moved.place(PLACES[2], copy.deepcopy(a))
    found = compare_networks(dna(net), dna(moved))
    assert {(s.source, s.target) for s in found.shifts} == {(PLACES[0], PLACES[2]), (PLACES[2], PLACES[0])}
    assert all(s.overlap == pytest.approx(1) for s in found.shifts)
    assert found.layers[PLACES[1]] == pytest.approx(1)


def test_layers_of_other_kinds_do_not_overlap():
    assert (
        compare_networks(dna(network(3)), dna(network(3, ("dense", "rms_norm", "dense")))).layers[PLACES[1]]
        == 0
    )


@pytest.mark.parametrize("mode", ["blend", "point", "uniform"])
def test_alpha_0_is_the_first_parent_and_parents_stay(mode):
    a, b = network(4), network(5)
    before = [w.copy() for w in weights(a) + weights(b)]
    child, similarities = splice(a, b, mode, 0.0)
    for mine, right in zip(weights(child), weights(a), strict=True):
        np.testing.assert_array_equal(mine, right)
    assert all(-1 <= s <= 1 for s in similarities.values())
    assert len(similarities) == 3
    splice(a, b, mode, 1.0)
    for now, then in zip(weights(a) + weights(b), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_blends_count_likeness_and_fitness():
    a, b = network(6), network(7)
    for fitness, part in (((1.0, 1.0), 0.5), ((1.0, 3.0), 0.75), ((-1.0, 2.0), 0.5)):
        child, likeness = splice(a, b, "blend", 0.4, fitness)
        for place in PLACES:
            share = 0.4 * (1 + likeness[place]) * part
            for mine, x, y in zip(*(n.layer(place).parameters() for n in (child, a, b)), strict=True):
                right = (1 - share) * x.detach().numpy() + share * y.detach().numpy()
                np.testing.assert_allclose(mine.detach().numpy(), right, rtol=1e-5, atol=1e-6)


def test_point_and_uniform_take_each_weight_from_one_parent():
    a, b = network(8), network(9)
    flat = [np.concatenate([w.ravel() for w in weights(n)]) for n in (a, b)]
    point, _ = splice(a, b, "point", 0.5)
    for place in PLACES:
        mine, x, y = (
            np.concatenate([p.detach().numpy().ravel() for p in n.layer(place).parameters()])
            for n in (point, a, b)
        )
        np.testing.assert_array_equal(mine, np.concatenate([x[:10], y[10:]]))
    uniform = [
        np.concatenate([w.ravel() for w in weights(splice(a, b, "uniform", seed=s)[0])]) for s in (1, 1, 2)
    ]
    np.testing.assert_array_equal(uniform[0], uniform[1])
    assert not (uniform[0] == uniform[2]).all()
    from_b = uniform[0] == flat[1]
    assert ((uniform[0] == flat[0]) | from_b).all()
    assert 0.3 < from_b.mean() < 0.7


def test_networks_of_other_structure_are_mixed_where_they_agree():
    a = network(1)
    b = network_from_json({"layers": [{"type": "dense", "d_model": 4}]}, device="cpu")
    child, similarities = splice(a, b)
    assert list(similarities) == [PLACES[0]]
    x = pellucid.ones(2, 4, device="cpu")
    assert child(x).shape == a(x).shape


@pytest.mark.parametrize(
    "call",
    [
        lambda net: splice(net, net, "cut"),
        lambda net: splice(net, net, alpha=1.5),
        lambda net: splice(net, pellucid.nn.ReLU()),
        lambda net: dna(pellucid.nn.ReLU()),
    ],
)
def test_bad_input(call):
    with pytest.raises(PellucidError):
        call(GridNetwork(1, 1, 1, 1))
