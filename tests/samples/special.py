"""Samples of special functions. PyTorch's of float32 are as accurate as ours, and of Bessel's less."""

import numpy as np

from samples.sample import WHOLE, S, Sample, bad, below, each, normal, nothing, uniform

x, chance, positive = normal(3, 5), uniform(0.05, 0.95, 3, 5), uniform(0.1, 9, 3, 5)
# Where functions change their way to compute, and where they have no value.
EDGES = np.array(
    [
        0,
        -0.0,
        1,
        -1,
        0.5,
        -0.5,
        2,
        -2.25,
        3,
        4.5,
        7.75,
        -7.75,
        8.25,
        12.5,
        -12.5,
        20.5,
        45,
        1e-6,
        np.inf,
        np.nan,
    ],
    np.float32,
)
HALVES = ("float16", "bfloat16")
COMPLEX = [bad("complex", x.astype("complex64")).but(devices=("cpu",))]


def special(
    array: np.ndarray, *samples: Sample, halves: bool = False, rtol: float = 1e-5, **options
) -> list[Sample]:
    """One tensor, other dtypes, no elements, edges, and these."""
    rows = [S(array), S(nothing(0, 3)), S(EDGES).but(grad=False, layouts=("contiguous",))]
    types = each((*(HALVES if halves else ()), "int64", "uint8", "bool"), array)
    return [*[s.but(rtol=rtol, **options) for s in rows], *types, *samples, *COMPLEX]


SHARES = np.array([0, 2, np.inf, -1], np.float32)
TINY = np.array([1e-30, 1e-10, 1e-4], np.float32)
POLES = np.array([-0.5, -12.25, -40.5, 0, -2], np.float32)
DEGREES = np.array([0, 1, 2, 3, 4, 5, 7, 11, 20, -1], np.float32)
POINTS = np.array([0, 1, -1, 0.5, -0.3, 0.9, 1.5, -2], np.float32)
POLYNOMIAL = [
    S(POINTS.repeat(DEGREES.size), np.tile(DEGREES, POINTS.size)).but(grad=False, rtol=3e-5, atol=3e-5),
    S(x[:, :1], DEGREES).but(grad=False, rtol=1e-4, atol=1e-4), S(x, 4).but(grad=False),
    S(0.25, DEGREES).but(grad=False),
    *each(("int64", "uint8"), x, 3), bad("do not broadcast", x, normal(4)),
]  # fmt: skip
LARGE = uniform(20, 90, 3, 5)
SHARE = [
    S(positive, uniform(0.1, 15, 3, 5)).but(grad=False), S(positive, chance).but(grad=False),
    S(LARGE, LARGE[::-1].copy()).but(grad=False, rtol=5e-5),
    S(lambda t, a, x: t.igamma(a.detach(), x) + t.special.gammaincc(a.detach(), 2 * x), positive,
        positive[::-1].copy()),
    S(EDGES[:-1].repeat(4), np.tile(SHARES, EDGES.size - 1)).but(grad=False),
    *each(HALVES, positive, chance), bad("takes floating-point", below(9, 3), below(9, 3)),
]  # fmt: skip

SAMPLES: dict[str, list[Sample]] = {
    "lgamma": special(positive, S(x), halves=True),
    "digamma": special(positive, S(x), halves=True),
    "polygamma": [*[S(n, positive).but(rtol=3e-5) for n in (0, 1, 2, 3, 4)],
        *[S(n, EDGES).but(grad=False) for n in (0, 3)], bad("must be 0 to 170", -1, x)],
    "Tensor.polygamma": [S(lambda t, x: (2 * x).polygamma_(2), positive).but(rtol=3e-5)],
    "mvlgamma": [*[S(positive + 2, p).but(rtol=3e-5) for p in (1, 3, 5)], S(below(9, 3) + 3, 2),
        bad("p must be 1 to 1024", x, 0)],
    "igamma": SHARE,
    "igammac": SHARE,
    "special.zeta": [
        S(positive + 1.1, uniform(0.5, 9, 3, 5)).but(grad=False), S(2, positive),
        S(positive, 2.5).but(grad=False),
        S(np.array([2, 3, 5, 2.5, 1, 0.5], np.float32).repeat(5),
            np.tile(POLES, 6)).but(grad=False, rtol=3e-5)
    ],
    "i0": special(x, S(9 * x), halves=True),
    "special.i0e": special(x, S(9 * x), halves=True),
    "special.i1": special(x, S(9 * x), halves=True),
    "special.i1e": special(x, S(9 * x), halves=True),
    **{f"special.{name}": special(9 * x, grad=False) for name in (
        "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0"
    )},
    "special.airy_ai": special(4 * x, atol=1e-5, grad=False),
    **{f"special.{part}modified_bessel_{name}": special(positive, grad=False) for part, name in (
        ("", "i0"), ("", "i1"), ("", "k0"), ("", "k1"), ("scaled_", "k0"), ("scaled_", "k1")
    )},
    "erfinv": special(2 * chance - 1, halves=True, rtol=3e-5),
    "special.erfcx": special(x, S(100 * positive)),
    "special.ndtr": special(x, halves=True, rtol=3e-5),
    "special.ndtri": special(chance, S(TINY).but(grad=False), rtol=3e-5),
    "special.log_ndtr": special(4 * x, rtol=3e-5),
    "special.entr": special(positive, halves=True),
    "special.xlog1py": [S(x, positive), S(x, 2), S(2, positive), *each((*HALVES, *WHOLE), x, 3),
        S(EDGES.repeat(EDGES.size), np.tile(EDGES, EDGES.size)).but(grad=False)],
    **{f"special.{shifted}chebyshev_polynomial_{kind}": POLYNOMIAL
        for shifted in ("", "shifted_") for kind in "tuvw"},
    **{f"special.{name}": POLYNOMIAL for name in (
        "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"
    )},
}  # fmt: skip
