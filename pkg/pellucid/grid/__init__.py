"""Networks in a volume of cells: softmaxes, branches, clustering, remote links."""

from ..ops.matmul.tiles import tile_rows
from .attention import RotaryAttention, remember
from .branches import Parallel
from .clustering import KMeans, agglomerative, cosine_distance, euclidean_distance, kmeans, silhouette_score
from .deviation import DeviationMetrics, deviation_metrics, evaluate
from .ensemble import (  # fmt: skip
    EnsembleMatch,
    complementary_matches,
    graft,
    majority_vote,
    performance_similarity,
    residual_graft,
)
from .evolution.dna import LayerSignature, LogicShift, NetworkComparison, compare_networks, dna
from .evolution.genome import ConnectionGene, Genome, Networks
from .evolution.mutation import MutationConfig, mutate
from .evolution.neat import NEAT, NEATConfig, Species
from .evolution.population import GridPopulation
from .evolution.splice import Splice, splice
from .layers import Layer, Residual, SwiGLU
from .learning.adaptation import AdaptationResult, AdaptationTracker, TaskChange, TimeWindow, adapt
from .learning.methods import (
    Backpropagation,
    MethodComparison,
    MethodRecord,
    SystolicTraining,
    compare_methods,
)
from .learning.systolic import Systolic
from .learning.target_propagation import StepRecord, TargetPropagation, TargetPropagationConfig
from .learning.training import FitConfig, FitResult, fit
from .loading.tensors import Roles, find_roles, load_tensors
from .loading.universal import Archetype, Detection, detect_layers, load_universal
from .network import GridNetwork, Link, Position
from .packed.files import load_packed, save_packed
from .packed.frozen import freeze
from .packed.numbers import PRECISIONS, Precision, precision
from .packed.packing import PackedTensor, fake_quantize, pack, unpack
from .packed.polymorphic import Polymorphic, morph, restore, stored, stored_bytes
from .search.builders import cnn_network, random_network, sequential_network, transformer_network
from .search.darts import (
    DARTSCell,
    DiscreteCell,
    Edge,
    MixedOperation,
    architecture_parameters,
    image_operations,
    search_step,
    vector_operations,
)
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
from .specification import network_from_json, network_to_json, network_to_json_async
from .telemetry.blueprint import MethodInfo, ParameterInfo, blueprint, methods, methods_json
from .telemetry.observers import (
    AggregatingObserver,
    ConsoleObserver,
    HTTPObserver,
    LayerEvent,
    LayerStats,
    Observation,
    layer_stats,
    observe,
)

__all__ = [
    "NEAT",
    "PRECISIONS",
    "AdaptationResult",
    "AdaptationTracker",
    "AggregatingObserver",
    "Archetype",
    "Backpropagation",
    "ConnectionGene",
    "ConsoleObserver",
    "DARTSCell",
    "Detection",
    "DeviationMetrics",
    "DiscreteCell",
    "EnsembleMatch",
    "FitConfig",
    "FitResult",
    "Genome",
    "GridNetwork",
    "GridPopulation",
    "HTTPObserver",
    "KMeans",
    "Layer",
    "LayerEvent",
    "LayerSignature",
    "LayerStats",
    "Link",
    "LogicShift",
    "MethodComparison",
    "MethodInfo",
    "MethodRecord",
    "MixedOperation",
    "MutationConfig",
    "NEATConfig",
    "NetworkComparison",
    "Networks",
    "Observation",
    "PackedTensor",
    "Parallel",
    "ParameterInfo",
    "Polymorphic",
    "Position",
    "Precision",
    "Residual",
    "Roles",
    "RotaryAttention",
    "SoftmaxVariant",
    "Species",
    "Splice",
    "StepRecord",
    "SwiGLU",
    "Systolic",
    "SystolicTraining",
    "TargetPropagation",
    "TargetPropagationConfig",
    "TaskChange",
    "TimeWindow",
    "adapt",
    "adaptive_softmax",
    "agglomerative",
    "architecture_parameters",
    "blueprint",
    "cnn_network",
    "compare_methods",
    "compare_networks",
    "complementary_matches",
    "cosine_distance",
    "detect_layers",
    "deviation_metrics",
    "dna",
    "entmax",
    "euclidean_distance",
    "evaluate",
    "fake_quantize",
    "find_roles",
    "fit",
    "freeze",
    "graft",
    "grid_softmax",
    "hierarchical_softmax",
    "image_operations",
    "kmeans",
    "layer_stats",
    "load_packed",
    "load_tensors",
    "load_universal",
    "majority_vote",
    "masked_softmax",
    "methods",
    "methods_json",
    "mixture_softmax",
    "morph",
    "mutate",
    "network_from_json",
    "network_to_json",
    "network_to_json_async",
    "observe",
    "pack",
    "performance_similarity",
    "precision",
    "random_network",
    "remember",
    "residual_graft",
    "restore",
    "save_packed",
    "search_step",
    "sequential_network",
    "silhouette_score",
    "sparsemax",
    "splice",
    "stored",
    "stored_bytes",
    "temperature_softmax",
    "transformer_network",
    "unpack",
    "vector_operations",
]
