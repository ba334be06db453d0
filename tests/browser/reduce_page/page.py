"""Long reductions with the kernels of GPUs, again and again on one status buffer; prints one line of JSON.

Run: PELLUCID_KERNELS=shared scripts/browser tests/browser/reduce_page/page.py
"""

import json

import numpy as np

import pellucid as torch
from pellucid.device.host import STATUS_SLOT
from pellucid.device.stream import STATUS_BUFFER_BYTES, STATUS_BYTES, stream


def dispatched(function) -> int:
    """How many dispatches a call takes."""
    torch.webgpu.flush()
    before = torch.webgpu.memory_stats()["dispatches"]
    held = function()
    torch.webgpu.flush()
    del held
    return torch.webgpu.memory_stats()["dispatches"] - before


def main() -> dict:
    rng = np.random.default_rng(0)
    wrong, taken = [], {}
    for shape in ((1025,), (70_001,), (3, 5001), (70, 1100)):
        a = rng.integers(-9, 10, shape).astype(np.float32)
        b = a[..., ::-1].copy()
        whole = (a.astype(np.int64) << 33) + 7
        x, y, z = torch.tensor(a), torch.tensor(b), torch.tensor(whole)
        cases = {
            "sum": (lambda x=x: x.sum(-1), a.sum(-1)),
            "mean": (lambda x=x: x.mean(-1), a.mean(-1, dtype=np.float64)),
            "amax": (lambda x=x: x.amax(-1), a.max(-1)),
            "argmin": (lambda x=x: x.argmin(-1), a.argmin(-1)),
            "int64 sum": (lambda z=z: z.sum(-1), whole.sum(-1)),
            "prod": (lambda x=x: (x * 0 + 1).prod(-1), np.ones(shape[:-1])),
            "fused": (lambda x=x, y=y: (x * y).sum(-1) * 2 + 1, (a * b).sum(-1) * 2 + 1),
        }
        if shape[1:] > (32,):
            cases |= {
                "sum over the batch": (lambda x=x: x.sum(0), a.sum(0)),
                "int64 sum over the batch": (lambda z=z: z.sum(0), whole.sum(0)),
                "fused over the batch": (lambda x=x, y=y: (x * y).sum(0) + 1, (a * b).sum(0) + 1),
            }
        with torch.webgpu.fusion(True):
            for name, (function, expected) in cases.items():
                found = [function() for _ in range(3)]
                if not all(np.allclose(f.numpy(), expected, rtol=1e-6, atol=1e-7) for f in found):
                    wrong.append([name, *shape])
                # planned a part at each of some windows that are alike, used when its kernel is compiled
                for _ in range(20):
                    dispatched(function)
                while torch.webgpu.memory_stats()["compiling"]:
                    torch.webgpu.synchronize()
                taken[name] = dispatched(function)
    host = stream().open()
    data, _ = host.read(host.begin_read(STATUS_SLOT, STATUS_BYTES, STATUS_BUFFER_BYTES - STATUS_BYTES))
    return {
        "adapter": host.info.architecture,
        "wrong": wrong,
        "dispatches": taken,
        "left": int(np.count_nonzero(np.frombuffer(bytes(data), np.uint32))),
    }


print(json.dumps(main()))
