"""Chat templates: messages to the text that a chat model was trained on."""

import copy
from functools import lru_cache
from typing import Any

from pellucid.text import libraries

_END = "CONTINUE_FINAL_MESSAGE_TAG "

compiled = lru_cache(maxsize=32)(libraries.template)


def select(templates: str | dict[str, str] | None, wanted: str | None, tools: bool) -> str:
    """Choose the template to use.

    Args:
        templates: the tokenizer's template, or several by name.
        wanted: a template's text or one of the names; None for the tokenizer's own.
        tools: tools are passed, so a template named ``tool_use`` is preferred.

    Raises:
        ValueError: there is none, or none of that name.
    """
    if isinstance(templates, dict):
        if wanted is not None:
            return templates.get(wanted, wanted)
        name = "tool_use" if tools and "tool_use" in templates else "default"
        if name in templates:
            return templates[name]
        raise ValueError(
            f"apply_chat_template: the tokenizer has several templates and none is called 'default'. "
            f"Pass chat_template= one of {', '.join(sorted(templates))}."
        )
    if wanted is not None:
        return wanted
    if templates is not None:
        return templates
    raise ValueError(
        "apply_chat_template: this tokenizer has no chat template; its model was not trained to chat. "
        "Pass chat_template= a Jinja template, or tokenize plain text."
    )


def render(
    source: str,
    conversation: list[dict[str, Any]],
    *,
    continue_final_message: bool,
    values: dict[str, Any],
) -> str:
    """Render one conversation.

    Args:
        source: the template's text.
        conversation: messages, each a dict with ``role`` and what the template reads (usually ``content``).
        continue_final_message: end right after the last message's content, so that the model continues it.
        values: every other name the template may read.

    Raises:
        TypeError: a message is not a dict.
        ValueError: the template refuses the messages, or drops the message to continue.
    """
    for position, message in enumerate(conversation):
        if not isinstance(message, dict):
            raise TypeError(
                f"apply_chat_template: message {position} is a {type(message).__name__}, not a dict. "
                'Write messages as {"role": "user", "content": "..."}.'
            )
    if not continue_final_message:
        return compiled(source).render({"messages": conversation, **values})
    if not conversation or not isinstance(conversation[-1].get("content"), str):
        raise ValueError(
            "apply_chat_template: continue_final_message needs a last message with a text as its content. "
            "Add one."
        )
    conversation = copy.deepcopy(conversation)
    final = conversation[-1]["content"]
    conversation[-1]["content"] = final + _END
    text = compiled(source).render({"messages": conversation, **values})
    end = text.rfind(_END.strip())
    if end < 0:
        raise ValueError(
            "apply_chat_template: the template leaves out the final message, so it cannot be continued. "
            "Pass continue_final_message=False."
        )
    # A template that strips messages also takes the marker's space; then the message's own trailing space
    # goes too.
    return text[:end] if text.startswith(_END, end) else text[:end].rstrip()
