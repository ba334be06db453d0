"""Store sites: where expressions take up the values of a kernel that is no expression.

Headers of kernels say with `fuses` which bindings take part (wgsl/README.md). Values that one function
``store_<name>(i, ...)`` stores are at hand together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..kernel.element_types import PHYSICAL, WGSL_TYPE
from ..kernel.source import KernelSource
from ..launches import RegisteredLaunch


@dataclass(frozen=True)
class Site:
    """A place in a kernel where values are stored.

    Args:
        function: its name.
        line: the whole function, on one line.
        values: binding that is written -> the argument that holds the value.
        types: binding -> WGSL type of the value.
    """

    function: str
    line: str
    values: dict[str, str]
    types: dict[str, str]


_FUNCTION = re.compile(r"^fn (store_\w+)\(i: u32, ([^)]*)\) \{ (.*) \}$", re.M)
_STORE = re.compile(r"(\w+)\[i\] = (\w+);")


@lru_cache(1024)
def sites_of(source: KernelSource) -> tuple[Site, ...]:
    """Where a kernel can hand on the values that its header names; none where it names none."""
    outputs = source.header.outputs
    found = []
    for m in _FUNCTION.finditer(source.text):
        arguments = dict(part.strip().split(": ") for part in m[2].split(","))
        stores = _STORE.findall(m[3])
        whole = " ".join(f"{b}[i] = {v};" for b, v in stores) == m[3]
        if stores and whole and all(b in outputs and v in arguments for b, v in stores):
            types = {b: source.aliases.get(arguments[v], arguments[v]) for b, v in stores}
            found.append(Site(m[1], m[0], dict(stores), types))
    return tuple(found)


def sites(node: RegisteredLaunch) -> tuple[Site, ...]:
    """Where a kernel can hand its values on; none where it cannot."""
    return () if node.map is not None else sites_of(node.source)


def handed_on(node: RegisteredLaunch) -> frozenset[str]:
    """The outputs of a kernel that others may take over: of types that are stored element by element."""
    names = [(b.name, m) for b, m in zip(node.source.bindings, node.metas, strict=True)]
    return frozenset(
        name
        for site in sites(node)
        for name in site.values
        for b, m in names
        if b == name
        and m is not None
        and m.dtype in PHYSICAL
        and PHYSICAL[m.dtype][1] == 1
        and site.types[name] == WGSL_TYPE[PHYSICAL[m.dtype][2]]
    )
