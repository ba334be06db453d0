"""Text from a language model: greedy or sampled, one small read per token, with or without blocking."""

from .config import GenerationConfig
from .loop import steps
from .text import generate, generate_async, stream, stream_async

__all__ = ["GenerationConfig", "generate", "generate_async", "steps", "stream", "stream_async"]
