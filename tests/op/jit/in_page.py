"""Captured training, generation and reads beside eager ones; scripts/browser runs it in a page too."""

import sys

import numpy as np

import pellucid as torch
from pellucid import nn
from pellucid.models import LlamaConfig, LlamaForCausalLM
from pellucid.models.generate.step import step_of
from pellucid.nn import functional as F

rng = np.random.default_rng(0)
data = [
    (torch.tensor(rng.standard_normal((8, 20)).astype(np.float32)), torch.tensor(rng.integers(0, 4, 8)))
    for _ in range(12)
]


def trained(captured: bool) -> tuple[list[bytes], int]:
    """Losses and parameters after some steps, and how many of them were replayed."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    run = torch.compile(step) if captured else step
    losses = [run(*batch) for batch in data]
    values = [t.detach().numpy().tobytes() for t in (*losses, *model.parameters())]
    return values, run.explain().replays if captured else 0


def generated(model: LlamaForCausalLM) -> list[list[int]]:
    """Ids, drawn and not."""
    found = []
    for settings in ({}, {"do_sample": True, "seed": 4, "repetition_penalty": 1.2}):
        ids = model.generate([[1, 2, 3]], max_new_tokens=24, eos_token_id=(), **settings)
        found += ids.tolist()
    return found


def counted(x, n):
    """Rounds until a value on the device is large enough."""
    while n.item() < 3:
        x = x * 2 + torch.rand(5)
        n = n + 1
    return x.sum() if (x > 4).any() else x


def followed(captured: bool) -> tuple[list[bytes], int]:
    """Results of a function that reads, and how many calls were replayed."""
    torch.manual_seed(2)
    run = torch.compile(counted) if captured else counted
    found = [run(torch.ones(5) * (k % 3), torch.tensor(k % 2)).numpy().tobytes() for k in range(24)]
    return found, run.explain().replays if captured else 0


failed = 0
with torch.webgpu.fusion(False):
    (eager, _), (captured, replays) = trained(False), trained(True)
    good = eager == captured and replays == 9
    failed += not good
    print("training:", good, replays)
    (eager, _), (captured, replays) = followed(False), followed(True)
    good = eager == captured and replays >= 6
    failed += not good
    print("reads:", good, replays)
    sizes = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, **sizes)).eval()
    with torch.debug.blocking():
        wanted = generated(model)
    good = generated(model) == wanted == generated(model)
    failed += not good
    print("generation:", good, step_of(model)._logits.explain().replays)
torch.webgpu.synchronize()
print("failed" if failed else "passed")
sys.exit(failed)
