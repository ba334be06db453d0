"""Sorting, top-k and sampling against PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import normal, plain
from pellucid.errors import DTypeError
from pellucid.ops.random.token_sampling import draw, repetition_penalty, sample

# Sampling


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_repetition_penalty(device):
    logits, seen = normal(3, 80), np.random.randint(0, 80, (3, 9))
    scores = torch.tensor(logits).gather(1, torch.tensor(seen))
    expected = torch.tensor(logits).scatter(
        1, torch.tensor(seen), torch.where(scores < 0, scores * 1.3, scores / 1.3)
    )
    out = repetition_penalty(
        pellucid.tensor(logits, device=device), pellucid.tensor(seen, device=device), 1.3
    )
    np.testing.assert_allclose(plain(out), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("temperature", [0.4, 1.0, 1.7])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (5, 1.0), (0, 0.8), (20, 0.6), (200, 0.05)])
def test_devices_draw_the_same_token(temperature, top_k, top_p):
    logits, uniforms = normal(40, 700) * 3, np.random.random(40).astype(np.float32)
    drawn = [
        plain(
            sample(
                pellucid.tensor(logits, device=d),
                pellucid.tensor(uniforms, device=d),
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
            )
        )
        for d in ("webgpu", "cpu")
    ]
    # A chance within rounding of a border may fall on either side.
    assert (drawn[0] == drawn[1]).mean() >= 0.95
    assert drawn[0].dtype == np.int64


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_drawn_frequencies_are_the_probabilities(device):
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    uniforms = ((np.arange(1000) + 0.5) / 1000).astype(np.float32)
    rows = pellucid.tensor(np.tile(logits, (1000, 1)), device=device)
    chance = pellucid.tensor(uniforms, device=device)
    counts = np.bincount(plain(sample(rows, chance)), minlength=4)
    np.testing.assert_allclose(counts, [500, 300, 150, 50], atol=1)
    counts = np.bincount(plain(sample(rows, chance, top_k=2)), minlength=4)
    np.testing.assert_allclose(counts, [625, 375, 0, 0], atol=1)
    counts = np.bincount(plain(sample(rows, chance, min_p=0.4)), minlength=4)
    np.testing.assert_allclose(counts, [625, 375, 0, 0], atol=1)
    counts = np.bincount(plain(sample(rows, chance, top_p=0.9)), minlength=4)
    np.testing.assert_allclose(counts, [526, 316, 158, 0], atol=1)
    assert set(plain(sample(rows, chance, top_p=0.01))) == {0}


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_masked_tokens_are_never_drawn(device):
    logits = np.full((3, 3000), -np.inf, np.float32)
    logits[:, 1777] = 1.0
    for u in (0.0, 0.5, 1 - 2**-24):
        out = sample(
            pellucid.tensor(logits, device=device), pellucid.tensor(np.full(3, u, np.float32), device=device)
        )
        assert plain(out).tolist() == [1777] * 3


def test_a_vocabulary_is_sampled_from():
    logits = normal(1, 151936)
    chance = pellucid.tensor([0.5], device="webgpu")
    token = sample(pellucid.tensor(logits, device="webgpu"), chance, top_k=50, top_p=0.9).item()
    assert token in np.argsort(-logits[0])[:50]
    assert draw(pellucid.tensor(logits, device="webgpu"), chance, 1.0, 1.0).item() < 151936


def test_sampling_arguments_are_checked():
    row, chance = pellucid.zeros(1, 4, device="cpu"), pellucid.zeros(1, device="cpu")
    for bad in ({"temperature": 0.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.5}, {"min_p": 2.0}):
        with pytest.raises(ValueError, match="argmax"):
            sample(row, chance, **bad)


@pytest.mark.turns(2)
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
)
@pytest.mark.parametrize("descending", [False, True])
def test_long_rows_are_sorted_by_their_digits(dtype, descending):
    """More than a workgroup sorts; every digit of each dtype counts, and equal elements keep their order."""
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        x = torch.tensor(normal(2, 4200)).to(kind)
        x[0, :5] = torch.tensor([float("nan"), -0.0, 0.0, float("inf"), -float("inf")])
    else:
        limit = min(torch.iinfo(kind).max, 2**40) if kind is not torch.bool else 1
        x = torch.tensor(np.random.randint(-limit if kind.is_signed else 0, limit + 1, (2, 4200))).to(kind)
    wide = x.float() if kind is torch.bfloat16 else x
    ours = pellucid.tensor(wide.numpy(), device="webgpu", dtype=getattr(pellucid, dtype))
    values, indices = pellucid.sort(ours, descending=descending)
    expected = torch.sort(x, stable=True, descending=descending)
    assert np.array_equal(plain(indices), expected.indices.numpy())
    np.testing.assert_array_equal(values.float().numpy(), expected.values.float().numpy())


def test_very_long_rows_are_sorted():
    x = np.random.randint(0, 1 << 20, (1 << 21) + 5).astype(np.int32)
    values, indices = pellucid.sort(pellucid.tensor(x, device="webgpu"))
    order = np.argsort(x, kind="stable")
    assert np.array_equal(plain(indices), order)
    assert np.array_equal(plain(values), x[order])


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
@pytest.mark.parametrize("bins", [3, 2049])
def test_counts_of_few_and_of_many_bins(device, bins):
    index = np.random.randint(0, bins, 40_000)
    index[-1] = bins - 1
    found = pellucid.bincount(pellucid.tensor(index, device=device))
    assert np.array_equal(plain(found), np.bincount(index))


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_counts_into_as_many_bins_as_before_more_and_fewer(device):
    for most, least in ((9, 0), (9, 0), (20, 0), (3, 0), (5, 30), (40, 30), (0, 0)):
        index = np.random.randint(0, most + 1, 500)
        index[0] = most
        found = pellucid.bincount(pellucid.tensor(index, device=device), minlength=least)
        assert found.tolist() == np.bincount(index, minlength=least).tolist()
        assert found.untyped_storage().nbytes() == 8 * found.numel()
        index[1] = -1
        with pytest.raises(ValueError, match="one is -1"):
            pellucid.bincount(pellucid.tensor(index, device=device))


def test_an_integer_with_too_many_bins_is_refused_once():
    one, heavy = pellucid.tensor([1, 1], device="webgpu"), pellucid.tensor([1, 1 << 40], device="webgpu")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="bincount: a tensor of 8796093022216 bytes"):
            pellucid.bincount(heavy)
        assert pellucid.bincount(one).tolist() == [0, 2]


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_many_bins_are_not_made_ahead(device):
    large = pellucid.tensor([1, (1 << 20) + 1, 2], device=device)
    small = pellucid.tensor([1, 1, 2], device="webgpu")
    assert pellucid.bincount(large).numel() == (1 << 20) + 2
    pellucid.webgpu.synchronize()
    pellucid.webgpu.reset_peak_memory_stats()
    before = pellucid.webgpu.memory_stats()["peak_bytes"]
    assert pellucid.bincount(small).tolist() == [0, 2, 1]
    assert pellucid.webgpu.memory_stats()["peak_bytes"] < before + (1 << 22)


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_complex_numbers_have_no_order(device):
    x = pellucid.tensor([1j, 2.0], device=device, dtype=pellucid.complex64)
    for name in ("searchsorted", "bucketize"):
        with pytest.raises(DTypeError, match="complex numbers have no order"):
            getattr(pellucid, name)(x, x)


@pytest.mark.parametrize("count", [64, 129, 9000])
@pytest.mark.parametrize("places", [1, 70, 9000])
def test_sums_of_runs_that_cross_parts(count, places):
    index, src = np.random.randint(0, places, count), np.random.randint(-9, 10, count).astype(np.float32)
    expected = np.full(places, 2.0)
    np.add.at(expected, index, src)
    base = pellucid.full((places,), 2.0, device="webgpu")
    ours = pellucid.tensor(index, device="webgpu"), pellucid.tensor(src, device="webgpu")
    assert np.array_equal(plain(base.scatter_add(0, *ours)), expected)
    put = np.full(places, 2.0, np.float32)
    put[index] = src
    assert np.array_equal(plain(base.scatter(0, *ours)), put)
