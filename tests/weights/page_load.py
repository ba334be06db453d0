"""Runs in a page, by scripts/browser: loads into WebGPU buffers and says what it saw as JSON lines."""

import asyncio
import hashlib
import json
import os

import js
import numpy as np
import pyodide_js
from pyodide.code import run_js

from pellucid import weights
from pellucid.device.browser import BrowserHost
from pellucid.weights import Cancel, Target, settings

URL = os.environ["PELLUCID_TEST_URL"]
downloads = run_js(os.environ["PELLUCID_TEST_WATCH"])
settings.network_retries = 3
settings.network_timeout = 5.0


def say(name, **values):
    print(json.dumps({"name": name, **values}))


def wasm_bytes():
    return pyodide_js._module.HEAPU8.length


def targets(checkpoint):
    return [(t, Target(slot, t.nbytes)) for slot, t in enumerate(checkpoint.values(), 1)]


def digest(host, checkpoint):
    """Of all tensors as the device has them."""
    total = hashlib.sha256()
    for info, target in targets(checkpoint):
        if info.nbytes:
            data, _ = host.read(host.begin_read(target.slot, 0, (info.nbytes + 3) & ~3))
            total.update(bytes(data)[: info.nbytes])
    return total.hexdigest()


def load(path, name=None):
    host, seen = BrowserHost(), []
    before = wasm_bytes()
    downloads.highest, already = downloads.now, downloads.all
    checkpoint = weights.open(URL + path)
    weights.stream(checkpoint, targets(checkpoint), host, on_progress=seen.append)
    grown = wasm_bytes() - before
    held, arrived = downloads.highest, downloads.all - already
    say(
        name or path,
        digest=digest(host, checkpoint),
        grown=grown,
        held=held,
        arrived=arrived,
        reports=len(seen),
        first=seen[0].bytes_done,
        last=seen[-1].bytes_done,
        total=checkpoint.nbytes,
    )
    host.close()


def refusal(path):
    try:
        checkpoint = weights.open(URL + path)
        weights.read(checkpoint, list(checkpoint.values()))
    except Exception as error:
        say(path, error=type(error).__name__, text=str(error))
    else:
        say(path, error=None)


class Counting:
    """A JavaScript stream that counts, for what the device itself does not tell."""

    def __init__(self):
        self.stream = run_js("({writes: 0, write(slot, nbytes, offset, data) { this.writes++; }})")


async def cancelled(path):
    checkpoint = await weights.open_async(URL + path)
    host, cancel = Counting(), Cancel()

    def enough(progress):
        if progress.bytes_done > 0:
            cancel.cancel()

    try:
        await weights.stream_async(checkpoint, targets(checkpoint), host, on_progress=enough, cancel=cancel)
        error = None
    except Exception as caught:
        error = type(caught).__name__
    writes = host.stream.writes
    await asyncio.sleep(0.5)
    say(path, error=error, writes=writes, later=host.stream.writes - writes)


async def cancelled_task(path):
    checkpoint = await weights.open_async(URL + path)
    host = Counting()
    task = asyncio.create_task(weights.stream_async(checkpoint, targets(checkpoint), host))
    await asyncio.sleep(0.3)
    task.cancel()
    try:
        await task
        error = None
    except asyncio.CancelledError as caught:
        error = type(caught).__name__
    writes = host.stream.writes
    await asyncio.sleep(0.5)
    say(path, error=error, writes=writes, later=host.stream.writes - writes)


async def other_sources():
    response = await js.fetch(URL + "/plain.safetensors")
    file = js.File.new([await response.arrayBuffer()], "chosen.safetensors")
    for source in (file, (await file.arrayBuffer()).to_bytes()):
        checkpoint = weights.open(source)
        infos = list(checkpoint.values())
        read = weights.read(checkpoint, infos)
        host = BrowserHost()
        await weights.stream_async(checkpoint, targets(checkpoint), host)
        say(
            "source",
            file=checkpoint.name,
            cpu=hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in read)).hexdigest(),
            digest=digest(host, checkpoint),
        )
        host.close()


def cannot_wait():
    """A synchronous callback of JavaScript into Python cannot be suspended."""
    found = []

    def callback(*_):
        try:
            weights.open(URL + "/plain.safetensors")
        except Exception as error:
            found.append((type(error).__name__, str(error)))

    run_js("(f) => [1].map(f)")(callback)
    say("callback", error=found[0][0], text=found[0][1])


def without_byte_readers():
    """From here on the browser is one whose bodies are no byte streams."""
    run_js("""
    const { getReader } = ReadableStream.prototype;
    ReadableStream.prototype.getReader = function (options) {
      if (options?.mode === "byob") throw new TypeError("not a byte stream");
      return getReader.call(this);
    };
    """)


load("/long.safetensors")
for path in ("/plain.safetensors", "/dropped.safetensors", "/unranged.safetensors", "/hidden.safetensors"):
    load(path)
for name in ("pytorch.bin", "arrays.npz"):
    load(f"/{name}")
for name in ("absent", "refused", "cut", "changed", "html"):
    refusal(f"/{name}.safetensors")
await cancelled("/slow.safetensors")  # noqa: F704
await cancelled_task("/slower.safetensors")  # noqa: F704
await other_sources()  # noqa: F704
cannot_wait()
without_byte_readers()
for path in ("/long.safetensors", "/tape.safetensors"):
    load(path, f"chunks of {path}")
