"""Instruction data: conversations by the chat template, with labels for what the assistant says alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import ArgumentError, FormatError

_PAIRS = (("prompt", "completion"), ("instruction", "output"), ("question", "answer"))


def conversation(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of an example.

    Args:
        example: ``messages`` (or ``conversations`` with "from" and "value"); or a pair: ``prompt`` and
            ``completion``, ``instruction`` (with ``input``) and ``output``, ``question`` and ``answer``.

    Raises:
        ArgumentError: it has none of these.
    """
    if "messages" in example:
        return list(example["messages"])
    if "conversations" in example:
        roles = {"human": "user", "gpt": "assistant"}
        said = [(roles.get(m["from"], m["from"]), m["value"]) for m in example["conversations"]]
        return [{"role": role, "content": text} for role, text in said]
    for asked, answered in _PAIRS:
        if asked in example and answered in example:
            asks, more = example[asked], example.get("input")
            if isinstance(asks, list):  # messages already
                return [*asks, *example[answered]]
            return [
                {"role": "user", "content": f"{asks}\n{more}" if more else asks},
                {"role": "assistant", "content": example[answered]},
            ]
    raise ArgumentError(
        f"conversation: an example has {', '.join(example)}. Give messages, or prompt and completion, "
        "instruction and output, question and answer."
    )


def encode_conversation(
    tokenizer: Any, messages: list[dict[str, Any]], max_length: int | None = None, **values: Any
) -> dict[str, list[int]]:
    """Ids of a conversation, and labels that are -100 but for what the assistant says and what ends it.

    The template is rendered up to each answer; where its text does not continue as the whole conversation
    does, the labels would be wrong, so that is an error.

    Args:
        tokenizer: with a chat template.
        messages: with "role" and "content".
        max_length: ids beyond are cut off.
        values: further names that the template reads.

    Returns:
        ``input_ids``, ``labels`` and ``attention_mask``.

    Raises:
        ArgumentError: the assistant says nothing, or nothing within ``max_length``.
        FormatError: the template writes the beginning of a conversation otherwise than alone.
    """
    text = tokenizer.apply_chat_template(messages, tokenize=False, **values)
    spans = []
    for k, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        begin = tokenizer.apply_chat_template(
            messages[:k], tokenize=False, add_generation_prompt=True, **values
        )
        end = tokenizer.apply_chat_template(messages[: k + 1], tokenize=False, **values)
        if not text.startswith(end.rstrip()) or not end.startswith(begin):
            raise FormatError(
                f"encode_conversation: the chat template writes message {k} otherwise when others follow, so "
                "nobody knows where the answer lies. Split the conversation, or give labels."
            )
        spans.append((len(begin), len(end)))
    if not spans:
        raise ArgumentError("encode_conversation: the assistant says nothing. Add a message of its role.")
    ids: list[int] = []
    labels: list[int] = []
    at = 0
    for begin, end in [*spans, (len(text), len(text))]:
        for part, is_answer in ((text[at:begin], False), (text[begin:end], True)):
            new = tokenizer(part, add_special_tokens=False).input_ids if part else []
            ids += new
            labels += new if is_answer else [-100] * len(new)
        at = end
    ids, labels = ids[:max_length], labels[:max_length]
    if all(label == -100 for label in labels):
        raise ArgumentError(
            f"encode_conversation: no answer lies within max_length={max_length} ids. Give more, or leave "
            "the example out."
        )
    return {"input_ids": ids, "labels": labels, "attention_mask": [1] * len(ids)}


def instruction_dataset(
    examples: Iterable[Mapping[str, Any]], tokenizer: Any, max_length: int | None = None, **values: Any
) -> list[dict[str, list[int]]]:
    """Examples for training on instructions: ids by the chat template, labels for the answers alone.

    Args:
        examples: as `conversation` reads them.
        tokenizer: with a chat template.
        max_length: ids of an example at most.
        values: further names that the template reads.

    Raises:
        ArgumentError, FormatError: as in `conversation` and `encode_conversation`; says which example.
    """
    found = []
    for k, example in enumerate(examples):
        try:
            found.append(encode_conversation(tokenizer, conversation(example), max_length, **values))
        except (ArgumentError, FormatError) as error:
            raise type(error)(f"example {k}: {error}") from None
    return found


__all__ = ["conversation", "encode_conversation", "instruction_dataset"]
