"""Quantized weights, products that are cut in parts, rotary embedding and the cache."""

import numpy as np

from samples.sample import RANDOM, S, Sample, normal

# Where the binary16 scales of a block lie among its bytes, by weight format.
SCALES = {"q4_0": (0,), "q4_1": (0, 2)}
# Rows of input on both sides of the step from the vector to the tiled kernels.
BATCHES = 1, 5, 40
QUANTS = RANDOM.integers(-99, 99, (6, 64)).astype(np.int8)


def blocks(name: str, rows: int, columns: int) -> np.ndarray:
    """Bytes of a weight of that format, its values of the size of a model's."""
    from pellucid.quant import FORMATS

    fmt = FORMATS[name]
    size = fmt.raw_bytes(rows, columns)
    made = RANDOM.integers(0, 256, (size // fmt.block_bytes, fmt.block_bytes)).astype(np.uint8)
    for at in SCALES[name]:
        scales = RANDOM.uniform(-0.01, 0.01, len(made)).astype(np.float16)
        made[:, at : at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return made.reshape(-1)


def _weight(raw, name, shape):
    from pellucid.quant.weight import weight_from_blocks

    return weight_from_blocks(raw, name, shape)


def quantized(name: str, columns: int) -> Sample:
    """A weight's values, rows, and product with one row."""

    def call(t, x):
        weight = _weight(raw, name, (37, columns))
        ids = t.tensor([36, 0, 7])
        F = t.nn.functional
        return weight.dequantize(), F.embedding(ids, weight), F.linear(x, weight)

    raw = blocks(name, 37, columns)
    return S(call, normal(1, columns)).but(atol=2e-4, layouts=("contiguous",), second=False)


def product(name: str, rows: int, columns: int, batches=BATCHES, variants=("shared",), atol=2e-4) -> Sample:
    """Products of a weight with one row and more."""

    def call(t, x, bias):
        weight = _weight(raw, name, (rows, columns))
        return [t.nn.functional.linear(x[:n], weight, bias) for n in batches]

    raw = blocks(name, rows, columns)
    given = normal(max(batches), columns), normal(rows)
    return S(call, *given).but(atol=atol, layouts=("contiguous",), variants=variants, second=False)


def _convolutions(t, x, y, bias):
    """Of a weight of 8 bits, in two groups, forward and transposed."""
    from pellucid.quant.weight import weight_from_planes

    planes = t.tensor(QUANTS), t.tensor(np.linspace(0.01, 0.06, 6, dtype=np.float32))
    weight, F = weight_from_planes(planes, "int8_rows", (6, 4, 3, 3)), t.nn.functional
    given = {"stride": 2, "padding": 1, "groups": 2}
    return F.conv2d(x, weight, bias, **given), F.conv_transpose2d(y, weight, None, **given)


def _in_parts(t, a, b):
    from pellucid.op.kernel.variants import is_direct
    from pellucid.ops.matmul.choice import forced
    from pellucid.ops.matmul.variants import Variant

    if a.device.type != "webgpu" or is_direct():
        return a @ b
    with forced(Variant.parse("tiled 64x64x16 8x4, 2 parts")):
        return a @ b


def _cached(step: int) -> Sample:
    """Attention over a cache that grows by so many positions at a time."""

    def call(t, keys, values, queries):
        from pellucid.ops.attention.cache import cache_write, cached_attention

        key_cache, value_cache = keys.new_zeros(1, 2, 400, 8), keys.new_zeros(1, 2, 400, 8)
        out = []
        for at in range(0, 9, step):
            stop = at + step
            cache_write(key_cache, keys[:, :, at:stop], at)
            cache_write(value_cache, values[:, :, at:stop], at)
            out.append(cached_attention(queries[:, :, at:stop], key_cache, value_cache, stop))
        return *out, key_cache[:, :, :9]

    arrays = normal(1, 2, 9, 8), normal(1, 2, 9, 8), normal(1, 4, 9, 8)
    return S(call, *arrays).but(grad=False, variants=("shared",) * (step > 1))


def _rotary(t, x):
    from pellucid.ops.attention.cache import rotary_embedding, rotary_tables

    cos, sin = rotary_tables([1.0, 0.5, 0.1, 0.01], 20, device=x.device)
    return rotary_embedding(x, cos, sin, 3), rotary_embedding(x, cos, sin, 0, interleaved=True)


# One format is enough to run each kernel: tests/quant/in_page.py multiplies by weights of all.
GROUPS = {
    "quantized": [quantized("q4_1", 96)],
    "products": [
        product("q4_1", 37, 96),
        S(_convolutions, normal(2, 8, 5, 6), normal(1, 6, 4, 5), normal(6)).but(
            atol=1e-4, layouts=("contiguous",), variants=("shared",), second=False
        ),
        product("q4_0", 133, 12544, (1,), ("integer",), 2e-3),
        S(_in_parts, normal(9, 200), normal(200, 7)).but(atol=1e-4, variants=("shared",))
    ],
    "cache": [*[_cached(n) for n in (1, 3, 9)], S(_rotary, normal(2, 3, 5, 8))]
}  # fmt: skip
