"""Data collators: batches of examples, padded and with labels, by transformers' names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...ops.random.distributions import rand
from ...ops.shape.joining import stack
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ...utils.data.collate import default_collate

# What padding puts where, besides ids, which get the tokenizer's.
_FILLING = {"labels": -100, "attention_mask": 0, "token_type_ids": 0, "position_ids": 0}
_RENAMED = {"label": "labels", "label_ids": "labels"}


def _column(name: str, values: list[Any]) -> Tensor:
    """A column of examples as a tensor; whole numbers are int64."""
    if isinstance(values[0], Tensor):
        return stack(values)
    lengths = {len(v) for v in values if hasattr(v, "__len__")}
    if len(lengths) > 1:
        raise ShapeError(
            f"data_collator: {name!r} has {min(lengths)} to {max(lengths)} items in one batch. Give the "
            "trainer the tokenizer as processing_class, which pads, or pack the examples."
        )
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(
            f"data_collator: {name!r} holds {array.dtype}, which is no number. Tokenize the examples, or "
            "leave the column out."
        )
    return tensor(
        array.astype(np.int64 if array.dtype.kind in "iu" else np.float32)
        if array.dtype.kind != "b"
        else array
    )


def default_data_collator(features: list[Any]) -> Any:
    """A batch of examples of one length.

    Args:
        features: dictionaries of numbers, lists, arrays or tensors, whose ``label`` or ``label_ids`` become
            ``labels``; or pairs, which become a pair of tensors.

    Raises:
        ShapeError: lists of different lengths.

    Source: https://huggingface.co/docs/transformers/main_classes/data_collator

    Example:
        >>> import pellucid as torch
        >>> with torch.device("cpu"):
        ...     torch.train.default_data_collator([{"x": [1, 2], "label": 0}, {"x": [3, 4], "label": 1}])
        {'x': tensor([[1, 2],
                [3, 4]]), 'labels': tensor([0, 1])}
    """
    if not isinstance(features[0], Mapping):
        return default_collate(features)
    return {
        _RENAMED.get(name, name): _column(name, [f[name] for f in features])
        for name in features[0]
        if features[0][name] is not None and not isinstance(features[0][name], str)
    }


def padded(
    features: list[Any], fill: int, multiple: int | None, side: str, longest: int | None
) -> list[dict]:
    """Examples whose lists are as long as the longest one.

    Args:
        features: dictionaries with ``input_ids``.
        fill: what ids are filled up with.
        multiple: lengths are a multiple of this, so that steps have few shapes to be captured for.
        side: "right" or "left".
        longest: the length; that of the longest example if None.
    """
    rows = [{_RENAMED.get(k, k): v for k, v in f.items() if not isinstance(v, str)} for f in features]
    for row in rows:
        row.setdefault("attention_mask", [1] * len(row["input_ids"]))
    size = max(len(row["input_ids"]) for row in rows) if longest is None else longest
    size += -size % (multiple or 1)
    found = []
    for row in rows:
        own = len(row["input_ids"])
        out = {}
        for name, value in row.items():
            name = str(name)
            value = value.tolist() if hasattr(value, "tolist") else value
            if isinstance(value, (list, tuple)) and len(value) == own:
                filling = [_FILLING.get(name, fill)] * (size - own)
                value = [*value, *filling] if side == "right" else [*filling, *value]
            out[name] = value
        found.append(out)
    return found


class DataCollatorWithPadding:
    """Batches of examples that are filled up to one length.

    Args:
        tokenizer: whose ``pad_token_id`` (or ``eos_token_id``) and ``padding_side``.
        pad_to_multiple_of: lengths are a multiple of this: a captured step serves all batches of one shape.
        max_length: the length; the longest example's if None.

    Source: https://huggingface.co/docs/transformers/main_classes/data_collator
    """

    def __init__(self, tokenizer: Any, pad_to_multiple_of: int | None = 8, max_length: int | None = None):
        self.tokenizer, self.multiple, self.max_length = tokenizer, pad_to_multiple_of, max_length

    def __call__(self, features: list[Any]) -> Any:
        if not isinstance(features[0], Mapping) or "input_ids" not in features[0]:
            return default_data_collator(features)
        t = self.tokenizer
        fill = t.pad_token_id if t.pad_token_id is not None else t.eos_token_id
        rows = padded(features, fill or 0, self.multiple, t.padding_side, self.max_length)
        return default_data_collator(rows)


class DataCollatorForLanguageModeling(DataCollatorWithPadding):
    """Batches for language models: labels are the ids, or those that are masked.

    Args:
        tokenizer: as in `DataCollatorWithPadding`; masking needs its ``mask_token_id``.
        mlm: mask ids, which the model then guesses; False: it says the next one.
        mlm_probability: which share is masked: 80 % of these by the mask, 10 % by another id.
        pad_to_multiple_of, max_length: as there.

    Raises:
        ArgumentError: the tokenizer has no mask.

    Source: https://huggingface.co/docs/transformers/main_classes/data_collator; Devlin et al. 2018, "BERT"
    """

    def __init__(
        self,
        tokenizer: Any,
        mlm: bool = True,
        mlm_probability: float = 0.15,
        pad_to_multiple_of: int | None = 8,
        max_length: int | None = None,
    ):
        super().__init__(tokenizer, pad_to_multiple_of, max_length)
        if mlm and tokenizer.mask_token_id is None:
            raise ArgumentError(
                "DataCollatorForLanguageModeling: the tokenizer has no mask token. Give mlm=False for a "
                "causal language model."
            )
        self.mlm, self.share = mlm, mlm_probability

    def __call__(self, features: list[Any]) -> Any:
        rows = [
            {k: v for k, v in f.items() if k in ("input_ids", "labels", "attention_mask")} for f in features
        ]
        if not self.mlm:
            rows = [{**row, "labels": row.get("labels", row["input_ids"])} for row in rows]
            return super().__call__(rows)
        batch = super().__call__([{k: v for k, v in row.items() if k != "labels"} for row in rows])
        ids = batch["input_ids"].to("cpu").numpy()
        special = np.isin(ids, self.tokenizer.all_special_ids)
        drawn, kind, other = (rand(*ids.shape, device="cpu").numpy() for _ in range(3))
        chosen = (drawn < self.share) & ~special
        masked = np.where(chosen & (kind < 0.8), self.tokenizer.mask_token_id, ids)
        guess = (other * len(self.tokenizer)).astype(np.int64)
        masked = np.where(chosen & (kind >= 0.8) & (kind < 0.9), guess, masked)
        where = batch["input_ids"].device
        batch["labels"] = tensor(np.where(chosen, ids, -100)).to(where)
        batch["input_ids"] = tensor(masked).to(where)
        return batch


class DataCollatorForSeq2Seq(DataCollatorWithPadding):
    """Batches of examples with labels of their own length, filled up with -100.

    Args:
        tokenizer, pad_to_multiple_of, max_length: as in `DataCollatorWithPadding`.

    Source: https://huggingface.co/docs/transformers/main_classes/data_collator
    """

    def __call__(self, features: list[Any]) -> Any:
        labels = [list(f["labels"]) for f in features]
        size = max(map(len, labels))
        size += -size % (self.multiple or 1)
        batch = super().__call__([{k: v for k, v in f.items() if k != "labels"} for f in features])
        batch["labels"] = tensor(np.array([row + [-100] * (size - len(row)) for row in labels]))
        return batch


__all__ = [
    "DataCollatorForLanguageModeling", "DataCollatorForSeq2Seq", "DataCollatorWithPadding",
    "default_data_collator", "padded",
]  # fmt: skip
