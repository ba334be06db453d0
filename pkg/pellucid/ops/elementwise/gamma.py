"""The gamma function and its kin, element by element: logarithm, derivatives, incomplete ones, zeta.

References compute in float64: recurrences up to where asymptotic series hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...autograd.formulas import refused
from ...errors import RangeError
from ...op.declaration import elementwise, function, op
from ...op.families import binary, of_operands, of_tensors, unary
from ...op.rules import float_only, real_floating
from ...tensors.tensor import Tensor

_lgamma = np.vectorize(
    lambda x: math.inf if x <= 0 and (x == -math.inf or x == math.floor(x)) else math.lgamma(x),
    otypes=[np.float64],
)


def _bernoulli_sum(s, q):
    """Hurwitz's zeta function of large q by Euler and Maclaurin's sum (DLMF 2.10.1)."""
    total = q / (s - 1) + 0.5
    term = s / q
    for k, factor in enumerate((12, -720, 30240, -1209600, 47900160, -1307674368000 / 691, 74724249600), 1):
        total = total + term / factor
        term = term * (s + 2 * k - 1) * (s + 2 * k) / q**2
    return q**-s * total


def _zeta(s, a):
    s, a = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(a, np.float64))
    part = a - np.floor(a)
    far = (a < -10) & (part > 0)
    turn = np.where(s % 2 == 1, -1, 1)
    total = np.where(far, turn * (_bernoulli_sum(s, 41 - part) - _bernoulli_sum(s, 31 - a)), 0)
    for k in range(30):
        total += np.where(far, turn * ((11 - part + k) ** -s - (1 - a + k) ** -s), 0)
    q = np.where(far, part - 10, np.maximum(a, -10))
    for _ in range(40):
        total, q = np.where(q < 30, total + q**-s, total), np.where(q < 30, q + 1, q)
    total += _bernoulli_sum(s, q)
    total = np.where(((a <= 0) & (s != np.floor(s))) | (s < 1), np.nan, total)
    total = np.where((s == 1) | ((s > 1) & (a <= 0) & (part == 0)), np.inf, total)
    return np.where(np.isnan(a) | np.isnan(s), np.nan, total)


def _digamma(x):
    x = np.asarray(x, np.float64)
    y = np.where(x < 0, 1 - x, x)
    total = np.where(x < 0, -np.pi / np.tan(np.pi * (x - np.round(x))), 0)
    for _ in range(20):
        total, y = np.where(y < 20, total - 1 / y, total), np.where(y < 20, y + 1, y)
    z = 1 / y**2
    total += np.log(y) - 0.5 / y - z / 12 + z**2 / 120 - z**3 / 252 + z**4 / 240 - z**5 / 132
    pole = (x < 0) & ((x == np.floor(x)) | np.isinf(x))
    return np.where(x == 0, np.copysign(np.inf, -x), np.where(pole, np.nan, total))


def _polygamma(n, input):
    if n == 0:
        return _digamma(input).astype(input.dtype)
    x = np.asarray(input, np.float64)
    if n > 1:
        return ((-1) ** (n + 1) * math.exp(math.lgamma(n + 1)) * _zeta(n + 1, x)).astype(input.dtype)
    low = x < 0.5
    turned = (np.pi / np.sin(np.pi * (x - np.round(x)))) ** 2 - _zeta(2, 1 - np.where(low, x, 0))
    found = np.where(low, turned, _zeta(2, np.where(low, 1, x)))
    return np.where(x == np.inf, 0, found).astype(input.dtype)


def _incomplete(upper: bool):
    """The regularized incomplete gamma function: its series (DLMF 8.7.1), or its fraction (8.9.2)."""

    def reference(a, x):
        kind = np.result_type(a, x)
        a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
        shape = a.shape
        out = np.array([_share(*pair, upper) for pair in zip(a.ravel(), x.ravel(), strict=True)], np.float64)
        return out.reshape(shape).astype(kind if kind.kind == "f" else np.float32)

    return reference


def _share(a: float, x: float, upper: bool) -> float:
    if not (a >= 0 and x >= 0) or a == x == 0 or (math.isinf(a) and math.isinf(x)):
        return math.nan
    if x == 0 or math.isinf(a) or a == 0 or math.isinf(x):
        return float(upper) if x == 0 or math.isinf(a) else 1.0 - upper
    density = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    if x < a + 1:
        term = total = 1.0
        n = 0
        while term > 1e-17 * total:
            n += 1
            term *= x / (a + n)
            total += term
        return 1 - density * total if upper else density * total
    b = x + 4001 - a
    for n in range(2000, 0, -1):
        b = x + 2 * n - 1 - a + n * (a - n) / b
    return density * a / b if upper else 1 - density * a / b


lgamma = unary(
    "lgamma", "lgamma_of(input)", lambda x: _lgamma(x).astype(x.dtype), lambda g, input: g * digamma(input),
    "Logarithm of the size of the gamma function.", at=4.5, dtype=real_floating,
)  # fmt: skip
digamma = unary(
    "digamma", "digamma_of(input)", lambda x: _digamma(x).astype(x.dtype),
    lambda g, input: g * polygamma(1, input), "Derivative of `lgamma`.", at=4.5, dtype=real_floating,
)  # fmt: skip


def _order_grad(g, n, input) -> Tensor:
    return g * polygamma(n + 1, input)


def _order_types(call):
    if not 0 <= call["n"] <= 170:  # past that its factorial is infinite
        raise RangeError(f"n must be 0 to 170, but is {call['n']}.")
    return real_floating(call)


@op(
    dtype=_order_types,
    kernel=elementwise(lambda call: f"polygamma_of({float(call['n'])}, input)", i32=False),
    reference=_polygamma,
    grad={"input": _order_grad},
)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The derivative of `digamma` of order n.

    Args:
        n: not negative.
        input: any real dtype; integers become the default float.
    """


def _of_order(input: Tensor, n: int) -> Tensor:
    """`polygamma` of order n."""
    return polygamma(n, input)


_of_order.__name__ = "polygamma"
function(exports=None, method=True, in_place=True, ours="the method, with the arguments exchanged")(_of_order)


@function(method=True, in_place=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Logarithm of the gamma function of p dimensions."""
    if not 1 <= p <= 1024:
        raise RangeError(f"mvlgamma: p must be 1 to 1024, but is {p}.")
    total = lgamma(input)
    for k in range(1, p):
        total = total + lgamma(input - k / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


def _density(g, input, other):
    return g * ((input - 1) * other.log() - other - input.lgamma()).exp()


def _refused(name: str) -> Callable:
    return refused(name, "Its second argument has one; detach the first.")


def _share_of(name: str, upper: bool, sentence: str):
    """Declare a share of the gamma function."""
    return binary(
        name, f"{name}_of(input, other)", _incomplete(upper),
        {
            "input": _refused(name),
            "other": lambda g, input, other: _density(-g if upper else g, input, other),
        },
        sentence, dtype=float_only, takes="floating point", form=of_tensors, at=(2.0, 1.5),
    )  # fmt: skip


igamma = _share_of("igamma", False, "The lower share of the gamma function of ``input``, up to ``other``.")
igammac = _share_of("igammac", True, "The upper share of the gamma function of ``input``, from ``other`` on.")
zeta = binary(
    "zeta", "zeta_of(input, other)", lambda s, a: _zeta(s, a).astype(np.result_type(s, a)),
    {
        "input": _refused("zeta"), "other": lambda g, input, other: g * -input * zeta(input + 1, other),
    },
    "Hurwitz's zeta function: the sum of ``(k + other) ** -input`` over all k from 0.", form=of_operands,
    at=(2.0, 1.0), exports="special", dtype=real_floating,
    aten=("special_zeta.default", "special_zeta.self_scalar", "special_zeta.other_scalar"),
)  # fmt: skip
