"""Sentence embeddings: an encoder, pooling, normalization, as sentence-transformers saves them.

Reimers and Gurevych 2019, "Sentence-BERT". Serves MiniLM, MPNet, E5, BGE and GTE.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from os import PathLike
from typing import Any

from .. import weights
from ..autograd.grad_mode import no_grad
from ..device.steps import later, now
from ..errors import ArgumentError, FormatError
from ..nn import functional as F
from ..nn.modules.module import Module
from ..ops.elementwise.comparison import where
from ..ops.shape.joining import cat
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from ..text import AutoTokenizer
from ..weights.document import parse_object
from ..weights.fields import FLAG, check, listed, named, record, shown, text, whole
from .auto import AutoModel
from .gguf_saving import save_gguf

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
_LENGTH = {"max_seq_length": whole(1)}
_PROMPTS = {"prompts": named(text(1000), text(), 1000), "default_prompt_name": text(1000)}


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
    ):
        super().__init__()
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
            FormatError: it has parts that are not known, such as a product behind the pooling.

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
        keys = gguf_keys(self.pooling, self.normalize)
        return save_gguf(self.model, self.model.gguf_reader(), filename, format, self.tokenizer, keys=keys)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **inputs: Tensor) -> Tensor:
        """Vectors (batch, dim) of ids (batch, time).

        Args:
            input_ids, attention_mask, inputs: as in `Encoder.forward`.
        """
        x = self.model(input_ids, attention_mask, **inputs).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(x.dtype)
        pooled = cat([POOLING[mode](x, mask) for mode in self.pooling], -1)
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
    where = {k: settings[k] for k in ("revision", "token", "endpoint", "filename") if k in settings}
    folder: Any = yield weights, "open_folder", (source,), where
    folder.checkpoint.close()
    known = of_gguf(folder) if folder.checkpoint.format == "gguf" else (yield from modules(folder))
    pooling, normalize = known or (("mean_tokens",), False)
    limits = (yield folder, "json", ("sentence_bert_config.json",), {}) or {}
    prompts = (yield folder, "json", ("config_sentence_transformers.json",), {}) or {}
    check(f"{folder.name}/sentence_bert_config.json", limits, _LENGTH)
    check(f"{folder.name}/config_sentence_transformers.json", prompts, _PROMPTS)
    model = yield AutoModel, "from_pretrained", (source,), settings
    some = {k: v for k, v in where.items() if k != "endpoint"}
    tokenizer = yield AutoTokenizer, "from_pretrained", (source,), some
    length = limits.get("max_seq_length")
    return cls(
        model, tokenizer, pooling, normalize, prompts.get("prompts"), prompts.get("default_prompt_name"),
        min(length, model.config.positions) if length else None,
    )  # fmt: skip


def modules(
    folder: Any, known: Collection[str] = tuple(POOLING)
) -> Generator[tuple, Any, tuple[tuple[str, ...], bool] | None]:
    """Steps that read how a folder's vectors are pooled, and whether they are normed; None of a plain model.

    Args:
        folder: of `pellucid.weights.open_folder`.
        known: ways of pooling.

    Raises:
        FormatError: it has parts that are not known.
    """
    data = yield folder, "read", ("modules.json",), {}
    if data is None:
        return None
    name = f"{folder.name}/modules.json"
    found = parse_object(name, b'{"modules": ' + data + b"}")  # the file is a list
    check(name, found, _MODULES, "modules")
    kinds = {m["type"].rpartition(".")[2]: m["path"] for m in found["modules"]}
    unknown = set(kinds) - {"Transformer", "Pooling", "Normalize"}
    if unknown or not {"Transformer", "Pooling"} <= kinds.keys():
        raise FormatError(
            f"{name}: has the parts {shown(sorted(kinds))}; known are Transformer, Pooling and "
            "Normalize. Load another model, or its encoder by AutoModel."
        )
    return (yield from _pooling(folder, kinds["Pooling"], known)), "Normalize" in kinds


def of_gguf(folder: Any) -> tuple[tuple[str, ...], bool]:
    """How a GGUF's vectors are pooled, and whether they are normed.

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
    return (known[kind],), normalize


def gguf_keys(pooling: tuple[str, ...], normalize: bool) -> dict[str, Any]:
    """The keys of a GGUF, those of its architecture without its name, that `of_gguf` reads.

    Args:
        pooling, normalize: as in `SentenceTransformer`.

    Raises:
        ArgumentError: no GGUF says so.
    """
    kind = next((k for k, name in GGUF_POOLING.items() if (name,) == pooling), None)
    if kind is None:
        raise ArgumentError(
            f"save_gguf: pools by {shown(pooling)}, and a GGUF knows {', '.join(GGUF_POOLING.values())}. "
            "Write the encoder alone by model.save_gguf()."
        )
    return {".pooling_type": kind, _NORMALIZE: normalize}


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
