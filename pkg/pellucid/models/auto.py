"""``AutoModelForCausalLM``: the model that belongs to a folder, a URL, a hub id or a GGUF file."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextvars import copy_context
from typing import Any

from .. import weights
from ..device import device as Device
from ..device import get_default_device
from ..device.steps import later, now
from ..errors import FormatError
from ..tensors import dtypes as dt
from ..tensors.dtypes import DType
from ..weights.fields import check, shown
from ..weights.folder import Folder
from . import gguf
from .generate import GenerationConfig
from .generate.config import TABLE
from .language_model import GGUF_ARCHITECTURES, MODEL_TYPES, CausalLM
from .loading import LoadOptions, load_weights
from .stored import StoredWeight, find_stored

# Tensors in files that nothing here needs: they can be computed.
_DERIVED = ("rotary_emb.inv_freq", "attn.bias", "attn.masked_bias")


class AutoModelForCausalLM:
    """Loads the causal language model that a source holds. Only its two class methods are used."""

    def __init__(self):
        raise TypeError(
            "AutoModelForCausalLM: is not made directly. Call AutoModelForCausalLM.from_pretrained(source)."
        )

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
    ) -> CausalLM:
        """Load a model: header and configuration first, then weights streamed to the device.

        Args:
            source: a folder, a URL, a hub id (``"org/name"``), a File or bytes: an HF folder with
                ``config.json`` and safetensors, or a GGUF.
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
        place = get_default_device() if device is None else Device(device)
        options = LoadOptions(place, dtype, on_progress, cancel, connections)
        return now(_load(source, options, where))

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
    ) -> CausalLM:
        """The awaitable twin of `from_pretrained`."""
        place = get_default_device() if device is None else Device(device)
        options = LoadOptions(place, dtype, on_progress, cancel, connections)
        return await later(_load(source, options, where))


def _load(source: Any, options: LoadOptions, where: dict[str, Any]) -> Generator[tuple, Any, CausalLM]:
    if options.dtype not in (None, dt.float32):
        raise FormatError(
            f"from_pretrained: dtype {options.dtype} is not taken. Give float32 to dequantize, or leave it "
            "out to keep what the file holds."
        )
    folder: Folder = yield weights, "open_folder", (source,), where
    try:
        read = _from_gguf if folder.checkpoint.format == "gguf" else _from_folder
        model, names, stored, generation = yield from read(folder)
        yield from load_weights(model, folder.checkpoint, names, stored, options)
    finally:
        folder.checkpoint.close()
    model.tie_weights()
    model.generation_config = generation
    return model.eval()


def _build(architecture: type[CausalLM], config: Any, folder: Folder) -> CausalLM:
    if config.num_hidden_layers > len(folder.checkpoint):
        raise FormatError(
            f"{folder.name}: the configuration claims {config.num_hidden_layers} layers, and there are "
            f"{len(folder.checkpoint)} tensors. The file is damaged, or config.json belongs to other weights."
        )

    def made() -> CausalLM:
        with Device("meta"):
            return architecture(config)

    # Ctrl-C where the `with` ends may leave its device, but not in the program's context.
    return copy_context().run(made)


def _from_folder(folder: Folder) -> Generator[tuple, Any, tuple]:
    keys = folder.config
    if keys is None:
        raise FormatError(
            f"{folder.name}: there is no config.json beside the weights. Load the folder instead of a lone "
            "file."
        )
    architecture = MODEL_TYPES.get(str(keys.get("model_type")))
    if architecture is None:
        raise FormatError(
            f"{folder.name}: model_type {shown(keys.get('model_type'))} is not known. "
            f"There are {', '.join(sorted(MODEL_TYPES))}."
        )
    model = _build(architecture, architecture.config_class.from_dict(keys), folder)
    tied = getattr(model.config, "tie_word_embeddings", False)
    stored, passed = yield from find_stored(
        folder.checkpoint, keys.get("quantization_config"), dict(model.named_parameters())
    )
    names = {
        name: name
        for name in folder.checkpoint
        if name not in passed and not name.endswith(_DERIVED) and not (tied and name == "lm_head.weight")
    }
    for target, weight in stored.items():
        names |= {info.name: target for info in weight.infos.values()}
    where, defaults = "generation_config.json", (yield folder, "json", ("generation_config.json",), {})
    if defaults is None:
        # Before that file was introduced, config.json held these two.
        where, defaults = "config.json", {k: keys.get(k) for k in ("eos_token_id", "pad_token_id")}
    return model, names, stored, _generation(f"{folder.name}/{where}", defaults)


def _from_gguf(folder: Folder) -> Generator[tuple, Any, tuple]:
    checkpoint = folder.checkpoint
    kind = checkpoint.metadata.get("general.architecture")
    architecture = GGUF_ARCHITECTURES.get(str(kind))
    if architecture is None:
        raise FormatError(
            f"{folder.name}: architecture {shown(kind)} of a GGUF is not known. "
            f"There are {', '.join(sorted(GGUF_ARCHITECTURES))}."
        )
    model = _build(architecture, architecture.config_class.from_gguf(checkpoint), folder)
    yield from gguf.read_factors(model, checkpoint)
    eos = {"eos_token_id": checkpoint.metadata.get("tokenizer.ggml.eos_token_id")}
    stored: dict[str, StoredWeight] = {}
    generation = _generation(f"{folder.name}: tokenizer.ggml", eos)
    return model, gguf.paths(checkpoint, architecture), stored, generation


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
