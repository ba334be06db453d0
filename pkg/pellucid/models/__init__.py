"""The model zoo: one architecture per file, with the names of their checkpoints.

Every file of this folder is imported; what architectures are called follows from their classes.
"""

from importlib import import_module
from pkgutil import iter_modules

from .auto import AutoModelForCausalLM
from .cache import KVCache
from .config import Config
from .language_model import GGUF_ARCHITECTURES, MODEL_TYPES, CausalLM
from .output import CausalLMOutput

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
for _model in (*MODEL_TYPES.values(), *GGUF_ARCHITECTURES.values()):
    globals().update({_class.__name__: _class for _class in (_model, _model.config_class)})
