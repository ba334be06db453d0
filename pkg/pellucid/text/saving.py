"""``save_pretrained`` of a tokenizer: ``tokenizer.json`` and ``tokenizer_config.json``."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from pellucid.errors import ArgumentError


def save(tokenizer: Any, document: bytes, save_directory: str | PathLike) -> None:
    """What `Tokenizer.save_pretrained` does with the bytes of the ``tokenizer.json``."""
    folder = Path(save_directory)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"save_pretrained: {str(folder)!r} is a file. Give a folder.")
    if not document:
        raise ArgumentError("save_pretrained: this Tokenizer was made without its document. Give it one.")
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = [{"name": name, "template": text} for name, text in template.items()]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **tokenizer.config,
        "padding_side": tokenizer.padding_side,
        "truncation_side": tokenizer.truncation_side,
        "model_max_length": tokenizer.model_max_length,
        "chat_template": template,
    }
    text = json.dumps({k: v for k, v in config.items() if v is not None}, indent=2, ensure_ascii=False)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_bytes(document)
    (folder / "tokenizer_config.json").write_text(f"{text}\n", encoding="utf-8")
    # The template is in the configuration: an older one beside it would count instead.
    (folder / "chat_template.jinja").unlink(missing_ok=True)


__all__ = ["save"]
