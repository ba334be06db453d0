"""Runs the comparison: one browser, one page, every library in a worker of its own."""

import argparse
import json
import os
import queue
import sys
import time
from pathlib import Path
from typing import Any

import chromium
from . import noise, table
from .packages import PEERS
from .results import OURS, Recorder
from paths import DIST, SITE, WEIGHTS
from static_server import Request, Response, StaticServer

HERE = Path(__file__).parent
ROWS: list[dict[str, Any]] = json.loads((HERE / "rows.json").read_text(encoding="utf-8"))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that belong to --peers."""
    group = parser.add_argument_group("with --peers")
    group.add_argument(
        "--rows", metavar="ROW,...", help=f"default: all; {', '.join(r['name'] for r in ROWS)}"
    )
    group.add_argument("--repetitions", type=int, default=7, metavar="N", help="of each row; default 7")
    group.add_argument(
        "--repetition-ms",
        type=float,
        default=200,
        metavar="MS",
        help="units are queued for about this long; default 200",
    )
    group.add_argument(
        "--row-seconds", type=float, default=90, metavar="S", help="no more repetitions after; default 90"
    )
    group.add_argument(
        "--call-seconds",
        type=float,
        default=120,
        metavar="S",
        help="a library that is silent so long is ended",
    )
    group.add_argument("--chromium", metavar="PATH", help="the browser, as for scripts/browser")
    group.add_argument("--chromium-arg", action="append", default=[], metavar="FLAG", help="likewise")
    group.add_argument("--gpu", action="store_true", help="likewise; also measures the rows for a real GPU")
    group.add_argument("--site", type=Path, help="a built site to use as it is; default: dist/site")
    group.add_argument("--out", type=Path, default=DIST / "peers", help="folder of the table and the plot")


def chosen_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows that were asked for; without --rows those that the adapter can do in time.

    Raises: SystemExit when a name is unknown.
    """
    if options.rows is None:
        return [row for row in ROWS if options.gpu or not row.get("gpu")]
    names = options.rows.split(",")
    unknown = sorted(set(names) - {row["name"] for row in ROWS})
    if unknown:
        raise SystemExit(
            f"bench: no row named {', '.join(unknown)}; there are: {', '.join(row['name'] for row in ROWS)}"
        )
    return [row for row in ROWS if row["name"] in names]


def chosen_peers(names: list[str]) -> list[str]:
    """The peers that were asked for, in the order of the list.

    Raises: SystemExit when a name is unknown.
    """
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise SystemExit(f"bench: no peer named {', '.join(unknown)}; there are: {', '.join(PEERS)}")
    return [name for name in PEERS if name in names] or list(PEERS)


def libraries(names: list[str]) -> list[dict[str, Any]]:
    """What the page needs to open each; ours is the first."""
    files = {f"/peers/ours/{file.name}": file.read_text(encoding="utf-8") for file in HERE.glob("ours/*.py")}
    variables = {name: text for name, text in os.environ.items() if name.startswith("PELLUCID_")}
    ours = {"name": OURS, "files": files, "env": {**variables, "PELLUCID_MOUNT": "/weights/"}}
    return [ours, *({"name": name, **PEERS[name].job()} for name in names)]


class Session:
    """One run of the page: serves the job, takes the events, notices when the browser or the page ends."""

    def __init__(self, options: argparse.Namespace, rows: list[dict[str, Any]], names: list[str]) -> None:
        self.options = options
        self.job = {
            "libraries": libraries(names),
            "rows": rows,
            "settings": {
                "repetitions": options.repetitions,
                "repetition_ms": options.repetition_ms,
                "row_seconds": options.row_seconds,
                "call_seconds": options.call_seconds,
            },
        }
        self.recorder = Recorder(rows)
        self.failure: str | None = None
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()

    def run(self) -> None:
        """Measure; what came until a failure is kept."""
        routes = {
            "/-/job": lambda _: Response(json.dumps(self.job).encode(), "application/json"),
            "/-/event": self._event,
            "/-/end": self._end,
        }
        mounts = {"peers": HERE, "packages": assets_folder(), "weights": WEIGHTS}
        mounts = {name: folder for name, folder in mounts.items() if folder.is_dir()}
        adapter = [*(chromium.REAL_ADAPTER if self.options.gpu else ()), *self.options.chromium_arg]
        with (
            StaticServer(self.options.site, mounts, routes=routes) as server,
            chromium.Chromium(
                server.url + "peers/page/", self.options.chromium, adapter or chromium.SOFTWARE_ADAPTER
            ) as browser,
        ):
            watch = noise.Watch(browser.process.pid)
            self._listen(browser)
            self.noise = watch.shares()

    def _event(self, request: Request) -> Response:
        self._events.put(json.loads(request.body))
        return Response()

    def _end(self, request: Request) -> Response:
        self._events.put({"kind": "end", "failure": json.loads(request.body)})
        return Response()

    def _listen(self, browser: chromium.Chromium) -> None:
        patience = self.options.call_seconds + 60
        heard = time.monotonic()
        while time.monotonic() - heard < patience:
            try:
                event = self._events.get(timeout=0.2)
            except queue.Empty:
                if browser.process.poll() is not None:
                    ended = f"Chromium ended by itself with status {browser.process.returncode}"
                    self.failure = f"{ended}:\n{browser.complaints()}"
                    return
                continue
            heard = time.monotonic()
            if event["kind"] == "end":
                self.failure = event["failure"]
                return
            self.recorder.take(event)
            report(event)
        self.failure = f"the page was silent for {patience:g} s"


def assets_folder() -> Path:
    """Where the packages lie unpacked."""
    import assets

    return assets.NPM


def report(event: dict[str, Any]) -> None:
    """Say on standard error how far it is."""
    match event:
        case {"kind": "row", "row": row}:
            text = f"bench: {row}"
        case {
            "kind": "sample",
            "phase": "queued",
            "repetition": r,
            "library": library,
            "form": form,
            "ms": ms,
        }:
            text = f"  {r} {library}/{form} {ms:.3f} ms"
        case {"kind": "failed" | "unavailable", "library": library, **rest}:
            text = f"  {library}: {rest.get('why') or rest.get('error')}"
        case _:
            return
    print(text, file=sys.stderr, flush=True)


def run(options: argparse.Namespace) -> int:
    """`scripts/bench --peers`: measure, write JSON, table and plot.

    Returns: the exit status; 1 when the run broke off or nothing of ours counts.
    """
    rows, names = chosen_rows(options), chosen_peers(options.names)
    if options.site is None:
        import machine
        import site_builder

        machine.system()
        options.site = SITE
        site_builder.ensure()
    session = Session(options, rows, names)
    session.run()
    results = {**session.recorder.results(), "noise": session.noise, "settings": session.job["settings"]}
    results["failure"] = session.failure
    return write(results, options)


def write(results: dict[str, Any], options: argparse.Namespace) -> int:
    """Write what was measured, show the table, and say whether it is whole."""
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.json or options.out / "peers.json"
    target.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    text = table.markdown(results)
    (options.out / "peers.md").write_text(text, encoding="utf-8")
    print(text)
    if results["failure"]:
        print(f"bench: {results['failure']}", file=sys.stderr)
    counted = any(
        lane["library"] == OURS and not lane["void"]
        for row in results["rows"].values()
        for lane in row["lanes"].values()
    )
    return 0 if counted and not results["failure"] else 1
