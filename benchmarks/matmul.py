"""Products of float matrices: operations per second, for squares and for the layers of transformers.

Run: scripts/browser benchmarks/matmul.py -- [OPTION...] [PRODUCT...]   (add --native for wgpu-py)

    PRODUCT            layout:ROWSxCOLUMNSxDEPTH, as in nt:512x1536x576, with a batch before them or not; "n"
                       is a matrix that lies row by row, "t" a transposed one: nt is a linear layer
    --peak TFLOPS      prints shares of what the device could do, for example 67 on an NVIDIA H200
    --variants         every kernel that suits, the one that is estimated to be the fastest first
    --variant NAME     one kernel only, for example --variant "tiled 64x64x16 8x4, 2 parts"
    --dtype NAME       float32 (default), float16 or bfloat16: how matrices are held; sums are float32
    --tune [--keep]    first measures what is best (pellucid.webgpu.tune); --keep writes the user's table

Time is that of the device: calls that wait for each other are recorded, then submitted together, two lengths
are subtracted, and the median of several pairs is taken. A GPU is kept at work for half a second before the
list and for 50 ms before each variant, for it begins slowly. A software adapter has small products. The last
line is JSON.
"""

import argparse
import json
import sys

import pellucid as torch
from pellucid.op.kernel.autotune import candidates as contests
from pellucid.op.kernel.autotune import tune as tuning
from pellucid.ops.matmul.choice import candidates, key, variant_for
from pellucid.ops.matmul.variants import Shape, Variant

SQUARES = ["nn:256x256x256", "nn:512x512x512", "nn:1024x1024x1024", "nn:2048x2048x2048", "nn:4096x4096x4096"]
# The products of SmolLM2-135M with 512 tokens, of a layer of 4096 with 1, 8, 32, 128 and 1024, of the
# attention of 8 heads of 64, and of the gradient of a weight.
LAYERS = [
    "nt:512x576x576", "nt:512x1536x576", "nt:512x576x1536",
    "nt:1x4096x4096", "nt:8x4096x4096", "nt:32x4096x4096", "nt:128x4096x4096", "nt:1024x4096x4096",
    "nt:8x512x512x64", "nn:8x512x64x512", "tn:1536x576x4096",
]  # fmt: skip
SMALL = ["nn:128x128x128", "nn:256x256x256", "nt:1x512x512", "nt:32x256x256", "tn:64x64x1024"]


def parse(text: str) -> Shape:
    layout, _, sizes = text.partition(":")
    return contests.shape_of(layout, tuple(int(n) for n in sizes.split("x")))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/matmul.py")
    parser.add_argument("products", nargs="*", metavar="PRODUCT")
    parser.add_argument("--peak", type=float)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--variant", type=Variant.parse)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    info = torch.webgpu.get_device_properties()
    adapter = f"{info.vendor} {info.architecture} {info.description}".strip()
    dtype = getattr(torch, chosen.dtype)
    print(f"{info.host} {info.version}: {adapter}", flush=True)
    texts = chosen.products or (SMALL if info.is_software else [*SQUARES, *LAYERS])
    if chosen.tune:
        pairs = [
            (text.partition(":")[0], tuple(map(int, text.partition(":")[2].split("x")))) for text in texts
        ]
        torch.webgpu.tune(
            pairs, dtype=dtype, keep=chosen.keep, on_progress=lambda state: print(f"  {state}", flush=True)
        )
    result: dict = {
        "benchmark": "matmul",
        "host": f"{info.host} {info.version}",
        "adapter": adapter,
        "dtype": chosen.dtype,
        "peak TFLOP/s": chosen.peak,
        "products": {},
    }
    tuning.run(tuning.warm_up())
    for text in texts:
        shape = parse(text)
        variants = [variant_for(shape, chosen.dtype, info)]
        if chosen.variant is not None:
            variants = [chosen.variant]
        elif chosen.variants:
            variants += [variant for variant in candidates(shape, info) if variant not in variants]
        print(f"{text}  ({key(shape, chosen.dtype)})", flush=True)
        # One by one, so that each is printed when it is known.
        found: dict[str, float] = {}
        for variant in variants:
            if not variant.suits(shape, info):
                print(f"  {variant!s:36} does not suit")
                continue
            contest = contests.product(shape, dtype, [variant])
            seconds = tuning.run(tuning.compare(contest, float("inf")))[variant]
            speed = shape.flops / seconds / 1e12
            share = f" {speed / chosen.peak:5.0%}" if chosen.peak else ""
            found[str(variant)] = float(f"{speed:.4g}")
            print(f"  {variant!s:36} {1e6 * seconds:10.1f} us {speed:8.4f} TFLOP/s{share}", flush=True)
        result["products"][text] = found
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
