"""Multi-head attention against PyTorch's, with and without masks and weights."""

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, state_of

CAUSAL = np.triu(np.ones((5, 5), bool), 1)
PADDED = np.array([[False] * 4 + [True], [False] * 3 + [True] * 2])


def run(lib, module, device, inputs, masks, **kwargs):
    tensors = [lib.tensor(a, device=device, requires_grad=True) for a in inputs]
    made = {name: lib.tensor(mask, device=device) for name, mask in masks.items()}
    out, weights = module(*tensors, **made, **kwargs)
    (out * out).sum().backward()
    return [out, *([] if weights is None else [weights]), *[t.grad for t in tensors]], module


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"attn_mask": CAUSAL},
        {"attn_mask": floats(5, 5, seed=9)},
        {"key_padding_mask": PADDED},
        {
            "attn_mask": np.where(CAUSAL, -1e9, 0).astype(np.float32),
            "key_padding_mask": np.where(PADDED, -5.0, 0.0).astype(np.float32),
        },
        {"attn_mask": np.stack([CAUSAL] * 8)},
    ],
    ids=["none", "causal", "numbers", "padding", "both", "per head"],
)
def test_equals_pytorch(masks, need_weights, device):
    theirs = torch.nn.MultiheadAttention(8, 4, batch_first=True)
    ours = pellucid.nn.MultiheadAttention(8, 4, batch_first=True, device=device)
    ours.load_state_dict(state_of(theirs))
    inputs = [floats(2, 5, 8, seed=s) for s in range(3)]
    mine, _ = run(pellucid, ours, device, inputs, masks, need_weights=need_weights)
    other, _ = run(torch, theirs, "cpu", inputs, masks, need_weights=need_weights)
    assert len(mine) == len(other)
    for a, b in zip(mine, other, strict=True):
        same(a, b, rtol=1e-3, atol=1e-4)
    for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        same(a.grad, b.grad, rtol=1e-3, atol=1e-3), name


@pytest.mark.parametrize("shape", [(5, 2, 8), (5, 8)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("average", [True, False])
def test_layouts(shape, bias, average, device):
    theirs = torch.nn.MultiheadAttention(8, 2, bias=bias)
    ours = pellucid.nn.MultiheadAttention(8, 2, bias=bias, device=device)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(state_of(theirs))
    query, memory = floats(*shape), floats(7, *shape[1:], seed=1)
    mine, _ = run(pellucid, ours, device, [query, memory, memory], {}, average_attn_weights=average)
    other, _ = run(torch, theirs, "cpu", [query, memory, memory], {}, average_attn_weights=average)
    for a, b in zip(mine, other, strict=True):
        same(a, b, rtol=1e-3, atol=1e-4)


def test_first_values_and_errors(device):
    m = pellucid.nn.MultiheadAttention(8, 2, device=device)
    assert not m.in_proj_bias.any().item()
    assert not m.out_proj.bias.any().item()
    assert m.in_proj_weight.abs().max().item() <= (6 / 32) ** 0.5
    with pytest.raises(ValueError, match="embed_dim 8 is not a multiple of num_heads 3"):
        pellucid.nn.MultiheadAttention(8, 3, device=device)
    x = pellucid.zeros(3, 8, device=device)
    with pytest.raises(ValueError, match="is only a hint; give attn_mask"):
        m(x, x, x, is_causal=True)


def test_dropout_of_weights_only_while_training(device):
    m = pellucid.nn.MultiheadAttention(8, 2, dropout=0.5, device=device)
    x = pellucid.tensor(floats(6, 8), device=device)
    assert (m(x, x, x, average_attn_weights=False)[1] == 0).any().item()
    assert not (m.eval()(x, x, x, average_attn_weights=False)[1] == 0).any().item()


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "options", [{"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 5, "vdim": 3, "bias": False}]
)
def test_keys_of_their_own_and_more_of_them(options, need_weights, device):
    theirs = torch.nn.MultiheadAttention(8, 2, **options)
    ours = pellucid.nn.MultiheadAttention(8, 2, **options, device=device)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    ours.load_state_dict(state_of(theirs))
    kdim, vdim = options.get("kdim", 8), options.get("vdim", 8)
    inputs = [floats(5, 2, 8), floats(5, 2, kdim, seed=1), floats(5, 2, vdim, seed=2)]
    masks = {"attn_mask": CAUSAL, "key_padding_mask": PADDED}
    mine, _ = run(pellucid, ours, device, inputs, masks, need_weights=need_weights)
    other, _ = run(torch, theirs, "cpu", inputs, masks, need_weights=need_weights)
    for a, b in zip(mine, other, strict=True):
        same(a, b, rtol=1e-3, atol=1e-4)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(a.grad, b.grad, rtol=1e-3, atol=1e-3)


def test_kernels_may_be_named():
    attention = pellucid.nn.attention
    with attention.sdpa_kernel([attention.SDPBackend.MATH, attention.SDPBackend.FLASH_ATTENTION]):
        assert attention.SDPBackend.MATH == 0
    with pytest.raises(TypeError, match="takes SDPBackend"), attention.sdpa_kernel(1):
        pass
