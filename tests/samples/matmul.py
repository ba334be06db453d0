"""Samples of matrix products."""

import numpy as np

from samples.sample import DTYPES, S, Sample, bad, below, each, normal, nothing

SHAPES = [
    ((3, 4), (4, 5)), ((1, 1), (1, 1)), ((70, 33), (33, 130)), ((64, 16), (16, 64)), ((200, 20), (20, 3)),
    ((1, 300), (300, 70)), ((4, 130), (130, 9)), ((5,), (5,)), ((5,), (5, 7)), ((7, 5), (5,)),
    ((300, 5), (5,)),
    ((2, 7, 5), (5,)), ((5,), (2, 5, 7)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((3, 4), (2, 2, 4, 5)), ((2, 1, 3, 1, 6, 5), (1, 4, 3, 2, 5, 7)), ((2, 5000), (5000, 3)),
    ((3, 0), (0, 4)), ((0, 3), (3, 4))
]  # fmt: skip
TURNED = [((70, 33), (33, 130)), ((2, 40, 6), (2, 6, 50)), ((3, 64), (64, 5)), ((2, 2, 9, 5), (2, 2, 5, 9))]
# Shapes whose products have a kernel of their own where a workgroup shares memory.
SHARED = {((3, 4), (4, 5)), ((70, 33), (33, 130)), ((4, 130), (130, 9)), ((2, 3, 4), (2, 4, 5))}
close = {"atol": 1e-4, "rtol": 1e-4}
batch, square = normal(2, 3, 4), normal(3, 3)


def turned(shape: tuple) -> np.ndarray:
    return normal(*shape[:-2], shape[-1], shape[-2])


def halves(**more) -> list[Sample]:
    """Of half the width; whole numbers have a kernel on the cpu only."""
    made = [s.but(rtol=5 * s.rtol, atol=5 * s.atol, grad=s.dtype == "float16", second=False, paged=True,
        **more)
            for s in each(("float16", "bfloat16"), normal(9, 20), normal(20, 6))]  # fmt: skip
    return [*made, S(np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)).but(devices=("cpu",))]


EINSUMS = [
    ("ij,jk->ik", (3, 4), (4, 5)), ("ij,kj", (3, 4), (5, 4)), ("ij->ji", (3, 4)), ("ij->", (3, 4)),
        ("ii->i", (4, 4)),
    ("ii", (4, 4)), ("iij,jk->ik", (3, 3, 2), (2, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)), ("i,j->ij", (3,), (4,)), ("i,i->", (5,), (5,)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ab,bc,cd,de->ae", (2, 3), (3, 4), (4, 2), (2, 3)), ("ij,ij->ij", (3, 4), (3, 4)), ("ijk,k->ij", (2,
        3, 4), (4,)),
    ("...i->...", (2, 3, 4)), ("i...->...", (2, 3, 4)), ("ij,jk->ik", (3, 1), (4, 5)),
        ("b i , b j -> b i j", (2, 3), (2, 4)),
    ("ij,k->", (2, 3), (4,)), (",ij->ij", (), (2, 3)), ("aab,b->a", (3, 3, 2), (2,)), ("ba,cad->bd", (2,
        3), (4, 3, 5)),
    ("nlhd,nshd->nlsh", (2, 3, 2, 4), (2, 5, 2, 4))
]  # fmt: skip
SAMPLES: dict[str, list[Sample]] = {
    "matmul": [
        *[S(normal(*a), normal(*b)).but(**close, variants=("shared",) * ((a, b) in SHARED)) for a,
            b in SHAPES],
        S(below(9, 2, 3, 4) - 4, below(2**40, 4, 5)), S(below(9, 3, 4), below(9, 4)),
        *each(("int32", "int8", "uint8"), normal(2, 3), normal(3, 4)),
        # Transposed, expanded and sliced operands are read in place.
        *[S(lambda t, a, b: a.mT @ b.mT, turned(a), turned(b)).but(**close, second=False) for a, b in TURNED],
        *[S(lambda t, a, b: (a @ b.mT, b @ a.mT), normal(*a), turned(b)).but(**close,
            layouts=("contiguous",)) for a, b in TURNED],
        S(lambda t, a, b: a.expand(4, 3, 5) @ b[:, ::2], normal(3, 5), normal(5, 8)).but(**close),
        S(lambda t, a, b: a[1:, :, 2:] @ b[..., 1:4], normal(3, 4, 7), normal(2, 5, 6)).but(**close),
        *halves(variants=("shared",)), bad("", normal(2, 3), normal(2, 3)),
        S(lambda t, a, b: t.complex(a, 2 * a) @ t.complex(b, -b), normal(2, 3), normal(3, 2)).but(**close),
        bad("", normal(2, 2, 3), normal(3, 3, 4)), bad("", np.float32(1), normal(2)),
        bad("", normal(2, 2), np.ones((2, 2), np.int64))
    ],
    "mm": [S(normal(3, 4), normal(4, 5)), *halves(), S(nothing(2, 0), nothing(0, 3)),
        bad("", batch, normal(3, 3))],
    "bmm": [
        S(batch, normal(2, 4, 5)), S(nothing(2, 2, 0), nothing(2, 0, 4)),
        S(nothing(0, 2, 3), nothing(0, 3, 4)),
        bad("", normal(2, 2, 3), normal(3, 3, 3))
    ],
    "mv": [S(normal(3, 4), normal(4)), S(nothing(3, 0), nothing(0)), bad("", normal(2, 3), normal(3, 1))],
    "dot": [S(normal(40), normal(40)), S(nothing(0), nothing(0)), bad("", normal(2), normal(3))],
    "outer": [S(normal(4), normal(5)), *each(DTYPES, normal(4), normal(5))],
    "addmm": [
        S(normal(5), normal(3, 4), normal(4, 5)),
        S(normal(3, 5), normal(3, 4), normal(4, 5), beta=0.5, alpha=2),
        S(normal(2, 3), nothing(2, 0), nothing(0, 3))
    ],
    "baddbmm": [S(normal(2, 3, 5), batch, normal(2, 4, 5), beta=0.5),
        S(normal(3, 5), batch, normal(2, 4, 5), alpha=0.5)],
    "nn.functional.linear": [
        *[S(normal(2, n, 24), normal(70, 24), normal(70)).but(**close,
            variants=("shared",) * (n == 40)) for n in (1, 3, 4, 5, 40, 100)],
        *[S(normal(n, 24), normal(70, 24)).but(**close) for n in (1, 40)],
        S(normal(6), normal(3, 6), normal(3)),
        *each(("float16", "bfloat16"), normal(9, 20), normal(6, 20)), S(nothing(0, 4), nothing(3, 4)),
        S(nothing(2, 0), nothing(3, 0), normal(3)), bad("", normal(2, 3), normal(4, 5))
    ],
    "einsum": [
        *[S(equation, *[normal(*s) for s in shapes]).but(**close) for equation, *shapes in EINSUMS],
        S(lambda t, a, b: t.einsum(a, [0, 1], b, [1, 2], [0, 2]), normal(3, 4), normal(4, 5)),
        S(lambda t, a, b: t.einsum(a, [..., 3, 7], b, [..., 7]), normal(2, 3, 4), normal(2, 4)),
        S(lambda t, a, b: t.einsum("ij,jk", [a, b]), normal(3, 4), normal(4, 5)),
        S("ij,jk->ik", np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)),
        S("ij,jk->ik", below(9, 2, 3).astype("int32"), below(9, 3, 4).astype("int32")),
        S("ij->ji", normal(2, 3) > 0), S("ij,jk->ik", nothing(2, 0), nothing(0, 3)),
        *each(("float16", "bfloat16"), "ij,jk->ik", normal(3, 4), normal(4, 5)),
        *[
            bad(text, equation, *[normal(*s) for s in shapes]).but(error=error)
            for text, error, equation, *shapes in [
                ("for 2 operands, and 1", TypeError, "ij,jk", (2, 3)), ("has '1'", TypeError, "i1->i",
        (2, 3)),
                ("1 subscripts for operand 0", ValueError, "i->i", (2, 3)),
                ("lengths 3 and 4", ValueError, "ij,jk->ik", (2, 3), (4, 5)),
                ("each subscript of the result", TypeError, "ij->ik", (2, 3)),
                ("each subscript of the result", TypeError, "ij->ii", (2, 3))
            ]
        ]
    ],
    "tensordot": [
        S(normal(2, 3, 4), normal(3, 4, 5)).but(**close), S(normal(2, 3), normal(3, 5), 1),
        S(normal(2, 3), normal(4), 0), S(normal(2, 3, 4), normal(4, 5, 2), ([0, -1], [2, 0])).but(**close),
        S(normal(1, 1, 1), normal(2, 1, 2), ([0, 1], [2, 0])),
        S(below(9, 1, 2).astype(np.int32), below(9, 2, 3).astype(np.int32), ([1, 0], [0, 1])).but(grad=False),
        bad("have lengths", normal(2, 3), normal(2, 3), 1), bad("dims is 3", normal(2, 3), normal(2, 3), 3)
    ],
    "inner": [S(normal(2, 3), normal(4, 3)), S(normal(3), normal(3)), S(np.float32(2), normal(2, 3)),
        bad("have lengths", normal(3), normal(4))],
    "kron": [
        S(normal(2, 3), normal(4, 1, 2)).but(layouts=("contiguous",)), S(normal(2, 2), normal(2, 3)),
        S(normal(2, 2), np.float32(2)), *each(DTYPES, normal(2, 3), normal(2, 2))
    ],
    "cross": [
        S(normal(4, 3), normal(4, 3)), S(normal(3, 4), normal(3, 1)), S(normal(2, 3, 3), normal(1, 3, 3), 1),
        *each(("float16", "int32", "int64"), normal(4, 3), normal(4, 3), dim=1),
        bad("no axis", normal(4), normal(4)).but(error=ValueError),
        bad("has length 2", normal(2, 3), normal(2, 3), 0)
    ],
    "vdot": [S(normal(40), normal(40)).but(**close), bad("", normal(2), normal(3))],
    "addr": [*[S(*(below(2, *n) > 0 for n in ((3, 4), (3,), (4,))),
        **way) for way in ({}, {"beta": 0}, {"alpha": 0})],
        S(normal(3, 4), normal(3), normal(4), beta=0.5, alpha=2), S(normal(4), normal(3), normal(4)),
        S(np.full((3, 4), np.nan, np.float32), normal(3), normal(4), beta=0).but(grad=False)],
    "addmv": [S(normal(3), normal(3, 4), normal(4), beta=0.5, alpha=2), S(normal(1), normal(3, 4), normal(4)),
        bad("takes a matrix and a vector", normal(3), normal(4), normal(4))],
    "addbmm": [S(normal(3, 5), batch, normal(2, 4, 5), beta=2, alpha=0.5).but(**close),
        S(lambda t, *given: t.addbmm(*given), normal(5), batch, normal(2, 4, 5)).but(**close),
        bad("have no products", normal(3, 5), batch, batch)],
    "cov": [
        S(normal(3, 9)), S(normal(9)), S(normal(3, 9), correction=0), S(np.float32(2)).but(grad=False),
        S(normal(3, 5), fweights=np.array([1, 2, 0, 3, 1])), S(normal(3, 5), aweights=np.abs(normal(5))),
        S(normal(3, 5), fweights=np.array([1, 2, 0, 3, 1]), aweights=np.abs(normal(5))),
        S(np.arange(12).reshape(3, 4)), bad("at most two axes", batch),
        bad("is negative", normal(3, 5), fweights=np.array([1, 2, -1, 3, 1])),
        bad("not integers", normal(3, 5), fweights=np.ones(5, np.float32)),
        bad("float", normal(3, 5), aweights=np.ones(5, np.int64))
    ],
    "corrcoef": [S(normal(3, 9)).but(**close), S(normal(9)), bad("at most two axes", batch)],
    # PyTorch has second derivatives of few of them.
    "cdist": [
        *[
            S(*pair).but(**close, second=False)
            for pair in [
                *[(normal(2, 4, 3), normal(2, 5, 3), p) for p in (0.0, 0.5, 1.0, 2.0, 3.0, np.inf)],
                (normal(30, 3), normal(5, 3)), (normal(4, 3), normal(5, 3), 2.0, "use_mm_for_euclid_dist"),
                (normal(1, 4, 3), normal(2, 5, 3)), (nothing(0, 3), normal(5, 3)), (square, square)
            ]
        ],
        bad("no rows of one length", normal(3), normal(2, 3)),
        bad("p must not be negative", square, square, -1.0)
    ]
}  # fmt: skip
