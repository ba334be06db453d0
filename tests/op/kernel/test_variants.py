"""Both variants of every kernel that has two, whatever the device would choose for itself."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import pellucid
from ops.each_variant import variant  # noqa: F401
from ops.oracle import check, normal
from pellucid.device.host import Info
from pellucid.device.stream import stream
from pellucid.errors import ShapeError
from pellucid.op.kernel import subgroups
from pellucid.op.kernel.variants import is_direct, rows_of, uses_subgroups
from pellucid.ops.attention.cache import cached_attention
from pellucid.ops.attention.scaled_dot_product import scaled_dot_product_attention
from pellucid.ops.matmul.linear import linear
from pellucid.quant import FORMATS
from pellucid.quant.weight import weight_from_blocks
from quant.samples import OWN_PRODUCTS, tame_blocks, widths
from quant.test_formats import made, reference

WEBGPU = ("webgpu",)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1, 300), (300, 70)),
        ((3, 40), (40, 9)),
        ((6, 130), (130, 17)),
        ((70, 33), (33, 130)),
        ((2, 3, 5, 8), (2, 1, 8, 11)),
        ((1, 5000), (5000, 3)),
    ],
)
def test_matmul(a, b):
    check(
        lambda p, a, b: a @ b, normal(*a), normal(*b), devices=WEBGPU, layouts=("contiguous", "strided"),
        atol=2e-4, rtol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("rows", [1, 2, 5, 40])
def test_linear(rows):
    check(
        lambda p, *tensors: linear(*tensors), normal(rows, 24), normal(70, 24), normal(70),
        theirs=lambda p, *tensors: F.linear(*tensors), devices=WEBGPU, layouts=("offset",), atol=1e-4,
    )  # fmt: skip


@pytest.mark.turns(15)
@pytest.mark.parametrize("name", FORMATS)
def test_quantized_linear(name):
    rows, columns = 133, widths(name)[0]
    rng = np.random.default_rng(3)
    weight, values = made(name, rows, columns, "webgpu")
    values = values.astype(np.float64)
    bias = rng.standard_normal(rows).astype(np.float32)
    # A format whose kernels differ in one function from others' meets those of a row and of tiles.
    for batch in (1, 2, 3, 7, 11, 12, 40) if name in OWN_PRODUCTS else (1, 40):
        x = rng.standard_normal((batch, columns)).astype(np.float32)
        out = linear(pellucid.tensor(x), weight, pellucid.tensor(bias)).numpy()
        bound = np.abs(x) @ np.abs(values).T + np.abs(bias)
        assert (np.abs(out - (x @ values.T + bias)) <= 1e-6 * bound + 1e-30).all(), batch


def test_a_large_quantized_weight_in_slices(monkeypatch):
    monkeypatch.setattr("pellucid.ops.quant.products._FLOATS", 16 * 64)
    rng = np.random.default_rng(4)
    raw = tame_blocks("q4_0", 37, 64, rng)
    weight = weight_from_blocks(raw, "q4_0", (37, 64), "webgpu")
    x = rng.standard_normal((20, 64)).astype(np.float32)
    out = linear(pellucid.tensor(x), weight).numpy()
    np.testing.assert_allclose(out, x @ reference(raw, "q4_0", 37, 64).T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("time", [1, 3, 40])
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention(time, is_causal):
    check(
        lambda p, *tensors: scaled_dot_product_attention(*tensors, is_causal=is_causal, enable_gqa=True),
        normal(2, 6, time, 16), normal(2, 2, 50, 16), normal(2, 2, 50, 12),
        theirs=lambda p, *tensors: F.scaled_dot_product_attention(
            *tensors, is_causal=is_causal, enable_gqa=True
        ),
        devices=WEBGPU, layouts=("contiguous",), atol=2e-5,
    )  # fmt: skip


def test_masks():
    q, k, v = normal(2, 3, 4, 16), normal(2, 3, 33, 16), normal(2, 3, 33, 16)
    additive = normal(2, 1, 4, 33)
    additive[..., :5] = -np.inf
    boolean = np.random.random((3, 4, 33)) > 0.4
    boolean[1, 2] = False
    for mask in (additive, boolean):
        ours = scaled_dot_product_attention(*map(pellucid.tensor, (q, k, v, mask)))
        theirs = F.scaled_dot_product_attention(*map(torch.tensor, (q, k, v, mask)))
        np.testing.assert_allclose(ours.numpy(), theirs.nan_to_num(0.0).numpy(), rtol=1e-4, atol=2e-5)


def test_heads_lie_side_by_side(variant):  # noqa: F811
    q, k, v = normal(2, 6, 20, 8), normal(2, 3, 20, 8), normal(2, 3, 20, 12)
    out = scaled_dot_product_attention(*map(pellucid.tensor, (q, k, v)), is_causal=True, enable_gqa=True)
    beside = out.transpose(1, 2).reshape(2, 20, 72)
    theirs = F.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), is_causal=True, enable_gqa=True)
    np.testing.assert_allclose(
        beside.numpy(), theirs.transpose(1, 2).reshape(2, 20, 72).numpy(), rtol=1e-4, atol=2e-5
    )
    assert (beside._storage is out._storage) == (variant != "direct")
    np.testing.assert_allclose((out * 2).numpy(), 2 * theirs.numpy(), rtol=1e-4, atol=4e-5)


@pytest.mark.parametrize("time", [1, 2, 20])
def test_a_cache_that_fills(time):
    q, k, v = normal(2, 4, time, 8), normal(2, 2, 64, 8), normal(2, 2, 64, 8)
    for length in (time, 33, 64):
        ours = cached_attention(*map(pellucid.tensor, (q, k, v)), length)
        visible = torch.arange(length) <= torch.arange(time)[:, None] + length - time
        theirs = F.scaled_dot_product_attention(
            torch.tensor(q), torch.tensor(k[:, :, :length]), torch.tensor(v[:, :, :length]), visible,
            enable_gqa=True,
        )  # fmt: skip
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("time", [1, 40])
def test_a_cache_with_a_bias_of_keys_a_soft_cap_and_sinks(time):
    length, cap = 61, 1.5
    q, k, v, bias = normal(2, 4, time, 16), normal(2, 2, 70, 16), normal(2, 2, 70, 16), normal(1, 4, 1, 70)
    k[0, 0, 3] *= 100  # scores far above the cap
    keys, values = (torch.tensor(x[:, :, :length]).repeat_interleave(2, 1) for x in (k, v))
    scores = torch.tanh(torch.tensor(q) @ keys.mT / 4 / cap) * cap + torch.tensor(bias[..., :length])
    visible = torch.arange(length) <= torch.arange(time)[:, None] + length - time
    sinks = normal(4)
    sinks[1] = 500  # far above the scores
    more = torch.tensor(sinks)[:, None, None].expand(2, 4, time, 1)
    scores = torch.cat([scores.masked_fill(~visible, -torch.inf), more], -1)
    theirs = scores.softmax(-1)[..., :-1] @ values
    for device in ("webgpu", "cpu"):
        query, key, value, mask, s = (pellucid.tensor(x, device=device) for x in (q, k, v, bias, sinks))
        ours = cached_attention(query, key, value, length, mask, soft_cap=cap, sinks=s)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=2e-5)
    with pytest.raises(ShapeError, match="broadcast"):
        cached_attention(query, key, value, length, mask[..., :9], soft_cap=cap)
    with pytest.raises(ShapeError, match="each of 4 heads"):
        cached_attention(query, key, value, length, sinks=s[:3])


@pytest.mark.parametrize("columns", [7, 600, 5000, 20000])
def test_rows(columns):
    x, weight = normal(3, columns), normal(columns)
    layouts = ("contiguous",)
    check(lambda p, x: x.softmax(-1), x, devices=WEBGPU, layouts=layouts, atol=1e-4)
    check(lambda p, x: x.log_softmax(-1), x, devices=WEBGPU, layouts=layouts, atol=1e-4, rtol=1e-4)
    check(lambda p, x: x.sum(-1), x, devices=WEBGPU, layouts=layouts, atol=1e-3)
    check(lambda p, x: x.argmax(-1), x, devices=WEBGPU, layouts=layouts, grad=False)
    for norm in ("rms_norm", "layer_norm"):
        check(
            lambda p, x, w, f=norm: getattr(p.nn.functional, f)(x, (columns,), w), x, weight,
            devices=WEBGPU, layouts=layouts, atol=1e-4, rtol=1e-4,
        )  # fmt: skip


@pytest.mark.parametrize("k", [1, 5, 64, 65])
@pytest.mark.parametrize("largest", [True, False])
def test_topk(k, largest):
    # Few different values, so that ties are many: equal ones stay in the order of their places.
    x = np.random.randint(0, 400, (3, 5000)).astype(np.float32)
    x[1, 77] = np.nan
    values, indices = pellucid.topk(pellucid.tensor(x), k, largest=largest)
    order = np.argsort(np.where(np.isnan(x), np.inf, x) * (-1 if largest else 1), -1, kind="stable")[:, :k]
    assert np.array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, -1))


def test_a_broken_test_of_subgroups_ends_no_program(monkeypatch):
    """Nobody else hears that it does not compile: the device then counts as one without them."""
    broken = SimpleNamespace(finish=lambda immediate: "fn main(")
    broken.fill = lambda holes: broken
    host = stream().open()
    monkeypatch.setattr(host, "info", replace(host.info, features=host.info.features | {"subgroups"}))
    monkeypatch.setattr(subgroups, "load", lambda name: broken)
    monkeypatch.setattr(subgroups, "_sound", [])
    monkeypatch.setattr(subgroups, "_begun", [])
    subgroups._begin(host)
    assert (pellucid.ones(3, device="webgpu") * 2).tolist() == [2, 2, 2]
    assert not subgroups.are_sound()
    assert (pellucid.ones(3, device="webgpu") * 3).tolist() == [3, 3, 3]


def test_the_choice(monkeypatch):
    assert is_direct() == (os.environ["PELLUCID_KERNELS"] == "direct")
    assert rows_of(100).lanes == (4 if is_direct() else 16)
    assert rows_of(1 << 20).lanes == 256
    has_subgroups = "subgroups" in stream().open().info.features
    assert uses_subgroups() == (has_subgroups and os.environ["PELLUCID_KERNELS"] == "subgroups")
    across = rows_of(1000, several=False).fill("norm/rms", {}).text
    assert ("subgroup_sum(" in across) == uses_subgroups()
    monkeypatch.setenv("PELLUCID_KERNELS", "")
    assert is_direct() == stream().open().info.is_software
    monkeypatch.setenv("PELLUCID_KERNELS", "other")
    with pytest.raises(ValueError, match="other"):
        is_direct()


def test_software_adapters():
    assert Info("browser", "google", "swiftshader", "").is_software
    assert Info("native", "llvmpipe", "", "llvmpipe (LLVM 15.0.6, 256 bits)").is_software
    assert not Info("browser", "nvidia", "hopper", "NVIDIA H200").is_software
    assert not Info("browser", "google", "tpu", "").is_software
