"""``AutoModelForCausalLM``: the model that belongs to a folder, a URL, a hub id or a GGUF file."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .. import dtypes as dt
from .. import weights
from ..device import device as Device
from ..device import get_default_device
from ..dtypes import DType
from ..errors import FormatError
from ..generate import GenerationConfig
from ..steps import later, now
from ..weights.folder import Folder
from . import gguf
from .language_model import CausalLM
from .llama import LlamaForCausalLM
from .loading import load_weights
from .qwen3 import Qwen3ForCausalLM

# model_type of config.json -> class. Mistral computes what Llama does, within its window.
ARCHITECTURES: dict[str, type[CausalLM]] = {
    "llama": LlamaForCausalLM,
    "mistral": LlamaForCausalLM,
    "qwen3": Qwen3ForCausalLM,
}

# Keys of generation_config.json that are settings here, too.
_GENERATION = (
    "max_new_tokens", "min_new_tokens", "do_sample", "temperature", "top_k", "top_p", "repetition_penalty",
    "eos_token_id", "pad_token_id",
)  # fmt: skip

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
        return now(_load(source, dtype, device, on_progress, cancel, connections, where))

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
        return await later(_load(source, dtype, device, on_progress, cancel, connections, where))


def _load(source, dtype, device, on_progress, cancel, connections, where) -> Generator[tuple, Any, CausalLM]:
    place = get_default_device() if device is None else Device(device)
    if dtype not in (None, dt.float32):
        raise FormatError(
            f"from_pretrained: dtype {dtype} is not taken. Give float32 to dequantize, or leave it out to "
            "keep what the file holds."
        )
    folder: Folder = yield weights, "open_folder", (source,), where
    try:
        read = _from_gguf if folder.checkpoint.format == "gguf" else _from_folder
        model, names, generation = yield from read(folder)
        yield from load_weights(
            model, folder.checkpoint, names, place, dtype, on_progress, cancel, connections
        )
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
    with Device("meta"):
        return architecture(config)


def _from_folder(folder: Folder) -> Generator[tuple, Any, tuple]:
    keys = folder.config
    if keys is None:
        raise FormatError(
            f"{folder.name}: there is no config.json beside the weights. Load the folder instead of a lone "
            "file."
        )
    architecture = ARCHITECTURES.get(str(keys.get("model_type")))
    if architecture is None:
        raise FormatError(
            f"{folder.name}: model_type {keys.get('model_type')!r} is not known. "
            f"There are {', '.join(ARCHITECTURES)}."
        )
    model = _build(architecture, architecture.config_class.from_dict(keys), folder)
    tied = getattr(model.config, "tie_word_embeddings", False)
    names = {
        name: name
        for name in folder.checkpoint
        if not name.endswith(_DERIVED) and not (tied and name == "lm_head.weight")
    }
    defaults = yield folder, "json", ("generation_config.json",), {}
    if defaults is None:
        # Before that file was introduced, config.json held these two.
        defaults = {k: keys.get(k) for k in ("eos_token_id", "pad_token_id")}
    return model, names, _generation(defaults)


def _from_gguf(folder: Folder) -> Generator[tuple, Any, tuple]:
    checkpoint = folder.checkpoint
    kind = checkpoint.metadata.get("general.architecture")
    if kind != "llama":
        raise FormatError(f"{folder.name}: architecture {kind!r} of a GGUF is not known. There is llama.")
    config = gguf.llama_config(checkpoint)
    model = _build(LlamaForCausalLM, config, folder)
    names = {name: gguf.llama_name(name) for name in checkpoint if name != gguf.FREQUENCIES}
    if gguf.FREQUENCIES in checkpoint:
        (factors,) = yield weights, "read", (checkpoint, [checkpoint[gguf.FREQUENCIES]]), {}
        model.model.rotary_emb._frequencies = model.model.rotary_emb._frequencies / np.frombuffer(
            factors, np.float32
        )
    return model, names, _generation({"eos_token_id": checkpoint.metadata.get("tokenizer.ggml.eos_token_id")})


def _generation(keys: dict[str, Any]) -> GenerationConfig:
    """The settings that a model comes with; those that are not set keep their defaults."""
    known = {k: keys[k] for k in _GENERATION if keys.get(k) is not None}
    eos = known.get("eos_token_id")
    try:
        return GenerationConfig(**{**known, "eos_token_id": tuple(eos) if isinstance(eos, list) else eos})
    except TypeError as error:
        raise FormatError(f"generation_config.json: {error}.") from None
