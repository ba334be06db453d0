"""Runs recorded cases of PyTorch's operator database in the page; prints a line of JSON for each."""

import json
import os
from io import BytesIO

import numpy as np
from pyodide.http import pyfetch

import pellucid

pellucid.webgpu.set_float64_precision("float32")
MOUNT = os.environ["PELLUCID_MOUNT_URL"]


async def fetched(name):
    return await (await pyfetch(MOUNT + name)).bytes()


def made(v, arrays):
    """A value of a case; see `recorded.Record`."""
    if isinstance(v, list):
        return [made(x, arrays) for x in v]
    if not isinstance(v, dict):
        return v
    (kind, *_), (inner, *_) = v, v.values()
    if kind == "tensor":
        t = pellucid.tensor(
            arrays[inner], dtype=getattr(pellucid, v["dtype"].replace("bool", "bool_")), device="webgpu"
        )
        return t.requires_grad_() if v["grad"] else t
    if kind == "dtype":
        return getattr(pellucid, inner.replace("bool", "bool_"))
    if kind == "complex":
        return complex(*inner)
    if kind == "slice":
        return slice(*(made(x, arrays) for x in inner))
    if kind == "ellipsis":
        return ...
    if kind == "tuple":
        return tuple(made(x, arrays) for x in inner)
    return {k: made(x, arrays) for k, x in inner.items()}


def tensors(v):
    """The tensors of a value, in order."""
    if isinstance(v, pellucid.Tensor):
        yield v
    elif isinstance(v, (list, tuple)):
        for x in v:
            yield from tensors(x)
    elif isinstance(v, dict):
        for x in v.values():
            yield from tensors(x)


def differ(ours, wanted, arrays, values=True):
    """What is not the same, empty if nothing."""
    if len(ours) != len(wanted):
        return f"{len(ours)} tensors, PyTorch has {len(wanted)}"
    for t, w in zip(ours, wanted, strict=True):
        a, b = t.detach().numpy(), arrays[w["tensor"]]
        if a.shape != b.shape or str(t.dtype).removeprefix("pellucid.") != w["dtype"]:
            return f"{t.dtype} {a.shape}, PyTorch {w['dtype']} {b.shape}"
        if values and not np.allclose(a, b, 1e-3, 1e-3, equal_nan=True):
            return f"values differ by up to {np.nanmax(np.abs(a - b)):.3g}"
    return ""


def run(case, arrays):
    function = pellucid
    for name in case["path"].split("."):
        function = getattr(function, name)
    args, kwargs = made(case["args"], arrays), made(case["kwargs"], arrays)
    leaves = [t for t in tensors([args, kwargs]) if t.requires_grad]
    pellucid.manual_seed(7)
    results = list(tensors(function(*args, **kwargs)))
    said = differ(results, case["results"], arrays, case["values"])
    if said or "seeds" not in case:
        return said
    seeds = [made(s, arrays) for s in case["seeds"]]
    roots = [t for t, w in zip(results, case["results"], strict=True) if w["grad"]]
    pairs = [(t, s) for t, s in zip(roots, seeds, strict=True) if t.requires_grad]
    grads = pellucid.autograd.grad([t for t, _ in pairs], leaves, [s for _, s in pairs], allow_unused=True)
    found = [pellucid.zeros_like(x) if g is None else g for g, x in zip(grads, leaves, strict=True)]
    said = differ(found, case["gradients"], arrays)
    return f"gradient: {said}" if said else ""


cases = json.loads(await fetched("cases.json"))
stored = np.load(BytesIO(await fetched("arrays.npz")))
np.seterr(all="ignore")
for case_name, recorded in cases.items():
    try:
        told = run(recorded, stored)
    except Exception as error:
        told = f"{type(error).__name__}: {error}".split("\n")[0]
    print(json.dumps({"name": case_name, "said": told}))
