"""``AutoModel``, ``AutoModelForCausalLM``, ...: the model of a folder, a URL, a hub id or a GGUF file.

A further Auto class is a subclass of a line; models name it as their ``auto``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextvars import copy_context
from typing import Any

from .. import weights
from ..device import device as Device
from ..device import resolved
from ..device.steps import later, now
from ..errors import FormatError
from ..tensors import dtypes as dt
from ..tensors.dtypes import DType
from ..weights.fields import check, shown
from ..weights.folder import Folder
from . import gguf
from .config import Config
from .generate import GenerationConfig
from .generate.config import TABLE
from .loading import LoadOptions, load_weights
from .pretrained import REGISTRIES, PretrainedModel
from .saving import Origin
from .stored import StoredWeight, find_stored

_FORMERLY = (
    "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id",
)  # fmt: skip


class AutoClass:
    """Loads the model that a source holds. Only its two class methods are used."""

    def __init__(self):
        name = type(self).__name__
        raise TypeError(f"{name}: is not made directly. Call {name}.from_pretrained(source).")

    @classmethod
    def from_pretrained(
        cls,
        source: Any,
        *,
        dtype: DType | None = None,
        device: Any = None,
        on_progress: Callable[[weights.Progress], None] | None = None,
        cancel: weights.Cancel | None = None,
        connections: int = 6,
        **where: Any,
    ) -> Any:
        """Load a model: header and configuration first, then weights streamed to the device.

        Args:
            source: a folder, a URL, a hub id (``"org/name"``), a File or bytes: an HF folder with
                ``config.json`` and safetensors, or a GGUF; or what `pellucid.weights.open_folder` opened,
                whose header is then not read again.
            dtype: ``float32`` to dequantize all weights; what the file holds if None (half and quantized
                matrices stay packed and are unpacked inside the kernels).
            device: where; the default device if None.
            on_progress: called with a `pellucid.weights.Progress` about ten times a second.
            cancel: a `pellucid.weights.Cancel`, whose ``cancel()`` ends the load; nothing of it stays
                allocated.
            connections: requests in flight.
            where: ``revision=``, ``filename=``, ``token=``, ``endpoint=`` as in `pellucid.weights.find`.

        Returns:
            The model, in eval mode.

        Raises:
            SourceError: bytes cannot be had.
            FormatError: a header or configuration is malformed, or the architecture is not known.
            WeightError: tensors do not match the configuration.
            OutOfMemoryError: the weights are larger than the memory limit.
            DeviceError: a float32 matrix is larger than a buffer of the device may be.
            DTypeError: a tensor is in a format without kernels.
            LoadCancelled: the token was used.

        Source: https://huggingface.co/docs/transformers/model_doc/auto

        Example:
            >>> model = AutoModelForCausalLM.from_pretrained("SmolLM2-135M.gguf")  # doctest: +SKIP
        """
        place = resolved(device)
        options = LoadOptions(place, dtype, on_progress, cancel, connections)
        return now(_load(cls.__name__, source, options, where))

    @classmethod
    async def from_pretrained_async(
        cls,
        source: Any,
        *,
        dtype: DType | None = None,
        device: Any = None,
        on_progress: Callable[[weights.Progress], None] | None = None,
        cancel: weights.Cancel | None = None,
        connections: int = 6,
        **where: Any,
    ) -> Any:
        """The awaitable twin of `from_pretrained`."""
        place = resolved(device)
        options = LoadOptions(place, dtype, on_progress, cancel, connections)
        return await later(_load(cls.__name__, source, options, where))


class AutoModel(AutoClass):
    """Loads a model without a head: ids to hidden states."""


class AutoModelForCausalLM(AutoClass):
    """Loads a model that continues text."""


class AutoModelForMaskedLM(AutoClass):
    """Loads a model that says which ids are behind masks."""


class AutoModelForSequenceClassification(AutoClass):
    """Loads a model that gives a text a label."""


class AutoModelForTokenClassification(AutoClass):
    """Loads a model that gives every token a label."""


class AutoModelForQuestionAnswering(AutoClass):
    """Loads a model that finds the answer to a question in a text."""


class AutoModelForSeq2SeqLM(AutoClass):
    """Loads a model that writes a text about another, such as a translation."""


class AutoConfig(AutoClass):
    """Reads the configuration of a model, without its weights."""

    @classmethod
    def from_pretrained(cls, source: Any, **where: Any) -> Config:
        """The configuration of a folder's ``config.json`` or of a GGUF; of the weights, headers are read.

        Args:
            source, where: as in `AutoModel.from_pretrained`.

        Raises:
            SourceError: there are no files of a model.
            FormatError: one is malformed, or its model_type is not known.
        """
        return now(_load_config(source, where))

    @classmethod
    async def from_pretrained_async(cls, source: Any, **where: Any) -> Config:
        """The awaitable twin of `from_pretrained`."""
        return await later(_load_config(source, where))


def _load(
    auto: str, source: Any, options: LoadOptions, where: dict[str, Any]
) -> Generator[tuple, Any, PretrainedModel]:
    if options.dtype not in (None, dt.float32):
        raise FormatError(
            f"from_pretrained: dtype {options.dtype} is not taken. Give float32 to dequantize, or leave it "
            "out to keep what the file holds."
        )
    folder: Folder = yield weights, "open_folder", (source,), where
    try:
        model, names, stored, generation = yield from from_file(auto, folder)
        yield from load_weights(model, folder.checkpoint, names, stored, options)
        model.origin = origin_of(folder, names, stored)
    finally:
        folder.close()
    model.tie_weights()
    if hasattr(model, "generate"):
        model.generation_config = generation
    return model.eval()


def from_file(auto: str, folder: Folder) -> Generator[tuple, Any, tuple]:
    """Steps that make a model on the device ``meta``.

    Args:
        auto: name of the Auto class.
        folder: what it is in.

    Returns:
        The model, paths of parameters by names of tensors, quantized weights of several tensors by path, and
        the settings of generation.
    """
    read = _from_gguf if folder.checkpoint.format == "gguf" else _from_folder
    return (yield from read(auto, folder))


def origin_of(folder: Folder, names: dict[str, str], stored: dict[str, StoredWeight]) -> Origin:
    """What `PretrainedModel.save_pretrained` writes again."""
    is_gguf = folder.checkpoint.format == "gguf"
    tensors: dict[str, list] = {}
    for name, path in names.items():
        if path not in stored:
            tensors.setdefault(path, []).append((path if is_gguf else name, folder.checkpoint[name].shape))
    head = gguf.head(folder.checkpoint) if is_gguf else b""
    config, changed = None if is_gguf else folder.config, gguf.FREQUENCIES in folder.checkpoint
    return Origin(config, tensors, changed, head, tuple(shard.name for shard in folder.checkpoint.shards))


def _load_config(source: Any, where: dict[str, Any]) -> Generator[tuple, Any, Config]:
    folder: Folder = yield weights, "open_folder", (source,), where
    folder.close()
    kind, value = "model_types", (folder.config or {}).get("model_type")
    if folder.checkpoint.format == "gguf":
        kind, value = "gguf_architectures", gguf.kind(folder.checkpoint)
    autos = [auto for auto, registry in REGISTRIES.items() if str(value) in getattr(registry, kind)]
    config = _known(autos[0] if autos else "AutoModelForCausalLM", kind, value, folder.name).config_class
    if kind == "gguf_architectures":
        return config.from_gguf(folder.checkpoint)
    assert folder.config is not None
    return config.from_dict(folder.config)


def _known(auto: str, kind: str, value: Any, name: str) -> type[PretrainedModel]:
    """The model of an Auto class for a model_type or an architecture.

    Raises:
        FormatError: there is none.
    """
    models = getattr(REGISTRIES[auto], kind)
    if str(value) in models:
        return models[str(value)]
    what = f"model_type {shown(value)}" if kind == "model_types" else f"architecture {shown(value)} of a GGUF"
    others = [other for other, registry in REGISTRIES.items() if str(value) in getattr(registry, kind)]
    raise FormatError(
        f"{name}: {what} is not known"
        + (f" to {auto}, but to {', '.join(others)}. " if others else ". ")
        + f"There are {', '.join(sorted(models))}."
    )


def _build(architecture: type[Any], config: Any, folder: Folder) -> PretrainedModel:
    if config.num_hidden_layers > len(folder.checkpoint):
        raise FormatError(
            f"{folder.name}: the configuration claims {config.num_hidden_layers} layers, and there are "
            f"{len(folder.checkpoint)} tensors. The file is damaged, or config.json belongs to other weights."
        )

    def made() -> PretrainedModel:
        with Device("meta"):
            made_of = architecture(config)
        made_of.fit(folder.checkpoint)
        return made_of

    # Ctrl-C where the `with` ends may leave its device, but not in the program's context.
    return copy_context().run(made)


def _from_folder(auto: str, folder: Folder) -> Generator[tuple, Any, tuple]:
    keys = folder.config
    if keys is None:
        raise FormatError(
            f"{folder.name}: there is no config.json beside the weights. Load the folder instead of a lone "
            "file."
        )
    architecture = _known(auto, "model_types", keys.get("model_type"), folder.name)
    model = _build(architecture, architecture.config_class.from_dict(keys), folder)
    stored, passed = yield from find_stored(
        folder.checkpoint, keys.get("quantization_config"), dict(model.named_parameters())
    )
    names = model.paths(name for name in folder.checkpoint if name not in passed)
    for target, weight in stored.items():
        names |= {info.name: target for info in weight.infos.values()}
    where, defaults = "generation_config.json", (yield folder, "json", ("generation_config.json",), {})
    if defaults is None:
        # Before that file was introduced, config.json held these.
        where, defaults = "config.json", {k: keys.get(k) for k in _FORMERLY}
    return model, names, stored, _generation(f"{folder.name}/{where}", defaults)


def _from_gguf(auto: str, folder: Folder) -> Generator[tuple, Any, tuple]:
    checkpoint = folder.checkpoint
    architecture = _known(auto, "gguf_architectures", gguf.kind(checkpoint), folder.name)
    model = _build(architecture, architecture.config_class.from_gguf(checkpoint), folder)
    yield from gguf.read_factors(model, checkpoint)
    eos = {"eos_token_id": checkpoint.metadata.get("tokenizer.ggml.eos_token_id")}
    stored: dict[str, StoredWeight] = {}
    generation = _generation(f"{folder.name}: tokenizer.ggml", eos)
    names = gguf.paths(checkpoint, model)
    folder.checkpoint = gguf.reshaped(checkpoint, names, model)
    return model, names, stored, generation


def _generation(where: str, keys: dict[str, Any]) -> GenerationConfig:
    """The settings that a model comes with; those that are not set keep their defaults.

    Raises:
        FormatError: one is of the wrong type or out of range.
    """
    if keys.get("pad_token_id") == -1:  # which older models write for none
        keys = {**keys, "pad_token_id": None}
    check(where, keys, TABLE)
    known = {k: keys[k] for k in TABLE if keys.get(k) is not None}
    eos = known.get("eos_token_id")
    return GenerationConfig(**{**known, "eos_token_id": tuple(eos) if isinstance(eos, list) else eos})
