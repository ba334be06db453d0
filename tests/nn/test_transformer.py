"""The Transformer's layers and stacks against PyTorch's, with masks of every kind."""

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, state_of

SETTINGS = {"d_model": 8, "nhead": 2, "dim_feedforward": 6, "dropout": 0.0}
HIDDEN = np.triu(np.ones((4, 4), bool), 1)
PADDING = np.array([[False] * 4, [False, False, True, True]])
CASES = {
    "encoder": ("TransformerEncoderLayer", {"activation": "gelu"}, {"src": 4}, {}),
    "padded encoder": (
        "TransformerEncoderLayer",
        {"norm_first": True, "batch_first": True, "bias": False},
        {"src": 4},
        {"src_mask": HIDDEN, "src_key_padding_mask": PADDING, "is_causal": True},
    ),
    "decoder": ("TransformerDecoderLayer", {}, {"tgt": 3, "memory": 4}, {"memory_key_padding_mask": PADDING}),
    "decoder, norms first": (
        "TransformerDecoderLayer",
        {"norm_first": True},
        {"tgt": 4, "memory": 4},
        {"tgt_mask": HIDDEN, "tgt_is_causal": True, "memory_mask": np.zeros((4, 4), np.float32)},
    ),
    "whole": (
        "Transformer",
        {"num_encoder_layers": 2, "num_decoder_layers": 1, "batch_first": True},
        {"src": 4, "tgt": 4},
        {"src_key_padding_mask": PADDING, "tgt_mask": HIDDEN, "tgt_is_causal": True},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_pytorch(name, device):
    kind, settings, times, masks = CASES[name]
    theirs = getattr(torch.nn, kind)(**SETTINGS, **settings)
    ours = getattr(pellucid.nn, kind)(**SETTINGS, **settings, device=device)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    ours.load_state_dict(state_of(theirs))
    shape = (lambda t: (2, t, 8)) if settings.get("batch_first") else (lambda t: (t, 2, 8))
    outs = []
    for lib, model, where in ((pellucid, ours, device), (torch, theirs, "cpu")):
        given = {
            k: lib.tensor(floats(*shape(t), seed=t), device=where, requires_grad=True)
            for k, t in times.items()
        }
        hidden = {k: m if isinstance(m, bool) else lib.tensor(m, device=where) for k, m in masks.items()}
        out = model(**given, **hidden)
        out.sin().sum().backward()
        outs.append([out, *(x.grad for x in given.values()), *(p.grad for p in model.parameters())])
    for a, b in zip(*outs, strict=True):
        same(a, b, rtol=1e-3, atol=1e-4)


def test_stacks_copy_their_layer():
    layer = pellucid.nn.TransformerDecoderLayer(**SETTINGS, device="cpu")
    norm = pellucid.nn.LayerNorm(8, device="cpu")
    stack = pellucid.nn.TransformerDecoder(layer, 2, norm)
    assert stack.layers[0].linear1.weight is not stack.layers[1].linear1.weight
    x = pellucid.tensor(floats(3, 8), device="cpu")
    same(stack(x, x), torch.tensor(norm(layer(layer(x, x), x)).detach().numpy()))
    mask = pellucid.nn.Transformer.generate_square_subsequent_mask(2, device="cpu")
    assert mask.tolist() == [[0.0, float("-inf")], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t(pellucid.ones(3, 2, 8), pellucid.ones(3, 1, 8)), "batch number of src and tgt"),
        (lambda t: t(pellucid.ones(3, 8), pellucid.ones(3, 4)), "feature number .* 8 and 4"),
        (lambda t: pellucid.nn.TransformerEncoderLayer(8, 2, activation="x"), "'relu', 'gelu' or a function"),
    ],
)
def test_says_what_is_wrong(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(pellucid.nn.Transformer(8, 2, 1, 1, 4))
