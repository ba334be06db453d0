"""Files of `torch.save` that lie: a good one with bytes changed, opcodes in another order, names that would
execute something. Reading ends in a value or a FormatError, in bounded time, and executes nothing."""

from __future__ import annotations

import builtins
import io
import os
import random
import time
import zipfile
from collections import OrderedDict
from typing import Any

import pellucid
from pellucid import weights
from pellucid.errors import PellucidError
from pellucid.weights.formats import unpickler

COUNT = 400
SECONDS = 5.0
PIECES = [
    *unpickler._STEPS, b"cos\nsystem\n", b"cbuiltins\neval\n", b"ctorch\nSize\n", b"ctorch\nfloat32\n",
    b"ctorch\nFloatStorage\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._utils\n_rebuild_parameter\n",
    b"ccollections\nOrderedDict\n", b"c__builtin__\nset\n", b"ctorch\ndevice\n", b"X\x03\x00\x00\x00cpu",
    b"X\x07\x00\x00\x00storage", b"X\x01\x00\x00\x000", b"K\x02", b"K\x00", b"J\xff\xff\xff\xff",
    b"\x8a\x01\x05", b"M\xff\xff", b"G" + b"\x7f" * 8, b"i", b"o", b"\x81", b"\x92", b"\x93", b"0", b"2",
]  # fmt: skip


def good(rng: random.Random) -> bytes:
    """A file of a module's and an optimizer's state."""
    base = pellucid.arange(12, device="cpu").to(
        rng.choice([pellucid.float32, pellucid.bfloat16, pellucid.int64])
    )
    value: Any = OrderedDict(
        w=base.reshape(3, 4), v=base[2:9:2], p=pellucid.nn.Parameter(pellucid.ones(2, device="cpu"))
    )
    value._metadata = OrderedDict({"": {"version": 1}})
    file = io.BytesIO()
    pellucid.save(
        {"model": value, "step": 3, "more": [(1, 2.5, None), {"a", 1}, b"\xff", pellucid.Size((2,))]}, file
    )
    return file.getvalue()


def repacked(data: bytes, change: Any) -> bytes:
    """The file with its pickle changed, and right sums."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            new.writestr(info.filename, change(content) if info.filename.endswith("data.pkl") else content)
    return file.getvalue()


def altered(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(out) + 1)
        end = at + rng.choice((0, 0, 1, 1, 4, 30))
        piece = rng.choice((b"", rng.randbytes(1), rng.randbytes(3), rng.choice(PIECES), rng.choice(PIECES)))
        out[at:end] = piece * rng.choice((1, 1, 1, 3, 200))
    return bytes(out)


def streamed(data: bytes) -> None:
    """The same file as a checkpoint: its tensors by name."""
    checkpoint = weights.open(data)
    weights.read(checkpoint, list(checkpoint.values()))


def run(seed: int) -> None:
    """Read one file that lies."""
    rng = random.Random(seed)
    data = good(rng)
    kind = rng.randrange(4)
    if kind == 0:
        data = altered(rng, data)
    elif kind == 1:
        made = b"\x80\x02" + b"".join(rng.choice(PIECES) for _ in range(rng.randrange(60))) + b"."
        data = repacked(data, lambda _: made)
    else:
        data = repacked(data, lambda content: altered(rng, content))
    executed: list[str] = []
    real = os.system, builtins.eval
    began = time.thread_time()
    said = ""
    try:
        os.system = builtins.eval = lambda *given: executed.append(str(given))  # type: ignore[assignment]
        for read in (lambda: pellucid.load(io.BytesIO(data), map_location="cpu"), lambda: streamed(data)):
            try:
                read()
            except PellucidError as error:
                said += str(error)
    finally:
        os.system, builtins.eval = real
    assert not executed, executed
    assert len(said) < 4000, said
    assert time.thread_time() - began < SECONDS
