"""Looking inside: capture and patch by module path, the logit lens, comparison with recorded values."""

from .capture import capture, patch
from .changes import Change
from .logits import logit_lens, watch
from .looks import LogitLens
from .match import Match, match, match_async
from .paths import matches, pick
from .plan import Plan
from .points import Point, points
from .run import attach, run
from .seen import Seen

__all__ = [
    "Change",
    "LogitLens",
    "Match",
    "Plan",
    "Point",
    "Seen",
    "attach",
    "capture",
    "logit_lens",
    "match",
    "match_async",
    "matches",
    "patch",
    "pick",
    "points",
    "run",
    "watch",
]
