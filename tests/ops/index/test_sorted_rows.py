"""Rows that a workgroup sorts by itself: any type of up to 32 bits, lengths that fill its lanes or do not."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import plain
from pellucid.op.plan_cache import forget_plans


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Kernels with workgroup memory, whatever the device would choose."""
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    yield
    forget_plans()


def rows(dtype: str, columns: int) -> torch.Tensor:
    """Numbers of which several are equal; floats with zeros, infinities and NaN, integers with their ends."""
    rng = np.random.default_rng(columns)
    x = torch.tensor(np.round(rng.standard_normal((2, columns)) * 60))
    if dtype == "bool":
        return x > 0
    if "float" in dtype:
        x[:, 7:12] = torch.tensor([np.nan, np.inf, -np.inf, 0.0, -0.0])
        return (x / 7).to(getattr(torch, dtype))
    kind = getattr(torch, dtype)
    x = (x.abs() if dtype == "uint8" else x).to(kind)
    x[:, 7], x[:, -1] = torch.iinfo(kind).max, torch.iinfo(kind).min
    return x


@pytest.mark.turns(8)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("columns", [513, 1024, 2047, 4096])
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8", "bool"]
)
def test_order(dtype, columns, descending):
    x = rows(dtype, columns)
    ours = pellucid.tensor(x.float().numpy() if "float" in dtype else x.numpy(), device="webgpu")
    out = ours.to(getattr(pellucid, dtype)).sort(-1, descending)
    expected = x.sort(dim=-1, descending=descending, stable=True)
    np.testing.assert_array_equal(plain(out.indices), expected.indices.numpy())
    np.testing.assert_array_equal(plain(out.values.float()), expected.values.float().numpy())


def test_sums_of_few_rows_go_by_sorted_places():
    """Of the places only so many bits are sorted as there are rows for."""
    rng = np.random.default_rng(0)
    for rows_of_table in (17, 5000, 70_000):
        index = rng.integers(0, rows_of_table, 3000)
        source = rng.standard_normal(3000).astype(np.float32)
        expected = torch.zeros(rows_of_table).scatter_add(0, torch.tensor(index), torch.tensor(source))
        table = pellucid.zeros(rows_of_table, device="webgpu")
        made = table.scatter_add(
            0, pellucid.tensor(index, device="webgpu"), pellucid.tensor(source, device="webgpu")
        )
        np.testing.assert_allclose(plain(made), expected.numpy(), rtol=1e-5, atol=1e-5)
