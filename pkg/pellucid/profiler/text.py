"""Tables and numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .recording import Dispatch, Recording

# Times that are multiples of more than this many nanoseconds were rounded by somebody.
_ROUNDED = 10_000
_ENOUGH = 4


def with_unit(value: float, unit: str, digits: int = 3) -> str:
    """A number with as many digits, in thousands of its unit.

    Example:
        >>> with_unit(12345678, "B"), with_unit(0.25e-6, "s"), with_unit(0, "B/s")
        ('12.3 MB', '250 ns', '0 B/s')
    """
    if not value:
        return f"0 {unit}"
    power = min(max(math.floor(math.log10(abs(value)) / 3), -3 if unit == "s" else 0), 4)
    scaled = value / 1000**power
    whole = len(str(int(abs(scaled))))
    prefix = {-3: "n", -2: "u", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}[power]
    shown = f"{scaled:.{max(digits - whole, 0)}f}"
    if "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    return f"{shown} {prefix}{unit}"


def shortened(text: str, width: int) -> str:
    """A text that is no longer than so many characters.

    Example:
        >>> shortened("mul + add + relu", 10)
        'mul + a...'
    """
    return text if len(text) <= width else f"{text[: width - 3]}..."


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: str) -> str:
    """Columns side by side; those whose head is in ``left`` begin at the same place, others end there."""
    cells = [list(heads), *[list(row) for row in rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    names = left.split(", ")
    lines = []
    for row in cells:
        aligned = [
            text.ljust(width) if head in names else text.rjust(width)
            for text, width, head in zip(row, widths, heads, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def rounding(dispatches: Sequence[Dispatch]) -> int:
    """The step in nanoseconds to which all times were rounded; 0 where they were not, or too few to say."""
    stamps = {stamp for d in dispatches if d.time is not None for stamp in d.time}
    if len(stamps) < _ENOUGH:
        return 0
    first = min(stamps)
    step = math.gcd(*[stamp - first for stamp in stamps])
    return step if step > _ROUNDED else 0


def about_times(recording: Recording) -> list[str]:
    """What a reader must know about the times of a recording."""
    if not recording.asked:
        return []
    if not recording.has_timestamps:
        return [
            "This device has no timestamps. Times are those of whole windows, from their submission until",
            "their work was done, on the clock of the host.",
        ]
    notes = [
        "GPU times are of dispatches each in a pass of its own, which costs about 17 us more for each on a",
        "GPU: their sum is not the time of the program without it.",
    ]
    dispatches = recording.dispatches
    step = rounding(dispatches)
    if step:
        notes += [
            f"This browser rounds them to {with_unit(step / 1e9, 's')}: only sums of many mean something. "
            "Chromium started with",
            "--enable-webgpu-developer-features does not round.",
        ]
    missing = sum(d.time is None for d in dispatches)
    if missing:
        notes.append(
            f"{missing} of {len(dispatches)} dispatches have no time: they failed, or the queries were full."
        )
    return notes
