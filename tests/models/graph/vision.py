"""Exported networks of timm and torchvision beside PyTorch, by hand: natively, then in Chromium.

    pip install --no-deps timm==1.0.31 torchvision==0.28.0 pillow
    PYTHONPATH=scripts python tests/models/graph/vision.py

Weights are random. Of each network the largest difference as a part of the largest value is printed, of the
result and of what the module gives that is named here, seen by a hook: on cpu, on webgpu and in the page.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# name -> (where it is from, a module, whether the batch's size is open, pixels)
NETWORKS = {
    "test_vit": ("timm", "blocks.0", True, 160),
    "test_resnet": ("timm", "layer1.0", False, 160),
    "test_efficientnet": ("timm", "blocks.1.0", True, 160),
    "test_convnext": ("timm", "stages.1", True, 160),
    "test_nfnet": ("timm", "stages.1", False, 160),
    "mobilenet_v3_small": ("torchvision", "features.3", True, 64),
    "shufflenet_v2_x0_5": ("torchvision", "stage2.0", False, 64),
    "squeezenet1_1": ("torchvision", "features.3", True, 64),
}
PAGE = """
import json, os
import numpy as np
import pellucid as torch
url = os.environ["PELLUCID_MOUNT_URL"]
models = json.loads(await torch.weights.find(url + "models.json").read_async(0, 1 << 20))
for name, (path, shape) in models.items():
    model = (await torch.export.load_async(url + f"{name}.pt2")).module()
    x = torch.tensor(np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape))
    with torch.lens.capture(model, path) as seen, torch.no_grad():
        y = model(x)
    print(json.dumps([name, await y.tolist_async(), await seen[path].flatten(2).sum(-1).tolist_async()]))
"""


def made(name, torch):
    """A network with random weights, in eval mode."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for op in ("nms", "qnms"):  # whose code in the wheel is for CUDA; nothing here calls them
        if not hasattr(torch.ops.torchvision, op):
            library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import timm
    import torchvision

    torch.manual_seed(1)
    where = NETWORKS[name][0]
    model = timm.create_model(name) if where == "timm" else getattr(torchvision.models, name)(weights=None)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.02 * torch.randn_like(p))
    return model.eval(), library


def main():
    import torch
    from torch.export import Dim

    import pellucid

    with tempfile.TemporaryDirectory() as folder:
        wanted, listed = {}, {}
        for name, (_, path, is_open, pixels) in NETWORKS.items():
            model, _library = made(name, torch)
            shape = (2, 3, pixels, pixels)
            x = torch.tensor(np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape))
            program = torch.export.export(
                model, (x,), dynamic_shapes=({0: Dim.DYNAMIC},) if is_open else None
            )
            torch.export.save(program, Path(folder, f"{name}.pt2"))
            seen = []
            model.get_submodule(path).register_forward_hook(lambda m, a, out, to=seen: to.append(out))
            with torch.no_grad():
                wanted[name] = model(x).numpy(), seen[0].flatten(2).sum(-1).numpy()
            listed[name] = path, shape
            for device in ("cpu", "webgpu"):
                ours = pellucid.export.load(str(Path(folder, f"{name}.pt2")), device=device).module()
                with pellucid.lens.capture(ours, path) as found, pellucid.no_grad():
                    y = ours(pellucid.tensor(x.numpy(), device=device))
                tell(name, device, wanted[name], (y.numpy(), found[path].flatten(2).sum(-1).numpy()))
        Path(folder, "models.json").write_text(json.dumps(listed))
        Path(folder, "page.py").write_text(PAGE)
        command = ["scripts/browser", Path(folder, "page.py"), "--mount", folder, "--packages=numpy,pellucid"]
        done = subprocess.run([sys.executable, *command, "--timeout=400"], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            if "[" in line:
                name, *values = json.loads(line[line.index("[") :])
                tell(name, "chromium", wanted[name], values)
        sys.exit(done.returncode and done.stdout + done.stderr)


def tell(name, where, wanted, got):
    shares = [np.abs(np.asarray(g) - w).max() / np.abs(w).max() for g, w in zip(got, wanted, strict=True)]
    print(f"{name:20} {where:9} {' '.join(f'{share:.1e}' for share in shares)}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main()
