"""Every kernel of a product gives the product, and the choice between them is a pure function."""

from dataclasses import replace

import numpy as np
import pytest
import wgpu
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid
from ops.adapters import H200, LAPTOP, SOFTWARE
from ops.oracle import normal
from pellucid.device.profile import profile
from pellucid.errors import KernelError
from pellucid.op.plan_text import write
from pellucid.ops.matmul.choice import bucket, candidates, choose, forced, key, variant_for
from pellucid.ops.matmul.linear import linear
from pellucid.ops.matmul.tiles import tile_rows
from pellucid.ops.matmul.variants import PARTS, TILES, MatmulTile, Shape, Variant, tile_by_limits

SMALL = MatmulTile(32, 32, 4, 4)
SLICED = MatmulTile(16, 16, 4, 4, step=64, slices=8)
# Relative to the sum of the products' magnitudes, whatever the order of additions.
CLOSE = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}


@pytest.fixture(autouse=True)
def on_a_gpu(monkeypatch):
    """The kernels with workgroup memory, chosen without any measurement."""
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    monkeypatch.setenv("PELLUCID_TUNING", "")


def matrix(shape: tuple[int, ...], letter: str, shift: int = 0):
    """(values, tensor) of a matrix that lies by rows ("n") or columns ("t"), `shift` elements on."""
    values = normal(*shape)
    lying = np.ascontiguousarray(values if letter == "n" else np.swapaxes(values, -2, -1))
    whole = pellucid.tensor(np.concatenate([np.full(shift, np.nan, np.float32), lying.reshape(-1)]))
    held = whole[shift:].reshape(lying.shape)
    return values, held if letter == "n" else held.transpose(-2, -1)


def check(out, a: np.ndarray, b: np.ndarray, bias=0.0, close: float = CLOSE["float32"]) -> None:
    bound = np.abs(a).astype(np.float64) @ np.abs(b) + np.abs(bias)
    error = np.abs(out.float().numpy() - (a.astype(np.float64) @ b + bias))
    assert (error <= close * bound + 1e-30).all(), (error / (bound + 1e-30)).max()


@pytest.mark.turns(3)
@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_tile(tile):
    layouts = ("nn", "nt", "tn", "tt")[TILES.index(tile) % 4]
    for depth in (37, 2 * tile.step):
        (a, x), (b, y) = matrix((70, depth), layouts[0]), matrix((depth, 131), layouts[1])
        with forced(Variant("tiled", tile)):
            check(x @ y, a, b)


@pytest.mark.turns(3)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("tile", [MatmulTile(64, 64, 8, 8), SLICED, TILES[1]], ids=str)
def test_the_compact_form_gives_the_same_bits(tile, parts, request):
    """It serves until the full form is compiled: no result may depend on when that is."""
    (_, x), (_, y) = matrix((70, 300), "n"), matrix((300, 131), "t")
    with forced(Variant("tiled", tile, parts)):
        full = (x @ y).numpy()
        request.getfixturevalue("compact_form")
        compact = (x @ y).numpy()
    assert full.tobytes() == compact.tobytes()


@pytest.mark.turns(3)
@pytest.mark.parametrize("layouts", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(
    "tile", [MatmulTile(64, 32, 4, 4), MatmulTile(64, 64, 8, 4, buffers=2), SLICED], ids=str
)
def test_whole_tiles_in_fours(tile, layouts):
    depth = 3 * tile.step
    (a, x), (b, y) = matrix((128, depth), layouts[0]), matrix((depth, 64), layouts[1])
    with forced(Variant("tiled", tile)):
        check(x @ y, a, b)


@pytest.mark.parametrize("shift", [1, 2, 4])
@pytest.mark.parametrize("layouts", ["nn", "tt"])
def test_views_that_begin_anywhere(shift, layouts):
    (a, x), (b, y) = matrix((40, 36), layouts[0], shift), matrix((36, 44), layouts[1], shift)
    with forced(Variant("tiled", SMALL)):
        check(x @ y, a, b)
    for rows in (1, 3):
        check(x[:rows] @ y, a[:rows], b)


def test_nothing_outside_is_read():
    whole = np.full((80, 96), np.nan, np.float32)
    a, b = normal(33, 21), normal(21, 35)
    for layout in ("n", "t"):
        for values in (a, b):
            held = whole.copy()
            part = held[4 : 4 + values.shape[0], 8 : 8 + values.shape[1]] if layout == "n" else held.T
            part = part if layout == "n" else part[4 : 4 + values.shape[0], 8 : 8 + values.shape[1]]
            part[...] = values
            x = pellucid.tensor(held)
            x = x if layout == "n" else x.t()
            x = x[4 : 4 + values.shape[0], 8 : 8 + values.shape[1]]
            with forced(Variant("tiled", SMALL)):
                other = b if values is a else a
                y = pellucid.tensor(other)
                check(x @ y if values is a else y @ x, a, b)


def test_a_row_of_nan_stays_a_row():
    a, b = normal(34, 20), normal(20, 40)
    a[7] = np.nan
    with forced(Variant("tiled", SMALL)):
        out = (pellucid.tensor(a) @ pellucid.tensor(b)).numpy()
    assert np.isnan(out[7]).all()
    assert np.isfinite(np.delete(out, 7, 0)).all()


@pytest.mark.turns(3)
@pytest.mark.parametrize("tile", [SMALL, SLICED], ids=str)
@pytest.mark.parametrize("parts", PARTS[1:])
@pytest.mark.parametrize("depth", [40, 256])
def test_parts(tile, parts, depth):
    """Also where some parts are empty, with a bias that is added once."""
    (a, x), (b, y) = matrix((20, depth), "n"), matrix((depth, 36), "t")
    bias = normal(36)
    with forced(Variant("tiled", tile, parts)):
        check(x @ y, a, b)
        check(linear(x, y.t(), pellucid.tensor(bias)), a, b, bias)
        first = (x @ y).numpy()
        assert np.array_equal((x @ y).numpy(), first)


@pytest.mark.turns(3)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("layout", ["n", "t"])
@pytest.mark.parametrize(("depth", "columns"), [(72, 36), (301, 33)])
def test_few_rows(rows, layout, depth, columns):
    (a, x), (b, y) = matrix((rows, depth), "n"), matrix((depth, columns), layout)
    bias = normal(columns)
    variant = variant_for(Shape(1, rows, columns, depth, True, layout == "t"), "float32", H200)
    assert variant == Variant("vector" if layout == "t" else "vector_columns")
    with forced(variant):
        check(linear(x, y.t(), pellucid.tensor(bias)), a, b, bias)
    with forced(Variant(variant.file, None, 3)):
        check(linear(x, y.t(), pellucid.tensor(bias)), a, b, bias)


def test_batches():
    (a, x), (b, y) = matrix((3, 2, 20, 12), "n"), matrix((2, 12, 24), "t")
    for variant in (Variant("tiled", SMALL), Variant("tiled", SMALL, 2)):
        with forced(variant):
            check(x @ y, a, b)
    (a, x), (b, y) = matrix((5, 3, 12), "n"), matrix((5, 12, 24), "n")
    with forced(Variant("vector_columns", None, 2)):
        check(x @ y, a, b)


@pytest.mark.turns(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shift", [0, 1, 4])
def test_halves(dtype, shift):
    """Products with the identity are exact; every other column is subnormal in float16."""
    d = getattr(pellucid, dtype)
    values, eye = normal(36, 40), pellucid.eye(40).to(d)
    values[:, ::2] *= 3e-7
    for layout in "nt":
        held = pellucid.tensor(values if layout == "n" else values.T.copy()).to(d)
        moved = pellucid.cat([held.reshape(-1)[:shift], held.reshape(-1)])[shift:].reshape(held.shape)
        x = moved if layout == "n" else moved.t()
        exact = x.float().numpy()
        with forced(Variant("tiled", SMALL)):
            assert np.array_equal((x @ eye).float().numpy(), exact)
            assert np.array_equal((eye @ x.t()).float().numpy(), exact.T)
            check(x @ x.t(), exact, exact.T, close=CLOSE[dtype])
        for rows in (1, 4):
            assert np.array_equal((x[:rows] @ eye).float().numpy(), exact[:rows])


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 70), columns=st.integers(1, 70), depth=st.integers(1, 70),
    batch=st.integers(1, 3), layouts=st.sampled_from(["nn", "nt", "tn", "tt"]),
    variant=st.sampled_from(
        [None, Variant("tiled", SMALL), Variant("tiled", SMALL, 4), Variant("tiled", SLICED)]
    ),
    step=st.integers(1, 2)
)  # fmt: skip
def test_any_shape(rows, columns, depth, batch, layouts, variant, step):
    (a, x), (b, y) = matrix((batch, rows, depth), layouts[0]), matrix((batch, depth, columns), layouts[1])
    a, x = a[:, ::step, :], x[:, ::step, :]
    with forced(variant):
        check(x @ y, a, b)


# The choice


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_tile_is_what_its_kernel_takes(tile):
    assert tile.lanes <= 256
    assert tile.lanes % 32 == 0
    assert tile.rows % (4 * tile.lane_rows) == 0
    assert tile.columns % ((8 if tile.lanes // tile.slices >= 32 else 4) * tile.lane_columns) == 0
    assert tile.step % tile.slices == 0
    assert tile.step // tile.slices in (4, 8, 16)
    assert tile.blocks <= 2
    assert tile.nbytes <= 32768


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("kernel", [*TILES, "vector", "vector_columns"], ids=str)
def test_variants_as_text(kernel, parts):
    variant = Variant(kernel, None, parts) if isinstance(kernel, str) else Variant("tiled", kernel, parts)
    assert Variant.parse(str(variant)) == variant


@pytest.mark.parametrize(
    "text", ["", "tiled", "tiled 8x8x8 8x8", "vector, 1 parts", "vector 2", "direct, 2 parts", "other"]
)
def test_texts_that_name_no_variant(text):
    with pytest.raises(KernelError, match="no variant"):
        Variant.parse(text)


def test_large_products_have_large_tiles_and_small_ones_fill_the_device():
    sizes = [choose(Shape(1, n, n, n), H200) for n in (256, 512, 1024, 2048, 4096)]
    areas = [variant.tile.rows * variant.tile.columns for variant in sizes]
    assert areas == sorted(areas)
    assert areas[-1] > areas[0]
    for n in (1024, 2048, 4096):
        assert (
            choose(Shape(1, n, n, n), H200).tile.groups(Shape(1, n, n, n)) >= 0.9 * profile(H200).processors
        )


def test_small_products_are_one_dispatch_of_slices():
    for rows, columns, depth in ((128, 512, 512), (256, 256, 256), (512, 512, 512)):
        variant = choose(Shape(1, rows, columns, depth), H200)
        assert variant.parts == 1
        assert variant.tile.slices > 1


def test_long_depths_are_cut():
    assert choose(Shape(1, 64, 64, 1 << 16), H200).parts > 1
    assert choose(Shape(1, 1, 1, 1 << 20, True, True), H200).parts > 1
    assert choose(Shape(1, 4096, 4096, 4096), H200).parts == 1
    assert choose(Shape(1, 1, 4096, 4096, True, True), H200) == Variant("vector")
    assert choose(Shape(1, 1, 4096, 4096, True, False), H200) == Variant("vector_columns")


@given(
    batch=st.integers(0, 64), rows=st.integers(0, 5000), columns=st.integers(0, 5000),
    depth=st.integers(0, 1 << 20), info=st.sampled_from([H200, LAPTOP, SOFTWARE])
)  # fmt: skip
def test_every_candidate_suits(batch, rows, columns, depth, info):
    """P-017: tiles fit the adapter's limits, whichever these are."""
    shape = Shape(batch, rows, columns, depth)
    found = candidates(shape, info)
    assert found[0] == choose(shape, info)
    assert all(variant.suits(shape, info) for variant in found)


def test_tiles_follow_the_limits_of_the_adapter():
    """P-017: of less workgroup memory a tile takes no more, and the report has the adapter's own names."""
    areas = []
    for room in (4096, 8192, 16384, 32768, 65536):
        info = replace(H200, limits={**H200.limits, "maxComputeWorkgroupStorageSize": room})
        found = [v for v in candidates(Shape(1, 2048, 2048, 2048), info) if v.tile is not None]
        assert found
        assert all(v.tile.nbytes <= room for v in found)
        areas.append(max(v.tile.rows * v.tile.columns for v in found))
        tile = choose(Shape(1, 2048, 2048, 2048), info).tile
        assert tile is None or (tile.rows % 8 == tile.columns % 8 == 0 and tile.nbytes <= room)
    assert areas == sorted(areas)
    assert areas[0] < areas[-1]


@pytest.mark.parametrize(("step", "rows"), [(16, 64), (32, 64), (64, 32), (128, 16)])
def test_kernels_have_the_tile_of_the_formula(step, rows, monkeypatch):
    """P-017: `tile_rows` of an adapter's limits is a tile that it may have and that many products get; the
    kernel runs with it, and gives what others give."""
    for room in (16384, 32768, 49152):
        info = replace(H200, limits={**H200.limits, "maxComputeWorkgroupStorageSize": room})
        tile = tile_by_limits(step, min(room, 32768))
        if tile_rows(step, min(room, 32768)) >= 16:  # the kernel has no smaller one
            assert tile.rows == tile.columns == tile_rows(step, min(room, 32768))
            assert Variant("tiled", tile) in candidates(Shape(1, 2048, 2048, 2048), info)
    assert tile.rows == rows
    sizes = [(n, n, d) for n in (256, 512, 1024) for d in (64, 256)]
    assert step == 16 or any(choose(Shape(1, *size), H200).tile == tile for size in sizes)
    seen, plan_launch = [], write.plan_launch

    def recorded(o, launch, metas):
        seen.append(launch.source.finish(False))
        return plan_launch(o, launch, metas)

    monkeypatch.setattr(write, "plan_launch", recorded)
    (a, x), (b, y) = matrix((70, 2 * step + 5), "n"), matrix((2 * step + 5, 90), "n")
    with forced(Variant("tiled", tile)):
        check(x @ y, a, b)
    (text,) = seen
    for name in ("TILE_ROWS", "TILE_COLUMNS"):
        assert f"const {name} = {rows}u;" in text


def test_the_report_of_the_device_is_the_adapters():
    """P-017: its name, its maker and its limits."""
    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    name, ours = pellucid.webgpu.get_device_name(), pellucid.webgpu.get_device_properties()
    assert name
    assert name in (adapter.info["device"], adapter.info["description"]) or ours.vendor in name
    key = "maxComputeWorkgroupStorageSize"
    assert 16384 <= ours.limits[key] <= adapter.limits["max-compute-workgroup-storage-size"]


def test_on_a_cpu_only_long_sums_share_memory(monkeypatch):
    monkeypatch.setenv("PELLUCID_KERNELS", "direct")
    info = SOFTWARE
    assert variant_for(Shape(1, 64, 64, 64), "float32", info) == Variant("direct")
    assert variant_for(Shape(1, 4, 4, 8192, True, True), "float32", info).file == "vector"


def test_buckets():
    assert [bucket(n) for n in (0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 576, 1024, 1025)] == [
        1, 1, 2, 3, 4, 6, 6, 8, 24, 32, 768, 1024, 1536
    ]  # fmt: skip
    assert key(Shape(1, 1000, 576, 3), "float32") == "float32 nn 1x1024x768x3"
    assert key(Shape(2, 8, 8, 8, False, True), "float16") == "float16 tt 2x8x8x8"


def test_a_product_of_long_vectors_is_a_reduction():
    a, b = normal(1 << 18), normal(1 << 18)
    x, y = (pellucid.tensor(values, device="webgpu", requires_grad=True) for values in (a, b))
    with pellucid.debug.trace() as trace:
        out = x.dot(y)
        pellucid.webgpu.flush()
    assert not any("matmul" in dispatch.kernel for dispatch in trace)
    check(out.detach(), a, b)
    out.backward()
    assert x.grad is not None
    assert (x.grad.numpy() == b).all()
    assert y.grad is not None
    assert (y.grad.numpy() == a).all()
