"""An exported program by Range in a page or natively: prints its results and what was seen of a module.

scripts/browser tests/models/graph/export_page.py --mount DIR --packages numpy,pellucid
"""

import json
import os

import numpy as np

import pellucid as torch

address = os.environ["PELLUCID_MOUNT_URL"] + "model.pt2"
program = await torch.export.load_async(address, device="webgpu")  # noqa: F704  # pyright: ignore
model = program.module()
x = torch.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
with torch.lens.capture(model, "second") as seen, torch.no_grad():
    y = model(x)
rows = await y.tolist_async()  # noqa: F704  # pyright: ignore
blocking = torch.export.load(address).module()(x)
print(json.dumps({"y": rows, "second": seen["second"].tolist(), "blocking": blocking.tolist()}))
