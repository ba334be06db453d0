"""Samples of linear algebra. Signs of vectors are not defined: what is made of them is compared."""

import numpy as np

from samples.sample import S, Sample, bad, normal, nothing

close = {"rtol": 1e-4, "atol": 1e-4, "layouts": ("contiguous",)}
once = {**close, "second": False}
x = normal(3, 3) + 2 * np.eye(3, dtype=np.float32)
two = normal(2, 3, 3) + 2 * np.eye(3, dtype=np.float32)
tall, wide = normal(2, 4, 3), normal(3, 5)
definite = two @ two.swapaxes(1, 2)
b, none = normal(3, 2), nothing(0, 3, 3)
singular = np.outer(np.arange(3.0), np.ones(3)).astype(np.float32)
low = (normal(2, 5, 2) @ normal(2, 2, 4)).astype(np.float32)
# Eigenvalues far from each other: the derivatives of vectors, which are found step by step, depend on gaps.
apart = 4 * np.diag(np.arange(9)).astype(np.float32)
twice = {**close, "layouts": ("contiguous", "strided")}


def symmetric(x):
    return x + x.mT


def products(found):
    """Values, and what does not depend on the signs of vectors."""
    values, rows = found[0], found[1].mT
    return values, rows.unsqueeze(-1) * rows.unsqueeze(-2)


def of(function, *args, **options) -> Sample:
    return S(function, *args).but(**{**close, **options})


def empty(*args, **kwargs) -> Sample:
    return S(*args, **kwargs).but(grad=False, layouts=("contiguous",), paged=False)


def none_of(text: str, *args, **kwargs) -> Sample:
    """A call for which there is no solution: LinAlgError is a RuntimeError, as PyTorch's."""
    return bad(text, *args, **kwargs).but(error=RuntimeError)


NO_SQUARE = [bad("square", wide), bad("at least two axes", b[0])]
HALF = bad("float32", np.eye(3, dtype=np.float16))
definite_calls = [
    of(lambda t, x, k=k: t.linalg.cholesky_ex(x @ x.mT + t.eye(3), **k)[0], a)
    for a, k in ((x, {}), (two, {"upper": True}))
]


def factored(t, A, **options):
    return t.linalg.lu_factor(A, **options)


SAMPLES: dict[str, list[Sample]] = {
    "linalg.cholesky_ex": [
        *definite_calls, S(definite).but(**once, grad=False), S(-definite[0]).but(grad=False, call=lambda t,
        a: t.linalg.cholesky_ex(a)[1]), empty(none), empty(nothing(2, 0, 0)), *NO_SQUARE, HALF,
        none_of("minor of order 1", -x, check_errors=True),
    ],
    "linalg.cholesky": [of(lambda t, x: t.linalg.cholesky(x @ x.mT + t.eye(3)), x),
        none_of("minor of order 1",
        -definite)],
    "cholesky": [S(definite).but(**once, grad=False), S(definite, True).but(**once, grad=False)],
    "cholesky_solve": [of(lambda t, b, a: t.cholesky_solve(b, a.tril()), b, x), of(lambda t,
        b, a: t.cholesky_solve(b, a.triu(), upper=True), b, x)],
    "cholesky_inverse": [of(lambda t, a: t.cholesky_inverse(a.tril()), x), of(lambda t,
        a: t.cholesky_inverse(a.triu(), True), two)],
    "linalg.solve_triangular": [
        S(x, b, upper=False).but(**twice), S(two, b, upper=True, unitriangular=True).but(**close),
        S(two, normal(2, 4, 3), upper=True, left=False).but(**close), empty(none, nothing(0, 3, 2),
            upper=True),
        empty(x, nothing(3, 0), upper=True), bad("no system", x, normal(2, 2), upper=True), bad("square",
            wide, b,
        upper=True)
    ],
    "triangular_solve": [S(b, x).but(**close), S(b, two, False, True).but(**close), S(b, x, True, False,
        True).but(**close)],
    "linalg.lu_factor_ex": [
        S(x).but(**close), S(two).but(**twice), S(tall).but(**close), S(wide).but(**close),
        S(singular).but(**once, grad=False), empty(none), empty(nothing(2, 0, 3)), HALF,
        none_of("element 1", nothing(2, 2), check_errors=True)
    ],
    "linalg.lu_factor": [S(two).but(**once), none_of("element 1", nothing(2, 2))],
    "linalg.lu": [S(x).but(**close), S(tall).but(**close), S(wide).but(**close)],
    "lu": [of(lambda t, a: t.lu(a), two, grad=False), of(lambda t, a: t.lu(a, get_infos=True), singular,
        grad=False)],
    "lu_unpack": [of(lambda t, a: t.lu_unpack(*factored(t, a)), two), of(lambda t,
        a: t.lu_unpack(*factored(t, a), unpack_pivots=False)[1:], tall)],
    "linalg.lu_solve": [
        of(lambda t, a, b: t.linalg.lu_solve(*factored(t, a), b), two, b),
        of(lambda t, a, b: t.linalg.lu_solve(*factored(t, a), b, adjoint=True), x, normal(2, 3, 2)),
        of(lambda t, a, b: t.linalg.lu_solve(*factored(t, a), b, left=False), x, normal(2, 3))
    ],
    "lu_solve": [of(lambda t, a, b: t.lu_solve(b, *factored(t, a)), two, normal(2, 3, 1))],
    "linalg.solve_ex": [S(two, b).but(**close), S(x, normal(2, 3), left=False).but(**close)],
    "linalg.solve": [
        S(x, b).but(**twice), S(two, normal(2, 3)).but(**close), S(x, b[:, 0].copy()).but(**close), S(two,
            b[:,
        0].copy()).but(**close), empty(none, nothing(0, 3, 2)), none_of("singular", singular, b),
            bad("square", wide,
        b), bad("3 by 3", x, normal(2, 2))
    ],
    "linalg.inv_ex": [S(two).but(**close), S(singular).but(**once, grad=False, call=lambda t,
        a: t.linalg.inv_ex(a)[1])],
    "linalg.inv": [of(lambda t, a: t.linalg.inv(a + 1j * a.mT).abs(), x, grad=False),
        S(x).but(**twice), empty(none), empty(nothing(2, 0, 0)), none_of("singular", singular),
        *NO_SQUARE,
        HALF],
    "inverse": [S(x).but(**close)],
    "linalg.det": [S(x).but(**twice), S(two).but(**close), S(singular).but(grad=False), empty(none),
        empty(nothing(2,
        0, 0)), *NO_SQUARE],
    "det": [S(x).but(**close)],
    "linalg.slogdet": [*[of(lambda t, a: t.linalg.slogdet(a)[1], a) for a in (-x, two)], S(two).but(**once,
        grad=False), S(singular).but(grad=False), empty(nothing(2, 0, 0))],
    "slogdet": [S(x).but(**once, grad=False)],
    "logdet": [S(definite).but(**close), S(-definite[0]).but(grad=False)],
    "linalg.tensorinv": [S(normal(4, 2, 2), ind=1).but(**close), S(normal(2, 3, 6)).but(**close),
        bad("other numbers",
        normal(2, 3, 4))],
    "linalg.tensorsolve": [S(normal(2, 3, 6), normal(2, 3)).but(**close), S(normal(6, 2, 3), normal(2, 3),
        dims=(0,)).but(**close), bad("no square", normal(2, 3, 4), normal(2, 3))],
    "linalg.qr": [
        of(lambda t, a: [f(*t.linalg.qr(a)) for f in (lambda q, r: q @ r, lambda q, r: r * r, lambda q,
            r: q * q)], a)
        for a in (x, tall, wide)
    ] + [
        of(lambda t, a: (t.linalg.qr(a, "complete")[1].abs(), t.linalg.qr(a, mode="r")[1].abs()), tall,
            grad=False),
        of(lambda t, a: t.matmul(*t.linalg.qr(a, "complete")), tall, grad=False), empty(none),
            empty(nothing(2, 3, 0)),
        bad("mode is", x, "all"), HALF,
    ],
    "qr": [of(lambda t, a: t.matmul(*t.qr(a)), tall), of(lambda t, a: t.qr(a, some=False)[1].abs(), tall,
        grad=False)],
    "geqrf": [of(lambda t, a: t.linalg.householder_product(*t.geqrf(a)) @ t.geqrf(a)[0][..., :3, :].triu(),
        tall,
        grad=False), empty(none)],
    "linalg.householder_product": [S(tall, normal(2, 3)).but(**close), bad("no fewer rows", wide,
        normal(3))],
    "orgqr": [S(tall[0].copy(), normal(2)).but(**close)],
    "ormqr": [S(tall, normal(2, 3), normal(2, 4, 2)).but(**close), S(tall, normal(2, 3), normal(2, 2, 4),
        False,
        True).but(**close)],
    "linalg.eigh": [
        of(lambda t, a: t.linalg.eigh(symmetric(a))[0], two),
        of(lambda t, a: t.linalg.eigh(a, "U")[1] ** 2, x + x.T, rtol=1e-3),
        of(lambda t, a: (lambda L, V: V @ L.diag_embed() @ V.mT)(*t.linalg.eigh(a)), x, grad=False),
        of(lambda t, a: (lambda L, V: V @ L.diag_embed() @ V.mT)(*t.linalg.eigh(a, UPLO="U")), two,
            grad=False),
        empty(none), empty(nothing(2, 0, 0)), bad("UPLO", x, "X"), *NO_SQUARE
    ],
    "linalg.eigvalsh": [S(x).but(**close), S(two, "U").but(**close)],
    "linalg.eig": [
        of(lambda t, a: (lambda L, V: (V * L.unsqueeze(-2) @ t.linalg.inv(V)).abs())(*t.linalg.eig(a)), two),
        of(lambda t, a: t.linalg.eig(a)[1].abs() ** 2, two), *NO_SQUARE
    ],
    "linalg.eigvals": [of(lambda t, a: t.linalg.eigvals(a).abs().sort()[0], two)],
    "linalg.svd": [
        *[of(lambda t, a: (lambda U, s, Vh: (s, U @ s.diag_embed() @ Vh, U * U, Vh * Vh))(*t.linalg.svd(a,
            False)), a,
        rtol=1e-3, atol=1e-3) for a in (x, tall, wide)],
        of(lambda t, a: [f.mT @ f for f in t.linalg.svd(a)[::2]], tall, grad=False), empty(none, False),
        empty(nothing(2, 3, 0)), bad("driver", x, driver="fast"), none_of("NaN", np.full((2, 2), np.nan,
            np.float32)).but(devices=("cpu",))
    ],
    "linalg.svdvals": [S(two).but(**close), S(wide).but(**close)],
    "svd": [of(lambda t, a: (lambda U, s, V: U @ s.diag_embed() @ V.mT)(*t.svd(a)), tall, second=False),
        of(lambda t, a: t.svd(a, compute_uv=False), tall, grad=False)],
    "linalg.pinv": [
        S(tall).but(**close), S(wide).but(**close), S(low, rtol=1e-4).but(**once), S(x, atol=0.3).but(**once,
        grad=False), of(lambda t, a: t.linalg.pinv(symmetric(a), hermitian=True), two, rtol=1e-3,
        atol=1e-3, second=False),
        S(two, rtol=np.array([0.5, 0.1], np.float32), atol=np.array([0.1, 0.0], np.float32)).but(**once,
        grad=False), empty(none), empty(nothing(2, 3, 0))
    ],
    "pinverse": [S(wide).but(**once)],
    "linalg.matrix_rank": [S(low, rtol=1e-4), S(definite, hermitian=True), S(x, 1.5), S(low, atol=1e-3,
        hermitian=False), empty(nothing(2, 0, 3))],
    "linalg.lstsq": [
        of(lambda t, a, b: t.linalg.lstsq(a, b)[0], tall, normal(2, 4, 2)),
        *[of(lambda t, a, b, d=d: t.linalg.lstsq(a, b, driver=d), tall, normal(2, 4, 2),
            grad=False) for d in ("gels",
        "gelsy", "gelsd", "gelss")], of(lambda t, a, b: t.linalg.lstsq(a, b, driver="gelsd", rcond=1e-4),
            low[0].copy(),
        normal(5, 1), grad=False), S(wide, normal(3, 2)).but(**once, grad=False), S(tall, normal(2,
        4)).but(**once, grad=False), bad("driver", x, b, driver="fast"), bad("B has shape", x, normal(2, 2))
    ],
    "linalg.multi_dot": [S([wide, normal(5, 2), normal(2, 4)]).but(**close), S([normal(3), wide,
        normal(5)]).but(**close), bad("at least two", [x]), bad("no product", [x, wide.T.copy()])],
    "chain_matmul": [S(wide, normal(5, 2)).but(**close), S(x).but(**close)],
    "matrix_power": [*[S(two, n).but(**close, grad=n != 0) for n in (0, 1, 5, -2)], *[bad("square", wide,
        2)]],
    "linalg.matrix_exp": [S(x).but(**close), S(np.stack([x, x * 0.1, x - x])).but(**{**close, "rtol": 1e-3}),
        S(-20 * definite[0]).but(**once, grad=False), empty(none), *NO_SQUARE],
    "matrix_exp": [S(x * 0.1).but(**once)],
    "linalg.vander": [S(normal(2, 3)).but(**close), S(normal(3), N=4).but(**close), S(np.arange(3)),
        bad("N above 1",
        normal(3), N=1)],
    "linalg.vecdot": [S(tall, tall[:, :1].copy()).but(**close), S(tall, tall + 1, dim=1).but(**close)],
    "linalg.cross": [S(two, normal(2, 1, 3)).but(**close), S(two, two + 1, dim=1).but(**close),
        bad("equally many",
        two, x), bad("length 5", wide, wide)],
    "linalg.diagonal": [S(tall), S(tall, offset=1, dim1=0, dim2=2)],
    "nuclear_norm": [S(wide).but(**close), S(tall, (0, 2), True).but(**once)],
    "frobenius_norm": [S(tall, (1, 2)).but(**close), S(x, (0,), True).but(**once)],
    "linalg.vector_norm": [S(tall), S(tall, 3, (0, 2)), S(tall, np.inf, 1, True), S(x, 0), S(x, 1.5,
        dtype="float32"),
        bad("", np.arange(3))],
    "linalg.matrix_norm": [
        *[S(tall, o, keepdim=True).but(**close) for o in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)],
        S(tall, "nuc", (2, 0)).but(**once), S(tall, 1, (0, 1)).but(**once), *[empty(nothing(0, 0),
            o) for o in ("nuc",
        1, 2)], bad("no matrix norm", x, "x"), bad("two axes", x, 1, (0, 0))
    ],
    "linalg.norm": [S(tall), S(x, 2), S(x[0].copy(), 3), S(tall, "nuc", (0, 1)).but(**once), S(tall, 1, 1),
        bad("one or two",
        tall, 2), bad("one axis or two", tall, 2, (0, 1, 2))],
    "linalg.cond": [*[S(two, p).but(**{**once, "rtol": 1e-3, "atol": 1e-3}, grad=p in (None,
        -2)) for p in (None, -2, "fro", 1, -np.inf)],
        S(tall).but(**once), S(nothing(2, 2), 1).but(grad=False), empty(nothing(2, 0, 0)), bad("square",
            wide, "fro")],
    "linalg.ldl_factor_ex": [S(a + a.swapaxes(-1, -2)).but(**once, grad=False) for a in (two, normal(5, 5),
        nothing(2,
        2))] + [empty(none), *NO_SQUARE],
    "linalg.ldl_factor": [S(definite).but(**once, grad=False), none_of("block 1", nothing(2, 2))],
    "linalg.ldl_solve": [of(lambda t, a, b: t.linalg.ldl_solve(*t.linalg.ldl_factor(symmetric(a)), b), a, b,
        grad=False) for a, b in ((two, b), (normal(5, 5), normal(5, 2)))],
    "svd_lowrank": [of(lambda t, a: t.svd_lowrank(a, 3)[1][..., :2], low, grad=False), of(lambda t,
        a: (lambda U, s, V: U @ s.diag_embed() @ V.mT)(*t.svd_lowrank(a, 3)), low.swapaxes(1, 2).copy(),
            grad=False)],
    "pca_lowrank": [of(lambda t, a: t.pca_lowrank(a, 4)[1], normal(6, 4), grad=False), of(lambda t,
        a: t.pca_lowrank(a,
        2, False)[1], low, grad=False), bad("q is 9", x, 9)],
    "lobpcg": [
        of(lambda t, A, x: products(t.lobpcg(symmetric(A), X=x, tol=1e-6)), normal(9, 9) + apart,
            normal(9, 2), second=False),
        of(lambda t, A, x: products(t.lobpcg(symmetric(A), 2, X=x, tol=1e-6, largest=False)),
            normal(2, 9, 9) + apart, normal(2, 9, 3), second=False),
        of(lambda t, A, B, x: products(t.lobpcg(symmetric(A), 2, B @ B.mT + t.eye(9), x, tol=1e-6)),
            normal(9, 9), normal(9, 9), normal(9, 2), grad=False),
        *[
            bad(text, *args, **named).but(error=ValueError)
            for text, args, named in (
                ("square", (normal(9, 8),), {}), ("less than 3", (normal(9, 9), 4), {}),
                ("at most the 1 columns", (normal(9, 9), 2, None, normal(9, 1)), {}),
                ("X has shape", (normal(9, 9), 2, None, normal(8, 2)), {}),
                ("must be 'basic'", (normal(9, 9), 1), {"method": "other"}),
                ("linearly dependent", (normal(9, 9), 2, None, np.ones((9, 2), np.float32)), {}),
                ("must be positive", (normal(9, 9),), {"tol": -1.0}),
                ("number of steps", (normal(9, 9),), {"niter": -2})
            )
        ],
        bad("float32", np.eye(9, dtype=np.int64)),
        bad("has no settings", normal(9, 9), ortho_iparams={"i_max": 2}).but(error=NotImplementedError),
    ],
}  # fmt: skip
