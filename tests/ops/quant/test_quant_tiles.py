"""Every tile gives the product of many rows with a quantized weight, alone and joined with others, and the
choice between them is a pure function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pellucid
from ops.adapters import H200, LAPTOP, SOFTWARE
from ops.joints import Window, nodes
from ops.oracle import normal
from pellucid.device.profile import profile
from pellucid.nn.functional import linear
from pellucid.op.launches import most_buffers
from pellucid.ops.quant.products import quant_product
from pellucid.ops.quant.tiles import TILES, candidates, choose, forced
from pellucid.ops.quant.vectors import vectors
from pellucid.quant import FORMATS
from pellucid.quant.weight import dequantize
from quant.samples import OWN_PRODUCTS, sampled, widths

pytestmark = pytest.mark.gpu
EVERY_TILE = pytest.mark.parametrize("tile", TILES, ids=str)


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    with forced(None):
        yield


def weights(name, columns, *rows):
    rng = np.random.default_rng(columns)
    return [sampled(name, n, columns, rng, "webgpu")[0] for n in rows]


def middle(*shape):
    """Random numbers on webgpu, as a view that begins in the middle of its buffer."""
    return pellucid.tensor(normal(1 + int(np.prod(shape))), device="webgpu")[1:].reshape(shape)


def check(out, x, weight, bias=None):
    """Within rounding: a small part of the sum of magnitudes, as float32 addition promises."""
    values, x = dequantize(weight).numpy().astype(np.float64), x.numpy()
    added = 0.0 if bias is None else bias.numpy()
    error = np.abs(out.numpy() - (x @ values.T + added))
    assert (error <= 1e-6 * (np.abs(x) @ np.abs(values).T + np.abs(added))).all()


@pytest.mark.turns(3)
@pytest.mark.usefixtures("form")
@EVERY_TILE
def test_every_tile(tile):
    """Also where rows, columns and depth are no multiples of the tile, and x begins anywhere."""
    name, columns = (("q4_1", 96), ("q6_k", 512), ("f16", 37))[TILES.index(tile) % 3]
    (weight,), bias = weights(name, columns, 70), middle(70)
    with forced(tile):
        for x in (middle(9, columns), pellucid.tensor(normal(67, columns))):
            check(linear(x, weight), x, weight)
            check(linear(x, weight, bias), x, weight, bias)


def check_product(x, *chunks):
    """The product with the weight itself, within rounding as above."""
    values = np.concatenate([dequantize(chunk).numpy() for chunk in chunks]).astype(np.float64)
    out, x = quant_product(x, list(chunks)).numpy(), x.numpy()
    assert (np.abs(out - x @ values) <= 1e-6 * (np.abs(x) @ np.abs(values))).all()


@pytest.mark.turns(7)
@pytest.mark.usefixtures("form")
@EVERY_TILE
def test_every_tile_of_the_gradient(tile):
    """Its depth goes down the rows of the weight, of which there may be several chunks."""
    name, columns = (("q4_1", 96), ("q6_k", 512), ("f16", 37))[TILES.index(tile) % 3]
    chunks = weights(name, columns, 70, 33, 24)
    with forced(tile):
        for x in (middle(9, 127), pellucid.tensor(normal(67, 127))):
            check_product(x, *chunks)
        check_product(pellucid.tensor(normal(34, 96)), *weights(name, columns, 32, 64))


@pytest.mark.turns(7)
@pytest.mark.parametrize("name", FORMATS)
def test_the_gradient_of_every_format(name):
    check_product(middle(20, 45), *weights(name, widths(name)[1], 45))


@pytest.mark.turns(7)
@pytest.mark.parametrize("name", OWN_PRODUCTS)
def test_a_row_of_nan_stays_a_row(name):
    columns = widths(name)[0]
    (weight,), x = weights(name, columns, 40), normal(20, columns)
    x[7] = np.nan
    for tile in (TILES[0], TILES[-1]):
        with forced(tile):
            out = linear(pellucid.tensor(x), weight).numpy()
        assert np.isnan(out[7]).all()
        assert np.isfinite(np.delete(out, 7, 0)).all()


def compare(x, given, paired=False):
    """Run the products one by one, then at once into the same buffers."""
    window = Window(lambda: [linear(x, weight) for weight in given])
    products = window.named("matmul/quant/tiled")
    for out in window.result:
        out.fill_(np.nan)
    joint = vectors(nodes(products), paired=paired)
    assert joint is not None
    assert len(joint.node.source.bindings) <= 8 <= most_buffers()
    window.run(joint, products)
    for out, weight in zip(window.result, given, strict=True):
        check(out, x, weight)
    return joint.node


@pytest.mark.turns(3)
@pytest.mark.usefixtures("form")
@EVERY_TILE
def test_joined_products(tile):
    """One of three ways to join them, each of which has a kernel; the tiles beside it take the others."""
    ways = ("q4_1", (133, 32, 7), False), ("q8_0", (20, 70), False), ("q4_1", (75, 75), True)
    name, rows, paired = ways[TILES.index(tile) % 3]
    with forced(tile):
        compare(middle(33, 96), weights(name, 96, *rows), paired=paired)


@pytest.mark.turns(7)
@pytest.mark.parametrize("name", OWN_PRODUCTS)
def test_joined_products_of_every_format(name):
    columns = widths(name)[1]
    x = pellucid.tensor(normal(20, columns))
    compare(x, weights(name, columns, 45, 45, 3))
    compare(x, weights(name, columns, 45, 45), paired=True)


def test_two_weights_bind_what_they_need():
    x = middle(12, 64)
    node = compare(x, weights("q4_0", 64, 30, 10))
    assert [b.name for b in node.source.bindings] == [
        "x", "weight_0", "weight_1", "weight_2", "out_0", "out_1"
    ]  # fmt: skip
    node = compare(x, weights("q4_0", 64, 30, 30), paired=True)
    assert [b.name for b in node.source.bindings] == ["x", "weight_0", "weight_1", "out_0", "out_1"]


def test_what_does_not_fit_is_left_apart():
    x, more, wide, bias = middle(12, 96), middle(13, 96), middle(12, 64), middle(9)
    q4, (q5,), (narrow,) = weights("q4_1", 96, 9, 9, 8), weights("q5_1", 96, 9), weights("q4_1", 64, 9)

    def program():
        return (
            [linear(x, weight) for weight in (*q4, q5)], linear(wide, narrow), linear(x, q4[0], bias),
            linear(more, q4[0])
        )  # fmt: skip

    a, b, c, fifths, other, biased, longer = nodes(Window(program).named("matmul/quant/tiled"))
    assert vectors([a, b, c]) is not None
    assert vectors([a, b], paired=True) is not None
    assert vectors([a, c], paired=True) is None
    for apart in (fifths, other, biased, longer):
        assert vectors([a, apart]) is None
    assert vectors([a]) is None


# The choice


@EVERY_TILE
def test_a_tile_is_what_its_kernel_takes(tile):
    assert tile.lanes <= 256
    assert tile.lane_rows in (2, 4, 8)
    assert tile.rows % (2 * tile.lane_rows) == tile.columns % 8 == tile.step % 8 == 0
    assert tile.step % (4 * tile.slices) == 0
    assert tile.step // (4 * tile.slices) in (1, 2, 3, 4, 8)
    assert tile.rows * tile.step <= 4 * 4 * tile.lanes
    assert tile.columns * tile.step <= 2 * 8 * tile.lanes
    assert tile.nbytes() <= 16384


@pytest.mark.parametrize("tokens", [33, 64])
def test_short_prompts_fill_a_device(tokens):
    for rows, units in (((576,), 18), ((576, 192, 192), 18), ((3072,), 18), ((576,), 48)):
        assert choose(tokens, rows, units, H200).groups(tokens, *rows) >= 0.5 * profile(H200).processors


def test_large_products_have_large_tiles():
    areas = [tile.rows * tile.columns for tile in (choose(n, (4096,), 128, H200) for n in (9, 64, 512, 4096))]
    assert areas == sorted(areas)
    assert areas[-1] >= 4096


@given(
    batch=st.integers(1, 5000), rows=st.lists(st.integers(1, 5000), min_size=1, max_size=3),
    units=st.integers(1, 500), info=st.sampled_from([H200, LAPTOP, SOFTWARE])
)  # fmt: skip
def test_every_candidate_suits(batch, rows, units, info):
    found = candidates(batch, tuple(rows), units, info)
    assert sorted(map(str, found)) == sorted(map(str, TILES))
    assert found[0] == choose(batch, tuple(rows), units, info)
