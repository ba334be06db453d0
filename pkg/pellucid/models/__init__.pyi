"""The model zoo.

Written by `scripts/reference`; do not edit.
"""

from .auto import AutoModelForCausalLM as AutoModelForCausalLM
from .cache import KVCache as KVCache
from .config import Config as Config
from .gemma import GemmaConfig as GemmaConfig
from .gemma import GemmaForCausalLM as GemmaForCausalLM
from .language_model import GGUF_ARCHITECTURES as GGUF_ARCHITECTURES
from .language_model import MODEL_TYPES as MODEL_TYPES
from .language_model import CausalLM as CausalLM
from .llama import LlamaConfig as LlamaConfig
from .llama import LlamaForCausalLM as LlamaForCausalLM
from .output import CausalLMOutput as CausalLMOutput
from .phi3 import Phi3Config as Phi3Config
from .phi3 import Phi3ForCausalLM as Phi3ForCausalLM
from .qwen2 import Qwen2Config as Qwen2Config
from .qwen2 import Qwen2ForCausalLM as Qwen2ForCausalLM
from .qwen3 import Qwen3Config as Qwen3Config
from .qwen3 import Qwen3ForCausalLM as Qwen3ForCausalLM
