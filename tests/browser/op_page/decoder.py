"""Samples of a decoder's layer of quantized weights, fused when it first appears."""

from pellucid import webgpu
from pellucid.models.rotary import RotaryEmbedding
from pellucid.nn import functional as F
from pellucid.op.fusion import window
from pellucid.ops.attention.cache import cache_write, cached_attention
from pellucid.quant import FORMATS
from pellucid.quant.weight import weight_from_blocks
from samples.sample import RANDOM, S, normal

WIDTH, HEADS, KEYS, DIM, CAPACITY = 64, 4, 2, 16, 32


def blocks(rows: int, columns: int):
    """GGUF bytes of a weight in Q4_0 with small scales."""
    raw = RANDOM.integers(0, 256, FORMATS["q4_0"].raw_bytes(rows, columns)).astype("uint8").reshape(-1, 18)
    raw[:, 0], raw[:, 1] = 0, 0x24  # the binary16 2^-6
    return raw.reshape(-1)


SHAPES = (HEADS * DIM, WIDTH), (KEYS * DIM, WIDTH), (KEYS * DIM, WIDTH), (96, WIDTH), (96, WIDTH), (WIDTH, 96)
RAW = [blocks(*shape) for shape in SHAPES]


def layer(t, x, norm, times):
    """New positions through a layer, with a cache, as often as ``times`` says."""
    device = x.device.type
    q, k, v, gate, up, down = (
        weight_from_blocks(raw, "q4_0", shape, device) for raw, shape in zip(RAW, SHAPES, strict=True)
    )
    rotary = RotaryEmbedding(DIM, CAPACITY, 10000.0)
    keys, values = (t.zeros(1, KEYS, CAPACITY, DIM, device=device) for _ in range(2))
    if device == "webgpu":
        webgpu.flush()
    outs, position = [], 0
    for time in times:
        row = x[:, position : position + time].clone()
        h = F.rms_norm(row, (WIDTH,), norm)
        heads = [F.linear(h, w).view(1, time, -1, DIM).transpose(1, 2) for w in (q, k, v)]
        query, key = rotary(heads[0], position), rotary(heads[1], position)
        cache_write(keys, key, position)
        cache_write(values, heads[2], position)
        del h, key
        position += time
        out = cached_attention(query, keys, values, position)
        del query
        row = row + out.transpose(1, 2).reshape(1, time, -1)
        h = F.rms_norm(row, (WIDTH,), norm)
        outs.append(row + F.linear(F.silu(F.linear(h, gate)) * F.linear(h, up), down))
        del h, row, out, heads
        if device == "webgpu":
            webgpu.flush()
    return outs


def fused(times):
    """A call that fuses every window when it appears."""

    def call(t, x, norm):
        if x.device.type != "webgpu":
            return layer(t, x, norm, times)
        window.enable(True, at_once=True)
        try:
            return layer(t, x, norm, times)
        finally:
            window.enable(False)

    return call


x, norm = normal(1, 9, WIDTH), normal(WIDTH)
GROUPS = {
    "decoder": [
        S(fused(times), x, norm).but(
            atol=1e-3, rtol=1e-3, grad=False, variants=("shared",) * (len(times) != 3 or times[0] == 1)
        )
        for times in ((1, 1, 1), (5, 1, 1), (9,))
    ]
}
