"""Every op that goes over its data once, at 64 MB: how much of the device's copy bandwidth it reaches.

Run: scripts/browser benchmarks/ops.py -- [OPTION...] [NAME...]   (add --native for wgpu-py)

    NAME             rows whose name has this in it, for example sort
    --mbytes N       the size of the float32 operand x (default 64; a software adapter has 1)
    --pytorch        the same rows under PyTorch on CUDA: python benchmarks/ops.py --pytorch

Each row is an expression. Its bytes are those of the operands named in it and of its result, each once; its
share is bytes per second, of those of `x.clone()`. Time is that of the device: the sum of what timestamps say
of the call's launches, the median of several calls. What is made of several launches is measured as they are
and fused, which no two calls are, and the shorter time counts. Copies take turns with the rows, so that the
share is one of the same moment: a GPU is not as fast at all times. A row that waits for the device in its
middle, and everything where an adapter has no timestamps and under PyTorch, is measured by the clock: calls
are queued and waited for together, and two lengths are subtracted. The last line is JSON.
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

PAIRS = 9
# Seconds that the longer of two queues should take, and calls that it may have: their results are held.
QUEUE, MOST_CALLS = 0.02, 48
# Measurements by timestamps before any counts, and calls of each. Between calls there is a product that none
# of the rows has: while Python makes a call the GPU works at it, for one that waits lowers its clocks.
WARM_UP, CALLS = 3, 4

UNARY = """abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2
expm1 floor frac isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logical_not logit
nan_to_num neg positive rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan
tanh trunc i0"""
SPECIAL = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx i0e i1 i1e log_ndtr modified_bessel_i0
modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtri
scaled_modified_bessel_k0 spherical_bessel_j0"""
ACTIVATIONS = """celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6
selu silu softplus softshrink softsign tanhshrink"""
BINARY = """add atan2 copysign div eq floor_divide fmax fmin fmod ge gt hypot le logaddexp logaddexp2
logical_and lt maximum minimum mul ne nextafter pow remainder sub true_divide xlogy"""
INTEGERS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift gcd"
WHOLE = """sum mean prod amax amin max min argmax argmin all any std var norm count_nonzero nansum
nanmean median aminmax"""
ALONG = """sum mean prod amax amin argmax argmin all any std var logsumexp softmax log_softmax cumsum cumprod
logcumsumexp max min median cummax"""
LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy kl_div"

# Of x: 1-d float32; m: x as a square; y: like x; i, j: int32 like x; k: a permutation of x's indices, int64;
# b: bool like x; r: indices of rows of m; h: x as images.
ROWS: dict[str, str] = {
    "clone": "x.clone()",
    **{name: f"t.{name}(x)" for name in UNARY.split()},
    **{f"special.{name}": f"t.special.{name}(x)" for name in SPECIAL.split()},
    **{f"F.{name}": f"F.{name}(x)" for name in ACTIVATIONS.split()},
    **{name: f"t.{name}(x, y)" for name in BINARY.split()},
    **{f"{name} (int32)": f"t.{name}(i, j)" for name in INTEGERS.split()},
    "add a number": "x + 2.5",
    "clamp": "x.clamp(0.2, 0.8)",
    "lerp": "t.lerp(x, y, 0.3)",
    "addcmul": "t.addcmul(x, y, y)",
    "where": "t.where(b, x, y)",
    "masked_fill": "x.masked_fill(b, 1.0)",
    "to int32": "x.to(t.int32)",
    "to float16": "x.to(t.float16)",
    "to int64": "x.to(t.int64)",
    **{f"{name}, all": f"x.{name}()" for name in WHOLE.split()},
    **{f"{name}, rows": f"m.{name}(dim=1)" for name in ALONG.split()},
    **{f"{name}, columns": f"m.{name}(dim=0)" for name in ALONG.split()},
    "cumsum, all": "x.cumsum(0)",
    "cumprod, all": "x.cumprod(0)",
    "sort, all": "x.sort()",
    "argsort, all": "x.argsort()",
    "sort, rows": "m.sort(dim=1)",
    "sort, all (int32)": "i.sort()",
    "topk 10, all": "x.topk(10)",
    "topk 10, rows": "m.topk(10)",
    "kthvalue, rows": "m.kthvalue(7, dim=1)",
    "unique": "t.unique(i)",
    "bincount": "t.bincount(i)",
    "histc": "t.histc(x, 100, 0.0, 1.0)",
    "searchsorted": "t.searchsorted(q, x)",
    "bucketize": "t.bucketize(x, q)",
    "nonzero": "b.nonzero()",
    "masked_select": "x.masked_select(b)",
    "gather, random": "x.gather(0, k)",
    "index_select, rows": "m.index_select(0, r)",
    "x[k]": "x[k]",
    "take": "t.take(x, k)",
    "scatter": "x.scatter(0, k, y)",
    "scatter_add": "x.scatter_add(0, k, y)",
    "index_add, rows": "m.index_add(0, r, m)",
    "index_copy, rows": "m.index_copy(0, r, m)",
    "scatter_reduce amax": "x.scatter_reduce(0, k, y, 'amax')",
    "transpose, copied": "m.t().contiguous()",
    "permute, copied": "h.permute(0, 2, 3, 1).contiguous()",
    "flip": "x.flip(0)",
    "roll": "x.roll(1000)",
    "rot90": "t.rot90(m)",
    "cat": "t.cat([x, y])",
    "stack": "t.stack([x, y], -1)",
    "repeat": "x.repeat(2)",
    "repeat_interleave": "x.repeat_interleave(2)",
    "tril": "m.tril()",
    "diff": "x.diff()",
    "F.pad": "F.pad(m, (3, 3, 3, 3))",
    "F.pad, reflect": "F.pad(h, (3, 3, 3, 3), 'reflect')",
    "F.one_hot": "F.one_hot(o, 64)",
    "F.embedding": "F.embedding(r, m)",
    "F.layer_norm": "F.layer_norm(m, (m.shape[1],))",
    "F.rms_norm": "F.rms_norm(m, (m.shape[1],))",
    "F.group_norm": "F.group_norm(h, 8)",
    "F.instance_norm": "F.instance_norm(h)",
    "F.normalize": "F.normalize(m)",
    "F.max_pool2d": "F.max_pool2d(h, 2)",
    "F.avg_pool2d": "F.avg_pool2d(h, 2)",
    "F.adaptive_avg_pool2d": "F.adaptive_avg_pool2d(h, 7)",
    "F.interpolate, nearest": "F.interpolate(h, scale_factor=0.5)",
    "F.interpolate, bilinear": "F.interpolate(h, scale_factor=0.5, mode='bilinear')",
    "F.pixel_shuffle": "F.pixel_shuffle(h, 2)",
    "F.dropout": "F.dropout(x, 0.5)",
    "F.cross_entropy": "F.cross_entropy(m, r)",
    **{f"F.{name}": f"F.{name}(x, y)" for name in LOSSES.split()},
    "F.cosine_similarity": "F.cosine_similarity(m, m)",
    "fft.fft, rows": "t.fft.fft(m)",
    "fft.rfft, rows": "t.fft.rfft(m)",
    "fft.fft2": "t.fft.fft2(m)",
    "rand_like": "t.rand_like(x)",
    "randn_like": "t.randn_like(x)",
    "bernoulli": "t.bernoulli(x)",
    "zeros_like": "t.zeros_like(x)",
    "arange": "t.arange(float(x.numel()))",
    "dot": "x.dot(y)",
    "mv": "m.mv(v)",
    "outer": "t.outer(v, v)",
}

# Rows that wait for the device in their middle.
WAITING = {"unique", "bincount", "nonzero", "masked_select"}


def operands(t: Any, count: int) -> dict[str, Any]:
    """The tensors that expressions name, made by the library itself from one seed."""
    t.manual_seed(0)
    side = int(count**0.5)
    x = t.rand(count) * 0.8 + 0.1
    k = t.rand(count).argsort()
    integers = (t.rand(count) * 1e6).to(t.int32)
    return {
        "x": x,
        "y": t.rand(count) * 0.8 + 0.1,
        "m": x.reshape(side, side),
        "h": x.reshape(-1, 32, side // 32, side // 32),
        "i": integers,
        "j": (t.rand(count) * 16).to(t.int32),
        "b": t.rand(count) < 0.5,
        "k": k,
        "r": k[:side] % side,
        "o": (t.rand(count // 64) * 64).to(t.int64),
        "q": t.linspace(0, 1, 1000),
        "v": t.rand(side),
    }


class Ours:
    """Pellucid on the device."""

    def __init__(self) -> None:
        import pellucid as t
        from pellucid.device.stream import stream
        from pellucid.op.fusion.window import enable

        self.t, self.info = t, t.webgpu.get_device_properties()
        self.title = f"{self.info.host} {self.info.version}: {self.info.vendor} {self.info.description}"
        self.has_timestamps = "timestamp-query" in self.info.features and not self.info.is_software
        self.is_software = self.info.is_software
        self.wait: Callable[[], Any] = lambda: stream().synchronize()
        self.is_ready = lambda: not self.stats()["compiling"]
        self.stats: Callable[[], dict[str, int]] = lambda: stream().open().stats()
        self.enable = enable
        enable(False)
        big = t.rand(2048, 2048) if self.has_timestamps else t.rand(1, 1)
        self.fill: Callable[[], Any] = lambda: big @ big
        self.wait()
        with t.debug.trace() as launches:
            self.fill()
            t.webgpu.flush()
        (self.filler,) = {launch.kernel for launch in launches}

    def seconds(
        self, run: Callable[[], Any], copy: Callable[[], Any], is_waiting: bool
    ) -> tuple[float, float]:
        """What a call takes, and a copy. Several launches may be fused, if that is shorter."""
        if not self.has_timestamps or is_waiting:
            return seconds(self, run, copy)
        took = self.stamped(run, copy)
        if not took[0]:  # no launch, but a copy of the device's own
            return seconds(self, run, copy)
        before = self.stats()["dispatches"]
        run()
        self.wait()
        if self.stats()["dispatches"] == before + 1:
            return took
        self.enable(True, at_once=True)
        try:
            return min(took, self.stamped(run, copy))
        finally:
            self.enable(False)

    def stamped(self, run: Callable[[], Any], copy: Callable[[], Any]) -> tuple[float, float]:
        """What timestamps say of the launches of a call, and of a copy, in turns."""

        def once(call: Callable[[], Any]) -> float:
            with self.t.debug.trace(time=True) as launches:
                for _ in range(CALLS):
                    held = call()
                    self.t.webgpu.flush()
                    del held
                    self.fill()
                    self.t.webgpu.flush()
            self.wait()
            fillers = [launch for launch in launches if launch.kernel == self.filler]
            if len(fillers) != CALLS:
                raise RuntimeError(
                    f"{self.filler}, which fills the time between calls, is one of a row's kernels"
                )
            return sum(launch.seconds for launch in launches if launch.kernel != self.filler) / CALLS

        for _ in range(WARM_UP):
            once(run)
            once(copy)
        while not self.is_ready():
            once(run)
        pairs = [(once(run), once(copy)) for _ in range(PAIRS)]
        of_call, of_copy = (statistics.median(column) for column in zip(*pairs, strict=True))
        return of_call, of_copy


class PyTorch:
    """PyTorch on CUDA."""

    def __init__(self) -> None:
        import torch as t

        self.t, self.is_software = t, False
        self.title = f"PyTorch {t.__version__}: {t.cuda.get_device_name()}"
        t.set_default_device("cuda")
        self.wait: Callable[[], Any] = t.cuda.synchronize
        self.is_ready = lambda: True
        self.seconds = lambda run, copy, _: seconds(self, run, copy)


def size(value: Any) -> int:
    """Bytes of a result."""
    if isinstance(value, (tuple, list)):
        return sum(map(size, value))
    return value.numel() * value.element_size()


class Queue:
    """Calls that are handed over together, and waited for.

    Args:
        library: whose.
        run: the call.
    """

    def __init__(self, library: Ours | PyTorch, run: Callable[[], Any]):
        self._library, self._run = library, run
        self._seconds(2)
        while not library.is_ready():
            self._seconds(1)
        self._calls = max(2, min(MOST_CALLS, int(QUEUE / max(self._seconds(2) / 2, 1e-6))))
        self._few = max(1, self._calls // 4)

    def _seconds(self, calls: int) -> float:
        held = []
        self._library.wait()
        began = time.perf_counter()
        for _ in range(calls):
            held.append(self._run())
        self._library.wait()
        return time.perf_counter() - began

    def seconds(self) -> float:
        """Of one call."""
        return (self._seconds(self._calls) - self._seconds(self._few)) / (self._calls - self._few)


def seconds(library: Ours | PyTorch, run: Callable[[], Any], copy: Callable[[], Any]) -> tuple[float, float]:
    """What a call and a copy take by the clock, in turns."""
    queues = Queue(library, run), Queue(library, copy)
    pairs = [[queue.seconds() for queue in queues] for _ in range(PAIRS)]
    of_call, of_copy = (statistics.median(column) for column in zip(*pairs, strict=True))
    return of_call, of_copy


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/ops.py")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--mbytes", type=float)
    parser.add_argument("--pytorch", action="store_true")
    chosen = parser.parse_args()
    library = PyTorch() if chosen.pytorch else Ours()
    t = library.t
    mbytes = chosen.mbytes or (1 if library.is_software else 64)
    count = int((mbytes * 2**18) ** 0.5) // 64 * 64
    print(f"{library.title}, {mbytes:g} MB", flush=True)
    named = operands(t, count**2)
    scope = {"t": t, "F": t.nn.functional, **named}
    rows: dict[str, Any] = {}
    copy = eval(f"lambda: {ROWS['clone']}", scope)
    copied = size(copy()) + size(named["x"])
    for name, text in ROWS.items():
        if name != "clone" and chosen.names and not any(part in name for part in chosen.names):
            continue
        run = eval(f"lambda: {text}", scope)
        nbytes = size(run()) + sum(size(named[n]) for n in {*re.findall(r"\b[a-z]\b", text)} & {*named})
        took, of_copy = library.seconds(run, copy, name in WAITING)
        rate, share = nbytes / took / 1e9, nbytes / took * of_copy / copied
        rows[name] = {
            "us": float(f"{1e6 * took:.4g}"), "GB/s": float(f"{rate:.4g}"), "share": round(share, 3)
        }  # fmt: skip
        print(f"  {name:32} {1e6 * took:10.1f} us {rate:8.0f} GB/s {share:6.0%}", flush=True)
    print(json.dumps({"benchmark": "ops", "host": library.title, "MB": mbytes, "rows": rows}))


if __name__ == "__main__":
    main()
