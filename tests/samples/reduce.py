"""Samples of reductions: sums, products, means, variances, extremes, running sums."""

import numpy as np

from samples.sample import DTYPES, WHOLE, S, Sample, apart, bad, below, each, normal, nothing, uniform

x, small, distinct = normal(3, 5, 4), normal(4, 5), apart(3, 5, 4)
AXES = [
    {},
    {"dim": 0},
    {"dim": 1, "keepdim": True},
    {"dim": -1},
    {"dim": (0, 2)},
    {"dim": (0, 1, 2), "keepdim": True},
]
# On both sides of the lengths at which a row or column is cut into parts, and of the numbers of rows.
LONG = [(7000,), (3, 9000), (1200, 33), (2, 700, 3), (600, 2)]
ties = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], np.float32)
zeros = normal(4, 5)
zeros[1, 2] = zeros[2, 2] = zeros[2, 3] = 0
special = normal(4, 600)
special[0, 5] = special[0, 400] = np.nan
special[1, 3], special[1, 4] = np.inf, -np.inf
special[2], special[3], special[3, 100] = -np.inf, 0.0, -0.0
truth = below(2, 5, 6, 40).astype(np.float32) * normal(5, 6, 40)
truth[0], truth[1] = 0, 1
big = (below(2**62, 5, 300) - 2**61).astype(np.int64)
far = (np.sin(np.arange(3600)).reshape(4, 900) * [[1e18], [2e19], [1.0], [1e17]]).astype(np.float32)
LARGEST = np.array([[3e38, 3.1e38, 2.9e38, 3.05e38], [3e38, -3e38, 1e38, 2], [1e38] * 4], np.float32)
low = 30 * normal(6, 7)
low[0] = -np.inf
holed = apart(3, 5, 4)
# Rows of whole numbers, longer than what is sorted at once, and some with NaN.
many = (100 * normal(2, 2, 1500)).round()
many_holed = np.where(uniform(0, 1, 2, 2, 1500) < 0.1, np.nan, many).astype(np.float32)
many_holed[0, 0] = many[0, 0]
tall = many_holed.swapaxes(1, 2).copy()
holed[0, 1, :2], holed[1, :2, 2], holed[2, 3, 3] = np.nan, np.nan, np.inf


def over(array: np.ndarray, several: bool = True, **options) -> list[Sample]:
    """Over all axes, one, and several."""
    ways = [w for w in AXES if several or not isinstance(w.get("dim"), tuple)]
    return [S(array, **way).but(**options) for way in ways]


def empties(every: bool = True, **more) -> list[Sample]:
    """Tensors of no elements, along each of their axes and all of them: PyTorch says which are refused."""
    axes = [(s, {"dim": d}) for s in ((0,), (0, 3), (2, 0), (2, 0, 3)) for d in range(len(s))]
    axes += [(s, {}) for s in ((0,), (0, 3))] * every
    return [
        S(nothing(*s), **d, **more).but(maybe=True, layouts=("contiguous",), paged=False) for s, d in axes
    ]


def long(*ways: dict, shapes=LONG, **options) -> list[Sample]:
    """Long axes, first, last and all together."""
    options = {"atol": 2e-4, "layouts": ("contiguous",), "second": False, **options}
    ways = ways or ({}, {"dim": 0}, {"dim": -1})
    return [S(normal(*s), **way).but(**options) for s in shapes for way in ways]


FLAT = {"layouts": ("contiguous",)}
WRONG = [bad("out of range", x, 5), bad("out of range", x, -4)]
NONE = [S(np.zeros((0, 3), d), 0) for d in ("int64", "int32", "uint8", "bool", "float16")]
no_axes = S(np.array(3.5, np.float32))
shared = {"variants": ("shared",)}


def kth(t, x, k):
    """Along axis 1, and what stands at its place."""
    return x.kthvalue(k, 1)[0], x.gather(1, x.kthvalue(k, 1, True)[1])


SAMPLES: dict[str, list[Sample]] = {
    "sum": [
        *over(x), *each(DTYPES, small), *each(WHOLE, 30 * normal(40, 50), 0), *long(**shared), S(big, 1),
        no_axes, *empties(),
        S(10 * small, dtype="int64").but(grad=False), S(10 * small, 0, dtype="int32").but(grad=False),
        S(below(12, 3, 4), dtype="float32"), S(normal(2003, 40), 0).but(atol=1e-3, **shared),
        *WRONG, bad("", x, (0, 0))
    ],
    "mean": [
        *over(x), *each(DTYPES[:3], small), *long(), no_axes, *empties(), S(below(12, 3, 4), dtype="float32"),
        *WRONG, bad("not an integer", below(9, 4))
    ],
    "prod": [
        *over(uniform(0.5, 2, 3, 4, 2), False), S(zeros), S(zeros, 0), S(zeros, 1, keepdim=True),
        *each(DTYPES, small), no_axes,
        S(1 + normal(2, 9001) / 100, -1).but(rtol=1e-3, atol=1e-3, second=False, alone=True, **shared),
        S(1 + normal(40000) / 100).but(rtol=1e-3, atol=1e-3, grad=False, **shared),
        S(1 + normal(2100, 2) / 100, 0).but(rtol=1e-3, atol=1e-3, grad=False, **shared),
        S(big, 0),
        *empties(), *WRONG
    ],
    **{name: [
        *over(distinct, False), S(truth), S(truth, 0), S(truth, -1, True), S(truth != 0, 1),
        *each(DTYPES, small), *empties(), *WRONG
    ] for name in ("any", "all")},
    "count_nonzero": [*over(truth, False)[:2], S(truth, 0), S(truth, (0, 2)), *each(DTYPES, small),
        *empties(), *WRONG],
    "logsumexp": [
        *[S(30 * normal(6, 7), **way) for way in ({"dim": 0}, {"dim": 1, "keepdim": True}, {"dim": (0, 1)})],
        *[S(low, d).but(grad=False) for d in (0, 1, (0, 1))], *empties(False), bad("out of range", x, 5),
        *[S(30 * normal(*n), d).but(grad=False, **shared) for n, d in (((2, 9001), 1), ((2003, 40), 0))],
    ],
    **{name: [
        *over(x + 5, rtol=3e-5), S(x, 1, correction=0), S(x, (0, 1), correction=0, keepdim=True),
        S(x, 0, unbiased=False),
        S(normal(6, 700) + 5, 1).but(rtol=1e-4), *empties(), *WRONG,
        # a page runs the first of these
        *[S(scale * normal(*n) + 5, d).but(rtol=1e-4, grad=False, **shared) for n, d, scale in (
            ((2, 9001), 1, 1), ((2, 65, 33), 1, 1e-3), ((70, 32), 0, 1e19), ((2003, 40), 0, 1),
        )[:: 1 if name == "var" else -1]],
        # squares that add up past float32, beside some that do not
        S(far, 1).but(**shared), S(far.T.repeat(10, 1), 0).but(grad=False, **shared), S(far, 0),
        S(far, correction=0).but(grad=False), S(1e6 * far[0]),
        S(far, 1).but(dtype="bfloat16", rtol=1e-2, second=False),
        bad("take floating point", below(9, 3)), bad("take floating point", below(2, 3, 2) > 0, 1),
        # sums past float32
        S(LARGEST, 1).but(grad=False, layouts=("contiguous",)),
    ] for name in ("var", "std")},
    **{name: [
        S(x, 1), S(x, 0, correction=0), S(x), S(x, -1, keepdim=True),
        S(LARGEST, 1).but(grad=False, layouts=("contiguous",)),
        S(lambda t, x, n=name: getattr(t, n)(x, 1)[1], LARGEST).but(layouts=("contiguous",)),
    ] for name in ("var_mean", "std_mean")},
    **{name: [
        *over(distinct), S(ties, 1), S(ties), *each(DTYPES, distinct, 1), S(special, 1).but(grad=False),
        S(lambda t, x, n=name: getattr(t, n)(x.t(), 0), special).but(grad=False), no_axes,
        *long(**shared)[::3],
        S(big, 1), *empties(), *WRONG, bad("", nothing(0))
    ] for name in ("amax", "amin")},
    **{name: [
        *over(distinct, False), *each(DTYPES, distinct, 1), S(special, 1), *long(**shared), S(big, 0),
        S(below(3, 4, 7).astype(np.float32), 1), S(apart(10_007, 3), 0), *empties(), *WRONG,
        bad("", nothing(0, 2), 0)
    ] for name in ("argmax", "argmin")},
    **{name: [
        S(x), S(np.round(normal(6, 7, 5), 1)), *[S(np.round(normal(6, 7, 5), 1), d) for d in (0, 1, -1)],
        S(x, 1, keepdim=True).but(alone=True),
        S(distinct, distinct[::-1].copy()), *each(DTYPES[:-1], distinct, 1), S(special, 1).but(grad=False),
        *empties(), *WRONG
    ] for name in ("max", "min")},
    "aminmax": [
        S(distinct), S(distinct, dim=1), S(distinct, dim=0, keepdim=True), S(special, dim=1).but(grad=False),
        *each(("int32", "int64", "uint8"), distinct, dim=1), *long(**shared)
    ],
    "cumsum": [
        *[S(x, d) for d in (0, 1, -1)], *each(DTYPES, small, 0),
        no_axes.but(args=(np.array(3.5, np.float32), 0)), S(big, 1),
        *[S(normal(3, n), -1).but(rtol=1e-4, atol=2e-3, second=False, **shared) for n in (1, 300, 9001)],
        *[S(normal(*n), d).but(rtol=1e-4, atol=1e-3, grad=False, **shared)
          for n, d in (((300, 40), 0), ((2, 70, 33), 1))],
        S(below(18, 7, 9000) - 9, 0).but(layouts=("contiguous",)), S(small, 0, dtype="int64").but(grad=False),
        S((normal(2, 5000) + 1j * normal(2, 5000)).astype(np.complex64), 1).but(
            rtol=1e-4, atol=2e-3, grad=False, layouts=("contiguous",), **shared),
        *empties(False), *WRONG,
        *NONE
    ],
    **{
        name: [
            *[S(a, d) for a, d in ((distinct, 0), (distinct, 2), (holed, 1))],
            S(ties, 1), S(np.float32(2), 0),
            S(np.array([0.0, -0.0, -np.inf, 0.0, np.nan, 1.0, np.nan], np.float32), 0),
            S(np.array([-np.inf, 2**40, np.inf, -(2.0**40)], np.float32), 0),
            S(np.array([3, -(2**62), 3, 2**62, 2**62 - 1]), 0), S(normal(2, 3000), 1).but(**FLAT),
            *each(DTYPES[:-1], distinct, 1), S(nothing(0, 3), 0).but(grad=False), *WRONG,
            S(normal(300, 40), 0).but(grad=False, **shared),
        ]
        for name in ("cummax", "cummin")
    },
    "logcumsumexp": [
        *[S(x, d) for d in (0, 1, -1)], S(100 * x, 1), S(np.float32(2), 0), S(normal(2, 3000), 1).but(**FLAT,
        second=False, rtol=1e-4),
        S(np.array([[-np.inf, -np.inf, 3, -np.inf], [1, np.inf, 2, np.inf], [0, np.nan, 1, -np.inf]],
        np.float32), 1).but(grad=False),
        *each(("float16", "bfloat16"), small, 1), S(nothing(0, 3), 0).but(grad=False), *WRONG,
        S(normal(300, 40), 0).but(rtol=1e-4, grad=False, **shared),
    ],
    "cumprod": [
        *[S(uniform(0.5, 1.5, 3, 4, 5), d) for d in (0, 1, -1)], S(zeros, 1).but(rtol=1e-4),
        S(zeros, 0).but(rtol=1e-4),
        *each(DTYPES[:-1], np.sign(small) * 2, 1), S(np.array([3, -2, 2**33, 5]), 0),
        S(1 + normal(2, 9001) / 100, -1).but(rtol=1e-3, grad=False, **shared),
        S(1 + normal(3, 300) / 100, -1).but(rtol=1e-4, grad=False, **shared), *empties(False), *WRONG, *NONE
    ],
    **{
        name: [
            S(distinct), S(holed), *[S(a, d, k) for a in (distinct, holed) for d in (0, 1,
        -1) for k in (False, True)],
            *[S(lambda t, x, name=name: getattr(x, name)(-1)[0], a) for a in (many, many_holed)],
            no_axes, no_axes.but(args=(*no_axes.args, 0)),
            S(ties), *each(DTYPES[:-1], distinct, 1), S(nothing(0)).but(grad=False),
            bad("no elements", nothing(2, 0), 1), *WRONG
        ]
        for name in ("median", "nanmedian")
    },
    "kthvalue": [
        # Which of equal values is named is another in PyTorch.
        *[S(kth, tall, k=k).but(grad=False) for k in (1, 700, 1500)],
        S(apart(2, 1100), 500).but(layouts=("contiguous",)),
        *each(DTYPES[:-1], lambda t, x: x.kthvalue(800)[0], many / 10),
        S(distinct, 2), S(distinct, 3, 0, True), S(holed, 3, 1),
        no_axes.but(args=(*no_axes.args, 1)),
        *each(DTYPES[:-1], distinct.argsort(-1).astype(np.float32), 2),
        bad("k is 6", x, 6, 1), bad("k is 0", x, 0), bad("no elements",
        nothing(2, 0), 1)],
    # Which of equal values is named is another in PyTorch.
    "mode": [
        *[
            S(lambda t, x, d=d: (x.mode(d)[0], x.gather(d, x.mode(d, True)[1])), a).but(grad=False)
            for d in (0, -1)
            for a in (np.round(2 * normal(4, 31)), below(4, 3, 50), ties, x[0] > 0)
        ],
        no_axes, S(distinct), S(distinct, 0, True), bad("no elements", nothing(2, 0), 1)
    ],
    **{
        name: [
            *[S(a, 0.3, d, k, interpolation=way) for way in ("linear", "lower", "higher", "midpoint",
        "nearest")
                for a, d, k in ((distinct, 1, False), (holed, -1, True))],
            S(distinct, np.array([0, 0.25, 1], np.float32), 0), S(distinct, np.array([0.5], np.float32)),
            S(distinct, 0.7, keepdim=True), S(holed, np.array([0.5, 0.1], np.float32), 0, True),
        no_axes.but(args=(*no_axes.args, 0.5)),
            bad("between 0 and 1", x, 1.5), bad("float32 or float64", below(9, 3), 0.5),
        bad("interpolation is one of", x, 0.5, interpolation="cubic").but(error=TypeError)
        ]
        for name in ("quantile", "nanquantile")
    },
    "msort": [S(distinct), S(holed), no_axes],
    **{name: [*over(holed), *over(x), S(special, 1).but(grad=False), no_axes] for name in ("nansum",
        "nanmean")},
    "diff": [
        S(x), S(x, 2, 1), S(x, 0), S(x, 9, 0), S(x, 0, prepend=x),
        S(x, prepend=normal(3, 5, 1), append=normal(3, 5, 2)),
        *each(DTYPES, small, 1, 0),
        bad("at least one axis", *no_axes.args), bad("must not be negative", x, -1),
        *[bad("out of range", x, 1, d) for d in (3, -4)]
    ],
    **{
        name: [S(x), S(x, dx=0.5, dim=1), S(x, normal(4)), S(x, normal(3, 5, 4)), S(x, normal(5), dim=1),
        S(nothing(2, 0)),
            bad("x has 3 elements", x, normal(3))]
        for name in ("trapezoid", "cumulative_trapezoid")
    },
    "gradient": [
        S(x), S(x, spacing=None), S(x, spacing=0.5), S(x, dim=1, edge_order=2),
        S(x, dim=(0, -1), spacing=(2.0, 3.0)),
        S(lambda t, x, a, b: t.gradient(x, spacing=(a, b), dim=(1, 2)), x, np.cumsum(uniform(1, 2, 5)),
        np.cumsum(uniform(1, 2, 4))),
        S(lambda t, x, a: t.gradient(x, spacing=(a,), dim=1, edge_order=2), x, np.cumsum(uniform(1, 2, 5))),
        bad("at least 3", x[:2], dim=0, edge_order=2), bad("1 or 2, not 3", x, edge_order=3),
        bad("2 spacings for 3", x, spacing=(1.0, 2.0)), bad("name one twice", x, dim=(1, -2))
    ],
    "dist": [S(x, normal(5, 4)), S(x, normal(3, 5, 4), 1), S(x, normal(3, 5, 4), np.inf), S(x, x[:1], 3)],
    "renorm": [S(x, 2, 0, 1.5), S(x, 1, 1, 2.0), S(x, 3, -1, 100.0), S(nothing(2, 3), 2, 0,
        1.0).but(grad=False),
        bad("at least two axes", x[0, 0], 2, 0, 1), bad("must be positive", x, 0, 0, 1.0)],
    "Tensor.sum_to_size": [S(lambda t, x: (x.sum_to_size(5, 1), x.sum_to_size((3, 5, 4)),
        x.sum_to_size(1, 1, 1), (x > 0)[0, 0, 0].sum_to_size(())), x),
        bad("does not broadcast", lambda t, x: x.sum_to_size(2, 4), x)]
}  # fmt: skip

Z = (normal(3, 4) + 1j * normal(3, 4)).astype(np.complex64)
for _name in ("sum", "mean", "prod"):
    SAMPLES[_name] += [S(Z, 1).but(layouts=("contiguous",), atol=3e-5)]
