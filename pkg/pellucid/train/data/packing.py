"""Packing: many texts in rows of one length, so that nothing is filled up and a step has one shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...errors import ArgumentError, RangeError
from ...utils.data.dataset import IterableDataset


class PackedDataset(IterableDataset):
    """Rows of ``length`` ids, cut from texts one after the other with an end between them.

    Args:
        source: gives texts, dictionaries with ``text``, or with ``input_ids`` and perhaps ``labels``.
        length: ids of a row; what is left over at the end is dropped.
        tokenizer: makes ids of texts; its ``eos_token_id`` stands between them.
        eos_token_id: in place of the tokenizer's; None for no end.

    Raises:
        RangeError: ``length`` is below 2.
        ArgumentError: while it is read: texts without a tokenizer, or examples without either.

    Example:
        >>> from pellucid.train import PackedDataset
        >>> rows = PackedDataset([{"input_ids": [1, 2, 3]}, {"input_ids": [4, 5]}], 3, eos_token_id=0)
        >>> [row["input_ids"] for row in rows]
        [[1, 2, 3], [0, 4, 5]]
    """

    def __init__(self, source: Iterable[Any], length: int, tokenizer: Any = None, eos_token_id: Any = ...):
        if not isinstance(length, int) or length < 2:
            raise RangeError(f"PackedDataset: length must be at least 2, not {length!r}.")
        self.source, self.length, self.tokenizer = source, length, tokenizer
        self.end = getattr(tokenizer, "eos_token_id", None) if eos_token_id is ... else eos_token_id

    def __iter__(self) -> Iterator[dict[str, Any]]:
        ids: list[int] = []
        labels: list[int] = []
        for example in self.source:
            new, marks = self._ids(example)
            if self.end is not None:
                new, marks = [*new, self.end], [*marks, self.end]
            ids += new
            labels += marks
            while len(ids) >= self.length:
                yield {"input_ids": ids[: self.length], "labels": labels[: self.length]}
                ids, labels = ids[self.length :], labels[self.length :]

    def _ids(self, example: Any) -> tuple[list[int], list[int]]:
        if isinstance(example, Mapping) and "input_ids" in example:
            ids = list(example["input_ids"])
            return ids, list(example.get("labels", ids))
        text = example.get("text") if isinstance(example, Mapping) else example
        if not isinstance(text, str):
            has = ", ".join(example) if isinstance(example, Mapping) else type(example).__name__
            raise ArgumentError(f"PackedDataset: an example has no text and no input_ids, but {has}.")
        if self.tokenizer is None:
            raise ArgumentError("PackedDataset: texts need a tokenizer.")
        ids = self.tokenizer(text).input_ids
        return ids, ids

    def list(self) -> list[dict[str, Any]]:
        """All rows, in memory: a dataset with a length, which is shuffled anew at each epoch."""
        return [*self]


__all__ = ["PackedDataset"]
