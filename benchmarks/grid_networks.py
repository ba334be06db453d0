"""Training times of six small networks of the grid: dense, deep, with a norm, convolutions along 1 to 3 axes.

Run: scripts/browser benchmarks/grid_networks.py   (add --native for CPython; -- --epochs 5 for fewer epochs)

Each network learns to tell eight classes that are patterns in noise, in epochs of eight batches, by Adam. The
first epoch, in which kernels are compiled, is not timed. Losses are means of an epoch; a network whose loss
does not fall by a tenth is an error. The last line is JSON.
"""

import argparse
import itertools
import json
import sys
import time

import pellucid as torch
from pellucid.grid import FitConfig, fit, network_from_json

BATCHES, CLASSES = 8, 8
FALL = 0.9  # of the first epoch's loss, at most, at the end


def dense(inputs: int, outputs: int, activation: str = "relu") -> dict:
    """A dense layer."""
    sizes = {"input_height": inputs, "output_height": outputs}
    return {"type": "dense", **sizes, "activation": activation}


def convolutions(axes: int, length: int, *channels: int) -> list[dict]:
    """Convolutions over a cube of that many axes, and the classes."""
    names = ("input_height", "input_width", "input_depth")[:axes]
    fields = {"type": f"cnn{axes}", **dict.fromkeys(names, length), "padding": 1, "activation": "relu"}
    pairs = itertools.pairwise(channels)
    layers = [fields | {"input_channels": one, "filters": other} for one, other in pairs]
    return [*layers, dense(channels[-1] * length**axes, CLASSES, "linear")]


NORM = {"type": "rms_norm", "d_model": 512}
END = dense(512, CLASSES, "linear")
# Numbers of an example, examples of a batch, layers.
NETWORKS = {
    "dense 128-512-512-8": (128, 64, [dense(128, 512), dense(512, 512), END]),
    "cnn1 3x128-32-64-8": (384, 32, convolutions(1, 128, 3, 32, 64)),
    "cnn2 3x32x32-16-32-8": (3072, 16, convolutions(2, 32, 3, 16, 32)),
    "cnn3 2x8x8x8-8-8": (1024, 8, convolutions(3, 8, 2, 8)),
    "norm 128-512-norm-512-8": (128, 64, [dense(128, 512), NORM, dense(512, 512), END]),
    "deep 128-512x4-8": (128, 64, [dense(128, 512), *[dense(512, 512)] * 3, END]),
}


def batches(inputs: int, size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Patterns in noise, and their classes."""
    torch.manual_seed(0)
    patterns = torch.randn(CLASSES, inputs) * 0.3
    found = []
    for _ in range(BATCHES):
        classes = torch.randint(0, CLASSES, (size,))
        found.append((patterns[classes] + torch.randn(size, inputs), classes))
    return found


def measure(name: str, epochs: int) -> dict:
    """Seconds of the timed epochs, and losses of all."""
    inputs, size, layers = NETWORKS[name]
    data = batches(inputs, size)
    torch.manual_seed(1)
    spec = {"cols": len(layers), "layers": [{"x": k, **layer} for k, layer in enumerate(layers)]}
    net = network_from_json(spec)
    optimizer = torch.optim.Adam(net.parameters(), 0.001)
    first = fit(net, data, FitConfig(1, loss="cross_entropy"), optimizer)
    began = time.perf_counter()
    rest = fit(net, data, FitConfig(epochs, loss="cross_entropy"), optimizer)
    torch.webgpu.synchronize()
    seconds = time.perf_counter() - began
    losses = [*first.losses, *rest.losses]
    return {"seconds": seconds, "losses": losses, "parameters": net.num_parameters()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="grid_networks", description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--only", default="", help="part of a network's name")
    options = parser.parse_args()
    print(f"{torch.webgpu.get_device_name()}, {options.epochs} epochs of {BATCHES} batches")
    print(f"{'network':26} {'parameters':>10} {'ms':>8} {'first loss':>10} {'last loss':>10}")
    results = {}
    for name in NETWORKS:
        if options.only in name:
            r = results[name] = measure(name, options.epochs)
            first, last = r["losses"][0], r["losses"][-1]
            ms = 1000 * r["seconds"]
            print(f"{name:26} {r['parameters']:10} {ms:8.0f} {first:10.4f} {last:10.4f}", flush=True)
            if not last < FALL * first:
                sys.exit(f"{name}: the loss does not fall: {r['losses']}")
    print(
        json.dumps({"device": torch.webgpu.get_device_name(), "epochs": options.epochs, "networks": results})
    )


main()
