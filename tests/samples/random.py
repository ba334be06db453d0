"""Samples of random numbers, which are equal on every device."""

import numpy as np

from samples.sample import S, Sample, bad, below, normal, uniform

x = uniform(0.1, 2, 10, 9)
TINY = np.array([0, 1e-3, 12, np.inf, np.nan], np.float32)


def drawn(*samples: Sample) -> list[Sample]:
    """Calls that draw numbers."""
    return [s.but(random=True, layouts=("contiguous",)) for s in samples]


SAMPLES: dict[str, list[Sample]] = {
    "rand": [
        *drawn(S(70), S(3, 5), S(40, dtype="float16"), S((2, 0)), S(65601).but(alone=True)),
        *drawn(S(9, dtype="complex64")),
        bad("must be floating point, not", 2, dtype="int64")],
    "randn": drawn(S(70), S(5, 3), S(40, dtype="bfloat16"), S(5, 3, dtype="complex64")),
    "randint": [
        *drawn(S(0, 10, (60,)), S(-5, 2**31, (20,)), S(3, (5,), dtype="int32"),
            S(2**40, 2**40 + 2**31, (9,))),
        bad("from 5 to 5 is not a range", 5, 5, (2,)).but(error=ValueError)
    ],
    "rand_like": drawn(S(x)),
    "randn_like": drawn(S(x)),
    "randperm": drawn(S(50), S(1)),
    "bernoulli": [*drawn(S(x / 3), S(x, 0.3).but(grad=False)), bad("must lie", x, 1.5)],
    "normal": [
        *drawn(S(1.0, 2.0, (40,)), S(x, 0.5), S(0.0, x), S(x[:, :1], x[0])),
        bad("give a size", 1.0, 2.0).but(error=RuntimeError), bad("must not be negative", x, -1.0)
    ],
    "randint_like": drawn(S(x, 9), S(x, -3, 9, dtype="int64")),
    "multinomial": [
        *drawn(S(x, 30, True), S(x, 5), S(x[0], 9), S(x[0], 1)),
        S(np.array([[0, 2, 0], [0, 0, 0.5]], np.float32), 4, True), S(np.array([0, 2, 0], np.float32), 1),
        bad("negative, infinite or NaN", -x, 2), bad("negative, infinite or NaN", x * np.float32(np.inf), 2),
        bad("0 positive weights", 0 * x, 1), bad("9 positive weights", x, 10),
        bad("must be positive", x, 0), bad("not floating point", below(9, 4), 2)
    ],
    **{
        f"Tensor.{name}_": [*drawn(S(normal(40)).but(args=(normal(40), *given), grad=False)),
            bad("", normal(3), *wrong)]
        for name, given, wrong in (("exponential", (2.0,), (0.0,)), ("cauchy", (1.0, 2.0), (0.0, -1.0)),
        ("log_normal", (0.0, 0.5), (0.0, -1.0)), ("geometric", (0.3,), (1.5,)),
        ("bernoulli", (0.3,), (1.5,)), ("random", (2, 30), (5, 5)))
    },
    "_standard_gamma": [*drawn(*[s.but(second=False) for s in (S(20 * x), S(x / 9), S(900 * x))],
        S(TINY).but(grad=False)), bad("not floating point", below(9, 4))],
    "poisson": [*drawn(S(20 * x), S(TINY[:3]), S(20 * x[0]).but(dtype="bfloat16", grad=False)),
        bad("not floating point", below(9, 4))],
    "binomial": [*drawn(*[s.but(grad=False) for s in (S(100 * x.round(), x / 2), S(3 * x.round(), x / 2),
        S(TINY, TINY / 9))]), bad("not floating point", below(9, 4), below(9, 4)).but(error=TypeError)],
    "rrelu": [*drawn(S(x - 1, 0.1, 0.3, True).but(grad=False)), S(x - 1), bad("Exchange them", x, 0.5, 0.1)],
    **{f"nn.functional.{name}": [S(a, 0.4, True).but(random=True, layouts=("contiguous",)), S(a, 0.4, False),
        bad("p must lie", a, 1.5).but(error=ValueError)] for name, a in (("dropout1d", x[None]),
            ("dropout2d", x[None, None]), ("dropout3d", x[None, None, None]))},
    **{f"{place}{name}": [S(a, 0.4, True).but(random=True, layouts=("contiguous",)), S(a, 1.0, True),
            S(x[0], 0.4, False)]
        for name, a in (("alpha_dropout", x), ("feature_alpha_dropout", x[None]))
        for place in ("", "nn.functional.")},
    "nn.functional.gumbel_softmax": [S(x, hard=hard).but(random=True, layouts=("contiguous",))
        for hard in (False, True)],
    **{name: [*drawn(S(x, 0.4, True), S(x, 1.0, True)), S(x, 0.4, False),
        bad("p must lie between 0 and 1", x, 1.5, True).but(error=ValueError)]
        for name in ("dropout", "nn.functional.dropout")},
    "Tensor.normal_": drawn(S(normal(30), 1, 2).but(grad=False)),
    "Tensor.uniform_": drawn(S(normal(30), -1, 1).but(grad=False))
}  # fmt: skip
