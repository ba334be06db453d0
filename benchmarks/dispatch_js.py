"""Time that the host spends on one dispatch: interpreting its records, encoding, submitting; no Python op.

Run: scripts/browser benchmarks/dispatch_js.py (--native for wgpu-py). The browser's budget is 1 us.

    repeat   one launch on the same buffer, again and again
    chain    each dispatch allocates its output and frees its input
    layers   30 layers of 12 launches with weights of their own, as in the decoding of a token
"""

import json
import statistics
import sys
import time
from array import array

from pellucid.device.commands import ALLOC, CODE_BITS, FREE, RUN
from pellucid.device.host import STATUS_BYTES, STATUS_SLOT, Host

WORDS = 64
NBYTES = WORDS * 4
LAYERS, LAUNCHES = 30, 12
WINDOWS = 60
KERNEL = """
struct Params {{ n: u32, scale: f32, x_offset: u32, out_offset: u32 }}
{params}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
    if (id.x < params.n) {{ out[id.x] = x[params.x_offset + id.x] * params.scale + weight[id.x] + {salt}.0; }}
}}
"""
IMMEDIATE = "var<immediate> params: Params;"
UNIFORM = "@group(1) @binding(0) var<uniform> params: Params;"


def record(code: int, payload: int, *words: int) -> tuple[int, ...]:
    return (payload << CODE_BITS | code, *words)


def open_host(default_limits: bool) -> Host:
    if sys.platform == "emscripten":
        from pellucid.device.browser import BrowserHost as AnyHost
    else:
        from pellucid.device.native import NativeHost as AnyHost
    return AnyHost(default_limits=default_limits)


def windows(host: Host) -> dict[str, tuple[array, int]]:
    """Each workload's window and its number of dispatches; slots 1 to 400 stay, the others come and go."""
    immediate = host.info.immediates >= 16
    launches = []
    for salt in range(LAUNCHES):
        source = KERNEL.format(params=IMMEDIATE if immediate else UNIFORM, salt=salt)
        pipeline = host.pipeline(source, "rrw", 16, immediate, f"bench {salt}")
        params = array("I", [WORDS, 0x3F800000, 0, 0]).tobytes()
        launches.append(host.launch(pipeline, params, (2, 3), 1, 1, 1))
    host.submit(array("I", record(ALLOC, STATUS_SLOT, STATUS_BYTES)))
    for slot in range(1, 401):
        host.write(slot, NBYTES, 0, bytes(NBYTES))

    def run(launch: int, *slots: int) -> tuple[int, ...]:
        return record(RUN, launches[launch], *slots, 0, 0)

    repeat, chain, layers = [], [], []
    for _ in range(1000):
        repeat += run(0, 1, 2, 3)
    current = 1
    for k in range(1000):
        following = 500 + k % 2
        chain += record(ALLOC, following, NBYTES) + run(0, current, 2, following)
        chain += record(FREE, current) if current != 1 else ()
        current = following
    chain += record(FREE, current)
    current = 1
    for layer in range(LAYERS):
        for k in range(LAUNCHES):
            following = 500 + (layer * LAUNCHES + k) % 7
            layers += record(ALLOC, following, NBYTES) + run(k, current, 10 + layer * LAUNCHES + k, following)
            layers += record(FREE, current) if current != 1 else ()
            current = following
    layers += record(FREE, current)
    return {
        "repeat": (array("I", repeat), 1000),
        "chain": (array("I", chain), 1000),
        "layers": (array("I", layers), LAYERS * LAUNCHES),
    }


def measure(host: Host, window: array) -> list[float]:
    """Seconds of each submit of the window, after a few that fill the caches."""
    stream = getattr(host, "stream", None)
    if stream is not None:
        stream.timing = True
    seconds = []
    for round in range(WINDOWS + 5):
        before = stream.encodeMs if stream is not None else 0.0
        began = time.perf_counter()
        host.submit(window)
        took = time.perf_counter() - began if stream is None else (stream.encodeMs - before) / 1000
        if round >= 5:
            seconds.append(took)
        # The work of this window must not compete with the encoding of the next.
        host.read(host.begin_read(1, 0, 4))
    return seconds


results: dict[str, float] = {}
for default_limits in (False, True):
    host = open_host(default_limits)
    way = "immediates" if host.info.immediates else "arena"
    print(f"{host.info.host}, {host.info.vendor} {host.info.architecture}, parameters by {way}")
    for name, (window, dispatches) in windows(host).items():
        seconds = measure(host, window)
        each = sorted(1e6 * took / dispatches for took in seconds)
        results[f"{way} {name} us"] = round(statistics.median(each), 3)
        print(
            f"  {name:8} {dispatches:5} dispatches a window: {statistics.median(each):6.2f} us each "
            f"(fastest {each[0]:.2f}, slowest {each[-1]:.2f}; {WINDOWS} windows)"
        )
    failure = host.failure()
    host.close()
    if failure:
        raise SystemExit(failure)
print(json.dumps(results))
