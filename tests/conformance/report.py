"""Writes docs/coverage.md: what passes of every name of PyTorch's databases, and why the rest does not."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "coverage.md"
# The last results of each device, which the page is made of.
FACTS = Path(__file__).parent / "results.json"
KINDS = ("forward", "gradient", "strides", "raises")


# Why a name is not as in PyTorch and stays so, shown where some sample of it does not pass.
REASONS = {
    "op as_strided_scatter": "PyTorch gives the input a gradient where `src` was written and none elsewhere, "
    "which its own `gradcheck` refuses; ours is 0 there, and passes it.",
    "op logcumsumexp": "In float32 gradients of a sample whose numbers go up to 10,000 are off by 2e-3 in "
    "both libraries, measured against float64.",
    **dict.fromkeys(
        ("op __radd__", "op __rand__", "op __rmul__", "op __ror__", "op __rxor__", "op __rdiv__"),
        "PyTorch's reflected operators refuse a number as the tensor itself; ours compute with it.",
    ),
    **dict.fromkeys(
        ("op gather", "op complex"),
        "A result is converted into a wider `out=`, as PyTorch does elsewhere.",
    ),
    "op take": "`out=` may share memory with the input: the result is computed before it is written.",
}


def total(c: dict) -> int:
    return c["passed"] + c["wrong"] + c["error"] + c["missing"]


def cell(c: dict | None) -> str:
    if not c or not total(c):
        return "-"
    return f"{c['passed']}/{total(c)}"


def state(counts: dict) -> str:
    """One word for a name: pass, part, wrong, error or missing."""
    every = [counts[k] for k in ("forward", "gradient") if k in counts]
    passed, wrong, error, missing = (
        sum(c[k] for c in every) for k in ("passed", "wrong", "error", "missing")
    )
    if wrong:
        return "wrong"
    if not passed:
        return "error" if error else "missing" if missing else "pass"
    return "part" if error or missing else "pass"


def family(entry: str) -> str:
    """The namespace of a name."""
    kind, _, name = entry.partition(" ")
    if kind != "op":
        return f"{kind}s"
    places = ("nn.functional", "linalg", "fft", "special", "signal.windows")
    return next((p for p in places if name.startswith(f"{p}.")), "torch")


def summary(results: dict[str, dict]) -> str:
    """The table of families."""
    rows = {}
    for entry, r in results.items():
        row = rows.setdefault(family(entry), {"names": 0, "states": {}, **{k: [0, 0] for k in KINDS}})
        row["names"] += 1
        s = state(r["counts"])
        row["states"][s] = row["states"].get(s, 0) + 1
        for k in KINDS:
            if k in r["counts"]:
                row[k][0] += r["counts"][k]["passed"]
                row[k][1] += total(r["counts"][k])
    heads = "pass / part / wrong / error / missing | forward | gradients | other strides | must raise"
    lines = [f"| family | names | {heads} |", "| --- | --- | --- | --- | --- | --- | --- |"]
    whole = {"names": 0, "states": {}, **{k: [0, 0] for k in KINDS}}
    for row in rows.values():
        whole["names"] += row["names"]
        for s, n in row["states"].items():
            whole["states"][s] = whole["states"].get(s, 0) + n
        for k in KINDS:
            whole[k] = [whole[k][0] + row[k][0], whole[k][1] + row[k][1]]
    for name, row in [*rows.items(), ("all", whole)]:
        states = " / ".join(
            str(row["states"].get(s, 0)) for s in ("pass", "part", "wrong", "error", "missing")
        )
        shares = [
            f"{a} of {b}" + (f" ({100 * a / b:.1f} %)" if b else "") for a, b in (row[k] for k in KINDS)
        ]
        lines.append(f"| {name} | {row['names']} | {states} | {' | '.join(shares)} |")
    return "\n".join(lines)


def write(device: str, results: dict[str, dict], how: str) -> None:
    """Renew one device's part of the page."""
    facts = json.loads(FACTS.read_text(encoding="utf-8")) if FACTS.exists() else {}
    rows = {}
    for entry, r in results.items():
        counts = r["counts"]
        why = next((t for k in KINDS if k in counts for t in counts[k]["reasons"].values()), "")
        cells = [cell(counts.get(k)) for k in KINDS]
        rows[entry] = [state(counts), *cells, why.replace("|", "/").split("\n")[0][:160]]
    facts[device] = {"how": how, "summary": summary(results), "rows": rows}
    FACTS.write_text(json.dumps(facts, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(facts), encoding="utf-8")


def write_page_run(how: str, count: int, failed: dict[str, str], left: dict[str, str]) -> None:
    """Renew the part of the page about Chromium."""
    facts = json.loads(FACTS.read_text(encoding="utf-8")) if FACTS.exists() else {}
    facts["chromium"] = {"how": how, "count": count, "failed": failed, "left": left}
    FACTS.write_text(json.dumps(facts, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(facts), encoding="utf-8")


def in_chromium(fact: dict) -> list[str]:
    """The lines about Chromium."""
    lines = [
        "",
        "## In Chromium",
        "",
        f"{fact['how']}.",
        "",
        "A float32 sample of each operator, forward and backward, in the page on SwiftShader: "
        f"{fact['count'] - len(fact['failed'])} of {fact['count']} pass. {len(fact['left'])} names are not "
        "among them: their samples are functions of PyTorch's test suite or views, or of another type.",
    ]
    if fact["failed"]:
        lines += ["", "| name | what is not as in PyTorch |", "| --- | --- |"]
        lines += [
            f"| {name} | {text.replace('|', '/')[:160]} |" for name, text in sorted(fact["failed"].items())
        ]
    return lines


def is_whole(row: list[str]) -> bool:
    """Whether every sample of a name passes."""
    return all(len({*c.split("/")}) == 1 for c in row[1:5])


def known_differences(facts: dict) -> list[str]:
    """The lines about what stays as it is."""
    lacking = {e for f in facts.values() for e, row in f["rows"].items() if not is_whole(row)}
    left = [e for e in REASONS if any(name == e or name.startswith(f"{e}.") for name in lacking)]
    if not left:
        return []
    rows = [f"| {e.partition(' ')[2]} | {REASONS[e]} |" for e in left]
    return ["", "## Known differences", "", "| name | why |", "| --- | --- |", *rows]


def page(facts: dict) -> str:
    facts = dict(facts)
    chromium = facts.pop("chromium", None)
    lines = [
        "# Coverage",
        "",
        "Written by `scripts/conformance`; do not edit. Samples of PyTorch's own databases of operators, "
        "modules and optimizers, run by both libraries:",
        "float32, int64 and bool, forward and backward, tensors with other strides, and calls that must "
        "raise.",
        "A sample passes when shape, dtype and values agree: integers exactly, floats within 1e-3, PyTorch's "
        "own tolerance between devices.",
        'float64 is on webgpu as `webgpu.set_float64_precision("float32")` has it.',
        "A name is *part* when some samples pass and others raise a typed error or need a missing name.",
        "",
        "Out of scope: sparse, nested and masked-prototype operators, and those that PyTorch has for its own "
        "compilers.",
    ]
    for device, fact in facts.items():
        lines += ["", f"## Device {device}", "", f"{fact['how']}.", "", fact["summary"]]
    if chromium:
        lines += in_chromium(chromium)
    lines += known_differences(facts)
    names = list(dict.fromkeys(e for fact in facts.values() for e in fact["rows"]))
    lines += ["", "## Names", "", f"Samples that pass of samples run, on {' and '.join(facts)}.", ""]
    heads = [f"{d} | forward | gradient | strides | raises" for d in facts]
    lines += [
        f"| name | {' | '.join(heads)} | the first reason |",
        "| --- |" + " --- |" * (5 * len(facts) + 1),
    ]
    for entry in sorted(names):
        found = [fact["rows"].get(entry, ["-"] * 6) for fact in facts.values()]
        why = next((f[5] for f in found if f[5] and f[5] != "-"), "")
        cells = [" | ".join(f[:5]) for f in found]
        lines.append(f"| {entry.removeprefix('op ')} | {' | '.join(cells)} | {why} |")
    return "\n".join(lines) + "\n"
