"""Quantized weights: bytes per second of a product with one row, operations per second with 512 rows.

Run: scripts/browser benchmarks/quant.py [-- FORMAT...]   (add --native for CPython)

One row is what decoding a token is made of. Weights of several shapes are read, each time another copy, so
many that no cache holds them; the share is that of what the memory does: the copy of `profiler.peak` in the
same run, bytes read and written together. The clock of a GPU falls while nothing is to do, so two long
batches are measured, one three times the other, and subtracted; the median of five such pairs counts. The
share of the product with many rows is of the float32 operations of `peak`. A software adapter has small
weights. The last line is JSON.
"""

import json
import statistics
import sys
import time

import numpy as np

import pellucid as torch
from pellucid.device.stream import Storage, stream
from pellucid.nn.functional import linear
from pellucid.op.kernel.autotune import tune as tuning
from pellucid.quant import FORMATS
from pellucid.tensors.meta import meta
from pellucid.tensors.tensor import Tensor

# Bytes of the copies of a weight, and seconds of the shorter batch.
COLD, BATCH = 300_000_000, 0.06


def many_rows(call) -> float:
    """Device time of one call."""
    return tuning.run(tuning.seconds_of(call, hold=True))


def one_row(weights: list[Tensor], x: Tensor, batch: float) -> float:
    """Seconds of the product with one weight."""

    def spent(calls: int) -> float:
        torch.webgpu.synchronize()
        began = time.perf_counter()
        for k in range(calls):
            linear(x, weights[k % len(weights)])
        torch.webgpu.synchronize()
        return time.perf_counter() - began

    calls = len(weights)
    spent(calls)  # compiles, and fills new memory with zeros
    while spent(calls) < batch:
        calls *= 2
    return statistics.median((spent(3 * calls) - spent(calls)) / (2 * calls) for _ in range(5))


def weight(name: str, rows: int, columns: int) -> Tensor:
    """A weight of zeros in planes; values do not change the time, and none has to be made."""
    device = torch.device("webgpu")
    storage = Storage(FORMATS[name].layout(rows, columns).nbytes, "weight")
    return Tensor(storage, meta((rows, columns), FORMATS[name].dtype, device), 0)


def main() -> None:
    names = sys.argv[1:] or list(FORMATS)
    if unknown := sorted(set(names) - set(FORMATS)):
        sys.exit(f"quant: no format named {', '.join(unknown)}; there are: {', '.join(FORMATS)}")
    info = torch.webgpu.get_device_properties()
    adapter = f"{info.vendor} {info.architecture} {info.description}".strip()
    small = info.is_software
    shapes = [(512, 2048)] if small else [(16384, 8192), (28672, 4096), (8192, 28672), (65536, 4096)]
    result: dict = {"adapter": adapter, "formats": {}}

    peak = torch.profiler.peak()
    result["copy GB/s"] = round(peak.bandwidth / 1e9, 1)
    result["float32 TFLOP/s"] = round(peak.flop_rate / 1e12, 3)
    print(f"{adapter}: {peak}", flush=True)

    rng = np.random.default_rng(0)
    for name in names:
        found = result["formats"][name] = {}
        for rows, columns in shapes:
            nbytes = FORMATS[name].layout(rows, columns).nbytes
            weights = [weight(name, rows, columns) for _ in range(2 if small else -(-COLD // nbytes))]
            x = torch.tensor(rng.standard_normal((1, columns)).astype(np.float32))
            speed = nbytes / one_row(weights, x, 0.001 if small else BATCH)
            found[f"{rows}x{columns}"] = {"GB/s": round(speed / 1e9, 1), "of copy": speed / peak.bandwidth}
            print(
                f"{name:5} {rows:6} x {columns:5} {nbytes / 1e6:6.1f} MB  {speed / 1e9:7.1f} GB/s "
                f"({speed / peak.bandwidth:4.0%})",
                flush=True,
            )
            if (rows, columns) != shapes[0]:
                continue
            x = torch.tensor(rng.standard_normal((64 if small else 512, columns)).astype(np.float32))
            work = 2 * x.numel() * rows / many_rows(lambda x=x, w=weights[0]: linear(x, w))
            found["TFLOP/s"] = round(work / 1e12, 3)
            print(
                f"      {x.shape[0]} rows of x: {work / 1e12:.3f} TFLOP/s ({work / peak.flop_rate:.0%})",
                flush=True,
            )
    stream().flush()
    print(json.dumps(result))


main()
