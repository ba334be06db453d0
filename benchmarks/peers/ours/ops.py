"""Rows of benchmarks/ops.py in the comparison: one expression over named operands, by the clock."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import pellucid as torch
from pellucid.device.stream import stream
from pellucid.nn import functional as F

from .data import integers, permutation, places, uniform
from .forms import DEVICE, Form, Row

# What stands for a number that is none, so that sums can be compared.
NAN, INFINITY, MINUS_INFINITY = 3.0, 5.0, -7.0
# Calls before any counts: a plan of what is fused begins once a window has come again, and is made in parts.
WARM_UP = 24
# How many results are held while further calls are queued: few, for they are large.
HELD = 8


def values(side: int) -> dict[str, np.ndarray]:
    """The operands of benchmarks/ops.py, with the numbers of page/op_values.js."""
    count = side * side
    x, k = uniform((count,), 1, 0.4, 0.5), permutation(count)
    return {
        "x": x,
        "y": uniform((count,), 2, 0.4, 0.5),
        "m": x.reshape(side, side),
        "h": x.reshape(-1, 32, side // 32, side // 32),
        "i": integers((count,), 3, 1_000_000).astype(np.int32),
        "j": integers((count,), 4, 16).astype(np.int32),
        "b": integers((count,), 5, 2) == 1,
        "k": k,
        "r": k[:side] % side,
        "o": integers((count // 64,), 6, 64),
        "q": (np.arange(1000) / 999).astype(np.float32),
        "v": uniform((side,), 7, 0.5, 0.5),
    }


@lru_cache(maxsize=1)
def operands(side: int) -> tuple[dict[str, torch.Tensor], np.ndarray]:
    """The same on the device, k in 32 bits as well, and the numbers of x."""
    made = values(side)
    named = {name: torch.from_numpy(value).to(DEVICE) for name, value in made.items()}
    return {**named, "k32": named["k"].to(torch.int32)}, made["x"]


def taken(output: Any, row: Row, x: np.ndarray) -> np.ndarray:
    """Numbers of an output that are compared, as page/op_values.js takes them.

    They are of its first tensor; of complex numbers the real part, of indices what lies there.
    """
    while not isinstance(output, torch.Tensor):
        output = output[0]
    found = output.numpy()
    flat = (found.real if np.iscomplexobj(found) else found).reshape(-1)
    at = places(flat.size)
    numbers, side = flat[at], row["side"]
    match row.get("indexes"):
        case "all":
            numbers = x[numbers]
        case "rows":
            numbers = x[at * side + numbers]
        case "columns":
            numbers = x[numbers * side + at]
    return np.nan_to_num(numbers.astype(np.float64), nan=NAN, posinf=INFINITY, neginf=MINUS_INFINITY)


def op(row: Row) -> dict[str, Form]:
    """A row as it is recorded; and fused, with a flush behind each call, for no two calls are one work, where
    there is more than one launch to fuse."""
    named, x = operands(row["side"])
    run = eval(f"lambda: {row['expressions']['run']}", {"t": torch, "F": F, **named})

    def unfused() -> Any:
        with torch.webgpu.fusion(False):
            return run()

    def fused() -> Any:
        output = run()
        torch.webgpu.flush()
        return output

    stats = stream().open().stats
    unfused()
    torch.webgpu.synchronize()
    before = stats()["dispatches"]
    unfused()
    torch.webgpu.synchronize()
    launches = stats()["dispatches"] - before
    warm: set[Any] = set()

    def ready(call: Callable[[], Any]) -> None:
        """Until the plan is made and the kernels of the first calls are compiled."""
        if call in warm:
            return
        for _ in range(WARM_UP):
            call()
            torch.webgpu.synchronize()
        while stats()["compiling"]:
            call()
            torch.webgpu.synchronize()
        warm.add(call)

    more: dict[str, Any] = {"held": HELD, "read": lambda output: taken(output, row, x)}
    note = f"{launches} launches"
    made = {"eager": Form(lambda _: run(), before=lambda _: ready(unfused), fusion=False, note=note, **more)}
    if launches > 1:
        made["fused"] = Form(lambda _: fused(), before=lambda _: ready(fused), note=note, **more)
    return made
