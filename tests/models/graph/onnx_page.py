"""An ONNX file by Range in a page or natively: prints what its outputs are and what was seen of a node.

scripts/browser tests/models/graph/onnx_page.py --mount DIR --packages numpy,pellucid,protobuf
"""

import json
import os

import numpy as np

import pellucid as torch

address = os.environ["PELLUCID_MOUNT_URL"] + "model.onnx"
model = await torch.onnx.load_async(address, device="webgpu")
x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 1, 8, 8)
with torch.lens.capture(model, "relu") as seen:
    y = model(x)
rows = await y.tolist_async()
blocking = torch.onnx.load(address)(x=x)
print(json.dumps({"y": rows, "relu": list(seen["relu"].shape), "blocking": blocking.tolist()}))
