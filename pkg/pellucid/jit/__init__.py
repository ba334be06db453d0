"""Capture and replay: `compile` records what a function runs; see docs/design.md, "Capture"."""

from .compiled import Compiled, Explanation
from .optimized import OptimizedModule, compile

__all__ = ["Compiled", "Explanation", "OptimizedModule", "compile"]
