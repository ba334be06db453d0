"""A TensorFlow Lite file by Range in a page or natively: prints its output and what was seen of a node.

scripts/browser tests/models/graph/tflite_page.py --mount DIR
"""

import json
import os

import numpy as np

import pellucid as torch

address = os.environ["PELLUCID_MOUNT_URL"] + "model.tflite"
model = await torch.tflite.load_async(address, device="webgpu")
x = np.linspace(-1, 1, 243, dtype=np.float32).reshape(1, 9, 9, 3)
with torch.lens.capture(model, "add") as seen:
    y = model(x)
rows = await y.tolist_async()
blocking = torch.tflite.load(address)(x=x)
sparse = torch.tflite.load(os.environ["PELLUCID_MOUNT_URL"] + "sparse.tflite")
of_sparse = sparse(np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)).tolist()
said = {"y": rows, "add": list(seen["add"].shape), "blocking": blocking.tolist(), "sparse": of_sparse}
print(json.dumps(said))
