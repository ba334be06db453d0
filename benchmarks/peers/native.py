"""Rows of the comparison without a browser: the clock, the samples, the table."""

import argparse
import json
import sys
import time
from typing import Any, Protocol

import numpy as np

from . import table
from .ours.data import checksum
from .ours.forms import Form, Row, Unavailable
from .results import spread, value

# Seconds of a row's work, until what compiles is compiled and the clock of a GPU is up.
WARM_UP = 0.4


class Library(Protocol):
    """What measures the rows: a library on a device of this machine."""

    def facts(self) -> dict[str, Any]:
        """What is to be known of it; under "library" its name, its version and the device."""
        ...

    def forms(self, row: Row) -> dict[str, Form]:
        """The forms of a row that it has.

        Raises: Unavailable when the row needs what is not here.
        """
        ...

    def wait(self) -> None:
        """Until everything queued is done."""
        ...

    def numbers(self, output: Any) -> np.ndarray:
        """The values of what a unit returned."""
        ...


def measure(library: Library, row: Row, form: Form, options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a unit in each repetition of k units and one wait, and the sums of an output."""
    k = row.get("units", row["inputs"])

    def repeat() -> tuple[float, Any]:
        spent = 0.0
        if form.before is not None:
            library.wait()
            began = time.perf_counter()
            form.before(k)
            library.wait()
            spent = time.perf_counter() - began if form.follows else 0.0
        began = time.perf_counter()
        outputs = [form.unit(i) for i in range(k)]
        library.wait()
        return 1000 * (time.perf_counter() - began - spent) / k, outputs[0]

    repeat()
    began = time.perf_counter()
    while time.perf_counter() - began < WARM_UP:
        repeat()
    times, output = [], None
    while not times or (
        len(times) < options.repetitions and time.perf_counter() - began < options.row_seconds
    ):
        ms, output = repeat()
        times.append(ms)
    return {"k": k, "ms": times, "check": checksum(library.numbers(output))}


def run(library: Library, rows: list[Row], options: argparse.Namespace, name: str) -> int:
    """Measure the rows, show a table, write the samples.

    Args:
        name: of the file in `options.out`, where no other is named.

    Returns: the exit status; 1 when a row failed, or none could be measured.
    """
    results: dict[str, Any] = {**library.facts(), "rows": {}}
    lines, failed = [], 0
    for row in rows:
        try:
            made = library.forms(row)
        except Unavailable as error:
            print(f"bench: {row['name']}: {error}", file=sys.stderr)
            continue
        for which, form in made.items():
            try:
                found = measure(library, row, form, options)
            except RuntimeError as error:
                # Out of memory, or a compiler that is not there: one row must not cost the others.
                failed += 1
                print(f"bench: {row['name']}, {which}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            results["rows"][f"{row['name']}/{which}"] = found
            figures = spread([value(row, ms) for ms in found["ms"]])
            cell = table.shown(figures["median"], (figures["low"], figures["high"]))
            lines.append([f"{row['title']}, {which}, {row['unit']}", str(found["k"]), cell])
            print(f"bench: {lines[-1][0]}: {cell}", file=sys.stderr, flush=True)
        made.clear()
    target = options.json or options.out / name
    target.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table.grid(["", "k", results["library"]], lines)))
    return 1 if failed or not lines else 0
