"""Looking inside: capture and patch by module path, the logit lens, comparison with recorded values."""

from .capture import capture, patch
from .changes import Change
from .logits import logit_lens, watch
from .looks import LogitLens
from .match import Match, match, match_async
from .methods.attribution import Attribution, direct_logit_attribution
from .methods.directions import LinearProbe, activations, difference_of_means
from .methods.gradients import attribution_patching, gradients, integrated_gradients, saliency
from .methods.heads import attention_rollout, head_scores
from .methods.influence import influence, neural_tangent_kernel
from .methods.jacobian import JacobianLens
from .methods.layers import LayerCurves, layer_curves
from .methods.metrics import logit_difference
from .methods.patching import activation_patching, causal_tracing, mean_activation, path_patching
from .methods.sparse import SparseCoder, top_features
from .methods.tuned import TunedLens
from .paths import matches, pick
from .plan import Plan
from .points import Point, points
from .run import attach, run
from .seen import Seen
from .session.lockstep import Lockstep, StepDifference
from .session.session import Session

__all__ = [
    "Attribution",
    "Change",
    "JacobianLens",
    "LayerCurves",
    "LinearProbe",
    "Lockstep",
    "LogitLens",
    "Match",
    "Plan",
    "Point",
    "Seen",
    "Session",
    "SparseCoder",
    "StepDifference",
    "TunedLens",
    "activation_patching",
    "activations",
    "attach",
    "attention_rollout",
    "attribution_patching",
    "capture",
    "causal_tracing",
    "difference_of_means",
    "direct_logit_attribution",
    "gradients",
    "head_scores",
    "influence",
    "integrated_gradients",
    "layer_curves",
    "logit_difference",
    "logit_lens",
    "match",
    "match_async",
    "matches",
    "mean_activation",
    "neural_tangent_kernel",
    "patch",
    "path_patching",
    "pick",
    "points",
    "run",
    "saliency",
    "top_features",
    "watch",
]
