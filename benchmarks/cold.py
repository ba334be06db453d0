"""The first rounds of programs, in which plans, pipelines and fused launches are made.

Run: scripts/browser benchmarks/cold.py --mount cache/weights -- [PART...]   (add --native for wgpu-py)
Settings after --: names of parts, all if none; --rounds N

    chain      20 ops on each of 300 fresh tensors: microseconds of Python and of submitting per op
    units      the same on 50 tensors
    training   steps of a GPT of 10.6 M parameters on 16 x 128 ids, each loss read: milliseconds
    prompt     prompts of 64 ids on SmolLM2, to the first new id: milliseconds
    long       the same of 512 ids

A part is cold in a page of its own: name one. Behind the rounds stands the fastest of as many later ones.
A software adapter takes 2 x 16 ids for training, and prompts of 4 and 16. The last line is JSON.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TIME, VOCABULARY, DIM, HEADS, LAYERS = 128, 65, 384, 6, 6


def rounds_of(run: Callable[[], None], rounds: int, unit: float) -> list[float]:
    """What each of some rounds takes, in units of so many a second, and the fastest of as many later ones."""
    taken = []
    for _ in range(2 * rounds):
        begun = time.perf_counter()
        run()
        taken.append(round(unit * (time.perf_counter() - begun), 2))
        torch.webgpu.synchronize()
    return [*taken[:rounds], min(taken[rounds:])]


def chain(count: int, rounds: int) -> list[float]:
    """Microseconds per op of a chain of 20 ops on so many fresh tensors."""
    scale, shift = torch.rand(64, 64), torch.rand(64)

    def once() -> None:
        for k in range(count):
            x = torch.full((64, 64), k / count)
            for _ in range(3):
                x = (x * scale + shift).tanh()
                x = torch.where(x > 0, x, 0.5 * x)
            x.sum(-1, keepdim=True).abs()
        torch.webgpu.flush()

    return rounds_of(once, rounds, 1e6 / (count * 20))


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and beside a residual."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        batch, time, _ = x.shape
        heads = self.attention(self.first(x)).view(batch, time, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, time, DIM))
        return x + self.down(F.gelu(self.up(self.second(x))))


class GPT(nn.Module):
    """A decoder with learned positions: ids (batch, time) to logits (batch, time, vocabulary)."""

    def __init__(self):
        super().__init__()
        self.ids, self.places = nn.Embedding(VOCABULARY, DIM), nn.Embedding(TIME, DIM)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, VOCABULARY)

    def forward(self, ids):
        x = self.ids(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def training(batch: int, time: int, rounds: int) -> list[float]:
    """Milliseconds of steps of training, each with another batch, until its loss is read."""
    torch.manual_seed(0)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def step() -> None:
        ids = torch.randint(VOCABULARY, (batch, time + 1))
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return rounds_of(step, rounds, 1e3)


def prompt(length: int, rounds: int) -> list[float]:
    """Milliseconds of a prompt's forward pass, until the next id is read."""
    model = torch.AutoModelForCausalLM.from_pretrained(
        os.environ["PELLUCID_MOUNT"], filename=FILE, device="webgpu"
    )
    torch.webgpu.synchronize()
    vocabulary = model.config.vocab_size
    given = [[(7919 * k + 13) % vocabulary for k in range(length)]]

    def once() -> None:
        cache = model.new_cache(1, 1024)
        with torch.no_grad():
            ids = torch.tensor(given, device="webgpu")
            model(ids, past_key_values=cache, logits_to_keep=1).logits[0, -1].argmax().item()

    return rounds_of(once, rounds, 1e3)


UNITS = {"chain": "us an op", "units": "us an op", "training": "ms a step", "prompt": "ms", "long": "ms"}


def parts(is_software: bool) -> dict[str, Callable[[int], list[float]]]:
    """What measures each part."""
    batch, time, short, long = (2, 16, 4, 16) if is_software else (16, TIME, 64, 512)
    return {
        "chain": lambda rounds: chain(300, rounds),
        "units": lambda rounds: chain(50, rounds),
        "training": lambda rounds: training(batch, time, rounds),
        "prompt": lambda rounds: prompt(short, rounds),
        "long": lambda rounds: prompt(long, rounds),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="cold")
    parser.add_argument("parts", nargs="*", choices=[[], *UNITS], metavar="PART")
    parser.add_argument("--rounds", type=int, default=6, metavar="N")
    options = parser.parse_args(sys.argv[1:])
    info = torch.webgpu.get_device_properties()
    host = "browser" if sys.platform == "emscripten" else "native"
    print(f"{host}, {info.vendor} {info.architecture} {info.description}".strip(), flush=True)
    measures, result = parts(info.is_software), {}
    for name in options.parts or UNITS:
        *first, best = result[name] = measures[name](options.rounds)
        print(f"  {name:10}{' '.join(f'{t:9.2f}' for t in first)}  then {best:.2f} {UNITS[name]}", flush=True)
    print(json.dumps({"benchmark": "cold", "host": host, "rounds": result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
