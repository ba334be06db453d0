"""Decompositions of larger matrices, by several dispatches and by lanes that share a workgroup."""

import numpy as np
import pytest

import pellucid
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


def test_what_no_kernel_takes_goes_over_the_cpu(monkeypatch):
    monkeypatch.setattr(module, "PIECE", 100)
    forget_plans()
    a = pellucid.tensor(A[0, :20, :20])
    assert a.device.type == "webgpu"
    inverse = pellucid.linalg.inv(a)
    assert inverse.device.type == "webgpu"
    assert error(inverse, np.linalg.inv(A[0, :20, :20])) < 1e-4
    forget_plans()
