"""Samples of softmax, norms and similarities."""

import math

import numpy as np

from samples.reduce import empties
from samples.sample import DTYPES, S, Sample, bad, below, each, normal, nothing, uniform

x, weight, bias = normal(4, 3, 5), normal(5), normal(5)
special = 10 * normal(7, 40)
special[1, 3], special[2, 3], special[3], special[5, 1:], special[6] = np.nan, np.inf, -np.inf, -np.inf, -1e9
special[4] = np.finfo(np.float32).min
FAR = [((3, 50), 1), ((3, 50), 0), ((2, 3, 4), 1), ((5, 700), -1), ((7,), 0), ((), 0)]
LONG = [((2, 20000), 1), ((9000, 3), 0), ((2, 130, 33), 1)]
# Shapes, and the axes at the end that are normalized.
ROWS = [((3, 40), (40,)), ((2, 5, 577), (577,)), ((4, 3, 5), (3, 5)), ((1, 3000), (3000,))]
long_rows = 3 + np.sin(np.arange(65536, dtype=np.float32) ** 2).reshape(2, 32768)
shared = {"variants": ("shared",)}


def soft(*samples: Sample) -> list[Sample]:
    """Axes short and long, rows of special values, large numbers, other types, nothing."""
    return [
        *[S(5 * normal(*shape), dim) for shape, dim in FAR], S(special, -1).but(grad=False),
        S(1e4 * normal(3, 9), 1),
        *[S(5 * normal(*shape), dim).but(second=False, layouts=("contiguous",), **shared) for shape,
            dim in LONG],
        *each(DTYPES[:3], normal(3, 33), 1), S(below(9, 5), 0, dtype="float32"), bad("out of range", x, 3),
        *empties(False), *samples
    ]  # fmt: skip


def normed(*, biased: bool) -> list[Sample]:
    """Rows with and without a weight, halves, one axis and more, nothing."""
    made = [S(nothing(0, 4), (4,)), S(nothing(2, 0), (0,)), *each(DTYPES[:3], normal(3, 100), (100,))]
    for shape, last in ROWS:
        a, w, b = normal(*shape) + 3 * biased, normal(*last), normal(*last)
        close = {"atol": 3e-5, "second": shape[-1] < 100, "variants": ("shared", "subgroups")[: 2 - biased]}
        given = [(), (w, b), (w,)] if biased else [(), (w,)]
        made += [S(a, last, *more).but(**close) for more in given] + [
            S(a, last, *given[1], eps=1e-5).but(**close)
        ]
    # So long that several workgroups share a row.
    made.append(S(long_rows, (32768,)).but(atol=3e-5, second=False, layouts=("contiguous",), alone=True))
    wrong = [bad("normalized_shape", x[0], shape) for shape in ((2,), (4, 3), ())]
    return [*made, *wrong, bad("weight has shape", x[0], (5,), x[0])]


few = {"layouts": ("contiguous",), "paged": False}


def channel_norms() -> dict[str, list[Sample]]:
    """In training and without, with and without weights; statistics are not written by a sample."""
    x, w, b, m, v = normal(3, 4, 5), normal(4), normal(4), normal(4), uniform(0.5, 2, 4)
    modes, short = (True, False), {"second": False, **few}

    def plain(t, x, *more):
        return t.nn.functional.instance_norm(x, use_input_stats=True, weight=more[0], bias=more[1])

    def of_statistics(name, **options):
        def call(t, x, w, b, m, v):
            return getattr(t.nn.functional, name)(x, m.detach(), v.detach(), w, b, **options)

        return call

    half = each(DTYPES[1:2], x, 2)[0].but(layouts=("contiguous",))
    aten = [0.1, 1e-5, False]
    return {
        "nn.functional.batch_norm": [
            *[
                S(of_statistics("batch_norm", training=on), x, w, b, m, v).but(atol=5e-5, **few)
                for on in modes
            ],
            S(x, None, None, None, None, True),
            S(normal(6, 4), None, None, w, None, True).but(atol=5e-5, **few),
            S(nothing(0, 4), None, None, w, b, True).but(**few),
            bad("more than 1", x[:1, :, :1], None, None, training=True),
            bad("running_mean and running_var", x, None, None),
            bad("channels need", x, None, None, w[:2], None, True),
        ],
        "batch_norm": [S(x, w, b, None, None, True, *aten).but(**short)],
        "native_batch_norm": [
            S(x, w, b, None, None, True, 0.1, 1e-5).but(**short),
            S(x, w, b, m, v, False, 0.1, 1e-5).but(**{**short, "grad": False}),
        ],
        "nn.functional.group_norm": [
            S(x, 2, w, b).but(atol=5e-5, **few),
            S(x, 4),
            half,
            S(nothing(0, 4), 2).but(**few),
            bad("multiple", x, 3),
            bad("more than 1", x[:1, :, :1], 4),
        ],
        "group_norm": [S(x, 2, w, b).but(**short)],
        "native_group_norm": [
            S(x, w, b, 3, 4, 5, 2, 1e-5).but(atol=5e-5, **short),
            S(nothing(0, 2), None, None, 0, 2, 1, 1, 1e-5).but(grad=False),
        ],
        "native_layer_norm": [S(x, (5,), normal(5), normal(5), 1e-5).but(**short)],
        "nn.functional.instance_norm": [
            S(plain, x, w, b).but(atol=5e-5, **few),
            S(of_statistics("instance_norm", use_input_stats=False), x, w, b, m, v).but(**few),
            S(of_statistics("instance_norm"), x, w, b, m, v).but(**short),
            bad("more than 1 spatial", x[:, :, :1]),
            bad("channels need", x, weight=w[:2]),
        ],
        "instance_norm": [S(x, w, b, None, None, True, *aten).but(**short)],
    }


def _norm(t, x, p="fro", dim=None, keepdim=False):
    return t.linalg.vector_norm(x, 2 if p == "fro" else p, dim, keepdim)


cosine = [S(x, normal(4, 3, 5), 1), S(x, x[0], -1), S(nothing(4, 0), nothing(4, 0))]
SAMPLES: dict[str, list[Sample]] = {
    "softmax": soft(bad("int64", below(9, 2), 0)),
    "log_softmax": soft(),
    "nn.functional.softmax": [S(x, dim=1), S(x, 0, dtype="float16").but(rtol=2e-3, atol=2e-3, grad=False)],
    "nn.functional.log_softmax": [S(x, dim=1)],
    "nn.functional.softmin": [S(x, 1), S(x, -1)],
    "rms_norm": normed(biased=False),
    "layer_norm": normed(biased=True),
    "nn.functional.rms_norm": [S(x, (5,), weight, 1e-5)],
    "nn.functional.layer_norm": [S(x, (5,), weight, bias, 1e-6)],
    **channel_norms(),
    "nn.functional.local_response_norm": [
        *[S(a, n, 0.5).but(**few) for a, n in ((normal(2, 5, 3), 3), (normal(1, 4, 2, 2), 2))],
        S(np.zeros((0, 1, 2), np.int64), 3), S(nothing(0, 1, 2), 3).but(**few), bad("three axes", x[0], 2)],
    "norm": [
        *[S(normal(4, 6), p, d, d == 0).but(rtol=1e-4, theirs=_norm) for p in (2, "fro", 1, 0, 3, 0.5,
            math.inf, -math.inf)
          for d in (None, 0, (0, 1))],
        S(np.array([[0, 0], [3, 4]], np.float32), dim=1).but(second=False), S(x), bad("", below(9, 3))
    ],
    "Tensor.norm": [S(x), S(x, 2, 1, True).but(rtol=1e-5), bad("", below(9, 3))],
    "nn.functional.normalize": [S(x, dim=-1), S(x, 1.0, 0), S(x), S(nothing(4, 0))],
    "nn.functional.cosine_similarity": cosine,
    "nn.functional.glu": [S(x[:, :, :4]), S(normal(4, 6), 0), S(nothing(0, 4)), bad("odd length", x)]
}  # fmt: skip
