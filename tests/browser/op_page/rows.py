"""Cases of what looks at rows: reductions, extremes, softmax, norms, scans, sorts, lookups, sampling."""

import numpy as np
from case import EDGES, Case, apart, below, normal, positive

AXES = (None, 0, -1, (0, 2))


def reduce() -> list[Case]:
    x, small = normal(4, 5, 6), positive(3, 4, 2)
    made = []
    for name in ("sum", "mean", "amax", "amin"):
        for dim in AXES:
            array = apart(4, 5, 6) if name.startswith("am") else x
            made.append(Case(f"{name} over {dim}", lambda t, x, n=name, d=dim: getattr(t, n)(x, d), (array,)))
        made.append(
            Case(f"{name}, keepdim", lambda t, x, n=name: getattr(t, n)(x, 1, True), (apart(4, 5, 6),))
        )
    for name in ("std", "var", "logsumexp", "count_nonzero"):
        made += [
            Case(f"{name} over {d}", lambda t, x, n=name, d=d: getattr(t, n)(x, d), (x,)) for d in (0, -1, 1)
        ]
    made += [
        Case("prod", lambda t, x: (t.prod(x), t.prod(x, 1), t.prod(x, -1, True)), (small,)),
        Case("long prod", lambda t, x: (x.prod(-1), x.T.prod(0)), (1 + normal(2, 9001) / 100,), rtol=1e-3),
        Case(
            "any and all",
            lambda t, x: (t.any(x > 2), t.all(x > -9), t.any(x > 1, 1), t.all(x > 0, -1, True)),
            (x,),
            grad=False,
        ),
        Case(
            "var_mean and std_mean", lambda t, x: (*t.var_mean(x, 1), *t.std_mean(x, 0, correction=0)), (x,)
        ),
        Case(
            "int64",
            lambda t, x: (x.sum(), x.sum(0), x.prod(1), (x > 0).sum()),
            (np.arange(-6, 6, dtype=np.int64).reshape(3, 4) * 2**33,),
        ),
        Case(
            "int32 and uint8",
            lambda t, x: (x.sum(), x.to(t.uint8).sum(1), x.max(), x.min()),
            (np.arange(12, dtype=np.int32).reshape(3, 4),),
        ),
        Case(
            "with a dtype",
            lambda t, x: (x.sum(0, dtype=t.int64), x.mean(dtype=t.float32)),
            (np.arange(12, dtype=np.int32).reshape(3, 4),),
        ),
        Case("long rows", lambda t, x: (x.sum(), x.mean(1), x.sum(0)), (normal(3, 40_001),), atol=1e-3),
        Case("long columns", lambda t, x: (x.sum(0), x.mean(0)), (normal(20_011, 5),), atol=1e-3),
        Case("wide columns", lambda t, x: (x.sum(0), x.mean(0)), (normal(2003, 40),), atol=1e-3),
        Case("nothing", lambda t, x: (x.sum(), x.sum(0), x.prod()), (normal(0, 3),)),
        Case("one number", lambda t, x: (x.sum(), x.mean(), x.max()), (np.float32(3.5),)),
    ]
    return made


def extremum() -> list[Case]:
    x, ties = apart(4, 5, 6), below(3, 4, 7).astype(np.float32)
    made = [
        Case(f"{n} over {d}", lambda t, x, n=n, d=d: getattr(t, n)(x, d), (x,))
        for n in ("max", "min", "argmax", "argmin")
        for d in (0, 1, -1)
    ]
    made += [
        Case("of all", lambda t, x: (x.max(), x.min(), x.argmax(), x.argmin(), *t.aminmax(x)), (x,)),
        Case("ties", lambda t, x: (x.argmax(1), x.argmin(0), x.amax(1), x.max(1).indices), (ties,)),
        Case("two tensors", lambda t, x, y: (t.max(x, y), t.min(x, other=y)), (x, apart(4, 5, 6))),
        Case(
            "NaN and infinities",
            lambda t, x: (x.max(), x.argmax(), x[5:].min(), x[:4].argmin()),
            (EDGES,),
            grad=False,
        ),
        Case("int64", lambda t, x: (x.max(1), x.min(0), x.argmax()), (below(2**40, 3, 50) - 2**39,)),
        Case("long rows", lambda t, x: (x.argmax(1), x.amin(1), x.max(1).values), (apart(2, 30_011),)),
        Case("long columns", lambda t, x: (x.argmax(0), x.amax(0)), (apart(10_007, 3),)),
    ]
    return [Case(c.name, _flat(c.call), c.arrays, grad=c.grad) for c in made]


def _flat(call):
    """Named pairs among the results opened up."""

    def opened(t, *tensors):
        out = call(t, *tensors)
        out = out if isinstance(out, tuple) else (out,)
        return tuple(part for o in out for part in (o if isinstance(o, tuple) else (o,)))

    return opened


def softmax() -> list[Case]:
    x = 3 * normal(3, 4, 5)
    masked = np.where(below(3, 4, 6) > 0, normal(4, 6), -np.inf).astype(np.float32)
    made = [
        Case(f"{n} over {d}", lambda t, x, n=n, d=d: getattr(t, n)(x, d), (x,))
        for n in ("softmax", "log_softmax")
        for d in (0, 1, -1)
    ]
    return [
        *made,
        Case("masked", lambda t, x: x.softmax(-1), (masked,), grad=False),
        Case("large numbers", lambda t, x: (x.softmax(0), x.log_softmax(0)), (1e4 * normal(9),)),
        Case("long rows", lambda t, x: (x.softmax(-1), x.log_softmax(-1)), (normal(2, 9001),)),
        Case("softmin", lambda t, x: t.nn.functional.softmin(x, 1), (x,)),
        Case("halves", lambda t, x: x.half().softmax(-1), (x,), rtol=2e-3, atol=2e-3, grad=False),
    ]


def norm() -> list[Case]:
    x, w, b = normal(3, 4, 10), normal(10), normal(10)
    return [
        Case("rms_norm", lambda t, x, w: (t.rms_norm(x, (10,)), t.rms_norm(x, (10,), w, 1e-5)), (x, w)),
        Case(
            "layer_norm",
            lambda t, x, w, b: (
                t.layer_norm(x, (10,)),
                t.layer_norm(x, (10,), w, b),
                t.layer_norm(x, (10,), w),
            ),
            (x, w, b),
            atol=3e-5,
        ),
        Case("layer_norm over two axes", lambda t, x: t.layer_norm(x, (4, 10)), (x,), atol=3e-5),
        Case(
            "norms",
            lambda t, x: (t.norm(x), t.norm(x, 1, 1), t.norm(x, 2, -1, True), t.norm(x, float("inf"), 0)),
            (x,),
        ),
        Case("normalize", lambda t, x: t.nn.functional.normalize(x, dim=-1), (x,)),
    ]


def scan() -> list[Case]:
    x = positive(3, 4, 5)
    return [
        Case("cumsum", lambda t, x: (x.cumsum(0), x.cumsum(1), x.cumsum(-1)), (x,)),
        Case("cumprod", lambda t, x: (x.cumprod(0), x.cumprod(-1)), (x,)),
        Case("long cumsum", lambda t, x: x.cumsum(-1), (normal(2, 9001),), atol=2e-3, rtol=1e-4),
        Case("long cumprod", lambda t, x: x.cumprod(-1), (1 + normal(2, 9001) / 100,), rtol=1e-3),
        Case("int64", lambda t, x: (x.cumsum(0), x.cumprod(0)), (np.array([3, -2, 2**33, 5], np.int64),)),
        Case("bool", lambda t, x: (x > 1).cumsum(1), (x,), grad=False),
    ]


def sort() -> list[Case]:
    x, ties = apart(3, 4, 7), below(4, 3, 40).astype(np.float32)
    return [
        Case(name, _flat(call), arrays, **options)
        for name, call, arrays, options in (
            ("sort", lambda t, x: (x.sort(), x.sort(1, True), x.sort(0)), (x,), {}),
            ("argsort, stable", lambda t, x: (x.argsort(-1), x.argsort(0, descending=True)), (ties,), {}),
            ("topk", lambda t, x: (x.topk(3), x.topk(2, 1), x.topk(2, -1, False)), (x,), {}),
            ("topk of a vocabulary", lambda t, x: x.topk(50), (apart(2, 20_011),), {}),
            ("long rows", lambda t, x: x.sort(-1), (apart(2, 5003),), {}),
            ("edges", lambda t, x: (x.sort(), x.sort(descending=True)), (EDGES,), {"grad": False}),
            ("int64", lambda t, x: (x.sort(), x.topk(4)), (below(2**40, 2, 30) - 2**39,), {}),
        )
    ]


def lookup() -> list[Case]:
    x, table = normal(5, 4), normal(7, 3)
    rows, ids, many = below(5, 6), below(7, 2, 3), below(7, 40)
    along = below(5, 3, 4)
    wide, spots = normal(4, 50), below(4, 30, 50)
    return [
        Case("embedding", lambda t, w, i: t.embedding(w, i), (table, ids)),
        Case(
            "embedding, many", lambda t, w, i: t.nn.functional.embedding(i, w, padding_idx=2), (table, many)
        ),
        Case("index_select", lambda t, x, i: (t.index_select(x, 0, i), x.t().index_select(1, i)), (x, rows)),
        Case("int32 indices", lambda t, x, i: t.index_select(x, 0, i.int()), (x, rows)),
        Case("gather", lambda t, x, i: (t.gather(x, 0, i), t.gather(x, 1, i % 4)), (x, along)),
        Case("take_along_dim", lambda t, x, i: t.take_along_dim(x, i[:1], 0), (x, along)),
        Case(
            "scatter", lambda t, x, i, y: (x.scatter(0, i, y), x.scatter(0, i, 2.0)), (x, along, normal(3, 4))
        ),
        Case("scatter_add", lambda t, x, i, y: x.scatter_add(0, i, y), (x, along, normal(3, 4)), atol=1e-5),
        Case(
            "many meet",
            lambda t, x, i, y: (x.scatter_add(0, i, y), x.scatter(0, i, y)),
            (wide, spots, normal(30, 50)),
        ),
        Case("bool and int64 rows", lambda t, x, i: ((x > 0)[i], (x * 9).long()[i]), (x, rows), grad=False),
        Case("index_add", lambda t, x, i, y: x.index_add(0, i, y), (x, rows, normal(6, 4)), atol=1e-5),
        Case("one_hot", lambda t, i: t.nn.functional.one_hot(i, 7), (ids,)),
        Case("put rows of int64", lambda t, i: _put_rows(t, i), (below(5, 20),)),
    ]


def _put_rows(t, i):
    made = t.zeros(5, 2, dtype=t.int64)
    made[i] = t.arange(40).reshape(20, 2)
    return made


def sampling() -> list[Case]:
    logits, chance = 2 * normal(6, 50), RANDOMS
    ids = below(50, 6, 9)
    long, seen = 2 * normal(2, 5000), below(5000, 2, 9)
    return [
        Case("long", lambda t, x, u, i: _sample(x, u, i, {}), (long, chance[:2], seen), grad=False),
    ] + [
        Case(name, lambda t, x, u, i, o=options: _sample(x, u, i, o), (logits, chance, ids), grad=False)
        for name, options in {
            "plain": {},
            "temperature": {"temperature": 0.7},
            "top-k": {"top_k": 5, "temperature": 1.3},
            "top-p": {"top_p": 0.8},
            "everything": {"top_k": 12, "top_p": 0.9, "temperature": 0.8, "penalty": 1.3},
        }.items()
    ]


RANDOMS = np.array([0.01, 0.2, 0.4, 0.6, 0.8, 0.97], np.float32)


def _sample(logits, chance, ids, options):
    from pellucid.ops.random.token_sampling import repetition_penalty, sample

    seen = ids if "penalty" in options else None
    return sample(logits, chance, seen=seen, **options), repetition_penalty(logits, ids, 1.5)


GROUPS = {
    "reduce": reduce, "extremum": extremum, "softmax": softmax, "norm": norm, "scan": scan, "sort": sort,
    "lookup": lookup, "sampling": sampling,
}  # fmt: skip
