"""Cases of what is computed element by element: arithmetic, functions, comparisons, conversions."""

import numpy as np
from case import EDGES, Case, below, normal, pairs, positive, unit, whole

SMOOTH = {
    "exp": normal(3, 5), "exp2": normal(3, 5), "expm1": normal(3, 5), "sin": 3 * normal(3, 5),
    "cos": 3 * normal(3, 5), "tan": unit(3, 5), "asin": unit(3, 5), "acos": unit(3, 5),
    "atan": normal(3, 5), "sinh": normal(3, 5), "cosh": normal(3, 5), "tanh": normal(3, 5),
    "asinh": normal(3, 5), "acosh": 1 + positive(3, 5), "atanh": unit(3, 5), "erf": normal(3, 5),
    "erfc": normal(3, 5), "sigmoid": normal(3, 5), "logit": positive(3, 5) / 3, "log": positive(3, 5),
    "log2": positive(3, 5), "log10": positive(3, 5), "log1p": positive(3, 5), "sqrt": positive(3, 5),
    "rsqrt": positive(3, 5), "reciprocal": positive(3, 5), "square": normal(3, 5), "abs": normal(3, 5),
    "sign": normal(3, 5), "floor": normal(3, 5), "ceil": normal(3, 5), "round": 3 * normal(3, 5),
    "trunc": normal(3, 5), "frac": normal(3, 5), "neg": normal(3, 5), "relu": normal(3, 5),
    "positive": normal(3, 5),
}  # fmt: skip
ACTIVATIONS = [
    "silu",
    "gelu",
    "leaky_relu",
    "elu",
    "softplus",
    "logsigmoid",
    "mish",
    "softsign",
    "hardtanh",
    "relu6",
    "hardsigmoid",
    "hardswish",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "maximum",
    "minimum",
    "atan2",
    "pow",
]
TESTS = ["eq", "ne", "lt", "le", "gt", "ge"]
EXACT = ["add", "sub", "mul", "floor_divide", "remainder", "fmod", "maximum", "minimum"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
TYPES = ("int64", "int32", "int16", "int8", "uint8", "bool", "float32", "float16", "bfloat16")


def _named(name, *rest, **options):
    return lambda t, *tensors: getattr(t, name)(*tensors, *rest, **options)


def _functional(name, *rest, **options):
    return lambda t, *tensors: getattr(t.nn.functional, name)(*tensors, *rest, **options)


def _type(t, name):
    return getattr(t, "bool_" if name == "bool" else name)


def functions() -> list[Case]:
    made = [Case(name, _named(name), (x,)) for name, x in SMOOTH.items()]
    made += [Case(f"{n} at edges", _named(n), (EDGES,), grad=False, atol=1e-30) for n in SMOOTH]
    made += [
        Case(f"{n} of int32", _named(n), (np.arange(1, 7, dtype=np.int32),))
        for n in ("exp", "sqrt", "abs", "neg")
    ]
    made += [Case(n, _functional(n), (2 * normal(4, 3),)) for n in ACTIVATIONS]
    made += [Case(f"{n} at edges", _functional(n), (EDGES,), grad=False) for n in ACTIVATIONS]
    made += [
        Case("gelu, tanh", _functional("gelu", approximate="tanh"), (normal(4, 3),)),
        Case("leaky_relu, slope", _functional("leaky_relu", 0.3), (normal(4, 3),)),
        Case("elu, alpha", _functional("elu", 2.0), (normal(4, 3),)),
        Case("softplus, beta", _functional("softplus", 2.0, 5.0), (3 * normal(4, 3),)),
        Case("isnan", _named("isnan"), (EDGES,)),
        Case("isinf", _named("isinf"), (EDGES,)),
        Case("isfinite", _named("isfinite"), (EDGES,)),
    ]
    return made


def arithmetic() -> list[Case]:
    a, b = normal(3, 4), positive(3, 4)
    spread = (positive(3, 1), positive(2, 1, 4))
    made = []
    for name in BINARY:
        grad = name != "floor_divide"  # it has no derivative, as in PyTorch
        made += [
            Case(name, _named(name), (b if name == "pow" else a, b), grad=grad),
            Case(f"{name}, broadcast", _named(name), spread, grad=grad),
        ]
    made += [Case("a large result", lambda t, x, y: x + y, (positive(257, 1), positive(1, 260)))]
    made += [
        Case(f"{n} at edges", _named(n), pairs(EDGES), grad=False, atol=1e-30)
        for n in BINARY
        if n not in ("remainder", "fmod", "floor_divide")
    ]
    # Quotients beyond 2^24 leave no digits of the remainder in float32.
    tame = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 3, -3, 2.5, -2.5, 7.25], np.float32)
    made += [
        Case(f"{n} at edges", _named(n), pairs(tame), grad=False)
        for n in ("remainder", "fmod", "floor_divide")
    ]
    for d in ("int64", "int32", "int16", "int8", "uint8"):
        x, y = pairs(whole(d))
        made += [Case(f"{n} of {d}", _named(n), (x[y != 0], y[y != 0])) for n in EXACT]
        made += [Case(f"{n} of {d}", _named(n), (x, y)) for n in (*BITS, *TESTS)]
        made += [
            Case(f"shift left of {d}", lambda t, x: x << 3, (whole(d),)),
            Case(f"shift right of {d}", lambda t, x: x >> 2, (whole(d),)),
            Case(f"bitwise_not of {d}", _named("bitwise_not"), (whole(d),)),
        ]
    made += [
        Case(
            "operators with numbers", lambda t, x: ((2 - x) * 3 + 1) / 4 - x / 0.5 + (1 / (x + 5)) ** 2, (a,)
        ),
        Case("powers of numbers", lambda t, x: (x**2, x**0.5, x**-1, 2**x, x**3), (b,)),
        Case("rsub", lambda t, x, y: t.rsub(x, y, alpha=2), (a, b)),
        Case("add, alpha", lambda t, x, y: t.add(x, y, alpha=0.5), (a, b)),
        Case("sub, alpha", lambda t, x, y: t.sub(x, y, alpha=3), (a, b)),
        Case("div, floor", lambda t, x, y: t.div(x, y, rounding_mode="floor"), (4 * a, b), grad=False),
        Case("div, trunc", lambda t, x, y: t.div(x, y, rounding_mode="trunc"), (4 * a, b), grad=False),
        Case("clamp", lambda t, x: (x.clamp(-0.5, 0.5), x.clamp(min=0), x.clamp(max=0.1)), (a,)),
        Case("clamp by tensors", lambda t, x, y: x.clamp(-y, y), (a, b)),
        Case("lerp", lambda t, x, y: (t.lerp(x, y, 0.3), t.lerp(x, y, y)), (a, b)),
        Case("addcmul", lambda t, x, y: t.addcmul(x, y, x, value=0.5), (a, b)),
        Case("addcdiv", lambda t, x, y: t.addcdiv(x, x, y, value=2), (a, b)),
        Case("int64 with a float", lambda t, x: x * 0.5 + 1, (whole("int32"),)),
        Case("int32 with int64", lambda t, x, y: x + y, (whole("int32"), whole("int64"))),
        Case("zero-dimensional", lambda t, x, y: x * y.sum(), (a, b)),
        Case("the same tensor twice", lambda t, x: x * x + x, (a,)),
        Case("nothing", lambda t, x: x * 2 + 1, (normal(0, 3),)),
        Case("many elements", lambda t, x: (x * 2 + 1).sum(0), (normal(70_000, 3),), atol=1e-3),
        Case("six axes", lambda t, x, y: x + y, (normal(2, 1, 3, 1, 2, 2), normal(2, 3, 1, 2, 1))),
    ]
    return made


def comparison() -> list[Case]:
    a, b = normal(3, 4), normal(3, 4)
    mask = below(2, 3, 4).astype(bool)
    bits = pairs(whole("bool"))
    made = [Case(f"{n} at edges", _named(n), pairs(EDGES), grad=False) for n in TESTS]
    made += [Case(n, _named(n), bits) for n in ("logical_and", "logical_or", "logical_xor")]
    made += [Case(f"{n} of bool", _named(n), bits) for n in BITS]
    made += [
        Case("logical_not", _named("logical_not"), (EDGES,), grad=False),
        Case("logical_and of floats", _named("logical_and"), pairs(EDGES), grad=False),
        Case("where", lambda t, m, x, y: t.where(m, x, y), (mask, a, b)),
        Case("where with numbers", lambda t, m, x: (t.where(m, x, 0.0), t.where(m, 1, 2)), (mask, a)),
        Case("masked_fill", lambda t, x, m: x.masked_fill(m, float("-inf")), (a, mask)),
        Case("masked_fill by a tensor", lambda t, x, m: x.masked_fill(m, x.sum()), (a, mask)),
        Case("isclose", lambda t, x: t.isclose(x, x + 1e-7), (EDGES,), grad=False),
        Case("allclose and equal", lambda t, x: (t.allclose(x, x), t.equal(x, x + 1), t.equal(x, x)), (a,)),
        Case("comparison with numbers", lambda t, x: (x > 0, x <= 0.5, x == 1, x != 0), (a,), grad=False),
    ]
    return made


def conversion() -> list[Case]:
    values = np.array([0, 1, -1, 2.5, 100.7, -3.2, 0.333, 7], np.float32)
    made = []
    for source in TYPES:
        for target in TYPES:
            start = np.abs(values) if "uint8" in (source, target) else values
            made.append(
                Case(
                    f"{source} to {target}",
                    lambda t, x, s=source, d=target: x.to(_type(t, s)).to(_type(t, d)),
                    (start,),
                    grad=False,
                    layouts=("strided",),
                )
            )
    for d in ("float16", "bfloat16"):
        made += [
            Case(
                f"{n} of {d}",
                lambda t, x, n=n, d=d: getattr(x.to(_type(t, d)), n)(),
                (normal(3, 5),),
                rtol=1e-2,
                atol=1e-2,
            )
            for n in ("exp", "tanh", "sum", "sqrt", "neg")
        ]
        made += [
            Case(
                f"sum of products in {d}",
                lambda t, x, d=d: (x.to(_type(t, d)) * 3 + 1) / 7,
                (normal(3, 5),),
                rtol=1e-2,
                atol=1e-2,
            ),
            Case(f"edges in {d}", lambda t, x, d=d: x.to(_type(t, d)).float(), (EDGES,), grad=False),
        ]
    return made


GROUPS = {
    "functions": functions,
    "arithmetic": arithmetic,
    "comparison": comparison,
    "conversion": conversion,
}
