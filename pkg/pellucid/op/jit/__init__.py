"""Capture and replay: `compile` records what a function runs; see docs/jit.md."""

from .compiled import Compiled, Explanation
from .optimized import OptimizedModule, compile

__all__ = ["Compiled", "Explanation", "OptimizedModule", "compile"]
