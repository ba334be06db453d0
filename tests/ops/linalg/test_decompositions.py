"""Decompositions of larger matrices, by several dispatches and by lanes that share a workgroup."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import GradientError
from pellucid.op.plan_cache import forget_plans
from pellucid.ops.linalg import matrices as module

RANDOM = np.random.default_rng(3)


def matrices(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def error(found, wanted):
    return np.abs(found.numpy() - wanted).max() / np.abs(wanted).max()


# More than one dispatch for each, with the lanes of a software adapter.
A, B = matrices(2, 60, 60), matrices(2, 60, 20)


@pytest.fixture(params=["direct", "shared"])
def variant(request, monkeypatch):
    monkeypatch.setenv("PELLUCID_KERNELS", request.param)
    forget_plans()
    yield
    forget_plans()


def test_systems(variant):
    a, b = pellucid.tensor(A), pellucid.tensor(B)
    P, L, U = pellucid.linalg.lu(a)
    assert error(P @ L @ U, A) < 1e-5
    exact = np.linalg.solve(A.astype(np.float64), B)
    assert error(pellucid.linalg.solve(a, b), exact) < 1e-6 * np.linalg.cond(A).max()


def test_cholesky(variant):
    definite = A @ A.swapaxes(1, 2) + np.eye(60, dtype=np.float32)
    assert error(pellucid.linalg.cholesky(pellucid.tensor(definite)), np.linalg.cholesky(definite)) < 1e-5


@pytest.mark.parametrize("shape", [(2, 60, 60), (70, 40), (40, 70)])
def test_orthogonal_factors(variant, shape):
    x = matrices(*shape)
    a, eye = pellucid.tensor(x), np.eye(max(shape[-2:]), dtype=np.float32)
    Q, R = pellucid.linalg.qr(a, "complete")
    assert error(Q @ R, x) < 1e-5
    assert error(Q.mT @ Q, eye[: shape[-2], : shape[-2]]) < 3e-6
    U, S, Vh = pellucid.linalg.svd(a)
    k = S.shape[-1]
    assert error(S, np.linalg.svd(x.astype(np.float64), compute_uv=False)) < 1e-6
    assert error(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], x) < 1e-5
    assert error(U.mT @ U, eye[: shape[-2], : shape[-2]]) < 3e-6
    assert error(Vh @ Vh.mT, eye[: shape[-1], : shape[-1]]) < 3e-6


def test_eigenvalues(variant):
    x = A + A.swapaxes(1, 2)
    L, V = pellucid.linalg.eigh(pellucid.tensor(x))
    assert error(L, np.linalg.eigvalsh(x.astype(np.float64))) < 1e-6
    assert error(V * L.unsqueeze(-2) @ V.mT, x) < 1e-5
    assert error(V.mT @ V, np.eye(60)) < 3e-6


def test_values_that_are_equal_zero_or_lost():
    low = matrices(20, 3) @ matrices(3, 12)
    for x in (np.zeros((3, 3), np.float32), np.ones((4, 3), np.float32), 1e-30 * matrices(4, 4), low, low.T):
        U, S, Vh = pellucid.linalg.svd(pellucid.tensor(np.ascontiguousarray(x)), False)
        assert np.abs((U * S @ Vh).numpy() - x).max() <= 1e-6 * np.abs(x).max() * len(x)
        assert error(Vh @ Vh.mT, np.eye(len(Vh))) < 1e-5
    lost = pellucid.full((2, 2), float("nan"))
    for t in (*pellucid.linalg.svd(lost), *pellucid.linalg.eigh(lost)):
        assert t.isnan().all()


def test_what_no_kernel_takes_goes_over_the_cpu(monkeypatch):
    monkeypatch.setattr(module, "PIECE", 100)
    forget_plans()
    a = pellucid.tensor(A[0, :20, :20])
    assert a.device.type == "webgpu"
    inverse = pellucid.linalg.inv(a)
    assert inverse.device.type == "webgpu"
    assert error(inverse, np.linalg.inv(A[0, :20, :20])) < 1e-4
    forget_plans()


COMPLEX = (matrices(3, 3) + 1j * matrices(3, 3)).astype(np.complex64)
OF_VECTORS = {
    "eigenvalues": lambda t, a: (t.linalg.eigvals(a) ** 3).sum().real,
    "both": lambda t, a: (lambda L, V: ((V * (L**2).unsqueeze(-2)) @ t.linalg.inv(V)).abs())(
        *t.linalg.eig(a)
    ),
    "of a Hermitian": lambda t, a: (lambda L, V: ((V * L.unsqueeze(-2) ** 3) @ V.mH).abs())(
        *t.linalg.eigh(a + a.mH)
    ),
    "cholesky": lambda t, a: t.linalg.cholesky(a @ a.mH + t.ones(3).diag_embed()).imag.abs(),
    "cholesky_solve": lambda t, a: t.cholesky_solve(a, a.tril()).abs(),
    "qr": lambda t, a: t.linalg.qr(a)[0].imag + t.linalg.qr(a)[1].real,
    "qr of a wide one": lambda t, a: t.linalg.qr(a[:2])[0][:, :1].imag + t.linalg.qr(a[:2])[1].real,
    "svdvals": lambda t, a: t.linalg.svdvals(a[:, :2]).sum(),
    "svd": lambda t, a: (lambda U, s, Vh: (U @ Vh).real + U.abs() * s)(*t.linalg.svd(a)),
    "of a Hermitian's values alone": lambda t, a: t.linalg.eigvalsh(a + a.mH) ** 2,
    "matrix_exp": lambda t, a: t.linalg.matrix_exp(a).imag,
    "det": lambda t, a: t.linalg.det(a).imag,
    "logdet": lambda t, a: t.logdet(a).abs(),
    "slogdet": lambda t, a: t.linalg.slogdet(a)[0].imag * t.linalg.slogdet(a)[1],
    "cholesky_inverse": lambda t, a: t.cholesky_inverse(t.linalg.cholesky(a @ a.mH)).imag,
    "acosh": lambda t, a: t.acosh(a).real,
    "powers of numbers": lambda t, a: ((2 + 1j) ** a).imag + ((-2.0) ** a).real,
    "pinv": lambda t, a: t.linalg.pinv(a[:, :2]).imag,
    "pinv of a wide one": lambda t, a: t.linalg.pinv(a[:2]).real.mT,
}


@pytest.mark.parametrize("case", OF_VECTORS)
def test_derivatives_of_complex_matrices(case):
    def run(t):
        a = t.tensor(COMPLEX).requires_grad_()
        weights = t.arange(1.0, 4)
        first = t.autograd.grad((OF_VECTORS[case](t, a) * weights).sum(), a, create_graph=True)[0]
        second = t.autograd.grad((first * weights).abs().sum(), a)[0]
        return [x.detach().resolve_conj().numpy() for x in (first, second)]

    with pellucid.device("cpu"):
        for mine, theirs in zip(run(pellucid), run(torch), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())


def test_phases_of_vectors_have_no_derivative():
    for t, message in ((torch, "ill-defined"), (pellucid, "phases of eigenvectors")):
        a = t.tensor(COMPLEX, device="cpu").requires_grad_()
        with pytest.raises(RuntimeError, match=message):
            t.linalg.eig(a)[1].real.sum().backward()
    a = pellucid.tensor(COMPLEX, device="cpu").requires_grad_()
    with pytest.raises(RuntimeError, match="phases of eigenvectors"):
        pellucid.linalg.svd(a)[0].real.sum().backward()


def test_lobpcg_of_what_requires_grad():
    A = np.random.default_rng(3).standard_normal((2, 9, 9)).astype(np.float32)
    hermitian = (A[0] + 1j * A[1]).astype(np.complex64)
    for matrix in (A[0] + A[0].T, hermitian + hermitian.conj().T):
        given = pellucid.tensor(matrix, device="cpu")
        begun = pellucid.eye(9, 3, device="cpu").to(given.dtype)
        values, _ = pellucid.lobpcg(given.requires_grad_(), 2, X=begun, tol=1e-6)
        np.testing.assert_allclose(values.detach().numpy(), np.linalg.eigvalsh(matrix)[:-3:-1], rtol=1e-4)
    B = pellucid.eye(9, device="cpu").requires_grad_()
    values, _ = pellucid.lobpcg(pellucid.tensor(A[0] + A[0].T, device="cpu"), 2, B)
    with pytest.raises(GradientError, match="lobpcg: has no derivative with B"):
        values.sum().backward()
