"""`scripts/bench --peers`: what is measured, where the results go."""

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import Any

from . import llama, packages, plot, pytorch, table
from .packages import PEERS
from .results import OURS
from .session import Session
from paths import DIST, SITE

ROWS: list[dict[str, Any]] = json.loads(packages.ROWS.read_text(encoding="utf-8"))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that belong to --peers."""
    group = parser.add_argument_group("with --peers")
    names = ", ".join(row["name"] for row in ROWS)
    group.add_argument("--rows", metavar="ROW,...", help=f"default: all that suit the adapter; {names}")
    group.add_argument(
        "--repetitions",
        type=int,
        metavar="N",
        help="of each row; default 7, with --gpu 5 for the time it takes",
    )
    group.add_argument(
        "--repetition-ms",
        type=float,
        default=200,
        metavar="MS",
        help="each library queues as many units as take it about so long; default 200",
    )
    group.add_argument(
        "--warm-ms",
        type=float,
        metavar="MS",
        help="of work before each repetition, to bring the clock up; default 150 with --gpu, else 0",
    )
    group.add_argument(
        "--row-seconds",
        type=float,
        default=90,
        metavar="S",
        help="after so long a row gets no more than three repetitions; default 90",
    )
    group.add_argument(
        "--call-seconds",
        type=float,
        default=120,
        metavar="S",
        help="a library that does not answer for so long leaves the row; default 120",
    )
    group.add_argument("--chromium", metavar="PATH", help="the browser, as for scripts/browser")
    group.add_argument("--chromium-arg", action="append", default=[], metavar="FLAG", help="likewise")
    group.add_argument(
        "--gpu",
        action="store_true",
        help="likewise; more units a repetition, and the rows that need a real GPU",
    )
    group.add_argument("--site", type=Path, help="a built site to use as it is; default: dist/site")
    group.add_argument("--out", type=Path, default=DIST / "peers", metavar="DIR", help="default: dist/peers")
    group.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="JSON",
        help="measure nothing: make table and plot of these results",
    )

    group.add_argument(
        "--pytorch",
        metavar="DEVICE",
        help="measure PyTorch itself in the same rows instead, natively: on cuda or cpu; needs torch",
    )
    group.add_argument(
        "--llama",
        choices=tuple(packages.LLAMA),
        help="measure llama.cpp itself in the rows of the language model instead, natively; Linux x86-64",
    )
    group.add_argument(
        "--carry",
        type=Path,
        metavar="DIR",
        help="measure nothing: copy there what a machine without network needs of the peers, or for --llama",
    )


def chosen_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows that were asked for; without --rows those that the adapter can do in time.

    A GPU gets more inputs, for its waits take long beside its work.

    Raises: SystemExit when a name is unknown.
    """
    rows = [{**row, "inputs": row.get("gpu_inputs", row["inputs"])} for row in ROWS] if options.gpu else ROWS
    if options.rows is None:
        return [row for row in rows if options.gpu or not row.get("gpu")]
    names = options.rows.split(",")
    unknown = sorted(set(names) - {row["name"] for row in rows})
    if unknown:
        known = ", ".join(row["name"] for row in rows)
        raise SystemExit(f"bench: no row named {', '.join(unknown)}; there are: {known}")
    return [row for row in rows if row["name"] in names]


def chosen_peers(names: list[str]) -> list[str]:
    """The peers that were asked for, in the order of the list.

    Raises: SystemExit when a name is unknown.
    """
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise SystemExit(f"bench: no peer named {', '.join(unknown)}; there are: {', '.join(PEERS)}")
    return [name for name in PEERS if name in names] or list(PEERS)


def choose(options: argparse.Namespace) -> None:
    """Set what was left open and depends on the adapter."""
    if options.repetitions is None:
        options.repetitions = 5 if options.gpu else 7
    if options.warm_ms is None:
        options.warm_ms = 150.0 if options.gpu else 0.0


def run(options: argparse.Namespace) -> int:
    """Measure, write JSON, table and plot.

    Returns: the exit status; 1 when the run broke off or nothing of ours counts.
    """
    if options.source:
        packages.tools()
        return write(json.loads(options.source.read_text(encoding="utf-8")), options)
    rows, names = chosen_rows(options), chosen_peers(options.names)
    if options.carry:
        build, target = options.llama, options.carry
        copied = packages.carry_llama(build, target) if build else packages.carry(names, target)
        print(f"bench: {copied / 1e6:.1f} MB in {target}")
        return 0
    if options.pytorch or options.llama:
        choose(options)
        return pytorch.run(rows, options) if options.pytorch else llama.run(rows, options)
    if options.site is None:
        # Only here: a machine that was given a ready site needs neither the environment nor npm nor pip.
        import machine
        import site_builder

        machine.system()
        options.site = SITE
        site_builder.ensure()
        packages.tools()
    if "ort" in names:
        packages.graphs(decoder=any(row["kind"] in ("prefill", "decode") for row in rows))
    choose(options)
    # Ended from outside, the browser and the server must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    session = Session(options, rows, names)
    session.run()
    return write(session.results(), options)


def write(results: dict[str, Any], options: argparse.Namespace) -> int:
    """Write what was measured, show the table, and say whether it is whole."""
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.json or options.out / "peers.json"
    target.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    text = table.markdown(results)
    (options.out / "peers.md").write_text(text, encoding="utf-8")
    print(text)
    try:
        plot.draw(results, options.out / "peers.svg", packages.TOOLS)
    except ModuleNotFoundError as error:
        print(
            f"bench: no plot, for {error.name} is not here; --from {target} draws it elsewhere",
            file=sys.stderr,
        )
    if results["failure"]:
        print(f"bench: broke off: {results['failure']}", file=sys.stderr)
    print(f"bench: the table is in {options.out / 'peers.md'}, everything in {target}", file=sys.stderr)
    counted = any(
        lane["library"] == OURS and not lane["void"]
        for row in results["rows"].values()
        for lane in row["lanes"].values()
    )
    return 0 if counted and not results["failure"] else 1
