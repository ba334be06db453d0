"""Checkpoints of a training run: complete or not there, with the sha256 of every file, the oldest removed.

A folder ``checkpoint-STEP`` has transformers' files and ``checksums.json``, which is written last.
Without it, or where a sum differs, the checkpoint does not count, and an earlier one is taken.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import warnings
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from ... import weights
from ...device import device
from ...device.steps import now
from ...errors import FormatError, SourceError
from ...models.loading import LoadOptions, load_tensors
from ...ops.random.generator import default_generator
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten
from ...utils.serialization import save
from ...weights.document import parse_object

CHECKSUMS = "checksums.json"
_BESIDE = ".new"
_NAME = re.compile(r"checkpoint-(\d+)")
Steps = Generator[tuple, Any, Any]


def on_cpu(tree: Any) -> Steps:
    """A tree whose tensors are copies on the cpu device, read one after the other."""
    leaves, spec = tree_flatten(tree)
    found = []
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            values = yield (leaf.detach(), "numpy", (), {})
            leaf = tensor(np.array(values), device="cpu").to(leaf.dtype)
        found.append(leaf)
    return tree_unflatten(found, spec)


def packed(tree: Any) -> Steps:
    """The bytes of a file of `pellucid.save`."""
    tree = yield from on_cpu(tree)
    file = io.BytesIO()
    save(tree, file)
    return file.getvalue()


def tensors_of(data: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the cpu device.

    Raises:
        FormatError: it is none.
    """
    checkpoint = weights.open(data)
    try:
        options = LoadOptions(device("cpu"), None, None, None, 1)
        return now(load_tensors(checkpoint, list(checkpoint.values()), options))
    finally:
        checkpoint.close()


def random_state() -> dict[str, Any]:
    """Where all random numbers of the process stand: ours, Python's and numpy's, as JSON has it."""
    kind, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    version, words, spare = random.getstate()
    return {
        "pellucid": [default_generator.seed_value, default_generator.offset],
        "python": [version, list(words), spare],
        "numpy": [str(kind), np.asarray(keys).tolist(), int(position), int(has_gauss), float(gauss)],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Go on from what `random_state` gave."""
    seed, offset = state["pellucid"]
    default_generator.manual_seed(seed)
    default_generator.offset = offset
    version, words, spare = state["python"]
    random.setstate((version, tuple(words), spare))
    np.random.set_state(tuple(state["numpy"]))


def write(folder: Any, step: int, files: dict[str, bytes]) -> Steps:
    """Write a checkpoint; returns its name.

    Args:
        folder: a `LocalFolder` or the like.
        step: its number.
        files: bytes by name.

    Raises:
        SourceError: there is no room. What was written of it is removed; what was there stays.
    """
    name = f"checkpoint-{step}"
    sums = {file: hashlib.sha256(data).hexdigest() for file, data in files.items()}
    files = files | {CHECKSUMS: json.dumps(sums, indent=2).encode()}
    had = yield (folder, "names", (name,), {})
    try:
        # Beside their places, so that a checkpoint of that step stays until there was room for all of this.
        for file, data in files.items():
            yield (folder, "write", (f"{name}/{file}{_BESIDE}", data), {})
    except BaseException:
        for gone in [f"{name}/{file}{_BESIDE}" for file in files] if CHECKSUMS in had else [name]:
            yield (folder, "remove", (gone,), {})
        raise
    # What was there does not count from here on.
    yield (folder, "remove", (f"{name}/{CHECKSUMS}",), {})
    for file in files:
        yield (folder, "move", (f"{name}/{file}{_BESIDE}", f"{name}/{file}"), {})
    return name


def read(folder: Any, name: str) -> Steps:
    """The files of a checkpoint, by name.

    Raises:
        FormatError: it is not complete, or a file is not what was written.
        SourceError: a file cannot be read.
    """
    below = f"{name}/" if name else ""
    names = yield (folder, "names", (name,), {})
    if CHECKSUMS not in names:
        raise FormatError(f"{folder}/{below}: is no complete checkpoint: it has no {CHECKSUMS}.")
    text = yield (folder, "read", (f"{below}{CHECKSUMS}",), {})
    files = {}
    for file, wanted in parse_object(f"{folder}/{below}{CHECKSUMS}", bytes(text)).items():
        data = yield (folder, "read", (f"{below}{file}",), {})
        found = hashlib.sha256(data).hexdigest()
        if found != wanted:
            raise FormatError(
                f"{folder}/{below}{file}: is not what was written: its sha256 is {found[:12]}..., not "
                f"{str(wanted)[:12]}... . Resume from an earlier checkpoint."
            )
        files[file] = bytes(data)
    return files


def steps_of(names: Iterable[str]) -> list[int]:
    """The steps of checkpoints among names, in order."""
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


def newest(folder: Any) -> Steps:
    """The name and files of the newest checkpoint that is complete; those that are not are told of.

    Raises:
        SourceError: there is none.
    """
    names = yield (folder, "names", (), {})
    for step in reversed(steps_of(names)):
        name = f"checkpoint-{step}"
        try:
            return name, (yield from read(folder, name))
        except (FormatError, SourceError) as error:
            warnings.warn(f"resume_from_checkpoint: {error} An earlier one is tried.", stacklevel=2)
    raise SourceError(
        f"{folder}: has no complete checkpoint to resume from. Call train() without resume_from_checkpoint."
    )


def rotate(folder: Any, limit: int | None, keep: Iterable[str]) -> Steps:
    """Remove the oldest checkpoints beyond a number.

    Args:
        folder: where they are.
        limit: how many stay; None for all.
        keep: names that stay whatever their age: the best one, and the one just written.
    """
    if limit is None:
        return
    found = [f"checkpoint-{step}" for step in steps_of((yield (folder, "names", (), {})))]
    kept = [name for name in found if name in set(keep)]
    others = [name for name in found if name not in kept]
    for name in others[: max(0, len(found) - max(limit, len(kept)))]:
        yield (folder, "remove", (name,), {})


__all__ = [
    "newest", "on_cpu", "packed", "random_state", "read", "rotate", "set_random_state", "tensors_of", "write",
]  # fmt: skip
