"""Pictures of a lens in notebooks: the views of the pages as anywidget widgets (Jupyter, marimo)."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from ..device.resources import read_text
from ..errors import ArgumentError
from ..tensors.tensor import Tensor
from .looks import LogitLens

# Which modules of web/views each picture is made of; the last one is the view itself.
_SHARED = ("model", "parts", "scale")
VIEWS = {
    "lens": "lens_grid",
    "attention": "attention",
    "heat_map": "heat_map",
    "features": "features",
    "branch_tree": "branch_tree",
    "model_map": "model_map",
}
_IMPORT = re.compile(r"^import .* from \"\./(\w+)\.js\";\n", re.MULTILINE)


def module(view: str) -> str:
    """One ES module of a view and what it imports, for hosts that load a text.

    Raises:
        ArgumentError: there is no such view.
    """
    if view not in VIEWS:
        raise ArgumentError(f"lens.widget: there is no view {view!r}. There are {', '.join(VIEWS)}.")
    parts = [read_text(f"web/views/{name}.js") for name in _SHARED]
    text = "\n".join(re.sub(r"^export ", "", _IMPORT.sub("", part), flags=re.MULTILINE) for part in parts)
    return f"{text}\n{_IMPORT.sub('', read_text(f'web/views/{VIEWS[view]}.js'))}"


def show(view: str, data: dict[str, Any]) -> Any:
    """A widget that draws data by a view; its trait ``selected`` is what was chosen in it.

    Args:
        view: ``lens``, ``attention``, ``heat_map``, ``features``, ``branch_tree`` or ``model_map``.
        data: as the header of the view's module says; arrays and tensors of numbers become float32.

    Raises:
        ArgumentError: there is no such view.
        ImportError: anywidget is not installed.
    """
    text = module(view)
    return _widget_class()(_esm=text, data=_sent(data))


def lens_grid(look: LogitLens, tokens: list[int], tokenizer: Any) -> Any:
    """A widget of the logit lens.

    Args:
        look: of `logit_lens`, `watch` or a plan.
        tokens: ids of the positions.
        tokenizer: turns ids into text.
    """

    def named(cell: list[tuple[Any, float]]) -> list[list[Any]]:
        return [[i, tokenizer.decode([i]), p] for i, p in cell]

    columns = [
        {"position": k, "layers": [named(cell) for cell in cells]}
        for k, cells in enumerate(zip(*look.table(), strict=True))
    ]
    names = [{"id": int(i), "token": tokenizer.decode([int(i)])} for i in tokens]
    return show("lens", {"layers": len(look.paths), "answer": 0, "tokens": names, "columns": columns})


def attention(seen: dict[str, Tensor], tokens: list[str]) -> Any:
    """A widget of attention by head.

    Args:
        seen: what a plan with ``attn_probs`` captured of one sequence.
        tokens: texts of the positions.

    Raises:
        ArgumentError: nothing of it is attention.
    """
    found = [value.detach().float().cpu().numpy() for name, value in seen.items() if "attn_probs" in name]
    if not found:
        raise ArgumentError(
            'lens.widget: no attn_probs were seen. Capture them: lens.Plan(capture=["attn_probs"]).'
        )
    probs = np.concatenate(found)
    layers, heads = probs.shape[:2]
    return show("attention", {"tokens": tokens, "layers": layers, "heads": heads, "probs": probs})


def heat_map(values: Tensor, rows: list[str], columns: list[str], name: str = "") -> Any:
    """A widget of numbers by rows and columns, such as what `activation_patching` gives.

    Args:
        values: (rows, columns).
        rows, columns: labels.
        name: of the numbers.

    Raises:
        ArgumentError: the labels are not as many.
    """
    if tuple(values.shape) != (len(rows), len(columns)):
        raise ArgumentError(
            f"lens.widget: values of shape {tuple(values.shape)} do not go with {len(rows)} rows and "
            f"{len(columns)} columns."
        )
    return show("heat_map", {"name": name, "rows": rows, "columns": columns, "values": values})


def _sent(data: dict[str, Any]) -> dict[str, Any]:
    """Data as the notebook's messages carry them: arrays as bytes of float32."""

    def one(value: Any) -> Any:
        if isinstance(value, Tensor):
            value = value.detach().float().cpu().numpy()
        return memoryview(value.astype("<f4").tobytes()) if isinstance(value, np.ndarray) else value

    return {name: one(value) for name, value in data.items()}


@cache
def _widget_class() -> type:
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError('lens.widget needs anywidget: pip install "pellucid[widget]".') from None

    class LensWidget(anywidget.AnyWidget):
        """One picture."""

        _css = read_text("web/views/lens_grid.css") + read_text("web/views/views.css")
        data = traitlets.Dict().tag(sync=True)
        selected = traitlets.Any(None).tag(sync=True)

    return LensWidget
