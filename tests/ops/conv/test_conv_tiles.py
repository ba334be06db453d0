"""Every tile gives a convolution and its transpose, alone and with what follows it in one kernel, and the
choice between them is a pure function."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pellucid
from ops.adapters import H200, LAPTOP
from ops.oracle import normal
from pellucid.device.profile import profile
from pellucid.ops.conv.tiles import TILES, Sizes, candidates, choose, chunk, forced

pytestmark = pytest.mark.gpu
EVERY_TILE = pytest.mark.parametrize("tile", TILES, ids=str)


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    with forced(None):
        yield


def check(name, x, w, begin=0, **options):
    """Compare with PyTorch's on normal numbers of these shapes; the weight begins at any element."""
    channels = w[1] * options.get("groups", 1) if "transpose" in name else w[0]
    arrays = [normal(*x), normal(*w), normal(channels)]
    theirs = getattr(torch.nn.functional, name)(*map(torch.from_numpy, arrays), **options)
    flat = pellucid.tensor(np.concatenate([np.zeros(begin, np.float32), arrays[1].ravel()]))
    ours = pellucid.tensor(arrays[0]), flat[begin:].reshape(w), pellucid.tensor(arrays[2])
    out = getattr(pellucid.nn.functional, name)(*ours, **options)
    np.testing.assert_allclose(out.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-4)


def in_two_ways(tile, ways):
    """A tile in two of these ways, each the parts of the depth and a call; others take the rest.
    The kernel of each takes seconds to compile."""
    k = TILES.index(tile)
    for parts, way in (ways[k % len(ways)], ways[(k + 1) % len(ways)]):
        with forced(tile, *parts):
            way()


@pytest.mark.turns(3)
@EVERY_TILE
def test_every_tile(tile):
    """Sizes that are no multiples of the tile, with and without windows that reach outside, and weights that
    four elements can be read of at once, or not."""
    ways = [
        ((), lambda: check("conv2d", (2, 5, 9, 8), (37, 5, 3, 3), padding=1)),
        ((), lambda: check("conv2d", (2, 32, 9, 8), (37, 32, 1, 1))),
        ((), lambda: check("conv2d", (1, 8, 11, 9), (37, 8, 3, 3), begin=1, stride=2)),
        ((3,), lambda: check("conv2d", (1, 66, 5, 6), (20, 66, 3, 2), begin=4, padding=1)),
    ]
    in_two_ways(tile, ways)


def check_weight(x, w, **options):
    """Compare the weight's derivative with PyTorch's, in whose sums of many pixels rounding is like ours."""
    x, w = normal(*x), normal(*w)
    theirs = torch.tensor(w, requires_grad=True)
    out = torch.nn.functional.conv2d(torch.from_numpy(x), theirs, **options)
    g = normal(*out.shape)
    out.backward(torch.from_numpy(g))
    ours = pellucid.tensor(w, requires_grad=True)
    pellucid.nn.functional.conv2d(pellucid.tensor(x), ours, **options).backward(pellucid.tensor(g))
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-3)


@pytest.mark.turns(3)
@pytest.mark.parametrize("tile", TILES[1::2], ids=str)
def test_tiles_of_the_weights_derivative(tile):
    """Depths that are no multiples of a step; planes of which four elements can be read at once, or not."""
    ways = [
        ((), lambda: check_weight((2, 5, 9, 7), (37, 5, 3, 3), padding=1)),
        ((), lambda: check_weight((3, 40, 8, 8), (37, 40, 1, 1))),
        ((), lambda: check_weight((2, 10, 7, 8), (14, 5, 3, 2), groups=2, dilation=2, stride=(2, 1))),
        ((3,), lambda: check_weight((3, 7, 19, 20), (20, 7, 2, 3), padding=2)),
    ]
    in_two_ways(tile, ways)


@pytest.mark.turns(3)
@pytest.mark.parametrize("tile", TILES[::3], ids=str)
def test_other_convolutions(tile):
    with forced(tile):
        check("conv_transpose2d", (2, 20, 5, 6), (20, 9, 4, 4), stride=2, padding=1)
        check("conv_transpose2d", (2, 9, 5, 4), (9, 6, 3, 3), groups=3, stride=(4, 3), dilation=(6, 2))
        check("conv2d", (2, 10, 7, 8), (14, 5, 3, 3), groups=2, dilation=2, padding=2)
        check("conv1d", (2, 8, 31), (20, 8, 5), stride=3, padding=2)


@pytest.mark.parametrize("tile", [TILES[0], TILES[-1]], ids=str)
def test_expressions_after_a_convolution(tile):
    """They join the kernel that stores its sums, whichever lanes store them."""
    x, w, b, r = (pellucid.tensor(normal(*s)) for s in ((1, 8, 9, 8), (20, 8, 3, 3), (20,), (1, 20, 9, 8)))

    def run():
        return pellucid.relu(pellucid.nn.functional.conv2d(x, w, b, padding=1) * 0.5 + r)

    with forced(tile):
        with pellucid.webgpu.fusion(False):
            plain = run().numpy()
        counts = []
        with pellucid.webgpu.fusion(True):
            for _ in range(4):
                pellucid.webgpu.flush()
                before = pellucid.webgpu.memory_stats()["dispatches"]
                out = run()
                pellucid.webgpu.flush()
                counts.append(pellucid.webgpu.memory_stats()["dispatches"] - before)
                np.testing.assert_allclose(out.numpy(), plain, rtol=1e-6, atol=1e-6)
    assert counts[-1] == 1


@EVERY_TILE
def test_what_the_kernel_asks_of_a_tile(tile):
    quads = tile.step // 4
    assert tile.nbytes(beside=tile.step) <= 16384
    assert tile.lanes <= 256
    assert tile.lanes % tile.columns == 0
    assert tile.step <= tile.lanes
    assert max(tile.rows, tile.columns) * quads <= 4 * tile.lanes
    assert quads % tile.slices == 0
    assert quads // tile.slices in (1, 2, 3, 4, 8)


sizes = st.builds(
    Sizes, st.integers(1, 64), st.integers(1, 2048), st.integers(1, 1 << 20), st.integers(1, 20000)
)


@given(sizes, st.sampled_from((H200, LAPTOP)))
def test_the_choice_is_pure_and_covers_the_depth_once(convolution, info):
    tile, parts = choose(convolution, info)
    assert (tile, parts) == choose(convolution, info)
    assert len(candidates(convolution, info)) == len(set(candidates(convolution, info)))
    length = chunk(tile, convolution.depth, parts)
    assert length % tile.step == 0
    assert (parts - 1) * length < convolution.depth <= parts * length


@pytest.mark.parametrize("info", [H200, LAPTOP], ids=["H200", "laptop"])
def test_the_choice_fills_a_device(info):
    """Where a convolution is large enough for it, every processor has a tile."""
    for convolution in (Sizes(1, 64, 4096, 288), Sizes(1, 128, 8192, 576), Sizes(1, 256, 1568, 2304)):
        tile, parts = choose(convolution, info)
        assert convolution.groups(tile) * parts >= profile(info).processors * 3 // 4


def test_the_depth_is_cut_where_it_is_long_and_little_is_made():
    assert choose(Sizes(1, 512, 49, 4608), H200)[1] > 1
    assert choose(Sizes(1, 64, 4096, 288), H200)[1] == 1
