"""Quantized weights: bytes per second of a product with one row, operations per second with 512 rows.

Run: scripts/browser benchmarks/quant.py   (add --native for CPython)

The first number of a format is what decoding a token is made of. It stands beside an addition in place to
256 MB in the same run, bytes read and written together, which is near what the memory can do. Time is that of
the device: calls are recorded, then submitted together, and two lengths are subtracted. A software adapter
has small weights. The last line is JSON.
"""

import json
import sys
import time

import numpy as np

import pellucid as torch
from pellucid.device.stream import Storage, stream
from pellucid.meta import meta
from pellucid.nn.functional import linear
from pellucid.quant import FORMATS
from pellucid.tensor import Tensor

SOFTWARE = ("llvmpipe", "lavapipe", "swiftshader")
REPETITIONS = 5
WARM_UP = 0.1  # seconds until the clocks are up


def seconds(run, calls: int) -> float:
    """Device time of one call, from windows of ``calls`` and of three times as many."""

    def timed(count: int) -> float:
        kept = [run() for _ in range(count)]
        began = time.perf_counter()
        torch.webgpu.synchronize()
        spent = time.perf_counter() - began
        del kept
        return spent

    timed(1)
    began = time.perf_counter()
    while time.perf_counter() - began < WARM_UP:
        timed(calls)
    short = min(timed(calls) for _ in range(REPETITIONS))
    long = min(timed(3 * calls) for _ in range(REPETITIONS))
    # What a submission and the waiting for it cost is in both; on a busy processor it drowns in the noise.
    return (long - short) / (2 * calls) if long > 2 * short else long / (3 * calls)


def weight(name: str, rows: int, columns: int) -> Tensor:
    """A weight of zeros in planes; values do not change the time, and none has to be made."""
    device = torch.device("webgpu")
    storage = Storage(FORMATS[name].layout(rows, columns).nbytes, "weight")
    return Tensor(storage, meta((rows, columns), FORMATS[name].dtype, device), 0)


def main() -> None:
    info = torch.webgpu.get_device_properties()
    adapter = f"{info.vendor} {info.architecture} {info.description}".strip()
    software = any(word in adapter.lower() for word in SOFTWARE)
    rows, columns = (512, 2048) if software else (16384, 8192)
    calls = 2 if software else 50
    result: dict = {"adapter": adapter, "rows": rows, "columns": columns, "formats": {}}

    values = torch.zeros((16 if software else 64) << 20)
    reached = 2 * values.nbytes / seconds(lambda: values.add_(1.0), calls) / 1e9
    result["add_ GB/s"] = round(reached, 1)
    print(f"{adapter}: addition in place {reached:.1f} GB/s", flush=True)

    rng = np.random.default_rng(0)
    one = torch.tensor(rng.standard_normal((1, columns)).astype(np.float32))
    many = torch.tensor(rng.standard_normal((64 if software else 512, columns)).astype(np.float32))
    for name in sys.argv[1:] or FORMATS:
        w = weight(name, rows, columns)
        spent = seconds(lambda w=w: linear(one, w), calls)
        prefill = seconds(lambda w=w: linear(many, w), max(calls // 10, 1))
        speed = w._storage.nbytes / spent / 1e9
        work = 2 * many.shape[0] * rows * columns / prefill / 1e12
        megabytes = w._storage.nbytes / 1e6
        print(
            f"{name:5} {megabytes:6.1f} MB  {speed:7.1f} GB/s ({speed / reached:4.0%}) {work:7.3f} TFLOP/s",
            flush=True,
        )
        result["formats"][name] = {"GB/s": round(speed, 1), "TFLOP/s": round(work, 3)}
        del w
    stream().flush()
    print(json.dumps(result))


main()
