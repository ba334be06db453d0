"""What PyTorch refuses of shapes and types of tensors is refused here, by an error of the package, and what
it takes is taken."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from ops.values import equal
from pellucid.errors import PellucidError

M = np.arange(12, dtype=np.float32).reshape(3, 4)
AT, A = np.array([2, 0]), np.eye(3, dtype=np.float32) * 2
F = "nn.functional."
REFUSED = {
    "bilinear": [(M, M, np.ones((2, 4, 4), np.float32), np.ones(1, np.float32))],
    F + "multilabel_margin_loss": [(M, np.zeros((3, 3), np.int64))],
    F + "multilabel_soft_margin_loss": [(np.float32(1), np.float32(1))],
    F + "cosine_similarity": [(M.astype(np.complex64), M)],
    F + "glu": [(np.float32(1),)],
    "cross": [(M[:, :3], M[:1, :3][None]), (M[0, :3], M[:3, :3])],
    "inner": [(M[0, :1], M)],
    "addr": [(M[None], M[:, 0], M[0])],
    "baddbmm": [(M[None, None, :, :3], M[None], np.swapaxes(M[None], 1, 2))],
    "take_along_dim": [(M, M > 5, 1), (M, np.zeros((2, 4), np.int64), 1)],
    "index_copy": [(M, 0, np.array([True, False, True]), M), (M, 0, AT[None], M[:2])],
    "index_fill": [(M, 0, np.array([True, False, True]), 1.0), (M, 0, AT[None], 1.0)],
    "index_put": [(M, AT, M[:2])],
    "linalg.solve": [(A, A.astype(np.int64)), (A, np.float32(1))],
    "linalg.solve_ex": [(A, A.astype(np.int64)), (A, np.float32(1))],
    "linalg.lstsq": [(A, A[None]), (A[None], A[0, 0])],
    "svd_lowrank": [(M[0],)],
    "orgqr": [(A, np.float32(1)), (A, np.ones(3, np.int64))],
    "linalg.householder_product": [(A, np.ones(3, np.float16))],
    "fft.fft": [(np.float32(1),)],
    "chunk": [(np.float32(1), 2)],
    "cumulative_trapezoid": [(np.float32(1),)],
    "logcumsumexp": [(M > 5, 1)],
    "prelu": [(M, np.ones((1, 1), np.float32))],
    F + "soft_margin_loss": [(M[0], M)],
    F + "linear_cross_entropy": [(M, np.float32(1), np.array([0, 1, 0]))],
    "fft.fftshift": [(np.float32(1), 0)],
    "index_add": [(np.float32(1), 0, np.array([0, 0]), M[0, :2])],
    "chain_matmul": [(M[0], M.T)],
    "split": [(np.float32(1), 1)],
    "unflatten": [(np.float32(1), 0, (1, 1))],
    "trapezoid": [(np.float32(1),), (M, np.float32(1))],
    "roll": [(np.float32(1), 1, 0)],
}
NAN = np.array([np.nan, 2, -np.inf, np.nan], np.float32)
TAKEN = {
    "isin": [
        (np.array([1.5, 2, np.nan, -np.inf, np.inf], np.float32), NAN),
        (np.array([-np.inf, np.nan], np.float32), NAN[:1]),
        (np.array([-np.inf, 2], np.float32), NAN),
    ],
    F + "mse_loss": [(M, M > 5), (M > 5, M)],
    F + "soft_margin_loss": [(M, M > 5)],
    F + "cosine_similarity": [(M, M.astype(np.int64)), (M > 5, M)],
    F + "multilabel_soft_margin_loss": [(M[0], (M > 5).astype(np.float32))],
    "take_along_dim": [(M, np.zeros((1, 2), np.int64), 1)],
    "index_copy": [(M, 0, AT, M[:2])],
    "index_fill": [(M, 0, np.array(1), 7.0)],
}


def call(p, name, arguments):
    f = p
    for part in name.split("."):
        f = getattr(f, part)
    made = [p.tensor(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in arguments]
    out = f(*made)
    return [t.tolist() for t in (out if isinstance(out, tuple) else (out,))] if p is torch else out


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, rows in REFUSED.items() for a in rows])
def test_what_pytorch_refuses(name, arguments, device):
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
        call(torch, name, arguments)
    with pellucid.device(device), pytest.raises(PellucidError):
        call(pellucid, name, arguments)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, rows in TAKEN.items() for a in rows])
def test_what_pytorch_takes(name, arguments, device):
    f = torch
    for part in name.split("."):
        f = getattr(f, part)
    expected = f(*[torch.tensor(a) if isinstance(a, np.ndarray) else a for a in arguments])
    with pellucid.device(device):
        equal(call(pellucid, name, arguments), expected, rtol=1e-5)
