"""`scripts/bench --peers`: what is measured, where the results go."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import chromium
from . import ops, packages, plot, table
from .packages import PEERS
from .results import OURS
from .session import Session
from paths import DIST, SITE

ROWS: list[dict[str, Any]] = json.loads(packages.ROWS.read_text(encoding="utf-8"))


def at_least_one(text: str) -> int:
    """A number of things that are to be done."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than one")
    return int(text)


def add_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add the options that belong to --peers.

    Returns: these.
    """
    group = parser.add_argument_group("with --peers")
    instead = group.add_mutually_exclusive_group()
    added: list[argparse.Action] = []

    def add(*names: str, to: Any = group, **settings: Any) -> None:
        added.append(to.add_argument(*names, **settings))

    names = ", ".join(row["name"] for row in ROWS)
    add("--rows", metavar="ROW,...", help=f"default: all that suit the adapter; {names}")
    add(
        "--ops",
        nargs="*",
        metavar="NAME",
        help="rows of benchmarks/ops.py that have NAME in theirs, beside tfjs and jax; without NAME all that "
        "DIR/ops.json lacks, which each run extends",
    )
    add("--mbytes", type=float, metavar="N", help="size of x in --ops; default 1, with --gpu 64")
    add("--minutes", type=float, metavar="M", help="--ops begins no further row after so long")
    add(
        "--most-seconds",
        type=float,
        metavar="S",
        help="--ops asks a library for no call that would take longer, by what smaller ones take; default 4, "
        "with --gpu 1",
    )
    add(
        "--repetitions",
        type=at_least_one,
        metavar="N",
        help="of each row; default 7, with --gpu or --ops 5 for the time it takes",
    )
    add(
        "--repetition-ms",
        type=float,
        metavar="MS",
        help="each library queues as many units as take it about so long; default 200, "
        "with --ops 20, and 40 with --gpu",
    )
    add(
        "--warm-ms",
        type=float,
        metavar="MS",
        help="of work before each repetition, to bring the clock up; default 150 with --gpu, else 0; with "
        "--gpu and --ops 30, before each round of all libraries",
    )
    add(
        "--row-seconds",
        type=float,
        metavar="S",
        help="after so long a row gets no more than three repetitions, with --ops no more than it has; "
        "default 90, with --ops 10",
    )
    add(
        "--call-seconds",
        type=float,
        metavar="S",
        help="a library that does not answer for so long leaves the row; default 120, with --ops and --gpu "
        "30",
    )
    add("--chromium", metavar="PATH", help="the browser, as for scripts/browser")
    add("--chromium-arg", action="append", default=[], metavar="FLAG", help="likewise")
    add(
        "--gpu",
        action="store_true",
        help="likewise; more units a repetition, and the rows that need a real GPU",
    )
    add("--site", type=Path, help="a built site to use as it is; default: dist/site")
    add("--out", type=Path, default=DIST / "peers", metavar="DIR", help="default: dist/peers")
    add(
        "--from",
        to=instead,
        dest="source",
        type=Path,
        metavar="JSON",
        help="measure nothing: make table and plot of these results",
    )
    add(
        "--pytorch",
        to=instead,
        choices=("cuda", "cpu"),
        help="measure PyTorch itself in the same rows instead, natively; needs torch",
    )
    add(
        "--llama",
        to=instead,
        choices=tuple(packages.LLAMA),
        help="measure llama.cpp itself in the rows of the language model instead, natively; Linux x86-64",
    )
    add(
        "--carry",
        type=Path,
        metavar="DIR",
        help="measure nothing: copy there what a machine without network needs of the peers, or for --llama",
    )
    return added


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
    """Set what was left open and depends on the adapter and the kind of rows."""
    others = {
        "repetitions": 5 if options.gpu else 7,
        "repetition_ms": 200.0,
        "warm_ms": 150.0 if options.gpu else 0.0,
        "row_seconds": 90.0,
        "call_seconds": 120.0,
    }
    chosen = others if options.ops is None else ops.defaults(options.gpu)
    for name, value in chosen.items():
        if getattr(options, name) is None:
            setattr(options, name, value)


def run(options: argparse.Namespace) -> int:
    """Measure, write JSON, table and plot.

    Returns: the exit status; 1 when the run broke off or nothing of ours counts.

    Raises: SystemExit when what it needs is not here.
    """
    if options.source:
        if options.ops is not None:
            return ops.write(ops.read(options.source), options.out)
        results = read(options.source)
        packages.tools()
        return write(results, options)
    if options.ops is None:
        rows, names = chosen_rows(options), chosen_peers(options.names)
    else:
        rows, names = [], ops.chosen(options.names)
    if options.carry:
        build, target = options.llama, options.carry
        copied = packages.carry_llama(build, target) if build else packages.carry(names, target)
        print(f"bench: {copied / 1e6:.1f} MB in {target}")
        return 0
    if options.pytorch or options.llama:
        if options.ops is not None:
            raise SystemExit("bench: PyTorch measures these rows by `python benchmarks/ops.py --pytorch`")
        if options.names:
            raise SystemExit(f"bench: --pytorch and --llama measure no other library ({', '.join(names)})")
        choose(options)
        return natively(rows, options)
    opens(options)
    if options.ops is not None:
        return ops.run(options, names)
    if "ort" in names:
        packages.graphs(decoder=any(row["kind"] in ("prefill", "decode") for row in rows))
    session = Session(options, rows, names)
    session.run()
    return write(session.results(), options)


def opens(options: argparse.Namespace) -> None:
    """See to the site and the browser.

    Raises: SystemExit when there is no browser.
    """
    if options.site is None:
        # Only here: a machine that was given a ready site needs neither the environment nor npm nor pip.
        import machine
        import site_builder

        machine.browser(options.chromium)
        options.site = SITE
        site_builder.ensure()
        if options.ops is None:
            packages.tools()
    choose(options)
    try:
        chromium.find(options.chromium)
    except FileNotFoundError as error:
        raise SystemExit(f"bench: {error}") from None
    chromium.end_with_us()


def natively(rows: list[dict[str, Any]], options: argparse.Namespace) -> int:
    """Measure PyTorch or llama.cpp.

    Returns: the exit status.

    Raises: SystemExit when a package is missing. A comparison in a browser needs none.
    """
    try:
        if options.pytorch:
            from . import pytorch as library
        else:
            from . import llama as library
        return library.run(rows, options)
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"bench: the package {error.name} is needed, and {sys.executable} has none"
        ) from None


def read(source: Path) -> dict[str, Any]:
    """The results of an earlier run.

    Raises: SystemExit when the file holds none.
    """
    try:
        results = json.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"bench: --from {source} cannot be read: {error}") from None
    if not isinstance(results, dict) or "libraries" not in results:
        raise SystemExit(f"bench: --from {source} holds no comparison; give the peers.json of an earlier run")
    return results


def write(results: dict[str, Any], options: argparse.Namespace) -> int:
    """Write what was measured, show the table, and say whether it is whole."""
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
