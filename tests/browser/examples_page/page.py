"""Every example at reduced size in a page: a line of JSON with its losses, pictures and work.

The argument is a JSON table of names and settings; the folder of the examples is the mount and the package.
"""

import itertools
import json
import os
import sys
import time
import types
from pathlib import Path

from pyodide.http import pyfetch

import pellucid
from pellucid.device.stream import stream

FOLDER = Path(__file__).parent / "examples"
data = await pyfetch(os.environ["PELLUCID_MOUNT"] + "digits.npz")  # the package is its Python files
(FOLDER / "digits.npz").write_bytes(await data.bytes())
sys.path.insert(0, str(FOLDER))  # examples import each other by name


async def ran(name: str, given: dict) -> dict:
    """What an example yields, and what each of its steps asks of the device."""
    host = stream().open()
    module = types.ModuleType(name)
    module.__file__ = str(FOLDER / f"{name}.py")
    exec(compile(Path(module.__file__).read_text(encoding="utf-8"), module.__file__, "exec"), vars(module))
    losses, drawn, work = [], [], [[]]
    start = time.perf_counter()
    for found in module.main(**given):
        stats = host.stats()
        if hasattr(found, "svg"):
            arrays = {
                key: await value.detach().numpy_async() if hasattr(value, "detach") else value
                for key, value in found.tensors.items()
            }
            drawn.append([found.title, found.svg(arrays)])
            work.append([])  # what comes now may be another step, which has to be captured first
        else:
            losses.append(found)
            work[-1].append((stats["submits"], stats["dispatches"]))
    steps = [
        (after[0] - before[0], after[1] - before[1])
        for phase in work
        for before, after in itertools.pairwise(phase[3:])
    ]
    return {
        "name": name,
        "losses": (await pellucid.stack(losses).numpy_async()).tolist(),
        "pictures": drawn,
        "steps": sorted(set(steps)),  # (submissions, dispatches)
        "seconds": round(time.perf_counter() - start, 2),
    }


with pellucid.webgpu.fusion(False):  # kernels of single ops serve all examples
    for name, given in json.loads(sys.argv[1]).items():
        print(json.dumps(await ran(name, given)), flush=True)
