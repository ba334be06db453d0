"""`scripts/bench --peers --ops`: the rows of benchmarks/ops.py beside libraries that have such an op.

ops.json names for each row what the library offers: an expression, `setup` for an object that is made once
(`made`), `read` for the order in which its numbers are compared, `jit` false where the compiled form would be
a constant, or under `none` why there is nothing. Ours is that of benchmarks/ops.py, but where PyTorch has
indices of 32 bits as well, which are the only ones of the others. `indexes` says of which part of x a result
has indices: they are compared by what lies there, for equal numbers have several. `loosely`: why only sizes
are compared.
"""

import argparse
import json
import runpy
import sys
from pathlib import Path
from typing import Any

from . import ops_table, packages
from .ops_table import NO_TIME, Row
from .results import OURS
from .session import Session

# Loaded by its path, for other folders have the name ops as well.
ROWS: dict[str, str] = runpy.run_path(str(packages.HERE.parent / "ops.py"))["ROWS"]
EXPRESSIONS: dict[str, dict[str, Any]] = json.loads((packages.HERE / "ops.json").read_text(encoding="utf-8"))
PEERS = ("tfjs", "jax")
NO_OP = {"none": "no such op"}
# How reasons begin that another run may not meet.
CHANCE = ("no answer", "the device was lost", NO_TIME)


def side(mbytes: float) -> int:
    """Rows of the square matrix that benchmarks/ops.py makes of so many megabytes."""
    return int((mbytes * 2**18) ** 0.5) // 64 * 64


def rows(names: list[str], mbytes: float, peers: list[str]) -> list[dict[str, Any]]:
    """What the page needs of the rows whose name has one of these in it; of all without names.

    Raises: SystemExit where no row has a name, or the operands would be empty.
    """
    unknown = [name for name in names if not any(name in row for row in ROWS)]
    if unknown:
        raise SystemExit(f"bench: no row of benchmarks/ops.py has {', '.join(unknown)} in its name")
    if side(mbytes) < 64:
        raise SystemExit(f"bench: --mbytes {mbytes:g} is too small; the least is {64**2 / 2**18:g}")
    return [
        row(name, side(mbytes), peers) for name in ROWS if not names or any(part in name for part in names)
    ]


def row(name: str, side: int, peers: list[str]) -> dict[str, Any]:
    """One of them."""
    entry = EXPRESSIONS.get(name, {})
    offered = {peer: entry.get(peer, NO_OP) for peer in peers}
    expressions = {
        library: {"run": found} if isinstance(found, str) else found
        for library, found in {OURS: entry.get(OURS, ROWS[name]), **offered}.items()
    }
    more = {key: entry[key] for key in ("indexes", "loosely") if key in entry}
    return {"name": name, "kind": "op", "side": side, "expressions": expressions, **more}


class Recorder:
    """Takes the page's events and writes what is known after each row, for a run may end at any time.

    Args:
        target: the file; what is in it already stays.
        mbytes: the size of x.
        rows: of `rows`.
    """

    def __init__(self, target: Path, mbytes: float, rows: list[dict[str, Any]]) -> None:
        self.target = target
        self.kept = read(target)
        self.found: dict[str, Any] = {"MB": mbytes}
        self.rows = {row["name"]: Row(row) for row in rows}
        self.failure: str | None = None

    def take(self, event: dict[str, Any]) -> None:
        """Note one event."""
        event = dict(event)
        kind = event.pop("kind")
        if kind == "machine":
            self.found |= {key: event[key] for key in ("adapter", "browser")}
        elif kind == "library":
            self.found[event["name"]] = event["version"]
        elif kind == "measured":
            self._keep(event["row"])
        elif kind != "row":
            self.rows[event.pop("row")].take(kind, event)

    def _keep(self, name: str) -> None:
        before = self.kept.setdefault("of", {})
        other = {key: before[key] for key, now in self.found.items() if before.get(key, now) != now}
        if other:
            self.failure = f"{self.target} has rows of {other}, these are of {self.found}; give another --out"
        else:
            before |= self.found
            self.kept["rows"].setdefault(name, {}).update(self.rows[name].result())
            self.target.write_text(json.dumps(self.kept, indent=1) + "\n", encoding="utf-8")

    def results(self) -> dict[str, Any]:
        """Everything that the file has."""
        return self.kept


def read(target: Path) -> dict[str, Any]:
    """What a file of results holds; nothing where there is none.

    Raises: SystemExit when it is no such file.
    """
    if not target.exists():
        return {"benchmark": "peers, ops", "rows": {}}
    try:
        kept = json.loads(target.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SystemExit(f"bench: {target} cannot be read: {error}") from None
    if not isinstance(kept, dict) or kept.get("benchmark") != "peers, ops":
        raise SystemExit(f"bench: {target} holds no ops beside other libraries; give another --out or --json")
    return kept


class Ops(Session):
    """One run of these rows."""

    def __init__(
        self, options: argparse.Namespace, rows: list[dict[str, Any]], names: list[str], target: Path
    ) -> None:
        super().__init__(options, rows, names, Recorder(target, options.mbytes, rows))
        self.job["settings"] |= {"minutes": options.minutes, "most_seconds": options.most_seconds}

    def report(self, event: dict[str, Any]) -> None:
        """One line a row."""
        if event["kind"] == "measured":
            text = ops_table.told(event["row"], self.recorder.rows[event["row"]].result())
            print(text, file=sys.stderr, flush=True)

    def results(self) -> dict[str, Any]:
        """The recorder's, with what broke this run off."""
        self.failure = self.failure or self.recorder.failure
        return self.recorder.results()


def defaults(gpu: bool) -> dict[str, float]:
    """What is another than for other rows, where it is left open."""
    return {
        "mbytes": 64.0 if gpu else 1.0,
        "repetitions": 5,
        "repetition_ms": 40.0 if gpu else 20.0,
        "warm_ms": 30.0 if gpu else 0.0,
        "row_seconds": 10.0,
        "call_seconds": 30.0 if gpu else 120.0,
        "most_seconds": 1.0 if gpu else 4.0,
    }


def chosen(names: list[str]) -> list[str]:
    """The peers.

    Raises: SystemExit when one has no ops.
    """
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise SystemExit(f"bench: --ops is beside {' and '.join(PEERS)}, not {', '.join(unknown)}")
    return [name for name in PEERS if not names or name in names]


def run(options: argparse.Namespace, peers: list[str]) -> int:
    """Measure the rows that are asked for, or all that the file lacks, and write the table.

    Returns: the exit status; 1 when the run broke off.
    """
    target = options.json or options.out / "ops.json"
    wanted = rows(options.ops, options.mbytes, peers)
    if not options.ops:
        wanted = missing(wanted, read(target)["rows"], peers)
    session = Ops(options, wanted, peers, target)
    if wanted:
        session.run()
    return write(session.results(), options.out, session.failure)


def missing(rows: list[dict[str, Any]], done: dict[str, Any], peers: list[str]) -> list[dict[str, Any]]:
    """Those rows that were not measured; behind them, what went wrong by chance."""
    new, again = [], []
    for row in rows:
        found = done.get(row["name"], {})
        if not set(peers) <= set(found):
            new.append(row)
        elif any(each.get("none", "").startswith(CHANCE) for each in found.values()):
            again.append(row)
    return new + again


def write(results: dict[str, Any], out: Path, failure: str | None = None) -> int:
    """Write the table, show it and say how many rows there are.

    Returns: the exit status.
    """
    text = ops_table.markdown(results)
    (out / "ops.md").write_text(text, encoding="utf-8")
    print(text)
    if failure:
        print(f"bench: broke off: {failure}", file=sys.stderr)
    left = len(ROWS) - len(results["rows"])
    print(f"bench: {len(results['rows'])} rows, {left} not yet measured; {ops_table.summary(results)}")
    return 1 if failure else 0
