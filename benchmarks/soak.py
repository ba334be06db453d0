"""Long training: what many captured steps leave behind, and whether a seed gives the same bits again.

Two runs from one seed, of a network with dropout whose batches are drawn on the device; with `--native`
before the dashes on this machine's adapter.

    scripts/browser benchmarks/soak.py --timeout 600 -- --steps 10000
"""

import argparse
import gc
import hashlib
import sys
import time

import pellucid as torch
from pellucid import nn, webgpu
from pellucid.nn import functional as F


def state() -> str:
    """What is alive once everything that nobody holds is gone."""
    gc.collect()
    webgpu.synchronize()
    gc.collect()
    found = webgpu.memory_stats()
    names = "allocated_bytes", "live_buffers", "reserved_bytes", "pipelines"
    return f"{', '.join(f'{name} {found[name]}' for name in names)}, objects {len(gc.get_objects())}"


def run(steps: int) -> str:
    """Train; returns the digest of weights and losses."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(64), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    wanted = torch.randn(16, 4)

    @torch.compile
    def step() -> torch.Tensor:
        x = torch.randn(32, 16)
        loss = F.cross_entropy(model(x), (x @ wanted).argmax(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    digest, start, losses = hashlib.sha256(), time.perf_counter(), []
    for k in range(1, steps + 1):
        loss = step()
        if k % 100 == 0:
            losses.append(loss.item())
        if k in (100, steps // 10, steps // 2, steps):
            print(f"  after {k} steps, {time.perf_counter() - start:.1f} s: {state()}", flush=True)
    for p in model.parameters():
        digest.update(p.detach().numpy().tobytes())
    print(f"  loss {losses[0]:.4f} to {losses[-1]:.4f}; {step.explain().replays} steps were replayed")
    digest.update(repr(losses).encode())
    return digest.hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    steps = parser.parse_args().steps
    found = [run(steps), run(steps)]
    print(f"weights and losses of two runs: {' and '.join(found)}")
    return found[0] != found[1]


sys.exit(main())
