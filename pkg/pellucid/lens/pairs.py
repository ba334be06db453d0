"""Which points of two models are the same: by name, then by value, shape and order (sequence alignment)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from .points import canonical

# Names that say nothing of a place: what wraps models, and what numbers nodes of a graph.
_WRAPPERS = re.compile(r"^(?:module|_orig_mod|model|transformer|base_model)\.")
_MOST_COMPARED = 1_000_000  # cells of a table of two sequences


class Paired(NamedTuple):
    """A point of each side, and what told that they are the same: "name", "value" or "shape"."""

    a: str
    b: str
    by: str


def pair(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], tolerance: float) -> list[Paired]:
    """Pairs of points, in the order of ``a``.

    Equal names come first, then names of which one ends in the other, module paths of ONNX nodes included;
    what is left is aligned between them by value and, where counts agree, by shape.

    Args:
        a, b: values by point, in the order in which they were computed.
        tolerance: largest relative error of equal values.
    """
    known = dict(_by_name(a, b))
    found = {name: Paired(name, other, "name") for name, other in known.items()}
    places = {name: k for k, name in enumerate(b)}
    # Where names cross, only those in the same order on both sides bound a stretch.
    bounds, last = [], -1
    for k, name in enumerate(a):
        at = places[known[name]] if name in known else -1
        if at > last:
            bounds.append((k, at))
            last = at
    names_a, names_b, taken = list(a), list(b), set(known.values())
    before = (-1, -1)
    for bound in [*bounds, (len(names_a), len(names_b))]:
        left = [n for n in names_a[before[0] + 1 : bound[0]] if n not in known]
        right = [n for n in names_b[before[1] + 1 : bound[1]] if n not in taken]
        found.update({p.a: p for p in _aligned(left, right, a, b, tolerance)})
        before = bound
    return [found[name] for name in a if name in found]


def _by_name(a: Iterable[str], b: Iterable[str]) -> Iterator[tuple[str, str]]:
    left, right = dict.fromkeys(a), dict.fromkeys(b)
    for name in [n for n in left if n in right]:
        yield name, name
        del left[name], right[name]
    for key in (canonical, _plain):
        mine, theirs = _unique(left, key), _unique(right, key)
        for name in mine.keys() & theirs.keys():
            yield mine[name], theirs[name]
            del left[mine[name]], right[theirs[name]]
    # One path may begin further out: encoder.layer.0 and bert.encoder.layer.0.
    for short, long, turned in ((left, right, False), (right, left, True)):
        ends: dict[str, list[str]] = {}
        for name in long:
            parts = _plain(name).split(".")
            for k in range(1, len(parts)):
                ends.setdefault(".".join(parts[k:]), []).append(name)
        for name in list(short):
            if len(fits := ends.get(_plain(name), [])) == 1 and fits[0] in long and "." in _plain(name):
                yield (fits[0], name) if turned else (name, fits[0])
                del short[name], long[fits[0]]


def _unique(names: Iterable[str], key) -> dict[str, str]:
    keys = {name: key(name) for name in names}
    counts = Counter(keys.values())
    return {k: name for name, k in keys.items() if k and counts[k] == 1}


def _plain(name: str) -> str:
    """A path without what wraps a model; a node of ONNX by the module that it belongs to."""
    name = name.strip("/").replace("/", ".")
    while (shorter := _WRAPPERS.sub("", name)) != name:
        name = shorter
    return name


def _aligned(left: list[str], right: list[str], a: Mapping, b: Mapping, tolerance: float) -> list[Paired]:
    """The longest sequence of pairs of equal values, and between them those of equal shapes where they are
    equally many."""
    if not left or not right or len(left) * len(right) > _MOST_COMPARED:
        return []
    marks = [[_mark(values[n]) for n in names] for values, names in ((a, left), (b, right))]
    equal = [
        [
            _may_be(m, n, tolerance) and relative_error(a[x], b[y]) <= tolerance
            for y, n in zip(right, marks[1])
        ]
        for x, m in zip(left, marks[0])
    ]
    longest = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        row, below = longest[i], longest[i + 1]
        for j in range(len(right) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if equal[i][j] else max(below[j], row[j + 1])
    found, i, j, before = [], 0, 0, (0, 0)

    def between(to: tuple[int, int]) -> None:
        xs, ys = left[before[0] : to[0]], right[before[1] : to[1]]
        shapes = [[np.squeeze(values[n]).shape for n in names] for values, names in ((a, xs), (b, ys))]
        if shapes[0] == shapes[1]:
            found.extend(Paired(x, y, "shape") for x, y in zip(xs, ys))

    while i < len(left) and j < len(right):
        if equal[i][j]:
            between((i, j))
            found.append(Paired(left[i], right[j], "value"))
            i, j = i + 1, j + 1
            before = i, j
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    between((len(left), len(right)))
    return found


def _mark(x: np.ndarray) -> tuple[tuple[int, ...], float, float]:
    """What tells quickly that values differ: the shape, the mean and the largest magnitude."""
    size = np.abs(x)
    return np.squeeze(x).shape, float(size.mean()) if x.size > 1 else np.nan, float(size.max(initial=0))


def _may_be(a: tuple, b: tuple, tolerance: float) -> bool:
    return a[0] == b[0] and abs(a[1] - b[1]) <= tolerance * max(b[2], 1e-12)


def relative_error(got: np.ndarray, wanted: np.ndarray) -> float:
    """Largest absolute difference over the largest wanted magnitude; infinite where NaNs or shapes differ.

    Axes of length 1 are no difference, nor is a row that one side has once and the other for every position.
    """
    if got.shape != wanted.shape:
        got, wanted = np.squeeze(got), np.squeeze(wanted)
        is_same_rank = got.ndim == wanted.ndim and got.shape != wanted.shape
        if is_same_rank or got.shape[-1:] != wanted.shape[-1:]:
            return float("inf")
        try:
            got, wanted = np.broadcast_arrays(got, wanted)
        except ValueError:
            return float("inf")
    difference = np.abs(got - wanted)
    if not np.all(np.isfinite(difference)):
        return 0.0 if np.array_equal(got, wanted, equal_nan=True) else float("inf")
    return float(difference.max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-12))
