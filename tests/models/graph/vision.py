"""Networks of timm and torchvision as PyTorch exported them: recorded without weights, which are made anew.

The exported graph of a network takes some 10 KB. Its weights are noise that follows from their names, so the
record holds the archive without them, and what PyTorch computes with them. To record, natively and by hand:

    pip install --no-deps --target lib timm==1.0.31 torchvision==0.28.0 pillow
    PYTHONPATH=scripts:tests:lib python tests/models/graph/vision.py

This also prints, of every network, the largest difference as a part of the largest value, of the result and
of what the module gives that is named here, seen by a hook: on cpu, on webgpu and in Chromium.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from math import prod
from pathlib import Path
from zlib import crc32

import numpy as np

import pellucid

from paths import SCRIPTS

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
FOLDER = Path(__file__).with_name("vision")
_WEIGHTS = "data/weights/"
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


def shape_of(name: str) -> tuple[int, ...]:
    """The shape of the images: two where the program was exported for two, else three."""
    _, _, is_open, pixels = NETWORKS[name]
    return (3 if is_open else 2, 3, pixels, pixels)


def images(name: str) -> np.ndarray:
    shape = shape_of(name)
    return np.linspace(-2, 2, prod(shape), dtype=np.float32).reshape(shape)


def numbers(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """A weight's values: noise that follows from its name (splitmix64), of a size that keeps signals up."""
    if name.endswith("num_batches_tracked"):
        return np.zeros(shape, np.int64)
    with np.errstate(over="ignore"):
        z = np.arange(prod(shape), dtype=np.uint64) + np.uint64(crc32(name.encode()) << 32)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    noise = ((z ^ z >> np.uint64(31)) >> np.uint64(40)).reshape(shape) / (1 << 23) - 1
    if len(shape) > 1:
        noise *= (6 / prod(shape[1:])) ** 0.5
    elif name.endswith(("weight", "running_var")):
        noise = 1 + noise / 2
    else:
        noise /= 5
    return noise.astype(np.float32)


def assembled(name: str, path: Path) -> Path:
    """The program's archive, weights and all."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as record, zipfile.ZipFile(path, "w") as archive:
        for entry in record.namelist():
            archive.writestr(entry, record.read(entry))
        (config,) = (n for n in record.namelist() if n.endswith("model_weights_config.json"))
        for weight, place in json.loads(record.read(config))["config"].items():
            shape = tuple(n["as_int"] for n in place["tensor_meta"]["sizes"])
            file = f"{config.rpartition('/')[0]}/{place['path_name']}"
            archive.writestr(file, numbers(weight, shape).tobytes())
    return path


def expected(name: str) -> tuple[np.ndarray, np.ndarray]:
    """What PyTorch computed: the result, and the module's, summed over places."""
    with np.load(FOLDER / "expected.npz") as found:
        return found[f"{name}:result"], found[f"{name}:module"]


def computed(name: str, path: Path, device: str) -> tuple[np.ndarray, np.ndarray]:
    """What is computed here."""
    at = NETWORKS[name][1]
    model = pellucid.export.load(str(path), device=device).module()
    with pellucid.lens.capture(model, at) as seen, pellucid.no_grad():
        y = model(pellucid.tensor(images(name), device=device))
    return y.numpy(), seen[at].flatten(2).sum(-1).numpy()


def in_a_page(names: list[str], folder: Path) -> dict[str, tuple]:
    """What is computed in Chromium, of archives that lie in a folder."""
    Path(folder, "models.json").write_text(json.dumps({n: (NETWORKS[n][1], shape_of(n)) for n in names}))
    Path(folder, "page.py").write_text(PAGE)
    command = [SCRIPTS / "browser", Path(folder, "page.py"), "--mount", folder, "--packages=numpy,pellucid"]
    done = subprocess.run([sys.executable, *command, "--timeout=400"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    lines = [json.loads(line[line.index("[") :]) for line in done.stdout.splitlines() if "[" in line]
    return {name: tuple(map(np.asarray, values)) for name, *values in lines}


def differences(got: tuple, wanted: tuple) -> list[float]:
    """The largest difference as a part of the largest value, of the result and of the module."""
    return [float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, wanted, strict=True)]


def record(name: str, to: Path) -> tuple[np.ndarray, np.ndarray]:
    """Export a network into an archive, keep it without its weights, and say what PyTorch computes."""
    import torch
    from torch.export import Dim

    operators = torch.library.Library("torchvision", "FRAGMENT")
    for op in ("nms", "qnms"):  # whose code in the wheel is for CUDA; nothing here calls them
        if not hasattr(torch.ops.torchvision, op):
            operators.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import timm  # pyright: ignore[reportMissingImports]
    import torchvision  # pyright: ignore[reportMissingImports]

    where, at, is_open, _ = NETWORKS[name]
    model = timm.create_model(name) if where == "timm" else getattr(torchvision.models, name)(weights=None)
    state = {n: torch.from_numpy(numbers(n, tuple(t.shape))) for n, t in model.state_dict().items()}
    model.load_state_dict(state)
    model.eval()
    x = torch.from_numpy(images(name))
    program = torch.export.export(model, (x[:2],), dynamic_shapes=({0: Dim.DYNAMIC},) if is_open else None)
    torch.export.save(program, to)
    with zipfile.ZipFile(to) as archive, zipfile.ZipFile(
        FOLDER / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9
    ) as kept:  # fmt: skip
        for entry in archive.namelist():
            inside = entry.partition("/")[2]
            is_weight = inside.startswith(_WEIGHTS) and not inside.endswith(".json")
            if not is_weight and not inside.startswith("data/sample_inputs"):
                data = archive.read(entry)
                for library in (torch, timm, torchvision):  # whose files nodes name, wherever they were
                    data = data.replace(f"{Path(str(library.__file__)).parents[1]}/".encode(), b"/")
                kept.writestr(zipfile.ZipInfo(entry), data, zipfile.ZIP_DEFLATED, 9)
    seen = []
    model.get_submodule(at).register_forward_hook(lambda m, a, out: seen.append(out))
    with torch.no_grad():
        return model(x).numpy(), seen[0].flatten(2).sum(-1).numpy()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        kept = {}
        for name in NETWORKS:
            result, module = record(name, Path(folder, f"{name}.pt2"))
            kept |= {f"{name}:result": result, f"{name}:module": module}
        np.savez_compressed(FOLDER / "expected.npz", **kept)
        for name in NETWORKS:
            path = assembled(name, Path(folder, f"{name}.pt2"))
            for device in ("cpu", "webgpu"):
                tell(name, device, computed(name, path, device))
        for name, values in in_a_page(list(NETWORKS), Path(folder)).items():
            tell(name, "chromium", values)


def tell(name: str, where: str, got: tuple) -> None:
    print(f"{name:20} {where:9} {' '.join(f'{d:.1e}' for d in differences(got, expected(name)))}", flush=True)


if __name__ == "__main__":
    main()
