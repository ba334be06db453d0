"""Every op on webgpu against the cpu device; scripts/browser runs it in a page, and natively with --native.

    page.py [--groups NAME,...] [--layouts NAME,...] [--partial]

Prints every difference, then one line of JSON. Unless --partial is given, an op or a kernel file that was
never executed is a failure too.
"""

import argparse
import json
import os
import sys
import time

import decoder
import movement
import pointwise
import rows
import windows
from case import LAYOUTS, Case, normal
from walk import Executed, differences

import models
import pellucid
from pellucid.device import resources
from pellucid.op.plan_cache import forget_plans
from pellucid.op.schema import OPS

MODULES = (pointwise, movement, rows, models, windows, decoder)
GROUPS = {name: group for module in MODULES for name, group in module.GROUPS.items()}
# What runs with another variant of its kernels too, and which cases; all if none is named. The compiler
# behind a software adapter takes seconds for a kernel meant for GPUs; the native tests run all of them.
VARIANTS = {
    "reduce/shared": ("long rows", "wide columns"), "extremum/shared": ("long rows",),
    "softmax/shared": ("softmax", "long rows"), "norm/shared": ("rms_norm", "layer_norm"),
    "norm/subgroups": ("rms_norm",), "scan/shared": ("long cumsum",), "sort/shared": (),
    "sampling/shared": (),
    "matmul/shared": (
        "matmul, square", "matmul, few rows", "matmul, batches", "parts of the depth", "halves",
        "linear of 20",
    ),
    "attention/shared": (
        "causal", "grouped", "added mask", "one query", "cache, 3 at a time", "cache, 9 at a time"
    ),
    "products/shared": ("q4_1", "q6_k", "f16"), "products/integer": ("rows in parts",),
    "conv/shared": (),
    "decoder/shared": ("a layer, one at a time", "a layer, nine"),
}  # fmt: skip
# The variables of a variant that is not the name of one alone.
VARIABLES = {"integer": {"PELLUCID_KERNELS": "shared", "PELLUCID_DOTS": "integer"}}
# What webgpu gets wrong here must be noticed, in a result and in a gradient.
WRONG = (
    Case("a wrong result", lambda t, x: x + 0.01 * (x.device.type == "webgpu"), (normal(3, 4),)),
    Case("a wrong gradient", lambda t, x: x + _nothing(x) * (x.device.type == "webgpu"), (normal(3, 4),)),
)


def _nothing(x):
    return x - x.detach()


def kernel_files() -> set[str]:
    """Names below wgsl/ of what has an entry point."""
    top = resources.path("wgsl")
    return {
        str(file.relative_to(top).with_suffix(""))
        for file in top.rglob("*.wgsl")
        if "@compute" in file.read_text(encoding="utf-8")
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--partial", action="store_true")
    options = parser.parse_args(sys.argv[1:])
    # Here every kernel is to run by itself; what fused ones give is compared with that in tests/fusion.
    pellucid.webgpu.set_fusion(False)
    executed = Executed()
    info = pellucid.webgpu.get_device_properties()
    print(f"on {info.vendor} {info.architecture}, {info.immediates} bytes of immediates", flush=True)
    wanted = options.groups.split(",")
    count, failures, seconds = 0, [], {}
    failures += [f"{case.name} is not noticed" for case in WRONG if not differences(case, "contiguous")]
    for name in [*wanted, *[v for v in VARIANTS if v.partition("/")[0] in wanted]]:
        group, _, forced = name.partition("/")
        if forced:
            os.environ.pop("PELLUCID_DOTS", None)
            os.environ.update(VARIABLES.get(forced, {"PELLUCID_KERNELS": forced}))
            forget_plans()
        began = time.monotonic()
        chosen = VARIANTS.get(name)
        for case in GROUPS[group]():
            if chosen and case.name not in chosen:
                continue
            layouts = case.layouts if case.arrays and not forced else case.layouts[:1]
            for layout in layouts:
                if layout in options.layouts.split(","):
                    count += 1
                    failures += [f"{name}: {text}" for text in differences(case, layout)]
        seconds[name] = round(time.monotonic() - began, 1)
        print(f"{name}: {seconds[name]} s", flush=True)
    if not options.partial:
        pellucid.profiler.peak()  # its kernels belong to no op
        declared = {name for name, o in OPS.items() if o.kernel is not None}
        failures += [f"the op {name} was never executed" for name in sorted(declared - executed.ops)]
        failures += [
            f"wgsl/{name}.wgsl was never executed" for name in sorted(kernel_files() - executed.files)
        ]
    for text in failures:
        print(text)
    print(
        json.dumps(
            {
                "calls": count,
                "failures": len(failures),
                "ops": len(executed.ops),
                "files": len(executed.files),
                "seconds": seconds,
            }
        )
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
