"""Op rows of the comparison: what a row's events say, and the table of all rows."""

import statistics
from dataclasses import dataclass, field
from typing import Any

from .results import OURS, TOLERANCE, agree
from .table import grid, number

# Of random numbers, only how large they are is compared, so far.
LOOSE = 0.05
# A peer whose time is this part of ours or more is no faster by more than a clock in a page tells.
NEAR = 0.95
# Where noise, or a call without work, leaves no difference.
NO_TIME = "the longer queue took no longer than the shorter"


@dataclass
class Lane:
    """One library in one form."""

    note: str
    check: list[float]
    times: list[float] = field(default_factory=list)
    calls: int = 0


@dataclass
class Row:
    """What the page said of a row."""

    row: dict[str, Any]
    lanes: dict[str, dict[str, Lane]] = field(default_factory=dict)
    failures: dict[str, dict[str, str]] = field(default_factory=dict)
    cut: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def take(self, kind: str, event: dict[str, Any]) -> None:
        """Note one event."""
        library, form = event["library"], event.get("form")
        if kind == "lane":
            self.lanes.setdefault(library, {})[form] = Lane(event["note"], event["check"])
        elif kind == "sample":
            lane = self.lanes[library][form]
            lane.times.append(1000 * event["ms"])
            lane.calls = event["calls"]
        elif kind == "cut":
            found = {"us": 1000 * event["ms"], "form": form, "cut": event["why"]}
            self.cut.setdefault(library, []).append(found)
        else:
            why = event.get("why") or event["error"].strip()
            line = why.split("\n")[-1 if "Traceback" in why else 0]
            self.failures.setdefault(library, {})[form or ""] = line

    def result(self) -> dict[str, Any]:
        """By library: the fastest form whose output is right, or why there is none."""
        return {library: self._of(library) for library in self.row["expressions"]}

    def _of(self, library: str) -> dict[str, Any]:
        failures = dict(self.failures.get(library, {}))
        valid = {}
        for form, lane in self.lanes.get(library, {}).items():
            if why := self._wrong(lane):
                failures[form] = why
            elif lane.times and form not in failures:
                if statistics.median(lane.times) > 0:
                    valid[form] = lane
                else:
                    failures[form] = NO_TIME
        if not valid and library in self.cut:
            return min(self.cut[library], key=lambda found: found["us"])
        if not valid:
            return {"none": "; ".join(sorted(set(failures.values()))) or "nothing was measured"}
        form = min(valid, key=lambda form: statistics.median(valid[form].times))
        lane = valid[form]
        found = {"us": statistics.median(lane.times), "form": form, "calls": lane.calls, "times": lane.times}
        forms = {form: statistics.median(lane.times) for form, lane in valid.items()}
        return found | {"note": lane.note, "forms": forms} | ({"failed": failures} if failures else {})

    def _wrong(self, lane: Lane) -> str | None:
        """How an output differs from ours."""
        ours = self.lanes.get(OURS, {})
        if not ours:
            return "there is no output of ours to compare with"
        expected = next(iter(ours.values())).check
        if "loosely" in self.row:
            right = agree([*lane.check[:2], 0], [*expected[:2], 0], LOOSE)
        else:
            right = agree(lane.check, expected, TOLERANCE)
        shown, wanted = ([float(f"{x:.6g}") for x in check] for check in (lane.check, expected))
        return None if right else f"another output: its checksum is {shown}, ours {wanted}"


def best(row: dict[str, Any]) -> tuple[str, float] | None:
    """The fastest peer, and how many times as long as we it takes; None where no two can be compared."""
    peers = {name: found["us"] for name, found in row.items() if name != OURS and "us" in found}
    if not peers or "us" not in row[OURS]:
        return None
    name = min(peers, key=peers.__getitem__)
    return name, peers[name] / row[OURS]["us"]


def cell(found: dict[str, Any] | None) -> str:
    """Microseconds and the form, where there is another than the plain one."""
    if found is None or "us" not in found:
        return "–"
    if "cut" in found:
        return f"about {number(found['us'] / 1e6)} s, not measured"
    return number(found["us"]) + (f", {found['form']}" if found["form"] != "eager" else "")


def told(name: str, row: dict[str, Any]) -> str:
    """A row in one line, with what failed in it."""
    cells = [f"{library} {cell(found)}" for library, found in row.items()]
    ratio = f" {found[1]:.2f}" if (found := best(row)) else ""
    failed = [f"  {library}: {found['none']}" for library, found in row.items() if "none" in found]
    return "\n".join([f"{name:28}{ratio:>8}  {', '.join(cells)}", *failed])


def peers(results: dict[str, Any]) -> list[str]:
    """The libraries beside ours."""
    return list(dict.fromkeys(name for row in results["rows"].values() for name in row if name != OURS))


def listed(ratios: dict[str, tuple[str, float]]) -> str:
    """Rows with their peer, the worst first."""
    worst = sorted(ratios.items(), key=lambda pair: pair[1][1])
    return ", ".join(f"{name} ({peer} {ratio:.2f})" for name, (peer, ratio) in worst) or "none"


def summary(results: dict[str, Any]) -> str:
    """In how many rows there are peers, and in how many we are at least the best of them."""
    rows = results["rows"]
    ratios = {name: found for name, row in rows.items() if (found := best(row))}
    behind = {name: found for name, found in ratios.items() if found[1] < 1}
    near = {name: found for name, found in behind.items() if found[1] >= NEAR}
    far = {name: found for name, found in behind.items() if found[1] < NEAR}
    counted = ", ".join(
        f"{peer} in {sum('us' in row.get(peer, {}) for row in rows.values())}" for peer in peers(results)
    )
    won = len(ratios) - len(behind)
    share = f" ({100 * won / len(ratios):.1f} %)" if ratios else ""
    lost = [name for name, row in rows.items() if "us" not in row[OURS]]
    ours = f"; nothing of ours in: {', '.join(lost)}" if lost else ""
    return (
        f"{counted}; either in {len(ratios)}, and we are at least the best of them in {won}{share}; "
        f"nearly in {len(near)}: {listed(near)}; not in {len(far)}: {listed(far)}{ours}"
    )


def remarks(results: dict[str, Any]) -> list[str]:
    """Why a library has no time in a row; the same of several rows once."""
    said: dict[tuple[str, str], list[str]] = {}
    for name, row in results["rows"].items():
        for library, found in row.items():
            single = found.get("none") or found.get("cut")
            for why in {single} if single else set(found.get("failed", {}).values()):
                said.setdefault((library, why), []).append(name)
    return [f"- {library}: {why}: {', '.join(rows)}" for (library, why), rows in said.items()]


def markdown(results: dict[str, Any]) -> str:
    """The table, and why cells are empty."""
    names, of = peers(results), results.get("of", {})
    adapter = of.get("adapter", {})
    device = " ".join(filter(None, (adapter.get(k) for k in ("vendor", "architecture", "description"))))
    versions = ", ".join(f"{name} {of[name]}" for name in (OURS, *names) if name in of)
    body = [
        [
            name,
            *(cell(row.get(library)) for library in (OURS, *names)),
            f"{found[1]:.2f}, {found[0]}" if found else "–",
        ]
        for name, row in results["rows"].items()
        for found in [best(row)]
    ]
    head = ["row", *(f"{library}, µs" for library in (OURS, *names)), "the best peer takes × our time"]
    return "\n".join(
        [
            f"Device: {device or 'unknown'}; {of.get('browser', 'unknown browser')}.",
            f"Libraries: {versions or 'none'}; x has {of.get('MB', 0):g} MB. By the clock, medians.",
            "",
            *grid(head, body),
            "",
            *remarks(results),
            "",
        ]
    )
