"""What a load of any size holds in a page's JavaScript, as the browser itself counts it.

Run: scripts/browser benchmarks/load_heap.py --native   (Python drives Chromium; a page measures nothing)
Settings after --: --megabytes N --budget N

A safetensors file of that size (default 400; sparse on disk) is streamed into WebGPU buffers by the worker of
a page of the built site, while DevTools asks the worker's isolate, every few milliseconds, for its heap:
objects, and the memory of its ArrayBuffers, the wasm memory among them. Resident pages are left out: with
DevTools attached the renderer's grew by about 200 MB in loads of 400 and 800 MB, without it by 20 MB.

    heap      growth of the sum from just before the load to its highest during it (budget 100 MB)

The last line is JSON.
"""

import argparse
import asyncio
import json
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

IN_PAGE = sys.platform == "emscripten"
ROOT = Path(__file__).resolve().parent.parent
TENSOR_BYTES = 4_000_000
PAUSE = 0.005  # seconds between two samples

OPEN = """
import time
from pellucid import weights
from pellucid.device.browser import BrowserHost
checkpoint = await weights.open_async(url)
host = BrowserHost()
targets = [(info, weights.Target(slot, info.nbytes)) for slot, info in enumerate(checkpoint.values(), 1)]
"""
STREAM = """
begun = time.perf_counter()
await weights.stream_async(checkpoint, targets, host)
seconds = time.perf_counter() - begun
live = host.stats()["live_buffers"]
host.close()
[seconds, live]
"""


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="load_heap")
    parser.add_argument("--megabytes", type=int, default=400, metavar="N", help="of the file, default 400")
    parser.add_argument("--budget", type=int, default=100, metavar="N", help="megabytes, default 100")
    return parser.parse_args(words)


def write_sparse(path: Path, nbytes: int) -> int:
    """Write a safetensors file of zeros that takes no room on disk; the bytes of its tensors."""
    count = max(1, nbytes // TENSOR_BYTES)
    header = {
        f"tensor.{k}": {
            "dtype": "U8",
            "shape": [TENSOR_BYTES],
            "data_offsets": [k * TENSOR_BYTES, (k + 1) * TENSOR_BYTES],
        }
        for k in range(count)
    }
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + count * TENSOR_BYTES)
    return count * TENSOR_BYTES


class Worker:
    """The DevTools session of a page's worker."""

    def __init__(self, session: Any) -> None:
        self._session, self._id = session, asyncio.get_running_loop().create_future()
        self._answers: dict[int, asyncio.Future] = {}
        session.on("Target.attachedToTarget", self._attached)
        session.on("Target.receivedMessageFromTarget", self._received)

    async def attach(self) -> None:
        """Follow the workers that the page starts from now on; the first one is asked."""
        settings = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        await self._session.send("Target.setAutoAttach", settings)

    def _attached(self, event: dict) -> None:
        if event["targetInfo"]["type"] == "worker" and not self._id.done():
            self._id.set_result(event["sessionId"])

    def _received(self, event: dict) -> None:
        message = json.loads(event["message"])
        if (answer := self._answers.pop(message.get("id"), None)) is not None:
            answer.set_result(message)

    async def heap_bytes(self) -> int:
        """Bytes of the isolate's objects and of what lies outside of it for them."""
        number, answer = time.monotonic_ns(), asyncio.get_running_loop().create_future()
        number %= 1 << 30
        self._answers[number] = answer
        message = json.dumps({"id": number, "method": "Runtime.getHeapUsage"})
        await self._session.send(
            "Target.sendMessageToTarget", {"sessionId": await self._id, "message": message}
        )
        usage = (await answer)["result"]
        return int(usage["usedSize"] + usage["embedderHeapUsedSize"] + usage["backingStorageSize"])


async def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One load in a new browser."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from playwright.async_api import async_playwright

    import chromium
    import site_builder
    from paths import SITE
    from static_server import StaticServer

    nbytes = write_sparse(folder / "big.safetensors", options.megabytes * 1_000_000)
    site_builder.ensure()
    flags = [flag for flag in chromium.FLAGS if not flag.startswith("--headless")]
    flags += chromium.SOFTWARE_ADAPTER
    with StaticServer(SITE, {"big": folder}) as server:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium.find(), args=flags)
            page = await browser.new_page()
            await page.goto(
                server.url + "web/style.css"
            )  # any file of the origin: the page needs nothing else
            worker = Worker(await page.context.new_cdp_session(page))
            await worker.attach()
            await page.evaluate(
                "async () => { globalThis.python = await (await import('/web/boot.js')).boot(); }"
            )
            url = server.url + "big/big.safetensors"
            await page.evaluate("([code, url]) => python.run(code, { url })", [OPEN, url])
            before = await worker.heap_bytes()
            load = asyncio.create_task(page.evaluate("(code) => python.run(code)", STREAM))
            heaps = []
            while not load.done():
                heaps.append(await worker.heap_bytes())
                await asyncio.sleep(PAUSE)
            seconds, live = await load
            await browser.close()
    return {
        "bytes": nbytes,
        "seconds": round(seconds, 3),
        "live_buffers": live,
        "samples": len(heaps),
        "heap_before": before,
        "heap_growth": max(heaps) - before,
    }


async def main() -> int:
    options = arguments(sys.argv[1:])
    if IN_PAGE:
        print(json.dumps({"benchmark": "load_heap", "skipped": "it starts a browser; run it natively"}))
        return 0
    with tempfile.TemporaryDirectory(prefix="pellucid-heap-") as folder:
        found = await measure(options, Path(folder))
    # A sample or two would say little about the highest.
    known = found["samples"] >= 10
    met = found["heap_growth"] <= options.budget * 1_000_000
    budget = ("met" if met else "MISSED") if known else "unknown"
    print(f"{found['bytes'] / 1e6:.0f} MB in {found['seconds']} s, {found['samples']} samples")
    print(f"  heap      {found['heap_before'] / 1e6:.1f} MB before, {found['heap_growth'] / 1e6:.1f} MB more")
    print(f"  budget    {options.budget} MB: {budget}")
    print(json.dumps({"benchmark": "load_heap", **found, "budget": budget}))
    return 0


sys.exit(await main())  # noqa: F704
