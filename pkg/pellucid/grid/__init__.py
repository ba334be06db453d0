"""Networks in a volume of cells: softmaxes, branches, clustering, remote links."""

from .attention import RotaryAttention
from .branches import Parallel
from .clustering import KMeans, agglomerative, cosine_distance, euclidean_distance, kmeans, silhouette_score
from .layers import Layer, Residual, SwiGLU
from .network import GridNetwork, Link, Position
from .softmax import (  # fmt: skip
    SoftmaxVariant,
    adaptive_softmax,
    entmax,
    grid_softmax,
    hierarchical_softmax,
    masked_softmax,
    mixture_softmax,
    sparsemax,
    temperature_softmax,
)
from .specification import network_from_json, network_to_json

__all__ = [
    "GridNetwork",
    "KMeans",
    "Layer",
    "Link",
    "Parallel",
    "Position",
    "Residual",
    "RotaryAttention",
    "SoftmaxVariant",
    "SwiGLU",
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
    "network_from_json",
    "network_to_json",
    "silhouette_score",
    "sparsemax",
    "temperature_softmax",
]
