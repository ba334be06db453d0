"""The attention of one new position in one launch, against the launches it stands for."""

import numpy as np
import pytest

import pellucid
from ops.joints import Window, nodes
from ops.oracle import normal
from pellucid.op import forget_plans
from pellucid.ops import decode
from pellucid.ops.cache import cache_write, cached_attention, rotary_embedding, rotary_tables

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Plans are made anew for kernels with workgroup memory, and forgotten again."""
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    yield
    forget_plans()


def tensor(a):
    return pellucid.tensor(a, device="webgpu")


def heads_of(batch, heads, dim):
    """What a product makes of one position, seen as heads, in the middle of a buffer."""
    whole = tensor(normal(1 + batch * heads * dim))
    return whole[1:].view(batch, 1, heads, dim).transpose(1, 2)


class Layer:
    """One layer's step: everything up to the output of attention.

    Args:
        sizes: (batch, heads, kv_heads, capacity, head_dim).
        half: pairs of columns that are turned; all if not given.
    """

    def __init__(self, sizes, half=None, interleaved=False):
        batch, heads, kv_heads, capacity, dim = sizes
        self.query, self.key = heads_of(batch, heads, dim), heads_of(batch, kv_heads, dim)
        self.value = heads_of(batch, kv_heads, dim)
        self.cos, self.sin = rotary_tables(
            np.random.random(half or dim // 2), max(capacity, 16), device="webgpu"
        )
        self.interleaved = interleaved
        self.before = normal(2, batch, kv_heads, capacity, dim)
        self.caches = [tensor(part) for part in self.before]

    def turned(self, x, position):
        return rotary_embedding(x, self.cos, self.sin, position, interleaved=self.interleaved)

    def step(self, keys, positions, writes):
        """Launch by launch; returns the attention's output."""
        query, key = self.turned(self.query, positions[0]), self.turned(self.key, positions[1])
        cache_write(self.caches[0], key, writes[0])
        cache_write(self.caches[1], self.value, writes[1])
        return cached_attention(query, *self.caches, keys)

    def reset(self, writes, keys):
        """Caches as before, with no number where none may be read."""
        for cache, values, write in zip(self.caches, self.before, writes, strict=True):
            values = values.copy()
            values[:, :, keys:] = np.nan
            values[:, :, write] = np.nan
            cache.copy_(tensor(values))


def compare(layer, keys, positions=None, writes=None):
    """Run a step launch by launch, then at once, and compare the output and both caches."""
    writes = writes or (keys - 1, keys - 1)
    positions = positions or writes
    layer.reset(writes, keys)
    window = Window(lambda: layer.step(keys, positions, writes))
    parts = window.runs[-6:]
    out = window.result
    expected, caches = out.numpy(), [cache.numpy() for cache in layer.caches]
    assert np.isfinite(expected).all()
    layer.reset(writes, keys)
    out.fill_(np.nan)
    joint = decode.step(nodes(parts))
    assert joint is not None
    splits = pellucid.zeros(parts[-1].node.metas[0].shape, device="webgpu")
    window.give(parts[-1], "state", splits)
    window.run(joint, parts)
    if len(joint.node.members) < len(parts):
        window.again(parts[-1])
    for ours, theirs in zip(layer.caches, caches, strict=True):
        assert np.array_equal(ours.numpy(), theirs, equal_nan=True)
    np.testing.assert_allclose(out.numpy(), expected, rtol=2e-5, atol=2e-6)
    return joint.node


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("keys", [1, 2, 63, 64, 129, 256])
def test_positions_of_a_small_model(keys, interleaved):
    node = compare(Layer((1, 9, 3, 256, 64), interleaved=interleaved), keys)
    assert node.grid == 3
    assert len(node.source.bindings) == 8
    assert 4 * node.source.params_words <= 64


@pytest.mark.parametrize(
    ("heads", "kv_heads"), [(1, 1), (4, 2), (3, 1), (4, 1), (5, 1), (6, 1), (14, 2), (8, 1)]
)
def test_groups_of_heads(heads, kv_heads):
    for keys in (1, 70, 200):
        compare(Layer((2, heads, kv_heads, 200, 32)), keys)


@pytest.mark.parametrize("dim", [4, 8, 12, 40, 64, 80, 96, 128, 256])
def test_lengths_of_heads(dim):
    layer = Layer((1, 4, 2, 150, dim))
    for keys in (1, 33, 150):
        compare(layer, keys)


def test_long_heads_in_large_groups():
    for dim in (64, 128):
        compare(Layer((1, 8, 1, 100, dim)), 100)


@pytest.mark.parametrize("interleaved", [False, True])
def test_columns_that_are_not_turned(interleaved):
    compare(Layer((1, 4, 2, 40, 32), half=6, interleaved=interleaved), 21)


@pytest.mark.parametrize("splits", [1, 3])
def test_numbers_that_are_not_a_model_s(splits, monkeypatch):
    """Every position has a number of its own; rows may go where attention does not look."""
    if splits > 1:
        monkeypatch.setattr(decode, "_ALONE", 0)
    layer = Layer((2, 6, 2, 384, 16))
    for keys, positions, writes in (
        (40, (3, 17), (5, 30)),
        (384, (0, 383), (200, 64)),
        (7, (9, 2), (300, 3)),
        (130, (1, 1), (129, 383)),
        (1, (5, 6), (0, 0)),
    ):
        node = compare(layer, keys, positions, writes)
        assert node.grid == 4 * splits


@pytest.mark.parametrize("keys", [1, 64, 65, 500, 1025, 2560])
def test_splits_are_combined_by_a_launch_of_their_own(keys):
    layer = Layer((1, 9, 3, 2560, 64))
    node = compare(layer, keys)
    assert node.grid == 3 * 20


def test_scores_at_the_ends_of_float32():
    layer = Layer((1, 2, 1, 150, 16))
    layer.query.mul_(1e4)
    compare(layer, 140)
    layer.query.mul_(1e30)
    layer.before[0] *= 1e-3
    compare(layer, 140)


def test_what_does_not_fit_is_left_apart():
    def parts_of(layer, keys=5):
        window = Window(lambda: layer.step(keys, (4, 4), (4, 4)))
        return nodes(window.runs)[-6:]

    assert decode.step(parts_of(Layer((1, 8, 1, 30, 256)))) is None  # workgroup memory
    assert decode.step(parts_of(Layer((1, 2, 1, 30, 6)))) is None  # no quads
    parts = parts_of(Layer((1, 4, 2, 30, 16)))
    assert decode.step(parts) is not None
    assert decode.step(parts[1:] + parts[:1]) is None
    interleaved = parts_of(Layer((1, 4, 2, 30, 16), interleaved=True))
    assert decode.step([interleaved[0], *parts[1:]]) is None
    shorter = parts_of(Layer((1, 4, 2, 30, 16), half=4))
    assert decode.step([parts[0], shorter[1], *parts[2:]]) is None
    strided = Layer((1, 4, 2, 30, 16))
    strided.query = tensor(normal(1, 8, 1, 16))[:, ::2]
    assert decode.step(parts_of(strided)) is None
    two = Layer((1, 4, 2, 30, 16))
    two.query = tensor(normal(1, 4, 2, 16))
    assert decode.step(parts_of(two)) is None
    longer = parts_of(Layer((1, 4, 2, 31, 16)))
    assert decode.step([*parts[:4], *longer[4:]]) is None
