"""Looking inside: capture and patch by module path, the logit lens, comparison with recorded values."""

from .capture import Seen, capture, patch
from .logits import logit_lens, watch
from .looks import LogitLens
from .match import Match, match, match_async
from .paths import matches, pick

__all__ = [
    "LogitLens",
    "Match",
    "Seen",
    "capture",
    "logit_lens",
    "match",
    "match_async",
    "matches",
    "patch",
    "pick",
    "watch",
]
