"""Adapters: a few parameters beside frozen weights. peft's names and files."""

from .config import IA3Config, LoraConfig, PeftConfig, PromptTuningConfig
from .model import PeftModel, get_peft_model, load_adapter, load_adapter_async

__all__ = [
    "IA3Config", "LoraConfig", "PeftConfig", "PeftModel", "PromptTuningConfig", "get_peft_model",
    "load_adapter", "load_adapter_async",
]  # fmt: skip
