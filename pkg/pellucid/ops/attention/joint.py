"""Launches that do the work of several: which of their buffers and numbers they take from which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...op.kernel import Launch
from ...op.launches import RegisteredLaunch


@dataclass(frozen=True)
class Joint:
    """A launch that stands for several, its parts.

    Args:
        node: what it does; not registered yet.
        slots: for each binding (part, binding): whose tensor it takes.
        patches: for each field that runs bring (part, field): who brings it.
    """

    node: RegisteredLaunch
    slots: tuple[tuple[int, int], ...]
    patches: tuple[tuple[int, int], ...]


def join(launch: Launch, parts: Sequence[RegisteredLaunch]) -> Joint:
    """A launch as one that stands for its parts.

    Args:
        launch: its ``bind`` says for each binding, and as ``params.<field>`` for each field that it does not
            fill itself, where it comes from: ``"2.x"`` is binding or field x of part 2.
        parts: the launches.
    """
    source = launch.source
    slots, metas, patches, patched = [], [], [], []
    values = dict(launch.params)
    for b in source.bindings:
        part, name = _named(launch.bind[b.name])
        slots.append((part, parts[part].binding(name)))
        metas.append(parts[part].metas[slots[-1][1]])
    for field in source.fields:
        if field in values:
            continue
        part, name = _named(launch.bind[f"params.{field}"])
        values[field] = parts[part].values[name]
        if name in parts[part].patched:
            patched.append(field)
            patches.append((part, parts[part].patched.index(name)))
    ops = " + ".join(part.op for part in parts)
    node = RegisteredLaunch(
        ops, source, values, tuple(patched), tuple(metas), launch.grid, members=tuple(parts)
    )
    return Joint(node, tuple(slots), tuple(patches))


def _named(place: str) -> tuple[int, str]:
    part, _, name = place.partition(".")
    return int(part), name
