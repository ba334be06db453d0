"""Live plots of a training run: curves as SVG, and entries of the history for the page around Python."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_COLOURS = ("#2563eb", "#dc2626", "#16a34a", "#9333ea", "#d97706")
_WIDTH, _HEIGHT, _LEFT, _EDGE = 480, 160, 64, 12


def report(entry: Mapping[str, Any]) -> None:
    """Send an entry of the history to the page, as the event "training"; elsewhere it does nothing.

    ``web/training_plot.js`` draws what comes. Give it to `TrainingArguments` as ``report_to``.

    Args:
        entry: numbers by name, with "step".
    """
    _send("training", {k: v for k, v in entry.items() if isinstance(v, (int, float))})


def report_histograms(entry: Mapping[str, Any]) -> None:
    """Send an entry of `WeightHistograms` to the page, as the event "histograms"; elsewhere it does nothing.

    Args:
        entry: "step", and "histograms" by name.
    """
    _send("histograms", dict(entry))


def _send(event: str, value: dict[str, Any]) -> None:
    page = sys.modules.get("pellucid_page")
    if page is None and sys.platform == "emscripten":
        import importlib

        page = importlib.import_module("pellucid_page")
    if page is not None:
        page.send(event, value)


def curves(
    history: Iterable[Mapping[str, Any]], names: Iterable[str] = ("loss", "eval_loss", "grad_norm")
) -> str:
    """Values of a history over steps, as one SVG picture.

    Args:
        history: entries with "step", such as ``trainer.state.log_history``.
        names: which values; those without a number are left out.

    Returns:
        The text of the picture; empty where there is no value.

    Example:
        >>> from pellucid.train.plots import curves
        >>> curves([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]).count("<polyline")
        1
    """
    entries = list(history)
    found = {
        name: [(e["step"], float(e[name])) for e in entries if isinstance(e.get(name), (int, float))]
        for name in names
    }
    found = {name: points for name, points in found.items() if points}
    pictures = [
        _curve(name, points, colour) for (name, points), colour in zip(found.items(), _COLOURS, strict=False)
    ]
    return "\n".join(pictures)


def histograms(history: Iterable[Mapping[str, Any]], name: str) -> str:
    """How the numbers of a parameter lie, over the steps, as an SVG picture: dark where there are many.

    Args:
        history: ``history`` of a `WeightHistograms`.
        name: of the parameter.

    Returns:
        The text of the picture; empty where there is no such parameter.

    Example:
        >>> from pellucid.train.plots import histograms
        >>> first = {"low": -1.0, "high": 1.0, "counts": [1, 0, 3]}
        >>> histograms([{"step": 1, "histograms": {"weight": first}}], "weight").count("<rect")
        2
    """
    found = [(e["step"], e["histograms"][name]) for e in history if name in e["histograms"]]
    if not found:
        return ""
    low, high = min(h["low"] for _, h in found), max(h["high"] for _, h in found)
    up = (_HEIGHT - 3 * _EDGE) / ((high - low) or 1)
    wide = (_WIDTH - _LEFT - _EDGE) / len(found)
    boxes = []
    for k, (_, h) in enumerate(found):
        width, most = (h["high"] - h["low"]) / len(h["counts"]), max(h["counts"])
        for j, count in enumerate(h["counts"]):
            if count:
                top = _HEIGHT - 1.5 * _EDGE - (h["low"] + (j + 1) * width - low) * up
                boxes.append(
                    f'<rect x="{_LEFT + k * wide:.1f}" y="{top:.1f}" width="{wide:.1f}" '
                    f'height="{max(width * up, 1):.1f}" opacity="{count / most:.2f}"/>'
                )
    return _framed(
        name, low, high, found[0][0], found[-1][0], f'<g fill="{_COLOURS[0]}">{"".join(boxes)}</g>'
    )


def _curve(name: str, points: list[tuple[int, float]], colour: str) -> str:
    steps, values = [p[0] for p in points], [p[1] for p in points]
    low, high, first, last = min(values), max(values), min(steps), max(steps)
    across = (_WIDTH - _LEFT - _EDGE) / max(last - first, 1)
    up = (_HEIGHT - 3 * _EDGE) / ((high - low) or 1)
    line = " ".join(
        f"{_LEFT + (s - first) * across:.1f},{_HEIGHT - 1.5 * _EDGE - (v - low) * up:.1f}" for s, v in points
    )
    drawn = f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    return _framed(name, low, high, first, last, drawn)


def _framed(name: str, low: float, high: float, first: int, last: int, drawn: str) -> str:
    """A picture with its name, the ends of its values and of its steps."""
    texts = [
        (_LEFT, _EDGE, "start", name),
        (_LEFT - 4, 2 * _EDGE, "end", f"{high:.4g}"),
        (_LEFT - 4, _HEIGHT - 1.5 * _EDGE, "end", f"{low:.4g}"),
        (_LEFT, _HEIGHT - 2, "start", f"step {first}"),
        (_WIDTH - _EDGE, _HEIGHT - 2, "end", str(last)),
    ]
    style = 'font-size="11" fill="currentColor"'
    labels = "".join(
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{side}" {style}>{escape(text)}</text>'
        for x, y, side, text in texts
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" aria-label="{escape(name)}" '
        f'font-family="sans-serif">{labels}{drawn}</svg>'
    )


__all__ = ["curves", "histograms", "report", "report_histograms"]
