"""Samples of ops with complex numbers, beside those of real ones: functions, variances, factors, products
that are made of parts."""

import numpy as np

from samples.sample import S, bad, normal

CLOSE = {"layouts": ("contiguous",), "atol": 3e-5, "rtol": 1e-4}


def z(*shape: int, scale: float = 1) -> np.ndarray:
    """Complex64 numbers whose parts are standard normal."""
    return (scale * (normal(*shape) + 1j * normal(*shape))).astype(np.complex64)


# All four quadrants, near 1 and far from it; no number lies on a branch cut.
W = np.array([[1 + 2j, 0.01 - 3j, 0.3 + 0.2j], [2.5 - 0.1j, -1 + 0.5j, -2 - 2j]], np.complex64)
ENDS = np.array([1e-6 + 1e-6j, 12 + 1j, -12 - 2j, 0.4 + 40j], np.complex64)
FUNCTIONS = (
    "rsqrt", "exp2", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "sinc", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "sigmoid", "nn.functional.silu", "nn.functional.tanhshrink",
)  # fmt: skip
FACTORS = {"beta": 2 - 1j, "alpha": 0.5j}
x, rows, batch = z(3, 4), z(2, 5), z(2, 3, 4)
definite = batch @ batch.conj().swapaxes(1, 2) + np.eye(3, dtype=np.complex64)

MORE = {
    **{name: [S(W).but(**CLOSE, grad=name != "nn.functional.silu")] for name in FUNCTIONS},
    **{
        name: [*[S(x, *more).but(**CLOSE) for more in ((), (1,), ((0, 1), False, True))],
            S(0 * x[:, :1], 1, correction=0).but(**CLOSE, second=False)]
        for name in ("var", "std")},
    **{name: [S(x, 1).but(**CLOSE)] for name in ("var_mean", "std_mean", "logsumexp")},
    "logcumsumexp": [S(x, 1).but(**CLOSE), S(rows - np.array([[200], [0]], np.complex64), 0).but(**CLOSE)],
    "logaddexp": [S(x, z(4)).but(**CLOSE)],
    "lerp": [S(x, z(3, 4), z(4)).but(**CLOSE), S(x, z(3, 4), 0.3).but(**CLOSE),
        bad("does not hold a complex", normal(2), normal(2), 1j)],
    "add": [S(x, z(4), alpha=2j).but(**CLOSE), bad("alpha is complex", normal(2), normal(2), alpha=2j)],
    "addcmul": [S(x, z(3, 4), z(4), value=1 - 1j).but(**CLOSE)],
    "addmm": [S(x, z(3, 2), z(2, 4), **FACTORS).but(**CLOSE),
        bad("does not hold a complex", normal(2, 2), normal(2, 2), normal(2, 2), alpha=1j)],
    "addmv": [S(z(3), x, z(4), **FACTORS).but(**CLOSE)],
    "addr": [S(x, z(3), z(4), **FACTORS).but(**CLOSE)],
    "baddbmm": [S(z(3, 5), batch, z(2, 4, 5), **FACTORS).but(**CLOSE)],
    "addbmm": [S(z(3, 5), batch, z(2, 4, 5), **FACTORS).but(**CLOSE)],
    "nn.functional.linear": [S(x, z(5, 4), z(5)).but(**CLOSE)],
    "conv1d": [S(z(2, 4, 7), z(6, 2, 3), z(6), 2, 1, 1, 2).but(**CLOSE)],
    "conv_transpose1d": [S(z(2, 4, 5), z(4, 3, 3), z(3), 2, 1).but(**CLOSE)],
    "nn.functional.unfold": [S(z(1, 2, 4, 4), 2).but(**CLOSE)],
    "rms_norm": [
        S(x, (4,)).but(**CLOSE), S(batch, (3, 4), z(3, 4), 0.1).but(**CLOSE), bad("does not end", x, (3,)),
        bad("must be equal", x, (4,), z(3)),
    ],
    "nn.functional.rms_norm": [S(x, (4,), z(4)).but(**CLOSE)],
    **{name: [bad("takes no complex", x)] for name in ("unique", "unique_consecutive")},
    "randint": [bad("must be real", 9, (2,), dtype="complex64")],
    "randint_like": [bad("must be real", x, 9)],
    "Tensor.random_": [bad("takes real", x, 9)],
    "index_fill": [S(x, 1, np.array([0, 2]), 1 + 2j).but(**CLOSE)],
    "full_like": [S(x, 2 - 1j).but(**CLOSE, grad=False)],
    "constant_pad_nd": [S(x, (1, 2), 3j).but(**CLOSE)],
    **{name: [S(definite, upper=upper).but(**CLOSE, second=False) for upper in (False, True)]
        for name in ("linalg.cholesky", "cholesky")},
    "linalg.lstsq": [S(lambda t, a, b: t.linalg.lstsq(a, b)[:2], z(5, 3), z(5, 2)).but(**CLOSE, grad=False)],
    "linalg.lu_factor": [S(z(4, 6)).but(**CLOSE), S(z(6, 4)).but(**CLOSE, grad=False)],
}  # fmt: skip
for name in FUNCTIONS:
    if name not in ("acosh", "asin", "acos", "sinc"):
        MORE[name].append(S(ENDS).but(**CLOSE, grad=False))
