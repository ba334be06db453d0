#!/usr/bin/env python3
"""Conformance with PyTorch: samples of its operator, module and optimizer databases, run by both libraries.

Each name is run in a worker process, so that a crash or a hang is that name's. What was run is kept in
cache/conformance; the next call goes on from there unless the commit is another or --fresh is given. A run of
all names writes docs/coverage.md. On the device chromium a float32 sample of each operator runs in the page.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from multiprocessing.connection import Connection, wait
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "cache" / "conformance"
SECONDS = 180  # for one name


def entries() -> list[str]:
    """All names, with what they are: ``op add``, ``module Linear``, ``optimizer SGD``."""
    from conformance import modules, operators

    return [
        *(f"op {name}" for name in operators.in_scope()),
        *(f"module {name}" for name in modules.modules()),
        *(f"optimizer {name}" for name in modules.optimizers()),
    ]


def work(pipe: Connection, device: str, most: int, seed: int) -> None:
    """A worker: run each entry that comes, send its counts."""
    warnings.filterwarnings("ignore")
    os.environ["PYTHONWARNINGS"] = "ignore"
    import numpy as np
    import torch

    import pellucid
    from conformance import modules, operators

    np.seterr(all="ignore")
    torch.set_num_threads(1)
    pellucid.set_default_device(device)
    pellucid.webgpu.set_float64_precision("float32")
    tables = {
        "op": (operators.in_scope(), operators.run),
        "module": (modules.modules(), modules.run_module),
        "optimizer": (modules.optimizers(), modules.run_optimizer),
    }
    pipe.send(None)
    while (entry := pipe.recv()) is not None:
        kind, _, name = entry.partition(" ")
        table, run = tables[kind]
        began = time.monotonic()
        try:
            counts = {key: vars(c) for key, c in run(table[name], most, seed).items()}
        except Exception as error:
            counts = failed(f"the case itself: {type(error).__name__}: {error}")
        pipe.send({"entry": entry, "seconds": round(time.monotonic() - began, 2), "counts": counts})


class Worker:
    """A process with a pipe and what it is doing."""

    def __init__(self, *settings) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, *settings), daemon=True)
        self.process.start()
        other.close()
        self.entry: str | None = "the start"
        self.began = time.monotonic()

    def give(self, entry: str | None) -> None:
        self.entry, self.began = entry, time.monotonic()
        self.pipe.send(entry)

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def failed(why: str) -> dict[str, dict]:
    """Counts of an entry of which nothing could be run."""
    from conformance.outcome import Counts

    counts = Counts()
    counts.add("error", why)
    return {"forward": vars(counts)}


def run(todo: list[str], jobs: int, settings: tuple, kept: Path) -> None:
    """Share the entries among workers; append what comes to a file."""
    todo = todo[::-1]
    count, done = len(todo), 0
    workers = [Worker(*settings) for _ in range(min(jobs, count))]
    with kept.open("a", encoding="utf-8") as out:
        while workers:
            ready = wait([w.pipe for w in workers], timeout=5)
            for w in list(workers):
                result, dead = None, ""
                if w.pipe in ready:
                    try:
                        result = w.pipe.recv()
                    except EOFError:
                        dead = "the process died"
                elif time.monotonic() - w.began > SECONDS:
                    dead = f"took more than {SECONDS} s"
                else:
                    continue
                if dead:
                    result = {"entry": str(w.entry), "seconds": 0, "counts": failed(dead)}
                    w.end()
                    workers[workers.index(w)] = w = Worker(*settings)
                if result is not None:
                    done += 1
                    out.write(json.dumps(result) + "\n")
                    out.flush()
                    if done % 50 == 0:
                        print(f"conformance: {done} of {count}", flush=True)
                if dead:
                    continue  # the new one says when it is ready
                if todo:
                    w.give(todo.pop())
                else:
                    w.pipe.send(None)
                    w.process.join(10)
                    workers.remove(w)


def surroundings(device: str) -> str:
    """PyTorch's version, and the adapter of the device."""
    import torch

    import pellucid

    adapter = f", {pellucid.webgpu.get_device_name()}" if device == "webgpu" else ""
    return f"PyTorch {torch.__version__}{adapter}"


def in_page(seed: int, commit: str) -> int:
    """Run a float32 sample of each name in Chromium, from the built site; renew that part of the page."""
    import torch

    from conformance import recorded, report

    warnings.filterwarnings("ignore")
    folder = KEPT / "chromium"
    count, left = recorded.write(folder, seed)
    print(f"conformance: {count} cases; {len(left)} names have none", flush=True)
    began = time.monotonic()
    program = str(ROOT / "tests" / "conformance" / "page.py")
    browser = [sys.executable, str(ROOT / "scripts" / "browser"), program, "--mount", str(folder)]
    done = subprocess.run([*browser, "--timeout", "1200"], stdout=subprocess.PIPE, text=True)
    said = {r["name"]: r["said"] for r in map(json.loads, done.stdout.splitlines())}
    failed = {name: text for name, text in said.items() if text}
    print(f"conformance: {len(said) - len(failed)} of {count} pass")
    for name, text in failed.items():
        print(f"{name:40} {text}")
    if done.returncode or len(said) != count:
        print(f"conformance: the page ended after {len(said)} of {count} cases", file=sys.stderr)
        return 1
    how = f"`scripts/conformance --device chromium --seed {seed}` at {commit or 'an export'}"
    took = f"{time.monotonic() - began:.0f} s, PyTorch {torch.__version__}"
    report.write_page_run(f"{how}, {took}", count, failed, left)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/conformance", description=__doc__)
    parser.add_argument("--device", choices=("webgpu", "cpu", "chromium"), default="webgpu")
    parser.add_argument("--samples", type=int, default=6, metavar="N", help="at most, of each dtype")
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names or beginnings; the page stays")
    parser.add_argument("--fresh", action="store_true", help="forget what was run before")
    options = parser.parse_args()
    from conformance import report

    KEPT.mkdir(parents=True, exist_ok=True)
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    if options.device == "chromium":
        return in_page(options.seed, commit)
    kept = KEPT / f"{options.device}-{options.seed}-{options.samples}-{commit}.jsonl"
    if options.only:
        kept = KEPT / "only.jsonl"
    if options.fresh or options.only:
        kept.unlink(missing_ok=True)
    known = {}
    if kept.exists():
        known = {r["entry"]: r for r in map(json.loads, kept.read_text(encoding="utf-8").splitlines())}
    wanted = entries()
    if options.only:
        wanted = [e for e in wanted if e.partition(" ")[2].startswith(tuple(options.only))]
    began = time.monotonic()
    run(
        [e for e in wanted if e not in known],
        options.jobs,
        (options.device, options.samples, options.seed),
        kept,
    )
    results = {r["entry"]: r for r in map(json.loads, kept.read_text(encoding="utf-8").splitlines())}
    print(report.summary(results))
    if options.only:
        for r in results.values():
            for kind, c in r["counts"].items():
                print(f"{r['entry']:40} {kind:9} {report.cell(c)}  {'; '.join(c['reasons'].values())}")
    else:
        words = f"--device {options.device} --samples {options.samples} --seed {options.seed}"
        how = f"`scripts/conformance {words}` at {commit or 'an export'}, {time.monotonic() - began:.0f} s"
        report.write(options.device, results, f"{how}, {surroundings(options.device)}")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    sys.exit(main())
