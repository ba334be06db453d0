"""The first op where there is no WebGPU, and the way out; prints one line of JSON."""

import json

import pellucid as torch

said = {"available": torch.webgpu.is_available()}
try:
    torch.ones(2)
except Exception as error:
    said |= {"error": type(error).__name__, "text": str(error)}
torch.set_default_device("cpu")
print(json.dumps({**said, "on_cpu": (torch.ones(2) + torch.arange(2)).tolist()}))
