"""A notebook of the pictures that were drawn: their programs as cells, after those that load the model."""

import json
from pathlib import Path
from typing import Any

import helpers
from programs import PICTURES, Pictures

SETUP = """\
import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pellucid as torch
from pellucid import lens

source = {source!r}
tokenizer = await torch.AutoTokenizer.from_pretrained_async(source)
model = await torch.AutoModelForCausalLM.from_pretrained_async(source)
"""
NAMES = """
names = Words(tokenizer)


def tell(part):
    return True  # the page draws parts as they come
"""
# How a cell shows what no widget draws, or not all of it.
SHOWN = {"attribution": 'dict(zip(picture["names"], picture["values"], strict=True))\n'}
SHOW = "picture\n"


def cell(kind: str, text: str, number: int) -> dict[str, Any]:
    """A cell of nbformat 4.5."""
    made: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    if kind == "code":
        made |= {"execution_count": None, "outputs": []}
    return made | {"source": text.strip("\n").splitlines(keepends=True)}


def notebook(pictures: Pictures, title: str, source: str) -> str:
    """The notebook as JSON.

    Args:
        pictures: with the texts of those that were drawn.
        title: its heading.
        source: where the model comes from.
    """
    own = Path(helpers.__file__).read_text(encoding="utf-8")
    parts = [
        (
            "markdown",
            f"# {title}\n\nMade by the lens page of Pellucid: `pip install 'pellucid[native,widget]'`.",
        ),
        ("code", SETUP.format(source=source)),
        ("code", own + NAMES),
    ]
    for name, text in pictures.texts.items():
        view = PICTURES[name].view
        parts.append(("markdown", f"## {name.capitalize()}"))
        if pictures.needs[name]:
            parts.append(("code", pictures.needs[name]))
        parts.append(("code", text))
        show = f"from pellucid.lens import widget\n\nwidget.show({view!r}, picture)\n"
        parts.append(("code", show if view else SHOWN.get(name, SHOW)))
    made = {
        "cells": [cell(kind, text, number) for number, (kind, text) in enumerate(parts)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1, ensure_ascii=False)
