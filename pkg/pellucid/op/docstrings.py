"""Docstrings of ops that are rows: arguments, PyTorch's page, and an example that the reference computes."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import fill

import numpy as np

_SOURCE = "https://pytorch.org/docs/stable/"


def docstring(sentence: str, sections: dict[str, dict[str, str] | str], page: str, example: str = "") -> str:
    """A docstring from its parts.

    Args:
        sentence: what the op computes.
        sections: heading -> text, or names -> their texts.
        page: of PyTorch's documentation, such as "exp" or "nn.functional.silu"; one has all of "special".
        example: lines of a console; none if empty.
    """
    lines = [sentence]
    for heading, told in sections.items():
        texts = [f"{names}: {text}" for names, text in told.items()] if isinstance(told, dict) else [told]
        wrapped = [fill(text, 100, subsequent_indent="    ") for text in texts]
        lines += ["", f"{heading}:", *[f"    {line}" for text in wrapped for line in text.splitlines()]]
    page = "special" if page.startswith("special.") else f"generated/torch.{page}"
    lines += ["", f"Source: {_SOURCE}{page}.html"]
    if example:
        lines += ["", "Example:", *[f"    {line}" for line in example.splitlines()]]
    return "\n    ".join(lines)


def example_of(name: str, reference: Callable, given: tuple) -> str:
    """An example: a call of constants, and what the reference makes of them."""
    arrays = [np.asarray(g, np.float32 if "." in str(g) else None) for g in given]
    with np.errstate(all="ignore"):
        result = np.asarray(reference(*arrays))
    tensors = ", ".join(f'torch.tensor({g}, device="cpu")' for g in given)
    call = f"torch.{name}({tensors})"
    if result.dtype.kind == "f" and not result.ndim:
        shown = [f"round({call}.item(), 4)", str(round(float(result), 4))]
    else:
        shown = [f"{call}.tolist()", str(result.tolist())]
    return "\n".join([">>> import pellucid as torch", f">>> {shown[0]}", shown[1]])


def page_of(name: str, exports: str | tuple[str, ...]) -> str:
    """The name of a function behind ``torch.``."""
    places = (exports,) if isinstance(exports, str) else exports
    return name if "torch" in places or not places else f"{places[0]}.{name}"
