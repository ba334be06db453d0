"""How much a launch does: the bytes that it moves at least, and the operations of its products."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from ..device.host import STATUS_SLOT
from ..device.stream import EMPTY_SLOT
from ..op.kernel.source import KernelSource
from ..op.launches import RegisteredLaunch
from ..tensors.meta import Meta

# Kernels that reach a part of a tensor only: such tensors, and the one that has as many elements.
_PARTS = {
    "index/select": ({"x"}, "out"),
    "index/gather": ({"x"}, "out"),
    "quant/rows": ({"weight"}, "out"),
    "attention/cache_write": ({"cache"}, "rows"),
    "attention/rotary": ({"cosines", "sines"}, "x"),
}


def moved(node: RegisteredLaunch, slots: Sequence[int]) -> tuple[int, int]:
    """Bytes that a launch reads and writes, if each element of its tensors goes over the bus once.

    A cache counts as a whole, however little of it is in use.

    Args:
        node: the launch.
        slots: of its bindings. What several bindings share counts once.

    Returns:
        (bytes read, bytes written).
    """
    parts, like = _PARTS.get(node.source.name.removeprefix("fused "), ((), ""))
    metas = {b.name: m for b, m in zip(node.source.bindings, node.metas, strict=True)}
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    for b, m, slot in zip(node.source.bindings, node.metas, slots, strict=True):
        if m is None or slot in (STATUS_SLOT, EMPTY_SLOT):
            continue
        nbytes = stored_bytes(m)
        measure = metas.get(like)
        if b.name in parts and measure is not None and 0 < measure.numel < m.numel:
            nbytes = nbytes * measure.numel // m.numel
        if b.written:
            written[slot] = max(written.get(slot, 0), nbytes)
        if not b.written or (_needs_old_values(node) and _is_loaded(node.source, b.name)):
            read[slot] = max(read.get(slot, 0), nbytes)
    return sum(read.values()), sum(written.values())


def stored_bytes(m: Meta) -> int:
    """Bytes in which the elements of a tensor lie; what is broadcast lies there once."""
    if m.dtype.is_quantized:
        from ..quant.format import FORMATS

        return FORMATS[m.dtype.name].layout(*m.shape).nbytes
    return m.dtype.itemsize * math.prod(n for n, s in zip(m.shape, m.strides, strict=True) if s or n == 0)


def _needs_old_values(node: RegisteredLaunch) -> bool:
    """Whether a kernel may compute with what it overwrites: of an expression it is known."""
    maps = [member.map for member in node.members or (node,)]
    return any(
        m is None or any(o.aliased and re.search(rf"\b{o.local}\b", m.expression) for o in m.operands)
        for m in maps
    )


@lru_cache(1024)
def _is_loaded(source: KernelSource, binding: str) -> bool:
    """Whether a kernel also reads what it writes: some place is not the left side of an assignment."""
    text = re.sub(r"//[^\n]*", "", source.text)
    for found in re.finditer(rf"\b{binding}\[", text):
        at, depth = found.end(), 1
        while depth and at < len(text):
            depth += {"[": 1, "]": -1}.get(text[at], 0)
            at += 1
        if re.match(r"\s*=[^=]", text[at:]) is None:
            return True
    return False


def operations(node: RegisteredLaunch) -> int:
    """Floating-point operations of the products of matrices in a launch; 0 for what is none.

    The kernels of products only, as PyTorch's ``with_flops``: two operations for each pair of elements.
    """
    if node.members:
        return sum(operations(member) for member in node.members)
    if not node.source.name.startswith("matmul/"):
        return 0
    metas = {b.name: m for b, m in zip(node.source.bindings, node.metas, strict=True) if m is not None}
    if "depth" in node.values:
        rows, columns, depth = (node.values[name] for name in ("rows", "columns", "depth"))
        if not rows * columns * depth:
            return 0
        batch = max(metas["a"].numel // (rows * depth), metas["b"].numel // (depth * columns))
        return 2 * batch * rows * columns * depth
    weights = [m for name, m in metas.items() if m.dtype.is_quantized]
    if not weights:  # the parts of a depth being added up
        return 0
    vectors = metas["x"].numel // metas["x"].shape[-1]
    return 2 * vectors * sum(m.numel for m in weights)
