"""Bessel and Airy functions, element by element.

References are one integral: with ``s = sqrt(2 z) sinh(t / 2)`` that of DLMF 10.32.9 for ``exp(z) K(z)`` has
the factor ``exp(-s^2)``, and the trapezoidal rule gives all digits. J and Y are K on the imaginary axis
(10.27.8).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...op.families import unary
from ...op.rules import real_floating
from .comparison import where

_STEP = 0.1
_NODES = _STEP * np.arange(66)


def _scaled_k(order: float, z):
    """``exp(z) K(z)`` of z whose square root is 1 or more."""
    root = np.sqrt(2 * z)[..., None]
    with np.errstate(all="ignore"):
        values = np.exp(-(_NODES**2)) * np.cosh(2 * order * np.arcsinh(_NODES / root))
        values = values / np.sqrt(root**2 + _NODES**2)
    return 2 * _STEP * (values.sum(-1) - values[..., 0] / 2)


def _series(order: int, x, sign: int):
    """The sum of ``(sign x^2 / 4)^k / (k! (k + order)!)``, and that with harmonic numbers as factors."""
    term = np.ones_like(x) / math.factorial(order)
    harmonic = 2 * -np.euler_gamma + order
    plain, weighted = np.zeros_like(x), np.zeros_like(x)
    for k in range(40):
        plain, weighted = plain + term, weighted + term * harmonic
        term = term * sign * x * x / (4 * (k + 1) * (k + 1 + order))
        harmonic += 1 / (k + 1) + 1 / (k + 1 + order)
    return plain, weighted


def _apart(
    near: Callable, far: Callable, limit: float, negative: float = math.nan, pole: float | None = None
) -> Callable:
    """A reference: below the limit one formula, beyond it another; of negative numbers even, odd or none;
    at 0 a pole."""

    def reference(input):
        x = np.asarray(input, np.float64)
        a = np.abs(x)
        with np.errstate(all="ignore"):
            found = np.where(a <= limit, near(np.minimum(a, limit)), far(np.maximum(a, limit)))
            found = np.where(np.signbit(x), found * negative, found)
            found = found if pole is None else np.where(x == 0, pole, found)
        return np.where(np.isnan(x), x, found).astype(np.asarray(input).dtype)

    return reference


def _wave(order: int, is_real: bool):
    def far(x):
        found = -2 / np.pi * (1j, 1)[order] * np.exp(1j * x) * _scaled_k(order, -1j * x)
        return found.real if is_real else found.imag

    return far


def _log_part(x, order: int, sign: int):
    """The logarithm's part and the rest of K, or of Y times -pi / 2 (DLMF 10.31.1, 10.8.1)."""
    plain, weighted = _series(order, x, sign)
    return (x / 2) ** order * (np.log(x / 2) * plain - weighted / 2)


def _scaled_i(order: int, x):
    angles = np.pi * np.arange(400) / 400
    small = np.minimum(x, 700)[..., None]
    values = np.exp(small * (np.cos(angles) - 1)) * np.cos(order * angles)
    ends = (values[..., 0] + (-1) ** order * np.exp(-2 * small[..., 0])) / 2
    near = (values.sum(-1) - values[..., 0] + ends) / 400
    m, total, term = 4 * order**2, 1.0, 1.0
    for k in range(1, 8):
        term = term * -(m - (2 * k - 1) ** 2) / (k * 8 * np.maximum(x, 700))
        total = total + term
    return np.where(x < 700, near, total / np.sqrt(2 * np.pi * x))


def _airy_near(x):
    """The sum of DLMF 9.4.1."""
    term, next_term, total = 0.355028053887817239, -0.258819403792806798 * x, 0
    for k in range(0, 60, 3):
        total = total + term + next_term
        term = term * x**3 / ((k + 2) * (k + 3))
        next_term = next_term * x**3 / ((k + 3) * (k + 4))
    return total


def _airy(input):
    x = np.asarray(input, np.float64)
    a = np.maximum(np.abs(x), 2)
    zeta = 2 / 3 * a**1.5
    with np.errstate(all="ignore"):
        right = np.sqrt(a / 3) / np.pi * np.exp(-zeta) * _scaled_k(1 / 3, zeta)
        third = -2j / np.pi * np.exp(1j * zeta) * _scaled_k(1 / 3, -1j * zeta)
        left = np.sqrt(a / 3) * third.real
        far = np.where(np.isinf(x), np.nan, np.where(x > 0, right, left))
        near = _airy_near(np.clip(x, -2, 2))
    return np.where(np.isnan(x), x, np.where(np.abs(x) <= 2, near, far)).astype(np.asarray(input).dtype)


def _special(name: str, wgsl: str, reference: Callable, sentence: str, grad: Callable | None = None):
    return unary(
        name, f"{wgsl}(input)", reference, grad, sentence, dtype=real_floating, exports="special", at=1.5,
        aten=f"special_{name}.default",
    )  # fmt: skip


def _first_kind(name: str, wgsl: str, order: int, sentence: str):
    near, far = (lambda x: (x / 2) ** order * _series(order, x, -1)[0]), _wave(order, True)
    return _special(name, wgsl, _apart(near, far, 2, (-1) ** order), sentence)


def _second_kind(name: str, wgsl: str, order: int, sentence: str):
    def near(x):
        return 2 / np.pi * (_log_part(x, order, -1) - (1 / x if order else 0))

    return _special(name, wgsl, _apart(near, _wave(order, False), 2, pole=-math.inf), sentence)


def _modified(name: str, wgsl: str, order: int, scaled: bool, sentence: str, grad: Callable):
    def found(x):
        # The series leaves 1e-17 at zero.
        return np.where((x == 0) & (order > 0), 0, _scaled_i(order, x) * (1 if scaled else np.exp(x)))

    return _special(name, wgsl, _apart(found, found, math.inf, (-1) ** order), sentence, grad)


def _modified_second(name: str, wgsl: str, order: int, scaled: bool, sentence: str):
    def near(x):
        found = _log_part(x, order, 1)
        return (1 / x + found if order else -found) * (np.exp(x) if scaled else 1)

    def far(x):
        return np.where(np.isinf(x), 0, _scaled_k(order, x) * (1 if scaled else np.exp(-x)))

    return _special(name, wgsl, _apart(near, far, 2, pole=math.inf), sentence)


def _slope(input, formula: Callable):
    """What a formula gives for numbers that are not tiny, and 1/2 for others, whose digits it loses."""
    tiny = (input.abs() > np.finfo(np.float32).eps).logical_not()
    return where(tiny, 0.5, formula(input.masked_fill(tiny, 1.0)))


def _i0(x):
    return _scaled_i(0, x) * np.exp(x)


i0 = unary(
    "i0", "i0_of(input)", _apart(_i0, _i0, math.inf, 1),
    lambda g, input: g * i1(input), "Modified Bessel function of the first kind, of order 0.",
    dtype=real_floating, at=1.5,
)  # fmt: skip
i0e = _modified(
    "i0e", "i0e_of", 0, True, "``exp(-|input|)`` times `i0`.",
    lambda g, input, out: g * (i1e(input) - input.sgn() * out)
)  # fmt: skip
i1 = _modified(
    "i1", "i1_of", 1, False, "Modified Bessel function of the first kind, of order 1.",
    lambda g, input, out: g * _slope(input, lambda x: i0(x) - out / x)
)  # fmt: skip
i1e = _modified(
    "i1e", "i1e_of", 1, True, "``exp(-|input|)`` times `i1`.",
    lambda g, input, out: g * _slope(input, lambda x: i0e(x) - out * (x.sgn() + 1 / x))
)  # fmt: skip
bessel_j0 = _first_kind("bessel_j0", "j0_of", 0, "Bessel function of the first kind, of order 0.")
bessel_j1 = _first_kind("bessel_j1", "j1_of", 1, "Bessel function of the first kind, of order 1.")
bessel_y0 = _second_kind("bessel_y0", "y0_of", 0, "Bessel function of the second kind, of order 0.")
bessel_y1 = _second_kind("bessel_y1", "y1_of", 1, "Bessel function of the second kind, of order 1.")
modified_bessel_i0 = _special("modified_bessel_i0", "i0_of", i0.op.reference, "`i0` without a derivative.")
modified_bessel_i1 = _special("modified_bessel_i1", "i1_of", i1.op.reference, "`i1` without a derivative.")
modified_bessel_k0 = _modified_second(
    "modified_bessel_k0", "k0_of", 0, False, "Modified Bessel function of the second kind, of order 0."
)
modified_bessel_k1 = _modified_second(
    "modified_bessel_k1", "k1_of", 1, False, "Modified Bessel function of the second kind, of order 1."
)
scaled_modified_bessel_k0 = _modified_second(
    "scaled_modified_bessel_k0", "k0e_of", 0, True, "``exp(input)`` times `modified_bessel_k0`."
)
scaled_modified_bessel_k1 = _modified_second(
    "scaled_modified_bessel_k1", "k1e_of", 1, True, "``exp(input)`` times `modified_bessel_k1`."
)
spherical_bessel_j0 = _special(
    "spherical_bessel_j0", "spherical_j0_of",
    lambda input: np.where(np.isinf(input), 0, np.sinc(input / np.pi)).astype(input.dtype),
    "Spherical Bessel function of the first kind, of order 0: ``sin(input) / input``.",
)  # fmt: skip
airy_ai = _special("airy_ai", "airy_ai_of", _airy, "Airy's function Ai.")
