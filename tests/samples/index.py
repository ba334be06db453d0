"""Samples of lookups, scatters, masks and sorts."""

import asyncio
import sys

import numpy as np

from samples.reduce import empties
from samples.sample import DTYPES, RANDOM, WHOLE, S, Sample, apart, bad, below, each, normal, nothing, uniform

x, matrix, vector = normal(4, 5, 6), normal(4, 5), normal(4)
empty = np.zeros((0,), np.int64)
# Distinct places: PyTorch leaves open which of equal places stays.
some, many = (np.stack([RANDOM.permutation(60)[:n] for _ in range(4)]) for n in (5, 60))
edge = normal(2, 40)
edge[0, 3] = edge[0, 30] = np.nan
edge[1, 1], edge[1, 2], edge[1, 5], edge[1, 6], edge[1, 7] = np.inf, -np.inf, 0.0, -0.0, 0.0
wide = (below(2**62, 2, 2000) - 2**61).astype(np.int64)
wide[:, ::2] = wide[:, 1::2] + 1
bits = below(2, 4, 5)
thirds, waves = np.arange(20).reshape(4, 5) % 3, (matrix + 1j * matrix[::-1]).astype(np.complex64)
distinct_places = RANDOM.permutation(20)[:6].reshape(2, 3)
PLAIN, LOOSELY = {"layouts": ("contiguous",)}, {"atol": 1e-4, "rtol": 1e-4}


def embedded(table, ids, *more, **changes) -> Sample:
    """PyTorch's function of that name has another order of arguments."""
    return S(table, ids, *more).but(
        theirs=lambda t, w, i, *more: t.nn.functional.embedding(i, w, *more), **changes
    )


ids, offsets = below(7, 9), np.array([0, 2, 2, 6])
once = {"layouts": ("contiguous",), "paged": False}


def of(t, array, like):
    """An array that is no argument, on the device of one."""
    return t.tensor(array, device=like.device)


def bags(ids=ids, **options) -> Sample:
    """Bags of rows; the table is written where norms are bounded."""
    begins = options.pop("offsets", offsets) if ids.ndim == 1 else None

    def call(t, weight):
        table = weight + 0
        if options.get("max_norm"):
            table = (weight * 2).detach()
        begin = None if begins is None else of(t, begins, weight)
        return t.nn.functional.embedding_bag(of(t, ids, weight), table, begin, **options)

    return S(call, normal(7, 3)).but(second=False, **once)


def added(dim: int, sources: int) -> Sample:
    """A sum with more or fewer sources than the axis is long."""
    shape = [6, 7]
    shape[dim] = sources
    return S(normal(6, 7), dim, below(6, *shape), normal(*shape)).but(**LOOSELY)


def picked(*dims: int) -> list[Sample]:
    """As many as there are, fewer, and so many that they repeat."""
    made = []
    for dim in dims:
        long = [3, 4, 5]
        long[dim] = 30
        made += [S(x, dim, below(4, *shape)).but(**LOOSELY) for shape in ((4, 5, 6), (2, 3, 4), long)]
    return made


def ordered(*samples: Sample, top: tuple = ()) -> list[Sample]:
    """Other types, whole numbers compared in full, no axes, other axes."""
    far = np.round(40 * normal(4, 300))
    typed = [
        s.but(args=(s.args[0], *top), kwargs={} if top else {"dim": 1, "stable": True})
        for s in each(DTYPES[:-1], far)
    ]
    distinct = [s.but(args=(apart(9, 41).astype(np.float32), *top), maybe=False) for s in typed[:1]]
    return [
        *(distinct if top else typed), S(wide, *top),
        *[S(apart(6, 7, 5), *(top[:1] and (3,)), d) for d in (0, 1, -2)], *samples
    ]  # fmt: skip


def stable(descending: bool, columns: int, **changes) -> Sample:
    """Rounded numbers, so that several are equal."""
    return S(np.round(normal(3, columns), 1), dim=-1, descending=descending, stable=True).but(
        **PLAIN, **changes
    )


def awaited(coroutine):
    """Its result; a page waits for it by JSPI."""
    if sys.platform == "emscripten":
        from pyodide.ffi import run_sync

        return run_sync(coroutine)
    return asyncio.run(coroutine)


SORTED = [
    *[stable(d, n, second=False, variants=("shared",) * (n > 1024), alone=n == 5000 and not d)
        for n in (1, 2, 50, 1024, 1025, 5000) for d in (False, True)],
    *[S(edge, dim=1, descending=d, stable=True).but(grad=False) for d in (False, True)], S(np.float32(2)),
    *empties(False),
    bad("out of range", matrix, 2)
]  # fmt: skip
TOP = [(10, 10), (10, 0), (700, 3), (5000, 64), (5000, 600), (49152, 50), (151936, 8)]
SAMPLES: dict[str, list[Sample]] = {
    "embedding": [
        *[embedded(normal(11, 6), below(11, *s).astype(d)) for s in ((7,), (3, 5), (),
            (2, 0)) for d in ("int64", "int32")],
        embedded(normal(5, 3), below(5, 3000), **PLAIN, **LOOSELY),
        embedded(normal(5, 3), below(5, 40), 2, **PLAIN),
        embedded(nothing(5, 0), np.array([0, 0])), bad("int64", matrix, matrix).but(error=TypeError)
    ],
    "nn.functional.embedding_bag": [
        bags(mode="mean"), bags(ids=below(7, 3, 2)), bags(mode="max", padding_idx=2), bags(padding_idx=-1),
        bags(mode="sum", scale_grad_by_freq=True, max_norm=1.0),
        bags(mode="sum", include_last_offset=True, offsets=np.array([0, 2, 2, 9])),
        S(lambda t, w, f: t.nn.functional.embedding_bag(of(t, ids, w), w, of(t, offsets, w), mode="sum",
            per_sample_weights=f), normal(7, 3), normal(9)).but(second=False, **once),
        bad("must be one of", ids, normal(7, 3), offsets, mode="least").but(error=ValueError),
        bad("with offsets", ids, normal(7, 3)), bad("must be None", ids[None], normal(7, 3), offsets),
        bad("need mode='sum'", ids, normal(7, 3), offsets, per_sample_weights=normal(9)),
        bad("rows, columns", ids, normal(7)),
        bad("gradients are dense", ids, normal(7, 3), offsets, sparse=True).but(error=TypeError)
    ],
    "bilinear": [S(normal(2, 3, 4), normal(2, 3, 5), normal(2, 4, 5), normal(2)).but(**once),
        *[S(*(below(5, *n).astype(d) for n in ((3, 4), (3, 5), (2, 4, 5)))).but(**once)
            for d in (np.int32, np.uint8)],
        bad("do not fit", normal(3, 4), normal(3, 5), normal(2, 5, 4))],
    # PyTorch has no second derivative of it.
    "pdist": [
        *[S(normal(4, 3), p).but(second=False, **once) for p in (2.0, 0.0, 1.5, float("inf"))],
        S(nothing(1, 3)).but(second=False, **once), bad("must be .rows", normal(3)),
        bad("negative", normal(2, 2), -1.0)
    ],
    "nn.functional.embedding": [S(below(7, 2, 3), normal(7, 3)), S(below(7, 40), normal(7, 3), padding_idx=2),
        S(below(4, 9), normal(4, 3), scale_grad_by_freq=True).but(second=False),
        S(lambda t, i, w: t.nn.functional.embedding(i, w.detach() * 2, None, 1.5, 1.0), below(4, 9),
            normal(4, 3)).but(grad=False, **once),
        bad("gradients are dense", ids, normal(7, 3), sparse=True).but(error=TypeError),
        S(empty, normal(5, 3))],
    "index_select": [
        *[S(x, d, below(4, 9)) for d in (0, 1, -1)], S(below(99, 4, 5, 6).astype(np.int32), 1, below(4, 3)),
        S(x, 0, below(4, 3).astype(np.int32)), *each(DTYPES, matrix, 0, below(4, 9)),
        bad("", matrix, 0, below(3, 2, 2)), bad("out of range", matrix, 3, below(3, 2))
    ],
    "index_add": [
        S(below(9, 4, 2), 0, below(4, 9), below(9, 9, 2)),
        S(np.float32(2), 0, np.array([0]), np.float32(3), alpha=2),
        S(np.float32(2), 0, np.array(0), np.float32(3)), S(below(9, 4, 2), 0, np.array(3), below(9, 1, 2)),
        *[S(x, d, below(4, 9), normal(*[9 if k == d % 3 else n for k,
            n in enumerate(x.shape)])).but(atol=1e-4) for d in (0, 1, -1)],
        S(x, 0, below(4, 2), normal(2, 5, 6), alpha=2),
        S(below(9, 4, 2), 0, below(4, 9), below(9, 9, 2)),
        S(nothing(5, 0), 0, np.zeros(2, np.int64), nothing(2, 0))
    ],
    "gather": [
        S(vector, 0, np.zeros((2, 0), np.int64)).but(grad=False),
        *picked(0, 1, 2), *each(DTYPES, matrix, 0, below(4, 2, 2)),
        S(nothing(0, 3), 0, np.zeros((0, 3), np.int64)),
        S(lambda t, x, i: x.log_softmax(-1).gather(-1, i.unsqueeze(-1)).squeeze(-1), normal(9, 50),
            below(50, 9)),
        bad("", matrix, 0, below(3, 2, 9)), bad("", matrix, 0, below(3, 2))
    ],
    "take_along_dim": [S(matrix, below(5, 4, 2) - 5, 1), S(matrix, below(5, 4, 2), 1),
        S(matrix, below(5, 1, 3), 1),
        S(matrix, below(20, 7)).but(**PLAIN)],
    "scatter": [
        S(lambda t, x, i, s: x.clone().scatter_(1, i, s), normal(4, 60), some, normal(4, 5)),
        S(lambda t, x, i: x.clone().scatter_(1, i, 1.0), normal(4, 60), many),
        bad("leaf", lambda t, x, i: x.requires_grad_().scatter_(0, i, 1.0), vector, below(4, 2)),
        S(normal(4, 60), 1, some, normal(4, 5)), S(normal(4, 60), 1, many, normal(4, 60)),
        S(normal(4, 60), 1, some, 2.5),
        S(below(9, 4, 60), 1, many, value=7), *each(DTYPES, normal(4, 60), 1, some, normal(4, 5)),
        S(normal(3, 4), 0, np.zeros((0, 4), np.int64), nothing(0, 4)),
        # Of these PyTorch has no derivative.
        *[S(normal(4, 60), 1, some, source, reduce="multiply").but(grad=False, rtol=1e-4)
            for source in (normal(4, 5), 2.5)],
        S(below(9, 4, 60), 1, some, below(9, 4, 5), reduce="multiply"),
        bad("is not known", normal(4, 60), 1, some, 1.0, reduce="mean")
    ],
    "scatter_add": [
        S(lambda t, x, i, s: x.clone().scatter_add_(1, i, s), normal(4, 60), some,
        normal(4, 5)),
        *[added(d, n) for d in (0, 1) for n in (3, 40)], S(below(9, 6, 7), 0, below(6, 9, 7), below(9, 9, 7)),
        S(normal(6, 7), 0, below(6, 3, 4), normal(5, 6)).but(**PLAIN, grad=False),
        S(normal(6, 7), 1, below(7, 3, 40), normal(3, 40)).but(**PLAIN, **LOOSELY),
        S(normal(4, 50), 0, below(4, 30, 50), normal(30, 50)).but(**LOOSELY),
        S(normal(3, 4), 1, np.zeros((3, 0), np.int64), nothing(3, 0)),
        S(nothing(0, 3), 0, np.zeros((0, 3), np.int64), nothing(0, 3)),
        bad("", matrix, 0, below(3, 2, 4), normal(1, 4)),
        bad("", matrix, 0, below(3, 2, 4), np.ones((2, 4), np.int64))
    ],
    "index_put": [
        S(lambda t, x, i, v: x.clone().index_put_((i,), v), matrix, np.array([2, 0]),
        normal(2, 5)),
        S(lambda t, x, m, v: x.index_put((m,), v), matrix, bits > 0, normal(1)),
        S(lambda t, x, m, i, v: t.index_put(x, (m, i), v, True), matrix, bits[:, 0] > -1, below(5, 4),
        normal(4)),
        S(lambda t, x, i, v: x.index_put((i,), v), matrix, np.array([2, 0]), normal(2, 5)),
        S(lambda t, x, i, v: x.index_put((i,), v, accumulate=True), normal(3, 4), below(3, 100),
            normal(100, 4)).but(**LOOSELY),
        S(lambda t, x, i, j, v: x.index_put((i, j), v), x, np.array([[0], [1]]), np.array([2, 3]),
            normal(2, 2, 6)),
        bad("broadcast", lambda t, x, i, v: x.index_put((i,), v), matrix, np.array([0, 1]),
            normal(3, 5)).but(error=ValueError)
    ],
    "nonzero": [S(bits), S(bits, as_tuple=True), S(np.float32(2)), S(nothing(0, 3)), *each(DTYPES, matrix)],
    "Tensor.nonzero_async": [S(lambda t, x: awaited(x.nonzero_async()), bits).but(theirs=lambda t,
        x: x.nonzero())],
    "masked_select": [
        S(matrix, bits > 0), S(matrix, np.zeros(5, bool)).but(**PLAIN), *each(WHOLE, matrix, bits > 0),
        S(lambda t, x: x[x > 1], nothing(0, 3)), bad("", matrix, np.ones((4, 5), np.float32))
    ],
    "sort": ordered(*SORTED),
    "argsort": SORTED,
    "topk": ordered(
        *[S(apart(2, n), k).but(**PLAIN, second=False, grad=n < 10000,
            variants=("shared",) * (n < 10000)) for n, k in TOP],
        *[S(apart(2, n), k, largest=False).but(**PLAIN, grad=False, paged=n < 10000) for n, k in TOP],
        S(np.float32(2), 1), S(nothing(2, 0), 0),
        S(lambda t, x: (x.topk(5, 1)[0], x.topk(5, 1, largest=False)[0]), edge).but(grad=False),
        bad("", vector, 5), bad("", vector, -1), top=(7, 1)
    ),
    "argwhere": [S(bits), S(np.float32(2)), S(nothing(0, 3)), *each(DTYPES, matrix)],
    "take": [S(x, below(120, 3, 4)), S(x, below(120, 3) - 120), S(x, np.array(5)), S(matrix, empty),
        *each(DTYPES, matrix, below(20, 7)),
        bad("must be int64", matrix, matrix)],
    "put": [
        S(lambda t, x, i, s: x.put(i, s), matrix, distinct_places, normal(2, 3)), S(lambda t, x, i,
        s: x.put(i, s, True), matrix, below(20, 40), normal(40)),
        bad("3 places for 2", lambda t, x, i, s: x.put(i, s), matrix, below(20, 3), normal(2)).but(
            error=ValueError),
        bad("source is", lambda t, x, i, s: x.put(i, s), matrix, below(20, 3), below(9, 3))
    ],
    "index_copy": [
        S(x, 0, np.array([3, 1]), normal(2, 5, 6)), S(x, 2, np.array([5, 0, 2]), normal(4, 5, 3)), S(x,
        1, empty, nothing(4, 0, 6)),
        S(np.float32(2), 0, np.array([0]), normal(1)[0]), *each(DTYPES, matrix, 1, np.array([2, 0]),
        normal(4, 2)),
        bad("it must have", x, 0, np.array([3, 1]), normal(3, 5, 6)).but(error=ValueError), bad("input",
        matrix, 1, np.array([2, 0]), below(4, 4, 2))
    ],
    "index_fill": [
        S(x, 0, np.array([1, 0, 1]), 2.5), S(x, -1, np.array([5, 0, 5]), normal(1)[0]), S(x, 1, empty, 1.0),
        S(np.float32(2), 0, np.array([0]), normal(1)[0]),
        S(np.float32(2), 0, np.array([0]), 3.0),
        *each(DTYPES, matrix, 1, np.array([2, 0]), 3), bad("give one number", x, 0, np.array([1]), normal(2))
    ],
    "masked_scatter": [
        S(matrix, bits > 0, normal(20)), S(matrix, bits[0] > 0, normal(5, 5)),
        S(matrix, bits < 0, nothing(0)).but(grad=False),
        S(nothing(0, 3), nothing(0, 3) > 0, normal(2)).but(grad=False),
        *each(DTYPES, matrix, bits > 0, normal(20)), bad("not bool", matrix, matrix, matrix),
        bad("Convert one", matrix, bits > 0, below(9, 20))
    ],
    "unravel_index": [S(below(24, 3, 4), (2, 3, 4)), S(below(7, 5).astype(np.int32), 7),
        S(np.array(5), (2, 3)),
        bad("must be integers", matrix, (2, 3)),
        bad("negative length", below(5, 3), (-1, 3))],
    "nonzero_static": [S(bits, size=5), S(bits, size=30, fill_value=9), S(bits, size=0), S(np.float32(2),
        size=2), S(nothing(0, 3), size=2),
        bad("must not be negative", bits, size=-1)],
    "searchsorted": [
        *[S(np.sort(apart(9)), values, **way) for way in ({}, {"right": True}, {"side": "right",
        "out_int32": True})
            for values in (apart(9), uniform(-4, 4, 3, 5), np.array([np.nan, np.inf, -np.inf, 0],
        np.float32), nothing(0))],
        S(np.sort(normal(3, 7)), normal(3, 5)), S(np.sort(below(9, 6)), below(12, 4, 3) - 1),
        S(np.sort(below(9, 6)), 4), S(nothing(0), normal(3)),
        S(lambda t, s, v: t.searchsorted(s, v, sorter=s.argsort(-1)), normal(3, 7), normal(3, 5)),
        *[S(keys, normal(70, 100), **way).but(variants=("shared",), alone=True, **PLAIN)
            for keys in (np.sort(normal(700)), np.append(np.sort(normal(40)), np.float32(np.nan)))
            for way in ({}, {"right": True, "out_int32": True})],
        bad("must be equal", np.sort(normal(3, 7)), normal(2, 5)), bad("side is", vector, vector,
        right=True, side="left").but(error=TypeError)
    ],
    "bucketize": [S(matrix, np.sort(apart(7))), S(below(9, 3), np.array([1, 4, 4, 7]), right=True),
        S(2.5, np.array([1.0, 4.0], np.float32), out_int32=True),
        bad("must be a vector", matrix, matrix)],
    "isin": [S(below(9, 4, 5), below(9, 3)), S(below(9, 4, 5), below(9, 3), invert=True), S(edge, edge[0,
        :7]), S(below(9, 5), 3), S(3, below(9, 5)),
        S(matrix, nothing(0)), S(below(9, 5).astype(np.int32), below(9, 3)), bad("must be a Tensor", 1,
        2).but(error=TypeError)],
    "bincount": [S(below(9, 40)), S(below(9, 40), normal(40)).but(grad=False), S(below(9, 40), minlength=20),
        S(empty, minlength=3), S(below(9, 40).astype(np.uint8)),
        bad("no negative", below(9, 40) - 5), bad("takes a vector", below(9, 4, 5)),
        bad("must not be negative", below(5, 3), minlength=-1)],
    "histc": [S(matrix), S(matrix, 5), S(matrix, 4, -1, 1), S(x, 7, 0.5, 0.5), S(np.full((5,), 2,
        np.float32), 3),
        bad("bins > 0", matrix, 0), bad("finite range", matrix, 5, 3, 1), bad("finite range", edge, 5)],
    "histogram": [s.but(grad=False) for s in (
        *[S(matrix, **way) for way in ({}, {"bins": 5}, {"bins": 4, "range": (-1.0, 1.0)},
            {"bins": 7, "density": True}, {"bins": 3, "range": (0.5, 0.5)})],
        S(matrix, 5, weight=uniform(0, 1, 4, 5)), S(nothing(0), 3), S(np.float32(2), 3),
        *[S(matrix, np.sort(apart(7)), **way) for way in ({}, {"density": True})],
        bad("at least one", matrix, 0), bad("not a finite range", matrix, 5, range=(3.0, 1.0)),
        bad("takes floating point", below(9, 3), 3), bad("20 elements|for 20 points", matrix, 5,
            weight=vector),
    )],
    "histogramdd": [s.but(grad=False) for s in (
        *[S(normal(9, 2), *way).but(grad=False) for way in (((3, 4),), ((3, 4), (-1.0, 1.0, -2.0, 2.0)),
            ([np.sort(apart(4)), np.sort(apart(3))],))],
        S(normal(9, 2), (3, 4), density=True, weight=uniform(0, 1, 9)), S(normal(2, 3, 3), 2),
        bad("2 coordinates", normal(9, 2), (3,)), bad("", normal(9), 3), bad("", normal(9, 2), (3, 0))
    )],
    "unique": [
        *[S(a, **way).but(grad=False) for a in (below(4, 5, 6), np.round(2 * normal(4, 5)), bits > 0)
            for way in ({}, {"return_inverse": True}, {"return_counts": True}, {"return_inverse": True,
        "return_counts": True})],
        *[S(below(2, 6, 3), dim=d, return_inverse=True, return_counts=True) for d in (0, 1)],
        S(nothing(0)).but(grad=False),
        S(np.float32(2), return_inverse=True).but(grad=False), bad("out of range", matrix, dim=2)
    ],
    "unique_consecutive": [
        *[S(a, **way).but(grad=False) for a in (below(3, 40), below(2, 4, 5), np.round(normal(30)))
            for way in ({}, {"return_inverse": True, "return_counts": True})],
        S(np.sort(below(2, 6, 2), 0), dim=0, return_inverse=True, return_counts=True),
        S(nothing(0)).but(grad=False)
    ],
    "scatter_reduce": [
        *[S(matrix, d, below(4, *shape), normal(*shape), how, include_self=own).but(**LOOSELY, **PLAIN)
            for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)
            for d, shape in ((0, (4, 5)), (1, (3, 30)))],
        S(matrix, 0, below(4, 2, 3), below(3, 2, 3).astype(np.float32), "prod"),
        S(matrix, 1, below(5, 4, 30), normal(4, 30), "amax").but(alone=True),
        S(np.round(matrix), 0, below(4, 9, 5), np.round(normal(9, 5)), "amax"),
        S(edge, 1, below(40, 2, 30), edge[:, ::-1][:, :30], "amin").but(**PLAIN, grad=False),
        S(np.float32(2), 0, np.array(0), np.float32(5), "prod"),
        S(matrix, 0, empty.reshape(0, 5), nothing(0, 5), "amax"),
        *[s for how in ("prod", "amax", "mean") for s in each(("float16", "int64", "int32", "uint8"),
            matrix, 0, below(4, 6, 5), normal(6, 5), how)],
        *[S(bits > 0, 0, below(4, 2, 5), bits[:2] == 0, how, include_self=own).but(**PLAIN)
            for how in ("amax", "amin") for own in (True, False)],
        bad("is not known", matrix, 0, below(4, 6, 5), normal(6, 5), "max"),
        bad("out of range", matrix, 0, below(4, 6, 5) + 4, normal(6, 5), "amax").but(error=IndexError),
        # The input's own value is equal to the extreme that it takes no part in.
        *[S(np.round(matrix), d, thirds, np.round(matrix[::-1]), how, include_self=False).but(**PLAIN)
            for how in ("amax", "amin") for d in (0, 1)],
        *[S(waves, 0, thirds, waves[::-1], how, include_self=own).but(**LOOSELY, **PLAIN, grad=False)
            for how in ("sum", "prod", "mean") for own in (True, False)],
        bad("scatter_reduce: reduce='amax' takes no complex", waves, 0, thirds, waves, "amax"),
    ],
    "index_reduce": [
        *[S(x, d, below(4, 7), normal(*shape), how, include_self=own).but(**LOOSELY, **PLAIN)
            for how in ("prod", "mean", "amax", "amin") for own in (True, False)
            for d, shape in ((0, (7, 5, 6)), (-1, (4, 5, 7)))],
        S(np.float32(2), 0, np.array([0]), np.float32(5), "mean"), S(x, 1, empty, nothing(4, 0, 6), "amax"),
        *each(("int64", "uint8"), matrix, 1, below(5, 3), normal(4, 3), "amin"),
        bad("is not known", x, 0, below(4, 7), normal(7, 5, 6), "sum"),
        bad("must be a vector", x, 0, below(4, 7), normal(6, 5, 6), "prod"),
        *[S(np.round(matrix), 0, thirds[0], np.round(np.tile(matrix[0], (5, 1))), how, include_self=False)
            .but(**PLAIN) for how in ("amax", "amin")],
        *[bad("index_reduce: reduce='.*' takes no complex", waves, 0, thirds[0, :4], waves, how)
            for how in ("prod", "amax", "mean")],
    ],
}  # fmt: skip
