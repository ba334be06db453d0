"""Compare two models, or a model with recorded values, point by point: where they first depart, and why."""

from __future__ import annotations

import html
import json
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..device.steps import later, now
from ..errors import WeightError
from .causes import Departure, cause
from .pairs import pair, relative_error
from .sides import Side, arguments, recorded, run, side

_STYLE = "font:13px/1.5 system-ui,sans-serif;border-collapse:collapse;text-align:left;color:#111"
_COLORS = {"ok": "#eaf6ea", "differs": "#fff6dd", "DEPARTS": "#fde3e3"}


@dataclass
class Comparison:
    """One point of a model beside that of another.

    Args:
        path: the module; with ``:input`` what it was given.
        error: largest absolute difference over the largest recorded magnitude; infinite where shapes or NaNs
            differ.
        cause: what would explain the difference; empty where there is none.
        other: the other's name for it.
        by: what told that they are the same: "name", "value" or "shape".
        shape: of the value.
        is_inner: it differs inside of a module that agrees: another layout, which does not count.
    """

    path: str
    error: float
    cause: str = ""
    other: str = ""
    by: str = "name"
    shape: tuple[int, ...] = ()
    is_inner: bool = False


@dataclass
class Match:
    """The result of `match`: rows in the order in which the model ran; ``first`` departs, or is None.

    Args:
        tolerance: largest error of equal values.
        rows: what was compared.
        names: of the two sides.
        unpaired: points of each side that were not compared.
    """

    tolerance: float
    rows: list[Comparison] = field(default_factory=list)
    names: tuple[str, str] = ("", "")
    unpaired: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))

    @property
    def first(self) -> Comparison | None:
        return next((r for r in self.rows if self._state(r) == "DEPARTS"), None)

    def _state(self, row: Comparison) -> str:
        return "ok" if row.error <= self.tolerance else "differs" if row.is_inner else "DEPARTS"

    def __bool__(self) -> bool:
        return self.first is None

    def __str__(self) -> str:
        names = [r.path if r.other in ("", r.path) else f"{r.path} = {r.other}" for r in self.rows]
        width = max(map(len, names), default=4)
        lines = [
            f"{name:{width}}  {r.error:9.2e}  {self._state(r)} {r.cause}".rstrip()
            for name, r in zip(names, self.rows)
        ]
        for name, points in zip(self.names, self.unpaired):
            if points:
                some = ", ".join(points[:4]) + (f" and {len(points) - 4} more" if len(points) > 4 else "")
                lines.append(f"only in {name}: {some}")
        first = self.first
        lines.append(
            "all within tolerance"
            if first is None
            else f"first departs: {first.path}: {first.cause or 'no simple cause found'}"
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook and the page show: a table, in which what departs is marked."""
        first, rows = self.first, []
        for row in self.rows:
            state, name = self._state(row), row.path
            if row.other not in ("", row.path):
                name += f" = {row.other}"
            mark = ";font-weight:bold" if row is first else ""
            parts = (name, "x".join(map(str, row.shape)), f"{row.error:.2e}", state, row.cause)
            cells = "".join(f"<td style='padding:0 8px'>{html.escape(part)}</td>" for part in parts)
            rows.append(f"<tr style='background:{_COLORS[state]}{mark}'>{cells}</tr>")
        for name, points in zip(self.names, self.unpaired, strict=True):
            if points:
                told = html.escape(f"only in {name}: {', '.join(points)}")
                rows.append(f"<tr><td colspan='5' style='padding:0 8px'>{told}</td></tr>")
        head = "".join(
            f"<th style='padding:0 8px'>{name}</th>"
            for name in ("point", "shape", "error", "", "likely cause")
        )
        said = "All within tolerance." if first is None else f"First departs: {first.path}."
        names = html.escape(f"{' and '.join(filter(None, self.names))}: {said}")
        return f"<table style='{_STYLE}'><caption>{names}</caption><tr>{head}</tr>{''.join(rows)}</table>"

    def to_json(self) -> str:
        """All of it as JSON, for programs; an infinite error is null."""
        rows = [
            {**asdict(r), "error": r.error if np.isfinite(r.error) else None, "state": self._state(r).lower()}
            for r in self.rows
        ]
        return json.dumps(
            {
                "a": self.names[0],
                "b": self.names[1],
                "tolerance": self.tolerance,
                "equal": bool(self),
                "first": None if self.first is None else self.first.path,
                "cause": None if self.first is None else self.first.cause,
                "rows": rows,
                "only_a": self.unpaired[0],
                "only_b": self.unpaired[1],
            }
        )


def match(a: Any, b: Any, *inputs: Any, tolerance: float = 1e-3, **forward: Any) -> Match:
    """Run a model and compare what its modules return with another model, or with recorded values.

    Points are paired by name, then by value, order and shape. The first that departs gets a likely cause:
    layout, weights (quantization, dtype), a norm's epsilon, an activation, a bias, the rotary layout, a mask.

    Args:
        a, b: a module; or a recording: a mapping from module paths to arrays, or the path of such an npz or
            safetensors file. At least one is a module. `pellucid.match` opens files of models, too.
        inputs: arguments of the models' call; one mapping, or the path of an npz, has them by name. What a
            recording holds of them (``input_ids``, ``input``, ``call:NAME``) is taken where none are given.
        tolerance: largest relative error that counts as equal.
        forward: further arguments by name.

    Returns:
        A `Match`; print it, or look at ``first``.

    Raises:
        WeightError: no point of the two is the same, or there are no inputs.

    Example:
        >>> import numpy as np, pellucid as torch
        >>> from pellucid import nn
        >>> with torch.device("cpu"):
        ...     model = nn.Sequential(nn.ReLU(), nn.Tanh())
        ...     ones = np.ones((1, 2), "float32")
        ...     result = torch.match(model, {"input": ones, "0": ones, "1": ones * 2})
        >>> result.first.path
        '1'
    """
    return now(compare(a, b, inputs, forward, tolerance))


async def match_async(a: Any, b: Any, *inputs: Any, tolerance: float = 1e-3, **forward: Any) -> Match:
    """The awaitable twin of `match`."""
    return await later(compare(a, b, inputs, forward, tolerance))


def compare(
    a: Any, b: Any, inputs: tuple, named: dict[str, Any], tolerance: float
) -> Generator[tuple, Any, Match]:
    """The steps of `match`, whose arguments these are."""
    sides: list[Side] = []
    for what in (a, b):
        sides.append((yield from side(what)))
    if len(inputs) == 1 and (isinstance(inputs[0], str) or hasattr(inputs[0], "__fspath__")):
        inputs = ((yield from recorded(inputs[0])),)
    inputs, named = arguments(inputs, named)
    if not inputs and not named:
        named = next((dict(s.given) for s in sides if s.given), {})
        if not named and any(s.model is not None for s in sides):
            raise WeightError(
                "match: there are no inputs, and no reference with an entry 'input_ids' or 'input'. Give the "
                "model's inputs, or record a reference."
            )
    for s, other in zip(sides, reversed(sides)):
        if s.model is not None:
            yield from run(s, inputs, named, other)
    return _compared(sides[0], sides[1], tolerance)


def _compared(a: Side, b: Side, tolerance: float) -> Match:
    pairs = pair(a.values, b.values, tolerance)
    if not pairs:
        raise WeightError(
            f"match: no point of {a.name} is one of {b.name}: {', '.join(list(a.values)[:4])}, ... against "
            f"{', '.join(list(b.values)[:4])}, .... A lone file of weights is no model: give its folder."
        )
    used = {p.a for p in pairs}, {p.b for p in pairs}
    only = [[n for n in s.values if n not in u] for s, u in zip((a, b), used)]
    result = Match(tolerance, names=(a.name, b.name), unpaired=(only[0], only[1]))
    errors = {p.a: relative_error(a.values[p.a], b.values[p.b]) for p in pairs}
    agreed = {path for path, error in errors.items() if error <= tolerance}
    for p in pairs:
        parts = p.a.split(".")
        row = Comparison(p.a, errors[p.a], "", p.b, p.by, a.values[p.a].shape)
        row.is_inner = p.a not in agreed and any(".".join(parts[:k]) in agreed for k in range(1, len(parts)))
        if p.a not in agreed:
            if result.first is not None and not row.is_inner:
                row.cause = "follows from the first"
            else:
                result.rows += _explained(a, b, row, tolerance)
        result.rows.append(row)
    return result


def _explained(a: Side, b: Side, row: Comparison, tolerance: float) -> list[Comparison]:
    """Give a row its cause; the row of what the module was given, if that is where it begins."""
    given: tuple[Any, Any] = a.inputs.get(row.path), b.inputs.get(row.other)
    if given[0] is None or given[1] is None or given[0].size != given[1].size:
        given = None, None
    elif not row.is_inner and tolerance < (before := relative_error(given[0], given[1])) < np.inf:
        # What runs between modules did it: the module only passes it on.
        told = cause(Departure(given[0], given[1], tolerance))
        row.cause = "follows from the first"
        return [Comparison(f"{row.path}:input", before, told, f"{row.other}:input", row.by, given[0].shape)]
    modules = a.module(row.path), b.module(row.other)
    row.cause = cause(Departure(a.values[row.path], b.values[row.other], tolerance, modules, given))
    return []
