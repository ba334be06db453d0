"""Python's time per eager op, without the device: records are thrown away, but for the last line's.

Run: scripts/browser benchmarks/eager.py   (add --native for CPython)

Budget in Pyodide: 6 us for two tensors; 10 us with recording of the graph, keyword arguments or numbers.
The calibration is a loop of plain Python, so that numbers of different machines can be compared. Each number
is the fastest of seven repetitions; the last line is JSON.
"""

import gc
import json
import platform
import sys
import time

import pellucid as torch
from pellucid.device.stream import stream

REPETITIONS = 7
CALLS = 2000
BUDGET = {"add": 6.0, "add, recorded": 10.0, "add, alpha=": 10.0, "add, a number": 10.0}


class Counter:
    """Something with an attribute and a method, for the calibration."""

    def __init__(self):
        self.value = 0

    def add(self, other: int) -> int:
        self.value += other
        return self.value


def calibrate() -> float:
    """Nanoseconds of a fixed mixture of calls, attributes, dictionaries and tuples."""
    best = float("inf")
    for _ in range(REPETITIONS):
        counter, table = Counter(), {(k, "a"): k for k in range(16)}
        began = time.perf_counter()
        for k in range(20_000):
            counter.add(table[(k & 15, "a")])
        best = min(best, time.perf_counter() - began)
    return 1e9 * best / 20_000


def drop_records() -> None:
    """Forget what was recorded, as if it had been submitted; slots come back as after a flush."""
    s = stream()
    torch.webgpu.memory_allocated()  # which looks for what went away
    del s.words[:]
    s.window_bytes = s.gone_bytes = s._seen = 0
    s.free += s.dead
    del s.dead[:]


def measure(run) -> float:
    """Microseconds per call, with a window of records dropped every 500 calls outside the measured time."""
    run()
    best = float("inf")
    for _ in range(REPETITIONS):
        total = 0.0
        for _ in range(CALLS // 500):
            drop_records()
            began = time.perf_counter()
            for _ in range(500):
                run()
            total += time.perf_counter() - began
        best = min(best, total)
    drop_records()
    return 1e6 * best / CALLS


def measure_flushed() -> float:
    """Microseconds per dependent addition with its share of the flush that submits it."""
    a, best = torch.ones(64, 64), float("inf")
    for _ in range(REPETITIONS):
        torch.webgpu.synchronize()
        began = time.perf_counter()
        x = a
        for _ in range(500):
            x = x + a
        torch.webgpu.flush()
        best = min(best, time.perf_counter() - began)
    torch.webgpu.synchronize()
    return 1e6 * best / 500


def workloads() -> dict:
    a, b = torch.ones(64, 64), torch.ones(64, 64)
    wanted = torch.ones(64, 64, requires_grad=True)
    row = torch.ones(64)
    target = torch.ones(64, 64)
    linear = torch.nn.Linear(64, 64)
    plain = torch.nn.Linear(64, 64).requires_grad_(False)

    class Nothing(torch.nn.Module):
        def forward(self, x):
            return x

    nothing = Nothing()
    return {
        "a loop's own": lambda: None,
        "add": lambda: a + b,
        "add, broadcast": lambda: a + row,
        "add, as function": lambda: torch.add(a, b),
        "add, a number": lambda: a + 2.5,
        "add, alpha=": lambda: torch.add(a, b, alpha=2.0),
        "add, recorded": lambda: wanted + b,
        "add, recorded, a number": lambda: wanted + 2.5,
        "mul, recorded": lambda: wanted * wanted,
        "exp": lambda: a.exp(),
        "sum, dim=": lambda: a.sum(dim=1),
        "view": lambda: a.view(32, 128),
        "transpose": lambda: a.transpose(0, 1),
        "x[1]": lambda: a[1],
        "x[:, 2:9]": lambda: a[:, 2:9],
        "add_, in place": lambda: target.add_(b),
        "+=, a number": lambda: target.__iadd__(1.0),
        "matmul": lambda: a @ b,
        "Module call": lambda: nothing(a),
        "Linear": lambda: plain(a),
        "Linear, recorded": lambda: linear(a),
    }


def main() -> int:
    calibration = calibrate()
    host = "browser" if sys.platform == "emscripten" else "native"
    print(f"{host}, Python {platform.python_version()}, calibration {calibration:.0f} ns")
    stream().open()
    flushed = measure_flushed()
    # What was uploaded so far really is on the device; from here on records are only counted.
    made = workloads()
    torch.webgpu.synchronize()
    gc.collect()
    gc.freeze()
    results = {}
    for name, run in made.items():
        results[name] = took = measure(run)
        budget = BUDGET.get(name)
        verdict = f"   budget {budget:g} us: {'met' if took <= budget else 'MISSED'}" if budget else ""
        print(f"  {name:26} {took:7.2f} us   {1000 * took / calibration:6.1f} calibrations{verdict}")
    results[name := "add, with its flush"] = flushed
    print(f"  {name:26} {flushed:7.2f} us   {1000 * flushed / calibration:6.1f} calibrations")
    met = all(results[name] <= budget for name, budget in BUDGET.items())
    print(
        json.dumps(
            {
                "benchmark": "eager",
                "host": host,
                "python": platform.python_version(),
                "calibration_ns": round(calibration, 1),
                "microseconds": {name: round(took, 3) for name, took in results.items()},
                "budgets_met": met,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
