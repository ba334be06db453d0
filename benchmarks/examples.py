"""The programs of examples/ at full size: seconds of each, of a step, and what they learn.

Run: scripts/browser benchmarks/examples.py --timeout 600 -- [NAME...]   (add --native for wgpu-py)

A software adapter takes 40 steps of each.

    start      seconds to the first losses, ten steps in one read: data, capture and kernels
    all        seconds of the whole program, its pictures included
    step       milliseconds of a later step: from the first losses to the last, pictures in between included
    loss       mean of the first five losses, and of the last five

The last line is JSON.
"""

import importlib
import json
import os
import statistics
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

import pellucid as torch

READ = 10  # losses in one read
ENDS = 5
SOFTWARE = {"steps": 40}


async def brought(files: list[str]) -> Path:
    """The folder of the examples' files; in a page they are fetched into one."""
    if sys.platform != "emscripten":
        return Path(__file__).resolve().parents[1] / "examples"
    from pyodide.http import pyfetch

    folder = Path(mkdtemp())
    for name in files:
        answer = await pyfetch(os.environ["PELLUCID_MOUNT_URL"].removesuffix("mount/") + f"examples/{name}")
        folder.joinpath(name).write_bytes(await answer.bytes())
    return folder


async def measured(name: str, given: dict[str, int]) -> dict[str, float]:
    """Run one example with these arguments and return its row."""
    from pictures import follow

    stamps, losses, pictures = [], [], []
    begun = time.perf_counter()

    def learned(step: int, loss: float) -> None:
        stamps.append(time.perf_counter())
        losses.append(loss)

    await follow(
        importlib.import_module(name).main(**given),
        lambda tensor: tensor.detach().numpy_async(),
        learned,
        lambda title, svg: pictures.append(title),
        READ,
    )
    return {
        "steps": len(losses),
        "start": round(stamps[READ - 1] - begun, 3),
        "seconds": round(time.perf_counter() - begun, 2),
        "step": round(1000 * (stamps[-1] - stamps[READ - 1]) / (len(stamps) - READ), 3),
        "first_loss": round(statistics.mean(losses[:ENDS]), 4),
        "last_loss": round(statistics.mean(losses[-ENDS:]), 4),
        "pictures": len(pictures),
    }


async def main() -> int:
    listed = await brought(["list.json"])
    names = json.loads(listed.joinpath("list.json").read_text(encoding="utf-8"))
    if unknown := sorted(set(sys.argv[1:]) - set(names)):
        print(f"no example named {', '.join(unknown)}; there are: {', '.join(names)}", file=sys.stderr)
        return 1
    folder = await brought(["digits.npz", "pictures.py", *(f"{name}.py" for name in names)])
    sys.path.insert(0, str(folder))
    await torch.webgpu.open_async()
    info = torch.webgpu.get_device_properties()
    adapter = f"{info.vendor} {info.architecture} {info.description}".strip()
    print(f"{adapter}\n{'':16}{'steps':>7}{'start s':>9}{'all s':>8}{'step ms':>9}   loss", flush=True)
    rows = {}
    for name in sys.argv[1:] or names:
        row = rows[name] = await measured(name, SOFTWARE if info.is_software else {})
        print(
            f"{name:16}{row['steps']:7}{row['start']:9.2f}{row['seconds']:8.2f}{row['step']:9.2f}"
            f"   {row['first_loss']} to {row['last_loss']}",
            flush=True,
        )
    print(json.dumps({"benchmark": "examples", "adapter": adapter, "rows": rows}))
    return 0


sys.exit(await main())  # noqa: F704 (scripts/browser allows await at the top)
