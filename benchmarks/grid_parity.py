"""Values and gradients of every layer of the grid on the GPU beside those on the CPU, whose sums are float64,
and milliseconds of a forward on both.

Run: scripts/browser benchmarks/grid_parity.py   (add --native for CPython; -- --write renews docs/grid.md)

An error is the largest difference, as a part of the largest number of the CPU's tensor. One that is above the
tolerance ends with status 1. The last line is JSON.
"""

import argparse
import copy
import json
import sys
import time
from pathlib import Path

import pellucid as torch
from pellucid.grid import PRECISIONS, Layer, Parallel, SoftmaxVariant, morph

# Scales have 16 bits: where a GPU's quotient is one rounding off, a scale may be one of its steps off, 3e-5.
TOLERANCE = 4e-5
BEGIN, END = "<!-- parity -->\n", "<!-- /parity -->\n"
WIDE = {"type": "dense", "d_model": 48, "activation": "tanh"}
CUBE = {"input_depth": 5, "input_height": 6, "input_width": 7, "input_channels": 3, "kernel_size": 3}
IMAGE = {k: v for k, v in CUBE.items() if k != "input_depth"}
LINE = {**IMAGE, "input_height": 40}
# Fields of a layer of each type, and the shape of its input.
TYPES = {
    "dense": ({"input_height": 96, "output_height": 40, "activation": "gelu"}, (9, 96)),
    "multi_head_attention": ({"d_model": 64, "num_heads": 8, "num_kv_heads": 2}, (3, 17, 64)),
    "swiglu": ({"d_model": 48}, (9, 48)),
    "rms_norm": ({"d_model": 80}, (9, 80)),
    "cnn1": ({**LINE, "filters": 5, "padding": 1}, (4, 3, 40)),
    "cnn2": ({**IMAGE, "filters": 5, "stride": 2, "activation": "silu"}, (4, 3, 6, 7)),
    "cnn3": ({**CUBE, "filters": 5, "padding": 1}, (2, 3, 5, 6, 7)),
    "rnn": ({"d_model": 24}, (3, 11, 24)),
    "lstm": ({"input_height": 24, "output_height": 16}, (3, 11, 24)),
    "layer_norm": ({"d_model": 80}, (9, 80)),
    "conv_transposed_1d": ({**LINE, "filters": 5, "stride": 2, "output_padding": 1}, (4, 3, 40)),
    "conv_transposed_2d": ({**IMAGE, "filters": 5, "stride": 2}, (4, 3, 6, 7)),
    "conv_transposed_3d": ({**CUBE, "filters": 5}, (2, 3, 5, 6, 7)),
    "embedding": ({"vocab_size": 50, "embedding_dim": 24}, None),
    "kmeans": ({"num_clusters": 6, "d_model": 24, "output_mode": "features"}, (9, 24)),
    "softmax": ({}, (9, 60)),
    "parallel": ({"parallel_branches": [WIDE, {**WIDE, "activation": "relu"}]}, (9, 48)),
    "sequential": ({"sequential_layers": [WIDE, {"type": "rms_norm", "d_model": 48}]}, (9, 48)),
    "residual": ({"sequential_layers": [WIDE]}, (9, 48)),
}
SOFTMAXES = {
    "grid": {"rows": 6, "columns": 10},
    "hierarchical": {"levels": [3, 4, 5]},
    "temperature": {"temperature": 0.4},
    "gumbel": {"tau": 0.8},
    "masked": {"mask": torch.arange(60, device="cpu") % 3 > 0},
    "sparse": {},
    "entmax": {"alpha": 1.5},
    "adaptive": {},
    "mixture": {"prior": torch.tensor([0.5, 0.3, 0.2], device="cpu")},
}
COMBINED = {"concat": {}, "add": {}, "avg": {}, "filter": {"top_k": 1}, "grid_scatter": {"grid": [2, 2]}}
"""Ways to combine branches, with their settings."""


def rows() -> dict[str, tuple[torch.nn.Module, torch.Tensor]]:
    """Modules and inputs on the CPU, by what the table calls them."""
    torch.manual_seed(0)
    found = {}
    with torch.device("cpu"):
        for kind, (fields, shape) in TYPES.items():
            x = torch.randn(shape) if shape else torch.arange(40).reshape(2, 20) % 7
            found[kind] = Layer({"type": kind, **fields}, device="cpu"), x
        for kind, settings in SOFTMAXES.items():
            x = torch.randn(9, 3, 60) if kind == "mixture" else torch.randn(9, 60)
            found[f"softmax, {kind}"] = SoftmaxVariant(kind, **settings), x
        for combine, settings in COMBINED.items():
            branches = [Layer(WIDE, device="cpu") for _ in range(4 if combine == "grid_scatter" else 2)]
            own = {**settings, "gate": torch.nn.Linear(48, 2)} if combine == "filter" else settings
            found[f"parallel, {combine}"] = Parallel(branches, combine, **own), torch.randn(9, 48)
        for kind in PRECISIONS:
            layer = torch.nn.Linear(96, 40)
            found[f"dense in {kind}"] = morph(layer, kind, "weight", "channel"), torch.randn(9, 96)
    return found


def run(module: torch.nn.Module, x: torch.Tensor, device: str) -> dict[str, list[torch.Tensor]]:
    """Output, gradient of the input and gradients of the parameters, read to the CPU."""
    module, x = copy.deepcopy(module).to(device), x.to(device)
    if x.dtype.is_floating_point:
        x.requires_grad_()
    torch.manual_seed(1)
    out = module(x)
    out.backward(torch.randn(out.shape, device="cpu", generator=torch.Generator().manual_seed(2)).to(device))
    found = {"output": [out.detach()], "input": [x.grad] if x.requires_grad else []}
    found["parameters"] = [p.grad for p in module.parameters() if p.grad is not None]
    return {name: [t.cpu() for t in tensors] for name, tensors in found.items()}


def error(ours: list[torch.Tensor], wanted: list[torch.Tensor]) -> float | None:
    """The largest of all tensors; None where there is none."""
    found = []
    for a, b in zip(ours, wanted, strict=True):
        size = b.abs().max().item()
        found.append((a - b).abs().max().item() / max(size, 1e-30))
    return max(found, default=None)


def compared(only: str | None = None) -> dict[str, dict[str, float | None]]:
    """Errors by row, or of one row: of output, input's gradient and parameters' gradients."""
    found = {}
    for name, (module, x) in rows().items():
        if only not in (None, name):
            continue
        gpu, cpu = run(module, x, "webgpu"), run(module, x, "cpu")
        found[name] = {part: error(gpu[part], cpu[part]) for part in cpu}
    return found


def forward_ms(module: torch.nn.Module, x: torch.Tensor, device: str, repeat: int = 3) -> float:
    """Milliseconds of a forward, after one that is not timed."""
    module, x = copy.deepcopy(module).to(device), x.to(device)
    with torch.no_grad():
        module(x)
        torch.webgpu.synchronize()
        began = time.perf_counter()
        for _ in range(repeat):
            module(x)
        torch.webgpu.synchronize()
    return 1000 * (time.perf_counter() - began) / repeat


def table(results: dict[str, dict[str, float | None]]) -> str:
    """Markdown."""
    lines = ["| layer | output | gradient of the input | of the parameters |", "|---|---|---|---|"]
    for name, errors in results.items():
        shown = ["" if e is None else "0" if e == 0 else f"{e:.0e}" for e in errors.values()]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="grid_parity", description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the table of docs/grid.md (CPython)")
    options = parser.parse_args()
    results = compared()
    name = torch.webgpu.get_device_name()
    print(f"{name}, tolerance {TOLERANCE}\n\n{table(results)}")
    times = {row: {d: forward_ms(*pair, d) for d in ("webgpu", "cpu")} for row, pair in rows().items()}
    print(f"{'forward, ms':28} {'GPU':>8} {'CPU':>8}")
    for row, ms in times.items():
        print(f"{row:28} {ms['webgpu']:8.2f} {ms['cpu']:8.2f}")
    if options.write:
        page = Path(__file__).resolve().parents[1] / "docs" / "grid.md"
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        page.write_text(before + BEGIN + table(results) + END + rest.partition(END)[2], encoding="utf-8")
    print(json.dumps({"device": name, "tolerance": TOLERANCE, "errors": results, "forward_ms": times}))
    wrong = {k: e for k, e in results.items() if not all(v is None or v <= TOLERANCE for v in e.values())}
    if wrong:
        sys.exit(f"above the tolerance: {wrong}")


if __name__ == "__main__":
    main()
