"""Every op on webgpu against the cpu device; scripts/browser runs it in a page, and natively with --native.

    page.py [--groups NAME,...] [--layouts NAME,...] [--partial]

Prints every difference, then one line of JSON. Unless --partial is given, an op or a kernel file that was
never executed is a failure too. PELLUCID_TURN says which samples of variants, and which of an op's further
types, take their turn; all do without it, or where it is all, and then files of variants count, too.
"""

import argparse
import itertools
import json
import os
import sys
import time
import traceback

import decoder
import programs
from executed import Executed

import pellucid
import weights
from pellucid.op.plan_cache import forget_plans
from pellucid.op.rules import on_cpu
from pellucid.op.schema import OPS
from samples import GROUPS as OPS_BY_GROUP
from samples.outcome import differences, find, outcome
from samples.sample import S, Sample, arrays_of, normal

GROUPS = {
    **{
        group: [
            (f"{name} {k}", find(pellucid, name), s) for name, rows in ops.items() for k, s in enumerate(rows)
        ]
        for group, ops in OPS_BY_GROUP.items()
    },
    **{
        group: [(f"{group} {k}", None, s) for k, s in enumerate(rows)]
        for module in (programs, weights, decoder)
        for group, rows in module.GROUPS.items()
    },
}
LAYOUTS = ("contiguous", "strided")
VARIANTS = ("shared", "subgroups", "integer")
# The variables of a variant that is not the name of one alone.
VARIABLES = {"integer": {"PELLUCID_KERNELS": "shared", "PELLUCID_DOTS": "integer"}}
# Ops and files that a software adapter launches in a variant only.
OPS_OF_VARIANTS = {
    "half_transform", "squares_about_mean", "_cumsum_columns", "_log_scan_columns", "_running_max_columns"
}  # fmt: skip
OF_VARIANTS = {
    *(f"attention/{name}" for name in ("combine", "decode", "decode_step", "prefill")),
    *(f"conv/{name}" for name in ("tiled", "weight_rows", "weight_tiled")),
    *(f"matmul/{name}" for name in ("combine", "tiled", "vector", "vector_columns")),
    *(
        f"matmul/quant/{name}"
        for name in ("pair", "split", "tiled", "tiled_pair", "tiled_transposed", "tiles")
    ),
    *(f"matmul/quant/{name}" for name in ("vector", "vectors")),
    *(f"norm/{name}" for name in ("layer_held", "rms_held", "softmax_held")),
    *(f"norm/softmax_{name}" for name in ("columns_finish", "finish", "parts")),
    *(
        f"reduce/{name}"
        for name in ("extremum_split_rows", "scan", "scan_columns", "split_rows", "split_strips")
    ),
    "reduce/product/float_scan",
    *(f"reduce/variance_{name}" for name in ("rows", "split", "strips")),
    "shape/transpose",
    *("fft/pass_16", "fft/rows", "index/search", "index/sort/best", "index/sort/rows", "reduce/strips"),
    "reduce/subgroups",
}
# One in so many samples of an op's types after its first, and of variants, runs: native tests have all.
EACH, EACH_OF_VARIANTS = 3, 6
TURN = os.environ.get("PELLUCID_TURN", "all")
WAITING = itertools.count()
# What webgpu gets wrong here must be noticed, in a result and in a gradient.
WRONG = (
    S(lambda t, x: x + 0.01 * (x.device.type == "webgpu"), normal(3, 4)),
    S(lambda t, x: x + (x - x.detach()) * (x.device.type == "webgpu"), normal(3, 4)),
)

# Ops whose results are of types that webgpu does not have, and those that are computed on the cpu device.
ON_THE_CPU = {"float_power"} | {name for name, o in OPS.items() if o.kernel is on_cpu}


def in_page(sample: Sample) -> bool:
    """Whether a page runs it: arguments are refused by the same Python everywhere."""
    return sample.paged and sample.refused is None and len(sample.devices) == 2


class Turns:
    """Which samples run, of those of one group in one variant: what takes the time is compiling, on a
    software adapter seconds for a kernel with barriers. The native tests run all.
    """

    def __init__(self, group: str, variant: str) -> None:
        self.variant, self.is_partial = variant, bool(variant) or group in OPS_BY_GROUP
        self.ran: set[tuple] = set()

    def _in_turn(self, function) -> bool:
        """Whether a sample runs whose types the op did not have yet."""
        if TURN == "all" or not self.is_partial:
            return True
        if not self.variant and function not in {ran[0] for ran in self.ran}:
            return True
        return (next(WAITING) + int(TURN)) % (EACH_OF_VARIANTS if self.variant else EACH) == 0

    def runs(self, function, sample: Sample) -> bool:
        """Every program; of an op one sample of each choice of types, in a variant one."""
        if not in_page(sample) or (self.variant and self.variant not in sample.variants):
            return False
        given = arrays_of(sample.args, sample.kwargs)
        types = () if self.variant else (sample.dtype, *sorted({a.dtype.name for a in given}))
        is_first = function is None or (function, *types) not in self.ran
        is_first = is_first and self._in_turn(function)
        self.ran.add((function, *types))
        return is_first or (sample.alone and not self.variant)


def compared(function, sample: Sample, layout: str) -> list[str]:
    """What webgpu does otherwise than the cpu device. Compilers round otherwise in a page than natively."""
    made = []
    for device in ("cpu", "webgpu"):
        try:
            made.append(outcome(pellucid, function, sample, layout, device))
        except Exception as error:
            if not sample.maybe:
                return [f"on {device}: {traceback.format_exc(limit=-2)}"]
            made.append(error)
    cpu, webgpu = made
    if isinstance(cpu, Exception) or isinstance(webgpu, Exception):
        return [] if type(cpu) is type(webgpu) else [f"{webgpu!r}, on cpu {cpu!r}"]
    return differences(webgpu, cpu, sample.but(atol=max(sample.atol, 1e-30)), least=1e-5)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--partial", action="store_true")
    options = parser.parse_args(sys.argv[1:])
    # Here every kernel is to run by itself; what fused ones give is compared with that in tests/op/fusion.
    pellucid.webgpu.set_fusion(False)
    executed = Executed()
    info = pellucid.webgpu.get_device_properties()
    print(f"on {info.vendor} {info.architecture}, {info.immediates} bytes of immediates", flush=True)
    failures = [
        f"wrong {k} is not noticed" for k, s in enumerate(WRONG) if not compared(None, s, "contiguous")
    ]
    count, seconds, wanted = 0, {}, options.layouts.split(",")
    for variant in ("", *VARIANTS):
        if variant:
            os.environ.update(VARIABLES.get(variant, {"PELLUCID_KERNELS": variant}))
            forget_plans()
        for group in options.groups.split(","):
            began, turns = time.monotonic(), Turns(group, variant)
            for name, function, sample in GROUPS[group]:
                if not turns.runs(function, sample):
                    continue
                layouts = [way for way in sample.layouts if way in wanted] or sample.layouts[:1]
                # Samples take turns with layouts. The native tests run each in all.
                layout = layouts[0 if variant or not sample.args else count % len(layouts)]
                count += 1
                failures += [
                    f"{name} [{layout}] {variant}: {text}" for text in compared(function, sample, layout)
                ]
            if spent := round(time.monotonic() - began, 1):
                seconds[f"{group} {variant}".strip()] = spent
    if not options.partial:
        pellucid.profiler.peak()  # its kernels belong to no op
        declared = {name for name, o in OPS.items() if o.kernel is not None} - ON_THE_CPU
        ops, files = (set(), set()) if TURN == "all" else (OPS_OF_VARIANTS, OF_VARIANTS)
        failures += [f"the op {name} was never executed" for name in sorted(declared - ops - executed.ops)]
        unseen = sorted({*pellucid.kernels.names()} - files - executed.files)
        failures += [f"wgsl/{name}.wgsl was never executed" for name in unseen]
    for text in failures:
        print(text)
    said = {"calls": count, "failures": len(failures), "ops": len(executed.ops), "files": len(executed.files)}
    print(json.dumps({**said, "seconds": seconds}))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
