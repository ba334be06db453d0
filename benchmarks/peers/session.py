"""One run of the comparison: one browser, one page, every library in a worker of its own."""

import argparse
import json
import os
import queue
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import assets
import chromium
from . import noise
from .packages import GRAPHS, HERE, PEERS
from .results import OURS, Recorder
from lifeline import Lifeline
from paths import WEIGHTS
from static_server import Request, Response, StaticServer


def libraries(names: list[str]) -> list[dict[str, Any]]:
    """What the page needs to open each; ours is the first."""
    files = {f"/peers/ours/{file.name}": file.read_text(encoding="utf-8") for file in HERE.glob("ours/*.py")}
    variables = {name: text for name, text in os.environ.items() if name.startswith("PELLUCID_")}
    places, gguf = {}, {}
    if (model := WEIGHTS / Path(assets.SMOLLM2_FILE).name).exists():
        places, gguf = {"PELLUCID_MOUNT": "/weights/"}, {"gguf": f"/weights/{model.name}"}
    ours = {"name": OURS, "files": files, "env": {**variables, **places}}
    return [ours, *({"name": name, **gguf, **PEERS[name].job()} for name in names)]


class Session:
    """Serves the page its job, takes its events, notices when the browser or the page ends.

    Args:
        options: of `driver.add_options`.
        rows: of rows.json.
        names: the peers.
        recorder: what takes the page's events.
    """

    def __init__(
        self, options: argparse.Namespace, rows: list[dict[str, Any]], names: list[str], recorder: Any = None
    ) -> None:
        self.options = options
        self.job = {
            "libraries": libraries(names),
            "rows": rows,
            "settings": {
                "repetitions": options.repetitions,
                "repetition_ms": options.repetition_ms,
                "row_seconds": options.row_seconds,
                "call_seconds": options.call_seconds,
                "warm_ms": options.warm_ms,
            },
        }
        self.recorder = recorder or Recorder(rows)
        self.failure: str | None = None
        self.noise: dict[str, float] = {}
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._row: tuple[str, noise.Watch] | None = None
        self._row_noise: dict[str, dict[str, float]] = {}

    def run(self) -> None:
        """Measure; what came until a failure is kept."""
        routes = {
            "/-/job": lambda _: Response(json.dumps(self.job).encode(), "application/json"),
            "/-/event": self._event,
            "/-/end": self._end,
            "/-/lifeline": lambda _: Response(json.dumps(line.url).encode(), "application/json"),
        }
        folders = {"peers": HERE, "packages": assets.NPM, "weights": WEIGHTS, "graphs": GRAPHS}
        mounts = {name: folder for name, folder in folders.items() if folder.is_dir()}
        adapter = [*(chromium.REAL_ADAPTER if self.options.gpu else ()), *self.options.chromium_arg]
        adapter = adapter or list(chromium.SOFTWARE_ADAPTER)
        with (
            Lifeline() as line,
            StaticServer(self.options.site, mounts, routes=routes) as server,
            chromium.Chromium(server.url + "peers/page/", self.options.chromium, adapter) as browser,
        ):
            watch = noise.Watch(browser.process.pid)
            try:
                self._listen(lambda: line.trouble(browser), browser.process.pid)
            except KeyboardInterrupt:
                self.failure = "it was interrupted"
            self._end_row()
            self.noise = watch.shares()

    def results(self) -> dict[str, Any]:
        """What was measured, and how."""
        results = self.recorder.results()
        for name, facts in results["libraries"].items():
            if name in PEERS:
                facts |= {"title": PEERS[name].title, "floor": PEERS[name].floor}
        for name, shares in self._row_noise.items():
            results["rows"][name]["noise"] = shares
        settings = {**self.job["settings"], "arguments": sys.argv[1:]}
        return {**results, "noise": self.noise, "settings": settings, "failure": self.failure}

    def _event(self, request: Request) -> Response:
        self._events.put(json.loads(request.body))
        return Response()

    def _end(self, request: Request) -> Response:
        self._events.put({"kind": "end", "failure": json.loads(request.body)})
        return Response()

    def _listen(self, trouble: Callable[[], str | None], process: int) -> None:
        patience = self.options.call_seconds + 60
        heard = time.monotonic()
        while time.monotonic() - heard < patience:
            try:
                event = self._events.get(timeout=0.2)
            except queue.Empty:
                if found := trouble():
                    self.failure = found
                    return
                continue
            heard = time.monotonic()
            if event["kind"] == "end":
                self.failure = event["failure"]
                return
            if event["kind"] == "row":
                self._end_row()
                self._row = event["row"], noise.Watch(process)
            self.recorder.take(event)
            self.report(event)
        self.failure = f"the page was silent for {patience:g} s"

    def _end_row(self) -> None:
        if self._row is not None:
            name, watch = self._row
            self._row_noise[name] = watch.shares()

    def report(self, event: dict[str, Any]) -> None:
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
