"""Question answering: the part of a text that answers a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import ArgumentError
from .base import Pipeline, Steps, softmax
from .words import Words


class QuestionAnsweringPipeline(Pipeline):
    """The part of a text that answers a question."""

    def steps(self, *inputs: Any, question: Any = None, context: Any = None, **settings: Any) -> Steps:
        if inputs:
            (given,) = inputs
        elif isinstance(question, list):
            contexts = context if isinstance(context, list) else [context] * len(question)
            given = [{"question": q, "context": c} for q, c in zip(question, contexts, strict=True)]
        else:
            given = {"question": question, "context": context}
        return (yield from super().steps(given, **settings))

    def one(
        self,
        given: Any,
        *,
        top_k: int = 1,
        max_answer_len: int = 15,
        align_to_words: bool = True,
        **settings: Any,
    ) -> Steps:
        """``{"score", "start", "end", "answer"}``, or a list of ``top_k``.

        Args:
            given: ``{"question": ..., "context": ...}``, both of which fit into the model together.
            top_k: how many answers.
            max_answer_len: tokens of the longest.
            align_to_words: whether answers are whole words.
            settings: of the tokenizer.

        Returns:
            The likeliest; ``start`` and ``end`` are places in the context, None in pages.
        """
        if not isinstance(given, Mapping) or not {"question", "context"} <= given.keys():
            raise ArgumentError(f"{self.task}: give question= and context=.")
        question, context = given["question"], given["context"]
        encoded = self.encoded(question, context, **settings)
        out = self.run(encoded)
        ids = encoded["input_ids"]
        # The context lies behind what the question alone would be.
        own = ~self.is_special(ids) & (np.arange(len(ids)) >= len(self.tokenizer.encode(question)) - 1)
        first = np.where(own, (yield out.start_logits[0].float(), "numpy", (), {}), -1e4)
        last = np.where(own, (yield out.end_logits[0].float(), "numpy", (), {}), -1e4)
        table = np.triu(np.outer(softmax(first) * own, softmax(last) * own))
        table = np.tril(table, max_answer_len - 1)
        words = Words(self.tokenizer, context, ids, question)
        found: list[dict[str, Any]] = []
        for flat in np.argsort(-table, axis=None, kind="stable")[: max(4 * top_k, 1)]:
            start, end = (int(k) for k in np.unravel_index(flat, table.shape))
            if table[start, end] <= 0:
                break
            score = float(table[start, end])
            while align_to_words and own[start - 1] and words.continues(start):
                start -= 1
            while align_to_words and end + 1 < len(ids) and own[end + 1] and words.continues(end + 1):
                end += 1
            tokens = range(start, end + 1)
            begin, stop = words.place(tokens)
            answer = words.text(tokens).strip() if begin is None else context[begin:stop]
            same = next((a for a in found if a["answer"].lower() == answer.lower()), None)
            if same is not None:
                same["score"] += score
            else:
                found.append({"score": score, "start": begin, "end": stop, "answer": answer})
        found = sorted(found, key=lambda a: -a["score"])[:top_k]
        if not found:
            raise ArgumentError(f"{self.task}: the context has no tokens. Give a text that has the answer.")
        return found[0] if top_k == 1 else found
