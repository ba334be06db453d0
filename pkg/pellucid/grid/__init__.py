"""Networks in a volume of cells: softmaxes, branches, clustering, remote links."""

from .branches import Parallel
from .clustering import KMeans, agglomerative, cosine_distance, euclidean_distance, kmeans, silhouette_score
from .network import GridNetwork, Link, Position
from .softmax import (  # fmt: skip
    Softmax,
    adaptive_softmax,
    entmax,
    grid_softmax,
    hierarchical_softmax,
    masked_softmax,
    mixture_softmax,
    sparsemax,
    temperature_softmax,
)

__all__ = [
    "GridNetwork",
    "KMeans",
    "Link",
    "Parallel",
    "Position",
    "Softmax",
    "adaptive_softmax",
    "agglomerative",
    "cosine_distance",
    "entmax",
    "euclidean_distance",
    "grid_softmax",
    "hierarchical_softmax",
    "kmeans",
    "masked_softmax",
    "mixture_softmax",
    "silhouette_score",
    "sparsemax",
    "temperature_softmax",
]
