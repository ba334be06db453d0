"""What models of checkpoints share: the Auto class that loads them, tied weights, names of tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar

from ..nn.modules.module import Module
from .config import Config
from .saving import Origin, save_model

# Endings of tensors that no model needs: they can be computed.
_DERIVED = (
    "rotary_emb.inv_freq", "attn.bias", "attn.masked_bias", "attention.bias", "attention.masked_bias",
    "embeddings.position_ids", "coder.version",
)  # fmt: skip
# What the first BERT called the weights of norms.
_RENAMED = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


@dataclass
class Registry:
    """The models of one Auto class, by the model_type of a config.json and by the architecture of a GGUF."""

    model_types: dict[str, type[Any]] = field(default_factory=dict)
    gguf_architectures: dict[str, type[Any]] = field(default_factory=dict)


REGISTRIES: defaultdict[str, Registry] = defaultdict(Registry)


class PretrainedModel(Module):
    """A model of a checkpoint. Its Auto class knows a subclass once it is defined.

    ``auto`` is the name of the Auto class, ``config_class`` what reads the configuration. ``model_types`` are
    those of ``config.json`` that it is for, ``gguf_architectures`` those of GGUF files;
    ``gguf_like`` is the one as which a model is written that has none of its own. ``gguf_names`` has their
    tensors as attribute paths, without ``.weight``: ``{}`` is the number of a layer; what begins like one of
    ``gguf_passed`` is not written. ``prefix`` is the
    attribute of the layers below the head, as checkpoints name it, and ``passed`` are beginnings of names
    below it that a model may have no use for. ``tied`` says which parameters are others, where the
    configuration ties them. ``points`` says what is called otherwise than in Llama, for
    `pellucid.lens.points`.
    """

    auto: ClassVar[str]
    config_class: ClassVar[type[Config]]
    model_types: ClassVar[tuple[str, ...]] = ()
    gguf_architectures: ClassVar[tuple[str, ...]] = ()
    gguf_like: ClassVar[str] = ""
    gguf_names: ClassVar[Mapping[str, str]] = {}
    gguf_passed: ClassVar[tuple[str, ...]] = ()
    prefix: ClassVar[str] = ""
    passed: ClassVar[tuple[str, ...]] = ()
    tied: ClassVar[Mapping[str, str]] = {}
    points: ClassVar[Mapping[str, str | None]] = {}
    config: Any
    # Of a model that was loaded.
    origin: Origin | None = None

    def __init_subclass__(cls, **settings: Any):
        super().__init_subclass__(**settings)
        for attribute in ("model_types", "gguf_architectures"):
            # A subclass of Llama is not Llama: only what its own body says counts.
            names = vars(cls).get(attribute, ())
            if isinstance(names, str):
                raise TypeError(f"{cls.__name__}: {attribute} is {names!r}. Give a tuple of names.")
            if names:
                getattr(REGISTRIES[cls.auto], attribute).update(dict.fromkeys(names, cls))

    def gguf_paths(self) -> Mapping[str, str]:
        """Attribute paths by name in a GGUF, both without ``.weight``."""
        return self.gguf_names

    def folder_names(self, path: str, shape: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the tensors that a folder has of a parameter, in the order of its rows.

        Args:
            path, shape: of the parameter.
        """
        return [(path, shape)]

    def lay_out_floats(self) -> None:
        """Have weights as a folder of floats has them, where one of quantized weights has them otherwise."""

    def gguf_shape(self, path: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape that a GGUF has of a parameter whose own it is, where axes are others."""
        return shape

    @property
    def device(self):
        """Where the parameters are."""
        return next(self.parameters()).device

    def ties(self) -> Mapping[str, str]:
        """The parameters that are others, by path."""
        return self.tied if getattr(self.config, "tie_word_embeddings", False) else {}

    def gguf_ties(self) -> Mapping[str, str]:
        """Those of `ties` that a GGUF leaves out."""
        return self.ties()

    def tie_weights(self) -> None:
        """Let parameters be others where the configuration says so: such as the head's weight."""
        for path, source in self.ties().items():
            owner, _, name = path.rpartition(".")
            setattr(self.get_submodule(owner), name, self.get_parameter(source))

    def fit(self, names: Iterable[str]) -> None:
        """Leave out what a model may lack and a checkpoint with these names does not have."""

    def paths(self, names: Iterable[str]) -> dict[str, str]:
        """The attribute path of every tensor of a checkpoint, but for those that the model has no use for.

        A head's checkpoint also fills the model below it, and the other way round. What is no part of the
        model and not of another head either keeps its name, so that the load reports it.

        Args:
            names: of the checkpoint's tensors.
        """
        names, own, ties = list(names), set(self.state_dict()), self.ties()
        below = f"{self.prefix}." if self.prefix else None
        has_head = below is not None and any(name.startswith(below) for name in names)
        found: dict[str, str] = {}
        for name in names:
            path = name
            for old, new in _RENAMED.items():
                path = path.replace(old, new)
            inner = path.removeprefix(below or "")
            match = next((p for p in (path, inner, f"{below}{path}") if p in own), None)
            if match is not None:
                found[name] = match
            elif not (
                path.endswith(_DERIVED) or (has_head and inner == path) or inner.startswith(self.passed)
            ):
                found[name] = path
        there: set[str] = set(found.values())
        needed: dict[str, str] = {}
        for name, path in found.items():
            source = ties.get(path)
            if source is None:
                needed[name] = path
            elif source not in there:
                needed[name] = source
                there.add(source)
        return needed

    def save_pretrained(self, save_directory: str | PathLike, *, max_shard_size: int | str = "5GB") -> None:
        """Write a folder that `from_pretrained`, here and in transformers, loads. Waits for the device.

        A model of a folder is written under the names and with the keys of that folder, ``config.json``,
        ``generation_config.json`` and safetensors; one of a GGUF as the folder that the GGUF was made of:
        what llama.cpp's converter changed is changed back. Quantized weights keep their bits, as
        `pellucid.weights.quantize` stores them: such a folder opens here, not in transformers. Tied weights
        are written once. The tokenizer has its own `save_pretrained`.

        Args:
            save_directory: a folder; it is made, and files of the same names are replaced.
            max_shard_size: bytes of weights in a file, or a text such as "500MB"; more become several files.

        Raises:
            ArgumentError: the model is of a GGUF that has quantized weights whose columns would have to
                move; or an argument is no folder or no size.

        Source: https://huggingface.co/docs/transformers/main_classes/model, "save_pretrained"

        Example:
            >>> import os, tempfile
            >>> import pellucid as torch
            >>> from pellucid.models import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
            >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
            >>> with torch.device("cpu"):
            ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))
            >>> folder = tempfile.mkdtemp()
            >>> model.save_pretrained(folder)
            >>> sorted(os.listdir(folder))
            ['config.json', 'generation_config.json', 'model.safetensors']
            >>> AutoModelForCausalLM.from_pretrained(folder, device="cpu").config == model.config
            True
        """
        save_model(self, save_directory, max_shard_size)

    def save_gguf(
        self,
        filename: str | PathLike,
        *,
        format: str | Mapping[str, str | None] | None = None,
        tokenizer: Any = None,
    ) -> dict[str, str]:
        """Write one GGUF file, which `from_pretrained` and llama.cpp load. Waits for the device.

        Names, layouts and keys are those of llama.cpp. A model of a GGUF keeps the keys of that file, and
        its tokenizer, if no other is given. Norms, biases, routers and other small tensors are float32. A few
        rows are in memory at a time. The file is complete or not there.

        Args:
            filename: where to, usually with the ending ``.gguf``.
            format: of matrices: "float32" or a name of `pellucid.quant.ENCODERS` such as "q8_0", or names by
                patterns of tensors such as ``"*ffn_down*"``, of which the first that matches counts; None
                keeps what a matrix has. Rows that are no whole blocks stay, too.
            tokenizer: the model's; its vocabulary, special tokens and chat template go into the file.

        Returns:
            The dtype of each tensor by its name in the file.

        Raises:
            ArgumentError: llama.cpp has no such architecture, or no key for what the configuration says; the
                model has weights that it has no name for; no matrix fits the format; or one is quantized in a
                way that a GGUF does not have, and ``format`` does not say what it becomes.
            DTypeError: there is no encoder of that name.
            FormatError: the tokenizer is of a kind that GGUF files here do not have.

        Source: https://github.com/ggml-org/llama.cpp/blob/master/convert_hf_to_gguf.py

        Example:
            >>> import os, tempfile
            >>> import pellucid as torch
            >>> from pellucid.models import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
            >>> sizes = dict(vocab_size=16, hidden_size=32, intermediate_size=64, num_attention_heads=2)
            >>> with torch.device("cpu"):
            ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))
            >>> file = os.path.join(tempfile.mkdtemp(), "tiny.gguf")
            >>> model.save_gguf(file, format="q8_0")["blk.0.ffn_up.weight"]
            'q8_0'
            >>> AutoModelForCausalLM.from_pretrained(file, device="cpu").config.hidden_size
            32
        """
        from .gguf_saving import save_gguf

        return save_gguf(self, self.gguf_reader(), filename, format, tokenizer)

    @classmethod
    def gguf_reader(cls) -> type[Any] | None:
        """The model as which a GGUF of this one is read; None where there is no such file."""
        own = vars(cls).get("gguf_architectures", ()) or (cls.gguf_like,)
        return REGISTRIES[cls.auto].gguf_architectures.get(own[0])
