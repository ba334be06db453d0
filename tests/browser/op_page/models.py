"""Cases of what models are made of: products, attention, caches, weights, layers, losses, optimizers."""

import numpy as np
from case import RANDOM, Case, below, normal, positive

# Bytes of a block's binary16 scales, and columns that are whole blocks, by weight format.
FORMATS = {
    "q4_0": ((0,), 96), "q4_1": ((0, 2), 96), "q5_0": ((0,), 96), "q5_1": ((0, 2), 96), "q8_0": ((0,), 96),
    "q4_k": ((0, 2), 512), "q5_k": ((0, 2), 512), "q6_k": ((208,), 512), "f16": ((), 41), "bf16": ((), 41),
}  # fmt: skip
# Rows of input on both sides of the step from the vector to the tiled kernels, and formats that read their
# scales in different ways. Products of all formats are what tests/quant/in_page.py looks at.
BATCHES, MULTIPLIED = (1, 5, 40), ("q4_1", "q6_k", "f16")


def matmul() -> list[Case]:
    shapes = {
        "square": ((7, 7), (7, 7)), "one row": ((1, 33), (33, 20)), "few rows": ((3, 40), (40, 70)),
        "tiles": ((70, 33), (33, 65)), "many rows": ((130, 20), (20, 9)), "vector right": ((9, 30), (30,)),
        "vector left": ((30,), (30, 9)), "two vectors": ((50,), (50,)),
        "batches": ((2, 3, 5, 4), (2, 3, 4, 6)),
        "one side broadcast": ((2, 3, 5, 4), (4, 6)), "other side broadcast": ((5, 4), (3, 4, 6)),
        "batches that do not merge": ((2, 1, 3, 5, 4), (1, 2, 3, 4, 6)), "deep": ((2, 5000), (5000, 3)),
        "no depth": ((3, 0), (0, 4)),
    }  # fmt: skip
    made = [
        Case(f"matmul, {name}", lambda t, a, b: a @ b, (normal(*a), normal(*b)), atol=1e-4)
        for name, (a, b) in shapes.items()
    ]
    a, b, batch = normal(5, 6), normal(6, 4), normal(3, 5, 6)
    return [
        *made,
        Case(
            "mm, mv, dot, outer",
            lambda t, a, b: (t.mm(a, b), t.mv(a, b[:, 0]), t.dot(a[0], b[:, 1]), t.outer(a[0], b[0])),
            (a, b),
        ),
        Case("parts of the depth", _in_parts, (normal(9, 200), normal(200, 7)), atol=1e-4),
        Case("addmm", lambda t, a, b, c: t.addmm(c, a, b, beta=0.5, alpha=2), (a, b, normal(5, 4))),
        Case(
            "bmm and baddbmm",
            lambda t, x, y, c: (t.bmm(x, y), t.baddbmm(c, x, y, alpha=0.5)),
            (batch, normal(3, 6, 2), normal(3, 5, 2)),
        ),
        Case("transposed", lambda t, a, b: (a.t() @ a, b.t() @ a.t(), a @ a.mT), (a, b)),
        Case(
            "halves", lambda t, a, b: (a.half() @ b.half()).float(), (a, b), rtol=1e-2, atol=1e-2, grad=False
        ),
        Case(
            "bfloats",
            lambda t, a, b: (a.bfloat16() @ b.bfloat16()).float(),
            (a, b),
            rtol=3e-2,
            atol=3e-2,
            grad=False,
        ),
        *[
            Case(
                f"linear of {n}",
                lambda t, x, w, b: (t.nn.functional.linear(x, w, b), t.nn.functional.linear(x, w)),
                (normal(n, 33), normal(21, 33), normal(21)),
                atol=1e-4,
            )
            for n in (1, 3, 20)
        ],
    ]


def _in_parts(t, a, b):
    from pellucid.kernel.variants import is_direct
    from pellucid.ops.matmul.choice import forced
    from pellucid.ops.matmul.variants import Variant

    if a.device.type != "webgpu" or is_direct():
        return a @ b
    with forced(Variant.parse("tiled 64x64x16 8x4, 2 parts")):
        return a @ b


def attention() -> list[Case]:
    def heads(count, time, width=8):
        return normal(2, count, time, width)

    def attend(**options):
        return lambda t, *qkv: t.scaled_dot_product_attention(*qkv, **options)

    mask = below(2, 6, 6).astype(bool) | np.eye(6, dtype=bool)
    bias = normal(2, 1, 6, 6)
    return [
        Case("attention", attend(), (heads(3, 6), heads(3, 6), heads(3, 6))),
        Case("causal", attend(is_causal=True), (heads(3, 6), heads(3, 6), heads(3, 6))),
        Case("grouped", attend(is_causal=True, enable_gqa=True), (heads(6, 6), heads(2, 6), heads(2, 6))),
        Case("bool mask", attend(), (heads(3, 6), heads(3, 6), heads(3, 6), mask)),
        Case("added mask", attend(), (heads(3, 6), heads(3, 6), heads(3, 6), bias)),
        Case("scale", attend(scale=0.3), (heads(3, 6), heads(3, 6), heads(3, 6))),
        Case("one query", attend(enable_gqa=True), (heads(6, 1), heads(2, 300), heads(2, 300))),
        Case(
            "many queries",
            attend(is_causal=True),
            (heads(2, 70, 16), heads(2, 70, 16), heads(2, 70, 16)),
            atol=1e-4,
        ),
        Case("wide values", attend(), (heads(2, 40, 8), heads(2, 40, 8), heads(2, 40, 300)), atol=1e-4),
        Case("three axes", attend(), (normal(4, 5, 8), normal(4, 7, 8), normal(4, 7, 8))),
        Case("dropout", attend(dropout_p=0.3), (heads(3, 6), heads(3, 6), heads(3, 6))),
        *[
            Case(
                f"cache, {n} at a time",
                lambda t, k, v, q, n=n: _cached(k, v, q, n),
                (normal(1, 2, 9, 8), normal(1, 2, 9, 8), normal(1, 4, 9, 8)),
                grad=False,
            )
            for n in (1, 3, 9)
        ],
        Case("rotary", lambda t, x: _rotary(x), (normal(2, 3, 5, 8),)),
    ]


def _cached(keys, values, queries, step):
    from pellucid.ops.attention.cache import cache_write, cached_attention

    key_cache, value_cache = keys.new_zeros(1, 2, 400, 8), keys.new_zeros(1, 2, 400, 8)
    out = []
    for at in range(0, 9, step):
        stop = at + step
        cache_write(key_cache, keys[:, :, at:stop], at)
        cache_write(value_cache, values[:, :, at:stop], at)
        out.append(cached_attention(queries[:, :, at:stop], key_cache, value_cache, stop))
    return *out, key_cache[:, :, :9]


def _rotary(x):
    from pellucid.ops.attention.cache import rotary_embedding, rotary_tables

    cos, sin = rotary_tables([1.0, 0.5, 0.1, 0.01], 20, device=x.device)
    return rotary_embedding(x, cos, sin, 3), rotary_embedding(x, cos, sin, 0, interleaved=True)


def blocks(name: str, rows: int, columns: int) -> np.ndarray:
    """Bytes of a weight of that format, its values of the size of a model's."""
    from pellucid.quant import FORMATS as KNOWN

    fmt = KNOWN[name]
    if fmt.block == 1:
        values = RANDOM.standard_normal(rows * columns).astype(np.float32)
        bits = values.astype(np.float16).view(np.uint16) if name == "f16" else values.view(np.uint32) >> 16
        return bits.astype(np.uint16).view(np.uint8)
    size = fmt.raw_bytes(rows, columns)
    made = RANDOM.integers(0, 256, (size // fmt.block_bytes, fmt.block_bytes)).astype(np.uint8)
    for at in FORMATS[name][0]:
        scales = RANDOM.uniform(-0.01, 0.01, len(made)).astype(np.float16)
        made[:, at : at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return made.reshape(-1)


def quantized() -> list[Case]:
    made = []
    for name, (_, columns) in FORMATS.items():

        def call(t, x, raw, name=name, columns=columns):
            weight = _weight(raw, name, (37, columns))
            ids = t.tensor([36, 0, 7])
            return (
                weight.dequantize(),
                t.nn.functional.embedding(ids, weight),
                t.nn.functional.linear(x, weight),
            )

        raw = blocks(name, 37, columns)
        made.append(Case(name, call, (normal(1, columns), raw), atol=2e-4, layouts=("contiguous",)))
    return made


def products() -> list[Case]:
    made = []
    for name in MULTIPLIED:
        columns = FORMATS[name][1]

        def call(t, x, bias, raw, name=name, columns=columns):
            weight = _weight(raw, name, (37, columns))
            return [t.nn.functional.linear(x[:n], weight, bias) for n in BATCHES]

        given = (normal(40, columns), normal(37), blocks(name, 37, columns))
        made.append(Case(name, call, given, atol=2e-4, layouts=("contiguous",)))

    def long(t, x, bias, raw):
        return t.nn.functional.linear(x, _weight(raw, "q4_0", (133, 12544)), bias)

    given = (normal(1, 12544), normal(133), blocks("q4_0", 133, 12544))
    return [*made, Case("rows in parts", long, given, atol=2e-3, layouts=("contiguous",))]


def _weight(raw, name, shape):
    from pellucid.quant.weight import weight_from_blocks

    return weight_from_blocks(raw, name, shape)


def losses() -> list[Case]:
    x, y, classes = normal(6, 5), normal(6, 5), below(5, 6)
    chances = positive(6, 5) / 2.5
    names = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
    made = [Case(n, lambda t, x, y, n=n: getattr(t.nn.functional, n)(x, y), (x, y)) for n in names]
    return [
        *made,
        Case(
            "cross_entropy",
            lambda t, x, c: (
                t.nn.functional.cross_entropy(x, c),
                t.nn.functional.cross_entropy(x, c, label_smoothing=0.1),
            ),
            (x, classes),
        ),
        Case("nll_loss", lambda t, x, c: t.nn.functional.nll_loss(x.log_softmax(-1), c), (x, classes)),
        Case(
            "binary_cross_entropy",
            lambda t, x, y: t.nn.functional.binary_cross_entropy(x, y),
            (chances, positive(6, 5) / 2.5),
            atol=3e-5,
        ),
        Case(
            "with logits",
            lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y),
            (x, chances),
        ),
        Case(
            "kl_div",
            lambda t, x, y: t.nn.functional.kl_div(x.log_softmax(-1), y, reduction="batchmean"),
            (x, chances),
        ),
        Case("cosine_similarity", lambda t, x, y: t.nn.functional.cosine_similarity(x, y), (x, y)),
        Case(
            "pad and glu",
            lambda t, x: (t.nn.functional.pad(x, (1, 2, -1, 1), value=3.0), t.nn.functional.glu(x[:, :4])),
            (x,),
        ),
    ]


def layers() -> list[Case]:
    def of(make, *arrays, **options):
        def call(t, *tensors):
            module = make(t.nn)
            return (*_tuple(module(*tensors)), *[p.detach() for p in module.parameters()])

        return Case(options.pop("name"), call, arrays, **{"atol": 5e-5, **options})

    x = normal(3, 4, 8)
    return [
        of(lambda nn: nn.Linear(8, 5), x, name="Linear"),
        of(lambda nn: nn.LayerNorm(8), x, name="LayerNorm"),
        of(lambda nn: nn.RMSNorm(8), x, name="RMSNorm"),
        of(lambda nn: nn.Embedding(7, 3), below(7, 4), name="Embedding"),
        of(
            lambda nn: nn.Sequential(nn.Flatten(), nn.Linear(32, 6), nn.ReLU(), nn.Dropout(0.3)),
            x,
            name="Sequential",
        ),
        of(lambda nn: nn.MultiheadAttention(8, 2, batch_first=True), x, x, x, name="MultiheadAttention"),
        *[
            of(lambda nn, n=n: getattr(nn, n)(), x, name=n)
            for n in ("GELU", "SiLU", "Tanh", "Softplus", "Mish", "Hardswish", "ELU", "LogSigmoid")
        ],
    ]


def _tuple(out):
    return tuple(o for o in out if o is not None) if isinstance(out, tuple) else (out,)


def training() -> list[Case]:
    optimizers = {
        "SGD": lambda o, p: o.SGD(p, 0.1),
        "SGD with momentum": lambda o, p: o.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
        "SGD of Nesterov": lambda o, p: o.SGD(p, 0.1, momentum=0.9, nesterov=True),
        "Adam": lambda o, p: o.Adam(p, 0.01),
        "Adam with amsgrad": lambda o, p: o.Adam(p, 0.01, amsgrad=True),
        "AdamW": lambda o, p: o.AdamW(p, 0.01),
    }
    x, y = normal(9, 4), normal(9, 2)
    return [
        Case(name, lambda t, x, y, make=make: _trained(t, x, y, make), (x, y), grad=False, atol=1e-4)
        for name, make in optimizers.items()
    ]


def _trained(t, x, y, make):
    """The parameters and losses of a small network after four steps."""
    model = t.nn.Sequential(t.nn.Linear(4, 8), t.nn.Tanh(), t.nn.Linear(8, 2))
    optimizer = make(t.optim, model.parameters())
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = t.nn.functional.mse_loss(model(x), y)
        loss.backward()
        t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return *losses, *[p.detach() for p in model.parameters()]


def graphs() -> list[Case]:
    x = normal(4, 5)
    return [
        Case("a value used twice", lambda t, x: (x.exp() * x + x).tanh(), (x,)),
        Case("through views and writes", lambda t, x: _through_writes(x), (x,)),
        Case("a second derivative", lambda t, x: _second(t, x), (x,), grad=False),
        Case("a loop", lambda t, x: _loop(x), (x,)),
    ]


def _through_writes(x):
    y = x * 2
    y[1:, ::2] = y[:-1, ::2] * 3
    y[0] += 1
    return y.t()[1:].sum(0)


def _second(t, x):
    z = x.detach().clone().requires_grad_()
    (first,) = t.autograd.grad((z**3).sum(), z, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), z)
    return first.detach(), second


def _loop(x):
    for k in range(5):
        x = (x * (1 + k / 10)).tanh() + x.mean(0)
    return x


GROUPS = {
    "matmul": matmul, "attention": attention, "quantized": quantized, "products": products,
    "losses": losses, "layers": layers, "training": training, "graphs": graphs,
}  # fmt: skip
