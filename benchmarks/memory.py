"""Live bytes of the device after 100 and after 10,000 eager iterations: they must be equal.

Run: scripts/browser benchmarks/memory.py   (add --native for CPython and wgpu-py)

Every iteration computes, looks through views, writes in place and walks a graph; some raise an exception
whose traceback holds tensors, some leave a reference cycle, some read. Exits with 1 when memory grew. The
last line is JSON.
"""

import gc
import json
import sys
import time

import pellucid as torch

EARLY, LATE = 100, 10_000


class Node:
    """Half of a reference cycle that holds a tensor."""

    def __init__(self, value: torch.Tensor):
        self.value = value
        self.other: Node | None = None


def fail(x: torch.Tensor) -> torch.Tensor:
    """Raises with intermediate results alive in its frame."""
    doubled = x * 2
    return doubled.reshape(3, 5) + x


def iterate(k: int, state: torch.Tensor, weight: torch.Tensor) -> None:
    """One iteration; ``state`` is changed in place and stays bounded."""
    y = (state @ weight).tanh() + state[:, :1]
    view = y.transpose(0, 1)[1:5, ::2]
    view.mul_(0.5)
    if k % 3 == 0:
        loss = (y * y).mean()
        loss.backward()
        weight.grad = None
    state.mul_(0.9).add_(y.detach(), alpha=0.1)
    if k % 7 == 0:
        try:
            fail(state)
        except RuntimeError as error:
            if "(3, 5)" not in str(error):
                raise
        else:
            raise AssertionError("a wrong shape went through")
    if k % 11 == 0:
        a, b = Node(y + 1), Node(view * 2)
        a.other, b.other = b, a
    if k % 100 == 0:
        total = state.sum().item()
        assert total == total, "NaN"


def settled() -> dict[str, int]:
    """Counters once everything that nobody holds is gone."""
    gc.collect()
    torch.webgpu.synchronize()
    stats = torch.webgpu.memory_stats()
    return {
        "live_bytes": stats["allocated_bytes"],
        "reserved_bytes": stats["reserved_bytes"],
        "live_buffers": stats["live_buffers"],
    }


def main() -> int:
    state = torch.randn(32, 32)
    weight = torch.randn(32, 32, requires_grad=True)
    seen: dict[int, dict[str, int]] = {}
    began = time.perf_counter()
    for k in range(1, LATE + 1):
        iterate(k, state, weight)
        if k in (EARLY, LATE):
            seen[k] = settled()
            text = ", ".join(f"{name} {value:,}" for name, value in seen[k].items())
            print(f"  after {k:6,} iterations ({time.perf_counter() - began:6.1f} s): {text}")
    flat = seen[EARLY]["live_bytes"] == seen[LATE]["live_bytes"]
    print(f"  live bytes: {'flat' if flat else 'GREW'}")
    print(
        json.dumps(
            {
                "benchmark": "memory",
                "host": "browser" if sys.platform == "emscripten" else "native",
                "after": {str(k): counters for k, counters in seen.items()},
                "flat": flat,
            }
        )
    )
    return 0 if flat else 1


sys.exit(main())
