"""Networks in a volume of cells: softmaxes, branches, clustering, remote links."""

from .attention import RotaryAttention
from .branches import Parallel
from .clustering import KMeans, agglomerative, cosine_distance, euclidean_distance, kmeans, silhouette_score
from .deviation import DeviationMetrics, deviation_metrics, evaluate
from .dna import LayerSignature, LogicShift, NetworkComparison, compare_networks, dna
from .ensemble import (  # fmt: skip
    EnsembleMatch,
    complementary_matches,
    graft,
    majority_vote,
    performance_similarity,
    residual_graft,
)
from .genome import ConnectionGene, Genome, Networks
from .layers import Layer, Residual, SwiGLU
from .neat import NEAT, NEATConfig, Species
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
from .splice import Splice, splice
from .systolic import Systolic
from .target_propagation import StepRecord, TargetPropagation, TargetPropagationConfig

__all__ = [
    "NEAT",
    "ConnectionGene",
    "DeviationMetrics",
    "EnsembleMatch",
    "Genome",
    "GridNetwork",
    "KMeans",
    "Layer",
    "LayerSignature",
    "Link",
    "LogicShift",
    "NEATConfig",
    "NetworkComparison",
    "Networks",
    "Parallel",
    "Position",
    "Residual",
    "RotaryAttention",
    "SoftmaxVariant",
    "Species",
    "Splice",
    "StepRecord",
    "SwiGLU",
    "Systolic",
    "TargetPropagation",
    "TargetPropagationConfig",
    "adaptive_softmax",
    "agglomerative",
    "compare_networks",
    "complementary_matches",
    "cosine_distance",
    "deviation_metrics",
    "dna",
    "entmax",
    "euclidean_distance",
    "evaluate",
    "graft",
    "grid_softmax",
    "hierarchical_softmax",
    "kmeans",
    "majority_vote",
    "masked_softmax",
    "mixture_softmax",
    "network_from_json",
    "network_to_json",
    "performance_similarity",
    "residual_graft",
    "silhouette_score",
    "sparsemax",
    "splice",
    "temperature_softmax",
]
