"""How fast a model's weights reach the device, and what the load costs in memory besides.

Run: scripts/browser benchmarks/load.py --mount cache/weights   (add --native for CPython and wgpu-py)
Settings after --: --file NAME --repeat N --connections N

    rate      bytes of the file per second, until the device has repacked the last one; every run
    wasm      growth of Python's memory in a page during the first load (budget 20 MB)
    downloads highest number of bytes, over all loads, that JavaScript held of what came from the network:
              lent to a read, in use, or not yet collected (budget 100 MB)
    js heap   growth of the heap's objects, where the browser tells a worker (``performance.memory``; Chromium
              does not: load_heap.py measures the heap from outside)
    resident  growth of the process natively, where the files' pages count as well

Leaves with 1 when weights stay on the device. The last line is JSON.
"""

import argparse
import gc
import json
import os
import sys
import time

import _downloads

import pellucid as torch

IN_PAGE = sys.platform == "emscripten"
WASM_BUDGET, JS_BUDGET = 20_000_000, 100_000_000


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="load")
    parser.add_argument("--file", default="SmolLM2-135M-Instruct.Q4_1.gguf", help="of the mounted folder")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--connections", type=int, default=6, metavar="N")
    return parser.parse_args(words)


def python_memory() -> int:
    """Bytes that Python has taken: wasm memory in a page, resident pages natively."""
    if IN_PAGE:
        import pyodide_js

        return int(pyodide_js._module.HEAPU8.length)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def js_heap() -> int | None:
    """Bytes of this worker's JavaScript heap, where the browser tells."""
    if not IN_PAGE:
        return None
    import js

    memory = getattr(js.performance, "memory", None)
    return None if memory is None else int(memory.usedJSHeapSize)


def megabytes(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 1e6:.1f} MB"


def verdict(count: int | None, budget: int) -> str:
    """What is to be said of a budget."""
    if count is None:
        return "unknown"
    return "met" if count <= budget else "MISSED"


async def main() -> int:
    options = arguments(sys.argv[1:])
    mount = os.environ["PELLUCID_MOUNT"]
    host = "browser" if IN_PAGE else "native"
    await torch.webgpu.open_async()
    # What any program brings into memory is there before: modules and a first kernel.
    (torch.ones(8, device="webgpu") + 1).tolist()
    torch.models.AutoModelForCausalLM  # noqa: B018
    gc.collect()
    nbytes = torch.weights.open(mount, filename=options.file).nbytes
    print(
        f"{host}, {torch.webgpu.get_device_name()}; {options.file}, {nbytes:,} bytes of tensors", flush=True
    )
    downloads = _downloads.watch() if IN_PAGE else None
    python_before, js_before = python_memory(), js_heap()
    highest = {"python": python_before, "js": js_before or 0}

    def watch(progress: torch.weights.Progress) -> None:
        highest["python"] = max(highest["python"], python_memory())
        highest["js"] = max(highest["js"], js_heap() or 0)

    seconds, growth = [], 0
    for k in range(options.repeat):
        begun = time.perf_counter()
        model = await torch.AutoModelForCausalLM.from_pretrained_async(
            mount, filename=options.file, device="webgpu", connections=options.connections, on_progress=watch
        )
        await torch.webgpu.synchronize_async()
        seconds.append(time.perf_counter() - begun)
        print(
            f"  load {k + 1}      {nbytes / 1e6 / seconds[-1]:9.1f} MB/s in {seconds[-1]:.2f} s", flush=True
        )
        if k == 0:
            growth = max(highest["python"], python_memory()) - python_before
        del model
        gc.collect()
    js_growth = None if js_before is None else highest["js"] - js_before
    held = None if downloads is None else int(downloads.highest)
    if downloads is not None and downloads.all < nbytes * options.repeat:
        print(f"  only {downloads.all} bytes were seen to arrive: what is held is not known")
        held = None
    # A growth that was not measured meets no budget and misses none.
    measured = {"wasm": (growth, WASM_BUDGET), "downloads": (held, JS_BUDGET)}
    measured["js heap"] = (js_growth, JS_BUDGET)
    budgets = {name: verdict(*pair) for name, pair in measured.items()} if IN_PAGE else {}
    print(f"  {'wasm' if IN_PAGE else 'resident':10} {megabytes(growth)} more during the first load")
    if IN_PAGE:
        print(f"  downloads  {megabytes(held)} held at most; js heap growth at most {megabytes(js_growth)}")
        print("  budgets    " + ", ".join(f"{name} {word}" for name, word in budgets.items()))
    stats = torch.webgpu.memory_stats()
    print(f"  afterwards {stats['weight_bytes']} bytes of weights are left on the device")
    print(
        json.dumps(
            {
                "benchmark": "load",
                "host": host,
                "model": options.file,
                "bytes": nbytes,
                "seconds": [round(s, 3) for s in seconds],
                "megabytes_per_second": round(nbytes / 1e6 / min(seconds), 1),
                "python_growth_bytes": growth,
                "js_growth_bytes": js_growth,
                "downloads_held_bytes": held,
                "budgets": budgets,
                "weight_bytes_left": stats["weight_bytes"],
            }
        )
    )
    return 1 if stats["weight_bytes"] else 0


sys.exit(await main())  # noqa: F704
