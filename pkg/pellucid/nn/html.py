"""Notebook display of modules: the tree, with each part's parameters and bytes. HTML."""

from __future__ import annotations

import html
from typing import Any


def tree(module: Any) -> str:
    """What a notebook shows of a module: its parts under folds, the largest sizes readable at a glance."""
    inner = _branch("", module, _sizes(module)[1], " open")
    return f'<div style="font:13px/1.6 system-ui,sans-serif">{inner}</div>'


def _sizes(module: Any) -> tuple[int, int]:
    parameters = list(module.parameters())
    return sum(p.numel() for p in parameters), sum(p.nbytes for p in parameters)


def _branch(name: str, module: Any, whole: int, is_open: str) -> str:
    count, size = _sizes(module)
    extra = module.extra_repr().replace("\n", ", ")
    title = f"<b>{html.escape(type(module).__name__)}</b>" + (f"({html.escape(extra)})" if extra else "")
    line = f"<code>{html.escape(name)}</code> {title}" if name else title
    if count:
        share = f"linear-gradient(to right, #7aa7d988 {100 * size / (whole or 1):.1f}%, transparent 0)"
        told = f"{count:,} parameters · {_bytes(size)}"
        line += f' <span style="background:{share};padding:0 4px">{told}</span>'
    children = "".join(_branch(child, part, whole, "") for child, part in module.named_children())
    indent = 'style="margin-left:1.2em"'
    if not children:
        return f"<div {indent}>{line}</div>"
    return f"<details {indent}{is_open}><summary>{line}</summary>{children}</details>"


def _bytes(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"
