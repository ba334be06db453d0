#!/usr/bin/env python3
"""Random programs against an oracle, until something differs.

A kind is a module tests/fuzz/KIND.py with `run(seed: int) -> None`, which is the same for the same seed and
raises AssertionError, with a text that can be run by itself, when something is wrong. Without a KIND all
take turns. A seed that raises anything, takes too long, or ends its process is a finding; it is tried once
more in a new process. The exit status is 1 when there are findings. Ctrl-C ends the run with its summary.
"""

import argparse
import ast
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
STRETCH = 30.0  # seconds that one kind runs before the next takes its turn
START = 120.0  # seconds that a process may take until it is ready
COUNT = 20  # seeds of a kind that does not say how many belong in the test suite


def kinds(folder: Path) -> dict[str, Path]:
    """The modules of a folder that define `run`."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        if re.search(r"^def run\(seed\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            found[path.stem] = path
    return found


def count(path: Path) -> int:
    """How many seeds of a kind the test suite runs: its constant COUNT, about five seconds' worth."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "COUNT" for t in node.targets):
            return ast.literal_eval(node.value)
    return COUNT


@dataclass
class Finding:
    kind: str
    seed: int
    trouble: str
    text: str
    again: str

    def __str__(self) -> str:
        settings = "".join(
            f"{name}={value} " for name, value in sorted(os.environ.items()) if name.startswith("PELLUCID_")
        )
        command = f"{settings}scripts/fuzz {self.kind} --seed {self.seed} --count 1"
        head = f"{self.kind}, seed {self.seed}: {self.trouble}\n{self.again}: {command}"
        return f"{head}\n\n{self.text.rstrip()}\n"


@dataclass
class Kind:
    """How far one kind is."""

    name: str
    path: Path
    first: int
    left: int | None  # seeds still to run, None for no end
    seconds: float | None  # to run, of all processes together, None for no end
    next: int = 0
    ran: int = 0
    spent: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def open(self) -> bool:
        return self.left != 0 and (self.seconds is None or self.spent < self.seconds)

    def __str__(self) -> str:
        speed = self.ran / self.spent if self.spent else 0.0
        upto = f"{self.first} to {self.next - 1}" if self.ran else "none"
        found = len(self.findings)
        return f"{self.name:12} {self.ran:8} seeds ({upto}), {speed:6.1f} a second, {found} findings"


class Died(Exception):
    """The process of a kind ended, or had to be ended; says how."""


class Worker:
    """A process that runs seeds of one kind."""

    def __init__(self, kind: Kind, bound: float) -> None:
        self.bound = bound
        self.seeds: list[int] = []
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        before = os.environ.get("PYTHONPATH")
        paths = [str(ROOT / "pkg"), str(ROOT / "tests"), *([before] if before else [])]
        self.process = subprocess.Popen(
            [sys.executable, FOLDER / "worker.py", kind.path, str(bound)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
            start_new_session=True,  # Ctrl-C is the runner's
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.output, selectors.EVENT_READ)
        try:
            self._answer(START)
        except Died:
            self.close()
            raise

    def run(self, seed: int) -> dict:
        self.seeds.append(seed)
        try:
            self.input.write(f"{seed}\n")
            self.input.flush()
        except BrokenPipeError:
            pass  # it died between two seeds; the answer says so
        return self._answer(self.bound + 10)

    def _answer(self, patience: float) -> dict:
        """The next line, which is whole as soon as it begins: a worker writes one at a time."""
        line = self.output.readline() if self.selector.select(patience) else None
        if line:
            return json.loads(line)
        if line is None:
            self.process.kill()
        status = self.process.wait()
        self.said.seek(0)
        said = self.said.read().decode(errors="replace")[-6000:]
        if line is None or "Timeout (" in said:
            raise Died(f"hangs: more than {self.bound:g} s", said)
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        raise Died(f"its process ended with {name}", said)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.selector.close()
        self.input.close()
        self.output.close()
        self.said.close()


class Run:
    """Kinds that take turns, in several processes at once."""

    def __init__(self, kinds: list[Kind], options: argparse.Namespace) -> None:
        self.kinds, self.options = kinds, options
        self.lock = threading.Lock()
        self.workers: set[Worker] = set()
        self.busy: dict[str, int] = dict.fromkeys((kind.name for kind in kinds), 0)
        self.stopped = threading.Event()
        self.failure: BaseException | None = None

    def _choose(self) -> Kind | None:
        """The kind that ran least, if possible one that no other process runs."""
        with self.lock:
            waiting = [kind for kind in self.kinds if kind.open()]
            if not waiting or self.stopped.is_set():
                return None
            kind = min(waiting, key=lambda kind: (self.busy[kind.name], kind.spent))
            self.busy[kind.name] += 1
            return kind

    def job(self) -> None:
        """Stretches of one kind after another, until all are done."""
        try:
            while (kind := self._choose()) is not None:
                try:
                    self._stretch(kind)
                finally:
                    with self.lock:
                        self.busy[kind.name] -= 1
                if self.options.progress:
                    print(kind, flush=True)
        except BaseException as error:
            self.failure = error
            self.stopped.set()

    def _start(self, kind: Kind) -> Worker:
        worker = Worker(kind, self.options.timeout)
        with self.lock:
            self.workers.add(worker)
        return worker

    def _end(self, worker: Worker) -> None:
        with self.lock:
            self.workers.discard(worker)
        worker.close()

    def _stretch(self, kind: Kind) -> None:
        worker = self._start(kind)
        stretch = time.monotonic() + STRETCH
        try:
            while time.monotonic() < stretch and not self.stopped.is_set():
                with self.lock:
                    if not kind.open():
                        return
                    seed = kind.next
                    kind.next += 1
                    kind.left = kind.left and kind.left - 1
                began = time.monotonic()
                trouble = self._try(worker, seed)
                if self.stopped.is_set() and trouble is not None:
                    return  # the workers were ended
                with self.lock:
                    kind.ran += 1
                    kind.spent += time.monotonic() - began
                if trouble is not None:
                    seeds = worker.seeds
                    self._end(worker)
                    self._found(kind, seed, seeds, *trouble)
                    worker = self._start(kind)
        finally:
            self._end(worker)

    def _try(self, worker: Worker, seed: int) -> tuple[str, str] | None:
        try:
            return worker.run(seed)["trouble"]
        except Died as error:
            return error.args

    def _found(self, kind: Kind, seed: int, seeds: list[int], trouble: str, text: str) -> None:
        """Try the seed by itself, then tell."""
        worker = self._start(kind)
        try:
            alone = self._try(worker, seed)
        finally:
            self._end(worker)
        if self.stopped.is_set():
            return
        before = f"{seeds[0]} to {seeds[-2]}" if len(seeds) > 1 else "none"
        again = "Again" if alone else f"Not again by itself (its process ran {before} before)"
        finding = Finding(kind.name, seed, trouble, text, again)
        with self.lock:
            kind.findings.append(finding)
        print(f"\n{finding}", flush=True)
        if self.options.findings:
            name = f"{kind.name}-{seed}.txt"
            (self.options.findings / name).write_text(str(finding), encoding="utf-8")
        if not self.options.keep_going:
            self.stopped.set()

    def stop(self) -> None:
        self.stopped.set()
        with self.lock:
            for worker in self.workers:
                worker.process.kill()


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="default: all")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="to run, the kinds together; default: no end"
    )
    parser.add_argument("--seed", type=int, metavar="FIRST", help="the first seed; default: by the clock")
    parser.add_argument("--count", type=int, metavar="N", help="seeds of each kind; default: no end")
    parser.add_argument("--suite", action="store_true", help="the seeds that scripts/test runs")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at once; default 1")
    parser.add_argument("--keep-going", action="store_true", help="go on after a finding")
    parser.add_argument("--findings", type=Path, metavar="DIR", help="write each finding to a file there")
    parser.add_argument(
        "--timeout", type=float, default=60, metavar="S", help="the most seconds a seed may take; default 60"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help="where the kinds are")
    parser.add_argument(
        "--page",
        action="store_true",
        help="programs in a page against the cpu device; --seed, --count and --seconds only",
    )
    parser.add_argument("--list", action="store_true", help="print the kinds and end")
    options = parser.parse_args(words)
    options.found = kinds(options.folder)
    if unknown := sorted(set(options.kinds) - set(options.found)):
        parser.error(f"no kind named {', '.join(unknown)}; there are: {', '.join(options.found) or 'none'}")
    if options.suite and (options.seed is not None or options.count is not None):
        parser.error("--suite chooses the seeds, so neither --seed nor --count goes with it")
    if options.page:
        parser.error("--page is an option of scripts/fuzz")
    if options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: at least one process is needed")
    options.progress = not options.suite
    if options.findings:
        options.findings.mkdir(parents=True, exist_ok=True)
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    names = options.kinds or list(options.found)
    if options.list:
        print(*names, sep="\n")
        return 0
    first = 0 if options.suite else int(time.time()) if options.seed is None else options.seed
    seconds = options.seconds and options.seconds / len(names)
    chosen = [
        Kind(name, path, first, count(path) if options.suite else options.count, seconds, first)
        for name, path in options.found.items()
        if name in names
    ]
    run = Run(chosen, options)
    jobs = [threading.Thread(target=run.job) for _ in range(options.jobs)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for job in jobs:
            job.start()
        while any(job.is_alive() for job in jobs):
            for job in jobs:
                job.join(0.2)
    except KeyboardInterrupt:
        run.stop()
        for job in jobs:
            job.join()
    print(*chosen, sep="\n", flush=True)
    if isinstance(run.failure, Died):
        trouble, said = run.failure.args
        print(f"fuzz: a kind cannot be started: {trouble}\n{said}", file=sys.stderr)
        return 2
    if run.failure is not None:
        raise run.failure
    return int(any(kind.findings for kind in chosen))


if __name__ == "__main__":
    sys.exit(main())
