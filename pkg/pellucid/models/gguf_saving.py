"""``save_gguf``: a model as one GGUF file, which llama.cpp names and lays out so, written piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import fields
from fnmatch import fnmatchcase
from math import isclose, prod
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from .. import weights
from ..device import device as Device
from ..errors import ArgumentError, DTypeError
from ..nn.ao.quantization import input_quantization
from ..quant.encoding import ENCODERS
from ..quant.format import BLOCK_FORMATS
from ..tensors.tensor import Tensor
from ..text.gguf_saving import tokenizer_to_gguf
from ..weights.checkpoint import Checkpoint, TensorInfo
from ..weights.formats.gguf_head import GGUF_NUMBERS, begin_gguf, pad_gguf
from ..weights.saving import replacing
from .gguf import FREQUENCIES, LONG, SHORT, gguf_name, paths, reshaped, turn_by
from .gguf_changes import CHANGES, TensorChange, changes
from .gguf_pieces import pieces
from .gguf_undoing import parameter_at
from .loading import check_names
from .rotary import kind_of

# Matrices that llama.cpp has in float32 alone, by ends of names without .weight.
_FLOATS = (
    "_norm", "ffn_gate_inp", "ffn_gate_inp_shexp", "position_embd", "ssm_conv1d", "shortconv.conv",
    "token_types", "attn_rel_b",
)  # fmt: skip
# Fields that what a configuration says of each layer follows from, or that count for making and training a
# model alone.
_FOLLOWED = frozenset({
    "attention_probs_dropout_prob", "hidden_dropout_prob", "id2label", "labels", "num_labels", "pad_token_id",
    "block_auto_adjust_ff_dim", "block_ffn_dim_multiplier", "block_multiple_of", "chunk_size",
    "decoder_sparse_step", "expand", "full_attention_interval", "full_attn_idxs", "head_dim", "hidden_act",
    "hidden_activation", "intermediate_size", "layer_types", "max_window_layers", "mlp_only_layers",
    "multi_query", "new_decoder_architecture", "no_rope_layer_interval", "no_rope_layers",
    "num_key_value_heads", "num_ln_in_parallel_attn", "original_max_position_embeddings", "parallel_attn",
    "partial_rotary_factor", "query_pre_attn_scalar", "rope_local_base_freq", "rope_parameters",
    "rope_scaling", "rope_theta", "scale_attn_weights", "shared_expert_intermediate_size", "sliding_window",
    "sliding_window_pattern", "time_step_floor", "time_step_init_scheme", "time_step_max", "time_step_min",
    "time_step_rank", "time_step_scale", "use_sliding_window",
})  # fmt: skip
_BY_LAYER = ("window", "turning", "state", "is_sparse", "is_linear", "is_conv")


class _Entry(NamedTuple):
    """A tensor of the file: its name, shape and dtype, and what of the model it is."""

    name: str
    shape: tuple[int, ...]
    kind: str
    source: str
    change: TensorChange


def save_gguf(
    model: Any,
    reader: type[Any] | None,
    filename: str | PathLike,
    format: str | Mapping[str, str | None] | None,
    tokenizer: Any,
    read: Callable[[str], Tensor] | None = None,
    keys: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """What `PretrainedModel.save_gguf` does; ``reader`` is what such a file will be read as, and ``read``
    gives parameters of a model that is not loaded. ``keys`` come to those of the model; those that begin with
    a dot are the architecture's."""
    if reader is None:
        raise ArgumentError(
            f"save_gguf: llama.cpp has no file for {type(model).__name__}, or it is not read here. "
            "docs/models.md lists the architectures of GGUF files; save_pretrained() writes a folder."
        )
    architecture = type(model).gguf_like or reader.gguf_architectures[0]
    formats = {"*": format} if isinstance(format, str) or format is None else format
    for name in formats.values():
        if name is not None and name not in ENCODERS and name != "float32":
            raise DTypeError(
                f"save_gguf: floats are not encoded to {name!r}. There are float32, {', '.join(ENCODERS)}."
            )
    if any(input_quantization(module) is not None for module in model.modules()):
        raise ArgumentError(
            "save_gguf: layers of this model round their input, which a GGUF cannot say. Call "
            "pellucid.ao.quantization.float_inputs(model) first; save_pretrained() keeps it."
        )
    factors = _factors(model)
    entries = _entries(model, reader, formats)
    metadata = _metadata(model, architecture, tokenizer)
    architecture = metadata["general.architecture"]
    metadata |= {f"{architecture}{k}" if k[0] == "." else k: v for k, v in (keys or {}).items()}
    tensors = [(e.name, e.shape, GGUF_NUMBERS[e.kind]) for e in entries]
    tensors[:0] = [(name, values.shape, 0) for name, values in factors.items()]
    _check_read(model, reader, metadata, tensors, entries, factors)
    with replacing(filename) as file:
        begin_gguf(file, metadata, tensors)
        for values in factors.values():
            pad_gguf(file, values)
        for entry in entries:
            written, value = 0, read(entry.source) if read is not None else parameter_at(model, entry.source)
            for piece in pieces(value, entry.change, entry.kind):
                file.write(piece.data)
                written += piece.nbytes
            pad_gguf(file, b"", written)
    return {e.name: e.kind for e in entries}


# What is written


def _entries(model: Any, reader: type[Any], formats: Mapping[str, str | None]) -> list[_Entry]:
    config = model.config
    settings = []
    for setting, value in getattr(reader.config_class, "gguf_settings", {}).items():
        if getattr(config, setting, value) != value:
            if setting not in CHANGES:
                raise ArgumentError(
                    f"save_gguf: {setting} is {getattr(config, setting)}, and a GGUF of this architecture "
                    f"always means {value}. Write a folder by save_pretrained()."
                )
            settings.append(setting)
    names, found, unknown = model.gguf_paths(), [], []
    ties = {
        path
        for path, source in model.gguf_ties().items()
        if parameter_at(model, path) is parameter_at(model, source)
    }
    for path, value in model.state_dict().items():
        if path in ties or path.startswith(model.gguf_passed):
            continue
        for change in changes(model, path, settings):
            name = gguf_name(change.path, names)
            if name is None:
                unknown.append(path)
                continue
            shape = model.gguf_shape(change.path, _shape(value, change))
            found.append(_Entry(name, shape, _kind(name, shape, value, change, formats), path, change))
    if unknown:
        some = ", ".join(unknown[:5]) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
        raise ArgumentError(
            f"save_gguf: a GGUF has no place for {some}. Adapters become part of a model by "
            "merge_and_unload(); save_pretrained() writes other weights, too."
        )
    asked = {name for name in formats.values() if name not in (None, "float32")}
    if asked and not any(e.kind in asked for e in found):
        raise ArgumentError(
            f"save_gguf: no matrix's name and columns fit {dict(formats)}: columns are whole blocks. Give a "
            "format with smaller ones, such as 'q8_0' of 32 columns, or 'f16'."
        )
    return found


def _shape(value: Tensor, change: TensorChange) -> tuple[int, ...]:
    """The shape of a parameter that was changed, without axes of one element in the middle."""
    shape = tuple(value.shape)
    if change.parts:
        wide = shape[0] // change.parts if change.columns is None else len(change.columns)
        shape = (shape[1] * change.parts, wide)
    if change.rows is not None and prod(shape) != len(change.rows) * prod(shape[1:]):
        shape = (len(change.rows), *shape[1:]) if len(shape) == 1 or change.parts else _fewer(shape, change)
    return tuple(n for k, n in enumerate(shape) if n != 1 or k in (0, len(shape) - 1))


def _fewer(shape: tuple[int, ...], change: TensorChange) -> tuple[int, ...]:
    """Of a matrix fewer rows; of a table with a row for each expert fewer columns."""
    assert change.rows is not None
    kept = len(change.rows)
    return (shape[0], kept // shape[0]) if change.path.endswith(".bias") else (kept, *shape[1:])


def _kind(
    name: str, shape: tuple[int, ...], value: Tensor, change: TensorChange, formats: Mapping[str, str | None]
) -> str:
    """The dtype of a tensor in the file."""
    is_own = value.dtype.is_quantized and value.dtype.name in GGUF_NUMBERS
    stem, _, ending = name.rpartition(".")
    asked = next((f for pattern, f in formats.items() if fnmatchcase(name, pattern)), None)
    if len(shape) < 2 or ending != "weight" or stem.endswith(_FLOATS):
        stays = is_own and change.keeps_rows and asked is None and ending == "weight"
        return value.dtype.name if stays else "float32"
    if asked is not None and (asked == "float32" or shape[-1] % BLOCK_FORMATS[asked].block == 0):
        return asked
    if value.dtype.is_quantized:
        if is_own and (change.keeps_rows or value.dtype.name in ("f16", "bf16")):
            return value.dtype.name
        raise ArgumentError(
            f"save_gguf: {change.path} is {value.dtype}, whose blocks do not stay what they are in a GGUF of "
            "this architecture. Say by format= what all become, such as 'q8_0' or 'f16'."
        )
    return {"float16": "f16", "bfloat16": "bf16"}.get(value.dtype.name, "float32")


def _factors(model: Any) -> dict[str, np.ndarray]:
    """By how much positions turn slower, by name of the tensor that a GGUF has for it."""
    rotary = getattr(getattr(model, "decoder", None), "rotary_emb", None)
    if rotary is None:
        return {}
    kind = kind_of(rotary.scaling)
    if rotary.by_length:
        if "phi3" not in type(model).gguf_architectures:
            return {}  # llama.cpp has them for no other: what reads the file again will tell
        named = {LONG: "long_factor", SHORT: "short_factor"}
        return {name: np.asarray(rotary.scaling[key], np.float32) for name, key in named.items()}
    if kind in ("llama3", "longrope") or (model.origin is not None and model.origin.factors):
        return {FREQUENCIES: rotary.slowed().astype(np.float32)}
    return {}


def _metadata(model: Any, architecture: str, tokenizer: Any) -> dict[str, Any]:
    """Values by key: those of the file that the model came from, else what its configuration says."""
    origin, config = model.origin, model.config
    if origin is not None and origin.head:
        found = dict(weights.open(origin.head).metadata)
    else:
        found = {"general.architecture": architecture, "general.type": "model"}
        found |= {f"{architecture}.{key}": value for key, value in config.to_gguf().items()}
        found["tokenizer.ggml.model"] = "none"
        eos = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
        eos = eos[0] if isinstance(eos, tuple) else eos
        if eos is not None:
            found["tokenizer.ggml.eos_token_id"] = eos
    if tokenizer is not None:
        found = {key: value for key, value in found.items() if not key.startswith("tokenizer.")}
        found |= tokenizer_to_gguf(tokenizer, config.vocab_size)
    if getattr(config, "type_vocab_size", 0):
        found["tokenizer.ggml.token_type_count"] = config.type_vocab_size
    # llama.cpp asks for numbers of 32 bits.
    return {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in found.items()}


# Whether it says the same


def _check_read(
    model: Any,
    reader: type[Any],
    metadata: dict[str, Any],
    tensors: list[tuple[str, tuple[int, ...], int]],
    entries: list[_Entry],
    factors: Mapping[str, np.ndarray],
) -> None:
    """Refuse a model that would be another one when its file is read."""
    kinds = {e.name: _plain_name(e.kind) for e in entries}
    infos = [TensorInfo(name, shape, kinds.get(name, "float32"), 0, 0) for name, shape, _ in tensors]
    checkpoint = Checkpoint("save_gguf", "gguf", infos, metadata, [])
    config = reader.config_class.from_gguf(checkpoint)
    settings = getattr(reader.config_class, "gguf_settings", {})

    def made() -> Any:
        with Device("meta"):
            made_of = reader(config)
        made_of.fit(checkpoint)
        return made_of

    # Ctrl-C where the `with` ends may leave its device, but not in the program's context.
    other = copy_context().run(made)
    if factors:
        turn_by(other, checkpoint, factors)
    differing = [name for name, mine, theirs in _sayings(model, other, settings) if not _equal(mine, theirs)]
    if differing:
        raise ArgumentError(
            f"save_gguf: a GGUF of {metadata['general.architecture']} cannot say what {', '.join(differing)} "
            f"of this {type(model).__name__} is. Write a folder by save_pretrained()."
        )
    names = paths(checkpoint, other)
    wanted = dict(other.named_parameters())
    wanted |= {path: b for path, b in other.named_buffers() if path in other.state_dict()}
    check_names(wanted, reshaped(checkpoint, names, other), names, {})


def _plain_name(kind: str) -> str:
    """As the reader calls it."""
    return {"f16": "float16", "bf16": "bfloat16"}.get(kind, kind)


def _sayings(model: Any, other: Any, settings: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What two models compute by: names, and values of both."""
    mine, theirs = model.config, other.config
    passed = {*settings, *_FOLLOWED, *mine.beside, "module_names"}
    for f in fields(mine):
        if f.name in mine.table and hasattr(theirs, f.name) and f.name not in passed:
            yield f.name, getattr(mine, f.name), getattr(theirs, f.name)
    for name in dir(type(mine)):
        if isinstance(getattr(type(mine), name), property) and hasattr(theirs, name) and name not in passed:
            yield name, getattr(mine, name), getattr(theirs, name)
    for name in _BY_LAYER:
        if hasattr(mine, name) and hasattr(theirs, name):
            count = range(min(mine.num_hidden_layers, theirs.num_hidden_layers))
            own, read = ([getattr(c, name)(k) for k in count] for c in (mine, theirs))
            yield name, own, read
    for name in sorted(filter(None, getattr(getattr(model, "decoder", None), "turnings", ()))):
        turning = getattr(model.decoder, name), getattr(other.decoder, name, None)
        yield "rope_scaling", True, turning[1] is not None and turning[0].turns_as(turning[1])


def _equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float):
        return isclose(mine, theirs, rel_tol=1e-6)
    if isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
        return list(mine) == list(theirs)
    return mine == theirs
