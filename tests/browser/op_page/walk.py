"""Runs cases on both devices, compares them, and counts which kernels the host really ran."""

from __future__ import annotations

import re
import traceback
from typing import NamedTuple

import numpy as np
from case import Case

import pellucid
from pellucid.device.commands import CODE_BITS, RUN, walk
from pellucid.device.stream import stream


class Launch(NamedTuple):
    """The file of a launch, and what a walk has to know of it."""

    file: str
    slot_count: int
    length: int


class Executed:
    """Ops that recorded launches, and files of the launches in the windows that reached the host: what was
    executed, not just compiled.
    """

    def __init__(self):
        self.ops: set[str] = set()
        self.files: set[str] = set()
        stream().after_op.append(self.ops.add)
        self._pipelines: dict[int, tuple[str, int]] = {}
        self._launches: dict[int, Launch] = {}
        host = stream().open()
        self._host_launch, self._host_submit = host.launch, host.submit
        host.pipeline = self._seen(host.pipeline)
        host.pipeline_later = self._seen(host.pipeline_later)
        host.launch, host.submit = self._launch, self._submit

    def _seen(self, pipeline):
        """A maker of pipelines that remembers whose each is."""

        def make(source, bindings, params_bytes, immediate, label):
            number = pipeline(source, bindings, params_bytes, immediate, label)
            self._pipelines[number] = re.findall(r"\((?:fused )?([\w/]+)", label)[0], len(bindings)
            return number

        return make

    def _launch(self, pipeline, params, patches, x, y, z):
        number = self._host_launch(pipeline, params, patches, x, y, z)
        file, bindings = self._pipelines[pipeline]
        self._launches[number << CODE_BITS | RUN] = Launch(file, bindings, 1 + bindings + len(patches))
        return number

    def _submit(self, words, held=False):
        launches = [command.launch for command in walk(words, self._launches)]
        self.files |= {launch.file for launch in launches if launch is not None}
        self._host_submit(words, held)


def laid_out(array: np.ndarray, layout: str, device: str, grad: bool):
    """(what the call sees, the leaf behind it)."""
    leaf = array
    strided = layout == "strided" and array.ndim > 0
    if strided:
        leaf = np.swapaxes(array, 0, -1) if array.ndim > 1 else array.repeat(2)
    made = pellucid.tensor(np.ascontiguousarray(leaf), device=device)
    if grad and array.dtype == np.float32:
        made.requires_grad_()
    if not strided:
        return made, made
    return (made.transpose(0, -1) if array.ndim > 1 else made[::2]), made


def several(out) -> tuple:
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def outcome(case: Case, layout: str, device: str) -> list[tuple[str, np.ndarray, str]]:
    """(what, values, dtype) of every result and gradient of one call."""
    pellucid.manual_seed(3)
    random = np.random.default_rng(4)
    with pellucid.device(device):
        given = [laid_out(a, layout, device, case.grad) for a in case.arrays]
        out = several(case.call(pellucid, *[seen for seen, _ in given]))
        found = [(f"result {k}", o) for k, o in enumerate(out)]
        roots = [o for o in out if isinstance(o, pellucid.Tensor) and o.requires_grad]
        if case.grad and roots:
            seeds = [
                pellucid.tensor(random.standard_normal(tuple(o.shape)).astype(np.float32)).to(o.dtype)
                for o in roots
            ]
            pellucid.autograd.backward(roots, seeds)
            grads = [(f"gradient {k}", leaf.grad) for k, (_, leaf) in enumerate(given)]
            found += [(what, g) for what, g in grads if g is not None]
    return [
        (what, o.detach().numpy(), str(o.dtype))
        if isinstance(o, pellucid.Tensor)
        else (what, np.asarray(o), type(o).__name__)
        for what, o in found
    ]


def differences(case: Case, layout: str) -> list[str]:
    """What webgpu does otherwise than the cpu device."""
    where = f"{case.name} [{layout}]"
    try:
        expected = outcome(case, layout, "cpu")
    except Exception:
        return [f"{where}: the cpu device fails: {traceback.format_exc(limit=-2)}"]
    try:
        ours = outcome(case, layout, "webgpu")
    except Exception:
        return [f"{where}: {traceback.format_exc(limit=-2)}"]
    if len(ours) != len(expected):
        return [f"{where}: {len(ours)} results and gradients, {len(expected)} on cpu"]
    found = []
    for (what, a, a_type), (_, b, b_type) in zip(ours, expected, strict=True):
        if a.shape != b.shape or a_type != b_type:
            found.append(f"{where}, {what}: {a_type}{a.shape}, on cpu {b_type}{b.shape}")
            continue
        loose = 10 if what.startswith("gradient") else 1
        try:
            np.testing.assert_allclose(a, b, rtol=loose * case.rtol, atol=loose * case.atol, equal_nan=True)
        except AssertionError as error:
            found.append(f"{where}, {what}: {' '.join(str(error).split())[:600]}")
    return found
