"""P-029, P-034: clustering beside scikit-learn."""

import numpy as np
import pytest
import sklearn.cluster
import sklearn.metrics

import pellucid
from ops.oracle import DEVICES
from pellucid import grid
from pellucid.errors import PellucidError

RANDOM = np.random.default_rng(7)
BLOBS = np.concatenate([RANDOM.normal(c, 0.4, (20, 3)) for c in (-3, 0, 4)]).astype(np.float32)
LOOSE = RANDOM.standard_normal((40, 2)).astype(np.float32)


def same_groups(mine, theirs):
    pairs = set(zip(mine, theirs, strict=True))
    return len(pairs) == len(set(mine)) == len(set(theirs))


@pytest.mark.parametrize("device", DEVICES)
def test_kmeans_from_given_centers_is_scikit_learns(device):
    start = LOOSE[[0, 5, 9, 20]]
    theirs = sklearn.cluster.KMeans(4, init=start, n_init=1, tol=0).fit(LOOSE)
    centers, found = grid.kmeans(
        pellucid.tensor(LOOSE, device=device), 4, start=pellucid.tensor(start, device=device)
    )
    np.testing.assert_array_equal(found.numpy(), theirs.labels_)
    np.testing.assert_allclose(centers.numpy(), theirs.cluster_centers_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_kmeans_finds_blobs_from_any_seed(device):
    for seed in range(3):
        _, found = grid.kmeans(pellucid.tensor(BLOBS, device=device), 3, seed=seed)
        assert same_groups(found.tolist(), np.repeat([0, 1, 2], 20).tolist())


def test_kmeans_of_equal_points():
    centers, found = grid.kmeans(pellucid.ones(4, 2), 3)
    assert (centers == 1).all()
    assert found.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("linkage", ["single", "complete", "average"])
@pytest.mark.parametrize("threshold", [0.3, 0.8, 1.5])
def test_agglomerative_groups_are_scikit_learns(linkage, threshold):
    theirs = sklearn.cluster.AgglomerativeClustering(None, distance_threshold=threshold, linkage=linkage)
    mine = grid.agglomerative(pellucid.tensor(LOOSE), threshold, linkage).tolist()
    assert same_groups(mine, theirs.fit_predict(LOOSE).tolist())
    assert [g for k, g in enumerate(mine) if g not in mine[:k]] == list(range(max(mine) + 1))


@pytest.mark.parametrize("device", DEVICES)
def test_silhouettes_and_distances(device):
    x = pellucid.tensor(BLOBS, device=device)
    labels = RANDOM.integers(0, 4, len(BLOBS))
    labels[0] = 9  # alone
    mine = grid.silhouette_score(x, pellucid.tensor(labels, device=device)).item()
    assert mine == pytest.approx(sklearn.metrics.silhouette_score(BLOBS, labels), abs=1e-5)
    a, b = x[:20], x[20:40]
    for ours, theirs in [
        (grid.euclidean_distance, sklearn.metrics.pairwise.paired_euclidean_distances),
        (grid.cosine_distance, sklearn.metrics.pairwise.paired_cosine_distances),
    ]:
        np.testing.assert_allclose(ours(a, b).numpy(), theirs(BLOBS[:20], BLOBS[20:40]), atol=1e-5)
    assert grid.cosine_distance(a * 0, b).tolist() == [1.0] * 20


@pytest.mark.parametrize("output", ["probabilities", "features"])
def test_the_layer_has_right_values_and_gradients(output):
    layer = grid.KMeans(3, 2, 0.7, output, device="cpu", dtype=pellucid.float64)
    x = pellucid.tensor(LOOSE[:5].astype(np.float64), device="cpu", requires_grad=True)
    distance = ((LOOSE[:5, None] - layer.centers.detach().numpy()) ** 2).sum(-1)
    p = np.exp(-distance / 0.7)
    p /= p.sum(-1, keepdims=True)
    right = p if output == "probabilities" else p @ layer.centers.detach().numpy()
    np.testing.assert_allclose(layer(x).detach().numpy(), right, rtol=1e-6)

    def function(x, centers):
        return pellucid.func.functional_call(layer, {"centers": centers}, (x,))

    assert pellucid.autograd.gradcheck(function, (x, layer.centers))


def test_the_layer_learns_the_centers_of_blobs():
    pellucid.manual_seed(1)
    layer, x = grid.KMeans(3, 3, 0.5, "features", device="cpu"), pellucid.tensor(BLOBS, device="cpu")
    with pellucid.no_grad():
        layer.centers.copy_(grid.kmeans(x, 3)[0] + 0.5)
    optimizer = pellucid.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(30):
        optimizer.zero_grad()
        loss = ((layer(x) - x) ** 2).mean()
        loss.backward()
        optimizer.step()
    means = np.sort(BLOBS.reshape(3, 20, 3).mean(1), 0)
    np.testing.assert_allclose(np.sort(layer.centers.detach().numpy(), 0), means, atol=0.2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: grid.kmeans(x, 0),
        lambda x: grid.kmeans(x, 61),
        lambda x: grid.kmeans(x[0], 1),
        lambda x: grid.kmeans(x, 2, start=x),
        lambda x: grid.agglomerative(x, 0.0),
        lambda x: grid.agglomerative(x, 1.0, "ward"),
        lambda x: grid.silhouette_score(x, pellucid.zeros(60, dtype=pellucid.int64)),
        lambda x: grid.silhouette_score(x, x),
        lambda x: grid.KMeans(0, 3),
        lambda x: grid.KMeans(2, 3, 0.0),
        lambda x: grid.KMeans(2, 3, output="labels"),
        lambda x: grid.KMeans(2, 2)(x),
    ],
)
def test_bad_input(call):
    with pytest.raises(PellucidError):
        call(pellucid.tensor(BLOBS))
