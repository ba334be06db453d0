"""The op table by group. Importing this declares every op; ``OPS`` then holds them by name."""

from ..op import OPS
from . import arithmetic, comparison, creation, functions, movement, random

__all__ = ["OPS", "arithmetic", "comparison", "creation", "functions", "movement", "random"]
