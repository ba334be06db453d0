"""Quantized weights: bytes per second of a product with one row, operations per second with 512 rows.

Run: scripts/browser benchmarks/quant.py   (add --native for CPython)

The first number of a format is what decoding a token is made of, and its share of what the memory does: the
copy of `profiler.peak` in the same run, bytes read and written together. The share of the second is of its
float32 operations. Time is that of the device, as `pellucid.tuning` measures it: calls are recorded, then
submitted together, and two lengths are subtracted. A software adapter has small weights. The last line is
JSON.
"""

import json
import sys

import numpy as np

import pellucid as torch
from pellucid import tuning
from pellucid.device.stream import Storage, stream
from pellucid.meta import meta
from pellucid.nn.functional import linear
from pellucid.quant import FORMATS
from pellucid.tensor import Tensor


def seconds(call) -> float:
    """Device time of one call."""
    return tuning.run(tuning.seconds_of(call, hold=True))


def weight(name: str, rows: int, columns: int) -> Tensor:
    """A weight of zeros in planes; values do not change the time, and none has to be made."""
    device = torch.device("webgpu")
    storage = Storage(FORMATS[name].layout(rows, columns).nbytes, "weight")
    return Tensor(storage, meta((rows, columns), FORMATS[name].dtype, device), 0)


def main() -> None:
    info = torch.webgpu.get_device_properties()
    adapter = f"{info.vendor} {info.architecture} {info.description}".strip()
    rows, columns = (512, 2048) if info.is_software else (16384, 8192)
    result: dict = {"adapter": adapter, "rows": rows, "columns": columns, "formats": {}}

    peak = torch.profiler.peak()
    result["copy GB/s"] = round(peak.bandwidth / 1e9, 1)
    result["float32 TFLOP/s"] = round(peak.flop_rate / 1e12, 3)
    print(f"{adapter}: {peak}", flush=True)

    rng = np.random.default_rng(0)
    one = torch.tensor(rng.standard_normal((1, columns)).astype(np.float32))
    many = torch.tensor(rng.standard_normal((64 if info.is_software else 512, columns)).astype(np.float32))
    for name in sys.argv[1:] or FORMATS:
        w = weight(name, rows, columns)
        spent = seconds(lambda w=w: linear(one, w))
        prefill = seconds(lambda w=w: linear(many, w))
        speed = w._storage.nbytes / spent
        work = 2 * many.shape[0] * rows * columns / prefill
        megabytes = w._storage.nbytes / 1e6
        print(
            f"{name:5} {megabytes:6.1f} MB  {speed / 1e9:7.1f} GB/s ({speed / peak.bandwidth:4.0%}) "
            f"{work / 1e12:7.3f} TFLOP/s ({work / peak.flop_rate:4.0%})",
            flush=True,
        )
        result["formats"][name] = {
            "GB/s": round(speed / 1e9, 1),
            "of copy": round(speed / peak.bandwidth, 4),
            "TFLOP/s": round(work / 1e12, 3),
        }
        del w
    stream().flush()
    print(json.dumps(result))


main()
