"""Orthogonal polynomials, element by element, each by its recurrence of three terms (DLMF 18.9(i))."""

from __future__ import annotations

import numpy as np

from ...autograd.formulas import refused
from ...op.families import binary
from ...op.rules import real_floating
from ...tensors.tensor import Tensor

# The largest degree: of one past it the result is NaN, as that of the kernel.
_MOST = 65535


def of_degree(input: Tensor | float, n: Tensor | float) -> Tensor: ...


def _polynomial(name: str, first: str, u: str, v: str, c: int, d: int, e: int, sentence: str):
    """Declare the polynomials 1, ``first``, ..., where ``1 + e k`` times the next one is
    ``(u + v k) p[k] - (c + d k) p[k - 1]``; first, u and v are expressions of x, in WGSL as in Python."""
    texts = [text.replace("x", "input") for text in (first, u, v)]
    functions = [eval(f"lambda x: {text}") for text in (first, u, v)]

    def reference(input, n):
        kind = np.result_type(input, n)
        x, degree = np.broadcast_arrays(np.asarray(input, np.float64), np.trunc(np.asarray(n, np.float64)))
        past = degree > _MOST
        degree = np.where(past, 0, degree)
        with np.errstate(all="ignore"):
            p, a, b = (f(x) for f in functions)
            before, found = np.ones_like(x), np.where(degree < 1, 1.0, p)
            for k in range(1, int(np.nanmax(degree, initial=0))):
                following = ((a + b * k) * found - (c + d * k) * before) / (1 + e * k)
                before, found = (
                    np.where(k < degree, *pair) for pair in ((found, before), (following, found))
                )
        found = np.where(past, np.nan, found)
        return np.where(degree >= 0, found, 0).astype(kind if kind.kind == "f" else np.float32)

    no = refused(name, "Detach what it is given.")
    return binary(
        name, f"three_terms(n, {', '.join(texts)}, {c}.0, {d}.0, {e}.0)", reference, {"input": no, "n": no},
        f"{sentence} Of a negative degree it is 0.", form=of_degree, dtype=real_floating,
        at=(0.5, 3.0), exports="special",
        aten=(f"special_{name}.default", f"special_{name}.x_scalar(x, n)", f"special_{name}.n_scalar(x, n)"),
    )  # fmt: skip


def _chebyshev(kind: str, ordinal: str, first: str):
    sentence = f"Chebyshev's polynomial of the {ordinal} kind and degree n."
    name = f"chebyshev_polynomial_{kind}"
    return (
        _polynomial(name, first, "2.0 * x", "0.0", 1, 0, 0, sentence),
        _polynomial(
            f"shifted_{name}", first.replace("x", "(2.0 * x - 1.0)"), "4.0 * x - 2.0", "0.0", 1, 0, 0,
            sentence.replace("Chebyshev's", "The shifted Chebyshev"),
        ),
    )  # fmt: skip


chebyshev_polynomial_t, shifted_chebyshev_polynomial_t = _chebyshev("t", "first", "x")
chebyshev_polynomial_u, shifted_chebyshev_polynomial_u = _chebyshev("u", "second", "2.0 * x")
chebyshev_polynomial_v, shifted_chebyshev_polynomial_v = _chebyshev("v", "third", "2.0 * x - 1.0")
chebyshev_polynomial_w, shifted_chebyshev_polynomial_w = _chebyshev("w", "fourth", "2.0 * x + 1.0")
hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h", "2.0 * x", "2.0 * x", "0.0", 0, 2, 0,
    "The physicists' Hermite polynomial of degree n.",
)  # fmt: skip
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he", "x", "x", "0.0", 0, 1, 0, "The probabilists' Hermite polynomial of degree n."
)
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l", "1.0 - x", "1.0 - x", "2.0", 0, 1, 1, "Laguerre's polynomial of degree n."
)
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p", "x", "x", "2.0 * x", 0, 1, 1, "Legendre's polynomial of degree n."
)
