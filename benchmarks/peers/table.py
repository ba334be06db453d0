"""Results as Markdown: queued times, single calls, our own side, and what does not count."""

from collections.abc import Iterator, Sequence
from typing import Any

from .results import OURS, value

# A form is what a user writes, so the same form stands in one line.
FORMS = ("eager", "unfused", "captured")
# Whose shares can be told, by the unit of a row: which of our own side's figures says what the device can do.
PEAKS = {"GFLOP/s": "gflop_per_second", "GB/s": "copied_gb_per_second"}


def number(x: float) -> str:
    """Three digits that say something."""
    if x == 0:
        return "0"
    if abs(x) >= 100:
        return f"{x:.0f}"
    return f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}" if abs(x) >= 1 else f"{x:.3f}"


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [line(head), line(["---"] * len(head)), *map(line, lines)]


def columns(results: dict[str, Any]) -> list[str]:
    """The libraries that measured anything, ours first."""
    used = {lane["library"] for row in results["rows"].values() for lane in row["lanes"].values()}
    return [name for name in results["libraries"] if name in used]


def lines(results: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each row in each form that a library has of it."""
    for row in results["rows"].values():
        forms = {lane["form"] for lane in row["lanes"].values()}
        for form in sorted(forms, key=FORMS.index):
            yield row, form


def title(row: dict[str, Any], form: str) -> str:
    several = len({lane["form"] for lane in row["lanes"].values()}) > 1
    return f"{row['row']['title']}{f', {form}' if several else ''}, {row['row']['unit']}"


def shown(median: float, ends: Sequence[float]) -> str:
    """A median and the quartiles beside it."""
    low, high = sorted(ends)
    return f"{number(median)} ({number(low)}–{number(high)})"


def queued(row: dict[str, Any], lane: dict[str, Any] | None) -> str:
    """Median and quartiles in the row's unit."""
    if lane is None:
        return "–"
    if lane["void"]:
        return "void"
    return shown(lane["value"], [value(row["row"], lane["ms"][end]) for end in ("low", "high")])


def units(row: dict[str, Any], form: str) -> str:
    """How many units a repetition queued, from the library with the fewest to that with the most."""
    lanes = [lane for lane in row["lanes"].values() if lane["form"] == form and not lane["void"]]
    counted = sorted({lane["units"] for lane in lanes})
    return "–".join(map(str, counted[:1] + counted[1:][-1:])) or "–"


def share(results: dict[str, Any], row: dict[str, Any], form: str) -> str:
    """How near our form comes to what the device was measured to do in the same run."""
    lane = row["lanes"].get(f"{OURS}/{form}")
    peak = results["own"].get(PEAKS.get(row["row"]["unit"]))
    if lane is None or lane["void"] or not peak or row["row"]["kind"] == "upload":
        return "–"
    return f"{100 * lane['value'] / peak:.0f} %"


def best(results: dict[str, Any], row: dict[str, Any], form: str) -> str:
    """Our form against the fastest lane of another library, whatever its form; by pairs."""
    others = {name for name, facts in results["libraries"].items() if name != OURS and not facts.get("floor")}
    ratios = {}
    for names, ratio in row["pairs"].items():
        ours, other = names.split(" : ")
        if ours == f"{OURS}/{form}" and other.split("/")[0] in others:
            ratios[other] = ratio
    if not ratios:
        return "–"
    name = min(ratios, key=lambda name: ratios[name]["median"])
    found = ratios[name]
    return f"{number(found['median'])} ({number(found['low'])}–{number(found['high'])}), {name}"


def speeds(results: dict[str, Any]) -> list[str]:
    names = columns(results)
    body = [
        [
            title(row, form),
            units(row, form),
            *(queued(row, row["lanes"].get(f"{name}/{form}")) for name in names),
            share(results, row, form),
            best(results, row, form),
            number(row["noise"]["other_cores"]) if "noise" in row else "–",
        ]
        for row, form in lines(results)
    ]
    head = ["", "k", *names, f"{OURS}, of peak", "the fastest other takes × our time"]
    return grid([*head, "cores that others used"], body)


def singles(results: dict[str, Any]) -> list[str]:
    """Units in a repetition; one unit and its wait; the first call, which compiles."""
    names = columns(results)

    def cell(lane: dict[str, Any] | None) -> str:
        if lane is None or lane["void"]:
            return "–"
        return f"{lane['units']} / {number(lane['single_ms']['median'])} / {number(lane['first_ms'])}"

    body = [
        [title(row, form).rpartition(",")[0], *(cell(row["lanes"].get(f"{name}/{form}")) for name in names)]
        for row, form in lines(results)
    ]
    return grid(["", *names], body)


def costs(results: dict[str, Any]) -> list[str]:
    """What Pellucid's Python and JavaScript cost, row by row, from the device's counters."""
    body = []
    for row, form in lines(results):
        lane = row["lanes"].get(f"{OURS}/{form}")
        if lane is None or lane["void"]:
            continue
        steps = row["row"].get("new", 1)
        counted = {name: amount / steps for name, amount in lane["counters"].items()}
        host = None if row["row"].get("waits") else 1000 * lane["host_ms"]["median"]
        body.append(
            [
                title(row, form).rpartition(",")[0] + (", per id" if steps > 1 else ""),
                "–" if host is None else number(host),
                "–" if host is None or "ops" not in row["row"] else number(host / row["row"]["ops"]),
                number(counted["dispatches"]),
                number(1000 * counted["encode_ms"] / counted["dispatches"]) if counted["dispatches"] else "–",
                number(counted["flushes"]),
                number(counted["bind_groups"]),
            ]
        )
    head = ["per unit", "host µs until queued", "host µs per op", "dispatches", "JS µs per dispatch"]
    return grid([*head, "flushes", "new bind groups"], body)


OWN = {
    "copied_gb_per_second": "peak: memory copied, GB/s",
    "gflop_per_second": "float32, GFLOP/s",
    "python_us_per_op": "Python per eager op, µs",
    "flush_us_per_op": "its share of a flush, µs",
    "js_us_per_dispatch": "JavaScript per dispatch, µs",
    "dispatches_per_id": "SmolLM2-135M: dispatches per id",
    "flushes_per_id": "flushes per id",
    "bind_groups_per_id": "new bind groups per id",
    "js_us_per_id": "JavaScript per id, µs",
    "decoding": "SmolLM2-135M",
    "failed": "failed",
}


def own(results: dict[str, Any]) -> list[str]:
    """The same for an eager op and for an id, whatever the rows are."""
    found = results["own"]
    told = [name for name in OWN if name in found]
    values = [found[name] if isinstance(found[name], str) else number(found[name]) for name in told]
    return grid([OWN[name] for name in told], [values]) if told else ["Not measured."]


def shares(warm: dict[str, float], fastest: float) -> str:
    """How fast the device was, as its clock goes, by the warm-up's own kernel."""
    least, low, most = (round(100 * warm[end] / fastest) for end in ("least", "low", "most"))
    top = f"{fastest / 1e12:.3g} TFLOP/s"
    return f"{least} to {most} % of its fastest, {top}; three quarters of the times at {low} % or more"


def remarks(results: dict[str, Any]) -> list[str]:
    """What is void, missing or not compared, and what a lane's note says; the same of several rows once."""
    said: dict[str, list[str]] = {}

    def say(rows: str, text: str) -> None:
        said.setdefault(text, []).append(rows)

    rates = [row["warm_flop_per_second"] for row in results["rows"].values()]
    fastest = max((rate["most"] for rate in rates if rate), default=0.0)
    for name, row in results["rows"].items():
        if row["void"]:
            say(name, f"void, for the outputs disagree: {row['void']}")
        elif row["row"].get("uncompared"):
            say(name, f"the outputs are not compared: {row['row']['uncompared']}")
        elif row["lanes"] and not row["compared"]:
            say(name, "there is nothing to compare the outputs with")
        for lane_name, lane in row["lanes"].items():
            if lane["void"] and not row["void"]:
                say(name, f"{lane_name} is void: {lane['void']}")
                continue
            if lane["note"]:
                say(name, f"{lane_name}: {lane['note']}")
            replays = lane.get("counters", {}).get("replays", 1)
            if replays < 1:
                say(
                    name,
                    f"{lane_name} replayed {number(100 * replays)} % of its units and ran the others eagerly",
                )
        for library, why in row["unavailable"].items():
            say(name, f"{library} is not available: {why}")
        if warm := row["warm_flop_per_second"]:
            say(name, f"the warm-up before what was measured ended at {shares(warm, fastest)}")
    return [f"- {', '.join(rows)}: {text}" for text, rows in said.items()]


def heading(results: dict[str, Any]) -> list[str]:
    """The device, the browser, the noise."""
    machine, noise, settings = results["machine"], results["noise"], results["settings"]
    adapter = machine.get("adapter", {})
    device = " ".join(filter(None, (adapter.get(k) for k in ("vendor", "architecture", "description"))))
    versions = ", ".join(f"{name} {facts['version']}" for name, facts in results["libraries"].items())
    repetitions = f"{settings['repetitions']} repetitions at most of about {settings['repetition_ms']:g} ms"
    if warm := settings.get("warm_ms"):
        repetitions += f", each behind {warm:g} ms of warm-up"
    used = f"the browser used {noise['browser_cores']:g} of {noise['cores']} cores"
    return [
        f"Device: {device or 'unknown'}; {machine.get('browser', 'unknown browser')}.",
        f"Libraries: {versions or 'none'}.",
        f"{repetitions}; {used}, other processes {noise['other_cores']:g}, in {noise['seconds']:g} s.",
    ]


def markdown(results: dict[str, Any]) -> str:
    """The whole report."""
    failure = ["", f"The run broke off: {results['failure']}"] if results["failure"] else []
    parts = [
        *heading(results),
        *failure,
        "",
        "k units queued, then one wait: median (quartiles).",
        "",
        *speeds(results),
        "",
        "k of each library / one unit and its wait, ms / the first call, ms:",
        "",
        *singles(results),
        "",
        "Pellucid's own side:",
        "",
        *own(results),
        "",
        *costs(results),
        "",
        *remarks(results),
    ]
    return "\n".join(parts) + "\n"
