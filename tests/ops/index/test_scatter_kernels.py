"""Writes to rows by number, in every variant: few sources in one dispatch, many through a sort."""

import numpy as np
import pytest

import pellucid
from ops.each_variant import device, dispatches, variant  # noqa: F401
from ops.oracle import normal
from pellucid.ops.index.rows import add_rows, put_rows


@pytest.mark.parametrize("sources", [1, 31, 32, 65, 600, 8192, 8300])
@pytest.mark.parametrize(("rows", "width"), [(3, 200), (40, 1), (5000, 9)])
def test_rows_that_sources_go_to(sources, rows, width):
    index = np.random.randint(0, rows, sources)
    base, src = normal(rows, width), np.random.randint(-9, 10, (sources, width)).astype(np.float32)
    added, put, alone = base.copy(), base.copy(), np.zeros_like(base)
    np.add.at(added, index, src)
    np.add.at(alone, index, src)
    for n, row in enumerate(index):
        put[row] = src[n]
    places = device(index)
    np.testing.assert_allclose(add_rows(places, device(src), rows, device(base)).numpy(), added, atol=1e-3)
    assert np.array_equal(put_rows(places, device(src), rows, device(base)).numpy(), put)
    assert np.array_equal(add_rows(places, device(src), rows).numpy(), alone)
    assert np.array_equal(add_rows(places.int(), device(src.astype(np.int64)), rows).numpy(), alone)
    assert np.array_equal(
        add_rows(
            index=pellucid.tensor(index, device="cpu"), src=pellucid.tensor(src, device="cpu"), rows=rows
        ).numpy(),
        alone,
    )


@pytest.mark.parametrize("sources", [5, 9000])
def test_a_row_that_is_not_there_is_reported(sources):
    index = np.arange(sources) % 7
    index[3] = 7
    out = add_rows(device(index), device(normal(sources, 4)), 7)
    with pytest.raises(IndexError, match="index 7 is out of range for 7"):
        out.numpy()


def test_the_gradient_of_an_embedding_writes_its_table_once():
    table = pellucid.zeros(3000, 48, device="webgpu", requires_grad=True)
    ids = device(np.random.randint(0, 3000, 512))
    out = pellucid.nn.functional.embedding(ids, table)
    g = pellucid.ones_like(out)
    assert dispatches(lambda: out.backward(g)) == 1
