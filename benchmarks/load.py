"""How fast a model's weights reach the device, and what the load costs in memory besides.

Run: scripts/browser benchmarks/load.py --mount cache/weights   (add --native for CPython and wgpu-py)
Settings after --: --file NAME --repeat N --connections N

    rate      bytes of the file per second, until the device has repacked the last one; every run
    wasm      growth of Python's memory in a page during the first load (budget 20 MB)
    downloads highest number of bytes, over all loads, that came from the network and were not yet collected
              by JavaScript (budget 100 MB); more of what lies outside its heap a worker cannot see
    js heap   growth of the heap's objects, where the browser tells a worker (``performance.memory``)
    resident  growth of the process natively, where the files' pages count as well

Leaves with 1 when weights stay on the device. The last line is JSON.
"""

import argparse
import gc
import json
import os
import sys
import time
from typing import Any

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


# Counts bytes of chunks from their arrival until the garbage collector has taken them back.
WATCH = """
(() => {
  const held = { now: 0, highest: 0, all: 0 };
  const registry = new FinalizationRegistry((bytes) => (held.now -= bytes));
  const proto = ReadableStreamDefaultReader.prototype;
  const read = proto.read;
  proto.read = async function (...args) {
    const result = await read.apply(this, args);
    const bytes = result.value?.byteLength ?? 0;
    if (bytes) {
      registry.register(result.value.buffer, bytes);
      held.all += bytes;
      held.now += bytes;
      held.highest = Math.max(held.highest, held.now);
    }
    return result;
  };
  return held;
})()
"""


def watch_downloads() -> Any:
    """An object with the bytes of downloads that are held now, were held at most, and all of them."""
    if not IN_PAGE:
        return None
    from pyodide.code import run_js

    return run_js(WATCH)


def megabytes(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 1e6:.1f} MB"


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
    downloads = watch_downloads()
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
    missed = []
    if IN_PAGE:
        missed += ["wasm"] if growth > WASM_BUDGET else []
        missed += ["downloads"] if (held or 0) + max(js_growth or 0, 0) > JS_BUDGET else []
    print(f"  {'wasm' if IN_PAGE else 'resident':10} {megabytes(growth)} more during the first load")
    if IN_PAGE:
        print(f"  downloads  {megabytes(held)} held at most; js heap {megabytes(js_growth)} more at most")
        print(f"  budgets    {'missed: ' + ', '.join(missed) if missed else 'met'}")
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
                "budgets_met": not missed,
                "weight_bytes_left": stats["weight_bytes"],
            }
        )
    )
    return 1 if stats["weight_bytes"] else 0


sys.exit(await main())  # noqa: F704
