"""Exported programs by Range in a page or natively: prints their results and what was seen of a module.

scripts/browser tests/models/graph/export_page.py --mount DIR --packages numpy,pellucid
"""

import json
import os

import numpy as np

import pellucid as torch

address = os.environ["PELLUCID_MOUNT_URL"] + "model.pt2"
program = await torch.export.load_async(address, device="webgpu")
model = program.module()
x = torch.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
with torch.lens.capture(model, "second") as seen, torch.no_grad():
    y = model(x)
rows = await y.tolist_async()
blocking = torch.export.load(address).module()(x)
# Models of transformers: their arguments, and a module to look at.
listed = torch.weights.find(os.environ["PELLUCID_MOUNT_URL"] + "models.json")
models = json.loads(await listed.read_async(0, 1 << 20))
told = {}
for name, (arguments, path) in models.items():
    address = os.environ["PELLUCID_MOUNT_URL"] + f"{name}.pt2"
    model = (await torch.export.load_async(address)).module()
    with torch.lens.capture(model, path) as looked, torch.no_grad():
        output = model(**{k: torch.tensor(v) for k, v in arguments.items()})
    told[name] = [(await x.tolist_async()) for x in (next(iter(vars(output).values())), looked[path])]
print(json.dumps(told))
print(json.dumps({"y": rows, "second": seen["second"].tolist(), "blocking": blocking.tolist()}))
