"""Pipelines of labels: ids behind masks, classes of texts, entities in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...tensors.construct import tensor
from .base import Pipeline, Steps, softmax
from .words import Words

SCORES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "softmax": softmax, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "none": lambda x: x
}  # fmt: skip


class FillMaskPipeline(Pipeline):
    """What may stand behind the mask of a text."""

    def one(self, given: Any, *, top_k: int = 5, targets: Any = None, **settings: Any) -> Steps:
        """The most likely tokens, each with score and text; for several masks a list for each.

        Args:
            given: a text with the tokenizer's ``mask_token``.
            top_k: how many.
            targets: tokens that are chosen from, instead of all.
            settings: of the tokenizer.
        """
        encoded = self.encoded(given, **settings)
        ids, mask = encoded["input_ids"], self.tokenizer.mask_token_id
        places = [k for k, index in enumerate(ids) if index == mask]
        if not places or mask is None:
            raise ArgumentError(f"{self.task}: the text has no {self.tokenizer.mask_token!r}. Put one in.")
        logits = self.run(encoded).logits
        rows = logits[0][tensor(places, device=logits.device)].float()
        scores = softmax((yield rows, "numpy", (), {}))
        chosen = self._targets(targets, scores.shape[-1])
        order = np.argsort(-scores[:, chosen], -1, kind="stable")[:, :top_k]
        found = [
            [
                self._proposal(ids, place, int(chosen[k]), float(row[chosen[k]]), len(places) == 1)
                for k in best
            ]
            for place, row, best in zip(places, scores, order, strict=True)
        ]
        return found[0] if len(places) == 1 else found

    def _targets(self, targets: Any, vocabulary: int) -> np.ndarray:
        if targets is None:
            return np.arange(vocabulary)
        known, found = self.tokenizer.get_vocab(), []
        for target in [targets] if isinstance(targets, str) else targets:
            index = known.get(target)
            if index is None:
                first = self.tokenizer.encode(target, add_special_tokens=False)[:1]
                if not first:
                    raise ArgumentError(f"{self.task}: {target!r} has no token. Leave it out of targets.")
                index = first[0]
            found.append(index)
        return np.unique(found)

    def _proposal(self, ids: list[int], place: int, index: int, score: float, alone: bool) -> dict[str, Any]:
        filled = [*ids[:place], index, *ids[place + 1 :]]
        filled = [k for k in filled if k != self.tokenizer.pad_token_id]
        return {
            "score": score,
            "token": index,
            "token_str": self.tokenizer.decode([index]),
            "sequence": self.tokenizer.decode(filled, skip_special_tokens=alone),
        }


class TextClassificationPipeline(Pipeline):
    """The label of a text."""

    def steps(self, inputs: Any, **settings: Any) -> Steps:
        found = yield from super().steps(inputs, **settings)
        return [found] if isinstance(inputs, str) and "top_k" not in settings else found

    def one(
        self, given: Any, *, top_k: int | None = 1, function_to_apply: str | None = None, **settings: Any
    ) -> Steps:
        """The most likely label with its score, or with ``top_k`` a list of as many; None for all.

        Args:
            given: a text, or ``{"text": ..., "text_pair": ...}``.
            top_k: how many.
            function_to_apply: ``"softmax"``, ``"sigmoid"`` or ``"none"``; as the configuration says if None.
            settings: of the tokenizer.
        """
        pair = given if isinstance(given, dict) else {"text": given}
        logits = self.run(self.encoded(pair["text"], pair.get("text_pair"), **settings)).logits
        config = self.model.config
        if function_to_apply is None:
            several = config.problem_type == "multi_label_classification" or config.num_labels == 1
            function_to_apply = "sigmoid" if several else "softmax"
            function_to_apply = "none" if config.problem_type == "regression" else function_to_apply
        if function_to_apply not in SCORES:
            raise ArgumentError(
                f"{self.task}: function_to_apply={function_to_apply!r} is not known. There are "
                f"{', '.join(SCORES)}."
            )
        scores = SCORES[function_to_apply]((yield logits[0].float(), "numpy", (), {}))
        order = np.argsort(-scores, kind="stable")
        found = [{"label": config.labels[k], "score": float(scores[k])} for k in order]
        return found[0] if top_k == 1 else found[:top_k]


class ZeroShotClassificationPipeline(Pipeline):
    """Which of any labels fits a text, by a model that says whether one sentence follows from another."""

    def one(
        self,
        given: Any,
        candidate_labels: str | Sequence[str] = (),
        *,
        hypothesis_template: str = "This example is {}.",
        multi_label: bool = False,
        **settings: Any,
    ) -> Steps:
        """``{"sequence", "labels", "scores"}``, the likeliest first.

        Args:
            given: a text.
            candidate_labels: a list, or a text of them with commas.
            hypothesis_template: the sentence that would follow, with ``{}`` for the label.
            multi_label: whether several may fit: scores are then about each label alone.
            settings: of the tokenizer.
        """
        labels = candidate_labels
        if isinstance(labels, str):
            labels = [label.strip() for label in labels.split(",") if label.strip()]
        if not labels or hypothesis_template.format(labels[0]) == hypothesis_template:
            raise ArgumentError(f"{self.task}: give candidate_labels, and a hypothesis_template with {{}}.")
        names = [name.lower() for name in self.model.config.labels]
        entails = next((k for k, name in enumerate(names) if name.startswith("entail")), len(names) - 1)
        rows = []
        for label in labels:
            logits = self.run(self.encoded(given, hypothesis_template.format(label), **settings)).logits
            rows.append((yield logits[0].float(), "numpy", (), {}))
        table = np.stack(rows)
        if multi_label or len(labels) == 1:
            scores = softmax(table[:, [0 if entails else -1, entails]])[:, 1]
        else:
            scores = softmax(table[:, entails])
        order = np.argsort(-scores, kind="stable")
        return {
            "sequence": given,
            "labels": [labels[k] for k in order],
            "scores": [float(scores[k]) for k in order],
        }


class TokenClassificationPipeline(Pipeline):
    """Entities of a text."""

    def one(
        self,
        given: Any,
        *,
        aggregation_strategy: str = "none",
        ignore_labels: Sequence[str] = ("O",),
        **settings: Any,
    ) -> Steps:
        """The label of every token, or with an aggregation of groups of them.

        Args:
            given: a text.
            aggregation_strategy: ``"none"``; ``"simple"`` joins tokens of one label; ``"first"``,
                ``"average"`` and ``"max"`` say which label a word of several tokens has, then join words.
            ignore_labels: that are left out.
            settings: of the tokenizer.

        Returns:
            Dictionaries of ``entity`` (``entity_group``), ``score``, ``index``, ``word``, ``start`` and
            ``end``; the last two are None in pages, whose tokenizers do not tell places.
        """
        if aggregation_strategy not in ("none", "simple", "first", "average", "max"):
            raise ArgumentError(
                f"{self.task}: aggregation_strategy={aggregation_strategy!r} is not known. There are none, "
                "simple, first, average and max."
            )
        encoded = self.encoded(given, **settings)
        logits = self.run(encoded).logits
        scores = softmax((yield logits[0].float(), "numpy", (), {}))
        words = Words(self.tokenizer, given, encoded["input_ids"])
        tokens = [k for k, special in enumerate(self.is_special(encoded["input_ids"])) if not special]
        if aggregation_strategy in ("none", "simple"):
            found = [self._entity([k], scores[k], words) for k in tokens]
        else:
            grouped = words.grouped(tokens)
            found = [self._word(group, scores, words, aggregation_strategy) for group in grouped]
        if aggregation_strategy != "none":
            found = [self._group(group, words) for group in _neighbours(found)]
        else:
            found = [{k: v for k, v in entity.items() if k != "tokens"} for entity in found]
        kept = ignore_labels
        return [e for e in found if e.get("entity") not in kept and e.get("entity_group") not in kept]

    def _entity(self, tokens: list[int], row: np.ndarray, words: Words) -> dict[str, Any]:
        best = int(row.argmax())
        start, end = words.place(tokens)
        return {
            "entity": self.model.config.labels[best],
            "score": float(row[best]),
            "index": tokens[0],
            "word": words.token(tokens[0]),
            "start": start,
            "end": end,
            "tokens": tokens,
        }

    def _word(self, tokens: list[int], scores: np.ndarray, words: Words, strategy: str) -> dict[str, Any]:
        rows = scores[tokens]
        row = {"first": rows[0], "average": rows.mean(0), "max": rows[rows.max(-1).argmax()]}[strategy]
        return self._entity(tokens, row, words)

    def _group(self, entities: list[dict[str, Any]], words: Words) -> dict[str, Any]:
        tokens = [k for entity in entities for k in entity["tokens"]]
        start, end = words.place(tokens)
        return {
            "entity_group": entities[0]["entity"].split("-", 1)[-1],
            "score": float(np.mean([entity["score"] for entity in entities])),
            "word": words.text(tokens),
            "start": start,
            "end": end,
        }


def _neighbours(entities: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Runs of entities with one tag; ``B-`` begins another."""
    group: list[dict[str, Any]] = []
    last = None
    for entity in entities:
        tag = entity["entity"].removeprefix("B-").removeprefix("I-")
        if group and (entity["entity"].startswith("B-") or tag != last):
            yield group
            group = []
        last = tag
        group.append(entity)
    if group:
        yield group
