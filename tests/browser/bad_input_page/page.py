"""Bad input, each kind given to the library as a user would; prints one line of JSON for each.

The files come from PELLUCID_TEST_URL. A line says which error came, what it says, whose class it is too, and
what was in use on the device before and after.
"""

import gc
import json
import os
import sys

import pellucid as torch
from pellucid.device.stream import stream
from pellucid.nn import Linear, Module

URL = os.environ["PELLUCID_TEST_URL"]
FILES = (
    "good.gguf", "good", "truncated.gguf", "short_header.gguf", "magic.gguf", "count.gguf", "past.gguf",
    "absent.gguf", "cut.gguf", "page.gguf", "nothing.gguf", "truncated", "header", "past", "absent", "cut",
    "mismatch",
)  # fmt: skip


def in_use() -> tuple[int, int]:
    """Bytes and buffers."""
    gc.collect()
    torch.webgpu.synchronize()
    gc.collect()
    stats = torch.webgpu.memory_stats()
    return stats["allocated_bytes"], stats["live_buffers"]


def attempt(name, call):
    """Make a call that must fail, and say how it did."""
    before = in_use()
    said = {"name": name, "error": None}
    try:
        call()
    except Exception as error:
        said |= {
            "error": type(error).__name__,
            "classes": [c.__name__ for c in type(error).__mro__],
            "text": str(error),
        }
    after = in_use()
    print(json.dumps({**said, "before": before, "after": after}), flush=True)


def load(path):
    return lambda: torch.AutoModelForCausalLM.from_pretrained(f"{URL}/{path}")


def bad_index():
    table = torch.ones(4, 2)
    picked = table[torch.tensor([1, 7])] + 1
    picked.tolist()


def bad_row():
    torch.nn.functional.embedding(torch.tensor([0, -3]), torch.ones(4, 2)).sum().item()


def backward_twice():
    x = torch.ones(3, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    loss.backward()


def changed_in_between():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    loss = y.sum()
    y.add_(1)
    loss.backward()


def wrong_state():
    class Two(Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.second = Linear(4, width), Linear(width, 2)

    Two(3).load_state_dict(Two(5).state_dict())


def too_much():
    torch.webgpu.set_memory_limit(torch.webgpu.memory_allocated() + 1000)
    try:
        torch.zeros(1000)
    finally:
        torch.webgpu.set_memory_limit(None)


def too_large():
    torch.zeros(1 << 40)


CALLS = {
    "float64": lambda: torch.ones(2, dtype=torch.float64, device="cpu").to("webgpu"),
    "float64 made there": lambda: torch.zeros(2, dtype=torch.float64),
    "mixed devices": lambda: torch.ones(2) + torch.ones(2, device="cpu"),
    "shapes": lambda: torch.ones(2, 3) * torch.ones(4),
    "matmul": lambda: torch.ones(2, 3) @ torch.ones(4, 5),
    "index": bad_index,
    "row": bad_row,
    "axis": lambda: torch.ones(2, 3).sum(2),
    "backward twice": backward_twice,
    "changed in between": changed_in_between,
    "no gradient": lambda: torch.ones(3).sum().backward(),
    "a gradient of several": lambda: torch.ones(3, requires_grad=True).exp().backward(),
    "state": wrong_state,
    "too much": too_much,
    "too large": too_large,
    "a bool of several": lambda: bool(torch.ones(3)),
    "an item of several": lambda: torch.ones(3).item(),
    "ragged": lambda: torch.tensor([[1, 2], [3]]),
    "a device": lambda: torch.ones(2, device="cuda"),
    "numpy of a gradient": lambda: torch.ones(2, requires_grad=True).numpy(),
}


def lose():
    """The device goes away, as when a driver restarts."""
    host = stream().host
    (host.stream.device if sys.platform == "emscripten" else host.device).destroy()


def recovers():
    """After a loss every call says so until `reset`; then all is as at the start."""
    held = [torch.ones(4)]
    lose()
    after = {"lost, read": lambda: held[0].tolist(), "lost, op": lambda: (held[0] + 1).tolist()}
    for name, call in after.items():
        try:
            call()
        except Exception as error:
            said = {"error": type(error).__name__, "text": str(error)}
        else:
            said = {"error": None}
        print(json.dumps({"name": name, **said}), flush=True)
    held.clear()
    torch.webgpu.reset()
    y = torch.arange(5) * 2
    print(json.dumps({"name": "reset", "values": y.tolist(), "bytes": torch.webgpu.memory_allocated()}))


# The two small buffers that the device keeps for itself are made at their first use.
torch.ones(2)[torch.tensor([0, 1])].tolist()
for path in FILES:
    attempt(path, load(path))
for name, call in CALLS.items():
    attempt(name, call)
recovers()
