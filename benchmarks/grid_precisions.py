"""The 21 kinds of numbers of the grid: bytes in memory and in files, files that come back, time of a product.

Run: scripts/browser benchmarks/grid_precisions.py   (add --native for CPython; -- --size 256)

For each kind a dense layer's weights are stored in it: their bytes, those of their safetensors and of their
JSON; whether what is read from both is the same bits; and milliseconds of a batch of 16 through the layer, on
the GPU and on the CPU. Weights of up to 8 bits and halves are unpacked inside the product. Exits with 1 where
a file does not come back. The last line is JSON.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import pellucid as torch
from pellucid.grid import (
    PRECISIONS,
    GridNetwork,
    load_packed,
    network_from_json,
    network_to_json,
    save_packed,
    stored_bytes,
)

BATCH, REPEAT = 16, 5


def network(kind: str, size: int, device: str) -> GridNetwork:
    """A dense layer without an activation, with the same masters for every kind."""
    torch.manual_seed(0)
    layer = {"type": "dense", "d_model": size, "dtype": kind, "group": "channel"}
    return network_from_json({"layers": [layer]}, device=device)


def comes_back(net: GridNetwork, folder: Path) -> tuple[int, int, bool]:
    """Bytes as safetensors and as JSON, and whether both give the same bits again."""
    first, second = folder / "first.safetensors", folder / "second.safetensors"
    save_packed(net, first)
    twin = network_from_json(network_to_json(net, weights=False), device="cpu")
    save_packed(load_packed(twin, first), second)
    text = network_to_json(net)
    equal = network_to_json(network_from_json(text, device="cpu")) == text
    return first.stat().st_size, len(text), equal and first.read_bytes() == second.read_bytes()


def milliseconds(net: GridNetwork, x: torch.Tensor) -> float:
    """Of a call, the best of some; the first ones pack the weight and compile."""
    best = float("inf")
    with torch.no_grad():
        for _ in range(REPEAT):
            began = time.perf_counter()
            net(x).sum().item()
            best = min(best, time.perf_counter() - began)
    return 1000 * best


def main() -> int:
    parser = argparse.ArgumentParser(prog="grid_precisions", description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of the weight")
    size = parser.parse_args().size
    name = torch.webgpu.get_device_name()
    print(f"{name}, a weight of {size} x {size}, a batch of {BATCH}")
    print(f"{'kind':14} {'bytes':>10} {'file':>10} {'JSON':>10} {'GPU ms':>8} {'CPU ms':>8}  comes back")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in PRECISIONS:
            on_cpu, on_gpu = network(kind, size, "cpu"), network(kind, size, "webgpu")
            file, text, equal = comes_back(on_cpu, Path(folder))
            x = torch.randn(BATCH, size, device="cpu")
            times = milliseconds(on_gpu, x.to("webgpu")), milliseconds(on_cpu, x)
            results[kind] = row = {
                "bytes": stored_bytes(on_cpu), "file": file, "json": text, "equal": equal,
                "gpu_ms": times[0], "cpu_ms": times[1],
            }  # fmt: skip
            print(
                f"{kind:14} {row['bytes']:10} {file:10} {text:10} {times[0]:8.2f} {times[1]:8.2f}  "
                f"{'yes' if equal else 'NO'}",
                flush=True,
            )
    print(json.dumps({"device": name, "size": size, "kinds": results}))
    return 0 if all(row["equal"] for row in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
