"""Random programs in a page, with fusion and without; prints one line of JSON.

Run: scripts/browser tests/op/fusion/page.py
"""

import json
import random
import sys

import numpy as np
from programs import BINARY, UNARY, run

import pellucid as torch
from pellucid.op.fusion import window


def program(chance: random.Random) -> list[tuple]:
    """A few steps of any kind."""
    names = [*UNARY, *BINARY]
    steps = []
    for _ in range(chance.randint(2, 9)):
        name = chance.choice(names)
        steps.append((name, *[chance.randint(0, 7) for _ in range(1 if name in UNARY else 2)]))
    return steps


def main(count: int) -> None:
    chance, differ, fused = random.Random(0), [], set()
    window.on_rewrite.append(
        lambda _, plan: fused.update(node.number for node, _ in plan.stands.values()) if plan else None
    )
    rng = np.random.default_rng(0)
    for _ in range(count):
        steps = program(chance)
        held = set(chance.sample(range(9), 2))
        shape = chance.choice([(3, 5), (4, 64), (33, 130)])
        inputs = [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]
        with torch.webgpu.fusion(False):
            plain = run(steps, inputs, held)
        with torch.webgpu.fusion(True):
            # Until its structure is found and its plan has begun: one of another program would never end.
            for _ in range(10):
                run(steps, inputs, held)
            while any(known.under_way for known in window._known._by_key.values()):
                run(steps, inputs, held)
            while torch.webgpu.memory_stats()["compiling"]:
                torch.webgpu.synchronize()
            again = run(steps, inputs, held)
        if any(a.tobytes() != b.tobytes() for a, b in zip(plain, again, strict=True)):
            differ.append(steps)
    adapter = torch.webgpu.get_device_properties()
    print(
        json.dumps(
            {"adapter": adapter.architecture, "programs": count, "kernels": len(fused), "differ": differ}
        )
    )


main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
