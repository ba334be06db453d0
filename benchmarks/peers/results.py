"""From what the page reported to results: medians, pairs, and what does not count.

A row is void when libraries disagree about any output. A lane, a library in one form, is void when its device
reported an error in any repetition.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

OURS = "pellucid"
TOLERANCE = 1e-3
# A training drifts. Where rounding lets a ReLU pass or stop a value near zero, gradients change by more
# than rounding, and Adam makes steps of full size of small ones. With Adam's corrections in float32 instead
# of float64, as some libraries have them, the MLP's first matrix was off by 0.002 % of its norm as soon as
# one value had the other sign, at step 8, by 0.2 % after 32 steps and by 2 % after 83; so parameters are
# compared after few steps only. Losses were off by 0.006 % at most until step 32 and by 0.1 % until step
# 96, while without training they are off by 0.5 % in the median; so those of late steps may differ more.
WATCHED_STEPS = 8
LATE_STEP = 32
LATE_TOLERANCE = 5 * TOLERANCE


@dataclass
class Lane:
    """One library in one form, and everything that was measured of it in a row."""

    library: str
    form: str
    note: str = ""
    samples: list[dict[str, Any]] = field(default_factory=list)
    failure: str | None = None

    @property
    def name(self) -> str:
        return f"{self.library}/{self.form}"

    def phase(self, name: str) -> list[dict[str, Any]]:
        return [sample for sample in self.samples if sample["phase"] == name]

    def void(self) -> str | None:
        """Why its times do not count, or None."""
        if self.failure:
            return self.failure
        errors = sum(sample["errors"] for sample in self.samples)
        if errors:
            first = next(sample["error"] for sample in self.samples if sample["errors"])
            return f"{errors} WebGPU errors that nobody caught, first: {first}"
        return None if self.phase("queued") else "no repetition ended"


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, quartiles and extremes."""
    if len(values) > 1:
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    else:
        low = middle = high = values[0]
    return {"median": middle, "low": low, "high": high, "least": min(values), "most": max(values)}


def agree(a: Sequence[float], b: Sequence[float], tolerance: float = TOLERANCE) -> bool:
    """Whether two checksums (sum of magnitudes, norm, weighted sum) can be of the same output.

    The measure of all three is an error whose norm is ``tolerance`` times the output's. It moves the norm by
    so much at most. It moves the weighted sum, whatever that sum is, by the sum of w[i] * error[i]: by the
    error's norm / sqrt(3) in the root mean square, for the weights are random in [-1, 1) and know nothing of
    the error. The bound for any error, its norm times that of the weights, grows with the root of the number
    of elements: it would let three million elements pass in any order, which moves the sum by about the norm.
    """
    if not all(map(math.isfinite, (*a, *b))):
        return False
    magnitudes, norm = max(a[0], b[0]), max(a[1], b[1])
    allowed = (tolerance * magnitudes, tolerance * norm, tolerance * norm)
    return all(abs(x - y) <= most for x, y, most in zip(a, b, allowed, strict=True))


def disagreement(
    lanes: Sequence[Lane], tolerance: float = TOLERANCE, late: float | None = None
) -> str | None:
    """Which lane's outputs differ from those of most, or None when all that was computed agrees.

    Every output that was read is compared, those of the warm-up included, and what as many units left behind,
    if they were not more than `WATCHED_STEPS`. ``late`` is the tolerance for units from `LATE_STEP` on, if it
    is another.
    """
    seen: dict[str, list[tuple[str, Sequence[float]]]] = {}
    tolerances: dict[str, float] = {}
    for lane in lanes:
        for sample in lane.samples:
            for unit, check in zip(sample["units"], sample["checks"], strict=True):
                seen.setdefault(f"unit {unit}", []).append((lane.name, check))
                if late is not None and unit >= LATE_STEP:
                    tolerances[f"unit {unit}"] = late
            for place, check in enumerate(sample.get("left", ()) if sample["k"] <= WATCHED_STEPS else ()):
                what = f"what {sample['k']} units left behind, part {place}"
                seen.setdefault(what, []).append((lane.name, check))
    for what, checks in seen.items():
        firsts = dict(reversed(checks))  # by lane, its first
        within = tolerances.get(what, tolerance)
        reference = max(firsts, key=lambda name: sum(agree(firsts[name], c, within) for c in firsts.values()))
        expected = firsts[reference]
        for name, check in checks:
            if not agree(check, expected, within):
                shown, wanted = ([float(f"{x:.6g}") for x in found] for found in (check, expected))
                return f"{what}: {name} has the checksum {shown}, {reference} {wanted}"
    return None


def paired(ours: Lane, other: Lane) -> dict[str, float] | None:
    """How many times as long the other takes, over the repetitions that both ended."""
    theirs = {sample["repetition"]: sample["ms"] for sample in other.phase("queued")}
    ratios = [
        theirs[sample["repetition"]] / sample["ms"]
        for sample in ours.phase("queued")
        if sample["repetition"] in theirs
    ]
    return spread(ratios) if ratios else None


def value(row: dict[str, Any], ms: float) -> float:
    """A time in the row's unit."""
    match row["unit"]:
        case "ms":
            return ms
        case "µs/op":
            return 1e3 * ms / row["work"]
        case "GFLOP/s" | "GB/s":
            return row["work"] / ms / 1e6
        case "ids/s":
            return 1e3 * row["work"] / ms
    raise ValueError(
        f"row {row['name']}: unit {row['unit']!r} is unknown. Use ms, µs/op, GFLOP/s, GB/s or ids/s."
    )


@dataclass
class RowResult:
    """All lanes of one row."""

    row: dict[str, Any]
    lanes: dict[str, Lane] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)

    def lane(self, library: str, form: str) -> Lane:
        return self.lanes.setdefault(f"{library}/{form}", Lane(library, form))

    def void(self) -> str | None:
        """Why no time of the row counts, or None."""
        if self.row.get("uncompared"):
            return None
        late = LATE_TOLERANCE if "watched" in self.row else None
        return disagreement(list(self.lanes.values()), self.row.get("tolerance", TOLERANCE), late)

    def compared(self) -> bool:
        """Whether the outputs of two libraries at least were compared."""
        libraries = {lane.library for lane in self.lanes.values() if lane.samples}
        return len(libraries) > 1 and not self.row.get("uncompared")

    def summary(self) -> dict[str, Any]:
        """What goes into the JSON."""
        void = self.void()
        lanes = {name: self._lane(lane, void) for name, lane in self.lanes.items()}
        return {
            "row": self.row,
            "void": void,
            "compared": self.compared(),
            "lanes": lanes,
            "unavailable": self.unavailable,
            "pairs": {} if void else self._pairs(),
            "warm_flop_per_second": self._warm(),
        }

    def _warm(self) -> dict[str, float] | None:
        """How fast the warm-up's own kernel was before what was measured; it goes with the clock."""
        rates = [
            sample.get("warm_flop_per_second")
            for lane in self.lanes.values()
            for sample in (*lane.phase("queued"), *lane.phase("single"))
        ]
        known = [rate for rate in rates if rate]
        return spread(known) if known else None

    def _lane(self, lane: Lane, void: str | None) -> dict[str, Any]:
        found: dict[str, Any] = {"library": lane.library, "form": lane.form, "note": lane.note}
        reason = void or lane.void()
        if reason:
            return {**found, "void": reason, "samples": lane.samples}
        queued = lane.phase("queued")
        ms = spread([sample["ms"] for sample in queued])
        found |= {
            "void": None,
            "units": queued[0]["k"],
            "ms": ms,
            "value": value(self.row, ms["median"]),
            "host_ms": spread([sample["host_ms"] for sample in queued]),
            "first_ms": lane.phase("first")[0]["ms"],
            "counters": _per_unit(queued),
        }
        # Where a repetition is one unit, it is the single call.
        single = lane.phase("single") or queued
        found["single_ms"] = spread([sample["ms"] for sample in single])
        return {**found, "samples": lane.samples}

    def _pairs(self) -> dict[str, dict[str, float]]:
        """Each of our forms against each other lane: how many times as long the other takes."""
        valid = [lane for lane in self.lanes.values() if not lane.void()]
        pairs = {}
        for ours in (lane for lane in valid if lane.library == OURS):
            for other in valid:
                if other is not ours and (ratio := paired(ours, other)):
                    pairs[f"{ours.name} : {other.name}"] = ratio
        return pairs


def _per_unit(samples: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The device's counters per unit, where the library has them."""
    counted = [sample["counters"] for sample in samples if "counters" in sample]
    units = sum(sample["k"] for sample in samples if "counters" in sample)
    return {name: sum(one[name] for one in counted) / units for name in (counted[0] if counted else ())}


class Recorder:
    """Takes the page's events in their order."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.machine: dict[str, Any] = {}
        self.libraries: dict[str, dict[str, Any]] = {}
        self.own: dict[str, Any] = {}
        self.rows = {row["name"]: RowResult(row) for row in rows}

    def take(self, event: dict[str, Any]) -> None:
        """Note one event."""
        event = dict(event)
        kind = event.pop("kind")
        if kind == "machine":
            self.machine = event
        elif kind == "own":
            self.own = event
        elif kind == "library":
            self.libraries[event.pop("name")] = event
        elif kind in ("lane", "sample", "failed", "unavailable"):
            self._of_row(kind, self.rows[event.pop("row")], event)

    def _of_row(self, kind: str, result: RowResult, event: dict[str, Any]) -> None:
        library, form = event.pop("library"), event.pop("form", None)
        if kind == "unavailable":
            result.unavailable[library] = event["why"]
        elif form is None:
            result.unavailable[library] = f"failed: {event['error']}"
        elif kind == "lane":
            result.lane(library, form).note = event["note"]
        elif kind == "sample":
            result.lane(library, form).samples.append(event)
        else:
            result.lane(library, form).failure = (
                event["error"].strip().split("\n")[-1 if "Traceback" in event["error"] else 0]
            )

    def results(self) -> dict[str, Any]:
        """Everything, for the JSON."""
        return {
            "benchmark": "peers",
            "machine": self.machine,
            "libraries": self.libraries,
            "own": self.own,
            "rows": {name: result.summary() for name, result in self.rows.items()},
        }
