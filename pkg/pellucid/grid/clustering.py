"""Clustering: k-means, also as a layer; agglomerative groups, silhouettes, distances."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError, RangeError, ShapeError
from ..nn.functional import softmax
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops.matmul.contractions import cdist
from ..ops.random.distributions import randn
from ..tensors.construct import tensor
from ..tensors.shape import index
from ..tensors.tensor import Tensor

OUTPUTS = ("probabilities", "features")
LINKAGES = ("single", "complete", "average")


def _points(data: Tensor, name: str) -> None:
    if not isinstance(data, Tensor):
        raise ArgumentError(f"{name}: the data must be a tensor, not {type(data).__name__}.")
    if data.dim() != 2 or not data.shape[0]:
        raise ShapeError(f"{name}: the data must be (points, features), not {tuple(data.shape)}.")
    if not data.dtype.is_floating_point:
        raise ArgumentError(f"{name}: the data must be floating point, not {data.dtype}.")


def euclidean_distance(input: Tensor, other: Tensor) -> Tensor:
    """``sqrt(sum_i (a_i - b_i)^2)`` along the last axis.

    Args:
        input, other: (..., n), floating point, broadcast with each other.

    Example:
        >>> import pellucid
        >>> a = pellucid.tensor([3.0, 4.0], device="cpu")
        >>> pellucid.grid.euclidean_distance(a, pellucid.zeros(2, device="cpu")).item()
        5.0
    """
    return ((input - other) ** 2).sum(-1).sqrt()


def cosine_distance(input: Tensor, other: Tensor) -> Tensor:
    """``1 - a . b / (|a| |b|)`` along the last axis; 1 where one of them is zero.

    Args:
        input, other: (..., n), floating point, broadcast with each other.

    Example:
        >>> import pellucid
        >>> a = pellucid.tensor([1.0, 0.0], device="cpu")
        >>> pellucid.grid.cosine_distance(a, -a).item()
        2.0
    """
    lengths = (input * input).sum(-1).sqrt() * (other * other).sum(-1).sqrt()
    return 1 - (input * other).sum(-1) / lengths.clamp(min=1e-30)


class KMeans(Module):
    """Soft assignment to learned centers: ``p_k = softmax_k(-|x - c_k|^2 / temperature)``.

    Args:
        num_clusters: how many centers.
        features: length of the input's last axis.
        temperature: positive; towards 0 the assignment is that of the nearest center.
        output: "probabilities" gives p; "features" gives ``sum_k p_k c_k``.
        device, dtype: of the centers; the defaults if None.

    Attributes:
        centers: (num_clusters, features), drawn from the standard normal distribution.

    Raises:
        RangeError: a count or the temperature is not positive, or the output is none of the two.

    Example:
        >>> import pellucid
        >>> pellucid.grid.KMeans(3, 2, device="cpu")(pellucid.zeros(5, 2, device="cpu")).shape
        Size([5, 3])
    """

    def __init__(
        self,
        num_clusters: int,
        features: int,
        temperature: float = 1.0,
        output: str = "probabilities",
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_clusters = index(num_clusters, "KMeans: num_clusters")
        self.features = index(features, "KMeans: features")
        if self.num_clusters < 1 or self.features < 1 or not 0 < temperature < float("inf"):
            raise RangeError(
                f"KMeans: num_clusters, features and temperature must be positive, not {num_clusters}, "
                f"{features} and {temperature}."
            )
        if output not in OUTPUTS:
            raise RangeError(f"KMeans: output must be one of {', '.join(OUTPUTS)}, not {output!r}.")
        self.temperature, self.output = float(temperature), output
        self.centers = Parameter(randn(self.num_clusters, self.features, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        if not input.dim() or input.shape[-1] != self.features:
            raise ShapeError(f"KMeans: the input must be (..., {self.features}), not {tuple(input.shape)}.")
        distances = ((input.unsqueeze(-2) - self.centers) ** 2).sum(-1)
        p = softmax(distances / -self.temperature, -1)
        return p if self.output == "probabilities" else p @ self.centers

    def extra_repr(self) -> str:
        return f"{self.num_clusters}, {self.features}, temperature={self.temperature}, output={self.output!r}"


def kmeans(
    data: Tensor, num_clusters: int, iterations: int = 100, seed: int = 0, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Centers and assignments by Lloyd's algorithm, from k-means++ unless centers to start with are given.

    Args:
        data: (points, features), floating point.
        num_clusters: at most as many as there are points.
        iterations: at most; it ends when no assignment changes.
        seed: of the draw of the first centers.
        start: (num_clusters, features): the first centers.

    Returns:
        The centers (num_clusters, features), and int64 assignments (points,). A center that loses all its
        points stays where it is.

    Raises:
        RangeError: there are fewer points than clusters.

    Source: Lloyd 1982, "Least squares quantization in PCM"; Arthur and Vassilvitskii 2007, "k-means++"

    Example:
        >>> import pellucid
        >>> x = pellucid.tensor([[0.0], [0.1], [5.0]], device="cpu")
        >>> centers, assignments = pellucid.grid.kmeans(x, 2)
        >>> sorted(round(c, 2) for c in centers.flatten().tolist())
        [0.05, 5.0]
    """
    _points(data, "kmeans")
    count, k = data.shape[0], index(num_clusters, "kmeans: num_clusters")
    if not 1 <= k <= count:
        raise RangeError(f"kmeans: num_clusters must be between 1 and the {count} points, not {k}.")
    data = data.detach()
    if start is None:
        centers = _spread(data, k, np.random.default_rng(seed))
    elif tuple(start.shape) != (k, data.shape[1]):
        raise ShapeError(f"kmeans: start must be {(k, data.shape[1])}, not {tuple(start.shape)}.")
    else:
        centers = start.detach()
    assignments = cdist(data, centers).argmin(-1)
    for _ in range(iterations):
        counts = assignments.bincount(minlength=k).to(data.dtype).unsqueeze(-1)
        sums = centers.new_zeros(centers.shape).index_add(0, assignments, data)
        centers = (counts == 0).to(data.dtype) * centers + sums / counts.clamp(min=1)
        before, assignments = assignments, cdist(data, centers).argmin(-1)
        if bool((before == assignments).all()):
            break
    return centers, assignments


def _spread(data: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """First centers far from each other: each drawn by its squared distance to the nearest before it."""
    chosen = [int(random.integers(data.shape[0]))]
    for _ in range(k - 1):
        weights = cdist(data, data[chosen]).amin(-1).numpy().astype(np.float64) ** 2
        total = weights.sum()
        if not total > 0:  # All points that are left lie on centers.
            chosen.append(int(random.integers(data.shape[0])))
            continue
        chosen.append(int(random.choice(len(weights), p=weights / total)))
    return data[chosen]


def agglomerative(data: Tensor, threshold: float, linkage: str = "single") -> Tensor:
    """Groups of points, joined from the nearest pair up while two groups are closer than a threshold.

    Args:
        data: (points, features), floating point.
        threshold: groups at this distance or farther stay apart.
        linkage: the distance of two groups: of their nearest points (single), of their farthest (complete),
            or the mean over all pairs (average).

    Returns:
        int64 (points,): the group of each point, numbered in the order of their first points.

    Raises:
        RangeError: an unknown linkage, or a threshold that is no number above 0.

    Source: Lance and Williams 1967, "A general theory of classificatory sorting strategies"

    Example:
        >>> import pellucid
        >>> pellucid.grid.agglomerative(pellucid.tensor([[0.0], [1.0], [9.0]], device="cpu"), 2.0).tolist()
        [0, 0, 1]
    """
    _points(data, "agglomerative")
    if linkage not in LINKAGES:
        raise RangeError(f"agglomerative: linkage must be one of {', '.join(LINKAGES)}, not {linkage!r}.")
    if not threshold > 0:
        raise RangeError(f"agglomerative: threshold must be above 0, not {threshold}.")
    d = cdist(data.detach(), data.detach()).numpy().astype(np.float64)
    np.fill_diagonal(d, np.inf)
    groups = np.arange(len(d))
    sizes = np.ones(len(d))
    while len(d) > 1:
        a, b = sorted(np.unravel_index(int(d.argmin()), d.shape))
        if not d[a, b] < threshold:
            break
        rows = d[[a, b]]
        if linkage == "single":
            merged = rows.min(0)
        elif linkage == "complete":
            merged = rows.max(0)
        else:
            merged = (sizes[a] * rows[0] + sizes[b] * rows[1]) / (sizes[a] + sizes[b])
        d[a], d[:, a] = merged, merged
        d[a, a] = np.inf
        sizes[a] += sizes[b]
        d[b], d[:, b] = np.inf, np.inf
        groups[groups == groups[b]] = groups[a]
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return tensor(order[numbers], device=data.device)


def silhouette_score(data: Tensor, assignments: Tensor) -> Tensor:
    """How well clusters are separate: the mean of ``(b - a) / max(a, b)`` over the points, from -1 to 1.

    a is a point's mean distance to the others of its cluster, b to those of the nearest other cluster. A
    point that is alone in its cluster counts 0.

    Args:
        data: (points, features), floating point.
        assignments: integers (points,): the cluster of each point.

    Returns:
        A tensor without axes.

    Raises:
        RangeError: fewer than two clusters, or as many as points.

    Source: Rousseeuw 1987, "Silhouettes: a graphical aid to the interpretation and validation of cluster
        analysis"

    Example:
        >>> import pellucid
        >>> x = pellucid.tensor([[0.0], [0.0], [9.0], [9.0]], device="cpu")
        >>> pellucid.grid.silhouette_score(x, pellucid.tensor([0, 0, 1, 1], device="cpu")).item()
        1.0
    """
    _points(data, "silhouette_score")
    if tuple(assignments.shape) != (data.shape[0],):
        raise ShapeError(
            f"silhouette_score: assignments must be ({data.shape[0]},), not {tuple(assignments.shape)}."
        )
    labels = assignments.unique()
    if not 2 <= len(labels) < data.shape[0]:
        raise RangeError(
            f"silhouette_score: {data.shape[0]} points in {len(labels)} clusters have no silhouette. There "
            "must be at least two clusters, and fewer than points."
        )
    member = (assignments.unsqueeze(-1) == labels).to(data.dtype)
    counts = member.sum(0)
    sums = cdist(data, data) @ member
    own = (member * counts).sum(-1)
    a = (sums * member).sum(-1) / (own - 1).clamp(min=1)
    b = (sums / counts).masked_fill(member > 0, float("inf")).amin(-1)
    value = (b - a) / b.maximum(a).clamp(min=1e-30)
    return value.masked_fill(own == 1, 0.0).mean()
