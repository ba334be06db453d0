"""Sentence embeddings: an encoder, pooling, normalization, as sentence-transformers saves them.

Reimers and Gurevych 2019, "Sentence-BERT". Serves MiniLM, MPNet, E5, BGE and GTE.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from .. import weights
from ..autograd.grad_mode import no_grad
from ..device.steps import later, now
from ..errors import ArgumentError, FormatError, WeightError
from ..nn import functional as F
from ..nn.modules.container import Sequential
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops.elementwise.comparison import where
from ..ops.shape.joining import cat
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from ..text import AutoTokenizer
from ..weights.document import parse_object
from ..weights.fields import FLAG, check, listed, named, record, shown, text, whole
from .auto import AutoModel
from .gguf_saving import save_gguf
from .loading import LoadOptions, load_tensors

# How hidden states (batch, time, dim) and a mask (batch, time, 1) of 0 and 1 become (batch, dim).
POOLING: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls_token": lambda x, mask: x[:, 0],
    "max_tokens": lambda x, mask: where(mask > 0, x, -1e9).amax(1),
    "mean_tokens": lambda x, mask: (x * mask).sum(1) / mask.sum(1).clamp(min=1e-9),
    "mean_sqrt_len_tokens": lambda x, mask: (x * mask).sum(1) / mask.sum(1).clamp(min=1e-9).sqrt(),
}
_MODE = "pooling_mode_"
_MODULES = {"modules": listed(record({"path": text(1000), "type": text(1000)}, "path", "type"), 64)}
_MODES = (*POOLING, "weightedmean_tokens", "lasttoken")
_POOLING = {**{_MODE + mode: FLAG for mode in _MODES}, "include_prompt": FLAG}
# What a GGUF calls ways of pooling, one of which is of decoders alone.
GGUF_POOLING = {1: "mean_tokens", 2: "cls_token", 3: "lasttoken"}
_NORMALIZE = "pellucid.normalize_embeddings"  # which llama.cpp has no key for
_DENSE = {
    "in_features": whole(1), "out_features": whole(1), "bias": FLAG, "activation_function": text(1000),
    "module_input_name": text(1000), "module_output_name": text(1000),
}  # fmt: skip
_VECTORS = (None, "sentence_embedding")  # what a product behind the pooling reads and writes
_ACTIVATIONS = {name: getattr(F, name.lower()) for name in ("Tanh", "ReLU", "GELU", "SiLU", "Sigmoid")}
_LENGTH = {"max_seq_length": whole(1)}
_PROMPTS = {"prompts": named(text(1000), text(), 1000), "default_prompt_name": text(1000)}


class SentenceParts(NamedTuple):
    """What follows the encoder: ways of pooling, folders of products, and whether vectors are normed."""

    pooling: tuple[str, ...] = ("mean_tokens",)
    dense: tuple[str, ...] = ()
    normalize: bool = False


class Dense(Linear):
    """A product of vectors with a weight behind the pooling, and an activation.

    Args:
        in_features, out_features, bias: as of `Linear`.
        activation: "Identity", or one of "Tanh", "ReLU", "GELU", "SiLU" and "Sigmoid".
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, activation: str = "Tanh"):
        super().__init__(in_features, out_features, bias=bias)
        self.activation = activation

    def forward(self, input: Tensor) -> Tensor:
        """Vectors (batch, in_features) to (batch, out_features)."""
        x = super().forward(input)
        return x if self.activation == "Identity" else _ACTIVATIONS[self.activation](x)


class SentenceTransformer(Module):
    """Texts to vectors, whose products say how alike the texts are.

    Args:
        model: an encoder.
        tokenizer: the model's.
        pooling: names of `POOLING`, whose results lie one behind the other.
        normalize: whether vectors have the length 1.
        prompts: by name, what may come before a text, such as ``"query: "``.
        prompt_name: of the one that does if none is given.
        length: tokens at which texts are cut; as many as the model has positions if None.
        dense: modules that change the vectors before they are normed, such as `Dense`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        pooling: tuple[str, ...] = ("mean_tokens",),
        normalize: bool = False,
        prompts: Mapping[str, str] | None = None,
        prompt_name: str | None = None,
        length: int | None = None,
        dense: Sequence[Module] = (),
    ):
        super().__init__()
        self.dense = Sequential(*dense)
        self.model, self.tokenizer, self.normalize = model, tokenizer, normalize
        self.pooling, self.prompts, self.prompt_name = pooling, dict(prompts or {}), prompt_name
        self.length = length or model.config.positions

    @classmethod
    def from_pretrained(cls, source: Any, **settings: Any) -> SentenceTransformer:
        """Load a model of sentence-transformers; a plain encoder gives the mean of all positions.

        A GGUF says how it pools; its vectors are normed, as llama.cpp's are, unless `save_gguf` wrote that
        they are not.

        Args:
            source: a folder, a GGUF, a URL or a hub id.
            settings: as in `AutoModel.from_pretrained`.

        Raises:
            FormatError: it has parts that are not known, such as a table of words in the encoder's place.

        Example:
            >>> model = SentenceTransformer.from_pretrained("BAAI/bge-small-en-v1.5")  # doctest: +SKIP
            >>> a, b = model.encode(["A cat sits.", "A kitten rests."])  # doctest: +SKIP
        """
        return now(_load(cls, source, settings))

    @classmethod
    async def from_pretrained_async(cls, source: Any, **settings: Any) -> SentenceTransformer:
        """The awaitable twin of `from_pretrained`."""
        return await later(_load(cls, source, settings))

    def save_gguf(
        self, filename: str | PathLike, *, format: str | Mapping[str, str | None] | None = None
    ) -> dict[str, str]:
        """Write one GGUF file with the tokenizer and how the states are pooled. Waits for the device.

        Prompts, and a length of texts below the model's, have no place in a GGUF.

        Args:
            filename, format: as in `PretrainedModel.save_gguf`.

        Returns:
            The dtype of each tensor by its name in the file.

        Raises:
            ArgumentError: it pools as no GGUF says, puts a prompt before every text, or as
                `PretrainedModel.save_gguf`.
        """
        if self.prompt_name is not None:
            raise ArgumentError(
                f"save_gguf: the prompt {self.prompt_name!r} comes before every text, which no GGUF says. "
                "Set prompt_name to None, and give the prompt to encode()."
            )
        keys = gguf_keys(SentenceParts(self.pooling, tuple(self.dense._modules), self.normalize))
        return save_gguf(self.model, self.model.gguf_reader(), filename, format, self.tokenizer, keys=keys)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **inputs: Tensor) -> Tensor:
        """Vectors (batch, dim) of ids (batch, time).

        Args:
            input_ids, attention_mask, inputs: as in `Encoder.forward`.
        """
        x = self.model(input_ids, attention_mask, **inputs).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(x.dtype)
        pooled = self.dense(cat([POOLING[mode](x, mask) for mode in self.pooling], -1))
        return F.normalize(pooled, dim=-1) if self.normalize else pooled

    def encode(
        self,
        sentences: str | list[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
    ) -> Tensor:
        """Vectors of texts: (texts, dim), or (dim,) of one. Nothing is read from the device.

        Args:
            sentences: a text, or several.
            prompt_name: of one of ``prompts`` that comes before each.
            prompt: itself.
            batch_size: texts that run together.

        Raises:
            ArgumentError: there is no text, or no such prompt.
        """
        texts = [sentences] if isinstance(sentences, str) else list(sentences)
        name = prompt_name or self.prompt_name
        if prompt is None and name is not None:
            if name not in self.prompts:
                raise ArgumentError(
                    f"encode: there is no prompt {name!r}. There are {', '.join(self.prompts) or 'none'}."
                )
            prompt = self.prompts[name]
        if not texts or batch_size < 1:
            raise ArgumentError("encode: give at least one text, and a batch_size from 1 on.")
        typed = getattr(self.model.config, "type_vocab_size", 0) > 1
        found = []
        with no_grad():
            for k in range(0, len(texts), batch_size):
                encoded = self.tokenizer(
                    [(prompt or "") + one for one in texts[k : k + batch_size]],
                    padding=True, truncation=True, max_length=self.length, return_token_type_ids=typed,
                )  # fmt: skip
                given = {n: tensor(rows, device=self.model.device) for n, rows in encoded.items()}
                found.append(self(**given))
        vectors = cat(found)
        return vectors[0] if isinstance(sentences, str) else vectors

    def similarity(self, a: Tensor, b: Tensor) -> Tensor:
        """Cosines of all vectors (n, dim) with all others (m, dim): (n, m)."""
        return F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).mT


def _load(
    cls: type[SentenceTransformer], source: Any, settings: dict[str, Any]
) -> Generator[tuple, Any, SentenceTransformer]:
    where = {k: settings.pop(k) for k in ("revision", "token", "endpoint", "filename") if k in settings}
    folder: weights.Folder = yield weights, "open_folder", (source,), where
    with folder:
        return (yield from _of_folder(cls, folder, source, where, settings))


def _of_folder(
    cls: type[SentenceTransformer],
    folder: weights.Folder,
    source: Any,
    where: dict[str, Any],
    settings: dict[str, Any],
) -> Generator[tuple, Any, SentenceTransformer]:
    is_gguf = folder.checkpoint.format == "gguf"
    known = of_gguf(folder) if is_gguf else ((yield from modules(folder)) or SentenceParts())
    limits = (yield folder, "json", ("sentence_bert_config.json",), {}) or {}
    prompts = (yield folder, "json", ("config_sentence_transformers.json",), {}) or {}
    check(f"{folder.name}/sentence_bert_config.json", limits, _LENGTH)
    check(f"{folder.name}/config_sentence_transformers.json", prompts, _PROMPTS)
    model = yield AutoModel, "from_pretrained", (folder,), settings
    tokenizer = yield AutoTokenizer, "from_pretrained", (folder,), {}
    length = limits.get("max_seq_length")
    dense = []
    for path in known.dense:
        dense.append((yield from _dense(folder, path, source, where, model.device)))
    return cls(
        model, tokenizer, known.pooling, known.normalize, prompts.get("prompts"),
        prompts.get("default_prompt_name"), min(length, model.config.positions) if length else None, dense,
    )  # fmt: skip


def _dense(
    folder: Any, path: str, source: Any, where: dict[str, Any], device: Any
) -> Generator[tuple, Any, Dense]:
    """Steps that load a product that lies in a folder of its own."""
    name = f"{folder.name}/{path}/config.json"
    keys = yield folder, "json", (f"{path}/config.json",), {}
    if keys is None:
        raise FormatError(f"{name}: modules.json names it, and it is not there. Download it again.")
    check(name, keys, _DENSE, "in_features", "out_features")
    kind = (keys.get("activation_function") or "Tanh").rpartition(".")[2]
    ends = keys.get("module_input_name"), keys.get("module_output_name")
    if (kind != "Identity" and kind not in _ACTIVATIONS) or not all(end in _VECTORS for end in ends):
        raise FormatError(
            f"{name}: has the activation {shown(kind)} between {shown(ends)}; known are Identity, "
            f"{', '.join(_ACTIVATIONS)}, between sentence_embedding. Pool the states of AutoModel instead."
        )
    made = Dense(keys["in_features"], keys["out_features"], keys.get("bias", True), kind)
    try:
        step = {**where, "filename": f"{path}/model.safetensors"}
        checkpoint = yield weights, "open", (source,), step
    except weights.MissingFile:
        checkpoint = yield weights, "open", (source,), {**where, "filename": f"{path}/pytorch_model.bin"}
    try:
        wanted = {f"linear.{n}": tuple(p.shape) for n, p in made.named_parameters()}
        there = {info.name: tuple(info.shape) for info in checkpoint.values()}
        if there != wanted:
            raise WeightError(f"{checkpoint.name}: has {shown(there)}, and {shown(wanted)} was expected.")
        options = LoadOptions(device, None, None, None, 1)
        tensors = yield from load_tensors(checkpoint, list(checkpoint.values()), options)
    finally:
        checkpoint.close()
    for n, x in tensors.items():
        setattr(made, n.removeprefix("linear."), Parameter(x.float(), requires_grad=False))
    return made


def modules(
    folder: Any, known: Collection[str] = tuple(POOLING)
) -> Generator[tuple, Any, SentenceParts | None]:
    """Steps that read what follows a folder's encoder; None of a plain model.

    Args:
        folder: of `pellucid.weights.open_folder`.
        known: ways of pooling.

    Raises:
        FormatError: it has parts that are not known, or another order of them.
    """
    data = yield folder, "read", ("modules.json",), {}
    if data is None:
        return None
    name = f"{folder.name}/modules.json"
    found = parse_object(name, b'{"modules": ' + data + b"}")  # the file is a list
    check(name, found, _MODULES, "modules")
    kinds = [m["type"].rpartition(".")[2] for m in found["modules"]]
    paths = [m["path"] for m in found["modules"]]
    count = kinds.count("Dense")
    normalize = "Normalize" in kinds
    if kinds != ["Transformer", "Pooling", *["Dense"] * count, *["Normalize"] * normalize]:
        raise FormatError(
            f"{name}: has the parts {shown(kinds)}; known are Transformer, Pooling, any number of Dense, and "
            "Normalize, in this order. Load another model, or its encoder by AutoModel."
        )
    pooling = yield from _pooling(folder, paths[1], known)
    return SentenceParts(pooling, tuple(paths[2 : 2 + count]), normalize)


def of_gguf(folder: Any) -> SentenceParts:
    """What a GGUF says of what follows the encoder.

    Args:
        folder: of `pellucid.weights.open_folder`.

    Raises:
        FormatError: it pools otherwise.
    """
    metadata = folder.checkpoint.metadata
    key = f"{metadata.get('general.architecture')}.pooling_type"
    kind, normalize = metadata.get(key, 1), metadata.get(_NORMALIZE, True)
    known = {number: name for number, name in GGUF_POOLING.items() if name in POOLING}
    if not isinstance(kind, int) or kind not in known or not isinstance(normalize, bool):
        raise FormatError(
            f"{folder.name}: {key} is {shown(kind)} and {_NORMALIZE} {shown(normalize)}; known are "
            f"{shown(known)}, and true or false. Pool the states of AutoModel instead."
        )
    return SentenceParts((known[kind],), (), normalize)


def gguf_keys(parts: SentenceParts) -> dict[str, Any]:
    """The keys of a GGUF, those of its architecture without its name, that `of_gguf` reads.

    Args:
        parts: what follows the encoder.

    Raises:
        ArgumentError: no GGUF says so.
    """
    alone = "Write the encoder alone: AutoModel.from_pretrained(source).save_gguf(file)."
    if parts.dense:
        raise ArgumentError(
            f"save_gguf: products behind the pooling (Dense) have no place in a GGUF. {alone}"
        )
    kind = next((k for k, name in GGUF_POOLING.items() if (name,) == parts.pooling), None)
    if kind is None:
        raise ArgumentError(
            f"save_gguf: pools by {shown(parts.pooling)}, and a GGUF knows "
            f"{', '.join(GGUF_POOLING.values())}. {alone}"
        )
    return {".pooling_type": kind, _NORMALIZE: parts.normalize}


def _pooling(folder: Any, path: str, known: Collection[str]) -> Generator[tuple, Any, tuple[str, ...]]:
    name = f"{path}/config.json"
    keys = yield folder, "json", (name,), {}
    if keys is None:
        raise FormatError(f"{folder.name}: modules.json names {name}, which is not there. Download it again.")
    check(f"{folder.name}/{name}", keys, _POOLING)
    chosen = tuple(mode for mode in _MODES if keys.get(_MODE + mode))
    if not chosen or set(chosen) - set(known) or keys.get("include_prompt") is False:
        raise FormatError(
            f"{folder.name}/{name}: pools by {shown(chosen)}; known are {', '.join(known)}, prompts "
            "included. Pool the states of AutoModel instead."
        )
    return chosen
