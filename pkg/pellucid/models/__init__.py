"""The model zoo: one architecture per file, with the names of their checkpoints.

Every file of this folder is imported; what architectures are called follows from their classes.
"""

from importlib import import_module
from pkgutil import iter_modules

from . import auto
from .cache import KVCache
from .config import Config
from .language_model import GGUF_ARCHITECTURES, MODEL_TYPES, CausalLM
from .output import CausalLMOutput
from .pretrained import REGISTRIES, PretrainedModel
from .sentence import SentenceTransformer

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
for _registry in REGISTRIES.values():
    for _model in (*_registry.model_types.values(), *_registry.gguf_architectures.values()):
        globals().update({_class.__name__: _class for _class in (_model, _model.config_class)})
for _auto in (auto.AutoConfig, *auto.AutoClass.__subclasses__()):
    globals()[_auto.__name__] = _auto
