"""`flex_attention` against PyTorch's, and masks of attention that are made by functions."""

import numpy as np
import pytest
import torch
from torch.nn.attention import bias
from torch.nn.attention import flex_attention as theirs

import pellucid
from ops.oracle import DEVICES, check, normal
from pellucid.errors import ArgumentError, ShapeError
from pellucid.nn import flex_attention as ours
from pellucid.utils.compat.rooms import room

Q, K, V = normal(2, 4, 6, 8), normal(2, 4, 7, 8), normal(2, 4, 7, 8)
SCORES = {
    "none": lambda p: None,
    "relative": lambda p: lambda s, b, h, q, k: s + (q - k),
    "heads": lambda p: lambda s, b, h, q, k: s * (h + 1) - b,
    "capped": lambda p: lambda s, b, h, q, k: 2 * (s / 2).tanh(),
    "hidden": lambda p: lambda s, b, h, q, k: p.where(q >= k, s, -float("inf")),
}
MASKS = {
    "none": None,
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q - k < 2) & (k - q < 2),
    "of heads": lambda b, h, q, k: (q + h + b) % 3 >= k % 3,
    "nothing for some": lambda b, h, q, k: q > k + 1,
}


def attention(p, q, k, v, score="none", mask="none", **how):
    made = MASKS[mask] and ours.create_block_mask(MASKS[mask], 2, 4, 6, 7, device=q.device)
    return ours.flex_attention(q, k, v, SCORES[score](p), made, **how)


def plain(p, q, k, v, score="none", mask="none", scale=8**-0.5, enable_gqa=False, return_lse=False):
    """The same in PyTorch, whose own has no gradient on a CPU."""
    if enable_gqa:
        k, v = (t.repeat_interleave(2, 1) for t in (k, v))
    scores = q @ k.mT * scale
    places = [
        torch.arange(n).reshape([n if j == a else 1 for j in range(4)]) for a, n in enumerate((2, 4, 6, 7))
    ]
    if score != "none":
        scores = SCORES[score](p)(scores, *places)
    shown = torch.ones(2, 4, 6, 7, dtype=torch.bool)
    if MASKS[mask]:
        shown = MASKS[mask](*places).expand(2, 4, 6, 7)
    raised = torch.where(shown, scores, -50.0).exp() * shown
    total = raised.sum(-1, keepdim=True)
    out = raised / total.clamp(min=1e-30) @ v
    return (out, total.squeeze(-1).log()) if return_lse else out


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_values_and_gradients(score, mask):
    check(
        lambda p, q, k, v: attention(p, q, k, v, score, mask, scale=0.3),
        Q, K, V, theirs=lambda p, q, k, v: plain(p, q, k, v, score, mask, scale=0.3),
        rtol=1e-4, layouts=("contiguous",),
    )  # fmt: skip


@pytest.mark.parametrize("mask", ["none", "causal", "nothing for some"])
def test_sums_of_exponentials(mask):
    def summed(attend):
        def function(p, q, k, v):
            out, lse = attend(p, q, k, v, "relative", mask, return_lse=True)
            return out, lse.exp()

        return function

    check(summed(attention), Q, K, V, theirs=summed(plain), rtol=1e-4, layouts=("contiguous",))


def test_heads_that_share_keys():
    def shared(attend):
        return lambda p, q, k, v: attend(p, q, k, v, "heads", "causal", enable_gqa=True)

    check(
        shared(attention), Q, K[:, :2], V[:, :2], theirs=shared(plain), rtol=1e-4, layouts=("contiguous",)
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mask", MASKS)
def test_values_are_those_of_pytorchs_own(mask):
    tensors = [torch.tensor(a) for a in (Q, K, V)]
    made = MASKS[mask] and theirs.create_block_mask(MASKS[mask], 2, 4, 6, 7, device="cpu")
    expected, lse = theirs.flex_attention(*tensors, SCORES["heads"](torch), made, return_lse=True)
    found, sums = attention(pellucid, *map(pellucid.tensor, (Q, K, V)), "heads", mask, return_lse=True)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sums.numpy(), lse.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_masks_are_those_of_pytorch(device):
    for make in (
        lambda m: m.create_mask(MASKS["of heads"], 2, 4, 6, 7, device=where(m)),
        lambda m: m.create_mask(MASKS["causal"], None, None, 6, 7, device=where(m)),
        lambda m: m.create_mask(m.or_masks(MASKS["causal"], MASKS["window"]), 1, 1, 6, 7, device=where(m)),
        lambda m: m.create_mask(m.and_masks(MASKS["causal"], MASKS["window"]), 1, 1, 6, 7, device=where(m)),
        lambda m: m.create_mask(m.noop_mask, 1, 2, 3, 4, device=where(m)),
    ):

        def where(m):
            return device if m is ours else "cpu"

        assert make(ours).tolist() == make(theirs).tolist()


def test_a_mask_says_what_it_is():
    mask = ours.create_block_mask(MASKS["causal"], None, None, 4, 4, "cpu")
    assert (mask.shape, mask.seq_lengths, mask.numel()) == ((1, 1, 4, 4), (4, 4), 16)
    assert mask.sparsity() == 37.5
    assert mask.to("webgpu").mask.device.type == "webgpu"
    assert room("nn.attention.flex_attention").flex_attention is ours.flex_attention


def test_more_that_is_given():
    x = pellucid.tensor(Q)
    out, more = ours.flex_attention(x, x, x, return_aux=ours.AuxRequest(max_scores=True))
    assert more.lse is None
    scores = np.einsum("bhqd,bhkd->bhqk", Q, Q) / np.sqrt(8)
    np.testing.assert_allclose(more.max_scores.numpy(), scores.max(-1), rtol=1e-4)
    wanted = pellucid.nn.functional.scaled_dot_product_attention(x, x, x)
    np.testing.assert_allclose(out.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_what_does_not_fit():
    x = pellucid.zeros(2, 4, 6, 8)
    small = ours.create_block_mask(MASKS["causal"], None, None, 3, 3)
    for call, say in (
        (lambda: ours.flex_attention(x[0], x[0], x[0]), "four axes"),
        (lambda: ours.flex_attention(x, x[:, :2], x[:, :2]), "enable_gqa=True"),
        (lambda: ours.flex_attention(x, x[..., :4], x), "the same batch and width"),
        (lambda: ours.flex_attention(x, x, x, block_mask=small), "the mask has shape"),
    ):
        with pytest.raises(ShapeError, match=say):
            call()
    with pytest.raises(ArgumentError, match="one or more"):
        ours.or_masks()


@pytest.mark.parametrize("device", DEVICES)
def test_masks_of_what_comes_before(device):
    biases = room("nn.attention.bias")
    x = normal(1, 1, 5, 8)
    for name in ("causal_upper_left", "causal_lower_right"):
        expected = torch.nn.functional.scaled_dot_product_attention(
            torch.tensor(x[:, :, :3]), torch.tensor(x), torch.tensor(x),
            attn_mask=getattr(bias, name)(3, 5),
        )  # fmt: skip
        with pellucid.device(device):
            found = pellucid.nn.functional.scaled_dot_product_attention(
                pellucid.tensor(x[:, :, :3]), pellucid.tensor(x), pellucid.tensor(x),
                attn_mask=getattr(biases, name)(3, 5),
            )  # fmt: skip
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ArgumentError, match="two lengths"):
        biases.causal_upper_left(3)
