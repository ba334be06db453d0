"""Samples of elementwise ops: arithmetic, comparisons, functions of a number, activations."""

import numpy as np

from samples.sample import DTYPES, WHOLE, S, Sample, bad, below, each, normal, nothing, uniform

# Both zeros, infinities, NaN, halves that round to even, large and small numbers.
FLOATS = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.1, 3, -3, 7.5, -7.5, 1e30, -1e30, 6, 1e10, 2.5, 16777217, 0.3,
     -0.3], np.float32
)  # fmt: skip
INTEGERS = np.array(
    [0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100, 127, -128, 2**31 - 1, -(2**31), 63, 31, 32, 8, 5], np.int64
)
LONG = np.concatenate([INTEGERS, np.array([2**40, -(2**40), 2**63 - 1, -(2**63)])])


def edges(dtype: str) -> np.ndarray:
    """The edge values of a dtype; those of bfloat16 as float32."""
    if "float" in dtype:
        with np.errstate(over="ignore"):
            return FLOATS.astype("float32" if dtype == "bfloat16" else dtype)
    if dtype in ("bool", "int64"):
        return np.array([True, False]) if dtype == "bool" else LONG
    return np.clip(INTEGERS, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


def pairs(
    dtypes=DTYPES,
    rtol: float = 0.0,
    half: float = 0.0,
    whole: float = 0.0,
    keep=lambda a, b: slice(None),
    **kwargs,
) -> list[Sample]:
    """Every edge value beside every other, in each type.

    Args:
        dtypes: of both.
        rtol, half, whole: of float32, float16 and integers, where results are not PyTorch's bit for bit.
        keep: which pairs of integers stay.
    """
    made = []
    for dtype in dtypes:
        values = edges(dtype)
        a, b = values.repeat(values.size), np.tile(values, values.size)
        kept = slice(None) if "float" in dtype else keep(a, b)
        close = {"float32": rtol, "float16": half or (rtol and 2e-3), "bfloat16": rtol and 1e-2}.get(
            dtype, whole
        )
        made.append(
            S(a[kept], b[kept], **kwargs).but(
                dtype="bfloat16" if dtype == "bfloat16" else None, rtol=close, atol=0, grad=False, maybe=True,
                layouts=("contiguous",), paged=dtype in ("float32", "int64", "int32", "uint8")
            )
        )  # fmt: skip
    return made


x, y, chance = normal(3, 5), normal(3, 5), uniform(0.05, 0.95, 3, 5)
more, mask, no_number = uniform(0.1, 2, 3, 5), below(2, 3, 5).astype(bool), float("nan")
# Shapes that broadcast: with axes in front, without axes, with no elements.
BROADCAST = [
    ((3, 1, 4), (2, 1)),
    ((), (2, 3)),
    ((1,), (5,)),
    ((0, 3), (1, 3)),
    ((2, 0), ()),
    ((4, 1), (1, 4)),
]
SIX = S(normal(2, 3, 2, 2, 3, 2), normal(2, 1, 2, 1, 3, 1)).but(layouts=("strided",))


def chosen(t, x, pred=None, operands=None):
    """A branch by a value; `torch.cond` with a tensor would compile, which takes it seconds."""
    pred = x.sum() > 0 if pred is None else pred
    return t.cond(pred, lambda a: a * 2, lambda a: a.exp(), (x,) if operands is None else operands)


def by_python(t, x):
    """The same with Python's `if`."""
    return x * 2 if x.sum() > 0 else x.exp()


def channels(axis: int):
    """Fake quantization with a scale and a zero point, which PyTorch takes as int32, for each place."""

    def call(t, x, scale, zero):
        zero = zero.to(t.int32)
        return t.fake_quantize_per_channel_affine(x, scale.detach(), zero, axis, -4, 7)

    return call


def binary(*samples: Sample, of=(x, y), **options) -> list[Sample]:
    """Two tensors, every pair of edge values, broadcasting, numbers in the second's place, and these."""
    grad = options.pop("grad", True)
    wide = [S(uniform(0.5, 2, *a), uniform(0.5, 2, *b)) for a, b in BROADCAST[:2]]
    numbers = [S(of[0], 2), S(of[0], 0.75), S(of[0], True).but(maybe=True)]
    return [
        *[s.but(grad=grad) for s in (S(*of), *wide, *numbers)], *pairs(**options), *samples,
        bad("do not broadcast", x, normal(4)), bad("Tensor or number, not str 'a'", x, "a")
    ]  # fmt: skip


def divisible(a, b):
    """Integers over 0 give 0 here and end the process in PyTorch."""
    return b != 0


def halvable(a, b):
    """PyTorch leaves shifts by negative numbers open."""
    return b >= 0


def ordinary(a, b):
    """The least integer has no size, and what has no multiple is left open."""
    return a | True if a.dtype == bool else np.minimum(a, b) > np.iinfo(a.dtype).min // 2


def truncated(mode: str) -> list[Sample]:
    """Quotients in a rounding mode. The least integer over -1 ends the process in PyTorch."""

    def keep(a, b):
        return (b != 0) & ((b != -1) | (a != np.iinfo(a.dtype).min))

    return pairs(("float32", "int32", "int64", "uint8"), 3e-7, keep=keep, rounding_mode=mode)


def bits(*samples: Sample) -> list[Sample]:
    """Whole numbers and bools; floats are refused."""
    a, b = below(99, 3, 5), below(99, 5)
    return [S(a, b), S(a, 6), *pairs(), *samples, bad("take integers", x, 1)]


def unary(array: np.ndarray, *samples: Sample, rtol: float = 1e-5) -> list[Sample]:
    """One tensor, halves, whole numbers, no axes, no elements, and these."""
    plain = [S(array), S(np.asarray(array[0, 0])), S(nothing(0, 3))]
    types = each(("float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool"), array)
    return [*[s.but(rtol=rtol) for s in plain], *types, *samples, bad("must be Tensor, not float 1.0", 1.0)]


def activation(*samples: Sample, **options) -> list[Sample]:
    """One tensor, halves, edge values, and these."""
    edge = S(FLOATS).but(grad=False, layouts=("contiguous",))
    return [
        S(4 * x).but(**options),
        S(nothing(0, 3)).but(**options),
        edge,
        *each(("float16", "bfloat16"), x),
        *samples,
    ]


def over(name: str, *settings: float) -> Sample:
    """Written over the input, which the result is."""

    def call(t, x):
        x = x * 1
        out = getattr(t.nn.functional, name)(x, *settings, inplace=True)
        assert out is x
        return out

    return S(call, x)


def loosely(rtol: float, samples: list[Sample]) -> list[Sample]:
    """With a wider tolerance of those that are not exact."""
    return [s.but(rtol=max(s.rtol, rtol)) for s in samples]


ROOTS = np.array([[1 + 2j, -3j, 0], [2, -1 + 0.5j, -2 - 2j]], np.complex64)

UNARY = {
    **{name: unary(x) for name in (
        "abs", "sign", "square", "exp", "exp2", "expm1", "sin", "cos", "atan", "sinh", "cosh", "tanh",
        "asinh", "erf",
        "erfc", "sigmoid", "floor", "ceil", "trunc", "frac", "neg", "deg2rad", "rad2deg", "sinc"
    )},
    "round": unary(x, *[S(40 * x, decimals=n) for n in (1, 2, -1)],
        bad("floating-point tensors where decimals", below(9, 3), decimals=1)),
    **{name: [*unary(x), S(FLOATS), S(ROOTS)] for name in ("angle", "sgn", "conj_physical")},
    "positive": [S(x), *each(DTYPES, x)],
    "relu": [*unary(x), *each(WHOLE, x)],
    # Its slope grows as its square, and with it the error of what is rounded.
    "tan": unary(x, rtol=1e-4),
    **{name: unary(more, rtol=3e-5) for name in ("sqrt", "rsqrt", "reciprocal", "log", "log2", "log10",
        "log1p")},
    **{name: unary(chance, rtol=3e-5) for name in ("asin", "acos", "atanh")},
    "logit": [*unary(chance, rtol=3e-5), *[S(x, eps).but(rtol=3e-5) for eps in (0.0, 0.1, 0.6)],
        S(x, -1.0).but(grad=False),
        *each(WHOLE, x, 0.25), bad("eps", x, "a")],
    "acosh": unary(1 / chance, rtol=3e-5)
}  # fmt: skip

COMPARED = [
    *pairs(), *[S(LONG, n) for n in (1, 2.5, True, 2**40)],
    *[S(edges(a).repeat(edges(b).size), np.tile(edges(b), edges(a).size)).but(layouts=("contiguous",),
        paged=False) for a, b in (
        ("int64", "float32"), ("int32", "int64"), ("uint8", "int8"), ("bool", "float16")
    )],
    *[S(np.array([44, 1, 255], np.uint8), n) for n in (300, -1, 256, 1.5)], S(np.float16([0.1, 0.2]), 0.1),
    bad("do not broadcast", x, normal(4))
]  # fmt: skip
# Subnormal numbers, and those beside.
TINY = np.array([1e-45, -1e-45, 1e-40, 1.1754944e-38, 3e38, np.inf, np.nan, 0, -0.0, 0.75], np.float32)
KINDS = [
    S(FLOATS),
    *[S(FLOATS).but(dtype=d) for d in ("float16", "bfloat16")],
    *each(("float16", "bfloat16", "int32", "int64", "bool"), x),
]
FAR_POWERS = np.array([20, -20, 16, -140, 200, -200, 100_000, -(2**30)])
CLOSE = np.array([1.0, 2.0, np.nan, np.inf, -np.inf, 0.0], np.float32)
BESIDE = np.array([1.0 + 1e-6, 2.1, np.nan, np.inf, np.inf, 1e-9], np.float32)


def written(name: str, *more):
    """An activation over a tensor that is no leaf."""
    return lambda t, x: getattr(t.nn.functional, f"{name}_")(x + 0, *more)


SAMPLES: dict[str, list[Sample]] = {
    **UNARY,
    "add": binary(
        *[S(x, y, alpha=a) for a in (2.5, -0.5)], *[S(normal(*a), normal(*b)) for a, b in BROADCAST],
        # More elements than an invocation each, and as many as four each.
        S(normal(257, 1), normal(1, 260)).but(alone=True), S(normal(70_000), 2),
        *[S(below(9, 3), n) for n in (2**40, -(2**63))],
        SIX, S(below(9, 3), 2), S(np.int32([1, 2]), np.int64([2**40, 1])), S(lambda t, x: x + x * x, x),
        S(lambda t, a, b: a.expand(3, 4) * b + a.expand(3, 4), normal(3, 1), normal(3, 4)),
        bad("alpha", below(9, 3), below(9, 3), alpha=1.5),
        bad("no common type", np.uint32([1]), np.int32([1])),
        bad("at least one argument must be a tensor", 1, 2).but(error=TypeError)
    ),
    "sub": binary(S(x, y, alpha=-0.5), bad("alpha", below(9, 3), 1, alpha=0.5)),
    "rsub": [S(x, y), S(x, y, alpha=2), S(x, 1), *each(WHOLE, x, 3)],
    "mul": binary(SIX, S(lambda t, x, y: x * y.sum(), x, y),
        *[S(below(9, 3), n) for n in (2**40, -(2**40) - 1)]),
    "true_divide": [S(x, y), S(x, 0.5)],
    "div": [
        *binary(rtol=3e-6, half=1e-3, whole=3e-7, of=(x, more)), S(x, y, rounding_mode="floor"),
        S(x, y, rounding_mode="trunc"), *truncated("floor"), *truncated("trunc"),
        bad("rounding_mode must be", x, 2, rounding_mode="up").but(error=ValueError),
    ],
    "floor_divide": binary(keep=divisible, grad=False),
    "remainder": binary(S(x, -3), keep=divisible),
    "fmod": binary(S(x, -3), keep=divisible),
    "pow": binary(
        *[S(more, n).but(rtol=3e-5) for n in (0, 1, 2, 3, 0.5, -1.5, -1)], *[S(n, x) for n in (2, 0.5)],
        S(x, 3), S(x, 2), bad("negative integer", below(9, 3), -1), rtol=3e-6, of=(more, y)
    ),
    "float_power": [
        s.but(devices=("cpu",)) for s in (
            S(more, y), S(more, 2), S(2, y), *pairs(("float32",), 1e-14), S(below(9, 3), -1)
        )
    ],
    "Tensor.float_power_": [
        S(lambda t, x: x.to(t.float64).float_power_(2), more).but(devices=("cpu",)),
        bad("Use pow_", more, 2).but(devices=("cpu",))
    ],
    "copysign": binary(S(x, -0.0), *each(WHOLE, x, -1), dtypes=DTYPES[:2]),
    "nextafter": [S(x, y), S(x, x), *pairs(("float32",)),
        bad("takes float", below(9, 3), below(9, 3))],
    "heaviside": [
        S(mask * x, y).but(grad=False), *pairs(), bad("Convert one of them", below(9, 3), normal(3))
    ],
    "hypot": [S(x, y), S(x, y[0]), *pairs(("float32", "float16", "bfloat16"), 3e-7, 1e-3),
        bad("takes floating-point", below(9, 3), below(9, 3))],
    **{name: [S(x, y), S(x, y[0]), *[s.but(atol=1e-7) for s in pairs(("float32",), 3e-7)],
        *each(("float16", "bfloat16"), x, y)] for name in ("logaddexp", "logaddexp2")},
    "xlogy": [*binary(S(2, more), of=(x, more), dtypes=("float32",), rtol=3e-6), *each(WHOLE, more, 3)],
    **{name: [S(below(99, 3, 5), below(99, 5)), *pairs(WHOLE, keep=ordinary), bad("", x, y)]
        for name in ("gcd", "lcm")},
    "ldexp": [S(x, below(9, 5)), S(x, y), S(below(9, 3), below(9, 3)), *pairs(("float32", "float16"), 3e-6),
        # powers that no float holds, and products that halves do not
        *[S(np.array([1.5, 0.0, -0.0, np.inf, -3.0, 6e-5, 2**-120], np.float32)[:, None], FAR_POWERS).but(
            grad=False, dtype=d, layouts=("contiguous",)) for d in (None, "float16", "bfloat16")]],
    "frexp": [*[S(lambda t, x, k=k: t.frexp(x)[k], x) for k in (0, 1)], S(TINY),
        *each(("float16", "bfloat16", "int32"), x)],
    "signbit": [KINDS[0], *KINDS[3:], S(-FLOATS[:3]).but(dtype="bfloat16")],
    "isposinf": KINDS,
    "isneginf": KINDS,
    "nan_to_num": [S(FLOATS), S(FLOATS, 2.0), S(FLOATS, posinf=3.0, neginf=-4.0), *each(DTYPES, x),
        S(lambda t, a: t.nan_to_num(t.complex(a, a.flip(0)), 1.0, 2.0, 3.0), FLOATS).but(grad=False),
        S(lambda t, a: t.view_as_real(t.complex(a, a).nan_to_num()), FLOATS).but(grad=False)],
    **{name: [S(x, y), S(x, y[0]), *pairs()] for name in ("fmax", "fmin")},
    **{name: [S(x, y), S(x, 0.25), S(x, y[0]), *pairs(("float32", "int32", "int64", "uint8", "bool")),
        *each(WHOLE, x, 2)] for name in ("clamp_min", "clamp_max")},
    **{name: [S(x), S(below(9, 3)), S(ROOTS)]
        for name in ("conj", "resolve_conj", "resolve_neg", "is_complex", "real", "isreal")},
    "imag": [S(ROOTS), bad("takes complex", x)],
    "view_as_real": [S(ROOTS), bad("takes complex", x)],
    "view_as_complex": [S(normal(3, 2)).but(layouts=("contiguous",)), bad("length 2", x),
        bad("begins between", lambda t, a: t.view_as_complex(a[1:]), normal(3)),
        bad("lie", lambda t, a: t.view_as_complex(a.t()), normal(2, 3)), bad("float32 or", below(9, 2))],
    **{name: [S(more, y), S(more, y[0]), bad("float32, or two", x, below(9, 5))]
        for name in ("complex", "polar")},
    "maximum": [S(x, y), S(x, y[0]), S(lambda t, x: t.maximum(x, x * 1), x), *pairs()],
    "minimum": [S(x, y), S(x, y[0]), S(lambda t, x: t.minimum(x, x * 1), x), *pairs()],
    "atan2": [S(x, y), S(x[:1], y), *pairs(("float32",), 3e-6), *each(("float16", "int32"), x, y)],
    "clamp": [
        S(x, -0.5, 0.5), S(x, min=0), S(x, max=0.25), S(x, 1.0, -1.0), S(x, y, y + 1), S(x, min=y),
        S(x, max=y[0]),
        S(FLOATS, -3, 2.5).but(grad=False), *each(WHOLE[:-1], 2 * x, 0, 5),
        bad("at least one of min and max", x)
    ],
    "fake_quantize_per_tensor_affine": [
        *[s.but(second=False) for s in (S(x, 0.1, 3, -4, 7), S(x, 0.25, 0, -128, 127),
            *each(("float16", "bfloat16"), x, 0.25, 1, -4, 7))],
        S(FLOATS, 0.5, 1, -4, 7).but(second=False, layouts=("contiguous",)),
        S(lambda t, x, s, z: t.fake_quantize_per_tensor_affine(x, s, z.to(t.int32), -4, 7), x,
            np.array(0.3, np.float32), np.array(3)).but(grad=False),
        bad("must lie in", x, 0.1, 9, -4, 7), bad("Exchange", x, 0.1, 3, 7, -4),
        bad("floating", below(9, 2), 0.1, 0, 0, 7)
    ],
    "fake_quantize_per_channel_affine": [
        *[S(channels(axis), x, uniform(0.1, 0.4, n), below(6, n)).but(second=False)
            for axis, n in ((0, 3), (1, 5))],
        bad("has shape", channels(0), x, uniform(0.1, 0.4, 2), below(6, 2))
    ],
    **{f"bitwise_{name}": bits() for name in ("and", "or", "xor")},
    **{f"bitwise_{name}_shift": [S(below(9, 3), 3), *pairs(keep=halvable)] for name in ("left", "right")},
    "bitwise_not": [*[S(edges(d)) for d in WHOLE], bad("", x)],
    "lerp": [
        S(x, y, 0.3), S(x, y, chance), S(x, y[0], 0.75), *each(("float16", "bfloat16"), x, y, 0.25),
        # From the nearer end: both ends are met exactly, and what is infinite at the nearer one stays.
        *[
            S(*[np.array(v, np.float32) for v in ([np.inf, 1, -np.inf, np.inf, no_number, 1e8, 3],
                [1, np.inf, 2, np.inf, 1, 1, 7])], w)
            .but(grad=False, layouts=("contiguous",))
            for w in (-0.75, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, np.full(7, 0.75, np.float32))
        ]
    ],
    "addcmul": [S(x, y, x), S(x, y, more, value=0.7), S(x, y[0], more, value=-2),
        *each(WHOLE[:2], x, y, x, value=2)],
    "addcdiv": [S(x, y, more), S(x, y, more, value=-0.7), S(x, y[0], more, value=2)],
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), COMPARED),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), pairs()),
    "logical_not": KINDS,
    **dict.fromkeys(("isnan", "isinf", "isfinite"), KINDS),
    "where": [
        S(mask, x, y), S(mask[0], x, y[:, :1]), S(mask, x, 0.0), S(mask, 1.0, x),
        S(mask, x, no_number).but(grad=False),
        *each(DTYPES, mask, x, y), *each(DTYPES, mask, x, 1),
        # Not a number in the branch that is not taken.
        S(lambda t, x: t.where(x > 0, x, x.detach() * no_number), x).but(second=False),
        bad("condition", x, x, y).but(error=TypeError)
    ],
    "cond": [
        *[S(chosen, a).but(theirs=by_python) for a in (more, -more)],
        *[S(lambda t, x, p=p: chosen(t, x, p), x) for p in (True, False, 0.0)],
        bad("one element", lambda t, x: chosen(t, x, x > 0), x),
        bad("must be True, False", lambda t, x: chosen(t, x, "yes"), x),
        bad("tuple of tensors", lambda t, x: chosen(t, x, None, (1.0,)), x),
        bad("must be functions", lambda t, x: t.cond(x.sum() > 0, 1, 2, (x,)), x)
    ],
    "masked_fill": [
        S(x, mask, 2.5), S(x, mask[0], -np.inf), S(x, mask, np.array(3, np.float32)),
        *each(DTYPES, x, mask, 0),
        bad("mask must be bool, not", x, x, 0)
    ],
    "isclose": [S(CLOSE, BESIDE), S(CLOSE, BESIDE, equal_nan=True), S(x, x + 1e-3, atol=1e-2)],
    "allclose": [S(CLOSE[:1], BESIDE[:1]), S(CLOSE, BESIDE), S(CLOSE, CLOSE, equal_nan=True)],
    "equal": [S(x, x), S(x, y), S(x, x[:1]), S(below(9, 3), below(9, 3))],
    "nn.functional.silu": activation(over("silu")),
    **{f"nn.functional.{name}": activation() for name in (
        "logsigmoid", "mish", "relu6", "hardswish"
    )},
    "nn.functional.softsign": [
        *activation(S(ROOTS).but(second=False)), S(FLOATS).but(rtol=1e-6, atol=1e-30),
        *[s.but(rtol=0, atol=0) for s in (S(FLOATS).but(grad=False), *each(DTYPES, 30 * x))],
    ],
    "nn.functional.hardtanh": activation(S(x, 0.0, 2.0)),
    "nn.functional.hardsigmoid": activation(second=False),  # PyTorch has none
    "nn.functional.gelu": [
        # At infinity PyTorch's vectors and the rest of a tensor differ.
        *activation()[:2], *each(("float16", "bfloat16"), x), S(4 * x, approximate="tanh"),
        bad("'none' or 'tanh', not 'fast'", x, approximate="fast").but(error=ValueError)
    ],
    "nn.functional.leaky_relu": activation(S(x, 0.2), over("leaky_relu", 0.2)),
    **{f"nn.functional.{name}_": [S(written(name, *more), x).but(layouts=("contiguous",), second=False)]
       for name, more in (("celu", (1.5,)), ("elu", ()), ("hardtanh", (-0.5, 0.5)), ("leaky_relu", (0.2,)),
           ("relu", ()), ("rrelu", (0.2, 0.3)), ("selu", ()), ("threshold", (0.1, 2.0)))},
    "nn.functional.elu": activation(S(x, 1.5), over("elu")),
    "celu": activation(S(4 * x, 1.5), over("celu", 2.0), bad("alpha must not be 0", x, 0.0)),
    "selu": activation(over("selu")),
    "hardshrink": activation(S(x, 0.2)),
    "nn.functional.softshrink": activation(S(x, 0.2), bad("must not be negative", x, -1.0)),
    "nn.functional.tanhshrink": unary(x)[:-1],
    "threshold": [S(x, 0.1, 20.0), S(FLOATS, 1, 5.5).but(grad=False), over("threshold", 0.3, -1.0),
        *each(("float16", "bfloat16", "int64", "int32", "uint8"), x, 1, 7)],
    "prelu": [
        *[S(normal(*a), normal(b)).but(grad=False) for a, b in (((3, 5), 1), ((2, 3, 4), 3), ((3,), 1))],
        *[S(lambda t, x, w: t.prelu(x, w), normal(2, 3, 4), normal(n)) for n in (1, 3)],
        bad("Convert one of them", x, below(9, 5)), bad("Give one number, or one for each", x, normal(4))],
    "nn.functional.softplus": activation(S(4 * x, 2.0, 5.0)),
    "nn.functional.relu": activation(S(x, inplace=False))
}  # fmt: skip

# Complex numbers: an expression of their own each, whose derivatives are conjugated.
W = ROOTS.conj().T.reshape(2, 3) + np.complex64(0.5)
plain = {"layouts": ("contiguous",), "atol": 3e-5, "rtol": 1e-4}
SAMPLES |= {
    name: [*SAMPLES[name], S(W, *more).but(**plain)]
    for names, *more in (
        (("exp", "log", "sqrt", "square", "reciprocal", "neg", "abs", "sin", "cos", "isnan", "isinf"),),
        (("add", "sub", "mul", "div", "eq", "ne"), ROOTS + np.complex64(1)),
        (("pow",), x[:2, :3] + 0j), (("addcmul", "addcdiv"), ROOTS, W), (("isfinite",),)
    )
    for name in names
}  # fmt: skip
SAMPLES["mul"] += [S(lambda t, x: x * 2j + 1j, W), S(W, x[:2, :3]).but(**plain)]
SAMPLES["where"] += [S(lambda t, a: t.where(a.real > 0, a, 2j), W).but(**plain)]
