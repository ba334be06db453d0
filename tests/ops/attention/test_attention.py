"""Scaled dot-product attention, rotary embedding and the cache against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import pellucid
from ops.oracle import DEVICES, check, normal, plain, same
from pellucid.errors import DimensionError, DTypeError, PellucidError, ShapeError
from pellucid.ops.attention.cache import cache_write, cached_attention, rotary_embedding, rotary_tables
from pellucid.ops.attention.scaled_dot_product import scaled_dot_product_attention


def test_dropout_keeps_the_mean():
    ones = pellucid.ones(1, 1, 64, 8)
    out = plain(scaled_dot_product_attention(ones, ones, ones, dropout_p=0.5))
    assert abs(out.mean() - 1) < 0.1
    assert out.std() > 0.01


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("half", [4, 8])
def test_rotary_embedding(interleaved, half):
    frequencies = 1.0 / 10000 ** (np.arange(half) / half)
    angles = np.outer(np.arange(30), frequencies)

    def reference(p, x):
        c, s = (torch.tensor(f(angles)[7:12], dtype=torch.float32) for f in (np.cos, np.sin))
        turned, rest = x[..., : 2 * half], x[..., 2 * half :]
        if interleaved:
            first, second = turned[..., 0::2], turned[..., 1::2]
            turned = torch.stack([first * c - second * s, second * c + first * s], -1).flatten(-2)
        else:
            first, second = turned[..., :half], turned[..., half:]
            turned = torch.cat([first * c - second * s, second * c + first * s], -1)
        return torch.cat([turned, rest], -1)

    def ours(p, x):
        cos, sin = rotary_tables(frequencies, 30, device=x.device)
        return rotary_embedding(x, cos, sin, 7, interleaved=interleaved)

    check(ours, normal(2, 3, 5, 16), theirs=reference)


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_rows_of_any_strides_are_turned_and_written_without_a_copy(device):
    cos, sin = rotary_tables([1.0, 0.1, 0.01], 30, device=device)
    rows = pellucid.tensor(normal(2, 5, 3, 16), device=device)
    for x in (
        rows.transpose(1, 2),
        rows.transpose(1, 2)[:, 1:, ::2, 3:9],
        rows[1].transpose(0, 1),
        rows[0, :, 1],
        rows.view(1, 2, 5, 3, 16).transpose(2, 3),
        rows.view(2, 5, 3, 2, 8).permute(0, 3, 2, 1, 4),  # three leading axes that are not two
    ):
        copied = rotary_embedding(x.contiguous(), cos, sin, 4)
        np.testing.assert_array_equal(plain(rotary_embedding(x, cos, sin, 4)), plain(copied))
    heads = rows.transpose(1, 2)
    cache = pellucid.zeros(2, 3, 9, 16, device=device)
    before = pellucid.webgpu.memory_stats()["dispatches"]
    cache_write(cache, heads, 2)
    rotary_embedding(heads, cos, sin, 1)
    if device == "webgpu":
        assert pellucid.webgpu.memory_stats()["dispatches"] - before == 2
    np.testing.assert_array_equal(plain(cache)[:, :, 2:7], plain(heads))
    assert not plain(cache)[:, :, [0, 1, 7, 8]].any()


def test_a_cache_is_written_from_itself():
    values = normal(1, 2, 6, 6)
    cache = pellucid.tensor(values)
    cache_write(cache, cache.transpose(2, 3)[:, :, :2], 3)
    values[:, :, 3:5] = values.transpose(0, 1, 3, 2)[:, :, :2].copy()
    np.testing.assert_array_equal(plain(cache), values)


def test_rotary_gradients_of_any_strides():
    x = normal(2, 5, 3, 8)
    cos, sin = rotary_tables([1.0, 0.1], 30)
    ours = pellucid.tensor(x, requires_grad=True)
    weights = pellucid.tensor(normal(2, 3, 5, 8))
    (rotary_embedding(ours.transpose(1, 2), cos, sin, 3) * weights).sum().backward()
    turned_back = rotary_embedding(weights, cos, -sin, 3).transpose(1, 2)
    np.testing.assert_allclose(plain(ours.grad), plain(turned_back), atol=1e-6)


def test_rotary_positions_are_checked():
    cos, sin = rotary_tables([1.0, 0.1], 10, device="cpu")
    with pytest.raises(DimensionError, match="outside the tables"):
        rotary_embedding(pellucid.zeros(1, 1, 3, 4, device="cpu"), cos, sin, 8)
    with pytest.raises(ShapeError, match="half"):
        rotary_embedding(pellucid.zeros(1, 1, 3, 3, device="cpu"), cos, sin, 0)


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
@pytest.mark.parametrize(("heads", "kv_heads", "capacity"), [(6, 2, 700), (3, 3, 64)])
def test_a_growing_cache_equals_attention_over_everything(device, heads, kv_heads, capacity):
    steps = [5, 1, 1, 40, 1]
    total = sum(steps)
    q, k, v = normal(2, heads, total, 16), normal(2, kv_heads, total, 16), normal(2, kv_heads, total, 16)
    expected = F.scaled_dot_product_attention(
        *(torch.tensor(a) for a in (q, k, v)), is_causal=True, enable_gqa=True
    )
    keys, values = (pellucid.zeros(2, kv_heads, capacity, 16, device=device) for _ in range(2))
    at = 0
    for time in steps:
        part = slice(at, at + time)
        cache_write(keys, pellucid.tensor(k[:, :, part], device=device), at)
        cache_write(values, pellucid.tensor(v[:, :, part], device=device), at)
        at += time
        out = cached_attention(pellucid.tensor(q[:, :, part], device=device), keys, values, at)
        same(out, expected[:, :, part], 1e-5, 2e-5, f"positions up to {at}")
    np.testing.assert_array_equal(plain(keys)[:, :, :total], k)
    assert not plain(keys)[:, :, total:].any()


def test_a_new_position_plans_nothing():
    keys = pellucid.zeros(1, 1, 90, 8, device="webgpu")
    row = pellucid.ones(1, 1, 1, 8, device="webgpu")
    plans = (
        cached_attention(row, keys, keys, 1),
        len(pellucid.ops.attention.cache.cached_attention.op.plans),
        len(pellucid.ops.attention.cache.write_rows.op.plans),
    )
    for position in range(1, 20):
        cache_write(keys, row, position)
        cached_attention(row, keys, keys, position + 1)
    assert len(pellucid.ops.attention.cache.cached_attention.op.plans) == plans[1]
    assert len(pellucid.ops.attention.cache.write_rows.op.plans) <= plans[2] + 1


def test_cache_bounds():
    cache = pellucid.zeros(1, 2, 8, 4, device="cpu")
    with pytest.raises(DimensionError, match="outside"):
        cache_write(cache, pellucid.zeros(1, 2, 3, 4, device="cpu"), 6)
    with pytest.raises(DimensionError, match="length 9"):
        cached_attention(pellucid.zeros(1, 2, 1, 4, device="cpu"), cache, cache, 9)
    with pytest.raises(ShapeError, match="only axis 2"):
        cache_write(pellucid.zeros(1, 2, 8, 4), pellucid.zeros(1, 2, 3, 5), 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("dropped", [0.0, 1e-9])
def test_gradients_of_halves_are_rounded_once(device, dtype, dropped):
    """Scores of tens, as they are in large models: rounded to halves, weights would be off by a tenth."""
    given = [torch.tensor(5 * normal(2, 16, 8)).to(getattr(torch, dtype)) for _ in range(4)]
    exact = [x.double().requires_grad_() for x in given[:3]]
    ours = [pellucid.tensor(x.float().numpy(), device=device).to(getattr(pellucid, dtype)) for x in given]
    for x in ours[:3]:
        x.requires_grad_()
    out = pellucid.nn.functional.scaled_dot_product_attention(*ours[:3], dropout_p=dropped)
    found = pellucid.autograd.grad(out, ours[:3], ours[3])
    expected = torch.autograd.grad(F.scaled_dot_product_attention(*exact), exact, given[3].double())
    for a, b in zip(found, expected, strict=True):
        worst = abs(a.float().numpy() - b.numpy()).max() / b.abs().max().item()
        assert worst < torch.finfo(getattr(torch, dtype)).eps


@pytest.mark.parametrize("dropped", [0.0, 0.1])
def test_dropout_changes_nothing_of_what_is_refused(dropped):
    x, attend = pellucid.ones(2, 4, 8, device="cpu"), pellucid.nn.functional.scaled_dot_product_attention
    for key in (x.half(), x.int()):
        with pytest.raises(DTypeError, match="scaled_dot_product_attention: "):
            attend(key, x, x, dropout_p=dropped)
    with pytest.raises(DTypeError, match="scaled_dot_product_attention: "):
        attend(x.int(), x.int(), x.int(), dropout_p=dropped)
    heads, mask = pellucid.ones(1, 4, 3, 8, device="cpu"), pellucid.zeros(3, 3, device="cpu")
    with pytest.raises(PellucidError, match="scaled_dot_product_attention: "):
        attend(heads, heads, heads, mask, dropped, is_causal=True)
    with pytest.raises(ShapeError, match="scaled_dot_product_attention: "):
        attend(heads, heads[:, :2], heads[:, :2], dropout_p=dropped)
