"""Kernels of rows in every variant and at every length where they change: the lanes of a row, its parts, its
passes."""

from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ops.each_variant import device, variant  # noqa: F401
from ops.oracle import normal
from pellucid.op.kernel.variants import is_direct, rows_of
from pellucid.ops.norm.normalization import layer_norm, rms_norm
from pellucid.ops.reduce.passes import passes, stages

# Below, at and above the lengths at which a row gets more lanes, more variables, or parts.
LENGTHS = [1, 3, 16, 17, 64, 65, 130, 256, 257, 1000, 1024, 1025, 2048, 2049, 4096, 4097, 8191, 8200]


# Of many rows each gets fewer lanes.
@pytest.mark.parametrize(
    ("rows", "columns"),
    [*product((1, 7), LENGTHS), *((300, n) for n in LENGTHS if n <= 2049), (20, 8200), (2, 32768)],
)
def test_softmax_and_norms(rows, columns):
    x, weight, bias = normal(rows, columns) * 3 + 1, normal(columns), normal(columns)
    ours, theirs = device(x), torch.tensor(x, dtype=torch.float64)
    last = (columns,)
    w, b = torch.tensor(weight, dtype=torch.float64), torch.tensor(bias, dtype=torch.float64)
    for mine, expected in (
        (ours.softmax(-1), theirs.softmax(-1)),
        (ours.log_softmax(-1), theirs.log_softmax(-1)),
        (rms_norm(ours, last, device(weight), 1e-5), F.rms_norm(theirs, last, w, 1e-5)),
        (rms_norm(ours, last, eps=1e-5), F.rms_norm(theirs, last, eps=1e-5)),
        (layer_norm(ours, last, device(weight), device(bias)), F.layer_norm(theirs, last, w, b)),
        (layer_norm(ours, last), F.layer_norm(theirs, last)),
    ):
        np.testing.assert_allclose(mine.numpy(), expected.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("columns", [3, 40, 250, 700, 4096, 5000, 9000])
@pytest.mark.parametrize("copies", [1, 30])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_special_values_stay_in_their_rows(columns, copies, name):
    x = normal(9, columns) * 10
    x[1, columns // 2] = np.nan
    x[2, -1] = np.inf
    x[3] = -np.inf
    x[4] = np.finfo(np.float32).min
    x[5, 1:] = -np.inf
    x[6, 0], x[6, 1] = np.inf, -np.inf
    x[7] = 3e38
    for at in (1, 3):
        x[8, at % columns] = -np.inf
    x = np.tile(x, (copies, 1))
    expected = getattr(torch.tensor(x, dtype=torch.float64), name)(-1).numpy()
    np.testing.assert_allclose(getattr(device(x), name)(-1).numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(5, 700), (5, 8192), (17, 8192), (18, 9000), (3, 33000)])
@pytest.mark.parametrize("has_weight", [False, True])
def test_gradients_of_norms(rows, columns, has_weight):
    x, g, weight = normal(rows, columns) * 3 + 1, normal(rows, columns), normal(columns)
    ours, theirs = device(x).requires_grad_(), torch.tensor(x, dtype=torch.float64, requires_grad=True)
    mine = device(weight) if has_weight else None
    other = torch.tensor(weight, dtype=torch.float64) if has_weight else None
    for of_ours, of_theirs in (
        (layer_norm(ours, (columns,), mine), F.layer_norm(theirs, (columns,), other)),
        (rms_norm(ours, (columns,), mine, 1e-5), F.rms_norm(theirs, (columns,), other, 1e-5)),
    ):
        ours.grad = theirs.grad = None
        of_ours.backward(device(g))
        of_theirs.backward(torch.tensor(g, dtype=torch.float64))
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("copies", "columns"), [(1, 700), (1, 9000), (3, 9000), (1, 40000)])
def test_norms_of_special_values_stay_in_their_rows(copies, columns):
    x = normal(6, columns) * 3 + 1
    x[1, columns // 2] = np.nan
    x[2, -1] = np.inf
    x[3] = 7  # no variance
    x[4] = 1e3 + normal(columns)  # little beside the mean
    x = np.tile(x, (copies, 1))
    ours, theirs = device(x), torch.tensor(x, dtype=torch.float64)
    for mine, expected in (
        (layer_norm(ours, (columns,)), F.layer_norm(theirs, (columns,))),
        (rms_norm(ours, (columns,), eps=1e-5), F.rms_norm(theirs, (columns,), eps=1e-5)),
    ):
        np.testing.assert_allclose(mine.numpy(), expected.numpy(), rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("shape", [(3, 40, 33), (2, 70, 1100), (1, 300, 5), (5, 9, 1), (2, 9000, 40)])
def test_softmax_along_an_inner_axis(shape):
    x = normal(*shape) * 5
    x[0, 1, 0] = np.nan
    x[-1, :, -1] = -np.inf
    for name in ("softmax", "log_softmax"):
        expected = getattr(torch.tensor(x, dtype=torch.float64), name)(1).numpy()
        np.testing.assert_allclose(getattr(device(x), name)(1).numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("columns", [*LENGTHS, 70000])
def test_folds_of_rows(columns):
    x = np.random.randint(-9, 10, (300 if columns < 300 else 5, columns)).astype(np.float32)
    ours = device(x)
    assert ours.sum(-1).tolist() == x.sum(-1).tolist()
    assert ours.sum().item() == x.sum()
    assert ours.amax(-1).tolist() == x.max(-1).tolist()
    assert ours.argmin(-1).tolist() == x.argmin(-1).tolist()
    assert ours.argmax().item() == x.argmax()
    np.testing.assert_allclose(ours.mean(-1).numpy(), x.mean(-1), rtol=1e-6, atol=1e-7)
    signs = device(np.sign(x) + (x == 0))
    assert signs.prod(-1).tolist() == np.where(x < 0, -1, 1).prod(-1).tolist()
    whole = device(x.astype(np.int64) << 33)
    assert whole.sum(-1).tolist() == (x.astype(np.int64) << 33).sum(-1).tolist()


@pytest.mark.parametrize(
    "shape", [(9, 1, 40), (3, 9, 33), (700, 64), (1, 5000, 100), (2, 3000, 31), (3, 300, 1), (70, 5, 2000)]
)
def test_folds_of_columns(shape):
    x = np.random.randint(-9, 10, shape).astype(np.float32)
    ours = device(x)
    for dim in range(x.ndim):
        assert np.array_equal(ours.sum(dim).numpy(), x.sum(dim))
        assert np.array_equal(ours.amin(dim).numpy(), x.min(dim))
        assert np.array_equal(ours.argmax(dim).numpy(), x.argmax(dim))
        np.testing.assert_allclose(ours.mean(dim).numpy(), x.mean(dim), rtol=1e-6, atol=1e-6)
    assert np.array_equal(ours.sum((0, -1)).numpy(), x.sum((0, -1)))


@pytest.mark.parametrize("columns", [5, 256, 300, 1024, 4097, 70000])
@pytest.mark.parametrize("rows", [1, 600])
def test_scans(columns, rows):
    if rows > 1 and columns > 5000:
        pytest.skip("large")
    x = np.random.randint(-3, 4, (rows, columns)).astype(np.float32)
    assert np.array_equal(device(x).cumsum(-1).numpy(), x.cumsum(-1))
    signs = np.sign(x) + (x == 0)
    assert np.array_equal(device(signs).cumprod(-1).numpy(), signs.cumprod(-1))
    whole = x.astype(np.int64) << 33
    assert np.array_equal(device(whole).cumsum(-1).numpy(), whole.cumsum(-1))


def test_long_reductions_fill_a_gpu():
    if is_direct():
        pytest.skip("a CPU is full with less")
    for count in (1 << 22, 1 << 26):
        (only,) = stages((count,), (0,), strips=True)
        assert only.form == "split_rows"
        assert 512 <= only.grid <= 1024
        assert only.outputs == 1
    for columns in (49152, 151936):
        (only,) = stages((1, columns), (1,))
        assert only.grid == -(-columns // 1024)
    for rows, columns, parts in ((1024, 1024, 16), (8192, 768, 42), (512, 64, 8), (65536, 64, 128)):
        (only,) = passes(1, rows, columns, strips=True)
        assert only.form == "split_strips"
        assert (only.parts, only.outputs) == (parts, columns)
        assert only.chunk * (parts - 1) < rows <= only.chunk * parts
    first, second = passes(1, 1 << 20, 64, strips=True)  # long enough that more workgroups pay
    assert (first.form, first.grid) == ("strips", 1024)
    assert second.form == "split_strips"
    (only,) = passes(1, 4096, 32 * 600, strips=True)
    assert (only.form, only.parts) == ("strips", 1)


def test_lanes_hold_their_row():
    for length, count in product(LENGTHS, (1, 1000)):
        rows = rows_of(length, count)
        assert rows.workgroup % rows.lanes == 0
        assert rows.grid(1000) * (rows.workgroup // rows.lanes) >= 1000
        if not is_direct() and length <= 4096:
            assert 4 * (rows.quads - 1) * rows.lanes < length <= 4 * rows.quads * rows.lanes
        whole = rows_of(length, count, several=False)
        assert whole.lanes == whole.workgroup
