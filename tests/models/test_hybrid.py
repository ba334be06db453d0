"""Blocks of attention and Mamba: values and gradients beside PyTorch's attention and transformers' mixer."""

from types import ModuleType
from typing import Any

import numpy as np
import torch
from transformers import MambaConfig
from transformers.models.mamba.modeling_mamba import MambaMixer

import pellucid
from pellucid.models import mamba

SIZES = {"hidden_size": 16, "state_size": 4, "num_hidden_layers": 1, "vocab_size": 8}


def block(lib: ModuleType, mixer: Any) -> Any:
    """Attention to earlier places, then a mixer, each behind a norm and beside a residual."""

    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = lib.nn.ModuleList([lib.nn.RMSNorm(16) for _ in range(2)])
            self.attention, self.mixer = lib.nn.MultiheadAttention(16, 4, batch_first=True), mixer

        def forward(self, x):
            later = lib.ones(x.shape[1], x.shape[1], device=x.device).triu(1) > 0
            y = self.norms[0](x)
            x = x + self.attention(y, y, y, attn_mask=later, need_weights=False)[0]
            y = self.norms[1](x)
            return x + (self.mixer(y) if lib is torch else self.mixer(y, None))

    return Block()


def test_a_block_of_attention_and_mamba(device):
    torch.manual_seed(0)
    theirs = block(torch, MambaMixer(MambaConfig(**SIZES), 0))
    with pellucid.device(device):
        ours = block(pellucid, mamba.MambaMixer(mamba.MambaConfig(**SIZES), 0))
    state = {k: pellucid.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    x = np.random.default_rng(0).normal(size=(2, 11, 16)).astype(np.float32)
    found = []
    for model, given in ((ours, pellucid.tensor(x, device=device)), (theirs, torch.tensor(x))):
        given.requires_grad_()
        out = model(given)
        out.square().mean().backward()
        grads = {name: p.grad for name, p in sorted(model.named_parameters())}
        found.append({"out": out, "x": given.grad, **grads})
    assert found[0].keys() == found[1].keys()
    for name, wanted in found[1].items():
        mine, wanted = (t.detach().cpu().numpy() for t in (found[0][name], wanted))
        np.testing.assert_allclose(mine, wanted, atol=1e-4 * max(np.abs(wanted).max(), 1e-2), err_msg=name)


def test_a_state_has_one_size_for_any_length():
    """M-16: nothing grows with the positions."""
    with pellucid.device("cpu"):
        model = mamba.MambaForCausalLM(mamba.MambaConfig(**SIZES))
    shapes = [[t.shape for t in (*c.keys, *c.values)] for c in (model.new_cache(1, n) for n in (8, 4096))]
    assert shapes[0] == shapes[1] != []
