"""Module paths and the patterns that pick some of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ..errors import ArgumentError, WeightError
from ..nn.modules.module import Module
from ..op.arguments import describe


@lru_cache(4096)
def _expression(pattern: str) -> re.Pattern:
    parts = [
        ".*" if p == "**" else re.escape(p).replace(r"\*", "[^.]*").replace(r"\?", "[^.]")
        for p in pattern.split(".")
    ]
    return re.compile(r"\.".join(parts).replace(r"\..*", r"(?:\..*)?") + r"\Z")


@lru_cache(4096)
def matches(path: str, pattern: str) -> bool:
    """Whether a path fits: ``*`` stands for anything within one name, ``**`` for any number of names.

    Example:
        >>> matches("model.layers.3", "model.layers.*"), matches("model.layers.3.mlp", "model.layers.*")
        (True, False)
    """
    return _expression(pattern).match(path) is not None


def checked(model: Any, pattern: Any) -> list[str]:
    """The patterns, one or several, if they are texts and the model is a module.

    Raises:
        ArgumentError: they are not.
    """
    if not isinstance(model, Module):
        raise ArgumentError(f"lens: model must be a Module, not {describe(model)}.")
    patterns = list(pattern) if isinstance(pattern, (list, tuple)) else [pattern]
    for p in patterns:
        if not isinstance(p, str):
            raise ArgumentError(f"lens: pattern must be a text or a list of texts, not {describe(pattern)}.")
    return patterns


def pick(model: Any, pattern: str | list[str] | tuple[str, ...]) -> dict[str, Any]:
    """The modules whose paths fit a pattern or one of several, in the model's order.

    Raises:
        ArgumentError: the model is no module, or a pattern no text.
        WeightError: none fits.
    """
    patterns = checked(model, pattern)
    found = {
        path: module
        for path, module in model.named_modules()
        if path and any(matches(path, p) for p in patterns)
    }
    for p in patterns:
        if not any(matches(path, p) for path in found):
            some = ", ".join(path for path, _ in list(model.named_modules())[1:6])
            raise WeightError(
                f"lens: no module of {type(model).__name__} fits {p!r}. Paths look like {some}, ..."
            )
    return found


def first_tensor(value: Any) -> Any:
    """The tensor of a module's output: the output itself, or the first of several."""
    while isinstance(value, (tuple, list)):
        value = value[0]
    return value
