"""Cases of PyTorch's operator database as files, for hosts that have no PyTorch: the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .operators import FREE, TIED, in_scope, leaves_of, name_of
from .outcome import flat
from .translate import path_of

# One sample of each name: the middle one of the first so many.
SPREAD = 7


class Unwritten(Exception):
    """A value that has no form in a file."""


class Record:
    """Arrays by number, and values that name them."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def array(self, t: torch.Tensor) -> dict[str, Any]:
        if t.layout is not torch.strided or t.dtype in (torch.bfloat16, torch.complex128, torch.complex32):
            raise Unwritten(f"a tensor of {t.dtype}")
        if t.numel() and t.untyped_storage().nbytes() != t.nbytes:
            raise Unwritten("a view of other values")
        key = f"a{len(self.arrays)}"
        self.arrays[key] = t.detach().resolve_conj().resolve_neg().contiguous().numpy().copy()
        return {"tensor": key, "grad": t.requires_grad, "dtype": str(t.dtype).removeprefix("torch.")}

    def value(self, v: Any) -> Any:
        """A value as JSON."""
        if v is None or isinstance(v, (bool, int, float, str)):
            return v
        if isinstance(v, torch.Tensor):
            return self.array(v)
        if isinstance(v, torch.dtype):
            return {"dtype": str(v).removeprefix("torch.")}
        if isinstance(v, complex):
            return {"complex": [v.real, v.imag]}
        if isinstance(v, slice):
            return {"slice": [self.value(x) for x in (v.start, v.stop, v.step)]}
        if v is Ellipsis:
            return {"ellipsis": True}
        if isinstance(v, list):
            return [self.value(x) for x in v]
        if isinstance(v, tuple):
            return {"tuple": [self.value(x) for x in v]}
        if isinstance(v, dict) and all(isinstance(k, str) for k in v):
            return {"dict": {k: self.value(x) for k, x in v.items()}}
        raise Unwritten(f"a {type(v).__name__}")


def record(info: Any, seed: int, kept: Record) -> dict[str, Any]:
    """One sample of an entry with what PyTorch makes of it.

    Raises:
        Unwritten: the sample has no form in a file, or its function is not one of PyTorch's public ones.
    """
    path = path_of(info.op)
    if path is None:
        raise Unwritten("a function of the test suite")
    torch.manual_seed(seed)
    grad = info.supports_autograd and torch.float32 in info.supported_backward_dtypes("cpu")
    samples = [s for s, _ in zip(info.sample_inputs("cpu", torch.float32, requires_grad=grad), range(SPREAD))]
    sample = samples[len(samples) // 2]
    given = kept.value((sample.input, *sample.args)), kept.value(dict(sample.kwargs))
    torch.manual_seed(7)
    theirs = info.op(sample.input, *sample.args, **sample.kwargs)
    results = [t for t in flat(theirs) if isinstance(t, torch.Tensor)]
    case = {
        "path": path,
        "args": given[0],
        "kwargs": given[1],
        "results": [kept.array(t.clone()) for t in results],
    }
    # What nothing fixes is not compared: phases and signs, which the database takes away by a function.
    fixed = sample.output_process_fn_grad(theirs) is theirs
    case["values"] = fixed and not info.name.startswith((*FREE, *TIED))
    roots, leaves = leaves_of(results), leaves_of(sample.input, sample.args, sample.kwargs)
    if case["values"] and grad and roots and leaves:
        seeds = [torch.randn_like(r) for r in roots]
        wanted = torch.autograd.grad(roots, leaves, seeds, allow_unused=True)
        case["seeds"] = [kept.array(s) for s in seeds]
        case["gradients"] = [
            kept.array(torch.zeros_like(x) if g is None else g.clone())
            for g, x in zip(wanted, leaves, strict=True)
        ]
    return case


def write(folder: Path, seed: int) -> tuple[int, dict[str, str]]:
    """Write one case of every name; how many, and why the others have none."""
    folder.mkdir(parents=True, exist_ok=True)
    kept, cases, left = Record(), {}, {}
    for info in in_scope().values():
        if torch.float32 not in info.supported_dtypes("cpu"):
            left[name_of(info)] = "no float32"
            continue
        try:
            cases[name_of(info)] = record(info, seed, kept)
        except (Unwritten, RuntimeError, NotImplementedError, TypeError, IndexError) as error:
            left[name_of(info)] = f"{type(error).__name__}: {error}".split("\n")[0]
    np.savez(folder / "arrays.npz", **kept.arrays)
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    return len(cases), left
