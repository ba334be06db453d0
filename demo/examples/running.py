"""Runs the program of an example in the page, step by step, and sends what it learns.

    loss      {step, loss}       of each step
    picture   {title, svg}       when it gives one

Every value is awaited, so the browser needs no way to suspend Python.
"""

import inspect
import linecache
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pellucid_page import send
from pictures import follow

import pellucid as torch

FOLDER = Path("/examples")
_runs = 0  # how many were begun or stopped: a run whose number is another's ends


def stop() -> None:
    """End what runs after the step that it is in."""
    global _runs
    _runs += 1


async def run(name: str, program: str, given: dict[str, Any]) -> bool:
    """Run the program's `main`.

    Args:
        name: of the example.
        program: its text, as it stands in the editor.
        given: arguments of `main`; those that it does not have are left out.

    Returns:
        Whether it ran to its end.
    """
    global _runs
    _runs += 1
    mine = _runs
    ended = False

    def going(steps: Iterable[Any]) -> Iterator[Any]:
        nonlocal ended
        for found in steps:
            if mine != _runs:
                return
            yield found
        ended = True

    await torch.webgpu.open_async()
    file = str(FOLDER / f"{name}.py")
    linecache.cache[file] = (len(program), None, program.splitlines(True), file)  # for tracebacks
    module = ModuleType(name)
    module.__file__ = file
    exec(compile(program, file, "exec"), vars(module))
    taken = inspect.signature(module.main).parameters
    await follow(
        going(module.main(**{key: value for key, value in given.items() if key in taken})),
        lambda tensor: tensor.detach().numpy_async(),
        lambda step, loss: send("loss", {"step": step, "loss": loss}),
        lambda title, svg: send("picture", {"title": title, "svg": svg}),
    )
    return ended
