"""From nothing to the first tensor result, beside the boot of Python alone.

Run: scripts/browser --fresh benchmarks/boot.py   (add --native for CPython)

In the browser each boot is a new worker like the one that every page of the site starts, so what is
measured is the page's own path: fetch, instantiate, packages, import, device, first kernel, read. Bare means
Pyodide without any package. Files come from the browser's cache after the first boot, which is printed too.
Budget: bare plus 1.5 s.
Natively a boot is a new interpreter. The last line is JSON.
"""

import asyncio
import json
import os
import subprocess
import sys
import time

REPETITIONS = 5
BUDGET = 1.5
PROGRAM = "import pellucid as torch\n(torch.ones(3) + 1).tolist()"
BARE = "1 + 1"
EXPECTED = [2.0, 2.0, 2.0]


async def boot_in_browser(packages: list[str], program: str) -> tuple[float, dict[str, float], object]:
    """Seconds until a program's result is back in a new worker, the stages of the boot, and the result."""
    from js import JSON, Worker
    from pyodide.ffi import create_proxy

    site = os.environ["PELLUCID_SITE"]
    stages: dict[str, float] = {}
    done: asyncio.Future = asyncio.get_running_loop().create_future()
    began = time.perf_counter()
    worker = Worker.new(f"{site}web/python_worker.js", JSON.parse('{"type": "module"}'))

    def send(message: dict) -> None:
        worker.postMessage(JSON.parse(json.dumps(message)))

    def receive(event) -> None:
        data = event.data
        if data.kind == "progress":
            stages[data.stage] = time.perf_counter() - began
        elif data.kind == "ready":
            send({"kind": "run", "id": 1, "code": program, "inputs": {}, "filename": "<boot>"})
        elif data.kind == "done":
            done.set_result(data.value)
        elif data.kind in ("failed", "broken"):
            done.set_exception(RuntimeError(data.message))

    receiver = create_proxy(receive)
    worker.onmessage = receiver
    send({"kind": "start", "site": site, "packages": packages, "env": {}, "interrupts": None})
    try:
        value = await done
        return time.perf_counter() - began, stages, value.to_py() if hasattr(value, "to_py") else value
    finally:
        worker.terminate()
        receiver.destroy()


async def boot_natively(packages: list[str], program: str) -> tuple[float, dict[str, float], object]:
    """Seconds of a new interpreter that runs a program and prints its last line's value."""
    *before, last = program.split("\n")
    code = "\n".join([*before, f"import json; print(json.dumps({last}))"])
    began = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return time.perf_counter() - began, {}, json.loads(run.stdout)


async def main() -> int:
    in_browser = sys.platform == "emscripten"
    boot = boot_in_browser if in_browser else boot_natively
    times: dict[str, list[float]] = {"bare": [], "tensor": []}
    stages: dict[str, float] = {}
    for _ in range(REPETITIONS):
        took, _, value = await boot([], BARE)
        assert value == 2, value
        times["bare"].append(took)
        took, seen, value = await boot(["numpy", "pellucid"], PROGRAM)
        assert value == EXPECTED, value
        if took == min([*times["tensor"], took]):
            stages = seen
        times["tensor"].append(took)
    best = {name: min(values) for name, values in times.items()}
    more = best["tensor"] - best["bare"]
    for name, values in times.items():
        each = ", ".join(f"{t:.2f}" for t in values)
        print(f"  {name:7} fastest {best[name]:.2f} s, first {values[0]:.2f} s   ({each})")
    for stage, took in stages.items():
        print(f"    {stage:9} after {took:.2f} s")
    met = more <= BUDGET
    print(f"  the tensor costs {more:.2f} s more; budget {BUDGET} s: {'met' if met else 'MISSED'}")
    print(
        json.dumps(
            {
                "benchmark": "boot",
                "host": "browser" if in_browser else "native",
                "seconds": {name: round(t, 3) for name, t in best.items()},
                "first": {name: round(values[0], 3) for name, values in times.items()},
                "more": round(more, 3),
                "budget_met": met,
            }
        )
    )
    return 0


sys.exit(await main())  # noqa: F704 (scripts/browser allows await at the top)
