"""What a decoder does with new positions in one launch, against the launches it stands for."""

import numpy as np
import pytest

import pellucid
from ops.joints import Window, nodes
from ops.oracle import normal
from pellucid.device.profile import DeviceProfile
from pellucid.op.plan_cache import forget_plans
from pellucid.ops.attention import decode
from pellucid.ops.attention.cache import (
    cache_write,
    cached_attention,
    rotary_embedding,
    rotary_tables,
)

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Plans are made anew for kernels with workgroup memory, and forgotten again."""
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    monkeypatch.setattr(decode, "profile", lambda info: DeviceProfile(132))
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
        interleaved: which columns are a pair.
        attention: further arguments of `cached_attention`.
    """

    def __init__(self, sizes, half=None, interleaved=False, **attention):
        batch, heads, kv_heads, capacity, dim = sizes
        self.query, self.key = heads_of(batch, heads, dim), heads_of(batch, kv_heads, dim)
        self.value = heads_of(batch, kv_heads, dim)
        self.cos, self.sin = rotary_tables(
            np.random.random(half or dim // 2), 2 * capacity + 16, device="webgpu"
        )
        self.interleaved, self.attention = interleaved, attention
        self.before = normal(2, batch, kv_heads, capacity, dim)
        self.caches = [tensor(part) for part in self.before]

    def turned(self, x, position):
        return rotary_embedding(x, self.cos, self.sin, position, interleaved=self.interleaved)

    def place(self, positions, writes):
        """Launch by launch; returns the turned query."""
        query, key = self.turned(self.query, positions[0]), self.turned(self.key, positions[1])
        cache_write(self.caches[0], key, writes[0])
        cache_write(self.caches[1], self.value, writes[1])
        return query

    def step(self, keys, positions, writes):
        """The same with the attention; returns its output."""
        return cached_attention(self.place(positions, writes), *self.caches, keys, **self.attention)

    def reset(self, writes, keys):
        """Caches as before, with no number where none may be read."""
        for cache, values, write in zip(self.caches, self.before, writes, strict=True):
            values = values.copy()
            values[:, :, keys:] = np.nan
            values[:, :, write] = np.nan
            cache.copy_(tensor(values))


def compare(layer, keys, positions=None, writes=None, finite=True):
    """Run a step launch by launch, then at once, and compare the output and both caches."""
    writes = writes or (keys - 1, keys - 1)
    positions = positions or writes
    layer.reset(writes, keys)
    window = Window(lambda: layer.step(keys, positions, writes))
    parts = window.runs[-6:]
    out = window.result
    expected, caches = out.numpy(), [cache.numpy() for cache in layer.caches]
    assert np.isfinite(expected).all() == finite
    layer.reset(writes, keys)
    out.fill_(7)
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


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 1])
def test_special_values_in_a_cache(where, value):
    """Near its start, and where the values past the last key would repeat it."""
    for place in (3, 65):
        layer = Layer((1, 8, 2, 128, 64))
        layer.before[where, 0, 1, place, 5] = value
        compare(layer, 67, finite=False)
    for name in ("query", "key", "value"):
        layer = Layer((1, 8, 2, 128, 64))
        getattr(layer, name)[0, 1, 0, 3] = value
        compare(layer, 67, finite=False)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("keys", [1, 2, 63, 64, 129, 256])
def test_positions_of_a_small_model(keys, interleaved):
    """P-064: queries and keys turned, written and attended to in one kernel."""
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


@pytest.mark.turns(3)
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
def test_capped_scores(splits, monkeypatch):
    if splits > 1:
        monkeypatch.setattr(decode, "_ALONE", 0)
    layer = Layer((2, 6, 2, 384, 16), soft_cap=0.7)
    for keys in (1, 40, 384):
        assert compare(layer, keys).grid == 4 * splits


def test_a_mask_is_no_part_of_a_step():
    layer = Layer((1, 4, 2, 64, 16), attn_mask=tensor(normal(1, 1, 1, 64)))
    parts = Window(lambda: layer.step(20, (19, 19), (19, 19))).runs[-6:]
    assert decode.step(nodes(parts)) is None


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


def test_many_heads_keep_a_gpu_busy_without_splits(monkeypatch):
    monkeypatch.setattr(decode, "_ALONE", 0)
    layer = Layer((4, 33, 33, 200, 4))
    assert compare(layer, 100).grid == 132


@pytest.mark.parametrize("variant", ["shared", "direct"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_positions_are_placed_in_one_launch(variant, interleaved, monkeypatch):
    monkeypatch.setenv("PELLUCID_KERNELS", variant)
    for sizes, time, half in (
        ((1, 9, 3, 64, 16), 1, 8),
        ((2, 4, 2, 64, 12), 5, 3),
        ((1, 1, 1, 64, 8), 64, 4),
        ((2, 3, 1, 40, 6), 2, 3),
    ):
        batch, heads, kv_heads, capacity, dim = sizes
        layer = Layer(sizes, half, interleaved)
        q, k, v = (tensor(normal(1 + batch * time * n * dim))[1:] for n in (heads, kv_heads, kv_heads))
        layer.query, layer.key, layer.value = (
            x.view(batch, time, -1, dim).transpose(1, 2) for x in (q, k, v)
        )
        last = capacity - time
        for positions, writes in (((0, 0), (0, 0)), ((1, last), (last, 0)), ((7, 3), (last, last))):
            layer.reset((0, 0), capacity)
            window = Window(lambda layer=layer, p=positions, w=writes: layer.place(p, w))
            parts = window.runs
            out = window.result
            expected, caches = out.numpy(), [cache.numpy() for cache in layer.caches]
            layer.reset((0, 0), capacity)
            out.fill_(np.nan)
            joint = decode.place(nodes(parts))
            assert joint is not None
            window.run(joint, parts)
            np.testing.assert_array_equal(out.numpy(), expected)
            for ours, theirs in zip(layer.caches, caches, strict=True):
                np.testing.assert_array_equal(ours.numpy(), theirs)


def test_what_is_not_placed_together():
    def parts_of(layer):
        return nodes(Window(lambda: layer.place((1, 1), (2, 2))).runs)

    layer = Layer((1, 4, 2, 30, 16))
    parts = parts_of(layer)
    assert decode.place(parts) is not None
    assert decode.place([parts[1], parts[0], *parts[2:]]) is None
    assert decode.place(parts[:3]) is None
    longer = parts_of(Layer((1, 4, 2, 31, 16)))
    assert decode.place([*parts[:3], longer[3]]) is None
    strided = Window(lambda: cache_write(layer.caches[0], layer.key.flip(1)[:, ::2].expand(1, 2, 1, 16), 2))
    assert decode.place([*parts[:2], *nodes(strided.named("attention/cache_write")), parts[3]]) is None
    inverse = Window(lambda: rotary_embedding(layer.key, layer.cos, layer.sin, 1, inverse=True))
    assert decode.place([parts[0], *nodes(inverse.runs), *parts[2:]]) is None


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
