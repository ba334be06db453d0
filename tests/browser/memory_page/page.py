"""What 100, 10,000 and 14,500 eager iterations leave behind in a page; prints a line of JSON for each."""

import asyncio
import contextlib
import gc
import json

import pyodide_js
from pyodide.ffi import create_proxy

import pellucid
from pellucid import webgpu

module = pyodide_js._module
module.enable_pyproxy_allocation_tracing()
held = create_proxy(gc.collect)  # so that a count of none would be a count of nothing


def turn(k: int, kept: list) -> None:
    """One iteration that is hard on memory: a graph, views, writes, cycles, exceptions, reads."""
    x = pellucid.full((4, 8), 0.5, requires_grad=True)
    y = (x * 2 + k).t()[1:, ::2]
    z = y.exp().sum() if k % 3 else y.tanh()
    if k % 3:
        z.backward()
    part = x.detach()[1:3]
    part += 1
    part[0] = part[1] * 2
    kept.append(y.clone())
    if len(kept) > 5:
        kept.pop(0)
    if k % 7 == 0:
        cycle = {"x": x, "z": z}
        cycle["self"] = cycle
    if k % 11 == 0:
        with contextlib.suppress(ValueError):
            pellucid.cat([y, x.reshape(2, 16)], 0)
    if k % 13 == 0:
        reading = x.item_async()
        reading.close()
    if k % 50 == 0:
        z.detach().numpy()
    if k % 500 == 0:
        with contextlib.suppress(IndexError):
            x[pellucid.tensor([9])].tolist()


def left(iterations: int) -> dict[str, int]:
    """Counters once everything that nobody holds is gone."""
    gc.collect()
    webgpu.synchronize()
    gc.collect()
    stats = webgpu.memory_stats()
    gc.collect()
    return {
        "iterations": iterations,
        "live_bytes": stats["allocated_bytes"],
        "live_buffers": stats["live_buffers"],
        "reserved_bytes": stats["reserved_bytes"],
        "pipelines": stats["pipelines"],
        "references_to_javascript": module._hiwire_num_refs(),
        "references_to_python": module.pyproxy_alloc_map.size,
        "python_heap": module.HEAPU8.length,
    }


kept: list = []
for k in range(14_500):
    if k in (100, 10_000):
        print(json.dumps(left(k)))
    turn(k, kept)
    if k % 50 == 0:
        await asyncio.gather(*[t.sum().item_async() for t in kept])
print(json.dumps(left(14_500)))
