"""Samples of losses. `tests/nn/test_loss.py` has their modules, and every reduction."""

import numpy as np

from samples.sample import S, Sample, bad, below, normal, nothing, uniform

x, y, classes = normal(6, 5), normal(6, 5), below(5, 6)
chances, weight = uniform(0.05, 0.95, 6, 5), uniform(0.2, 2, 5)
logs = np.log(chances / chances.sum(1, keepdims=True))
ignored = np.where(np.arange(6) == 2, -100, classes).astype(np.int64)
REDUCTIONS = ("mean", "sum", "none")
signs, spread = np.where(normal(6, 5) > 0, 1, -1).astype(np.float32), uniform(0.3, 2, 6, 5)
labels = np.array(
    [
        [0, 3, -1, 1, 2],
        [4, -1, 0, 0, 0],
        [1, 2, 3, 4, 0],
        [-1, 0, 1, 2, 3],
        [2, 0, 4, -1, 1],
        [3, -1, 3, -1, 0],
    ],
    np.int64,
)
EDGES = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5], np.float32)


def distance(*samples: Sample, of=(x, y), **options) -> list[Sample]:
    """Every reduction, and these."""
    return [
        *[S(*of, reduction=how, **options) for how in REDUCTIONS], S(nothing(0, 4), nothing(0, 4)),
        *samples,
        bad("'avg' is not a reduction", *of, reduction="avg").but(error=ValueError)
    ]  # fmt: skip


def weighted(name: str, *arrays: np.ndarray, **options) -> Sample:
    """With the last of the arrays as the weight, which has no gradient in PyTorch."""
    return S(lambda t, *a: getattr(t.nn.functional, name)(*a[:-1], weight=a[-1].detach(), **options), *arrays)


def by_weight(name: str) -> list[Sample]:
    """Losses with weights, which have a gradient, too."""

    def loss(t, x, y, weight, **options):
        return getattr(t.nn.functional, name)(x, y, weight=weight, **options)

    return [
        *[S(loss, x, y, abs(y) + 0.1, reduction=how) for how in REDUCTIONS],
        bad("weight", loss, x, y, y[:2]).but(error=ValueError),
    ]


def log_softmax(a: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities."""
    return np.asarray(a - np.log(np.exp(a).sum(-1, keepdims=True)), np.float32)


first = {"second": False, "layouts": ("contiguous",)}
spread_logs, six, pairs = log_softmax(normal(7, 3, 5)), np.array([6]), np.stack([logs, logs], 1)
REDUCED = (("mean", {}), ("sum", {"blank": 0}), ("none", {"zero_infinity": True}))


def aligned(t, logs, *more, **options):
    """The loss of logarithms; their lengths lie where they do, in PyTorch too."""
    return t.nn.functional.ctc_loss(logs, *more, **options)


SAMPLES: dict[str, list[Sample]] = {
    "nn.functional.mse_loss": distance(*by_weight("mse_loss")),
    "nn.functional.l1_loss": distance(*by_weight("l1_loss")),
    "nn.functional.huber_loss": distance(S(x, y, reduction="none", delta=0.7), *by_weight("huber_loss"),
        bad("delta must be positive", x, y, delta=0).but(error=ValueError)),
    "nn.functional.smooth_l1_loss": distance(
        *[S(x, y, reduction="none", beta=beta) for beta in (0.6, 2.0, 0.0)],
        bad("beta must not be negative", x, y, beta=-1).but(error=ValueError)
    ),
    "nn.functional.nll_loss": [
        S(x, classes), weighted("nll_loss", x, classes, weight, ignore_index=1),
        S(normal(2, 5, 3, 4), below(5, 2, 3, 4), reduction="none").but(layouts=("contiguous", "offset"))
    ],
    "nn.functional.cross_entropy": [
        S(x, classes), S(x, classes).but(grad=False, alone=True),
        weighted("cross_entropy", 3 * x, ignored, weight, label_smoothing=0.2),
        S(3 * x, chances / chances.sum(1, keepdims=True)),
        S(normal(5), np.array(3)), weighted("cross_entropy", normal(2, 5, 3, 4), below(5, 2, 3, 4), weight,
            reduction="sum"), S(nothing(0, 4), below(4, 0)),
        bad(r"must have shape \(6,\)", x, classes[:2]).but(error=ValueError),
        bad("must be equal", x, x[:, :2]).but(error=ValueError),
        bad("between 0 and 1, not 2.0", x, classes, label_smoothing=2.0).but(error=ValueError)
    ],
    # PyTorch has no second derivative of it.
    "nn.functional.binary_cross_entropy": [
        S(chances, uniform(0, 1, 6, 5)).but(atol=3e-5, second=False),
        weighted("binary_cross_entropy", chances, uniform(0, 1, 6, 5), weight).but(atol=3e-5, second=False),
        S(np.float32([0, 1]), np.float32([1, 0])).but(second=False),
        bad("must be equal", chances, chances[:2])
    ],
    "nn.functional.binary_cross_entropy_with_logits": [
        S(5 * x, chances), S(50 * x, chances),
        weighted("binary_cross_entropy_with_logits", x, chances, weight),
        S(lambda t, x, y, w: t.nn.functional.binary_cross_entropy_with_logits(x, y, pos_weight=w.detach()), x,
            chances, weight)
    ],
    "nn.functional.kl_div": [
        *[S(logs, chances, reduction=how) for how in ("batchmean", "sum", "none")],
        S(logs, logs[::-1].copy(), reduction="none", log_target=True),
        *[S(EDGES.repeat(8), np.tile(EDGES, 8), reduction="none",
            log_target=log).but(grad=False) for log in (False, True)]
    ],
    "nn.functional.soft_margin_loss": [S(x, signs.astype(np.int64), reduction=how) for how in REDUCTIONS],
    "nn.functional.hinge_embedding_loss": distance(of=(x, signs), margin=0.5),
    "nn.functional.margin_ranking_loss": [
        *[S(x, y, signs, margin=0.2, reduction=how) for how in REDUCTIONS],
        bad("equally many axes", x, y, signs[0])
    ],
    "nn.functional.cosine_embedding_loss": [
        *[S(x, y, signs[:, 0], margin=0.1, reduction=how) for how in REDUCTIONS], S(x[0], y[0], signs[0, 0]),
        bad("one axis more", x, y, signs)
    ],
    "nn.functional.gaussian_nll_loss": [
        *[S(x, y, spread, reduction=how) for how in REDUCTIONS], S(x, y, spread[:, :1], full=True),
        S(x, y, spread[:, 0]), S(x, y, spread[:1]), S(x, y, 0.5), S(x, y, 1e-9 * spread, eps=1e-3),
        bad("var has shape", x, y, spread[:2]).but(error=ValueError)
    ],
    "nn.functional.poisson_nll_loss": [
        *[S(x, spread, reduction=how) for how in REDUCTIONS], S(spread, 3 * spread, False, True),
        S(x, 3 * spread, True, True)
    ],
    "nn.functional.multi_margin_loss": [
        # PyTorch has no second derivatives of it, nor of the next.
        *[s.but(second=False) for s in (*[S(x, classes, reduction=how) for how in REDUCTIONS],
            S(x, classes, 2, 0.5), S(x[0], np.array(3, np.int64)), S(x[0, 0], np.array(0, np.int64)),
            S(x[0], np.array([3], np.int64), reduction="none"),
            weighted("multi_margin_loss", x, classes, weight))],
        bad("p must be 1 or 2", x, classes, 3), bad("not int64", x, classes.astype(np.int32)),
        bad("weight has shape", x, classes, weight=weight[:2]),
        bad("not a reduction", x, x[0], reduction="all"),
        bad("input has shape", x, classes[:2, None]).but(error=ValueError)
    ],
    "nn.functional.multilabel_margin_loss": [
        *[S(x, labels, reduction=how).but(second=False) for how in REDUCTIONS],
        S(x[0], labels[0]).but(second=False),
        bad("input has shape", x, labels[0]).but(error=ValueError), bad("not int64", x, x)
    ],
    "nn.functional.multilabel_soft_margin_loss": [
        *[S(x, (signs + 1) / 2, reduction=how) for how in REDUCTIONS],
        weighted("multilabel_soft_margin_loss", x, (signs + 1) / 2, weight)
    ],
    # PyTorch has no second derivative of it.
    "nn.functional.ctc_loss": [
        *[S(aligned, spread_logs, labels[:3, :3] % 4 + 1, np.array([7, 6, 4]), np.array([3, 2, 0]),
            reduction=how, **more).but(**first) for how, more in REDUCED],
        S(aligned, log_softmax(normal(3, 2, 5)), np.array([1, 1, 2, 2, 2]), np.array([3, 3]),
            np.array([3, 2]), reduction="none", zero_infinity=True).but(**first),
        S(aligned, log_softmax(normal(6, 5)), np.array([3, 3]), np.array(6), np.array(2)).but(**first),
        bad("blank 9", logs, labels[0], six, six, blank=9).but(error=ValueError),
        bad("input lengths", logs, labels[0], np.array([6, 6]), six).but(error=ValueError),
        bad("add up", pairs, labels[0], np.array([6, 6]), np.array([5, 1])).but(error=ValueError)
    ],
    "nn.functional.linear_cross_entropy": [
        S(x, normal(4, 5), below(4, 6), linear_bias=normal(4), label_smoothing=0.1),
        S(x, normal(4, 2, 5), below(4, 6, 2)).but(layouts=("contiguous",)),
        bad("does not fit", x, normal(4, 6), below(4, 6)).but(error=RuntimeError)
    ],
    "nn.functional.pairwise_distance": [S(x, y), S(x, y, 1.0), S(x, y[0], 3.0, 0.1, True)],
    "nn.functional.triplet_margin_loss": [
        *[S(x, y, x[::-1].copy(), reduction=how) for how in REDUCTIONS],
        S(x, y, x[::-1].copy(), 0.5, 1.0, swap=True), bad("equally many axes", x, y, x[0]),
        bad("greater than 0", x, y, x, 0.0)
    ],
    "nn.functional.triplet_margin_with_distance_loss": [
        S(lambda t, *a: t.nn.functional.triplet_margin_with_distance_loss(*a), x, y, x[::-1].copy()),
        S(lambda t, *a: t.nn.functional.triplet_margin_with_distance_loss(
            *a, distance_function=lambda a, b: (a - b).abs().sum(-1), margin=0.3, swap=True
        ), x, y, x[::-1].copy()),
        bad("greater than 0", x, y, x, margin=-1.0)
    ]
}  # fmt: skip
