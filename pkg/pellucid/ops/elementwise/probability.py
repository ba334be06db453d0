"""Functions of probabilities and of the normal distribution, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...op.families import unary
from ...op.rules import real_floating
from .functions import erf_of, erfc_of

_ROOT_2, _ROOT_PI = math.sqrt(2), math.sqrt(math.pi)


def _own_type(function: Callable) -> Callable:
    """A reference that computes in float64."""

    def reference(input):
        with np.errstate(all="ignore"):
            return function(np.asarray(input, np.float64)).astype(np.asarray(input).dtype)

    return reference


def _erfcx(x):
    """``exp(x^2) erfc(x)``, far out by its fraction (DLMF 7.9.1)."""
    far = np.zeros_like(x)
    large = np.maximum(x, 5)
    for n in range(60, 0, -1):
        far = n / 2 / (large + far)
    return np.where(x < 5, np.exp(x * x) * erfc_of(x), 1 / _ROOT_PI / (large + far))


def _quantile(q):
    """y with ``erfc(y) == q`` and q at most 1, by Newton's steps on the logarithm."""
    y = np.sqrt(np.maximum(-np.log(q * (2 - q)), 0))
    for _ in range(60):
        scaled = _erfcx(y)
        y = y + (np.log(scaled) - y * y - np.log(q)) * scaled * _ROOT_PI / 2
    return np.where(q == 0, np.inf, np.where(q == 1, 0, y))


def _erfinv(x):
    near = np.clip(x, -0.5, 0.5)
    y = near.copy()
    for _ in range(20):
        y = y - (erf_of(y) - near) * _ROOT_PI / 2 * np.exp(y * y)
    far = np.copysign(_quantile(1 - np.abs(np.where(np.abs(x) <= 1, x, 0))), x)
    return np.where(np.abs(x) <= 1, np.where(np.abs(x) < 0.5, y, far), np.nan)


def _ndtri(p):
    q = np.minimum(p, 1 - p)
    known = (p >= 0) & (p <= 1)
    y = np.sqrt(2) * np.copysign(_quantile(2 * np.where(known, q, 0.25)), p - 0.5)
    return np.where(known, y, np.nan)


def _log_ndtr(x):
    low = np.minimum(x, -1)
    return np.where(
        x < -1, np.log(_erfcx(-low / _ROOT_2) / 2) - low**2 / 2, np.log1p(-erfc_of(x / _ROOT_2) / 2)
    )


def _special(name: str, reference: Callable, grad: Callable, sentence: str):
    return unary(
        name, f"{name}_of(input)", _own_type(reference), grad, sentence, exports="special",
        aten=f"special_{name}.default", dtype=real_floating,
    )  # fmt: skip


erfinv = unary(
    "erfinv", "erfinv_of(input)", _own_type(_erfinv),
    lambda g, out: g * (0.5 * _ROOT_PI * (out * out).exp()), "The inverse of `erf`.", dtype=real_floating,
)  # fmt: skip
erfcx = _special(
    "erfcx", _erfcx, lambda g, input, out: g * (2 * input * out - 2 / _ROOT_PI),
    "``exp(input^2) * erfc(input)``, without underflow.",
)  # fmt: skip
ndtr = _special(
    "ndtr", lambda x: erfc_of(-x / _ROOT_2) / 2,
    lambda g, input: g * ((-0.5 * input * input).exp() / math.sqrt(2 * math.pi)),
    "The share of the standard normal distribution below the value.",
)  # fmt: skip
ndtri = _special(
    "ndtri", _ndtri, lambda g, out: g * (math.sqrt(2 * math.pi) * (out * out / 2).exp()),
    "The inverse of `ndtr`.",
)  # fmt: skip
log_ndtr = _special(
    "log_ndtr", _log_ndtr,
    lambda g, input: g / erfcx(input * (-1 / _ROOT_2)) * math.sqrt(2 / math.pi),
    "Logarithm of `ndtr`, without underflow.",
)  # fmt: skip
entr = _special(
    "entr", lambda x: np.where(x == 0, 0, np.where(x < 0, -np.inf, -x * np.log(np.abs(x)))),
    lambda g, input: g * (-(1 + input.log())), "``-input * log(input)``, 0 at 0.",
)  # fmt: skip
