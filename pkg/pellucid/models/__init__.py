"""The model zoo: one architecture per file, with the names of their checkpoints."""

from .auto import AutoModelForCausalLM
from .cache import KVCache
from .llama import LlamaConfig, LlamaForCausalLM
from .output import CausalLMOutput
from .qwen3 import Qwen3Config, Qwen3ForCausalLM

__all__ = [
    "AutoModelForCausalLM",
    "CausalLMOutput",
    "KVCache",
    "LlamaConfig",
    "LlamaForCausalLM",
    "Qwen3Config",
    "Qwen3ForCausalLM",
]
